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
