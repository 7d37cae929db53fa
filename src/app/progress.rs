//! What an operator sees of a sync: a bar on a terminal, a line every few seconds elsewhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::chains::Chain;
use super::stderr;
use crate::clock;
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Heartbeat, Store};

const TICK: Duration = Duration::from_millis(500);
/// Elsewhere than on a terminal a line of progress is logged this often.
pub(super) const LINE_EVERY: Duration = Duration::from_secs(5);
/// A commit that waits this long for room on a full disk is said to.
const STUCK_AFTER: Duration = Duration::from_secs(2);
/// What is said where a commit waits as long for anything else of the disk.
const MERGING: &str = "tables are flushed and merged, writing waits for them";
/// With less room than this RocksDB may wait for more without a word.
const LITTLE_ROOM: u64 = 256 << 20;
/// The rate is that of the last so many ticks.
const WINDOW: usize = 20;

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

/// Watches a chain's progress, keeps its rate in the status and shows it, until the end is asked for.
pub(super) async fn watch(chain: Arc<Chain>, mut shutdown: Shutdown) {
    let bar = stderr::bar("{prefix:>8} {bar:30} {pos}/{len} {msg}");
    bar.set_prefix(chain.name.as_str());
    let mut samples: std::collections::VecDeque<(Instant, u64)> = std::collections::VecDeque::new();
    let mut last_line = (clock::now(), String::new());
    let mut moved = (0, clock::now());
    let mut full = Full::default();
    let mut was_filling = false;
    let mut was_there = true;
    let mut before_merging = None;
    while shutdown.unless(tokio::time::sleep(TICK)).await.is_some() {
        let Some(status) = &chain.status else { continue };
        if status.node_head().is_none() {
            bar.set_message(status.message());
        }
        let Some(store) = chain.store() else { continue };
        let now = clock::now();
        let view = store.view();
        let next = view.checkpoint().next_block;
        let indexed = view.head().map(|head| head.number);
        let heard = status.head_word().map(|word| (word.number, word.at));
        let (directory, safe) = (store.directory().to_path_buf(), status.safe());
        let (up, stopped) = (status.node_up(), status.stopped());
        // For replicas, off the async threads: a disk may be slow.
        let beat = move || Heartbeat::write(&directory, indexed, heard, safe, up, stopped);
        let is_there = tokio::task::spawn_blocking(beat).await.unwrap_or(true);
        if !is_there && was_there {
            let directory = store.directory().display();
            tracing::error!(
                chain = %chain.name, %directory,
                "the store's directory is gone: what is written from now on is lost with this process"
            );
        }
        was_there = is_there;
        // While traces of stored blocks are fetched the head stands still, and those are what is got on with.
        let filling_to = status.filling_to();
        let next = filling_to.map_or(next, |_| view.checkpoint().next_traced);
        if filling_to.is_some() != std::mem::replace(&mut was_filling, filling_to.is_some()) {
            samples.clear();
            full = Full::default();
        }
        // What a reorg has taken away is not counted from.
        samples.retain(|&(_, before)| before <= next);
        samples.push_back((now, next));
        if samples.len() > WINDOW {
            samples.pop_front();
        }
        let rate = match samples.front() {
            Some(&(then, before)) if now > then => {
                next.saturating_sub(before) as f64 / (now - then).as_secs_f64()
            }
            _ => 0.0,
        };
        status.set_blocks_per_second(rate);
        if moved.0 != next {
            moved = (next, now);
            if let Some(before) = before_merging.take()
                && status.message() == MERGING
            {
                status.set_message(before);
            }
        }
        full.look(status, next);
        let Some(node_head) = status.node_head() else {
            continue;
        };
        let end = filling_to.unwrap_or(node_head).saturating_add(1);
        let missing = end.saturating_sub(next);
        if missing > 0 && now - moved.1 >= STUCK_AFTER && !status.disk_full() {
            let waits = says_full(&store, status);
            if !waits && before_merging.is_none() && store.is_write_stopped() {
                before_merging = Some(status.message());
                status.set_message(MERGING);
            }
        }
        let eta = if missing > 0 && rate > 0.0 {
            span(missing as f64 / rate)
        } else {
            "-".to_owned()
        };
        let latency = chain.latency().map_or(0, |latency| latency.as_millis());
        let message = format!(
            "{rate:.0} blocks/s, eta {eta}, node {latency} ms, {}",
            status.message()
        );
        // Of the blocks that are to be stored.
        let first = view.first_block();
        bar.set_length(end.saturating_sub(first));
        bar.set_position(next.saturating_sub(first));
        bar.set_message(message.clone());
        let text = format!("{next} {}", status.message());
        if bar.is_hidden() && now - last_line.0 >= LINE_EVERY && text != last_line.1 {
            let logs = view.checkpoint().logs;
            tracing::info!(
                chain = %chain.name, indexed, node_head, logs,
                rate = format!("{rate:.0}/s"), eta, node_ms = latency, "{}", status.message()
            );
            last_line = (now, text);
        }
    }
    bar.finish_and_clear();
}

/// Where the store stood when its disk was found full.
#[derive(Default)]
struct Full(Option<u64>);

impl Full {
    /// Records that there is room again once a store whose disk was full has got on, whoever found it full. What found it may go on for days
    /// before it says anything else.
    fn look(&mut self, status: &ChainStatus, next: u64) {
        self.0 = match self.0 {
            _ if !status.disk_full() => None,
            Some(then) if then != next => {
                status.has_room();
                None
            }
            then => then.or(Some(next)),
        };
    }
}

/// Says so where the writer waits for room, of which RocksDB itself does not speak; answers whether it does.
fn says_full(store: &Store, status: &ChainStatus) -> bool {
    let little = store.free_bytes().filter(|free| *free < LITTLE_ROOM);
    let Some(free) = little.filter(|_| store.is_write_stopped()) else {
        return false;
    };
    status.wait_for_room(&format_args!("{free} bytes are left"));
    tracing::warn!("{}", status.message());
    true
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
    use super::{Full, span};
    use crate::status::ChainStatus;

    #[test]
    fn a_full_disk_is_told_of_until_the_store_gets_on() {
        let (status, mut full) = (ChainStatus::default(), Full::default());
        status.backfill();
        for (before, after) in [(7, 8), (8, 9), (9, 5)] {
            // The store got on until just before.
            full.look(&status, before - 1);
            status.wait_for_room(&"no space");
            full.look(&status, before);
            full.look(&status, before);
            // The sync tries again, and what it waited out before is over.
            status.backfill();
            status.fetch(7, 9);
            status.fill(7, 9);
            status.ends_filling();
            status.went_on();
            assert!(status.disk_full());
            assert_eq!(status.message(), "the disk is full, waiting for room: no space");
            full.look(&status, after);
            assert!(!status.disk_full());
            assert_eq!(status.message(), "backfilling");
        }
    }

    #[test]
    fn spans_in_words() {
        assert_eq!(span(61.0), "1m01s");
        assert_eq!(span(3700.0), "1h01m");
        assert_eq!(span(90_000.0), "1d01h");
        assert_eq!(span(f64::INFINITY), "11574d01h");
    }
}
