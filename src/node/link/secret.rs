//! What no text may show of a node's URL: keys stand in its user, its path and its query, and nodes and gateways repeat
//! what they were asked with in their errors.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::value::RawValue;

/// A word of a path or a query that may be a key: long, or of some length with letters and digits. Others are versions and
/// names of chains, which nodes speak of too.
fn is_key(word: &str) -> bool {
    let has = |of: fn(&u8) -> bool| word.bytes().any(|byte| of(&byte));
    word.len() >= 16 || (word.len() >= 8 && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic))
}

/// Whether a parameter of this name has a key as its value, however that looks.
fn names_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "auth", "cred", "jwt", "key", "pass", "pwd", "secret", "sig", "token",
    ]
    .iter()
    .any(|word| name.contains(word))
}

/// A part of a URL as it is meant, where it stands there in percent-encoding (RFC 3986, 2.1).
fn decoded(part: &str) -> Option<String> {
    let meant = percent_decode_str(part).decode_utf8().ok()?;
    (meant != part).then(|| meant.into_owned())
}

/// What needs no percent-encoding (RFC 3986, 2.3).
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// What is meant, with everything in percent-encoding that may be, in digits of either case: as a gateway may write it.
fn encoded(meant: &str) -> [String; 2] {
    let texts = || utf8_percent_encode(meant, UNRESERVED);
    let lower = texts().map(|text| match text.starts_with('%') {
        true => text.to_ascii_lowercase(),
        false => text.to_owned(),
    });
    [texts().collect(), lower.collect()]
}

/// A shorter password would be found where it is none.
const PASSWORD_MIN: usize = 4;

/// More of a text than this is shown nowhere.
const TEXT_MAX: usize = 16 << 10;

/// The parts of a URL that are not shown, with what stands in their place.
pub(super) struct Secret(Vec<(String, &'static str)>);

impl Secret {
    pub(super) fn of(url: &str) -> Self {
        let url = url.trim();
        let mut parts = vec![(url, "the node"), (url.trim_end_matches('/'), "the node")];
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if let Some((user, _)) = authority.rsplit_once('@') {
            let (name, password) = user.split_once(':').unwrap_or(("", user));
            parts.push((user, "..."));
            let words = [name, password].into_iter();
            parts.extend(
                words
                    .filter(|word| word.len() >= PASSWORD_MIN)
                    .map(|word| (word, "...")),
            );
        }
        if path.len() > 1 {
            parts.push((path, "/..."));
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let words = path.split('/').filter(|word| is_key(word));
            // What stands before `=` is a name.
            let values = query.split('&').filter_map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or(("", pair));
                let is_named = names_key(name) && value.len() >= PASSWORD_MIN;
                (is_named || is_key(value)).then_some(value)
            });
            parts.extend(words.chain(values).map(|word| (word, "...")));
        }
        parts.retain(|(part, _)| !part.is_empty());
        let forms = parts.iter().flat_map(|&(part, shown)| {
            let meant = decoded(part).unwrap_or_else(|| part.to_owned());
            let [upper, lower] = encoded(&meant);
            [meant, upper, lower].map(|form| (form, shown))
        });
        let mut owned: Vec<_> = forms.collect();
        owned.extend(parts.into_iter().map(|(part, shown)| (part.to_owned(), shown)));
        // The whole before its parts.
        owned.sort_by(|(one, _), (other, _)| other.len().cmp(&one.len()).then_with(|| one.cmp(other)));
        owned.dedup();
        Self(owned)
    }

    /// `text` without them, whoever wrote it, and without the user as HTTP's authentication sends it; no more than its
    /// beginning where it is very long.
    pub(super) fn hide(&self, text: &str) -> String {
        let text = text.get(..text.floor_char_boundary(TEXT_MAX)).unwrap_or_default();
        let hidden = self.0.iter().fold(text.to_owned(), |text, (part, shown)| {
            replace_whole(&text, part, shown)
        });
        hide_credentials(&hidden)
    }

    /// What comes with an error: as it is where nothing of it is hidden, as revert data are.
    pub(super) fn hide_in(&self, data: Box<RawValue>) -> Box<RawValue> {
        let text = data.get();
        if !self.0.iter().any(|(part, _)| text.contains(part.as_str())) {
            return data;
        }
        let hidden = serde_json::value::to_raw_value(&self.hide(text));
        hidden.unwrap_or(data)
    }
}

/// `part` replaced where it is no part of a longer word.
fn replace_whole(text: &str, part: &str, shown: &str) -> String {
    let joins = |a: Option<char>, b: Option<char>| {
        a.zip(b)
            .is_some_and(|(a, b)| a.is_alphanumeric() && b.is_alphanumeric())
    };
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(part) {
        let (before, found) = rest.split_at(at);
        let after = found.get(part.len()..).unwrap_or_default();
        let last = before.chars().next_back().or_else(|| out.chars().next_back());
        let is_inside =
            joins(last, part.chars().next()) || joins(part.chars().next_back(), after.chars().next());
        out.push_str(before);
        out.push_str(if is_inside { part } else { shown });
        rest = after;
    }
    out + rest
}

/// Schemes of authentication, in lower case.
const SCHEMES: [&str; 2] = ["basic ", "bearer "];
/// Shorter words behind them are words.
const CREDENTIALS_MIN: usize = 8;

/// Leaves out what stands behind the names of schemes.
fn hide_credentials(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    while let Some(start) = SCHEMES
        .iter()
        .filter_map(|scheme| Some(from + lower.get(from..)?.find(scheme)? + scheme.len()))
        .min()
    {
        let rest = text.get(start..).unwrap_or_default();
        let ends = |char: char| !(char.is_ascii_alphanumeric() || "+/=-_.~".contains(char));
        let end = start + rest.find(ends).unwrap_or(rest.len());
        let word = text.get(start..end).unwrap_or_default();
        out.push_str(text.get(from..start).unwrap_or_default());
        let is_word = word.len() < CREDENTIALS_MIN || word.bytes().all(|byte| byte.is_ascii_lowercase());
        out.push_str(if is_word { word } else { "..." });
        from = end;
    }
    out + text.get(from..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_url_that_may_be_a_key_is_shown() {
        let secret = Secret::of(
            " https://me:pass@node.example/v3/0123456789abcdef?token=sesame-street-1&network=ethereum ",
        );
        for printed in [
            "https://me:pass@node.example/v3/0123456789abcdef?token=sesame-street-1&network=ethereum",
            "https://node.example/v3/0123456789abcdef?token=sesame-street-1&network=ethereum",
            "me:pass",
            "bad password `pass`",
            "Cannot POST /v3/0123456789abcdef",
            "unknown project 0123456789abcdef",
            "token sesame-street-1 is spent",
            "authorization: Basic bWU6cGFzcw==, denied",
            "authorization: bearer eyJhbGciOiJIUzI1NiJ9",
        ] {
            let shown = secret.hide(&format!("error for ({printed}): refused"));
            for key in [
                "0123456789abcdef",
                "pass`",
                "me:pass",
                "sesame",
                "bWU6cGFzcw",
                "eyJhb",
            ] {
                assert!(!shown.contains(key), "{shown}");
            }
            assert!(shown.ends_with("): refused"), "{shown}");
        }
        assert_eq!(
            Secret::of("http://127.0.0.1:1").hide("http://127.0.0.1:1/ x"),
            "the node/ x"
        );
    }

    #[test]
    fn keys_by_name_and_in_percent_encoding_are_hidden_as_they_are_meant() {
        let rest = "://me:p%40ss%2fw0rd@node.example/?apikey=teamquarry&X-Key=QQQSECRET&network=ethereum&pwd=sesameopen";
        let secret = Secret::of(&["https", rest].concat());
        for printed in [
            "key teamquarry is spent",
            "/?apikey=teamquarry",
            "bad QQQSECRET",
            "me:p@ss/w0rd",
            "wrong password p@ss/w0rd",
            "wrong password p%40ss%2fw0rd",
            "wrong password p%40ss%2Fw0rd",
            "pwd=sesameopen",
        ] {
            let shown = secret.hide(printed);
            for key in ["teamquarry", "QQQ", "ss/w0", "ss%2fw0", "ss%2Fw0", "sesame"] {
                assert!(!shown.contains(key), "{shown}");
            }
        }
        assert_eq!(secret.hide("the ethereum way"), "the ethereum way");
        for (part, meant) in [
            ("a%20b", Some("a b")),
            ("%4a%4B%", Some("JK%")),
            ("%c3%a4", Some("\u{e4}")),
            ("%zz", None),
            ("%0xab", None),
            ("%ff", None),
            ("plain", None),
        ] {
            assert_eq!(decoded(part).as_deref(), meant);
        }
    }

    #[test]
    fn what_a_node_speaks_of_stays() {
        let secret = Secret::of(
            "https://bob:word@node.example/execution/11155111?network=ethereum&apikey=a1b2c3d4e5f6",
        );
        for text in [
            "execution reverted: the ethereum way",
            "chain 11155111, password words, apikey is missing",
            "0xa1b2c3d4e5f6a1b2c3d4e5f6 is unknown",
            "Bearer token missing",
            "basic",
            "Basic ",
            "\u{e4}Basic \u{e4}",
        ] {
            assert_eq!(secret.hide(text), text);
        }
        assert_eq!(Secret::of("").hide("Basic"), "Basic");
        // Very long texts are cut, between characters, and looked through once.
        let long = "Basic \u{e4}".repeat(1 << 20);
        assert!((TEXT_MAX - 4..=TEXT_MAX).contains(&secret.hide(&long).len()));
    }
}
