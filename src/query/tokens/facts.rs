//! What is known of tokens from elsewhere than the chain's blocks. Whoever has it implements [`TokenFacts`];
//! with nothing behind it metadata is null, and every token that the ledger does not doubt is exact.

use std::fmt;

use crate::model::{Address, TokenMetadata, U256};
use crate::store::StoreError;

/// What a transfer to the zero address is for a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroAddress {
    /// A burn: supply falls, and the zero address holds nothing.
    #[default]
    Burns,
    /// A transfer like any other: the zero address is a holder, and supply is what was minted.
    Holds,
}

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
/// The values are asked for only of tokens whose verdict is not [`Exactness::Exact`]; `None` leaves the
/// question to the ledger.
pub trait TokenFacts: fmt::Debug + Send + Sync {
    /// What the contract says of itself.
    fn metadata(&self, token: &Address) -> Result<TokenMetadata, StoreError>;

    /// The verdict; `flagged` says that the ledger itself doubts the token.
    fn verdict(&self, token: &Address, flagged: bool) -> Result<Verdict, StoreError>;

    /// The supply as the contract said last.
    fn supply(&self, _token: &Address) -> Result<Option<U256>, StoreError> {
        Ok(None)
    }

    /// What a holder has as the contract said last.
    fn balance(&self, _token: &Address, _holder: &Address) -> Result<Option<U256>, StoreError> {
        Ok(None)
    }

    /// How many accounts hold some of the token by what the contract said last.
    fn holder_count(&self, _token: &Address) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// The holders by what the contract said last: largest first, then by address, `skip` of them left out.
    fn holders(
        &self,
        _token: &Address,
        _skip: u64,
        _limit: usize,
    ) -> Result<Option<Vec<(Address, U256)>>, StoreError> {
        Ok(None)
    }
}

/// Nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTokenFacts;

impl TokenFacts for NoTokenFacts {
    fn metadata(&self, _: &Address) -> Result<TokenMetadata, StoreError> {
        Ok(TokenMetadata::default())
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
