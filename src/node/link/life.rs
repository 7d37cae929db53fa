//! Signs of life of a connection, from who reads it to who waits for an answer over it.

use crate::clock;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What came over one connection, and when.
pub(super) struct Life(Mutex<State>);

struct State {
    /// When bytes last came.
    last: Instant,
    /// Since when bytes come that are no whole message yet.
    begun: Option<Instant>,
    /// Whole messages that somebody waited for.
    taken: u64,
    /// Why it was given up, where whoever reads it did that.
    end: Option<String>,
}

impl Life {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            last: clock::now(),
            begun: None,
            taken: 0,
            end: None,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Some bytes came.
    pub(super) fn bytes(&self) {
        let now = clock::now();
        let mut state = self.state();
        state.last = now;
        state.begun.get_or_insert(now);
    }

    /// With the last of them a message was whole.
    pub(super) fn message(&self) {
        self.state().begun = None;
    }

    /// With the last of them a control frame was whole, which comes between messages, or between the fragments of one: it is short, so that what
    /// came before those bytes is of a message.
    pub(super) fn control(&self) {
        let mut state = self.state();
        let last = state.last;
        state.begun.take_if(|begun| *begun == last);
    }

    /// Somebody waited for a message that was whole.
    pub(super) fn take(&self) {
        self.state().taken += 1;
    }

    /// How many of those there were.
    pub(super) fn taken(&self) -> u64 {
        self.state().taken
    }

    /// How long nothing has come.
    pub(super) fn silent_for(&self) -> Duration {
        clock::now().saturating_duration_since(self.state().last)
    }

    /// Whether a message is on its way: some of it came `within` this time, and its first bytes not longer ago than `longest`.
    pub(super) fn is_receiving(&self, within: Duration, longest: Duration) -> bool {
        let now = clock::now();
        let (last, begun) = {
            let state = self.state();
            (state.last, state.begun)
        };
        let since = |at| now.saturating_duration_since(at);
        begun.is_some_and(|begun| since(last) < within && since(begun) < longest)
    }

    /// Says why the connection is given up.
    pub(super) fn give_up(&self, why: String) {
        self.state().end.get_or_insert(why);
    }

    /// Why it was given up.
    pub(super) fn end(&self) -> Option<String> {
        self.state().end.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    /// Bytes that came at two different times.
    fn bytes(life: &Life) {
        let before = life.state().last;
        while clock::now() == before {
            std::hint::spin_loop();
        }
        life.bytes();
    }

    #[test]
    fn a_control_frame_is_no_message_and_ends_none() {
        let life = Life::new();
        for _ in 0..3 {
            bytes(&life);
            life.control();
            assert!(!life.is_receiving(HOUR, HOUR), "a pong alone");
        }
        bytes(&life);
        for _ in 0..3 {
            assert!(life.is_receiving(HOUR, HOUR), "a fragment");
            bytes(&life);
            life.control();
            assert!(life.is_receiving(HOUR, HOUR), "a pong behind it");
        }
        assert!(!life.is_receiving(HOUR, Duration::ZERO), "not without end");
        life.message();
        assert!(!life.is_receiving(HOUR, HOUR), "it was whole");
    }
}
