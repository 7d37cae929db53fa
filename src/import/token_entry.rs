//! One token of a list, in either manner.

use serde_json::{Map, Value};

use super::words::short;
use crate::model::{Address, TokenProject, shown_text, written_address};

/// Characters of a name or symbol that are kept.
const NAME_CHARS_MAX: usize = 256;
/// Characters of a description that are kept.
const DESCRIPTION_CHARS_MAX: usize = 4096;
/// The longest name of a project elsewhere.
const HANDLE_CHARS_MAX: usize = 64;
/// The longest URL.
const URL_CHARS_MAX: usize = 2048;
/// The longest address of mail.
const EMAIL_CHARS_MAX: usize = 254;

type Object = Map<String, Value>;

/// Takes what is wrong with a field: its name, and why.
type LeftOut<'a> = &'a dyn Fn(&str, &str);

/// The token of an entry and what is told of it. Fields of the project that are no good are left out.
///
/// # Errors
/// Why the entry is refused: its address, name, symbol or decimals are not what they should be.
pub(super) fn project(entry: &Object, left_out: LeftOut<'_>) -> Result<(Address, TokenProject), String> {
    let address = match entry.get("address") {
        None => return Err("there is no address".to_owned()),
        Some(Value::String(text)) => {
            let text = text.trim();
            written_address(text).map_err(|fault| format!("address `{}` {fault}", short(text)))?
        }
        Some(_) => return Err("the address is not text".to_owned()),
    };
    let decimals = match entry.get("decimals") {
        None | Some(Value::Null) => None,
        Some(decimals) => Some(
            decimals
                .as_u64()
                .and_then(|decimals| u8::try_from(decimals).ok())
                .ok_or_else(|| "decimals is not an integer from 0 to 255".to_owned())?,
        ),
    };
    let mut project = TokenProject {
        name: label(entry, "name")?,
        symbol: label(entry, "symbol")?,
        decimals,
        ..TokenProject::default()
    };
    let told = Told { entry, left_out };
    project.description = told.one(&[&["extensions", "description"], &["description"]], description);
    project.email = told.one(&[&["extensions", "email"], &["support", "email"]], email);
    project.logo_uri = told.one(
        &[&["logoURI"], &["extensions", "logoURI"], &["logo", "src"]],
        logo,
    );
    project.website = told.one(&[&["extensions", "website"], &["website"]], url);
    project.whitepaper = told.one(&[&["extensions", "whitepaper"], &["whitepaper"]], url);
    for (field, name) in [
        (&mut project.blog, "blog"),
        (&mut project.reddit, "reddit"),
        (&mut project.twitter, "twitter"),
        (&mut project.github, "github"),
        (&mut project.telegram, "telegram"),
        (&mut project.discord, "discord"),
    ] {
        let read = if name == "blog" { url } else { url_or_handle };
        *field = told.one(&[&["extensions", name], &["social", name]], read);
    }
    Ok((address, project))
}

/// A name as contracts' names are shown.
fn label(entry: &Object, name: &str) -> Result<Option<String>, String> {
    match entry.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let shown = shown_text(text.trim().as_bytes(), NAME_CHARS_MAX);
            Ok(Some(shown).filter(|shown| !shown.is_empty()))
        }
        Some(_) => Err(format!("{name} is not text")),
    }
}

struct Told<'a> {
    entry: &'a Object,
    left_out: LeftOut<'a>,
}

impl Told<'_> {
    /// The first of these places that tells something; an empty text tells nothing.
    fn one(&self, places: &[&[&str]], read: impl Fn(&str) -> Result<String, &'static str>) -> Option<String> {
        places.iter().find_map(|place| {
            let (first, rest) = place.split_first()?;
            let found = rest
                .iter()
                .try_fold(self.entry.get(*first)?, |value, name| value.get(*name))?;
            let read = match found {
                Value::Null => return None,
                Value::String(text) if text.trim().is_empty() => return None,
                Value::String(text) => read(text.trim()),
                _ => Err("it is not text"),
            };
            read.inspect_err(|reason| (self.left_out)(&place.join("."), reason))
                .ok()
        })
    }
}

fn description(text: &str) -> Result<String, &'static str> {
    Ok(shown_text(text.as_bytes(), DESCRIPTION_CHARS_MAX))
}

fn is_plain(char: char) -> bool {
    !char.is_whitespace() && shown_text(char.encode_utf8(&mut [0; 4]).as_bytes(), 1).len() == char.len_utf8()
}

fn email(text: &str) -> Result<String, &'static str> {
    let parts = text.split_once('@');
    let good = parts
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.') && !host.contains('@'))
        && text
            .chars()
            .all(|char| is_plain(char) && !"<>\"(),:;\\".contains(char));
    match good {
        _ if text.chars().count() > EMAIL_CHARS_MAX => Err("it is longer than 254 characters"),
        true => Ok(text.to_owned()),
        false => Err("it is not an address of mail"),
    }
}

/// An http(s) URL: readers make links of it, so nothing else will do.
fn url(text: &str) -> Result<String, &'static str> {
    if text.chars().count() > URL_CHARS_MAX {
        return Err("it is longer than 2048 characters");
    }
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let rest = ["https://", "http://"]
        .iter()
        .find(|scheme| lower.starts_with(**scheme))
        .and_then(|scheme| text.get(scheme.len()..));
    let Some(rest) = rest else {
        return Err("it is not a URL of http or https");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let good = host.chars().next().is_some_and(char::is_alphanumeric)
        && !host.contains('@')
        && text
            .chars()
            .all(|char| is_plain(char) && !"<>\"`{}|\\^".contains(char));
    if good {
        Ok(text.to_owned())
    } else {
        Err("it is not a URL of http or https")
    }
}

/// A logo may also lie where lists of the standard often have it, by its content.
fn logo(text: &str) -> Result<String, &'static str> {
    let rest = ["ipfs://", "ipns://"]
        .iter()
        .find_map(|scheme| text.strip_prefix(scheme));
    match rest {
        Some(rest) if is_name(rest.split(['/', '?', '#']).next().unwrap_or_default()) => {
            url(&format!("https://{rest}")).map(|_| text.to_owned())
        }
        _ => url(text),
    }
}

/// A URL, or the name by which a place of many users knows the project: nothing that a reader could take for a scheme.
fn url_or_handle(text: &str) -> Result<String, &'static str> {
    if is_name(text.strip_prefix('@').unwrap_or(text)) {
        Ok(text.to_owned())
    } else {
        url(text)
    }
}

fn is_name(text: &str) -> bool {
    let fits = (1..=HANDLE_CHARS_MAX).contains(&text.len());
    fits && text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::cell::RefCell;

    /// What an entry is read as, and the fields that were left out.
    fn read(entry: Value) -> (Result<(Address, TokenProject), String>, Vec<String>) {
        let left_out = RefCell::new(Vec::new());
        let read = project(entry.as_object().unwrap(), &|field, _| {
            left_out.borrow_mut().push(field.to_owned());
        });
        (read, left_out.into_inner())
    }

    const TOKEN: &str = "0xABABABABABABABABABABABABABABABABABABABAB";

    #[test]
    fn both_manners() {
        let (standard, left_out) = read(json!({
            "chainId": 1, "address": TOKEN, "name": " Coin\u{202e}\n", "symbol": "C", "decimals": 255,
            "logoURI": "https://a.example/logo.png", "tags": ["x"],
            "extensions": {
                "description": "Two\nlines", "website": "HTTPS://a.example?x=1#y", "email": "a@b.example",
                "blog": "http://b.example", "reddit": "https://r.example/r/x", "twitter": "https://t.example/x",
                "github": "https://g.example/x", "telegram": "https://t.example", "discord": "https://d.example",
                "whitepaper": "https://w.example/w.pdf", "bridgeInfo": {"10": {}}
            }
        }));
        let (address, project) = standard.unwrap();
        assert_eq!((address, left_out), (Address::repeat_byte(0xab), Vec::new()));
        let mut project = project;
        assert_eq!(project.decimals, Some(255));
        let texts: Vec<_> = project.texts().into_iter().flatten().cloned().collect();
        assert_eq!(texts.len(), 13, "{texts:?}");
        assert_eq!((texts[0].as_str(), texts[2].as_str()), ("Coin", "Twolines"));
        assert_eq!(texts[3], "HTTPS://a.example?x=1#y");

        let (listed, left_out) = read(json!({
            "symbol": "Skey", "name": "Key Network", "address": TOKEN, "decimals": 8, "type": "ERC20", "ens_address": "",
            "website": "https://key.example", "logo": {"src": "https://key.example/l.png", "width": "128"},
            "support": {"email": "office@key.example", "url": ""},
            "social": {"blog": "https://blog.example", "chat": "", "discord": "", "github": "https://g.example",
                "reddit": "", "telegram": "https://t.example", "twitter": "https://x.example"},
            "deprecation": {"new_address": TOKEN}
        }));
        let (_, listed) = listed.unwrap();
        assert!(left_out.is_empty());
        assert_eq!(listed.email.as_deref(), Some("office@key.example"));
        assert_eq!(listed.logo_uri.as_deref(), Some("https://key.example/l.png"));
        assert_eq!(
            (listed.discord.as_deref(), listed.reddit.as_deref()),
            (None, None)
        );
        // What the second tells replaces, what it leaves open stays.
        project.update(listed);
        assert_eq!(project.decimals, Some(8));
        assert_eq!(project.discord.as_deref(), Some("https://d.example"));
        assert_eq!(project.blog.as_deref(), Some("https://blog.example"));
    }

    #[test]
    fn entries_that_are_refused() {
        for (entry, why) in [
            (json!({}), "no address"),
            (json!({"address": 5}), "address"),
            (json!({"address": "0xab"}), "address `0xab` is not an address"),
            (
                json!({"address": "0xAbabababababababababababababababababABAB"}),
                "has a wrong checksum (EIP-55): with the right one it is 0xABaBaB",
            ),
            (json!({"address": TOKEN, "name": 5}), "name is not text"),
            (json!({"address": TOKEN, "symbol": ["C"]}), "symbol is not text"),
            (json!({"address": TOKEN, "decimals": "18"}), "decimals"),
            (json!({"address": TOKEN, "decimals": 256}), "decimals"),
            (json!({"address": TOKEN, "decimals": -1}), "decimals"),
            (json!({"address": TOKEN, "decimals": 1.5}), "decimals"),
        ] {
            let (read, _) = read(entry.clone());
            assert!(read.unwrap_err().contains(why), "{entry}");
        }
    }

    #[test]
    fn handles_and_logos_by_content() {
        let logo = "ipfs://QmXttGpZrECX5qCyXbBQiqgQNytVGeZW5Anewvh2jc4psg/l.png";
        let (told, left_out) = read(json!({"address": TOKEN, "logoURI": logo, "extensions": {
            "twitter": "@coin_x", "telegram": "coin.x", "github": "https://g.example/x", "discord": "javascript:alert(1)",
            "reddit": "r/x", "blog": "@coin"}}));
        let (_, project) = told.unwrap();
        assert_eq!(project.logo_uri.as_deref(), Some(logo));
        assert_eq!(project.twitter.as_deref(), Some("@coin_x"));
        assert_eq!(project.telegram.as_deref(), Some("coin.x"));
        assert_eq!(project.github.as_deref(), Some("https://g.example/x"));
        assert_eq!(
            left_out,
            ["extensions.blog", "extensions.reddit", "extensions.discord"]
        );
        for bad in [
            "ipfs://",
            "ipfs:///x",
            "ipfs://a b",
            "ipfs://Qm/\"x",
            "ipfsx://Qm",
        ] {
            let (told, left_out) = read(json!({"address": TOKEN, "logoURI": bad}));
            assert_eq!((told.unwrap().1.logo_uri, left_out.len()), (None, 1), "{bad}");
        }
    }

    #[test]
    fn fields_that_are_left_out() {
        let long = format!("https://a.example/{}", "x".repeat(URL_CHARS_MAX));
        for bad in [
            "javascript:alert(1)",
            "ipfs://Qm",
            "data:image/png;base64,AA",
            "//a.example",
            "https://",
            "https:///x",
            "https://a b",
            "https://a.example/<x>",
            "https://user@a.example",
            "https://a.example/\u{202e}",
            "@coin",
            "https://a.example/\n",
            "https://a.example/\"x",
            &long,
        ] {
            let bad = if bad.ends_with('\n') {
                "https://a.example/\nx"
            } else {
                bad
            };
            let (read, left_out) =
                read(json!({"address": TOKEN, "website": bad, "logoURI": "https://a.example/l"}));
            let (_, project) = read.unwrap();
            assert_eq!(
                (project.website.as_deref(), left_out.as_slice()),
                (None, ["website".to_owned()].as_slice()),
                "{bad}"
            );
            assert!(project.logo_uri.is_some());
        }
        for bad in [
            "x",
            "@b.example",
            "a@b",
            "a@b@c.example",
            "a b@c.example",
            "<a@b.example>",
        ] {
            let (read, left_out) = read(json!({"address": TOKEN, "support": {"email": bad}}));
            assert_eq!((read.unwrap().1.email, left_out.len()), (None, 1), "{bad}");
        }
        let (read, left_out) =
            read(json!({"address": TOKEN, "extensions": {"website": 5, "description": "x".repeat(9999)}}));
        let (_, project) = read.unwrap();
        assert_eq!((project.website.as_deref(), left_out.len()), (None, 1));
        assert_eq!(
            project.description.map(|text| text.len()),
            Some(DESCRIPTION_CHARS_MAX)
        );
    }
}
