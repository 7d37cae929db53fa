//! How often a request is repeated, and after which waits.

use super::config::NodeConfig;
use super::error::NodeError;
use std::time::Duration;

/// For whom a request is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// The sync and its like, which have nothing better to do than wait.
    Long,
    /// A client, who can ask again and would rather know soon.
    Short,
}

/// Attempts of a question that somebody waits for.
const SHORT_ATTEMPTS_MAX: u32 = 3;

/// The wait before its first repetition; it doubles.
const SHORT_WAIT_FIRST: Duration = Duration::from_millis(100);

/// The attempts of one request.
#[derive(Debug, Default)]
pub(super) struct Tries {
    made: u32,
    /// Time spent on requests and on waiting to repeat them. Time spent in line for a place in flight is
    /// not in it: a long line says nothing about the request.
    spent: Duration,
}

impl Tries {
    pub(super) const fn made(&self) -> u32 {
        self.made
    }

    pub(super) const fn spent(&self) -> Duration {
        self.spent
    }

    pub(super) fn spend(&mut self, time: Duration) {
        self.spent += time;
    }

    /// How long to wait before the next attempt; `None` when there is to be none.
    pub(super) fn next_wait(
        &mut self,
        patience: Patience,
        config: &NodeConfig,
        error: &NodeError,
    ) -> Option<Duration> {
        self.made += 1;
        if !error.is_retryable() || config.attempts_max <= self.made {
            return None;
        }
        let asked = error.rest_asked();
        let wait = match patience {
            Patience::Long => {
                // A small question that was not answered in time is asked once more; then the caller should know.
                let stalled =
                    matches!(error, NodeError::Timeout { after, .. } if *after == config.light_timeout);
                if stalled && self.made > 1 {
                    return None;
                }
                config.backoff(self.made).max(asked.unwrap_or_default())
            }
            Patience::Short => {
                let stalled = matches!(error, NodeError::Timeout { .. });
                if stalled || asked.is_some() || SHORT_ATTEMPTS_MAX <= self.made {
                    return None;
                }
                config.backoff_from(SHORT_WAIT_FIRST.min(config.backoff_first), self.made)
            }
        };
        self.spent += wait;
        (self.spent < config.deadline).then_some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_waited_for_is_told_soon() {
        let config = NodeConfig::new("http://127.0.0.1:1");
        let refused = NodeError::Transport {
            method: "eth_chainId",
            reason: "refused".to_owned(),
        };
        let mut tries = Tries::default();
        let mut next = |error| tries.next_wait(Patience::Short, &config, error);
        assert!(next(&refused).unwrap() <= Duration::from_millis(100));
        assert!(next(&refused).unwrap() <= Duration::from_millis(200));
        assert_eq!(next(&refused), None);
        let stalled = NodeError::Timeout {
            method: "eth_chainId",
            after: config.light_timeout,
        };
        assert_eq!(
            Tries::default().next_wait(Patience::Short, &config, &stalled),
            None
        );
        assert!(
            Tries::default()
                .next_wait(Patience::Long, &config, &stalled)
                .is_some()
        );
    }
}
