//! Plain values of an EVM chain, in the field's terms.
//!
//! This room holds data and small facts about it. It knows nothing of bytes on
//! disk, of JSON, of sockets, of who asks or who answers.

mod block;
mod contract;
mod day;
mod entry;
mod forks;
mod import;
mod price;
mod project;
mod rewards;
mod text;
pub mod token;
mod trace;
mod transaction;
mod verdict;

pub use alloy_primitives::{Address, B64, B256, Bloom, Bytes, U256};
pub use block::{Block, BlockRange, Bundle, Header, UNFINAL_BLOCKS_MAX, Withdrawal};
pub use contract::{ContractFacts, ContractNames, CustomError, MatchKind};
pub use day::Day;
pub use entry::{
    BlockEntry, BlockId, InternalTransaction, ListedTransaction, ListedTransfer, LogEntry, MinedBlock,
    PlacedLog, TransactionEntry,
};
pub use forks::{ForkRules, genesis_allocation};
pub use import::{ImportKind, ImportRecord};
pub use price::{Asset, FeedFacts, PriceFeeds, PriceSource, StatedPrices, Usd};
pub use project::TokenProject;
pub use rewards::{StaticRewards, blob_base_fee, uncle_eighths, uncle_inclusion_reward};
pub use text::{AddressFault, is_path, shown_text, shown_url, written_address};
pub use token::{MultiItems, TokenEvent, TokenKind, TokenMetadata};
pub use trace::{Frame, FrameKind, TransactionTrace};
pub use transaction::{AccessListItem, Authorization, Log, Receipt, Topics, Transaction, created_contract};
pub use verdict::{Difference, NATIVE_COIN, TokenVerdict, ToldMetadata, ZeroAddress};

/// Which of the two chains of the API an answer speaks of (`chain` parameter).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChainName {
    /// `mainnet`, the default.
    #[default]
    Mainnet,
    /// `testnet`.
    Testnet,
}

impl ChainName {
    /// Both chains, in the order in which they are shown.
    pub const ALL: [Self; 2] = [Self::Mainnet, Self::Testnet];

    /// The text of the `chain` parameter.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mainnet => "mainnet",
            Self::Testnet => "testnet",
        }
    }
}

impl std::fmt::Display for ChainName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for ChainName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|chain| chain.as_str() == text)
            .ok_or_else(|| format!("unknown chain `{text}`: expected `mainnet` or `testnet`"))
    }
}
