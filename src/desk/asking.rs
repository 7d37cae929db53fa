//! Questions to the node: within the time that a client waits, and of the chain that the snapshot is of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::{Answer, Question};
use super::context::UpstreamError;
use super::faults::{still_indexing, upstream_failed_with};
use super::office::Desk;
use crate::clock;
use crate::http::HttpError;
use crate::model::ChainName;

/// Where the node has another branch than the snapshot, the index follows in a moment: so long is waited before the next
/// snapshot, and how often.
const MOVED_WAITS_MS: [u64; 5] = [50, 100, 200, 400, 800];

/// Why there is no answer of the node.
enum Unanswered {
    /// Its chain has another block where the snapshot has the one that was asked about; with what is said of that if it
    /// stays so.
    Elsewhere(Result<Answer, HttpError>),
    Refused(HttpError),
}

impl Unanswered {
    /// The last word.
    fn settled(self) -> Result<Answer, HttpError> {
        match self {
            Self::Elsewhere(word) => word,
            Self::Refused(error) => Err(error),
        }
    }
}

/// How far a request has waited for the index to follow the node to another branch.
#[derive(Default)]
pub(crate) struct Patience {
    /// When its first question has had the time that one has.
    until: Option<Instant>,
    waits: usize,
}

impl Patience {
    /// The next wait, from the first question of a request on for the time that one has.
    fn next_wait(&mut self) -> Option<Duration> {
        let is_in_time = self.until.is_some_and(|until| clock::now() < until);
        let wait = MOVED_WAITS_MS.get(self.waits).filter(|_| is_in_time);
        self.waits += 1;
        wait.copied().map(Duration::from_millis)
    }
}

impl Desk {
    /// Asks the node what only it knows, for who looks up again. Nothing where the node has another branch than the snapshot and
    /// the next one may be of it: a moment was waited, and what left the question is to be looked up once more.
    pub(crate) async fn ask(
        &self,
        chain: ChainName,
        question: Question,
        patience: &mut Patience,
    ) -> Option<Result<Answer, HttpError>> {
        let time = self.settings().upstream_timeout;
        patience.until.get_or_insert_with(|| clock::now() + time);
        match self.question(chain, question).await {
            Ok(answer) => Some(Ok(answer)),
            Err(refused @ Unanswered::Refused(_)) => Some(refused.settled()),
            Err(elsewhere) => {
                let Some(wait) = patience.next_wait() else {
                    return Some(elsewhere.settled());
                };
                tokio::time::sleep(wait).await;
                None
            }
        }
    }

    /// The same for who keeps to one snapshot.
    pub(crate) async fn ask_once(&self, chain: ChainName, question: Question) -> Result<Answer, HttpError> {
        let told = self.question(chain, question).await;
        told.or_else(Unanswered::settled)
    }

    /// Asks within the time that a client waits, and whether the node speaks of the same chain.
    async fn question(&self, chain: ChainName, question: Question) -> Result<Answer, Unanswered> {
        let alone = |unless: Result<Box<Answer>, HttpError>| unless.map(|answer| *answer);
        let Some(node) = self.chains().upstream(chain) else {
            return alone(question.unless).map_err(Unanswered::Refused);
        };
        let (failure, block) = (question.failure, question.block);
        let asked = async {
            let told = (question.ask)(Arc::clone(&node)).await;
            // Asked afterwards: a node that has the block now had it then, but for one that went and came back.
            let same = match block {
                Some(block) if !matches!(told, Err(UpstreamError::TimedOut)) => node.holds(block).await?,
                _ => true,
            };
            Ok(if same { Some(told?) } else { None })
        };
        let asked = tokio::time::timeout(self.settings().upstream_timeout, asked).await;
        match asked.unwrap_or(Err(UpstreamError::TimedOut)) {
            Ok(Some(answer)) => answer.map_err(Unanswered::Refused),
            Ok(None) if question.or_else_alone => Err(Unanswered::Elsewhere(alone(question.unless))),
            Ok(None) => Err(Unanswered::Elsewhere(Err(still_indexing()))),
            Err(_) if question.or_else_alone => alone(question.unless).map_err(Unanswered::Refused),
            Err(error) => Err(Unanswered::Refused(upstream_failed_with(failure, &error))),
        }
    }
}
