//! Call frames: the internal transactions of an account, of a range of blocks and of a transaction (A4, A5, A6), and
//! what the top call says of its transaction.

use std::hint::black_box;

use super::page::{ListQuery, Page, Paged, Rows};
use super::{QueryError, Reader};
use crate::codec::keys::{PostingKind, Term};
use crate::codec::transaction_row::TransactionSlice;
use crate::codec::value::{FrameRow, FrameSlice, decode_frame_place};
use crate::model::{Address, B256, BlockId, Bytes, InternalTransaction};
use crate::store::{Table, UnitRow, Units, View, Wanted};

/// A page of internal transactions.
#[derive(Debug)]
pub struct InternalPage {
    page: Page,
    /// Where the rows are read, from frame to frame; opened by the first of them.
    units: Option<Units<'static>>,
}

impl InternalPage {
    const fn of(page: Page) -> Self {
        Self { page, units: None }
    }
}

impl Paged for InternalPage {
    fn page(&self) -> &Page {
        &self.page
    }

    fn page_mut(&mut self) -> &mut Page {
        &mut self.page
    }

    fn again(&self) -> Self {
        Self::of(self.page.clone())
    }
}

fn corrupt(corrupt: crate::codec::Corrupt) -> QueryError {
    QueryError::Corrupt(corrupt, Table::Frames.name())
}

/// What is known of a transaction's top call.
#[derive(Clone, Debug)]
pub(super) enum TopCall {
    /// Nothing: the frames of its block are not stored.
    Untold,
    /// That there was none: the frames of its block are stored, and none is of it. A node at whose word blocks are taken may tell so of
    /// what runs nothing of its own.
    Absent,
    /// What became of it.
    Ended(TopOutcome),
}

impl TopCall {
    /// Whether it went well, as far as frames tell: nothing failed where nothing ran. `None` where they are not stored.
    pub(super) const fn success(&self) -> Option<bool> {
        match self {
            Self::Untold => None,
            Self::Absent => Some(true),
            Self::Ended(top) => Some(top.error.is_none()),
        }
    }
}

/// What became of a transaction's top call.
#[derive(Clone, Debug, Default)]
pub(super) struct TopOutcome {
    /// Its error, as traces word it; `None` on success.
    pub(super) error: Option<String>,
    /// Return data, or code of a creation.
    pub(super) output: Bytes,
}

/// The frames of transactions, found by their places.
pub(super) struct TopFrames<'v> {
    view: &'v View,
    units: Units<'v>,
}

impl<'v> TopFrames<'v> {
    pub(super) fn new(view: &'v View) -> Self {
        let units = Units::new(view, Table::Frames);
        Self { view, units }
    }

    /// The first frame ordinal of the block's transactions from position `index` on; the block's frames must be
    /// stored. A frame's row begins with its transaction's position, and positions never fall.
    pub(super) fn first_of(&mut self, block: u64, index: u64) -> Result<u64, QueryError> {
        let (mut low, mut high) = (self.view.first_frame(block)?, self.view.first_frame(block + 1)?);
        while low < high {
            let middle = low + (high - low) / 2;
            let place = decode_frame_place(self.units.row(middle)?.bytes()).map_err(corrupt)?;
            if u64::from(place) < index {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The block of a frame, and the position of its transaction in there.
    pub(super) fn place_of(&mut self, frame: u64) -> Result<(u64, u64), QueryError> {
        let row = self.units.row(frame)?;
        let place = decode_frame_place(row.bytes()).map_err(corrupt)?;
        Ok((row.block, place.into()))
    }

    /// What is known of the top call of the transaction at position `index` of a block.
    pub(super) fn top_call(&mut self, block: u64, index: u64) -> Result<TopCall, QueryError> {
        if self.view.block_frames(block)?.is_none() {
            return Ok(TopCall::Untold);
        }
        let first = self.first_of(block, index)?;
        if first == self.view.first_frame(block + 1)? {
            return Ok(TopCall::Absent);
        }
        let row = FrameRow::decode(self.units.row(first)?.bytes()).map_err(corrupt)?;
        let is_top = u64::from(row.transaction_index()) == index && row.is_top();
        if !is_top {
            return Ok(TopCall::Absent);
        }
        let (output, error) = row.outcome();
        Ok(TopCall::Ended(TopOutcome {
            error: error.map(str::to_owned),
            output: Bytes::copy_from_slice(output),
        }))
    }

    /// Visits the frames of the transaction at position `index` of a block in the order of execution, until
    /// `visitor` has enough or so many were seen; answers false where the block's frames are not stored.
    pub(super) fn visit(
        &mut self,
        (block, index): (u64, u64),
        limit: u64,
        visitor: &mut dyn FnMut(&FrameSlice<'_>) -> bool,
    ) -> Result<bool, QueryError> {
        if self.view.block_frames(block)?.is_none() {
            return Ok(false);
        }
        let first = self.first_of(block, index)?;
        let end = self.view.first_frame(block + 1)?;
        let transaction = self.view.first_transaction(block)? + index;
        let mut transactions = Units::new(self.view, Table::Transactions);
        let mut data = Vec::new();
        for ordinal in first..end.min(first.saturating_add(limit)) {
            let row = FrameRow::decode(self.units.row(ordinal)?.bytes()).map_err(corrupt)?;
            if u64::from(row.transaction_index()) != index {
                break;
            }
            let frame = match row {
                FrameRow::Whole(frame) => frame,
                FrameRow::OfTransaction(top) => {
                    let row = TransactionSlice::decode(transactions.row(transaction)?.bytes());
                    let call = row.and_then(|row| row.call(&mut data));
                    let call =
                        call.map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Transactions.name()))?;
                    top.with(&call)
                }
            };
            if !visitor(&frame) {
                break;
            }
        }
        Ok(true)
    }
}

impl Reader {
    pub(super) fn needs_traces_to(&self, last_block: u64) -> Result<(), QueryError> {
        let next_traced = self.view.checkpoint().next_traced;
        if last_block < next_traced || self.has_traces() {
            Ok(())
        } else {
            Err(QueryError::NeedsTraces)
        }
    }

    /// The internal transactions of an account (A4): the default set, or `all` nested frames.
    pub fn account_internal(
        &self,
        account: &Address,
        all: bool,
        query: &ListQuery,
    ) -> Result<InternalPage, QueryError> {
        self.needs_traces_to(query.last_block)?;
        let of = |kind| Term::account(kind, account);
        let terms = [of(PostingKind::AccountInternal), of(PostingKind::AccountCalls)];
        Page::of_blocks(&self.view, lists(&terms, all), Rows::Frames, query).map(InternalPage::of)
    }

    /// The internal transactions of the blocks of the query (A5).
    pub fn internal(&self, all: bool, query: &ListQuery) -> Result<InternalPage, QueryError> {
        self.needs_traces_to(query.last_block)?;
        Page::of_blocks(&self.view, lists(&whole(), all), Rows::Frames, query).map(InternalPage::of)
    }

    /// The internal transactions of a transaction (A6), whatever the blocks of the query; `None` for a hash that
    /// is not indexed.
    pub fn transaction_internal(
        &self,
        hash: &B256,
        all: bool,
        query: &ListQuery,
    ) -> Result<Option<InternalPage>, QueryError> {
        let Some(ordinal) = self.view.transaction_ordinal(hash)? else {
            return Ok(None);
        };
        let (block, facts) = self.view.block_of_transaction(ordinal)?;
        self.needs_traces_to(block)?;
        let index = ordinal - facts.first_transaction;
        let mut frames = TopFrames::new(&self.view);
        let range = frames.first_of(block, index)?..frames.first_of(block, index + 1)?;
        let page = Page::of_range(&self.view, lists(&whole(), all), Rows::Frames, range, query)?;
        Ok(Some(InternalPage::of(page)))
    }
}

/// The lists that are not an account's.
fn whole() -> [Term; 2] {
    [PostingKind::Internal, PostingKind::Calls].map(Term::whole)
}

/// The default set alone, or both lists.
fn lists(terms: &[Term; 2], all: bool) -> &[Term] {
    let [default_set, _] = terms;
    if all {
        terms
    } else {
        std::slice::from_ref(default_set)
    }
}

/// Reads what a frame calls for.
fn touch_frame(view: &View, _: u64, row: UnitRow<'_>) {
    if let (Ok(block), Ok(place)) = (view.block(row.block), decode_frame_place(row.bytes())) {
        let _ = black_box(view.transaction_hash(block.first_transaction + u64::from(place)));
    }
}

impl InternalPage {
    /// Visits the internal transactions that were not visited yet, until `visitor` answers that it has enough;
    /// answers whether any remain.
    pub fn visit(
        &mut self,
        visitor: &mut dyn FnMut(&InternalTransaction<'_>) -> bool,
    ) -> Result<bool, QueryError> {
        let view = self.page.view();
        let units = Units::opened(&mut self.units, &view, Table::Frames);
        self.page.visit_with_rest(|_, ordinals| {
            let row = units.row_of(Wanted {
                ordinals,
                touch: touch_frame,
            })?;
            let number = row.block;
            let frame = FrameRow::decode(row.bytes())
                .and_then(FrameRow::nested)
                .map_err(corrupt)?;
            let block = view.block(number)?;
            let transaction = block.first_transaction + u64::from(frame.transaction_index);
            Ok(visitor(&InternalTransaction {
                transaction_hash: view.transaction_hash(transaction)?,
                block: BlockId {
                    number,
                    hash: block.hash,
                },
                timestamp: block.timestamp,
                transaction_index: frame.transaction_index,
                kind: frame.kind,
                path: &frame.path,
                from: frame.from,
                to: frame.to,
                value: frame.value,
                gas: frame.gas,
                gas_used: frame.gas_used,
                input: frame.input,
                output: frame.output,
                error: frame.error,
                reverted: frame.reverted,
            }))
        })
    }
}
