//! The one place that asks what time it is. A leaf.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Now, for measuring spans.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since the epoch, for people.
#[must_use]
pub fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or(Duration::ZERO)
        .as_secs()
}
