//! When something else than a long page was asked last: while there is such, long pages are not made by the threads that
//! answer it (`docs/decisions/0041-frames-at-once.md`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::clock;

/// Threads that were asked nothing else for so long are taken for free.
const QUIET: Duration = Duration::from_millis(250);
/// What is kept is this coarse, so that it is rarely written: each request would take its cache line from other cores.
const TICK: Duration = Duration::from_millis(16);
const NEVER: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Others {
    began: Instant,
    /// Ticks since then.
    last: AtomicU64,
}

impl Others {
    pub(super) fn new() -> Self {
        Self {
            began: clock::now(),
            last: AtomicU64::new(NEVER),
        }
    }

    fn tick(&self) -> u64 {
        let ticks = (clock::now() - self.began).as_millis() / TICK.as_millis();
        u64::try_from(ticks).unwrap_or(NEVER)
    }

    /// Something else was asked.
    pub(super) fn asked(&self) {
        let tick = self.tick();
        if self.last.load(Ordering::Relaxed) != tick {
            self.last.store(tick, Ordering::Relaxed);
        }
    }

    /// Whether nothing was for a while.
    pub(super) fn are_quiet(&self) -> bool {
        let quiet = (QUIET.as_millis() / TICK.as_millis()) as u64;
        match self.last.load(Ordering::Relaxed) {
            NEVER => true,
            last => self.tick().saturating_sub(last) > quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_asks_is_heeded_for_a_while() {
        let others = Others::new();
        assert!(others.are_quiet());
        others.asked();
        assert!(!others.are_quiet());
        while clock::now() - others.began <= QUIET + 3 * TICK {
            std::thread::sleep(TICK);
        }
        assert!(others.are_quiet());
        others.asked();
        assert!(!others.are_quiet());
    }
}
