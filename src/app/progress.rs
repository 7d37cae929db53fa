//! What an operator sees of a sync: a bar on a terminal, a line every few seconds elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::chains::Chain;
use super::pulse::{Course, TICK};
use super::stderr;
use crate::clock;
use crate::shutdown::Shutdown;

/// Elsewhere than on a terminal a line of progress is logged this often.
pub(super) const LINE_EVERY: Duration = Duration::from_secs(5);

/// When the line after the last one is due, where there is no terminal for a bar.
pub(super) struct Lines(Mutex<Instant>);

impl Lines {
    /// The first line is due `after` now.
    pub(super) fn new(after: Duration) -> Self {
        Self(Mutex::new(clock::now() + after))
    }

    /// Whether a line is due in place of `bar`; the next one is due [`LINE_EVERY`] later then.
    pub(super) fn are_due(&self, bar: &ProgressBar) -> bool {
        let mut next = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let due = bar.is_hidden() && now >= *next;
        if due {
            *next = now + LINE_EVERY;
        }
        due
    }
}

/// Shows a chain's progress until the end is asked for.
pub(super) async fn watch(chain: Arc<Chain>, mut shutdown: Shutdown) {
    let bar = stderr::bar("{prefix:>8} {bar:30} {pos}/{len} {msg}");
    bar.set_prefix(chain.name.as_str());
    let mut last_line = (clock::now(), String::new());
    while shutdown.unless(tokio::time::sleep(TICK)).await.is_some() {
        let Some(status) = &chain.status else { continue };
        if status.node_head().is_none() {
            bar.set_message(status.message());
        }
        let Some(store) = chain.store() else { continue };
        let (now, view) = (clock::now(), store.view());
        let course = Course::of(&view, status);
        let (Some(node_head), Some(end)) = (status.node_head(), course.end) else {
            continue;
        };
        let (next, missing) = (course.next, course.missing());
        let (rate, message) = (status.blocks_per_second(), status.message());
        let eta = if missing > 0 && rate > 0.0 {
            span(missing as f64 / rate)
        } else {
            "-".to_owned()
        };
        let latency = chain.latency().map_or(0, |latency| latency.as_millis());
        // Of the blocks that are to be stored.
        let first = view.first_block();
        bar.set_length(end.saturating_sub(first));
        bar.set_position(next.saturating_sub(first));
        bar.set_message(format!(
            "{rate:.0} blocks/s, eta {eta}, node {latency} ms, {message}"
        ));
        let text = format!("{next} {message}");
        if bar.is_hidden() && now - last_line.0 >= LINE_EVERY && text != last_line.1 {
            let logs = view.checkpoint().logs;
            let indexed = view.head().map(|head| head.number);
            tracing::info!(
                chain = %chain.name, indexed, node_head, logs,
                rate = format!("{rate:.0}/s"), eta, node_ms = latency, "{message}"
            );
            last_line = (now, text);
        }
    }
    bar.finish_and_clear();
}

/// A span of seconds in words.
fn span(seconds: f64) -> String {
    let seconds = seconds.min(1e9) as u64;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours / 24, hours) {
        (0, 0) => format!("{minutes}m{:02}s", seconds % 60),
        (0, hours) => format!("{hours}h{minutes:02}m"),
        (days, hours) => format!("{days}d{:02}h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn spans_in_words() {
        assert_eq!(span(61.0), "1m01s");
        assert_eq!(span(3700.0), "1h01m");
        assert_eq!(span(90_000.0), "1d01h");
        assert_eq!(span(f64::INFINITY), "11574d01h");
    }
}
