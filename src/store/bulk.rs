//! Bulk mode: while much is written and nothing of it may be unwound, flushed files are merged with what lies below them
//! when there are more of them (decision 0038). Reading costs more meanwhile, so the mode ends with the first block
//! that is not final, and with the work.

use std::sync::atomic::Ordering;

use super::open::Store;
use super::options;
use super::schema::{Profile, Table};

/// A load is a bulk load from so many bytes of rows on: some million logs.
const FROM_BYTES: usize = 1 << 30;

/// Flushed files of a table before they are merged, before writes are slowed down, and before they stop.
const TRIGGERS: [&str; 3] = [
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
];
/// Fewer merges of larger files: measured, two thirds of their time on cores in a load of 10 M logs, and less in longer ones.
const BULK: [&str; 3] = ["12", "40", "60"];
/// RocksDB's own.
const USUAL: [&str; 3] = ["4", "20", "36"];

/// How much was written since a block could last be unwound.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    bytes: usize,
    is_on: bool,
}

impl Bulk {
    /// Takes notice of a write of final blocks.
    pub(super) fn wrote(&mut self, store: &Store, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= FROM_BYTES && !self.is_on {
            self.is_on = true;
            store.merge_at(BULK);
        }
    }

    /// Ends it.
    pub(super) fn end(&mut self, store: &Store) {
        self.bytes = 0;
        if std::mem::take(&mut self.is_on) {
            store.merge_at(USUAL);
            store.owes_merging.store(true, Ordering::Relaxed);
        }
    }
}

impl Store {
    fn merge_at(&self, triggers: [&str; 3]) {
        let changes: Vec<_> = TRIGGERS.into_iter().zip(triggers).collect();
        options::change(&self.db, |profile| profile != Profile::Small, &changes);
        tracing::debug!(files = triggers[0], "flushed files are merged");
    }

    /// Whether a bulk load left files to be merged, and they are not merged yet.
    #[must_use]
    pub fn is_merging(&self) -> bool {
        let merging = self.owes_merging.load(Ordering::Relaxed)
            && (self.sum("rocksdb.compaction-pending") > 0
                || self.table_property(Table::Meta, "rocksdb.num-running-compactions") > 0);
        if !merging {
            self.owes_merging.store(false, Ordering::Relaxed);
        }
        merging
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::B256;
    use crate::store::OpenOptions;
    use crate::store::options::written;

    fn merging_at(store: &Store, files: &str) -> usize {
        let line = format!("level0_file_num_compaction_trigger={files}");
        written(store, &line)
    }

    #[test]
    fn a_bulk_load_begins_with_a_gigabyte_and_ends() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        let mut bulk = Bulk::default();
        bulk.wrote(&store, FROM_BYTES - 1);
        assert_eq!(merging_at(&store, BULK[0]), 0);
        bulk.wrote(&store, 1);
        let tables = Table::ALL
            .iter()
            .filter(|table| table.describe().profile != Profile::Small);
        assert_eq!(merging_at(&store, BULK[0]), tables.count());
        bulk.end(&store);
        assert_eq!(merging_at(&store, BULK[0]), 0);
        assert!(store.owes_merging.load(Ordering::Relaxed));
        while store.is_merging() {
            std::thread::yield_now();
        }
        assert!(!store.owes_merging.load(Ordering::Relaxed));
        // And what was written before counts no more.
        bulk.wrote(&store, 1);
        assert_eq!(merging_at(&store, BULK[0]), 0);
    }
}
