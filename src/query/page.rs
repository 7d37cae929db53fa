//! Pages of lists of ordinals. A list knows the rank of every posting, so that any page is found by two
//! searches and no row before it is looked at.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;

use super::limit::Limit;
use super::{QueryError, ranks};
use crate::codec::keys::Term;
use crate::model::B256;
use crate::store::{Direction, PostingCursor, View};

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListQuery {
    /// First block, inclusive.
    pub first_block: u64,
    /// Last block, inclusive.
    pub last_block: u64,
    /// Newest first.
    pub descending: bool,
    /// Rows to leave out.
    pub skip: u64,
    /// Rows to give at most.
    pub limit: usize,
    /// Resume after this row; `skip` then counts from there.
    pub cursor: Option<RowCursor>,
}

impl ListQuery {
    pub(super) const fn direction(&self) -> Direction {
        if self.descending {
            Direction::Backward
        } else {
            Direction::Forward
        }
    }

    /// The ordinals of `range` that are left after the cursor's row, or all of them.
    pub(super) fn rest(&self, range: Range<u64>) -> Range<u64> {
        match &self.cursor {
            Some(cursor) => cursor.rest(range, self.descending),
            None => range,
        }
    }
}

/// What the ordinals of a list count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    Logs,
    Transactions,
    Frames,
    /// Blocks, by their numbers.
    Blocks,
    /// ERC-1155 transfers.
    MultiTransfers,
}

impl Rows {
    /// The first ordinal at or after the start of a block, which may be the one that comes next.
    fn first_of(self, view: &View, block: u64) -> Result<u64, QueryError> {
        Ok(match self {
            Self::Logs => view.first_log(block)?,
            Self::Transactions => view.first_transaction(block)?,
            Self::Frames => view.first_frame(block)?,
            Self::Blocks => block.clamp(view.first_block(), view.checkpoint().next_block),
            Self::MultiTransfers => view.first_multi_transfer(view.first_log(block)?)?,
        })
    }

    /// The ordinals of the blocks that are asked for.
    pub(super) fn range(self, view: &View, query: &ListQuery) -> Result<Range<u64>, QueryError> {
        Ok(self.first_of(view, query.first_block)?
            ..self.first_of(view, query.last_block.saturating_add(1))?)
    }

    fn end(self, view: &View) -> u64 {
        let checkpoint = view.checkpoint();
        match self {
            Self::Logs => checkpoint.logs,
            Self::Transactions => checkpoint.transactions,
            Self::Frames => checkpoint.frames,
            Self::Blocks => checkpoint.next_block,
            Self::MultiTransfers => checkpoint.multi_transfers,
        }
    }

    fn block_hash(self, view: &View, ordinal: u64) -> Result<B256, QueryError> {
        Ok(match self {
            Self::Logs => view.block_of_log(ordinal)?.1.hash,
            Self::Transactions => view.block_of_transaction(ordinal)?.1.hash,
            Self::Frames => view.block_of_frame(ordinal)?.1.hash,
            Self::Blocks => view.block(ordinal)?.hash,
            Self::MultiTransfers => view.block_of_log(view.multi_transfer(ordinal)?.0)?.1.hash,
        })
    }
}

/// An exact row to resume after: its ordinal, and the block it lies in so that a reorg is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCursor {
    ordinal: u64,
    block_hash: [u8; 8],
}

impl fmt::Display for RowCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{}", self.ordinal, const_hex::encode(self.block_hash))
    }
}

impl FromStr for RowCursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        // The decoder would take a prefix too.
        if text.len() != 32 {
            return Err(());
        }
        let bytes: [u8; 16] = const_hex::decode_to_array(text).map_err(|_| ())?;
        let (ordinal, block_hash) = bytes.split_first_chunk::<8>().ok_or(())?;
        let block_hash = block_hash.try_into().map_err(|_| ())?;
        Ok(Self {
            ordinal: u64::from_be_bytes(*ordinal),
            block_hash,
        })
    }
}

impl RowCursor {
    pub(super) fn at(view: &View, rows: Rows, ordinal: u64) -> Result<Self, QueryError> {
        let hash = rows.block_hash(view, ordinal)?;
        Ok(Self {
            ordinal,
            block_hash: hash.0.first_chunk().copied().unwrap_or_default(),
        })
    }

    pub(super) fn check(&self, view: &View, rows: Rows) -> Result<(), QueryError> {
        let first = match rows {
            Rows::Blocks => view.first_block(),
            Rows::Logs | Rows::Transactions | Rows::Frames | Rows::MultiTransfers => 0,
        };
        if !(first..rows.end(view)).contains(&self.ordinal) || Self::at(view, rows, self.ordinal)? != *self {
            return Err(QueryError::CursorOrphaned);
        }
        Ok(())
    }

    /// The ordinals of `range` that are left after the row.
    fn rest(&self, range: Range<u64>, descending: bool) -> Range<u64> {
        if descending {
            range.start..range.end.min(self.ordinal)
        } else {
            range.start.max(self.ordinal + 1)..range.end
        }
    }
}

/// The rows of a page.
#[derive(Debug, Default)]
pub(super) struct Selected {
    /// Ordinals in the order of the page.
    pub(super) hits: Vec<u64>,
    /// Rows in the whole range; `None` where they would have to be walked over.
    pub(super) total: Option<u64>,
    /// Whether rows follow the page.
    pub(super) more: bool,
}

/// Selects a page out of all rows of `range`.
pub(super) fn select_all(range: Range<u64>, query: &ListQuery) -> Selected {
    let all = range.end.saturating_sub(range.start);
    let rest = query.rest(range);
    let left = rest.end.saturating_sub(rest.start).saturating_sub(query.skip);
    let count = left.min(query.limit as u64);
    let hits = if query.descending {
        let end = rest.end.saturating_sub(query.skip);
        (end - count..end).rev().collect()
    } else {
        let start = rest.start.saturating_add(query.skip);
        (start..start.saturating_add(count)).collect()
    };
    Selected {
        hits,
        total: Some(all),
        more: left > count,
    }
}

/// A page and the way its rows are read.
pub trait Paged {
    /// What is known of the page before its rows are read.
    fn page(&self) -> &Page;

    /// The page, for choosing a part of it.
    fn page_mut(&mut self) -> &mut Page;

    /// The same page, read by itself: on another thread, at another place.
    #[must_use]
    fn again(&self) -> Self;
}

/// A page of a list: which rows they are is known, their bodies are read as they are visited.
///
/// A copy shares the rows and is read by itself, so that parts of a page can be read on several threads.
#[derive(Clone)]
pub struct Page {
    view: Arc<View>,
    hits: Arc<Vec<u64>>,
    /// The rows that are still to be visited.
    rest: Range<usize>,
    total: Option<u64>,
    next_cursor: Option<RowCursor>,
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("hits", &self.hits.len())
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

impl Page {
    /// The page of `terms`, whose ordinals count `rows`, in the blocks of the query.
    pub(super) fn of_blocks(
        view: &Arc<View>,
        terms: &[Term],
        rows: Rows,
        query: &ListQuery,
    ) -> Result<Self, QueryError> {
        let range = rows.range(view, query)?;
        Self::of_range(view, terms, rows, range, query)
    }

    /// The page of `terms` in a range of ordinals; the blocks of the query are not looked at.
    pub(super) fn of_range(
        view: &Arc<View>,
        terms: &[Term],
        rows: Rows,
        range: Range<u64>,
        query: &ListQuery,
    ) -> Result<Self, QueryError> {
        if let Some(cursor) = &query.cursor {
            cursor.check(view, rows)?;
        }
        let mut lists = Vec::with_capacity(terms.len());
        for &term in terms {
            lists.push(PostingCursor::open(view, term, query.direction())?);
        }
        // One list, or two.
        let selected = ranks::select(&mut lists, range, query, &mut Limit::none())?;
        Self::of_rows(view, selected, rows)
    }

    /// The page of the rows that were selected, whose ordinals count `rows`.
    pub(super) fn of_rows(view: &Arc<View>, selected: Selected, rows: Rows) -> Result<Self, QueryError> {
        let last = selected.hits.last().filter(|_| selected.more);
        let next_cursor = last.map(|&last| RowCursor::at(view, rows, last)).transpose()?;
        Ok(Self {
            view: Arc::clone(view),
            rest: 0..selected.hits.len(),
            hits: Arc::new(selected.hits),
            total: selected.total,
            next_cursor,
        })
    }

    /// How many rows the list has in the whole range, where that is known without walking it.
    #[must_use]
    pub const fn total(&self) -> Option<u64> {
        self.total
    }

    /// Rows of the page.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hits.len()
    }

    /// Whether the page has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// Where the next page begins; `None` on the last one.
    #[must_use]
    pub const fn next_cursor(&self) -> Option<RowCursor> {
        self.next_cursor
    }

    /// The ordinals of the page.
    pub(super) fn hits(&self) -> &[u64] {
        &self.hits
    }

    /// Rows that are still to be visited.
    #[must_use]
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Chooses the rows that are visited next: places in the page.
    pub fn set_part(&mut self, rows: Range<usize>) {
        self.rest = rows;
    }

    /// The ordinals of the page, and the place of the first that was not visited yet.
    pub(super) fn rest(&self) -> (Arc<Vec<u64>>, usize) {
        (Arc::clone(&self.hits), self.rest.start)
    }

    /// The view that the rows are read from.
    pub(super) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view)
    }

    /// Hands the ordinals that were not visited yet to `row`, until that answers that it has enough; answers
    /// whether rows remain.
    pub(super) fn visit(
        &mut self,
        mut row: impl FnMut(u64) -> Result<bool, QueryError>,
    ) -> Result<bool, QueryError> {
        self.visit_with_rest(|ordinal, _| row(ordinal))
    }

    /// The same with each and those that are visited after it.
    pub(super) fn visit_with_rest(
        &mut self,
        mut row: impl FnMut(u64, &[u64]) -> Result<bool, QueryError>,
    ) -> Result<bool, QueryError> {
        self.visit_some(|hits| match hits.first() {
            Some(&ordinal) => Ok((1, row(ordinal, hits)?)),
            None => Ok((0, true)),
        })
    }

    /// The same with all of them at a time: `rows` answers how many it visited, at least one, and whether it goes on.
    pub(super) fn visit_some(
        &mut self,
        mut rows: impl FnMut(&[u64]) -> Result<(usize, bool), QueryError>,
    ) -> Result<bool, QueryError> {
        let end = self.rest.end.min(self.hits.len());
        while let Some(hits) = self
            .hits
            .get(self.rest.start..end)
            .filter(|hits| !hits.is_empty())
        {
            let (visited, more) = rows(hits)?;
            self.rest.start += visited;
            if !more {
                break;
            }
        }
        Ok(self.rest.start < end)
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
