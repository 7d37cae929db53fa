//! Pages for people: one text each, which loads nothing and runs nothing but what is in it.

use std::sync::LazyLock;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::list::endpoints;

/// What all pages look like.
const BASE_STYLE: &str = include_str!("page/base.css");

/// A page and the policy that goes with it.
pub(super) struct WebPage {
    text: Bytes,
    policy: String,
}

impl WebPage {
    /// A page of these parts. Style and script are named by their hashes in its policy, so that nothing else of that kind
    /// has an effect, wherever it came from.
    pub(super) fn new(title: &str, style: &str, body: &str, script: &str) -> Self {
        let style = format!("{BASE_STYLE}{style}");
        let text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n<style>{style}</style>\n</head>\n\
             <body>\n{body}\n<script>{script}</script>\n</body>\n</html>\n"
        );
        let policy = format!(
            "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            source_hash(script),
            source_hash(&style)
        );
        Self {
            text: Bytes::from(text),
            policy,
        }
    }

    /// The page.
    pub(super) fn text(&self) -> Bytes {
        self.text.clone()
    }

    /// Its `Content-Security-Policy`.
    pub(super) fn policy(&self) -> &str {
        &self.policy
    }
}

/// The bar at the top of every page; `current` is the path of the page.
pub(super) fn top(current: &str, end: &str) -> String {
    let links = [("/", "Status"), ("/docs", "API"), ("/openapi.json", "OpenAPI")];
    let links: String = links
        .iter()
        .map(|(path, name)| {
            let mark = if *path == current {
                " aria-current=\"page\""
            } else {
                ""
            };
            format!("<a href=\"{path}\"{mark}>{name}</a>")
        })
        .collect();
    format!(
        "<header class=\"top\"><a class=\"brand\" href=\"/\">Quarry</a><span class=\"soft\">{}</span>\
         <nav aria-label=\"Pages\">{links}</nav><span class=\"end\">{end}</span></header>",
        env!("CARGO_PKG_VERSION")
    )
}

/// `/`: how the chains and the service are.
pub(super) fn status_page() -> &'static WebPage {
    static PAGE: LazyLock<WebPage> = LazyLock::new(|| {
        let names: Vec<&str> = endpoints()
            .iter()
            .flat_map(|endpoint| endpoint.ids)
            .copied()
            .collect();
        // What is asked in another dialect has no place under /docs, and no link to it.
        let body = top("/", "<span id=\"heard\" class=\"soft\" role=\"status\"></span>")
            + &include_str!("page/status.html").replace("OPERATIONS", &names.join(" "));
        WebPage::new(
            "Quarry",
            include_str!("page/status.css"),
            &body,
            include_str!("page/status.js"),
        )
    });
    &PAGE
}

/// A source of a policy: what has this SHA-256 (CSP level 3).
fn source_hash(text: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(text)))
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut word = 0;
        for place in 0..3 {
            word = word << 8 | u32::from(three.get(place).copied().unwrap_or_default());
        }
        for place in 0..4 {
            let digit = DIGITS.get((word >> (18 - 6 * place)) as usize & 63);
            let digit = digit.filter(|_| place <= three.len());
            text.push(digit.map_or('=', |digit| char::from(*digit)));
        }
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::api::docs_page::docs_page;

    /// What keeps a page from working under its policy, or without internet.
    pub(in crate::api) fn check(page: &WebPage) {
        let text = std::str::from_utf8(&page.text).unwrap();
        for part in [
            "http://",
            "https://",
            "src=",
            "@import",
            " url(",
            ":url(",
            " style=",
            "javascript:",
        ] {
            assert!(!text.contains(part), "{part}");
        }
        // Handlers in tags, and scripts and styles that the policy does not name.
        let handler = text.split(" on").skip(1).find(|rest| {
            let name: String = rest.chars().take_while(char::is_ascii_lowercase).collect();
            rest.get(name.len()..).is_some_and(|rest| rest.starts_with("=\""))
        });
        assert_eq!(handler, None);
        for tag in ["script", "style"] {
            let parts: Vec<&str> = text.split(&format!("<{tag}>")).collect();
            assert_eq!(parts.len(), 2, "{tag}");
            let content = parts[1].split(&format!("</{tag}>")).next().unwrap();
            assert!(page.policy.contains(&source_hash(content)), "{tag}");
            assert_eq!(text.matches(&format!("</{tag}")).count(), 1, "{tag}");
        }
        // Answers are shown as text: no script makes HTML of anything.
        for word in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "setTimeout(\"",
        ] {
            assert!(!text.contains(word), "{word}");
        }
    }

    #[test]
    fn base64_as_in_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        let hash = source_hash("");
        assert_eq!(hash, "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }

    #[test]
    fn the_status_page_loads_nothing() {
        check(status_page());
    }

    #[test]
    fn what_the_status_page_links_the_docs_have() {
        let text = |page: &WebPage| String::from_utf8(page.text.to_vec()).unwrap();
        let (page, docs) = (text(status_page()), text(docs_page()));
        let (_, names) = page.split_once("data-operations=\"").unwrap();
        let (names, _) = names.split_once('"').unwrap();
        assert!(names.split(' ').count() > 50, "{names}");
        for name in names.split(' ') {
            assert!(docs.contains(&format!(" id=\"{name}\"")), "{name}");
        }
    }
}
