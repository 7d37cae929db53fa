//! Paths to routes: templates whose segments are literal words or one placeholder each.

/// A table of path templates such as `/api/block/{blockNumber}/rewards`.
#[derive(Debug, Default)]
pub struct Router {
    groups: Vec<Group>,
}

/// Routes whose first two words are the same, in the order in which they are tried.
#[derive(Debug)]
struct Group {
    /// These words with the slashes around them, or less where a template has a placeholder there or ends.
    begin: &'static str,
    routes: Vec<Route>,
}

#[derive(Debug)]
struct Route {
    /// The template up to its first placeholder: most routes are told apart by one comparison.
    prefix: &'static str,
    segments: Vec<Segment>,
    value: usize,
}

#[derive(Debug)]
enum Segment {
    Literal(&'static str),
    Placeholder,
}

/// A template that matched, with the raw text of its placeholders in order.
#[derive(Debug, PartialEq, Eq)]
pub struct Match<'a> {
    /// The number given with the template.
    pub value: usize,
    /// The segments that placeholders took, still percent-encoded.
    pub segments: Vec<&'a str>,
}

impl Router {
    /// A table of these templates, each with the number to answer for it. A literal beats a
    /// placeholder at the leftmost place where two templates differ.
    pub fn new(templates: impl IntoIterator<Item = (&'static str, usize)>) -> Self {
        let mut routes: Vec<Route> = templates
            .into_iter()
            .map(|(template, value)| Route {
                prefix: template.split('{').next().unwrap_or_default(),
                segments: split(template).map(segment).collect(),
                value,
            })
            .collect();
        routes.sort_by_key(|route| {
            route
                .segments
                .iter()
                .map(|part| matches!(part, Segment::Placeholder))
                .collect::<Vec<_>>()
        });
        let mut groups: Vec<Group> = Vec::new();
        for route in routes {
            let begin = begin_of(route.prefix);
            // A route may only be tried before another one's group where no path can be for both.
            let meets = |group: &Group| group.begin.starts_with(begin) || begin.starts_with(group.begin);
            match groups
                .iter()
                .rposition(meets)
                .and_then(|place| groups.get_mut(place))
            {
                Some(group) if group.begin == begin => group.routes.push(route),
                _ => groups.push(Group {
                    begin,
                    routes: vec![route],
                }),
            }
        }
        Self { groups }
    }

    /// The route of `path`.
    #[must_use]
    pub fn find<'a>(&self, path: &'a str) -> Option<Match<'a>> {
        if !path.starts_with('/') {
            return None;
        }
        let groups = self.groups.iter();
        groups
            .filter(|group| path.starts_with(group.begin))
            .flat_map(|group| &group.routes)
            .filter(|route| path.starts_with(route.prefix))
            .find_map(|route| route.matches(path))
    }
}

impl Route {
    fn matches<'a>(&self, path: &'a str) -> Option<Match<'a>> {
        let mut parts = split(path);
        let mut segments = Vec::new();
        for segment in &self.segments {
            let part = parts.next()?;
            match segment {
                Segment::Literal(word) if *word == part => {}
                Segment::Placeholder if !part.is_empty() => segments.push(part),
                Segment::Literal(_) | Segment::Placeholder => return None,
            }
        }
        if parts.next().is_some() {
            return None;
        }
        Some(Match {
            value: self.value,
            segments,
        })
    }
}

/// What is before the third slash, with it.
fn begin_of(prefix: &'static str) -> &'static str {
    let third = prefix.match_indices('/').nth(2);
    third.map_or(prefix, |(at, _)| prefix.get(..=at).unwrap_or(prefix))
}

fn split(path: &str) -> std::str::Split<'_, char> {
    path.strip_prefix('/').unwrap_or(path).split('/')
}

fn segment(text: &'static str) -> Segment {
    if text.starts_with('{') && text.ends_with('}') {
        Segment::Placeholder
    } else {
        Segment::Literal(text)
    }
}

/// Percent-decodes `text`; `None` when an escape is malformed.
#[must_use]
pub fn percent_decode(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = hex_digit(bytes.next()?)?;
            let low = hex_digit(bytes.next()?)?;
            decoded.push(high << 4 | low);
        } else {
            decoded.push(byte);
        }
    }
    Some(decoded)
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str) -> Option<(usize, Vec<&str>)> {
        let router = Router::new([
            ("/api/token/{address}/total-supply", 0),
            ("/api/token/balance", 1),
            ("/api/{group}/daily", 2),
            ("/api/block/daily", 3),
            ("/health", 4),
        ]);
        router.find(path).map(|found| (found.value, found.segments))
    }

    #[test]
    fn literals_beat_placeholders() {
        assert_eq!(found("/api/block/daily"), Some((3, vec![])));
        assert_eq!(found("/api/gas/daily"), Some((2, vec!["gas"])));
        assert_eq!(found("/api/token/%30x/total-supply"), Some((0, vec!["%30x"])));
        assert_eq!(found("/health"), Some((4, vec![])));
    }

    #[test]
    fn near_misses_do_not_match() {
        for path in [
            "",
            "/",
            "/health/",
            "health",
            "//health",
            "/api/token//total-supply",
            "/api/token",
            "/HEALTH",
        ] {
            assert_eq!(found(path), None, "{path:?}");
        }
    }

    #[test]
    fn escapes() {
        assert_eq!(percent_decode("a%2Fb").as_deref(), Some(&b"a/b"[..]));
        assert_eq!(percent_decode("%"), None);
        assert_eq!(percent_decode("%1"), None);
        assert_eq!(percent_decode("%+1"), None);
    }
}
