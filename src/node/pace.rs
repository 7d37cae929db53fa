//! How many requests may be in flight: what the node makes use of, and half when it cannot keep up.
//!
//! The aim is the number that `climb` finds by the rate of answers. A rate limit, a timeout or latency far above
//! its usual value halves the limit, at most once for the requests that were sent before the last cut. From there it
//! grows back to the aim: a success raises it by one over the limit, so that a whole round of successes raises it by one.
//!
//! Small questions do not wait behind blocks: two of them are let through in any case, within the bound.

pub use super::class::RequestClass;
use super::climb::Climb;
use super::stats::NodeStats;
use crate::clock;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Below this no latency counts as inflated: it is noise.
const LATENCY_NOTICED: Duration = Duration::from_millis(250);

/// How many times its usual value the recent latency must be to count as inflated.
const LATENCY_INFLATED: f64 = 4.0;

/// Samples before a usual latency means anything.
const LATENCY_SAMPLES_MIN: u32 = 32;

/// So many small questions are in flight whatever the limit.
const SMALL_BEYOND: u64 = 2;

/// Answers in a window for each that may be in flight, and at least.
const WINDOW_ROUNDS: u64 = 3;
const WINDOW_ANSWERS_MIN: u64 = 32;

/// The shortest window.
const WINDOW_TIME_MIN: Duration = Duration::from_millis(60);

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

/// Answers since a moment, with as many requests in flight as may be.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    /// Answers to requests from before the window, which are not counted.
    before: u64,
    answers: u64,
    /// Of those, how many left nobody waiting: the limit did not bind.
    slack: u64,
    weight: f64,
    began: Option<Instant>,
}

impl Window {
    /// Takes an answer; the rate once the window is full, and `None` in it where the limit did not bind.
    fn answer(&mut self, limit: u64, weight: f64, waited_for: bool) -> Option<Option<f64>> {
        let Some(began) = self.began else {
            // One round goes by before it begins: those were sent under another limit.
            self.before += 1;
            if self.before >= limit {
                self.began = Some(clock::now());
            }
            return None;
        };
        self.answers += 1;
        self.slack += u64::from(!waited_for);
        self.weight += weight;
        let took = clock::now() - began;
        if self.answers < (limit * WINDOW_ROUNDS).max(WINDOW_ANSWERS_MIN) || took < WINDOW_TIME_MIN {
            return None;
        }
        Some((self.slack * 4 < self.answers).then_some(self.weight / took.as_secs_f64()))
    }
}

/// One more that waits for a place, until dropped.
struct Waiting<'a>(&'a Pace);

impl<'a> Waiting<'a> {
    fn begin(pace: &'a Pace) -> Self {
        pace.state().waiting += 1;
        Self(pace)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
    }
}

#[derive(Debug)]
struct State {
    climb: Climb,
    window: Window,
    limit: f64,
    running: usize,
    /// Of those, small questions.
    small_running: usize,
    waiting: usize,
    cut_at: Option<Instant>,
    latency: [Latency; RequestClass::COUNT],
    /// Bytes of an answer, usually.
    usual_bytes: [f64; RequestClass::COUNT],
}

impl State {
    /// What an answer is as work: half of it by its bytes, half as one of its class.
    fn weigh(&mut self, class: RequestClass, bytes: u64) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "no answer has 2^52 bytes")]
        let bytes = bytes as f64;
        let Some(usual) = self.usual_bytes.get_mut(class as usize) else {
            return bytes;
        };
        if *usual == 0.0 {
            *usual = bytes;
        }
        *usual += (bytes - *usual) * 0.01;
        bytes + *usual
    }

    /// Takes an answer that came while as many as the aim allows might be in flight.
    fn answered(&mut self, weight: f64) {
        let aim = self.climb.limit();
        let Some(seen) = self.window.answer(u64::from(aim), weight, self.waiting > 0) else {
            return;
        };
        self.window = Window::default();
        // Who could have asked for more and did not says nothing about the node.
        if let Some(rate) = seen {
            self.climb.window(rate);
            self.limit = f64::from(self.climb.limit());
        }
    }
}

/// The gate that every request passes.
#[derive(Debug)]
pub struct Pace {
    max: u64,
    state: Mutex<State>,
    turn: Notify,
    /// The turn of small questions.
    small_turn: Notify,
    stats: Arc<NodeStats>,
}

impl Pace {
    /// A gate for at most `max` requests in flight (at least one), which starts with a few.
    #[must_use]
    pub fn new(max: usize, stats: Arc<NodeStats>) -> Self {
        let max = u32::try_from(max.max(1)).unwrap_or(u32::MAX);
        let climb = Climb::new(max);
        let pace = Self {
            max: u64::from(max),
            state: Mutex::new(State {
                climb,
                window: Window::default(),
                limit: f64::from(climb.limit()),
                running: 0,
                small_running: 0,
                waiting: 0,
                cut_at: None,
                latency: Default::default(),
                usual_bytes: Default::default(),
            }),
            turn: Notify::new(),
            small_turn: Notify::new(),
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
        let turn_of = if class.is_small() {
            &self.small_turn
        } else {
            &self.turn
        };
        loop {
            // Registered before looking, so that no place that becomes free in between is missed.
            let mut turn = std::pin::pin!(turn_of.notified());
            turn.as_mut().enable();
            if let Some(slot) = self.try_admit(class) {
                return slot;
            }
            let waiting = Waiting::begin(self);
            turn.await;
            drop(waiting);
        }
    }

    fn try_admit(&self, class: RequestClass) -> Option<Slot<'_>> {
        let mut state = self.state();
        if self.room(&state, class.is_small()) == 0 {
            return None;
        }
        state.running += 1;
        state.small_running += usize::from(class.is_small());
        self.show(&state);
        Some(Slot {
            pace: self,
            class,
            started: clock::now(),
            outcome: Outcome::Failed,
            bytes: 0,
        })
    }

    /// How many more may be in flight.
    fn room(&self, state: &State, small: bool) -> u64 {
        let room = whole(state.limit).saturating_sub(state.running as u64);
        if !small {
            return room;
        }
        let beyond = SMALL_BEYOND.saturating_sub(state.small_running as u64);
        room.max(beyond.min(self.max.saturating_sub(state.running as u64)))
    }

    fn leave(&self, slot: &Slot<'_>) {
        let mut state = self.state();
        state.running = state.running.saturating_sub(1);
        state.small_running = state.small_running.saturating_sub(slot.class.is_small().into());
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
            let aim = f64::from(state.climb.limit());
            if state.limit < aim {
                state.limit = (state.limit + 1.0 / state.limit).min(aim);
                state.window = Window::default();
            } else {
                let weight = state.weigh(slot.class, slot.bytes);
                state.answered(weight);
            }
        }
        let (room, small_room) = (self.room(&state, false), self.room(&state, true));
        self.show(&state);
        drop(state);
        // The place that became free, and the one that a raised limit may have added.
        for _ in 0..small_room.min(2) {
            self.small_turn.notify_one();
        }
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
    bytes: u64,
}

impl Slot<'_> {
    /// Says how the request ended, with how many bytes, and gives the place back; gives the time it took.
    pub fn end(mut self, outcome: Outcome, bytes: usize) -> Duration {
        self.outcome = outcome;
        self.bytes = bytes as u64;
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
    use std::sync::atomic::AtomicUsize;

    fn pace(max: usize) -> Pace {
        Pace::new(max, Arc::default())
    }

    /// As many askers as may be, each over and over, until so many were answered.
    async fn ask(pace: &Pace, answers: usize, takes: Duration) {
        let left = AtomicUsize::new(answers);
        let asker = || async {
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
            {
                let slot = pace.admit(RequestClass::Block).await;
                tokio::time::sleep(takes).await;
                slot.end(Outcome::Answered, 10_000);
            }
        };
        futures_util::future::join_all((0..40).map(|_| asker())).await;
    }

    /// Asks until the limit is so high. A machine with other work is a slow node, too, and is asked less for a while.
    async fn rise(pace: &Pace, to: u64, takes: Duration) {
        for _ in 0..30 {
            ask(pace, 400, takes).await;
            if pace.limit() >= to {
                return;
            }
        }
        panic!("{} in place of {to}", pace.limit());
    }

    #[tokio::test]
    async fn the_limit_rises_while_it_pays() {
        let pace = pace(8);
        assert_eq!(pace.limit(), 4);
        rise(&pace, 8, Duration::from_millis(5)).await;
    }

    #[tokio::test]
    async fn nobody_who_waits_is_no_reason_for_more() {
        let pace = pace(64);
        for _ in 0..300 {
            pace.admit(RequestClass::Block).await.end(Outcome::Answered, 1000);
        }
        assert_eq!(pace.limit(), 4);
    }

    #[tokio::test]
    async fn one_burst_of_refusals_is_one_cut_and_quiet_mends_it() {
        let pace = pace(64);
        rise(&pace, 16, Duration::from_millis(5)).await;
        let (risen, room) = (pace.limit(), pace.limit().try_into().unwrap());
        let slots: Vec<_> = (0..room)
            .map(|_| pace.try_admit(RequestClass::Block).unwrap())
            .collect();
        assert!(pace.try_admit(RequestClass::Block).is_none());
        for slot in slots {
            slot.end(Outcome::PushedBack, 0);
        }
        assert_eq!(pace.limit(), risen / 2);
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(1)).await;
            pace.admit(RequestClass::Light).await.end(Outcome::PushedBack, 0);
        }
        assert_eq!(pace.limit(), 1);
        rise(&pace, 16, Duration::from_millis(1)).await;
    }

    #[tokio::test]
    async fn small_questions_do_not_starve_blocks() {
        let pace = pace(64);
        let smalls: Vec<_> = (0..4)
            .map(|_| pace.try_admit(RequestClass::Light).unwrap())
            .collect();
        assert!(pace.try_admit(RequestClass::Light).is_none());
        drop(smalls);
        let _blocks: Vec<_> = (0..4)
            .map(|_| pace.try_admit(RequestClass::Block).unwrap())
            .collect();
        assert!(pace.try_admit(RequestClass::Block).is_none());
    }

    #[tokio::test]
    async fn small_questions_pass_blocks_within_the_bound() {
        for (max, small) in [(64, 2), (5, 1), (4, 0)] {
            let pace = pace(max);
            let mut slots = Vec::new();
            while let Some(slot) = pace.try_admit(RequestClass::Traces) {
                slots.push(slot);
            }
            assert_eq!(slots.len(), 4);
            while let Some(slot) = pace.try_admit(RequestClass::Call) {
                slots.push(slot);
            }
            assert_eq!(slots.len(), 4 + small, "{max}");
        }
    }

    #[tokio::test]
    async fn a_waiter_is_woken_when_a_place_is_dropped() {
        let pace = pace(1);
        let slot = pace.admit(RequestClass::Light).await;
        let waiter = async { pace.admit(RequestClass::Light).await.end(Outcome::Answered, 0) };
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
