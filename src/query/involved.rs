//! Transactions in which accounts took part: as a sender or recipient, or in any call below.

use std::ops::Range;

use super::internal::TopFrames;
use super::{QueryError, Reader};
use crate::codec::keys::{PostingKind, Term};
use crate::codec::value::decode_frame_place;
use crate::model::Address;
use crate::store::{Direction, PostingCursor, Table, Units};

/// The lists of an account that count frames.
const FRAMES: [PostingKind; 2] = [PostingKind::AccountInternal, PostingKind::AccountCalls];

impl Reader {
    /// The places among all transactions of those in blocks `first..=last`, which are indexed.
    pub fn transactions_of(&self, first: u64, last: u64) -> Result<Range<u64>, QueryError> {
        Ok(self.view.first_transaction(first)?..self.view.first_transaction(last.saturating_add(1))?)
    }

    /// The block of the transaction at this place among all.
    pub fn block_of(&self, ordinal: u64) -> Result<u64, QueryError> {
        Ok(self.view.block_of_transaction(ordinal)?.0)
    }

    /// The first (or with `descending` the last) `limit` transactions within `range` in which any of the accounts took
    /// part, in that order. The frames of all their blocks must be stored.
    pub fn involving(
        &self,
        accounts: &[Address],
        range: Range<u64>,
        descending: bool,
        limit: usize,
    ) -> Result<Vec<u64>, QueryError> {
        let Some(last) = range.end.checked_sub(1).filter(|last| *last >= range.start) else {
            return Ok(Vec::new());
        };
        let (last_block, _) = self.view.block_of_transaction(last)?;
        self.needs_traces_to(last_block)?;
        let direction = if descending {
            Direction::Backward
        } else {
            Direction::Forward
        };
        let frames = self.frame_of(range.start)?..self.frame_of(range.end)?;
        let mut found = Vec::new();
        for account in accounts {
            let mut sent = self.open(PostingKind::AccountTransactions, account, direction)?;
            let mut of_one = Vec::new();
            walk(&mut sent, &range, direction, |ordinal| {
                of_one.push(ordinal);
                Ok(of_one.len() < limit)
            })?;
            found.append(&mut of_one);
            for kind in FRAMES {
                let mut calls = self.open(kind, account, direction)?;
                let mut units = Units::new(&self.view, Table::Frames);
                walk(&mut calls, &frames, direction, |frame| {
                    let row = units.row(frame)?;
                    let place = decode_frame_place(row.bytes())
                        .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
                    let ordinal = self.view.first_transaction(row.block)? + u64::from(place);
                    if of_one.last() != Some(&ordinal) {
                        of_one.push(ordinal);
                    }
                    Ok(of_one.len() < limit)
                })?;
                found.append(&mut of_one);
            }
        }
        found.sort_unstable();
        found.dedup();
        if descending {
            found.reverse();
        }
        found.truncate(limit);
        Ok(found)
    }

    fn open(
        &self,
        kind: PostingKind,
        account: &Address,
        direction: Direction,
    ) -> Result<PostingCursor<'_>, QueryError> {
        Ok(PostingCursor::open(
            &self.view,
            Term::account(kind, account),
            direction,
        )?)
    }

    /// The first frame at or after the start of a transaction, which may be the one that comes next.
    fn frame_of(&self, ordinal: u64) -> Result<u64, QueryError> {
        let checkpoint = self.view.checkpoint();
        if ordinal >= checkpoint.transactions {
            return Ok(checkpoint.frames);
        }
        let (block, facts) = self.view.block_of_transaction(ordinal)?;
        if block >= checkpoint.next_traced {
            return Ok(checkpoint.frames);
        }
        TopFrames::new(&self.view).first_of(block, ordinal - facts.first_transaction)
    }
}

/// Hands the postings of a list within `range` to `visit`, in the direction, until it has enough.
fn walk(
    list: &mut PostingCursor<'_>,
    range: &Range<u64>,
    direction: Direction,
    mut visit: impl FnMut(u64) -> Result<bool, QueryError>,
) -> Result<(), QueryError> {
    let start = match direction {
        Direction::Forward => range.start,
        Direction::Backward => match range.end.checked_sub(1) {
            Some(last) => last,
            None => return Ok(()),
        },
    };
    let mut at = list.seek(start)?;
    while let Some(posting) = at.filter(|posting| range.contains(posting)) {
        if !visit(posting)? {
            break;
        }
        at = list.step()?;
    }
    Ok(())
}
