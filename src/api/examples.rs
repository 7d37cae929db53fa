//! Answers of the demo chain to the example request of every endpoint.
//!
//! `demo/examples.json` is what the service answered; a test asks again and compares, so examples are never stale.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::value::RawValue;

static EXAMPLES: LazyLock<BTreeMap<String, Box<RawValue>>> = LazyLock::new(|| {
    // Checked by the test that writes the file.
    serde_json::from_str(include_str!("../../demo/examples.json")).unwrap_or_default()
});

/// The body that the demo chain answers to a request, by its path and query, to the byte.
pub(super) fn example(request: &str) -> Option<&'static str> {
    EXAMPLES.get(request).map(|body| body.get())
}
