//! How many requests may be in flight: more while the node keeps up, half when it does not.
//!
//! Additive increase, multiplicative decrease. A success raises the limit by one over the limit, so that
//! a whole round of successes raises it by one. A rate limit, a timeout or latency far above its usual
//! value halves it, at most once for the requests that were sent before the last cut.

use super::stats::NodeStats;
use crate::clock;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Kinds of requests whose usual latency and size differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// Numbers and headers.
    Light,
    /// Blocks with transactions.
    Block,
    /// Receipts of a block.
    Receipts,
    /// Traces of a block.
    Traces,
    /// Calls of contracts.
    Call,
}

impl RequestClass {
    /// How many there are.
    pub const COUNT: usize = 5;
}

/// Below this no latency counts as inflated: it is noise.
const LATENCY_NOTICED: Duration = Duration::from_millis(250);

/// How many times its usual value the recent latency must be to count as inflated.
const LATENCY_INFLATED: f64 = 4.0;

/// Samples before a usual latency means anything.
const LATENCY_SAMPLES_MIN: u32 = 32;

/// How a request ended, as far as pace is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was answered.
    Answered,
    /// The node asked for less or did not answer in time.
    PushedBack,
    /// It failed in a way that says nothing about load.
    Failed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Latency {
    samples: u32,
    recent: f64,
    usual: f64,
}

impl Latency {
    /// Takes a sample and says whether the recent latency is inflated.
    fn sample(&mut self, latency: Duration) -> bool {
        let seconds = latency.as_secs_f64();
        if self.samples == 0 {
            (self.recent, self.usual) = (seconds, seconds);
        }
        self.samples = self.samples.saturating_add(1);
        self.recent += (seconds - self.recent) * 0.25;
        self.usual += (seconds - self.usual) * 0.02;
        let inflated = LATENCY_SAMPLES_MIN < self.samples
            && self.usual * LATENCY_INFLATED < self.recent
            && LATENCY_NOTICED.as_secs_f64() < self.recent;
        if inflated {
            // A new measure begins, so that one slow spell is answered by one cut.
            self.recent = self.usual;
        }
        inflated
    }
}

#[derive(Debug)]
struct State {
    limit: f64,
    running: usize,
    cut_at: Option<Instant>,
    latency: [Latency; RequestClass::COUNT],
}

/// The gate that every request passes.
#[derive(Debug)]
pub struct Pace {
    max: f64,
    state: Mutex<State>,
    turn: Notify,
    stats: Arc<NodeStats>,
}

impl Pace {
    /// A gate for at most `max` requests in flight (at least one), which starts with a quarter of them.
    #[must_use]
    pub fn new(max: usize, stats: Arc<NodeStats>) -> Self {
        let max = u32::try_from(max.max(1)).map_or(f64::from(u32::MAX), f64::from);
        let limit = (max / 4.0).max(1.0);
        let pace = Self {
            max,
            state: Mutex::new(State {
                limit,
                running: 0,
                cut_at: None,
                latency: Default::default(),
            }),
            turn: Notify::new(),
            stats,
        };
        pace.show(&pace.state());
        pace
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self, state: &State) {
        self.stats
            .in_flight
            .store(state.running as u64, Ordering::Relaxed);
        self.stats
            .concurrency
            .store(whole(state.limit), Ordering::Relaxed);
    }

    /// How many requests may be in flight now.
    #[must_use]
    pub fn limit(&self) -> u64 {
        whole(self.state().limit)
    }

    /// Waits for a place.
    pub async fn admit(&self, class: RequestClass) -> Slot<'_> {
        loop {
            // Registered before looking, so that no place that becomes free in between is missed.
            let mut turn = std::pin::pin!(self.turn.notified());
            turn.as_mut().enable();
            if let Some(slot) = self.try_admit(class) {
                return slot;
            }
            turn.await;
        }
    }

    fn try_admit(&self, class: RequestClass) -> Option<Slot<'_>> {
        let mut state = self.state();
        if whole(state.limit) <= state.running as u64 {
            return None;
        }
        state.running += 1;
        self.show(&state);
        Some(Slot {
            pace: self,
            class,
            started: clock::now(),
            outcome: Outcome::Failed,
        })
    }

    fn leave(&self, slot: &Slot<'_>) {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        let inflated = slot.outcome == Outcome::Answered
            && state
                .latency
                .get_mut(slot.class as usize)
                .is_some_and(|latency| latency.sample(clock::now() - slot.started));
        if slot.outcome == Outcome::PushedBack || inflated {
            if state.cut_at.is_none_or(|cut_at| cut_at < slot.started) {
                state.limit = (state.limit / 2.0).max(1.0);
                state.cut_at = Some(clock::now());
                self.stats.cuts.fetch_add(1, Ordering::Relaxed);
            }
        } else if slot.outcome == Outcome::Answered {
            state.limit = (state.limit + 1.0 / state.limit).min(self.max);
        }
        let room = whole(state.limit).saturating_sub(state.running as u64);
        self.show(&state);
        drop(state);
        // The place that became free, and the one that a raised limit may have added.
        for _ in 0..room.min(2) {
            self.turn.notify_one();
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a limit is between 1 and 2^32"
)]
fn whole(limit: f64) -> u64 {
    limit as u64
}

/// A place in flight; it is given back when dropped.
#[derive(Debug)]
pub struct Slot<'a> {
    pace: &'a Pace,
    class: RequestClass,
    started: Instant,
    outcome: Outcome,
}

impl Slot<'_> {
    /// Says how the request ended and gives the place back; gives the time it took.
    pub fn end(mut self, outcome: Outcome) -> Duration {
        self.outcome = outcome;
        clock::now() - self.started
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.pace.leave(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(max: usize) -> Pace {
        Pace::new(max, Arc::default())
    }

    #[tokio::test]
    async fn successes_raise_the_limit_to_its_bound() {
        let pace = pace(8);
        assert_eq!(pace.limit(), 2);
        for _ in 0..200 {
            pace.admit(RequestClass::Light).await.end(Outcome::Answered);
        }
        assert_eq!(pace.limit(), 8);
    }

    #[tokio::test]
    async fn one_burst_of_refusals_is_one_cut() {
        let pace = pace(64);
        let slots: Vec<_> = (0..16)
            .map(|_| pace.try_admit(RequestClass::Light).unwrap())
            .collect();
        assert!(pace.try_admit(RequestClass::Light).is_none());
        for slot in slots {
            slot.end(Outcome::PushedBack);
        }
        assert_eq!(pace.limit(), 8);
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            pace.admit(RequestClass::Light).await.end(Outcome::PushedBack);
        }
        assert_eq!(pace.limit(), 1);
    }

    #[tokio::test]
    async fn a_waiter_is_woken_when_a_place_is_dropped() {
        let pace = pace(1);
        let slot = pace.admit(RequestClass::Light).await;
        let waiter = async { pace.admit(RequestClass::Light).await.end(Outcome::Answered) };
        let release = async { drop(slot) };
        let both = async { tokio::join!(waiter, release) };
        tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
    }

    #[test]
    fn latency_is_inflated_against_its_own_past() {
        let mut latency = Latency::default();
        for _ in 0..100 {
            assert!(!latency.sample(Duration::from_millis(100)));
        }
        assert!((0..20).any(|_| latency.sample(Duration::from_secs(2))));
        let mut quick = Latency::default();
        for _ in 0..100 {
            quick.sample(Duration::from_millis(1));
        }
        assert!(
            !(0..20).any(|_| quick.sample(Duration::from_millis(50))),
            "below what is noticed"
        );
    }
}
