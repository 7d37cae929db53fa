//! Bulk mode: while much is written and nothing of it may be unwound, flushed files are merged with what lies below them
//! when there are more of them (decision 0038). Reading costs more meanwhile, so the mode ends with the first block
//! that is not final, and with the work.

use std::sync::atomic::Ordering;

use super::open::{Store, memtable_of_table};
use super::options::{self, FIRST_MEMTABLE_BYTES, LEVELS, SORTED_RUNS_MAX};
use super::schema::{Profile, Table};
use super::view::family;

/// A load is a bulk load from so many bytes of rows on: some million logs.
const FROM_BYTES: usize = 1 << 30;

/// A write of so many bytes is one of a load, whose tables may have more in memory.
const MUCH_AT_ONCE: usize = 1 << 20;

/// Flushed files of a table before they are merged (RocksDB's option).
const TRIGGER: &str = "level0_file_num_compaction_trigger";
/// Fewer merges of larger files: measured, two thirds of their time on cores in a load of 10 M logs, and less in longer ones.
const BULK: i32 = 12;
/// RocksDB's own.
const USUAL: i32 = 4;

/// Files of level 0 of one table that a writer waits for, as long as anything is merged: what RocksDB has by itself, and more in bulk.
pub(super) const FILES_MAX: u64 = 36;
const FILES_MAX_IN_BULK: u64 = 60;

/// How much was written since a block could last be unwound.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    bytes: usize,
    is_on: bool,
    /// Whether tables may have more in memory than when they were opened.
    is_roomy: bool,
}

impl Bulk {
    /// Takes notice of a write of final blocks that is about to be made.
    pub(super) fn writes(&mut self, store: &Store, bytes: usize) {
        if bytes >= MUCH_AT_ONCE && !std::mem::replace(&mut self.is_roomy, true) {
            store.give_memtables_room();
        }
    }

    /// Takes notice of a write of final blocks.
    pub(super) fn wrote(&mut self, store: &Store, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes >= FROM_BYTES && !self.is_on {
            self.is_on = true;
            store.merge_at(BULK, BULK);
        }
    }

    /// Files of level 0 of one table, before the writer waits for merges.
    pub(super) const fn files_max(&self) -> u64 {
        if self.is_on { FILES_MAX_IN_BULK } else { FILES_MAX }
    }

    /// Ends it.
    pub(super) fn end(&mut self, store: &Store) {
        self.bytes = 0;
        if std::mem::take(&mut self.is_on) {
            store.merge_at(USUAL, SORTED_RUNS_MAX);
            store.owes_merging.store(true, Ordering::Relaxed);
        }
    }
}

impl Store {
    /// Lets each table that grows with the chain have its share of the memory of all memtables. RocksDB writes a file of options for each:
    /// 5 ms, where the disk is quick.
    fn give_memtables_room(&self) {
        let share = memtable_of_table(self.memtable_bytes);
        if share > FIRST_MEMTABLE_BYTES {
            options::change(
                &self.db,
                |profile| profile != Profile::Small,
                &[("write_buffer_size", &share.to_string())],
            );
        }
    }

    /// Sets when flushed files are merged, of tables by level and of those by size.
    fn merge_at(&self, by_level: i32, by_size: i32) {
        for (files, is_by_size) in [(by_level, false), (by_size, true)] {
            let which =
                |profile| profile != Profile::Small && options::is_merged_by_size(profile) == is_by_size;
            options::change(&self.db, which, &[(TRIGGER, &files.to_string())]);
        }
        tracing::debug!(files = by_level, "flushed files are merged");
    }

    /// Whether a bulk load left files to be merged, and they are not merged yet.
    #[must_use]
    pub fn is_merging(&self) -> bool {
        let merging = self.owes_merging.load(Ordering::Relaxed)
            && (Table::ALL.iter().any(|&table| self.wants_merging(table)) || self.is_compacting());
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
        let below = (1..LEVELS).filter(|&level| self.files_at(table, level) > 0);
        self.files_at(table, 0) + below.count() as u64
    }

    fn files_at(&self, table: Table, level: usize) -> u64 {
        let property = format!("rocksdb.num-files-at-level{level}");
        let told = family(&self.db, table).ok();
        let told = told.and_then(|family| self.db.property_value_cf(family, &property).ok().flatten());
        told.and_then(|files| files.parse().ok()).unwrap_or(0)
    }

    /// Whether a table has more flushed files than that, and something is being merged that they wait for.
    pub(super) fn is_behind_with_merging(&self, files: u64) -> bool {
        // A commit at the tip asks, too, and mostly nothing is merged: that is one look, files are one for each table.
        self.is_compacting() && Table::ALL.iter().any(|&table| self.files_at(table, 0) > files)
    }

    fn is_compacting(&self) -> bool {
        self.table_property(Table::Meta, "rocksdb.num-running-compactions") > 0
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
        assert_eq!(merging_at(&store, BULK), 0);
        bulk.wrote(&store, 1);
        let tables = Table::of(|profile| profile != Profile::Small);
        assert_eq!(merging_at(&store, BULK), tables.count());
        bulk.end(&store);
        assert_eq!(merging_at(&store, BULK), 0);
        assert!(store.owes_merging.load(Ordering::Relaxed));
        while store.is_merging() {
            std::thread::yield_now();
        }
        assert!(!store.owes_merging.load(Ordering::Relaxed));
        // And what was written before counts no more.
        bulk.wrote(&store, 1);
        assert_eq!(merging_at(&store, BULK), 0);
    }

    #[test]
    fn tables_have_little_in_memory_until_much_is_written_at_once() {
        let home = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            memtable_bytes: 96 << 20,
            ..OpenOptions::new(home.path())
        };
        let store = Store::open_or_create(&options, 1, B256::ZERO, None).unwrap();
        let having = |bytes: usize| written(&store, &format!("write_buffer_size={bytes}"));
        let all = Table::ALL.len();
        let grow = Table::of(|profile| profile != Profile::Small).count();
        assert_eq!((having(FIRST_MEMTABLE_BYTES), having(48 << 20)), (all, 0));
        // Nor does the table that nobody uses have what a disk that was full would have to have free.
        assert_eq!(having(64 << 20), 0);
        let mut bulk = Bulk::default();
        bulk.writes(&store, MUCH_AT_ONCE - 1);
        assert_eq!(having(48 << 20), 0);
        bulk.writes(&store, MUCH_AT_ONCE);
        assert_eq!(
            (having(FIRST_MEMTABLE_BYTES), having(48 << 20)),
            (all - grow, grow)
        );
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
        // There are more, and nothing is merged that they would wait for.
        assert!(!store.is_behind_with_merging(RUNS - 1));
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
