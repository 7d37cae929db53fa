//! Looking rows up by many sorted keys at a time.

use std::ops::Range;

use rocksdb::{DBPinnableSlice, ReadOptions};

use super::StoreError;
use super::open::Store;
use super::schema::Table;
use super::view::family;

/// Keys looked up at a time: enough for RocksDB to sort and share block reads.
pub(super) const LOOK_UPS: usize = 1024;

/// Keys of different lengths, one after the other in one buffer.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<Range<usize>>,
}

impl Keys {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds what `write` appends; keys ascend.
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.ends.push(start..self.bytes.len());
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.ends
            .iter()
            .map(|range| self.bytes.get(range.clone()).unwrap_or(&[]))
    }
}

/// The rows under keys, which ascend, in their order.
pub(super) fn look_up<'s, 'k, K: AsRef<[u8]> + ?Sized + 'k>(
    store: &'s Store,
    table: Table,
    keys: impl IntoIterator<Item = &'k K> + Clone,
) -> Result<Vec<Option<DBPinnableSlice<'s>>>, StoreError> {
    let family = family(&store.db, table)?;
    let options = ReadOptions::default();
    let found = store
        .db
        .batched_multi_get_cf_opt(family, keys.clone(), true, &options);
    let rows = found.into_iter().zip(keys);
    rows.map(|(row, key)| row.map_err(StoreError::rocks_at(table.name(), key.as_ref())))
        .collect()
}
