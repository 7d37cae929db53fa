//! Leaving a node alone for as long as it asks (`Retry-After`), whoever wants to ask it next.

use crate::clock;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Until when a node is left alone.
#[derive(Debug, Default)]
pub(super) struct Rest(Mutex<Option<Instant>>);

impl Rest {
    /// Begins a rest; one that ends later goes on.
    pub(super) fn begin(&self, asked: Duration) {
        let until = clock::now() + asked;
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *at = at.max(Some(until));
    }

    /// How much longer it lasts.
    pub(super) fn left(&self) -> Option<Duration> {
        let at = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = at?.saturating_duration_since(clock::now());
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeError;

    #[test]
    fn a_rest_is_as_long_as_asked_within_reason() {
        let rest = Rest::default();
        assert_eq!(rest.left(), None);
        for (seconds, least, most) in [(100, 0, 100), (1, 1, 100), (u64::MAX, 100, 300)] {
            let error = NodeError::RateLimited {
                method: "eth_chainId",
                message: String::new(),
                retry_after: Some(Duration::from_secs(seconds)),
            };
            rest.begin(error.rest_asked().unwrap());
            let left = rest.left().unwrap();
            assert!(Duration::from_secs(least) < left && left <= Duration::from_secs(most));
        }
    }
}
