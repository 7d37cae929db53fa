//! Pages of arrays compared with their sums: where a store is opened, and where something is read.

use std::path::Path;

use rocksdb::{DB, ReadOptions, WriteBatch};

use super::flat::{FlatArray, FlatView};
use super::flats::Flats;
use super::schema::Table;
use super::sums::{SumsRow, last_key, row_number, words};
use super::view::family;
use super::{StoreError, View, memory};

/// The log says so where sums are made of more than this: what takes a second or longer.
const MANY_BYTES: u64 = 1 << 30;

/// So much of the rows is written at a time: the sums of some 250 MB.
const PIECE_BYTES: usize = 64 << 10;

/// Takes up the sums that a store has, and makes those that it lacks: of arrays that were filled by a quarry that knew none, or
/// brought up from an older layout.
pub(super) fn take_up(db: &DB, directory: &Path, flats: &mut Flats) -> Result<(), StoreError> {
    flats.take_up_sums(directory, |array| last_row(db, array))?;
    let bytes = flats.unsummed_bytes();
    if bytes > MANY_BYTES {
        tracing::info!(bytes, "summing the arrays, once");
    }
    let meta = family(db, Table::Meta)?;
    let mut write = WriteBatch::default();
    let put = |write: WriteBatch| db.write(write).map_err(StoreError::rocks(Table::Meta.name()));
    flats.sum(|key, row| {
        write.put_cf(meta, key, row);
        match write.size_in_bytes() < PIECE_BYTES {
            true => Ok(()),
            // An opening that is cut short leaves what it made to the next one.
            false => put(std::mem::take(&mut write)),
        }
    })?;
    match write.is_empty() {
        true => Ok(()),
        false => put(write),
    }
}

/// The last row of an array's sums.
fn last_row(db: &DB, array: FlatArray) -> Result<Option<SumsRow>, StoreError> {
    let mut rows = db.raw_iterator_cf_opt(family(db, Table::Meta)?, ReadOptions::default());
    rows.seek_for_prev(last_key(array));
    rows.status().map_err(StoreError::rocks(Table::Meta.name()))?;
    let Some((key, row)) = rows.item() else {
        return Ok(None);
    };
    row_number(array, key)
        .map(|number| SumsRow::decode(array, number, row))
        .transpose()
}

impl View {
    /// Compares the page of a record with its sum, so that nothing of it is taken for what was written that is not. A store that was never
    /// opened for writing since sums are made may have none: then it is taken as it is.
    #[cold]
    pub(super) fn compare_page(
        &self,
        array: FlatArray,
        flat: &FlatView,
        number: u64,
    ) -> Result<(), StoreError> {
        if memory::forbids() {
            // Most of a page may have to be read; whoever must not wait asks again where it may.
            return Err(Self::missing(array, "page of record", number));
        }
        let page = number >> array.page_shift();
        let key = array.sums_key(page);
        let row = self.get(Table::Meta, &key)?;
        let of_row = row_number(array, &key).zip(row);
        let row = of_row.map(|(number, row)| SumsRow::decode(array, number, &row));
        let lacking = || Self::missing(array, "sums of record", number);
        match row.transpose()? {
            Some(row) => {
                if let Some((said, end)) = row.of_page(array, page)
                    && flat.sum(page, end).ok_or_else(lacking)? != said
                {
                    return Err(StoreError::DamagedArray(words(array, page, end)));
                }
            }
            None if self.has_sums_behind(array, &key)? => return Err(lacking()),
            None => {}
        }
        flat.compared.add(page);
        Ok(())
    }

    /// Whether an array has a row of sums behind a key.
    fn has_sums_behind(&self, array: FlatArray, key: &[u8]) -> Result<bool, StoreError> {
        let mut rows = self.iterator(Table::Meta, ReadOptions::default())?;
        rows.seek_for_prev(last_key(array));
        rows.status().map_err(StoreError::rocks(Table::Meta.name()))?;
        Ok(rows
            .key()
            .is_some_and(|last| last > key && row_number(array, last).is_some()))
    }
}
