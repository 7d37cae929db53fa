//! Copies of a chain's store that can be carried away: made beside the process that writes the store, as a directory or
//! as a stream; verified by the hash of every file; restored into a place where no store is.
//!
//! What a consistent copy of the files is, `store` knows. This room hashes, packs, names and moves.

mod create;
mod error;
mod files;
mod manifest;
mod name;
mod place;
mod read;
mod restore;
mod stream;

pub use create::{create, stream};
pub use error::CheckpointError;
pub use manifest::{FORMAT, Manifest, Named, Part};
pub use place::Place;
pub use read::{Source, verify};
pub use restore::restore;

/// The manifest's file, which is written last: without it there is no checkpoint.
pub const MANIFEST: &str = "checkpoint.json";

/// Hears how far the work is, and may end it.
pub trait Watcher: Send + Sync {
    /// So many bytes of so many (where that is known) are done.
    fn progress(&self, done: u64, of: Option<u64>);
    /// Whether the work is to end now.
    fn stopped(&self) -> bool;
}
