//! How long to wait after a failure, and when to give up.

use std::time::Duration;

use super::error::SyncError;
use crate::status::ChainStatus;

/// What is left of the patience with a source that contradicts what cannot change. Waits are added up, so that a machine
/// without time does not end a sync.
#[derive(Debug)]
pub struct Patience {
    with_contradictions: Duration,
    spent: Duration,
}

impl Patience {
    /// Contradictions are waited out for so long in one go.
    #[must_use]
    pub const fn new(with_contradictions: Duration) -> Self {
        Self {
            with_contradictions,
            spent: Duration::ZERO,
        }
    }

    /// How long to wait after a failure, at most `wait`; the status and the log are told of it, in the words of
    /// [`SYNC_WAITS`](super::SYNC_WAITS) or [`FILL_WAITS`](super::FILL_WAITS). `None` where no waiting
    /// mends it, or none any more.
    pub fn pause(
        &mut self,
        error: &SyncError,
        wait: Duration,
        waiting: &'static str,
        status: &ChainStatus,
    ) -> Option<Duration> {
        if error.may_pass() {
            error.tell_wait(waiting, status);
            return Some(wait);
        }
        let left = self.with_contradictions.saturating_sub(self.spent);
        // One node behind a balancer must not end a sync, nor must one that is put right within a moment.
        if !error.contradicts() || left.is_zero() {
            return None;
        }
        error.tell_contradiction(status, left);
        let pause = wait.min(left);
        self.spent += pause;
        Some(pause)
    }

    /// The source has our head, and nothing else speaks against it.
    pub fn is_agreed(&mut self, status: &ChainStatus) {
        if std::mem::take(&mut self.spent) > Duration::ZERO {
            tracing::info!("the node agrees with what is final again");
        }
        status.set_contradicted(false);
    }
}
