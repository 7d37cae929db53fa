//! Bounds on time that a quiet machine keeps.

use std::time::Duration;

/// What a step may take that takes `limit` at most on a machine that has nothing else to do. From a slow one nothing follows: others
/// want the processors too, or only a share of them is given, which no load tells. `QUARRY_STRICT_TIMES` holds a quiet machine to it.
pub(crate) fn at_most(limit: Duration) -> Duration {
    match std::env::var_os("QUARRY_STRICT_TIMES") {
        Some(_) => limit,
        None => 10 * limit,
    }
}
