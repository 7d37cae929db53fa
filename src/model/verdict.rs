//! What is known of a token beyond its logs.

use super::{BlockId, U256};

/// What a transfer to the zero address is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroAddress {
    /// A burn: the supply shrinks, and the zero address holds nothing.
    #[default]
    Burns,
    /// A transfer like any other: the supply stays, and the zero address holds what it was sent.
    Holds,
}

/// What comparing a token's ledger with its contract has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenVerdict {
    /// Whether its events explain its balances and its supply. What once was not never is again: some block of
    /// its past stays unexplained.
    pub exact: bool,
    /// Which of the two explains `balanceOf(0x0)` and `totalSupply()`.
    pub zero_address: ZeroAddress,
    /// The block of the last comparison.
    pub checked: BlockId,
    /// The block of the comparison that first found what `exact` says, or of a later one that is final: what
    /// stands while `checked` is orphaned.
    pub anchor: Option<BlockId>,
    /// Values compared so far.
    pub compared: u64,
    /// What did not agree; empty for an exact token.
    pub reason: String,
    /// `totalSupply()` at `checked`, where the token is not exact and tells.
    pub supply: Option<U256>,
}
