//! What the operator supplies beside the chain: files in, rows of the store of imports out.
//!
//! An import says how far it is and what it refuses, entry by entry. A file that is broken as a whole (it cannot be read,
//! or is not what it should be) changes nothing: it is read to its end before anything is written. The same import
//! again changes nothing either, where no more than half a batch stands in it several times and differently.

mod contracts;
mod elements;
mod prices;
mod reading;
mod token_entry;
mod tokens;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use contracts::contracts;
pub use prices::{prices, prices_of};
pub use reading::ReadSeek;
pub use tokens::{tokens, tokens_of};

use crate::model::{ImportKind, ImportRecord};
use crate::store::{ImportWriter, StoreError, View};
use crate::{clock, query};

/// An import that took nothing.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("`{}`: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The chain's store could not be asked.
    #[error(transparent)]
    Query(#[from] query::QueryError),
    /// The operator stopped it.
    #[error("interrupted; import again to go on")]
    Interrupted,
}

impl ImportError {
    /// A file that cannot be read.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Read { path, source }
    }
}

/// Who watches an import.
pub trait Watcher: Send + Sync {
    /// `done` of `of` (bytes of a file, entries of a tree; `None` where it is not known) are read.
    fn progress(&self, done: u64, of: Option<u64>);

    /// An entry is refused: which (a line, an address, a path), and why.
    fn rejected(&self, entry: &str, reason: &str);

    /// An entry is taken without one of its fields: which, and why.
    fn left_out(&self, entry: &str, field: &str, reason: &str);

    /// Whether to stop.
    fn stopped(&self) -> bool {
        false
    }
}

/// What an import did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Entries taken, also those that were there already.
    pub taken: u64,
    /// Of these, the ones that were new or changed something.
    pub changed: u64,
    /// Entries that are none of this chain's.
    pub skipped: u64,
    /// Entries that were refused.
    pub rejected: u64,
    /// Fields that entries were taken without.
    pub left_out: u64,
    /// Subdirectories that were not looked into.
    pub directories: u64,
}

impl Report {
    /// The record of the import that ended now.
    #[must_use]
    pub fn record(&self, kind: ImportKind, source: &Path) -> ImportRecord {
        ImportRecord {
            kind,
            source: source.display().to_string(),
            time: clock::unix_seconds(clock::wall()) as u64,
            taken: self.taken,
            rejected: self.rejected,
        }
    }
}

/// Where an import goes to, and the chain that it is checked against.
#[derive(Debug)]
pub struct Target {
    /// A snapshot of the chain's store.
    pub view: Arc<View>,
    /// Takes the rows.
    pub writer: ImportWriter,
}

impl Target {
    /// The chain id.
    #[must_use]
    pub fn chain_id(&self) -> u64 {
        self.view.identity().chain_id
    }
}

#[cfg(test)]
mod tests;
