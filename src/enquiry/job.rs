//! What is to be asked: jobs and how they end.

use crate::model::Address;

/// The kinds of jobs that take turns: places among the queues, and tokens that moved.
pub(super) const METADATA: usize = 0;
pub(super) const JUDGE: usize = 1;
pub(super) const ROUND: usize = 2;
pub(super) const SAMPLE: usize = 3;
pub(super) const MOVED: usize = 4;

/// A job that the node answers an error to so often is left to the next round over all tokens. A holder that it answers one to is taken for
/// one that the contract does not tell of.
pub(super) const ATTEMPTS_MAX: u32 = 3;

/// A thing to do. Each asks a handful of questions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Ask for name, symbol and decimals.
    Metadata,
    /// Compare the ledger with the contract; these accounts among others.
    Judge(Vec<Address>),
    /// Ask for the balances of these accounts of a token that is not exact.
    Refresh(Vec<Address>),
    /// Ask for the balances of some more of all accounts of such a token.
    Round,
    /// The same, from the first account on.
    Anew,
    /// See whether such a token's balances changed without an event.
    Sample,
}

impl Work {
    /// Its queue; `None` for what has none.
    pub(super) const fn kind(&self) -> Option<usize> {
        match self {
            Self::Metadata => Some(METADATA),
            Self::Judge(_) => Some(JUDGE),
            Self::Round | Self::Anew => Some(ROUND),
            Self::Sample => Some(SAMPLE),
            Self::Refresh(_) => None,
        }
    }

    /// How many accounts it asks for, of those that were touched.
    pub(super) const fn accounts(&self) -> usize {
        match self {
            Self::Refresh(accounts) => accounts.len(),
            _ => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) token: Address,
    pub(super) work: Work,
    pub(super) attempts: u32,
}

/// How a job ended.
#[derive(Clone, Debug)]
pub(super) enum Ended {
    /// It is done.
    Done(Job),
    /// The token turned out not to be exact: all its holders are to be asked for.
    Fell(Job),
    /// A round over all holders of a token is not over.
    Goes(Job),
    /// The ledger or the chain moved on meanwhile; nothing was learnt.
    Void(Job),
    /// The node that answered does not have the block (yet).
    Later(Job),
    /// The node failed.
    NodeFailed {
        job: Job,
        /// Whether it answered, so that it may be this job that it cannot do.
        answered: bool,
    },
}
