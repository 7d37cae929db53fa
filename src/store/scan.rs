//! Scans: rows of a table in the order of their keys, as one snapshot has them.

use std::sync::Arc;

use rocksdb::{DB, DBRawIteratorWithThreadMode, ReadOptions};
use self_cell::self_cell;

use super::StoreError;
use super::schema::Table;
use super::view::View;
use crate::codec::keys;
use crate::model::Address;

pub(super) type RawIterator<'a> = DBRawIteratorWithThreadMode<'a, DB>;

self_cell!(
    struct ScanCell {
        owner: Arc<View>,
        #[covariant]
        dependent: RawIterator,
    }
);

fn between(from: Vec<u8>, to: Vec<u8>) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(from);
    options.set_iterate_upper_bound(to);
    options
}

/// The options of a scan of rows that have one prefix ([`Profile::History`](super::schema::Profile::History)): its filter may be used.
pub(super) fn within_prefix(from: Vec<u8>, to: Vec<u8>) -> ReadOptions {
    let mut options = between(from, to);
    options.set_prefix_same_as_start(true);
    options
}

fn bounds(from: Vec<u8>, to: Vec<u8>) -> ReadOptions {
    let mut options = between(from, to);
    // Keys of other prefixes may lie between the bounds.
    options.set_total_order_seek(true);
    options
}

enum Raw<'v> {
    Borrowed(RawIterator<'v>),
    Owned(ScanCell),
}

impl Raw<'_> {
    #[inline]
    fn get(&self) -> &RawIterator<'_> {
        match self {
            Self::Borrowed(raw) => raw,
            Self::Owned(cell) => cell.borrow_dependent(),
        }
    }

    #[inline]
    fn with(&mut self, act: impl FnOnce(&mut RawIterator<'_>)) {
        match self {
            Self::Borrowed(raw) => act(raw),
            Self::Owned(cell) => cell.with_dependent_mut(|_, raw| act(raw)),
        }
    }
}

/// A bounded scan. Its end is told from a failure: every step checks the iterator's status.
pub struct Scan<'v> {
    raw: Raw<'v>,
    table: Table,
    /// The key that was sought last, to say where a failure lies.
    near: Vec<u8>,
}

impl std::fmt::Debug for Scan<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// A key and its value.
pub type Item<'a> = (&'a [u8], &'a [u8]);

impl<'v> Scan<'v> {
    const fn over(raw: Raw<'v>, table: Table) -> Self {
        Self {
            raw,
            table,
            near: Vec::new(),
        }
    }
}

impl Scan<'_> {
    fn note(&mut self, key: &[u8]) {
        self.near.clear();
        self.near.extend_from_slice(key);
    }

    /// Moves to the first key at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<Option<Item<'_>>, StoreError> {
        self.note(key);
        self.raw.with(|raw| raw.seek(key));
        self.item()
    }

    /// Moves to the first key behind `key`, which need not be there.
    pub fn seek_behind(&mut self, key: &[u8]) -> Result<Option<Item<'_>>, StoreError> {
        if self.seek(key)?.is_some_and(|(found, _)| found == key) {
            return self.step();
        }
        self.item()
    }

    /// Moves to the last key at or before `key`.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<Option<Item<'_>>, StoreError> {
        self.note(key);
        self.raw.with(|raw| raw.seek_for_prev(key));
        self.item()
    }

    /// Moves one key on. Does nothing at the end.
    pub fn step(&mut self) -> Result<Option<Item<'_>>, StoreError> {
        if self.raw.get().valid() {
            self.raw.with(|raw| raw.next());
        }
        self.item()
    }

    /// Moves one key back. Does nothing at the end.
    pub fn step_back(&mut self) -> Result<Option<Item<'_>>, StoreError> {
        if self.raw.get().valid() {
            self.raw.with(|raw| raw.prev());
        }
        self.item()
    }

    /// The row under the scan; `None` at the end.
    pub fn item(&self) -> Result<Option<Item<'_>>, StoreError> {
        let raw = self.raw.get();
        if let Some(item) = raw.item() {
            return Ok(Some(item));
        }
        raw.status()
            .map_err(StoreError::rocks_at(self.table.name(), &self.near))?;
        Ok(None)
    }
}

impl View {
    /// A scan of a table between two keys, `from` included and `to` not.
    pub fn scan(&self, table: Table, from: Vec<u8>, to: Vec<u8>) -> Result<Scan<'_>, StoreError> {
        let raw = Raw::Borrowed(self.iterator(table, bounds(from, to))?);
        Ok(Scan::over(raw, table))
    }

    /// The same scan, which keeps the view itself: for answers that are made piece by piece.
    pub fn scan_owned(
        self: &Arc<Self>,
        table: Table,
        from: Vec<u8>,
        to: Vec<u8>,
    ) -> Result<Scan<'static>, StoreError> {
        let cell = ScanCell::try_new(Arc::clone(self), |view| view.iterator(table, bounds(from, to)))?;
        let raw = Raw::Owned(cell);
        Ok(Scan::over(raw, table))
    }

    /// A scan of the rows of an account before a number, in a table that has some of each account by number.
    pub fn scan_account(&self, table: Table, account: &Address, end: u64) -> Result<Scan<'_>, StoreError> {
        let [from, to] = [0, end].map(|number| keys::account_at(account, number).to_vec());
        let raw = Raw::Borrowed(self.iterator(table, within_prefix(from, to))?);
        Ok(Scan::over(raw, table))
    }

    /// A scan of a whole table.
    pub fn scan_all(&self, table: Table) -> Result<Scan<'_>, StoreError> {
        let mut options = ReadOptions::default();
        options.set_total_order_seek(true);
        let mut raw = self.iterator(table, options)?;
        raw.seek_to_first();
        let raw = Raw::Borrowed(raw);
        Ok(Scan::over(raw, table))
    }
}

#[cfg(test)]
mod tests {
    use rocksdb::{ColumnFamilyDescriptor, Options};

    use super::super::view::family;
    use super::super::{OpenOptions, Store};
    use super::*;
    use crate::model::{B256, U256};

    /// Files of earlier builds have filters over whole keys in place of accounts, and the same rows.
    #[test]
    fn rows_of_an_account_are_found_by_whatever_filters_they_were_written() {
        let home = tempfile::tempdir().unwrap();
        let open = || Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        drop(open());
        let account = |of: u64| Address::from_word(B256::from(U256::from(of * 3)));
        let put = |db: &DB, numbers: [u64; 2]| {
            for table in [Table::Nonces, Table::Creations] {
                let rows = family(db, table).unwrap();
                for (of, number) in (0..2_000).flat_map(|of| numbers.map(|number| (of, number))) {
                    db.put_cf(rows, keys::account_at(&account(of), number), [7])
                        .unwrap();
                }
                db.flush_cf(rows).unwrap();
            }
        };
        {
            let tables = Table::ALL.iter().map(|table| {
                let mut options = Options::default();
                let mut block = rocksdb::BlockBasedOptions::default();
                block.set_bloom_filter(10.0, false);
                options.set_block_based_table_factory(&block);
                ColumnFamilyDescriptor::new(table.name(), options)
            });
            let path = home.path().join("rocksdb");
            let db = DB::open_cf_descriptors(&Options::default(), path, tables).unwrap();
            put(&db, [5, 6]);
        }
        let store = open();
        put(&store.db, [8, 9]);
        drop(store);
        let store = open();
        let view = store.view();
        for table in [Table::Nonces, Table::Creations] {
            for of in 0..2_000 {
                let last = |end: u64| {
                    let mut scan = view.scan_account(table, &account(of), end).unwrap();
                    let last = scan.seek_back(&keys::account_at(&account(of), end)).unwrap();
                    last.map(|(key, _)| keys::decode_account_at(key).unwrap().1)
                };
                assert_eq!(
                    [5, 6, 8, 9, u64::MAX].map(last),
                    [None, Some(5), Some(6), Some(8), Some(9)]
                );
                let mut scan = view.scan_account(table, &account(of), u64::MAX).unwrap();
                let first = scan.seek(&keys::account_at(&account(of), 0)).unwrap();
                assert_eq!(first.unwrap().0, keys::account_at(&account(of), 5));
                let nobody = Address::from_word(B256::from(U256::from(of * 3 + 1)));
                let mut scan = view.scan_account(table, &nobody, u64::MAX).unwrap();
                assert_eq!(scan.seek(&keys::account_at(&nobody, 0)).unwrap(), None);
                assert_eq!(view.ledger_nonce(&account(of), 7).unwrap(), Some(7));
                assert_eq!(view.ledger_nonce(&nobody, 7).unwrap(), None);
            }
        }
    }
}
