//! Tokens: what the ledger of their logs says, and what is known of them from elsewhere.

mod audit;
mod facts;
mod observed;

pub use audit::{LedgerBalance, LedgerToken, Touch};
pub use facts::{Exactness, NoTokenFacts, TokenFacts, TokenMetadata, Verdict, ZeroAddress};
pub use observed::{ObservedFacts, is_on, stands};
