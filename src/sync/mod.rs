//! The write side: plan, fetch, verify, derive, commit; follow the tip; unwind reorgs.
//!
//! Blocks come from a node, from a recorded chain or from whoever embeds the crate, always through the same verification, derivation
//! and one writer. Nothing that does not verify is stored. This room knows nothing of queries and HTTP.

mod allocation;
pub mod authority;
pub mod derive;
mod encoding;
mod engine;
mod error;
mod fetch;
mod fill;
mod finality;
mod follow;
pub mod genesis;
mod hand;
mod held;
mod keccak;
mod offers;
mod openings;
mod origin;
mod patience;
mod pipeline;
mod recorded;
mod reorg;
mod rules;
mod self_destructs;
mod side;
mod source;
mod stuck;
pub mod verify;

pub use engine::{Engine, SyncOptions};
pub use error::{FILL_WAITS, SYNC_WAITS, SyncError};
pub use finality::FinalBlocks;
pub use follow::{FollowOptions, Follower};
pub use patience::Patience;
pub use pipeline::{Pipeline, Source};
pub use recorded::recorded;
pub use rules::ChainRules;
pub use self_destructs::tell_apart;
pub use source::{BlockSource, SourceError, SourceFuture, SourceHead};

/// The hash of a header as Ethereum computes it: what a block that a process makes by itself goes by.
#[must_use]
pub fn header_hash(header: &crate::model::Header) -> crate::model::B256 {
    encoding::header_hash(header, &mut Vec::new())
}
