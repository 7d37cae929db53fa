//! What recent answers were like, by class of request: the largest and the slowest, slowly forgotten.

use super::pace::RequestClass;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What an answer about a block is taken to weigh before there has been any, bytes.
const SIZE_ASSUMED: u64 = 1 << 20;

/// Extremes of recent answers.
pub(super) struct Recent {
    /// Bytes.
    sizes: [AtomicU64; RequestClass::COUNT],
    /// Microseconds; 0 before the first.
    slowest: [AtomicU64; RequestClass::COUNT],
}

impl Recent {
    pub(super) fn new() -> Self {
        Self {
            sizes: [0, SIZE_ASSUMED, SIZE_ASSUMED, SIZE_ASSUMED, 0, 0].map(AtomicU64::new),
            slowest: Default::default(),
        }
    }

    /// Before there was any answer, and without assumptions.
    #[cfg(test)]
    pub(super) fn empty() -> Self {
        Self {
            sizes: Default::default(),
            slowest: Default::default(),
        }
    }

    /// What the answers that make a bundle weigh together, bytes.
    pub(super) fn bundle_bytes(&self) -> u64 {
        self.sizes.iter().map(|size| size.load(Ordering::Relaxed)).sum()
    }

    /// The slowest answer of a class.
    pub(super) fn slowest(&self, class: RequestClass) -> Option<Duration> {
        let micros = self.slowest.get(class as usize)?.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    pub(super) fn took(&self, class: RequestClass, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        remember(&self.slowest, class, micros.max(1));
    }

    pub(super) fn weighed(&self, class: RequestClass, bytes: usize) {
        remember(&self.sizes, class, bytes as u64);
    }
}

fn remember(all: &[AtomicU64], class: RequestClass, value: u64) {
    if let Some(extreme) = all.get(class as usize) {
        let faded = extreme.load(Ordering::Relaxed) / 32 * 31;
        extreme.store(faded.max(value), Ordering::Relaxed);
    }
}
