//! Bulk mode: while much is written and nothing of it may be unwound, flushed files are merged with what lies below them
//! when there are more of them (decision 0038). Reading costs more meanwhile, so the mode ends with the first block
//! that is not final, and with the work.

use std::sync::atomic::Ordering;

use super::open::Store;
use super::options::{self, LEVELS, SORTED_RUNS_MAX};
use super::schema::{Profile, Table};
use super::view::family;

/// A load is a bulk load from so many bytes of rows on: some million logs.
const FROM_BYTES: usize = 1 << 30;

/// Flushed files of a table before they are merged, before writes are slowed down, and before they stop.
const TRIGGERS: [&str; 3] = [
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
];
/// Fewer merges of larger files: measured, two thirds of their time on cores in a load of 10 M logs, and less in longer ones.
const BULK: [i32; 3] = [12, 40, 60];
/// RocksDB's own, and what a table that is merged by size has.
const USUAL: [i32; 3] = [4, 20, 36];
const USUAL_BY_SIZE: [i32; 3] = [SORTED_RUNS_MAX, 20, 36];

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
            store.merge_at(BULK, BULK);
        }
    }

    /// Ends it.
    pub(super) fn end(&mut self, store: &Store) {
        self.bytes = 0;
        if std::mem::take(&mut self.is_on) {
            store.merge_at(USUAL, USUAL_BY_SIZE);
            store.owes_merging.store(true, Ordering::Relaxed);
        }
    }
}

impl Store {
    /// Sets when flushed files are merged, of tables by level and of those by size.
    fn merge_at(&self, by_level: [i32; 3], by_size: [i32; 3]) {
        for (triggers, is_by_size) in [(by_level, false), (by_size, true)] {
            let triggers = triggers.map(|files| files.to_string());
            let changes: Vec<_> = TRIGGERS
                .into_iter()
                .zip(triggers.iter().map(String::as_str))
                .collect();
            let which =
                |profile| profile != Profile::Small && options::is_merged_by_size(profile) == is_by_size;
            options::change(&self.db, which, &changes);
        }
        tracing::debug!(files = by_level[0], "flushed files are merged");
    }

    /// Whether a bulk load left files to be merged, and they are not merged yet.
    #[must_use]
    pub fn is_merging(&self) -> bool {
        let merging = self.owes_merging.load(Ordering::Relaxed)
            && (Table::ALL.iter().any(|&table| self.wants_merging(table))
                || self.table_property(Table::Meta, "rocksdb.num-running-compactions") > 0);
        if !merging {
            self.owes_merging.store(false, Ordering::Relaxed);
        }
        merging
    }

    fn wants_merging(&self, table: Table) -> bool {
        // RocksDB says of a table that is merged by size that it waits while it has as many runs as it may have.
        if options::is_merged_by_size(table.describe().profile) {
            self.sorted_runs(table) > SORTED_RUNS_MAX.unsigned_abs().into()
        } else {
            self.table_property(table, "rocksdb.compaction-pending") > 0
        }
    }

    /// Sorted runs of a table: files of level 0, and levels below it that have any.
    fn sorted_runs(&self, table: Table) -> u64 {
        let files = |level: usize| {
            let property = format!("rocksdb.num-files-at-level{level}");
            let told = family(&self.db, table).ok();
            let told = told.and_then(|family| self.db.property_value_cf(family, &property).ok().flatten());
            told.and_then(|files| files.parse().ok()).unwrap_or(0_u64)
        };
        files(0) + (1..LEVELS).filter(|&level| files(level) > 0).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::B256;
    use crate::store::OpenOptions;
    use crate::store::options::written;

    fn merging_at(store: &Store, files: i32) -> usize {
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

    #[test]
    fn a_bulk_load_leaves_no_more_sorted_runs_than_a_table_may_have() {
        const RUNS: u64 = 10;
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        let mut bulk = Bulk::default();
        bulk.wrote(&store, FROM_BYTES);
        let hashes = family(&store.db, Table::Hashes).unwrap();
        for run in 0..RUNS {
            for key in 0..100_u64 {
                let key = (key * RUNS + run).to_be_bytes();
                store.db.put_cf(hashes, key, run.to_be_bytes()).unwrap();
            }
            store.db.flush_cf(hashes).unwrap();
        }
        assert_eq!(store.sorted_runs(Table::Hashes), RUNS);
        assert_eq!(store.sorted_runs(Table::Emitters), 0);
        bulk.end(&store);
        while store.is_merging() {
            std::thread::yield_now();
        }
        let left = store.sorted_runs(Table::Hashes);
        assert!((1..=SORTED_RUNS_MAX as u64).contains(&left), "{left} runs");
        for key in 0..100 * RUNS {
            let value = store.db.get_cf(hashes, key.to_be_bytes()).unwrap();
            assert_eq!(value.as_deref(), Some((key % RUNS).to_be_bytes().as_slice()));
        }
    }
}
