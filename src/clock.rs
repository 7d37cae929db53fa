//! The one place that asks what time it is. A leaf.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Now, for measuring spans.
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// The time of day, for dates that others read.
#[must_use]
pub fn wall() -> SystemTime {
    SystemTime::now()
}

/// The time of day in whole Unix seconds.
#[must_use]
pub fn unix_now() -> u64 {
    wall().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Seconds since 1970 of a time of day.
#[must_use]
pub fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
