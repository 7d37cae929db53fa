//! Scans: rows of a table in the order of their keys, as one snapshot has them.

use std::sync::Arc;

use rocksdb::{DB, DBRawIteratorWithThreadMode, ReadOptions};
use self_cell::self_cell;

use super::StoreError;
use super::schema::Table;
use super::view::View;

pub(super) type RawIterator<'a> = DBRawIteratorWithThreadMode<'a, DB>;

self_cell!(
    struct ScanCell {
        owner: Arc<View>,
        #[covariant]
        dependent: RawIterator,
    }
);

fn bounds(from: Vec<u8>, to: Vec<u8>) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(from);
    options.set_iterate_upper_bound(to);
    // Keys of other prefixes may lie between the bounds.
    options.set_total_order_seek(true);
    // Long scans must not push the hot blocks of everybody else out; lists are short or sequential.
    options.set_auto_readahead_size(true);
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
