//! Sums over the files of arrays: what RocksDB's checksums are to its tables.
//!
//! A file is summed page by page, of the largest power of two of records that 32 KiB hold, and the sums lie in rows of `meta`,
//! which are written together with the finality that says how long the files are. A page is compared when something of it is read for
//! the first time since the store was opened: a look at one bit after that. What this process writes it takes for right, after it has compared
//! what lay in the last page before.

use std::sync::atomic::{AtomicU64, Ordering};

use twox_hash::XxHash3_64;

use super::StoreError;
use super::flat::FlatArray;
use super::schema::Table;
use crate::codec::Corrupt;

/// What the keys of rows begin with.
const PREFIX: &[u8] = b"sums";
/// Pages of a row: one that is not full is written anew with each commit.
const ROW_PAGES: u64 = 32;
const PAGE_BYTES: usize = 32 << 10;

impl FlatArray {
    /// The records of a page are two to the power of this.
    pub(super) const fn page_shift(self) -> u32 {
        (PAGE_BYTES / self.width()).ilog2()
    }
}

/// The number of the row that has the sum of a page.
pub(super) const fn row_of_page(page: u64) -> u64 {
    page / ROW_PAGES
}

/// Whether a row of `meta` is of sums.
pub(super) fn is_row(key: &[u8]) -> bool {
    key.len() == PREFIX.len() + 9 && key.starts_with(PREFIX)
}

/// The key of a row: the array and the number of the row among its own.
pub(super) fn key(array: FlatArray, row: u64) -> Vec<u8> {
    let mut key = PREFIX.to_vec();
    key.push(array as u8);
    key.extend_from_slice(&row.to_be_bytes());
    key
}

/// The number of the row that a key is of, where it is one of this array.
pub(super) fn row_number(array: FlatArray, key: &[u8]) -> Option<u64> {
    let rest = key.strip_prefix(PREFIX)?.strip_prefix(&[array as u8])?;
    rest.try_into().map(u64::from_be_bytes).ok()
}

/// The key that none of an array's rows comes after.
pub(super) fn last_key(array: FlatArray) -> Vec<u8> {
    key(array, u64::MAX)
}

/// The sum of a page, or of as much of it as there is.
pub(super) fn sum(array: FlatArray, page: u64, records: &[u8]) -> u64 {
    // Seeded, so that a page in the place of another, or a shorter one of zeros, is none.
    let seed = page << 8 | array as u64;
    XxHash3_64::oneshot_with_seed(seed, records) ^ records.len() as u64
}

/// The sum of a page of a file up to a record; `None` where the file is not so long.
pub(super) fn of_map(array: FlatArray, map: &[u8], page: u64, end: u64) -> Option<u64> {
    let width = array.width() as u64;
    let bytes = ((page << array.page_shift()) * width) as usize..(end * width) as usize;
    map.get(bytes).map(|records| sum(array, page, records))
}

/// What is wrong with a page, up to a record.
pub(super) fn words(array: FlatArray, page: u64, end: u64) -> String {
    let first = page << array.page_shift();
    let (name, last) = (array.name(), end.saturating_sub(1));
    format!("records {first} to {last} of `{name}.flat` are not what was written")
}

/// Sums of pages that follow each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SumsRow {
    /// Its number among the array's.
    pub(super) number: u64,
    /// So many records of the array are summed by this row and those before it: its last page may not be full.
    pub(super) records: u64,
    /// By page.
    pub(super) sums: Vec<u64>,
}

impl SumsRow {
    /// What `meta` has.
    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = std::iter::once(&self.records).chain(&self.sums);
        numbers.flat_map(|number| number.to_be_bytes()).collect()
    }

    /// Reads a row.
    pub(super) fn decode(array: FlatArray, number: u64, bytes: &[u8]) -> Result<Self, StoreError> {
        let corrupt = || {
            let key = key(array, number);
            StoreError::corrupt(Table::Meta.name(), &key)(Corrupt("sums of an array"))
        };
        let (numbers, rest) = bytes.as_chunks::<8>();
        let mut numbers = numbers.iter().map(|number| u64::from_be_bytes(*number));
        let records = numbers.next().ok_or_else(corrupt)?;
        let sums: Vec<u64> = numbers.collect();
        let row = Self {
            number,
            records,
            sums,
        };
        let pages = records.div_ceil(1 << array.page_shift());
        let is_whole = rest.is_empty() && row.first_page() + row.sums.len() as u64 == pages;
        if is_whole && row.sums.len() as u64 <= ROW_PAGES {
            Ok(row)
        } else {
            Err(corrupt())
        }
    }

    pub(super) fn key(&self, array: FlatArray) -> Vec<u8> {
        key(array, self.number)
    }

    fn first_page(&self) -> u64 {
        self.number * ROW_PAGES
    }

    /// The sum of a page, and the number of the record after its last one.
    pub(super) fn of_page(&self, array: FlatArray, page: u64) -> Option<(u64, u64)> {
        let at = usize::try_from(page.checked_sub(self.first_page())?).ok()?;
        let end = (page + 1) << array.page_shift();
        self.sums.get(at).map(|&sum| (sum, end.min(self.records)))
    }

    /// Goes on from where it is to `records` of the array, of which `pages` gives those of a page up to a record. Rows that are full, or
    /// are the last one, are handed to `write`.
    pub(super) fn go_on(
        &mut self,
        array: FlatArray,
        records: u64,
        mut pages: impl FnMut(u64, u64) -> u64,
        mut write: impl FnMut(&Self) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let shift = array.page_shift();
        if self.records == records {
            return Ok(());
        }
        // A page that was not full is summed anew.
        let mut page = self.records >> shift;
        while page << shift < records {
            if row_of_page(page) != self.number {
                *self = Self {
                    number: row_of_page(page),
                    records: self.records,
                    sums: Vec::new(),
                };
            }
            self.sums.truncate((page - self.first_page()) as usize);
            let end = ((page + 1) << shift).min(records);
            self.sums.push(pages(page, end));
            self.records = end;
            page += 1;
            if end == records || row_of_page(page) != self.number {
                write(self)?;
            }
        }
        Ok(())
    }
}

/// A row of sums, for whoever looks through `meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summed {
    /// Of which array.
    pub array: FlatArray,
    /// Its number among the array's rows.
    pub row: u64,
    /// How many records of the array are summed up to its end.
    pub records: u64,
    /// Pages that it has the sums of.
    pub pages: usize,
}

impl Summed {
    /// Reads a row of `meta`; `None` where it is none of sums.
    ///
    /// # Errors
    /// It cannot be one that was written.
    pub fn of(key: &[u8], value: &[u8]) -> Result<Option<Self>, StoreError> {
        let of = |array: FlatArray| row_number(array, key).map(|row| (array, row));
        let Some((array, row)) = FlatArray::ALL.into_iter().find_map(of) else {
            return Ok(None);
        };
        let SumsRow { records, sums, .. } = SumsRow::decode(array, row, value)?;
        let pages = sums.len();
        Ok(Some(Self {
            array,
            row,
            records,
            pages,
        }))
    }
}

/// Which pages need not be compared any more.
#[derive(Debug, Default)]
pub(super) struct Compared(Box<[AtomicU64]>);

impl Compared {
    /// The same of the first pages alone.
    pub(super) fn first(&self, pages: u64) -> Self {
        let words = self.0.iter().zip(0_u64..).map(|(word, at)| {
            let mask = match pages.saturating_sub(64 * at) {
                64.. => u64::MAX,
                some => (1 << some) - 1,
            };
            AtomicU64::new(word.load(Ordering::Relaxed) & mask)
        });
        Self(words.collect())
    }

    /// The same with room for so many pages.
    pub(super) fn grown(&self, pages: u64) -> Self {
        let words = pages.div_ceil(64) as usize;
        let mut all: Vec<AtomicU64> = self
            .0
            .iter()
            .map(|word| AtomicU64::new(word.load(Ordering::Relaxed)))
            .collect();
        all.resize_with(words.max(all.len()), AtomicU64::default);
        Self(all.into())
    }

    #[inline]
    pub(super) fn has(&self, page: u64) -> bool {
        let word = self.0.get((page / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (page % 64) & 1 == 1)
    }

    pub(super) fn add(&self, page: u64) {
        if let Some(word) = self.0.get((page / 64) as usize) {
            word.fetch_or(1 << (page % 64), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file's pages, summed.
    fn summed(array: FlatArray, file: &[u8]) -> impl FnMut(u64, u64) -> u64 {
        move |page, end| {
            let first = (page << array.page_shift()) as usize * array.width();
            sum(array, page, &file[first..end as usize * array.width()])
        }
    }

    proptest! {
        #[test]
        fn rows_are_the_same_in_whatever_steps_they_are_made(
            array in prop::sample::select(FlatArray::ALL.to_vec()),
            mut steps in prop::collection::vec(0_u64..4_000_000, 1..8),
        ) {
            steps.iter_mut().for_each(|step| *step /= array.width() as u64);
            steps.sort_unstable();
            let last = *steps.last().unwrap();
            let file: Vec<u8> = (0..last * array.width() as u64).map(|at| ((at * at) >> 7) as u8).collect();
            let made = |steps: &[u64]| {
                let mut rows = std::collections::BTreeMap::new();
                let mut row = SumsRow::default();
                for &records in steps {
                    row.go_on(array, records, summed(array, &file), |row| {
                        rows.insert(row.key(array), row.encode());
                        Ok(())
                    }).unwrap();
                    prop_assert_eq!(row.records, records);
                }
                Ok(rows)
            };
            let rows = made(&steps)?;
            prop_assert_eq!(&rows, &made(&[last])?);
            prop_assert!(rows.keys().all(|key| is_row(key) && *key <= last_key(array)));
            let pages = last.div_ceil(1 << array.page_shift());
            for page in 0..pages {
                let number = row_of_page(page);
                let key = key(array, number);
                prop_assert_eq!(row_number(array, &key), Some(number));
                let row = SumsRow::decode(array, number, &rows[&key]).unwrap();
                let (said, end) = row.of_page(array, page).unwrap();
                prop_assert_eq!(said, summed(array, &file)(page, end));
                prop_assert_eq!(end, ((page + 1) << array.page_shift()).min(last));
            }
            prop_assert_eq!(rows.len() as u64, pages.div_ceil(ROW_PAGES));
            for ((key, value), number) in rows.iter().zip(0..) {
                let read = Summed::of(key, value).unwrap().unwrap();
                prop_assert_eq!((read.array, read.row), (array, number));
            }
        }
    }

    #[test]
    fn rows_that_are_none_are_refused() {
        let array = FlatArray::LogEmitters;
        let mut row = SumsRow::default();
        row.go_on(array, 20_000, |page, _| page, |_| Ok(())).unwrap();
        assert_eq!(row.sums, [0, 1, 2]);
        let bytes = row.encode();
        assert_eq!(SumsRow::decode(array, 0, &bytes).unwrap(), row);
        for (number, bytes) in [(1, &bytes[..]), (0, &bytes[..24]), (0, &bytes[..31]), (0, &[])] {
            SumsRow::decode(array, number, bytes).unwrap_err();
        }
        assert_eq!(row_number(FlatArray::Emitters, &row.key(array)), None);
        assert_eq!(Summed::of(b"final", &bytes).unwrap(), None);
        Summed::of(&row.key(array), &bytes[..24]).unwrap_err();
    }

    #[test]
    fn pages_are_told_apart() {
        let array = FlatArray::Emitters;
        let page = [0; 1000];
        let all = [
            sum(array, 0, &page),
            sum(array, 1, &page),
            sum(array, 0, &page[..980]),
            sum(FlatArray::Tokens, 0, &page),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(!all[at + 1..].contains(one));
        }
        let compared = Compared::default().grown(65);
        for page in [0, 63, 64] {
            assert!(!compared.has(page));
            compared.add(page);
        }
        let grown = compared.grown(200);
        assert!([0, 63, 64].iter().all(|&page| grown.has(page)));
        for (pages, kept) in [
            (0, [false; 3]),
            (1, [true, false, false]),
            (64, [true, true, false]),
            (65, [true; 3]),
        ] {
            let first = grown.first(pages);
            assert_eq!([0, 63, 64].map(|page| first.has(page)), kept, "{pages}");
        }
        grown.add(10_000);
        assert!(![1, 65, 199, 10_000].iter().any(|&page| grown.has(page)));
    }
}
