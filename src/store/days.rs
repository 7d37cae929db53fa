//! Days: sums over the blocks of each UTC day, and how many addresses it brought. A batch adds up its blocks first, so
//! that a commit reads and writes a day once, however many blocks of it it holds.

use std::collections::BTreeMap;

use super::render::Rows;
use super::schema::Table;
use super::{Batch, StoreError, View};
use crate::codec::keys::{self, DayKind};
use crate::codec::value::{DayRow, decode_new_addresses};
use crate::codec::{Corrupt, bytes};
use crate::metrics::visits;
use crate::model::Day;

/// What a batch adds to days, by number of the day.
#[derive(Debug, Default)]
pub(super) struct Days {
    blocks: BTreeMap<u64, DayRow>,
    addresses: BTreeMap<u64, u64>,
}

/// The number under which a day is stored; none lies before 1970.
fn number(day: Day) -> u64 {
    u64::try_from(day.number()).unwrap_or(0)
}

impl Batch {
    /// Adds the sums of one block of a day.
    pub fn add_to_day(&mut self, day: Day, block: &DayRow) {
        let days = &mut self.days.blocks;
        let before = days.len();
        days.entry(number(day)).or_default().add(block);
        self.bytes += 512 * (days.len() - before);
    }

    /// Counts addresses whose first part in the chain falls on a day.
    pub fn add_new_addresses(&mut self, day: Day, count: u64) {
        if count > 0 {
            *self.days.addresses.entry(number(day)).or_default() += count;
        }
    }

    /// Writes the days that the batch adds to.
    pub(super) fn render_days(&mut self, rows: &mut Rows<'_>) -> Result<(), StoreError> {
        let days = std::mem::take(&mut self.days);
        let blocks: Vec<_> = days.blocks.into_iter().collect();
        render(DayKind::Blocks, &blocks, rows, |added, found| {
            let mut sums = found.map(DayRow::decode).transpose()?.unwrap_or_default();
            sums.add(added);
            Ok(sums.encode())
        })?;
        let addresses: Vec<_> = days.addresses.into_iter().collect();
        render(DayKind::NewAddresses, &addresses, rows, |added, found| {
            let before = found.map(decode_new_addresses).transpose()?.unwrap_or(0);
            let mut value = Vec::with_capacity(4);
            bytes::put_varint(&mut value, before.saturating_add(*added));
            Ok(value)
        })
    }
}

/// Rewrites the rows of some days, in order: `merge` makes a row of what is added and what was there.
fn render<T>(
    kind: DayKind,
    days: &[(u64, T)],
    rows: &mut Rows<'_>,
    merge: impl Fn(&T, Option<&[u8]>) -> Result<Vec<u8>, Corrupt>,
) -> Result<(), StoreError> {
    let keys: Vec<_> = days.iter().map(|(day, _)| keys::day(kind, *day)).collect();
    rows.look_up(Table::Days, &keys, |rows, place, found| {
        let (Some(key), Some((_, added))) = (keys.get(place), days.get(place)) else {
            return Ok(());
        };
        let value = merge(added, found).map_err(StoreError::corrupt(Table::Days.name(), key))?;
        rows.put(Table::Days, key, &value, found)
    })
}

impl View {
    /// The rows of the days from `first` to `last` that have one, in order.
    fn day_rows<T>(
        &self,
        kind: DayKind,
        first: Day,
        last: Day,
        decode: impl Fn(&[u8]) -> Result<T, Corrupt>,
    ) -> Result<Vec<(Day, T)>, StoreError> {
        let mut days = Vec::new();
        if last.number() < 0 {
            return Ok(days);
        }
        let from = keys::day(kind, number(first));
        // One byte behind the last key: it is read, too.
        let mut to = keys::day(kind, number(last)).to_vec();
        to.push(0);
        let mut scan = self.scan(Table::Days, from.to_vec(), to)?;
        let mut row = scan.seek(&from)?;
        while let Some((key, value)) = row {
            visits::row();
            let corrupt = StoreError::corrupt(Table::Days.name(), key);
            let read = keys::decode_day(key).and_then(|(_, day)| Ok((day, decode(value)?)));
            let (day, value) = read.map_err(corrupt)?;
            days.push((Day::from_number(i64::try_from(day).unwrap_or(i64::MAX)), value));
            row = scan.step()?;
        }
        Ok(days)
    }

    /// The first day that has blocks, whichever they are.
    pub fn first_day(&self) -> Result<Option<Day>, StoreError> {
        let from = keys::day(DayKind::Blocks, 0);
        let mut scan = self.scan(
            Table::Days,
            from.to_vec(),
            keys::day(DayKind::NewAddresses, 0).to_vec(),
        )?;
        // The key alone is read.
        let Some((key, _)) = scan.seek(&from)? else {
            return Ok(None);
        };
        let (_, day) = keys::decode_day(key).map_err(StoreError::corrupt(Table::Days.name(), key))?;
        Ok(Some(Day::from_number(i64::try_from(day).unwrap_or(i64::MAX))))
    }

    /// The sums of the days from `first` to `last` that have blocks, in order.
    pub fn days(&self, first: Day, last: Day) -> Result<Vec<(Day, DayRow)>, StoreError> {
        self.day_rows(DayKind::Blocks, first, last, DayRow::decode)
    }

    /// How many addresses first took part in the chain on each day from `first` to `last`; days without any are left
    /// out.
    pub fn new_addresses(&self, first: Day, last: Day) -> Result<Vec<(Day, u64)>, StoreError> {
        self.day_rows(DayKind::NewAddresses, first, last, decode_new_addresses)
    }

    /// The sums of the last day before `day` that has blocks.
    pub fn day_before(&self, day: Day) -> Result<Option<DayRow>, StoreError> {
        let Some(last) = number(day).checked_sub(1) else {
            return Ok(None);
        };
        let (from, to) = (keys::day(DayKind::Blocks, 0), keys::day(DayKind::Blocks, last));
        let mut end = to.to_vec();
        end.push(0);
        let mut scan = self.scan(Table::Days, from.to_vec(), end)?;
        let Some((key, value)) = scan.seek_back(&to)? else {
            return Ok(None);
        };
        visits::row();
        DayRow::decode(value)
            .map(Some)
            .map_err(StoreError::corrupt(Table::Days.name(), key))
    }
}
