//! Pages of logs: which they are is known, and their bodies are read as they are visited.

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

use super::QueryError;
use super::page::{Page, Paged, Rows, Selected};
use crate::codec::bytes;
use crate::codec::log_row::{decode_block_row, decode_body};
use crate::model::{Address, B256, LogEntry, Topics};
use crate::store::{BlockFacts, Runs, StoreError, Table, UnitRow, Units, View, Wanted};

/// Where the bodies of a page are read.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bodies {
    ByBlock,
    ByEmitter(u32, Address),
}

/// The bodies of a page, being read.
enum Open {
    Units(Units<'static>),
    Runs(Runs<'static>, Address),
}

impl Open {
    fn new(view: &Arc<View>, bodies: Bodies) -> Result<Self, QueryError> {
        Ok(match bodies {
            Bodies::ByBlock => Self::Units(Units::owned(view, Table::LogsByBlock)),
            Bodies::ByEmitter(emitter, address) => Self::Runs(Runs::owned(view, emitter)?, address),
        })
    }
}

/// A page of logs: which they are is known, their bodies are read as they are visited.
pub struct LogPage {
    page: Page,
    bodies: Bodies,
    /// Where the bodies are read, from frame to frame; opened by the first of them.
    open: Option<Open>,
}

impl fmt::Debug for LogPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogPage")
            .field("page", &self.page)
            .finish_non_exhaustive()
    }
}

impl Paged for LogPage {
    fn page(&self) -> &Page {
        &self.page
    }

    fn page_mut(&mut self) -> &mut Page {
        &mut self.page
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.clone(),
            bodies: self.bodies,
            open: None,
        }
    }
}

impl LogPage {
    pub(super) fn new(view: &Arc<View>, selected: Selected, bodies: Bodies) -> Result<Self, QueryError> {
        Ok(Self {
            page: Page::of_rows(view, selected, Rows::Logs)?,
            bodies,
            open: None,
        })
    }

    pub(super) fn none(view: &Arc<View>) -> Result<Self, QueryError> {
        let selected = Selected {
            total: Some(0),
            ..Selected::default()
        };
        Self::new(view, selected, Bodies::ByBlock)
    }

    /// Visits the logs that were not visited yet, until `visitor` answers that it has enough; answers
    /// whether logs remain.
    pub fn visit(&mut self, visitor: &mut dyn FnMut(&LogEntry<'_>) -> bool) -> Result<bool, QueryError> {
        let view = self.page.view();
        let open = match &mut self.open {
            Some(open) => open,
            none => none.insert(Open::new(&view, self.bodies)?),
        };
        let mut before = Before::of(&view);
        match open {
            Open::Units(units) => self.page.visit_some(|hits| {
                let mut unit = units.unit_of(Wanted {
                    ordinals: hits,
                    touch: touch_log,
                })?;
                let mut visited = 0;
                for &ordinal in hits {
                    let Some(row) = unit.row(ordinal)? else { break };
                    visited += 1;
                    if !visit_in_unit(&mut before, row, ordinal, visitor)? {
                        return Ok((visited, false));
                    }
                }
                Ok((visited, true))
            }),
            Open::Runs(runs, address) => self
                .page
                .visit(|ordinal| visit_in_run(&mut before, runs, *address, ordinal, visitor)),
        }
    }
}

/// Emitters that are remembered while a frame is made.
const EMITTERS: usize = 64;

/// What the row before had. Neighbours are of one block and often of one transaction, and rows of a page of one signature: its topic stays
/// where it is, and the other topics and the data are written in place of those before.
struct Before<'v> {
    view: &'v View,
    block: Option<(u64, BlockFacts)>,
    transaction: Option<(u64, B256)>,
    /// Some of the emitters, each at its place among these: they are few, and the array has one page of memory for 200.
    emitters: [Option<(u32, Address)>; EMITTERS],
    /// That of the first of `topics`.
    signature: Option<u32>,
    topics: Topics,
    data: Vec<u8>,
}

/// What `last` says of `key`, or what is looked up.
#[inline]
fn known<K: PartialEq + Copy, V: Copy>(
    last: &mut Option<(K, V)>,
    key: K,
    look_up: impl FnOnce(K) -> Result<V, StoreError>,
) -> Result<V, StoreError> {
    match *last {
        Some((known, value)) if known == key => Ok(value),
        _ => Ok(last.insert((key, look_up(key)?)).1),
    }
}

impl<'v> Before<'v> {
    fn of(view: &'v View) -> Self {
        Self {
            view,
            block: None,
            transaction: None,
            emitters: [None; EMITTERS],
            signature: None,
            topics: Topics::default(),
            data: Vec::new(),
        }
    }

    #[inline]
    fn block(&mut self, number: u64) -> Result<BlockFacts, StoreError> {
        known(&mut self.block, number, |number| self.view.block(number))
    }

    #[inline]
    fn transaction_hash(&mut self, ordinal: u64) -> Result<B256, StoreError> {
        known(&mut self.transaction, ordinal, |ordinal| {
            self.view.transaction_hash(ordinal)
        })
    }

    #[inline]
    fn emitter_address(&mut self, emitter: u32) -> Result<Address, StoreError> {
        let place = &mut self.emitters[emitter as usize % EMITTERS];
        known(place, emitter, |emitter| self.view.emitter_address(emitter))
    }

    /// Reads a body of a row of `table`.
    #[inline]
    fn body(&mut self, reader: &mut bytes::Reader<'_>, table: Table) -> Result<(), QueryError> {
        let signature = decode_body(reader, &mut self.topics, &mut self.data)
            .map_err(|corrupt| QueryError::Corrupt(corrupt, table.name()))?;
        if let Some(id) = signature
            && self.signature != Some(id)
        {
            self.topics.set_first(self.view.signature_topic(id)?);
            self.signature = Some(id);
        }
        Ok(())
    }
}

/// Reads what a log of a unit calls for. Whoever is given the row reads it again, and says what is wrong with it.
fn touch_log(view: &View, _: u64, row: UnitRow<'_>) {
    let _ = touched_log(view, row);
}

/// The ordinal of the transaction of a log, which was touched.
pub(super) fn touched_log(view: &View, mut row: UnitRow<'_>) -> Option<u64> {
    let block = view.block(row.block).ok()?;
    let place = decode_block_row(&mut row.reader).ok()?;
    let transaction = block.first_transaction + u64::from(place.transaction_index);
    let hash = view.transaction_hash(transaction);
    let _ = black_box((hash, view.emitter_address(place.emitter)));
    Some(transaction)
}

/// Shows a log of a unit to the visitor.
fn visit_in_unit(
    before: &mut Before<'_>,
    mut row: UnitRow<'_>,
    ordinal: u64,
    visitor: &mut dyn FnMut(&LogEntry<'_>) -> bool,
) -> Result<bool, QueryError> {
    let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::LogsByBlock.name());
    let block = before.block(row.block)?;
    let place = decode_block_row(&mut row.reader).map_err(corrupt)?;
    before.body(&mut row.reader, Table::LogsByBlock)?;
    let transaction = block.first_transaction + u64::from(place.transaction_index);
    Ok(visitor(&LogEntry {
        ordinal,
        block_number: row.block,
        block_hash: block.hash,
        timestamp: block.timestamp,
        transaction_hash: before.transaction_hash(transaction)?,
        transaction_index: place.transaction_index,
        log_index: row.index as u32,
        address: before.emitter_address(place.emitter)?,
        topics: &before.topics,
        data: &before.data,
    }))
}

/// The same for a log of a run, whose emitter has `address`.
fn visit_in_run(
    before: &mut Before<'_>,
    runs: &mut Runs<'_>,
    address: Address,
    ordinal: u64,
    visitor: &mut dyn FnMut(&LogEntry<'_>) -> bool,
) -> Result<bool, QueryError> {
    let mut row = runs.row(ordinal)?;
    let block = before.block(row.block)?;
    before.body(&mut row.body, Table::LogsByEmitter)?;
    Ok(visitor(&LogEntry {
        ordinal,
        block_number: row.block,
        block_hash: block.hash,
        timestamp: block.timestamp,
        transaction_hash: B256::from(row.transaction_hash),
        transaction_index: row.transaction_index,
        log_index: (ordinal - block.first_log) as u32,
        address,
        topics: &before.topics,
        data: &before.data,
    }))
}
