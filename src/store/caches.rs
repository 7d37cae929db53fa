//! What a store keeps in memory of what was read.

use std::sync::Arc;

use rocksdb::Cache;

use super::dense::DenseSince;
use super::kept_rows::{self, KeptRows};
use super::options;

/// Shared by whoever has it.
#[derive(Clone)]
pub(super) struct Caches {
    /// All blocks, indexes and filters of all tables.
    pub(super) blocks: Cache,
    /// Rows that were sought again and again, for all views of the store.
    pub(super) rows: Option<Arc<KeptRows>>,
    /// Since when terms are dense.
    pub(super) dense: Arc<DenseSince>,
}

impl Caches {
    /// So many bytes for both.
    pub(super) fn new(bytes: usize) -> Self {
        let rows = kept_rows::share_of(bytes);
        Self {
            blocks: options::cache(bytes - rows),
            rows: KeptRows::new(rows),
            dense: Arc::default(),
        }
    }

    /// Begins with nothing but blocks, for another store than before; views of that one keep what they have. `bytes` as in [`Self::new`].
    pub(super) fn leave_rows(&mut self, bytes: usize) {
        self.rows = KeptRows::new(kept_rows::share_of(bytes));
        self.dense = Arc::default();
    }
}
