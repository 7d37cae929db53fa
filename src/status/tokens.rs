//! What is found out about the tokens of a chain, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is found out about the tokens of a chain, in numbers.
#[derive(Debug, Default)]
pub struct TokenFigures {
    known: AtomicU64,
    exact: AtomicU64,
    inexact: AtomicU64,
    waiting: AtomicU64,
    /// Questions asked of the node since the start.
    pub questions: AtomicU64,
    /// Of these, how many the node failed to answer.
    pub errors: AtomicU64,
}

impl TokenFigures {
    /// Contracts that emitted a token event.
    pub fn known(&self) -> u64 {
        self.known.load(Ordering::Relaxed)
    }

    /// Records how many there are.
    pub fn set_known(&self, count: u64) {
        self.known.store(count, Ordering::Relaxed);
    }

    /// Tokens whose events explain them, as far as they were compared.
    pub fn exact(&self) -> u64 {
        self.exact.load(Ordering::Relaxed)
    }

    /// Tokens found not to be exact.
    pub fn inexact(&self) -> u64 {
        self.inexact.load(Ordering::Relaxed)
    }

    /// Records both, as the side store has them.
    pub fn set_verdicts(&self, exact: u64, inexact: u64) {
        self.exact.store(exact, Ordering::Relaxed);
        self.inexact.store(inexact, Ordering::Relaxed);
    }

    /// Jobs that wait to be done.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Records how many wait.
    pub fn set_waiting(&self, count: u64) {
        self.waiting.store(count, Ordering::Relaxed);
    }

    /// Counts a verdict; `before` is what an earlier one said.
    pub fn verdict(&self, before: Option<bool>, exact: bool) {
        let of = |exact| if exact { &self.exact } else { &self.inexact };
        if before == Some(exact) {
            return;
        }
        if let Some(before) = before {
            let less = |count: u64| Some(count.saturating_sub(1));
            let _ = of(before).fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
        of(exact).fetch_add(1, Ordering::Relaxed);
    }
}
