//! Room to write in, and on the disk. RocksDB stops no write (`options`), so whoever writes waits here until it has caught up.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rocksdb::{WriteBatch, WriteOptions};

use super::StoreError;
use super::bulk::FILES_MAX;
use super::open::Store;
use crate::clock;

/// How long a write waits for flushes and merges, and how often they are looked at.
const WAIT_MAX: Duration = Duration::from_secs(30);
const WAIT_LOOK: Duration = Duration::from_millis(2);

/// With less than this RocksDB does not go on after it found a full disk.
const SCARCE_BYTES: u64 = 16 << 20;

/// Bytes that the file system of a directory has left for this user; `None` where it does not tell.
pub(super) fn free_bytes(directory: &Path) -> Option<u64> {
    let told = rustix::fs::statvfs(directory).ok()?;
    Some(told.f_bavail.saturating_mul(told.f_frsize))
}

/// Whether it has next to nothing left.
pub(super) fn is_scarce(directory: &Path) -> bool {
    free_bytes(directory).is_some_and(|free| free < SCARCE_BYTES)
}

impl Store {
    /// Waits until flushes and merges have caught up: memtables may take twice what the operator gave them, and more than `files` files of
    /// level 0 are in the way of every look-up. A flush that finds no room on the disk never catches up, and a table that is merged whole takes
    /// its time; after a while the write goes on, and hears from RocksDB what is wrong.
    pub(super) fn make_room(&self, files: u64) {
        let most = 2 * self.memtable_bytes as u64;
        let began = clock::now();
        // Empty memtables take room, too: without a flush under way there is nothing to wait for.
        let behind =
            || (self.unflushed_bytes() > most && self.is_flushing()) || self.is_behind_with_merging(files);
        while behind() && clock::now() - began < WAIT_MAX {
            self.waits.store(true, Ordering::Relaxed);
            std::thread::sleep(WAIT_LOOK);
        }
        self.waits.store(false, Ordering::Relaxed);
    }

    /// Writes rows of a migration, which needs no log, once so many bytes of them are together.
    pub(super) fn write_unlogged(&self, rows: &mut WriteBatch, least: usize) -> Result<(), StoreError> {
        if rows.size_in_bytes() < least {
            return Ok(());
        }
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.make_room(FILES_MAX);
        self.db
            .write_opt(std::mem::take(rows), &options)
            .map_err(StoreError::rocks("database"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::OpenOptions;
    use super::super::schema::Table;
    use super::super::view::family;
    use super::*;
    use crate::model::B256;

    /// A disk is slower than memory: what is not flushed would be nearly all that was written.
    #[test]
    fn a_migration_waits_for_what_it_wrote_to_be_flushed() {
        const ROW: usize = 1 << 20;
        let home = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            memtable_bytes: 4 * ROW,
            ..OpenOptions::new(home.path())
        };
        let store = Store::open_or_create(&options, 1, B256::ZERO, None).unwrap();
        let frames = family(&store.db, Table::Frames).unwrap();
        let (mut rows, mut most) = (WriteBatch::default(), 0);
        let mut noise = fastrand::Rng::with_seed(1);
        let row: Vec<u8> = (0..ROW).map(|_| noise.u8(..)).collect();
        for number in 0..300_u64 {
            store.write_unlogged(&mut rows, ROW).unwrap();
            rows.put_cf(frames, number.to_be_bytes(), &row);
            most = most.max(store.unflushed_bytes());
        }
        // Twice the memory, the write that came last, and what empty memtables take.
        assert!(most < 16 * ROW as u64, "{most} bytes were not flushed");
    }
}
