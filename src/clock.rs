//! The one place that asks what time it is. A leaf.

use std::time::Instant;

/// Now, for measuring spans.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}
