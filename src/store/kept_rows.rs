//! Rows of units that are asked for again and again, kept by ordinal.
//!
//! A scattered hit wants one row of a unit. RocksDB finds it by a walk through all levels of a table, and most of the time of a hit
//! goes there although every block that it passes lies in the cache. Rows of final blocks never change, so one that was sought
//! twice is kept by itself, as a unit of one row: it takes a fifteenth of the unit's room and is found by its ordinal. Where the wanted rows lie
//! close together whole units are read, and none is kept ([`Spread`]).
//!
//! Why so: `docs/decisions/0048-kept-rows.md`.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use alloy_primitives::map::DefaultHashBuilder;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};

use super::kept_ordinals::KeptOrdinals;
use super::schema::Table;
use super::walked::KeptWalks;
use crate::marks::Marks;

/// Of what a store may take for what it read, this share is for rows.
const SHARE: usize = 8;
/// Of that, this share is for ordinals of transactions by hash.
const ORDINALS: usize = 16;
/// And this one for walks over expressions.
const WALKS: usize = 16;
/// Less room than this is none.
const BYTES_MIN: usize = 64 << 10;
/// Longer rows are not kept: reading them takes longer than finding them.
const ROW_BYTES_MAX: usize = 16 << 10;
/// What the table takes for each row beside its bytes: an entry, its place by hash, and the counts of who has it.
const ENTRY_BYTES: usize = 96;
/// What a row takes, to begin with.
const ROW_BYTES: usize = 320;

/// A row as a unit of its own ([`crate::codec::chunk`]).
type OneRow = Arc<[u8]>;

#[derive(Clone)]
struct Weight;

impl Weighter<u64, OneRow> for Weight {
    fn weight(&self, _: &u64, row: &OneRow) -> u64 {
        (row.len() + ENTRY_BYTES) as u64
    }
}

/// The rows kept of one store, for all of its views: what is final in one of them is so in all that come after it, and each view
/// takes only what is final in itself.
pub(super) struct KeptRows {
    rows: Cache<u64, OneRow, Weight, DefaultHashBuilder>,
    hasher: DefaultHashBuilder,
    /// Rows that were sought once.
    sought: Marks,
    /// Ordinals of transactions that were sought by hash.
    pub(super) ordinals: KeptOrdinals,
    /// What walks over expressions found.
    pub(super) walks: KeptWalks,
}

impl fmt::Debug for KeptRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptRows")
            .field("rows", &self.rows.len())
            .finish_non_exhaustive()
    }
}

/// How many bytes of rows are kept where what was read may take `cache_bytes`; 0 where that is too little to be split.
pub(super) const fn share_of(cache_bytes: usize) -> usize {
    let share = cache_bytes / SHARE;
    if share < BYTES_MIN { 0 } else { share }
}

const fn key(table: Table, ordinal: u64) -> u64 {
    (table as u64) << 56 | ordinal
}

impl KeptRows {
    /// Room for so many bytes; `None` for no room at all.
    pub(super) fn new(bytes: usize) -> Option<Arc<Self>> {
        let (ordinals, walks) = (KeptOrdinals::new(bytes / ORDINALS), KeptWalks::new(bytes / WALKS));
        let bytes = bytes - bytes / ORDINALS - bytes / WALKS;
        let rows = bytes / ROW_BYTES;
        let hasher = DefaultHashBuilder::default();
        (rows > 0).then(|| {
            Arc::new(Self {
                rows: Cache::with(
                    rows,
                    bytes as u64,
                    Weight,
                    hasher.clone(),
                    DefaultLifecycle::default(),
                ),
                hasher,
                sought: Marks::new(rows),
                ordinals,
                walks,
            })
        })
    }

    /// A row that is kept.
    #[inline]
    pub(super) fn get(&self, table: Table, ordinal: u64) -> Option<OneRow> {
        self.rows.get(&key(table, ordinal))
    }

    /// Whether a row, which was sought just now, was sought not long ago too: then it is worth being kept.
    pub(super) fn comes_again(&self, table: Table, ordinal: u64, bytes: usize) -> bool {
        bytes <= ROW_BYTES_MAX && self.sought.came_before(self.hasher.hash_one(key(table, ordinal)))
    }

    /// Keeps a row, in the form of a unit of one row.
    pub(super) fn keep(&self, table: Table, ordinal: u64, unit: Vec<u8>) {
        self.rows.insert(key(table, ordinal), Arc::from(unit));
    }

    /// Bytes that rows, ordinals and walks take.
    pub(super) fn bytes(&self) -> u64 {
        self.rows.weight() + self.ordinals.bytes() + self.walks.bytes()
    }
}

/// How far from each other the rows lie that are wanted of a table: whether each is better found by itself or with its unit. Where several lie
/// in a unit, reading the unit is faster, and keeping them by themselves would take more room than its block does.
#[derive(Debug)]
pub(super) struct Spread {
    /// The row that was wanted when a unit was moved to last.
    at: Option<u64>,
    /// Rows given since.
    given: u64,
    /// Ordinals that the moves before went over, and rows that were given meanwhile; the latest count most.
    ordinals: u64,
    rows: u64,
    /// Rows of a unit.
    unit: u64,
}

impl Spread {
    /// So many rows are looked back upon.
    const ROWS: u64 = 64;
    /// A unit of logs, where none was read yet.
    const UNIT: u64 = 48;

    pub(super) const fn new() -> Self {
        Self {
            at: None,
            given: 0,
            ordinals: 0,
            rows: 0,
            unit: Self::UNIT,
        }
    }

    /// Where rows that are given are counted.
    pub(super) const fn given(&mut self) -> &mut u64 {
        &mut self.given
    }

    /// A unit of so many rows was read. The last one of a block is often short and says little of the others.
    pub(super) fn passed(&mut self, rows: u64) {
        self.unit = rows.max(self.unit - self.unit / 4);
    }

    /// Whether hardly two of the rows wanted lie in a unit, so that none is unpacked twice by who reads them one by one.
    pub(super) const fn is_wide(&self) -> bool {
        self.ordinals >= self.rows.saturating_mul(self.unit).saturating_mul(2)
    }

    /// Goes on to the row with an ordinal. Whether rows lie so far apart that each is better found by itself: less than about three of
    /// those wanted lie in a unit.
    pub(super) fn next(&mut self, ordinal: u64) -> bool {
        if let Some(at) = self.at.replace(ordinal) {
            if self.rows >= Self::ROWS {
                self.rows /= 2;
                self.ordinals /= 2;
            }
            self.rows += self.given.max(1);
            // One long way between rows that lie close is not more than a few units.
            self.ordinals += at.abs_diff(ordinal).min(self.unit.saturating_mul(4));
        }
        self.given = 0;
        self.ordinals.max(1).saturating_mul(3) >= self.rows.saturating_mul(self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_worth_keeping_from_the_second_time_on() {
        let kept = KeptRows::new(1 << 20).unwrap();
        let table = Table::LogsByBlock;
        assert!(!kept.comes_again(table, 7, 100));
        assert!(!kept.comes_again(Table::Transactions, 7, 100));
        assert!(kept.comes_again(table, 7, 100) || kept.comes_again(table, 7, 100));
        assert!(!kept.comes_again(table, 8, ROW_BYTES_MAX + 1));
        assert!(!kept.comes_again(table, 8, ROW_BYTES_MAX + 1));
        kept.keep(table, 7, b"unit".to_vec());
        assert_eq!(kept.get(table, 7).as_deref(), Some(&b"unit"[..]));
        assert_eq!(kept.get(table, 8), None);
        assert_eq!(kept.get(Table::Transactions, 7), None);
    }

    #[test]
    fn room_is_bounded() {
        assert_eq!(share_of(0), 0);
        assert_eq!(share_of(BYTES_MIN * SHARE - 1), 0);
        assert!(KeptRows::new(0).is_none());
        let kept = KeptRows::new(BYTES_MIN).unwrap();
        for ordinal in 0..10_000 {
            kept.keep(Table::Frames, ordinal, vec![0; 200]);
            assert!(kept.bytes() <= BYTES_MIN as u64);
        }
        assert!(kept.rows.len() > 50);
    }

    /// Of the units that are read for rows at these ordinals, where units have so many rows in turn, how many are taken for far.
    fn far(units: &[u64], wanted: impl Iterator<Item = u64>) -> (usize, usize) {
        let mut spread = Spread::new();
        let (mut far, mut moves) = (0, 0);
        let mut ends = units.iter().cycle().scan(0, |end, &rows| {
            *end += rows;
            Some((*end, rows))
        });
        let (mut end, mut rows) = (0, 0);
        for ordinal in wanted {
            if ordinal >= end {
                moves += 1;
                far += usize::from(spread.next(ordinal));
                while ordinal >= end {
                    (end, rows) = ends.next().unwrap();
                }
                spread.passed(rows);
            }
            *spread.given() += 1;
        }
        (far, moves)
    }

    #[test]
    fn rows_are_far_where_units_have_one_or_two_of_those_wanted() {
        // A wallet's, and an event of four in a hundred.
        assert_eq!(far(&[60], (0..300).map(|place| place * 7000)), (300, 300));
        let (few, moves) = far(&[60], (0..300).map(|place| place * 25));
        assert!(few * 10 >= moves * 9, "{few} of {moves}");
        // Every second row, where the last unit of each block is short: only the first of all, of which nothing is known yet.
        assert_eq!(far(&[70, 70, 70, 3], (0..5000).map(|place| place * 2)).0, 1);
        // A long way between two pieces of such a list does not make it another.
        let pieces = (0..500).chain(1_000_000..1_000_500);
        assert_eq!(far(&[70], pieces).0, 1);
        // Blocks of one row each.
        assert!(far(&[1], 0..1000).0 > 900);
    }
}
