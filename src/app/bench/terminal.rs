//! What an operator sees while it is measured.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::ProgressBar;

use crate::app::progress::Lines;
use crate::app::{AppError, stderr};
use crate::bench::session::Observer;

/// A bar on a terminal, a line now and then elsewhere.
pub(super) struct Terminal {
    pub(super) bar: ProgressBar,
    lines: Lines,
    /// What is being prepared.
    doing: Mutex<&'static str>,
}

impl Terminal {
    pub(super) fn new() -> Self {
        Self {
            bar: stderr::bar("{bar:30} {pos}/{len} {elapsed} {msg}"),
            lines: Lines::new(Duration::ZERO),
            doing: Mutex::new(""),
        }
    }

    /// What is being done before anything is measured.
    pub(super) fn prepares(&self, what: &'static str) {
        *self.doing.lock().unwrap_or_else(PoisonError::into_inner) = what;
        self.bar.set_message(what);
        tracing::debug!("{what}");
    }

    /// That it was stopped there.
    pub(super) fn stopped(&self) -> AppError {
        let what = self.doing.lock().unwrap_or_else(PoisonError::into_inner);
        AppError::Usage(format!("stopped before anything was measured, while {what}"))
    }

    pub(super) fn loads(&self, done: u64, of: u64, what: &str) {
        self.bar.set_position(done);
        self.bar.set_message(what.to_owned());
        if self.lines.are_due(&self.bar) {
            tracing::info!(logs = done, of, "PostgreSQL: {what}");
        }
    }
}

impl Observer for Terminal {
    fn begins(&self, step: &str, done: usize, of: usize) {
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(step.to_owned());
        if self.lines.are_due(&self.bar) {
            tracing::info!(done, of, "measuring {step}");
        }
    }
}
