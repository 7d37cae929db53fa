//! Real chain data that lies beside the repository, where it is there at all.

#[allow(
    clippy::duplicate_mod,
    reason = "test programs with and without `support` use this file"
)]
#[path = "skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};

/// The path of `name` in the shared data; prints why and gives `None` when it is absent.
pub fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(name);
    if path.exists() {
        return Some(path);
    }
    skipped::skipped(&format!("no shared data at {}", path.display()));
    None
}
