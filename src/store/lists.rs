//! Bodies by ordinal: rows of units, and logs of runs.

use std::sync::Arc;

use super::StoreError;
use super::ahead::{Ahead, Miss, Wanted};
use super::kept_rows::Spread;
use super::scan::Scan;
use super::schema::Table;
use super::view::View;
use crate::codec::bytes::Reader;
use crate::codec::chunk::{self, Header, UnitReader, UnitStarts};
use crate::codec::keys;
use crate::codec::log_row::{ROW, RunReader, StoredRow};
use crate::metrics::visits;

/// Rows of a table of units by ordinal. Ordinals may come in any order; neighbours share a read, and rows far apart that are sought
/// again and again are kept by themselves (`super::kept_rows`).
///
/// A unit is read where it lies in RocksDB's block. Stepping from row to row would wait for memory at each of them, so
/// the lines up to the wanted row are touched first, all at once.
pub struct Units<'v> {
    source: Source<'v>,
    /// Opened by the first unit that is read; rows that are kept need none.
    scan: Option<Scan<'v>>,
    table: Table,
    /// A row that was kept or read ahead, as a unit of its own. While there is one `first`, `header` and `starts` are of it and not of
    /// the unit under the scan.
    alone: Option<Arc<[u8]>>,
    ahead: Ahead,
    /// Ordinal of the unit's first row.
    first: u64,
    header: Option<Header>,
    starts: UnitStarts,
    spread: Spread,
}

/// Whose rows.
enum Source<'v> {
    Borrowed(&'v View),
    Owned(Arc<View>),
}

impl<'v> Source<'v> {
    fn view(&self) -> &View {
        match self {
            Self::Borrowed(view) => view,
            Self::Owned(view) => view,
        }
    }

    fn scan(&self, table: Table) -> Result<Scan<'v>, StoreError> {
        let (from, to) = (Vec::new(), vec![0xff; 9]);
        match self {
            Self::Borrowed(view) => view.scan(table, from, to),
            Self::Owned(view) => view.scan_owned(table, from, to),
        }
    }
}

impl std::fmt::Debug for Units<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Units")
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

/// The unit that was read last, for rows that lie in it.
#[derive(Debug)]
pub struct Unit<'a> {
    first: u64,
    header: Header,
    value: &'a [u8],
    starts: &'a mut UnitStarts,
    given: &'a mut u64,
    table: Table,
}

/// A row of a unit and its place.
#[derive(Clone, Copy, Debug)]
pub struct UnitRow<'a> {
    /// Block number.
    pub block: u64,
    /// Place in the block.
    pub index: u64,
    /// Stands before the row, which ends where it does.
    pub reader: Reader<'a>,
}

impl<'a> UnitRow<'a> {
    /// The row's bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.reader.rest()
    }
}

impl<'a> Unit<'a> {
    /// The ordinal of its last row.
    #[must_use]
    pub const fn last(&self) -> u64 {
        self.first + (self.header.count - 1)
    }

    /// The row with an ordinal; `None` where it lies in another unit.
    #[inline(always)]
    pub fn row(&mut self, ordinal: u64) -> Result<Option<UnitRow<'a>>, StoreError> {
        let place = ordinal.wrapping_sub(self.first);
        if place >= self.header.count {
            return Ok(None);
        }
        let name = self.table.name();
        let row = self
            .starts
            .row(self.value, usize::try_from(place).unwrap_or(usize::MAX), name);
        let reader = row.map_err(|corrupt| {
            let key = keys::number(self.first + (self.header.count - 1));
            StoreError::corrupt(name, &key)(corrupt)
        })?;
        visits::row();
        *self.given += 1;
        Ok(Some(UnitRow {
            block: self.header.block,
            index: self.header.first_index + place,
            reader,
        }))
    }
}

impl<'v> Units<'v> {
    /// Rows of `table`, one of the tables of units.
    pub fn new(view: &'v View, table: Table) -> Self {
        Self::of(Source::Borrowed(view), table)
    }

    fn of(source: Source<'v>, table: Table) -> Self {
        Self {
            source,
            scan: None,
            table,
            alone: None,
            ahead: Ahead::default(),
            first: 0,
            header: None,
            starts: UnitStarts::default(),
            spread: Spread::new(),
        }
    }

    /// The row with an ordinal.
    pub fn row(&mut self, ordinal: u64) -> Result<UnitRow<'_>, StoreError> {
        let name = self.table.name();
        self.unit(ordinal)?
            .row(ordinal)?
            .ok_or_else(|| missing(name, "row", ordinal))
    }

    /// The first of the wanted rows.
    pub fn row_of(&mut self, wanted: Wanted<'_>) -> Result<UnitRow<'_>, StoreError> {
        let (name, ordinal) = (self.table.name(), wanted.first());
        self.unit_of(wanted)?
            .row(ordinal)?
            .ok_or_else(|| missing(name, "row", ordinal))
    }

    /// The unit of the row with an ordinal.
    pub fn unit(&mut self, ordinal: u64) -> Result<Unit<'_>, StoreError> {
        self.unit_of(Wanted::only(&[ordinal]))
    }

    /// The unit of the first of the wanted rows. Those after it may be read meanwhile (`super::ahead`).
    pub fn unit_of(&mut self, wanted: Wanted<'_>) -> Result<Unit<'_>, StoreError> {
        let ordinal = wanted.first();
        let header = match self.header {
            Some(header) if ordinal.wrapping_sub(self.first) < header.count => header,
            _ => self.load(ordinal, wanted)?,
        };
        let value = match (&self.alone, &self.scan) {
            (Some(row), _) => row,
            (None, scan) => {
                let item = scan.as_ref().map(Scan::item).transpose()?.flatten();
                item.ok_or_else(|| missing(self.table.name(), "row", ordinal))?.1
            }
        };
        Ok(Unit {
            first: self.first,
            header,
            value,
            starts: &mut self.starts,
            given: self.spread.given(),
            table: self.table,
        })
    }

    /// Moves to the unit of the first of the wanted rows.
    fn load(&mut self, ordinal: u64, wanted: Wanted<'_>) -> Result<Header, StoreError> {
        let is_far = self.spread.next(ordinal);
        // Where a row was given by itself last the scan stands somewhere else.
        let was_alone = self.alone.take().is_some();
        let before = self.header.take().filter(|_| !was_alone);
        if !is_far {
            return self.find(ordinal, before);
        }
        if let Some(header) = self.take_kept(ordinal)? {
            return Ok(header);
        }
        if let Some(row) = self.ahead.take(ordinal) {
            let header = self.header_of(&row)?;
            return Ok(self.give_alone(ordinal, row, header));
        }
        let miss = (wanted.goes_on() && self.spread.is_wide()).then(Miss::watch);
        let header = self.find(ordinal, before)?;
        self.keep(ordinal, header)?;
        if let Source::Owned(view) = &self.source
            && let Some(miss) = miss.and_then(Miss::took)
        {
            self.ahead.fill(view, self.table, wanted, miss);
        }
        Ok(header)
    }

    /// Moves the scan to the unit of an ordinal; it stands on the one with `before`, if that was given last.
    fn find(&mut self, ordinal: u64, before: Option<Header>) -> Result<Header, StoreError> {
        let name = self.table.name();
        let missing = || missing(name, "row", ordinal);
        let mut found = false;
        if let (Some(before), Some(scan)) = (before, &mut self.scan) {
            let end = self.first.wrapping_add(before.count);
            // A step is cheaper than a seek only where it ends there: each unit is about a disk block of its own.
            if ordinal >= end && ordinal - end < before.count {
                if let Some((key, _)) = scan.step()? {
                    let last = keys::decode_number(key).map_err(StoreError::corrupt(name, key))?;
                    found = last >= ordinal;
                }
            } else if ordinal < self.first
                && self.first - ordinal <= before.count
                && let Some((key, value)) = scan.step_back()?
            {
                let last = keys::decode_number(key).map_err(StoreError::corrupt(name, key))?;
                let unit = UnitReader::new(value, name).map_err(StoreError::corrupt(name, key))?;
                found = last.wrapping_add(1).wrapping_sub(unit.header().count) <= ordinal;
            }
        }
        let scan = match &mut self.scan {
            Some(scan) => scan,
            none => none.insert(self.source.scan(self.table)?),
        };
        if !found && scan.seek(&keys::number(ordinal))?.is_none() {
            return Err(missing());
        }
        let (key, value) = scan.item()?.ok_or_else(missing)?;
        let corrupt = StoreError::corrupt(name, key);
        let last = keys::decode_number(key).map_err(&corrupt)?;
        let header = self.starts.begin(value, name).map_err(&corrupt)?;
        touch(value, last.wrapping_sub(ordinal), header.count);
        self.first = last.wrapping_add(1).wrapping_sub(header.count);
        // The unit after a hole, or one that says it holds more rows than there are ordinals.
        if ordinal < self.first || last < ordinal {
            return Err(missing());
        }
        visits::unit();
        self.spread.passed(header.count);
        self.header = Some(header);
        Ok(header)
    }

    /// Keeps a row of the unit under the scan by itself, if it is sought again and its block is final in this view.
    fn keep(&mut self, ordinal: u64, header: Header) -> Result<(), StoreError> {
        let view = self.source.view();
        let Some(kept) = view
            .kept
            .as_ref()
            .filter(|_| view.finalized() >= Some(header.block))
        else {
            return Ok(());
        };
        let item = self.scan.as_ref().map(Scan::item).transpose()?.flatten();
        let (key, value) = item.ok_or_else(|| missing(self.table.name(), "row", ordinal))?;
        let place = ordinal - self.first;
        let row = self.starts.row(value, place as usize, self.table.name());
        let row = row.map_err(StoreError::corrupt(self.table.name(), key))?.rest();
        if kept.comes_again(self.table, ordinal, row.len()) {
            let unit = chunk::unit_of_row(header.block, header.first_index + place, row);
            kept.keep(self.table, ordinal, unit);
        }
        Ok(())
    }

    /// Moves to a row that is kept, if this one is and its block is final in this view.
    fn take_kept(&mut self, ordinal: u64) -> Result<Option<Header>, StoreError> {
        let view = self.source.view();
        let Some(row) = view.kept.as_ref().and_then(|kept| kept.get(self.table, ordinal)) else {
            return Ok(None);
        };
        let header = self.header_of(&row)?;
        // Another block may have been where a view from before has one that is not final.
        if self.source.view().finalized() < Some(header.block) {
            return Ok(None);
        }
        Ok(Some(self.give_alone(ordinal, row, header)))
    }

    /// Rows that were read ahead and not given yet.
    #[cfg(test)]
    pub(super) fn rows_ahead(&self) -> usize {
        self.ahead.len()
    }

    fn header_of(&mut self, row: &[u8]) -> Result<Header, StoreError> {
        let name = self.table.name();
        self.starts
            .begin(row, name)
            .map_err(StoreError::corrupt(name, &[]))
    }

    /// Stands on a row that is a unit by itself.
    fn give_alone(&mut self, ordinal: u64, row: Arc<[u8]>, header: Header) -> Header {
        self.first = ordinal;
        self.alone = Some(row);
        self.header = Some(header);
        header
    }
}

/// Reads a byte of each cache line of a unit up to the row that `after` rows follow, where rows are about equally long.
/// None of the reads waits for another one.
fn touch(value: &[u8], after: u64, rows: u64) {
    const LINE: usize = 64;
    let before = rows.saturating_sub(after).min(rows);
    let share = value.len() as u64 * before / rows.max(1);
    let lines = usize::try_from(share).unwrap_or(usize::MAX) / LINE + 2;
    let touched = value
        .iter()
        .step_by(LINE)
        .take(lines)
        .fold(0, |all, byte| all ^ byte);
    std::hint::black_box(touched);
}

/// A log of a run, and where its parts lie in the run's bytes.
#[derive(Clone, Copy, Debug)]
struct RunPlace {
    ordinal: u64,
    block: u64,
    transaction_index: u32,
    hash: u32,
    body: u32,
    end: u32,
}

/// Logs of one emitter by ordinal.
pub struct Runs<'v> {
    scan: Scan<'v>,
    emitter: u32,
    bytes: Vec<u8>,
    /// The logs of the run.
    rows: Vec<RunPlace>,
    /// The place after the row that was given last.
    next: usize,
}

impl std::fmt::Debug for Runs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runs")
            .field("emitter", &self.emitter)
            .finish_non_exhaustive()
    }
}

impl Units<'static> {
    /// Rows of `table`, read piece by piece: keeps the view.
    pub fn owned(view: &Arc<View>, table: Table) -> Self {
        Self::of(Source::Owned(Arc::clone(view)), table)
    }

    /// Those in `place`, opened now where there are none yet.
    pub fn opened<'a>(place: &'a mut Option<Self>, view: &Arc<View>, table: Table) -> &'a mut Self {
        place.get_or_insert_with(|| Self::owned(view, table))
    }
}

impl Runs<'static> {
    /// Logs of `emitter`, read piece by piece: keeps the view.
    pub fn owned(view: &Arc<View>, emitter: u32) -> Result<Self, StoreError> {
        let from = keys::emitter_run(emitter, 0).to_vec();
        let mut to = keys::emitter_run(emitter, keys::OPEN).to_vec();
        to.push(0);
        Ok(Self {
            scan: view.scan_owned(Table::LogsByEmitter, from, to)?,
            emitter,
            bytes: Vec::new(),
            rows: Vec::new(),
            next: 0,
        })
    }
}

impl Runs<'_> {
    /// The log with an ordinal, which must be one of the emitter's.
    #[inline]
    pub fn row(&mut self, ordinal: u64) -> Result<StoredRow<'_>, StoreError> {
        // Pages take neighbours: the row after the last one first.
        let place = match self.rows.get(self.next) {
            Some(row) if row.ordinal == ordinal => self.next,
            _ => self.find(ordinal)?,
        };
        let row = self.rows.get(place).and_then(|row| {
            let hash = self.bytes.get(row.hash as usize..)?.first_chunk()?;
            Some(StoredRow {
                ordinal,
                block: row.block,
                transaction_index: row.transaction_index,
                transaction_hash: hash,
                body: Reader::of_part(&self.bytes, row.body as usize..row.end as usize, ROW).ok()?,
            })
        });
        self.next = place + 1;
        visits::row();
        row.ok_or_else(|| no_log(ordinal))
    }

    /// The place of a log in its run, which is loaded where it is another one.
    fn find(&mut self, ordinal: u64) -> Result<usize, StoreError> {
        let ends = self.rows.first().zip(self.rows.last());
        let within = ends.is_some_and(|(first, last)| (first.ordinal..=last.ordinal).contains(&ordinal));
        if !within {
            self.load(ordinal)?;
        }
        let found = self.rows.binary_search_by_key(&ordinal, |row| row.ordinal);
        found.map_err(|_| no_log(ordinal))
    }

    fn load(&mut self, ordinal: u64) -> Result<(), StoreError> {
        let name = Table::LogsByEmitter.name();
        // Pages go from run to run: a step costs a fraction of a seek.
        let ends = self.rows.first().zip(self.rows.last());
        let ends = ends.map(|(first, last)| (first.ordinal, last.ordinal));
        self.rows.clear();
        self.bytes.clear();
        let mut found = match ends {
            Some((_, last)) if last < ordinal => self.scan.step()?,
            Some((first, _)) if ordinal < first => self.scan.step_back()?,
            _ => None,
        };
        if !found.is_some_and(|(_, value)| covers(value, ordinal)) {
            found = self.scan.seek(&keys::emitter_run(self.emitter, ordinal))?;
        }
        // The key of the open run does not say where it ends: what is beyond it is in the open piece.
        let open_run = keys::emitter_run(self.emitter, keys::OPEN_RUN);
        if found.is_some_and(|(key, value)| key == open_run && ends_before(value, ordinal)) {
            found = self.scan.step()?;
        }
        let (key, value) = found.ok_or_else(|| no_log(ordinal))?;
        let corrupt = StoreError::corrupt(name, key);
        self.bytes.extend_from_slice(value);
        let mut run = RunReader::new(&self.bytes).map_err(&corrupt)?;
        // Values are below 4 GiB: RocksDB takes no larger ones.
        let place = |part: &[u8]| (part.as_ptr() as usize - self.bytes.as_ptr() as usize) as u32;
        while let Some(row) = run.next_stored().map_err(&corrupt)? {
            let body = place(row.body.rest());
            self.rows.push(RunPlace {
                ordinal: row.ordinal,
                block: row.block,
                transaction_index: row.transaction_index,
                hash: place(row.transaction_hash),
                body,
                end: body + row.body.rest().len() as u32,
            });
        }
        visits::unit();
        Ok(())
    }
}

fn missing(table: &'static str, what: &'static str, number: u64) -> StoreError {
    StoreError::Missing { table, what, number }
}

/// An emitter's list does not have the log.
fn no_log(ordinal: u64) -> StoreError {
    missing(Table::LogsByEmitter.name(), "log", ordinal)
}

/// Whether a stored run reaches from before to after an ordinal.
fn covers(value: &[u8], ordinal: u64) -> bool {
    RunReader::new(value).is_ok_and(|run| {
        let header = run.header();
        header.first_ordinal <= ordinal && ordinal <= header.last_ordinal
    })
}

/// Whether a stored run ends before an ordinal.
fn ends_before(value: &[u8], ordinal: u64) -> bool {
    RunReader::new(value).is_ok_and(|run| run.header().last_ordinal < ordinal)
}
