//! What `Accept` says of two media types (RFC 9110 section 12.5.1).

use hyper::HeaderMap;
use hyper::header::ACCEPT;

/// How much a media type is wanted, in thousandths, and how exactly it was named: 3 by its name, 2 by `type/*`,
/// 1 by `*/*`, 0 not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wanted {
    exactness: u8,
    quality: u16,
}

/// Whether the client names `other` and wants it at least as much as `usual`; at a tie `usual` wins where it is
/// named too. A range that covers `other` without naming it (`*/*`) asks for what is usual.
#[must_use]
pub fn prefers(headers: &HeaderMap, other: &str, usual: &str) -> bool {
    let (mut of_other, mut of_usual) = (Wanted::default(), Wanted::default());
    for value in headers.get_all(ACCEPT) {
        // A value that is not text names nothing.
        for range in value.to_str().unwrap_or_default().split(',') {
            weigh(range, other, &mut of_other);
            weigh(range, usual, &mut of_usual);
        }
    }
    let named = |wanted: Wanted| wanted.exactness == 3 && wanted.quality > 0;
    named(of_other)
        && (of_other.quality > of_usual.quality || (of_other.quality == of_usual.quality && !named(of_usual)))
}

/// Takes in one media range; the most exact one that covers the type counts.
fn weigh(range: &str, media: &str, wanted: &mut Wanted) {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    let kind = media.split('/').next().unwrap_or_default();
    let exactness = if name.eq_ignore_ascii_case(media) {
        3
    } else if name
        .strip_suffix("/*")
        .is_some_and(|of| of.eq_ignore_ascii_case(kind))
    {
        2
    } else if name == "*/*" {
        1
    } else {
        return;
    };
    let mut quality = 1000;
    for parameter in parts {
        if let Some((key, value)) = parameter.split_once('=')
            && key.trim().eq_ignore_ascii_case("q")
        {
            quality = parse_quality(value.trim());
        }
    }
    if exactness > wanted.exactness || (exactness == wanted.exactness && quality > wanted.quality) {
        *wanted = Wanted { exactness, quality };
    }
}

/// A weight from 0 to 1 with at most three decimals, in thousandths; what is malformed counts as 0.
fn parse_quality(text: &str) -> u16 {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = decimals.bytes().all(|byte| byte.is_ascii_digit()) && decimals.len() <= 3;
    let decimals = format!("{decimals:0<3}").parse::<u16>();
    match (whole, decimals) {
        ("0", Ok(thousandths)) if digits => thousandths,
        ("1", Ok(0)) if digits => 1000,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[test]
    fn weights() {
        let table = [
            ("1", 1000),
            ("1.0", 1000),
            ("1.000", 1000),
            ("0", 0),
            ("0.5", 500),
            ("0.05", 50),
            ("0.", 0),
            ("1.1", 0),
            ("2", 0),
            ("0.1234", 0),
            ("-1", 0),
            ("", 0),
            ("0.+5", 0),
        ];
        for (text, expected) in table {
            assert_eq!(parse_quality(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_only_where_they_are_named_and_wanted() {
        let table = [
            ("", false),
            ("*/*", false),
            ("application/*", false),
            ("text/html, */*;q=0.1", false),
            ("application/x-ndjson", true),
            ("Application/X-NDJSON; charset=utf-8", true),
            ("application/x-ndjson;q=0", false),
            ("application/x-ndjson;q=0.1", true),
            ("application/x-ndjson, */*", true),
            ("application/x-ndjson;q=0.5, */*", false),
            ("application/x-ndjson;q=0.5, */*;q=0.5", true),
            ("application/x-ndjson, application/*;q=0.9", true),
            ("application/x-ndjson, application/json", false),
            ("application/x-ndjson, application/json;q=0.9", true),
            ("application/json, application/x-ndjson;q=0.9", false),
            ("application/json;q=0, application/x-ndjson;q=0.1, */*", true),
            ("application/x-ndjson;Q=0.2 , application/json ; q=0.1", true),
            ("application/x-ndjson;q=zz, application/json;q=0.1", false),
        ];
        for (accept, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            let found = prefers(&headers, "application/x-ndjson", "application/json");
            assert_eq!(found, expected, "{accept:?}");
        }
        // Several headers are one list.
        let mut headers = HeaderMap::new();
        for accept in ["application/json;q=0.1", "application/x-ndjson"] {
            headers.append(ACCEPT, HeaderValue::from_static(accept));
        }
        assert!(prefers(&headers, "application/x-ndjson", "application/json"));
    }
}
