//! Pages of arrays compared with their sums: where a store is opened, and where something is read.

use std::path::Path;

use rocksdb::{DB, DBAccess, DBRawIteratorWithThreadMode, ReadOptions, WriteBatch};

use super::flat::{FlatArray, FlatView};
use super::flats::Flats;
use super::schema::Table;
use super::sums::{SumsRow, key, last_key, row_number, row_of_page, words};
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
    last_among(&mut rows, array)?
        .map(|(number, row)| SumsRow::decode(array, number, row))
        .transpose()
}

/// The last row of an array's sums among those of `meta`: its number, and what it has.
fn last_among<'a, D: DBAccess>(
    rows: &'a mut DBRawIteratorWithThreadMode<'_, D>,
    array: FlatArray,
) -> Result<Option<(u64, &'a [u8])>, StoreError> {
    rows.seek_for_prev(last_key(array));
    rows.status().map_err(StoreError::rocks(Table::Meta.name()))?;
    let last = rows.item();
    Ok(last.and_then(|(key, row)| row_number(array, key).zip(Some(row))))
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
        let of_page = row_of_page(page);
        let lacking = || Self::missing(array, "sums of record", number);
        match self.get(Table::Meta, &key(array, of_page))? {
            Some(row) => {
                if let Some((said, end)) = SumsRow::decode(array, of_page, &row)?.of_page(array, page)
                    && flat.sum(page, end).ok_or_else(lacking)? != said
                {
                    return Err(StoreError::DamagedArray(words(array, page, end)));
                }
            }
            None => {
                let mut rows = self.iterator(Table::Meta, ReadOptions::default())?;
                if last_among(&mut rows, array)?.is_some_and(|(last, _)| of_page < last) {
                    return Err(lacking());
                }
            }
        }
        flat.compared.add(page);
        Ok(())
    }
}
