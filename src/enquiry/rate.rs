//! So many questions a second, evenly, and more of them while many wait that must not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// Urgent questions that wait are spread over about so many seconds.
const URGENT_SECONDS: usize = 3;
/// But at most so many times the ordinary rate.
const URGENT_TIMES_MAX: usize = 10;

/// Spaces questions out.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: usize,
    next: Mutex<Instant>,
    /// Urgent questions that are not asked yet, and when the next of them may be where they go by a rate of their own.
    urgent: AtomicUsize,
    next_urgent: Mutex<Instant>,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        let now = clock::now();
        Self {
            per_second: per_second.max(1) as usize,
            next: Mutex::new(now),
            urgent: AtomicUsize::new(0),
            next_urgent: Mutex::new(now),
        }
    }

    /// Says how many urgent questions wait.
    pub(super) fn set_urgent(&self, waiting: usize) {
        self.urgent.store(waiting, Ordering::Relaxed);
    }

    /// Waits for the turn of one question. Turns are given in the order of asking.
    pub(super) async fn turn(&self) {
        wait_for(&self.next, self.per_second).await;
    }

    /// Waits for the turn of an urgent question: like any other while few wait, else at a rate that grows with them. The
    /// others keep theirs.
    pub(super) async fn urgent_turn(&self) {
        match self.urgent_per_second() {
            Some(per_second) => wait_for(&self.next_urgent, per_second).await,
            None => self.turn().await,
        }
    }

    /// The rate of urgent questions; `None` where that of all will do.
    fn urgent_per_second(&self) -> Option<usize> {
        let wanted = self.urgent.load(Ordering::Relaxed) / URGENT_SECONDS;
        let most = self.per_second.saturating_mul(URGENT_TIMES_MAX);
        (wanted > self.per_second).then_some(wanted.min(most))
    }
}

/// Waits for a turn, of which there are so many a second.
async fn wait_for(next: &Mutex<Instant>, per_second: usize) {
    let gap = Duration::from_secs(1).div_f64(per_second as f64);
    let now = clock::now();
    let at = {
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (*next).max(now);
        *next = at + gap;
        at
    };
    if now < at {
        tokio::time::sleep(at - now).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn seconds(turns: impl IntoIterator<Item = impl Future<Output = ()>>) -> f64 {
        let began = clock::now();
        futures_util::future::join_all(turns).await;
        (clock::now() - began).as_secs_f64()
    }

    #[tokio::test]
    async fn turns_are_spaced_out() {
        let rate = Rate::new(200);
        assert!(0.099 <= seconds((0..21).map(|_| rate.turn())).await);
    }

    #[test]
    fn urgent_turns_come_sooner_where_many_wait() {
        let rate = Rate::new(10);
        let at = |waiting| {
            rate.set_urgent(waiting);
            rate.urgent_per_second()
        };
        assert_eq!(at(0), None);
        assert_eq!(at(30), None);
        assert_eq!(at(60), Some(20), "spread over three seconds");
        assert_eq!(at(3_000), Some(100), "ten times the rate, no more");
    }

    #[tokio::test]
    async fn ordinary_turns_are_not_taken_by_urgent_ones() {
        let rate = Rate::new(100);
        rate.set_urgent(10_000);
        let ordinary = *rate.next.lock().unwrap();
        assert!(0.049 <= seconds((0..51).map(|_| rate.urgent_turn())).await);
        assert_eq!(*rate.next.lock().unwrap(), ordinary, "nobody else waits for it");
        rate.set_urgent(0);
        rate.urgent_turn().await;
        assert!(ordinary < *rate.next.lock().unwrap(), "few wait like others");
    }
}
