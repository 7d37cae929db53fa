//! What is known of tokens from elsewhere than the chain's blocks. Whoever has it implements [`TokenFacts`];
//! with nothing behind it metadata is null, and every token that the ledger does not doubt is exact.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

pub use crate::model::ZeroAddress;

use crate::model::{Address, FeedFacts, TokenMetadata, U256};
use crate::query::QueryError;
use crate::store::StoreError;

/// Whether the ledger of a token, summed from its logs, is what its contract says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exactness {
    /// It is, or nothing says otherwise.
    #[default]
    Exact,
    /// It was not compared yet, and there is a node to ask meanwhile.
    Unjudged,
    /// It is not: the contract must be asked.
    Inexact,
}

/// The ledger of native balances is not what the node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NativeDiffers {
    /// The block after which balances were compared.
    pub block: u64,
    /// What differs.
    pub reason: String,
}

/// The verdict on a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether its ledger is right.
    pub exactness: Exactness,
    /// What transfers to the zero address are.
    pub zero: ZeroAddress,
}

/// Facts about tokens that blocks do not tell. May read a disk.
///
/// The values count only for tokens whose verdict is not [`Exactness::Exact`]; `None` leaves the question to the
/// ledger.
pub trait TokenFacts: fmt::Debug + Send + Sync {
    /// What the contract says of itself; `None` where it was not asked yet.
    fn metadata(&self, token: &Address) -> Result<Option<TokenMetadata>, StoreError>;

    /// The verdict; `flagged` says that the ledger itself doubts the token.
    fn verdict(&self, token: &Address, flagged: bool) -> Result<Verdict, StoreError>;

    /// A number that changes whenever any of these may answer something else on the same snapshot.
    fn revision(&self) -> u64 {
        0
    }

    /// What a node showed to be wrong with the ledger of native balances, and when; `None` while nothing is known to be.
    fn native_differs(&self) -> Option<NativeDiffers> {
        None
    }

    /// Whether the ledger of native balances is not to be compared with a node for the first time yet: until then nobody knows
    /// whether blocks tell all of it.
    fn native_is_judged(&self) -> bool {
        true
    }

    /// What a contract of a price feed is.
    fn feed(&self, _feed: &Address) -> Result<Option<FeedFacts>, StoreError> {
        Ok(None)
    }

    /// The supply as the contract said last.
    fn supply(&self, _token: &Address) -> Result<Option<U256>, StoreError> {
        Ok(None)
    }

    /// What a holder has as the contract said last.
    fn balance(&self, _token: &Address, _holder: &Address) -> Result<Option<U256>, StoreError> {
        Ok(None)
    }

    /// Tokens of which a holder has some by what their contracts said last, by address: the first `_limit` of those behind `_after`, or of
    /// all.
    fn held_by(
        &self,
        _holder: &Address,
        _after: Option<&Address>,
        _limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        Ok(Vec::new())
    }

    /// Tokens whose verdict lets the zero address hold what it was sent, by address.
    fn held_by_zero(&self) -> Result<Arc<[Address]>, StoreError> {
        Ok(Arc::default())
    }

    /// How many accounts hold some of the token by what the contract said last.
    fn holder_count(&self, _token: &Address) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// The holders by what the contract said last: largest first, then by address; those behind `_after` where it is
    /// given, else all but the first `_skip`, which takes until `_deadline` at most.
    fn holders(
        &self,
        _token: &Address,
        _after: Option<(Address, U256)>,
        _skip: u64,
        _limit: usize,
        _deadline: Option<Instant>,
    ) -> Result<Option<Vec<(Address, U256)>>, QueryError> {
        Ok(None)
    }
}

/// Nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTokenFacts;

impl TokenFacts for NoTokenFacts {
    fn metadata(&self, _: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        Ok(None)
    }

    fn verdict(&self, _: &Address, flagged: bool) -> Result<Verdict, StoreError> {
        Ok(Verdict {
            exactness: if flagged {
                Exactness::Inexact
            } else {
                Exactness::Exact
            },
            zero: ZeroAddress::Burns,
        })
    }
}
