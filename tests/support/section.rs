//! Rendered parts of pages: compared with what they are rendered from, or rendered anew.

use std::path::Path;

/// Checks that the part `name` of a page, between `<!-- begin name -->` and `<!-- end name -->`, is `wanted`.
/// With `QUARRY_BLESS` in the environment it is written instead.
#[track_caller]
pub(crate) fn check(page: &str, name: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(page);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->\n"),
    );
    let parts = text.split_once(&begin).and_then(|(head, rest)| {
        let (body, tail) = rest.split_once(&end)?;
        Some((head, body, tail))
    });
    let Some((head, body, tail)) = parts else {
        panic!("{page} has no part `{name}`");
    };
    let wanted = format!("\n{}\n\n", wanted.trim());
    if body == wanted {
        return;
    }
    assert!(
        std::env::var_os("QUARRY_BLESS").is_some(),
        "{page}: the part `{name}` is stale; run with QUARRY_BLESS=1 and look at the difference"
    );
    std::fs::write(&path, format!("{head}{begin}{wanted}{end}{tail}")).unwrap();
}
