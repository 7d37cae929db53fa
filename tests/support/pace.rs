//! Bounds on time that a quiet machine keeps.

use std::time::Duration;

/// What a step may take that takes `limit` at most on a machine that has nothing else to do: where others want the processors too,
/// nothing follows from a slow one but that.
pub fn at_most(limit: Duration) -> Duration {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|load| load.parse::<f64>().ok());
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if load.is_some_and(|load| load > processors as f64) {
        10 * limit
    } else {
        limit
    }
}
