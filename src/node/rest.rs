//! Leaving a node alone for as long as it asks (`Retry-After`), whoever wants to ask it next.

use crate::clock;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A rest that begins so long after the one before is news.
const NEWS_AFTER: Duration = Duration::from_secs(60);

/// Until when a node is left alone.
#[derive(Debug, Default)]
pub(super) struct Rest(Mutex<Option<Instant>>);

impl Rest {
    /// Begins a rest; one that ends later goes on. Answers whether there was none for a while.
    pub(super) fn begin(&self, asked: Duration) -> bool {
        let now = clock::now();
        let mut at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_news = at.is_none_or(|until| until + NEWS_AFTER <= now);
        *at = at.max(Some(now + asked));
        is_news
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
            // One after the other: the first is the news.
            assert_eq!(rest.begin(error.rest_asked().unwrap()), seconds == 100);
            let left = rest.left().unwrap();
            assert!(Duration::from_secs(least) < left && left <= Duration::from_secs(most));
        }
    }
}
