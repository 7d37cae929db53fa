//! Tokens: what the ledger of their logs says, and what is known of them from elsewhere.

mod facts;

pub use facts::{Exactness, NoTokenFacts, TokenFacts, TokenMetadata, Verdict, ZeroAddress};
