//! How much was answered lately: counts are noted every few seconds, and rates are differences between them.
//!
//! Nothing runs beside the requests for it: the first one that ends in a new slot of time notes what was counted
//! before. Slots in which nothing ended are filled then, with the same counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// Length of a slot.
const SLOT: Duration = Duration::from_secs(5);

/// Slots that are remembered: five minutes and the one that has just begun.
const SLOTS: usize = 61;

/// What was counted up to a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) answered: u64,
    /// Of these, how many were answered with a status of 500 or above.
    pub(super) failed: u64,
}

/// Counts a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rate {
    /// Requests answered.
    pub answered: f64,
    /// Of these, with a status of 500 or above.
    pub failed: f64,
}

/// The counts at the beginning of each of the last slots.
#[derive(Debug)]
pub(super) struct Recent {
    began: Instant,
    slot: AtomicU64,
    at_begin: Mutex<[Counted; SLOTS]>,
}

impl Default for Recent {
    fn default() -> Self {
        Self {
            began: clock::now(),
            slot: AtomicU64::new(0),
            at_begin: Mutex::new([Counted::default(); SLOTS]),
        }
    }
}

impl Recent {
    /// How long it has counted.
    pub(super) fn age(&self, now: Instant) -> Duration {
        now - self.began
    }

    fn slot_of(&self, now: Instant) -> u64 {
        (now - self.began).as_secs() / SLOT.as_secs()
    }

    /// Takes note of a new slot, before anything is counted in it. `counted` is asked for then only.
    pub(super) fn note(&self, now: Instant, counted: impl FnOnce() -> Counted) {
        let slot = self.slot_of(now);
        if slot <= self.slot.load(Ordering::Relaxed) {
            return;
        }
        let mut at_begin = self.at_begin.lock().unwrap_or_else(PoisonError::into_inner);
        let last = self.slot.load(Ordering::Relaxed);
        if slot <= last {
            return;
        }
        let counted = counted();
        let from = (last + 1).max(slot.saturating_sub(SLOTS as u64 - 1));
        for missed in from..=slot {
            if let Some(place) = at_begin.get_mut(missed as usize % SLOTS) {
                *place = counted;
            }
        }
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// The rate over the last `span`, of at most five minutes, or since the start where that was later.
    pub(super) fn rate(&self, now: Instant, span: Duration, counted: Counted) -> Rate {
        self.note(now, || counted);
        let slot = self.slot.load(Ordering::Relaxed);
        let from = slot.saturating_sub(span.as_secs() / SLOT.as_secs());
        let at_begin = self.at_begin.lock().unwrap_or_else(PoisonError::into_inner);
        let before = at_begin.get(from as usize % SLOTS).copied().unwrap_or_default();
        let seconds = (now - self.began).as_secs_f64() - (from * SLOT.as_secs()) as f64;
        // The first moments would show rates that nobody asked at.
        let seconds = seconds.max(1.0);
        Rate {
            answered: counted.answered.saturating_sub(before.answered) as f64 / seconds,
            failed: counted.failed.saturating_sub(before.failed) as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn counted(answered: u64) -> Counted {
        Counted {
            answered,
            failed: answered / 10,
        }
    }

    #[test]
    fn a_steady_rate_is_told_over_every_span() {
        let recent = Recent::default();
        let mut answered = 0;
        for tenth in 0..6000 {
            let now = recent.began + Duration::from_millis(100 * tenth);
            recent.note(now, || counted(answered));
            answered += 10;
        }
        let now = recent.began + Duration::from_secs(600);
        for span in [MINUTE, 5 * MINUTE] {
            let rate = recent.rate(now, span, counted(answered));
            assert!((rate.answered - 100.0).abs() < 0.5, "{rate:?}");
            assert!((rate.failed - 10.0).abs() < 0.5, "{rate:?}");
        }
    }

    #[test]
    fn quiet_times_count() {
        let recent = Recent::default();
        let at = |seconds: u64| recent.began + Duration::from_secs(seconds);
        recent.note(at(0), || counted(0));
        // 600 requests in the first second, then nothing until the next one after two minutes.
        let rate = recent.rate(at(1), MINUTE, counted(600));
        assert!((rate.answered - 600.0).abs() < 1e-9, "{rate:?}");
        recent.note(at(120), || counted(600));
        let rate = recent.rate(at(120), MINUTE, counted(660));
        assert!((rate.answered - 1.0).abs() < 1e-9, "{rate:?}");
        let rate = recent.rate(at(120), 5 * MINUTE, counted(660));
        assert!((rate.answered - 5.5).abs() < 1e-9, "{rate:?}");
        // Hours later nothing of it is left, and nobody had to look in between.
        let rate = recent.rate(at(36_000), 5 * MINUTE, counted(660));
        assert_eq!(rate, Rate::default());
    }
}
