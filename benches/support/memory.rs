//! How much memory the process takes, watched while something runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use quarry::machine;

/// Memory of the process that `/proc/self/status` states under a name, bytes.
pub(crate) fn stated(name: &str) -> u64 {
    machine::process_memory(name).unwrap_or_default()
}

/// Watches the anonymous memory of the process: mapped arrays are page cache and not counted.
pub(crate) struct Peak {
    peak: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    before: u64,
}

impl Peak {
    pub(crate) fn watch() -> Self {
        let before = stated("RssAnon");
        let (peak, stop) = (Arc::new(AtomicU64::new(before)), Arc::new(AtomicBool::new(false)));
        let (seen, stopped) = (Arc::clone(&peak), Arc::clone(&stop));
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                seen.fetch_max(stated("RssAnon"), Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Self { peak, stop, before }
    }

    /// Anonymous memory before, and at most since.
    pub(crate) fn end(self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        (self.before, self.peak.load(Ordering::Relaxed))
    }
}

/// Seconds that the calling thread has been on a core.
pub(crate) fn thread_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let spent = text
        .split_whitespace()
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    spent.unwrap_or(0.0) / 1e9
}

/// Seconds that all threads of the process have been on cores.
pub(crate) fn process_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    // Fields 14 and 15 of the whole, in hundredths of a second.
    let ticks = after.split_whitespace().skip(11).take(2);
    ticks.filter_map(|number| number.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// What a run over many logs took.
pub(crate) struct Took {
    /// Logs a second.
    pub(crate) rate: f64,
    /// Microseconds on cores for each log, of all threads.
    pub(crate) core: f64,
    /// Anonymous memory at most, bytes.
    pub(crate) peak: u64,
}

/// Measures a run that answers how many logs it went over.
pub(crate) fn measure(run: impl FnOnce() -> u64) -> (u64, Took) {
    let watch = Peak::watch();
    let (began, on_cores) = (Instant::now(), process_seconds());
    let logs = run();
    let took = Took {
        rate: logs as f64 / began.elapsed().as_secs_f64(),
        core: (process_seconds() - on_cores) * 1e6 / logs as f64,
        peak: watch.end().1,
    };
    (logs, took)
}

/// The mean time on a core of a run in milliseconds, over at least 9 runs and half a second on a core: others share
/// the machine, and the system counts in ticks.
pub(crate) fn mean(mut run: impl FnMut()) -> f64 {
    run();
    let (before, mut spent, mut runs) = (thread_seconds(), 0.0, 0);
    while runs < 9 || spent < 0.5 {
        run();
        runs += 1;
        if runs % 16 == 0 || runs < 16 {
            spent = thread_seconds() - before;
        }
    }
    (thread_seconds() - before) * 1e3 / f64::from(runs)
}
