//! What is known of a token beyond its logs.

use super::{Address, BlockId, TokenMetadata, U256};

/// What a transfer to the zero address is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZeroAddress {
    /// A burn: the supply shrinks, and the zero address holds nothing.
    #[default]
    Burns,
    /// A transfer like any other: the supply stays, and the zero address holds what it was sent.
    Holds,
    /// Nothing had been sent there when it was compared, so either explained it: taken for a burn until it is compared again.
    Untold,
}

impl ZeroAddress {
    /// The supply of a token, of what was minted and what was sent to the zero address; 0 where more was sent
    /// there than minted.
    #[must_use]
    pub fn supply(self, minted: U256, to_zero: U256) -> U256 {
        match self {
            Self::Burns | Self::Untold => minted.saturating_sub(to_zero),
            Self::Holds => minted,
        }
    }

    /// What the zero address has, of what was sent there.
    #[must_use]
    pub const fn zero_holds(self, to_zero: U256) -> U256 {
        match self {
            Self::Burns | Self::Untold => U256::ZERO,
            Self::Holds => to_zero,
        }
    }
}

/// What comparing a token's ledger with its contract has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenVerdict {
    /// Whether its events explain its balances and its supply. What once was not is so again only where the very
    /// difference turns out to have been none: else some block of its past stays unexplained.
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
    /// What did not agree, where it can be looked at again: of a token that comparing showed not to be exact.
    pub differed: Option<Difference>,
}

/// What did not agree in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// After which block.
    pub at: BlockId,
    /// Whose balance; `None` where it was the supply or the zero address.
    pub holder: Option<Address>,
    /// How often it was looked at again.
    pub trials: u32,
}

/// What a token's contract said of itself, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldMetadata {
    /// Its words.
    pub metadata: TokenMetadata,
    /// After which block it said so. On a chain without that block another contract may stand at the address. `None` where it
    /// was not kept: trusted.
    pub anchor: Option<BlockId>,
}

impl From<TokenMetadata> for ToldMetadata {
    fn from(metadata: TokenMetadata) -> Self {
        Self {
            metadata,
            anchor: None,
        }
    }
}

/// The address that stands for the native coin where there is one for a token (EIP-7528): the verdict on the ledger of
/// native balances is kept under it.
pub const NATIVE_COIN: Address = Address::repeat_byte(0xee);
