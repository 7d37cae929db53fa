//! What is in a store: rows, bytes and digests by table and array.

use std::sync::atomic::Ordering;

use alloy_primitives::Keccak256;

use super::open::FINALITY;
use super::options::is_merged_by_size;
use super::room::free_bytes;
use super::sums::is_row;
use super::view::family;
use super::{FlatArray, Store, StoreError, Table, View, unverified};
use crate::codec::keys::PostingKind;
use crate::model::B256;

/// Figures of a table or array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Name of the table or array.
    pub name: &'static str,
    /// Rows or records.
    pub rows: u64,
    /// Bytes of keys and values, uncompressed.
    pub bytes: u64,
    /// Hash over all keys and values in order. Arrays are hashed whole, whatever part of them is in the
    /// file; `meta` without finality and the sums of files, so that the digest speaks of the chain and not of how it came here.
    pub digest: B256,
}

impl View {
    /// Walks every table and array. Tables of blocks that are not final (`tail`, `undo`) come last, apart.
    pub fn contents(&self) -> Result<Vec<Contents>, StoreError> {
        let mut all = Vec::new();
        for array in FlatArray::ALL {
            let (mut hasher, mut bytes) = (Keccak256::new(), 0);
            for part in self.array_bytes(array) {
                hasher.update(part);
                bytes += part.len() as u64;
            }
            all.push(Contents {
                name: array.name(),
                rows: self.array_len(array),
                bytes,
                digest: hasher.finalize(),
            });
        }
        for table in Table::ALL {
            let mut hasher = Keccak256::new();
            let (mut rows, mut bytes) = (0, 0);
            let mut scan = self.scan_all(table)?;
            while let Some((key, value)) = scan.item()? {
                if !(table == Table::Meta && (key == FINALITY || key == unverified::KEY || is_row(key))) {
                    for part in [key, value] {
                        hasher.update((part.len() as u64).to_be_bytes());
                        hasher.update(part);
                    }
                    rows += 1;
                    bytes += (key.len() + value.len()) as u64;
                }
                scan.step()?;
            }
            all.push(Contents {
                name: table.name(),
                rows,
                bytes,
                digest: hasher.finalize(),
            });
        }
        Ok(all)
    }

    /// One hash over the whole chain as stored: equal chains give equal digests, however they were
    /// fetched, interrupted, unwound and finalized.
    pub fn digest(&self) -> Result<B256, StoreError> {
        let mut hasher = Keccak256::new();
        for contents in self.contents()? {
            if contents.name != Table::Tail.name() && contents.name != Table::Undo.name() {
                hasher.update(contents.name.as_bytes());
                hasher.update(contents.digest);
            }
        }
        Ok(hasher.finalize())
    }
}

/// What a store holds in memory and on disk at the moment, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Blocks in the cache.
    pub cache: u64,
    /// Of those, what cannot be evicted now.
    pub cache_pinned: u64,
    /// Rows of units that are kept by themselves, for they were sought again and again.
    pub kept_rows: u64,
    /// Rows not written to tables yet.
    pub memtables: u64,
    /// Tables, without those that only open snapshots still need.
    pub tables: u64,
    /// Arrays, tails included.
    pub arrays: u64,
    /// What compaction would have to rewrite for every level to be within its size, of tables that are merged by level.
    pub pending_compaction: u64,
    /// The largest table that is merged by size: so much room merging all of it takes for a while.
    pub merge: u64,
    /// Keys and filters of open tables outside the cache.
    pub table_readers: u64,
    /// Room that the file system has left; `None` where it does not tell.
    pub free: Option<u64>,
    /// Whether writes wait, for compactions that are behind or for room on the disk.
    pub write_stopped: bool,
}

impl Store {
    /// What is in memory and on disk, as RocksDB counts it; nothing is read.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let view = self.view();
        Figures {
            cache: self.caches.blocks.get_usage() as u64,
            cache_pinned: self.caches.blocks.get_pinned_usage() as u64,
            kept_rows: self.caches.rows.as_ref().map_or(0, |kept| kept.bytes()),
            memtables: self.unflushed_bytes(),
            tables: self.sum("rocksdb.live-sst-files-size"),
            arrays: FlatArray::ALL
                .iter()
                .map(|&array| view.array_len(array) * array.width() as u64)
                .sum(),
            pending_compaction: self.sum("rocksdb.estimate-pending-compaction-bytes"),
            merge: self.largest_merge(),
            table_readers: self.sum("rocksdb.estimate-table-readers-mem"),
            free: self.free_bytes(),
            write_stopped: self.is_write_stopped(),
        }
    }

    /// Bytes that the file system of the store has left for this user; `None` where it does not tell.
    #[must_use]
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(self.directory())
    }

    /// Whether writes wait: for flushes or compactions that are behind, or for room on the disk.
    #[must_use]
    pub fn is_write_stopped(&self) -> bool {
        self.waits.load(Ordering::Relaxed) || self.table_property(Table::Meta, "rocksdb.is-write-stopped") > 0
    }

    fn largest_merge(&self) -> u64 {
        Table::of(is_merged_by_size)
            .map(|table| self.table_property(table, "rocksdb.live-sst-files-size"))
            .max()
            .unwrap_or(0)
    }

    pub(super) fn sum(&self, property: &str) -> u64 {
        Table::ALL
            .iter()
            .map(|&table| self.table_property(table, property))
            .sum()
    }

    /// Rows that are not in tables yet, bytes.
    pub(super) fn unflushed_bytes(&self) -> u64 {
        self.sum("rocksdb.cur-size-all-mem-tables")
    }

    /// Whether memtables wait for a flush, or are being flushed.
    pub(super) fn is_flushing(&self) -> bool {
        self.sum("rocksdb.num-immutable-mem-table") > 0
    }

    /// About how many bytes on disk the postings of each kind take, open pieces included.
    pub fn posting_bytes(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        let bounds = PostingKind::ALL.map(|kind| ([kind as u8], [kind as u8 + 1]));
        let ranges = bounds.each_ref().map(|(from, to)| rocksdb::Range::new(from, to));
        let sizes = |table| {
            Ok(self
                .db
                .get_approximate_sizes_cf(family(&self.db, table)?, &ranges))
        };
        let sizes = sizes(Table::Postings)?
            .into_iter()
            .zip(sizes(Table::OpenPostings)?);
        Ok(PostingKind::ALL
            .iter()
            .map(|kind| kind.name())
            .zip(sizes.map(|(chunks, pieces)| chunks + pieces))
            .collect())
    }

    /// Estimated rows and bytes on disk of each table, without reading it.
    #[must_use]
    pub fn sizes(&self) -> Vec<(&'static str, u64, u64)> {
        Table::ALL
            .iter()
            .map(|&table| {
                let rows = self.table_property(table, "rocksdb.estimate-num-keys");
                (
                    table.name(),
                    rows,
                    self.table_property(table, "rocksdb.total-sst-files-size"),
                )
            })
            .collect()
    }
}
