//! Whether something happened within a while.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::clock;

/// What is kept is this coarse, so that it is rarely written: each request would take its cache line from other cores.
const TICK: Duration = Duration::from_millis(16);
const NEVER: u64 = u64::MAX;

/// See the module.
#[derive(Debug)]
pub(super) struct Lately {
    /// The while.
    span: Duration,
    began: Instant,
    /// Ticks since then.
    last: AtomicU64,
}

impl Lately {
    pub(super) fn new(span: Duration) -> Self {
        Self {
            span,
            began: clock::now(),
            last: AtomicU64::new(NEVER),
        }
    }

    fn tick(&self) -> u64 {
        let ticks = (clock::now() - self.began).as_millis() / TICK.as_millis();
        u64::try_from(ticks).unwrap_or(NEVER)
    }

    /// It happened.
    pub(super) fn note(&self) {
        let tick = self.tick();
        if self.last.load(Ordering::Relaxed) != tick {
            self.last.store(tick, Ordering::Relaxed);
        }
    }

    /// Whether it did within the while.
    pub(super) fn happened(&self) -> bool {
        let span = (self.span.as_millis() / TICK.as_millis()) as u64;
        match self.last.load(Ordering::Relaxed) {
            NEVER => false,
            last => self.tick().saturating_sub(last) <= span,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_heeded_for_a_while() {
        let span = Duration::from_millis(250);
        let lately = Lately::new(span);
        assert!(!lately.happened());
        lately.note();
        assert!(lately.happened());
        while clock::now() - lately.began <= span + 3 * TICK {
            std::thread::sleep(TICK);
        }
        assert!(!lately.happened());
        lately.note();
        assert!(lately.happened());
    }
}
