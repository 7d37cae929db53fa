//! So many questions a second, evenly.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock;

/// Spaces questions out.
#[derive(Debug)]
pub(super) struct Rate {
    gap: Duration,
    next: Mutex<Instant>,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        Self {
            gap: Duration::from_secs(1) / per_second.max(1),
            next: Mutex::new(clock::now()),
        }
    }

    /// Waits for the turn of one question. Turns are given in the order of asking.
    pub(super) async fn turn(&self) {
        let now = clock::now();
        let at = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let at = (*next).max(now);
            *next = at + self.gap;
            at
        };
        if now < at {
            tokio::time::sleep(at - now).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn turns_are_spaced_out() {
        let rate = Rate::new(200);
        let began = clock::now();
        futures_util::future::join_all((0..21).map(|_| rate.turn())).await;
        assert!(Duration::from_millis(99) <= clock::now() - began);
    }
}
