//! Single questions: in turn, counted, and about one block where the node takes its hash.
//!
//! By a number the node that happens to answer tells of whatever it has there: one on another branch, or one that lags
//! behind a balancer, tells of something else than was asked, and nobody sees it. By a hash (EIP-1898) it tells of that
//! block or says that it does not have it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::Tools;
use super::perform::Failure;
use crate::model::{Address, BlockId, U256};
use crate::node::{CallAt, NodeError, Told};
use crate::query::is_on;

/// So many refusals without an answer between them, and blocks are asked for by number alone.
const AGAINST_MAX: u32 = 8;
/// So many times an answer by hash may have been another one than by number.
const ODD_MAX: u32 = 3;

/// How a block is named in a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By its hash, where the node takes that.
    Hash,
    /// By its number.
    Number,
}

/// How soon a question is to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// As the rate allows.
    Ordinary,
    /// It is about a holder that a transfer touched: sooner where many wait.
    Urgent,
}

/// Whether the node takes blocks by their hashes.
#[derive(Debug, Default)]
pub(super) struct Hashes {
    /// It has answered such a question.
    taken: AtomicBool,
    /// Refusals since.
    against: AtomicU32,
    odd: AtomicU32,
}

impl Hashes {
    /// Whether to ask by hash.
    pub(super) fn are_asked(&self) -> bool {
        self.against.load(Ordering::Relaxed) < AGAINST_MAX && self.odd.load(Ordering::Relaxed) < ODD_MAX
    }

    /// Whether the node has answered by hash: where it refuses one then, it does not have that block.
    pub(super) fn are_taken(&self) -> bool {
        self.are_asked() && self.taken.load(Ordering::Relaxed)
    }

    /// An answer by hash differed from what was expected and that by number did not, both of a node that has the
    /// block: it looks at something else than the hash.
    pub(super) fn doubt(&self) {
        self.odd.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes note of what came of a question by hash: whether to ask it by number.
    pub(super) fn note<T>(&self, asked: &Result<T, NodeError>) -> bool {
        match asked {
            Ok(_) => {
                self.taken.store(true, Ordering::Relaxed);
                self.against.store(0, Ordering::Relaxed);
                false
            }
            // Some servers break on what they do not expect in place of a number.
            Err(error) if !error.is_answer() => {
                let breaks = matches!(error, NodeError::HttpStatus { .. } | NodeError::Malformed { .. });
                let by_number = (breaks || matches!(error, NodeError::Transport { .. }))
                    && !self.taken.load(Ordering::Relaxed);
                if breaks && by_number {
                    self.against.fetch_add(1, Ordering::Relaxed);
                }
                by_number
            }
            Err(error) => {
                let by_number = is_of_parameters(error) || !self.taken.load(Ordering::Relaxed);
                if by_number && !is_of_block(error) {
                    self.against.fetch_add(1, Ordering::Relaxed);
                }
                by_number
            }
        }
    }
}

/// Whether an error is one of requests that are not well formed, which a hash in place of a number is for some.
const fn is_of_parameters(error: &NodeError) -> bool {
    matches!(
        error,
        NodeError::Rpc {
            code: -32602 | -32600 | -32700,
            ..
        }
    )
}

/// Whether an error says that the node does not have the block, or its state: so it has understood which.
pub(super) fn is_of_block(error: &NodeError) -> bool {
    let NodeError::Rpc { message, .. } = error else {
        return matches!(error, NodeError::NullResult { .. });
    };
    let lower = message.to_lowercase();
    let words = [
        "not found",
        "unknown block",
        "missing",
        "not available",
        "unavailable",
        "no state",
        "pruned",
        "could not find",
        "not currently canonical",
    ];
    words.iter().any(|words| lower.contains(words))
}

impl Tools {
    /// Waits for the turn of a question, and counts it.
    pub(super) async fn turn(&self) {
        self.turn_of(Turn::Ordinary).await;
    }

    async fn turn_of(&self, turn: Turn) {
        match turn {
            Turn::Ordinary => self.rate.turn().await,
            Turn::Urgent => self.rate.urgent_turn().await,
        }
        self.status.tokens().questions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn counted<T>(&self, result: Result<T, NodeError>) -> Result<T, NodeError> {
        if result.is_err() {
            self.status.tokens().errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// What came of a question about the head: a node that takes hashes and refuses this one is another than the one
    /// that told of the block.
    pub(super) fn of_head<T>(&self, asked: Result<T, NodeError>, by: By) -> Result<T, Failure> {
        asked.map_err(|error| {
            if by == By::Hash && error.is_answer() && self.hashes.are_taken() {
                Failure::Behind
            } else {
                Failure::Node(error)
            }
        })
    }

    /// Asks about a block by its hash; `None` where it is to be asked about by its number: the node takes no hashes, as far as
    /// is known.
    pub(super) async fn by_hash<T, F>(
        &self,
        block: BlockId,
        ask: impl FnOnce(CallAt) -> F + Send,
    ) -> Option<Result<T, NodeError>>
    where
        F: Future<Output = Result<T, NodeError>> + Send,
    {
        if !self.hashes.are_asked() {
            return None;
        }
        let asked = ask(CallAt::Block(block)).await;
        (!self.hashes.note(&asked)).then(|| self.counted(asked))
    }

    /// Asks about a block: by its hash where that is wanted and the node takes it, else by its number.
    async fn after<T, F>(
        &self,
        block: BlockId,
        by: By,
        turn: Turn,
        ask: impl Fn(CallAt) -> F + Send + Sync,
    ) -> Result<T, NodeError>
    where
        F: Future<Output = Result<T, NodeError>> + Send,
    {
        let in_turn = async |at| {
            self.turn_of(turn).await;
            ask(at).await
        };
        if by == By::Hash
            && let Some(asked) = self.by_hash(block, in_turn).await
        {
            return asked;
        }
        self.counted(in_turn(CallAt::from(block.number)).await)
    }

    pub(super) async fn supply(
        &self,
        token: Address,
        block: BlockId,
        by: By,
    ) -> Result<Told<U256>, NodeError> {
        self.after(block, by, Turn::Ordinary, |at| self.node.token_supply(token, at))
            .await
    }

    pub(super) async fn balance(
        &self,
        token: Address,
        holder: Address,
        block: BlockId,
        by: By,
    ) -> Result<Told<U256>, NodeError> {
        self.balance_in(token, holder, block, by, Turn::Ordinary).await
    }

    /// The same in a turn of its kind.
    pub(super) async fn balance_in(
        &self,
        token: Address,
        holder: Address,
        block: BlockId,
        by: By,
        turn: Turn,
    ) -> Result<Told<U256>, NodeError> {
        self.after(block, by, turn, |at| self.node.token_balance(token, holder, at))
            .await
    }

    /// What an account holds of the native coin.
    pub(super) async fn native_balance(
        &self,
        account: Address,
        block: BlockId,
        by: By,
    ) -> Result<U256, NodeError> {
        self.after(block, by, Turn::Ordinary, |at| self.node.balance(account, at))
            .await
    }

    /// Whether the node and the store still have `block` where it was.
    pub(super) async fn still(&self, block: BlockId) -> Result<bool, Failure> {
        self.turn().await;
        let asked = self.counted(self.node.block_id(block.number).await)?;
        let same = asked.is_some_and(|asked| asked.hash == block.hash);
        Ok(same && is_on(&self.store.view(), block))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i64, message: &str) -> Result<(), NodeError> {
        Err(NodeError::Rpc {
            method: "eth_call",
            code,
            message: message.to_owned(),
        })
    }

    #[test]
    fn a_node_that_takes_no_hashes_is_asked_by_number_alone() {
        for (code, message) in [
            (-32602, "invalid argument 1: json: cannot unmarshal object"),
            (-32000, "expected a string"),
        ] {
            let hashes = Hashes::default();
            for _ in 0..AGAINST_MAX {
                assert!(hashes.are_asked());
                assert!(hashes.note(&refused(code, message)), "by number");
            }
            assert!(!hashes.are_asked() && !hashes.are_taken());
        }
    }

    #[test]
    fn a_block_that_is_not_there_says_nothing_against_hashes() {
        let hashes = Hashes::default();
        let absent = refused(-32000, "header for hash not found");
        for _ in 0..2 * AGAINST_MAX {
            assert!(hashes.note(&absent), "nothing is known of the node yet");
        }
        assert!(hashes.are_asked() && !hashes.are_taken());
        assert!(!hashes.note(&Ok(())));
        assert!(hashes.are_taken());
        // From now on that is the answer; the way to the node is another matter.
        assert!(!hashes.note(&absent));
        let lost: Result<(), _> = Err(NodeError::Transport {
            method: "eth_call",
            reason: "reset".to_owned(),
        });
        assert!(!hashes.note(&lost));
        assert!(hashes.are_taken());
        // A node behind the same URL that takes none.
        for _ in 0..AGAINST_MAX {
            assert!(hashes.note(&refused(-32602, "invalid params")));
        }
        assert!(!hashes.are_taken());
    }

    #[test]
    fn a_node_that_looks_at_something_else_is_found_out() {
        let hashes = Hashes::default();
        assert!(!hashes.note(&Ok(())));
        for _ in 0..ODD_MAX {
            assert!(hashes.are_taken());
            hashes.doubt();
        }
        assert!(!hashes.are_asked());
        assert!(!hashes.note(&Ok(())));
        assert!(!hashes.are_asked());
    }
}
