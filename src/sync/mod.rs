//! The write side: plan, fetch, verify, derive, commit; follow the tip; unwind reorgs.
//!
//! Blocks come from a node or from a recorded chain, always through the same verification, derivation
//! and one writer. Nothing that does not verify is stored. This room knows nothing of queries and HTTP.

pub mod authority;
pub mod derive;
mod encoding;
mod engine;
mod error;
mod fill;
pub mod genesis;
mod keccak;
mod openings;
mod pipeline;
mod reorg;
mod rules;
pub mod verify;

pub use engine::{Engine, SyncOptions};
pub use error::SyncError;
pub use pipeline::{Pipeline, Source, recorded};
pub use rules::ChainRules;
