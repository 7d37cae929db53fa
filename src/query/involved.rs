//! Transactions in which accounts took part: as a sender or recipient, or in any call below.

use std::ops::Range;
use std::time::Instant;

use super::internal::TopFrames;
use super::limit::Limit;
use super::{QueryError, Reader};
use crate::codec::keys::{PostingKind, Term};
use crate::model::Address;
use crate::store::{Direction, PostingCursor};

/// The lists of an account that count frames.
const FRAMES: [PostingKind; 2] = [PostingKind::AccountInternal, PostingKind::AccountCalls];

/// How often the clock is looked at: a posting takes some ten nanoseconds, or a row of a frame, which takes a microsecond.
const POSTINGS_PER_LOOK: u32 = 1_024;

/// Calls of one transaction that are passed over one by one before its end is looked for, which takes a dozen rows: what is called through
/// a proxy has two.
const ONE_BY_ONE: u32 = 8;

impl Reader {
    /// The places among all transactions of those in blocks `first..=last`, which are indexed.
    pub fn transactions_of(&self, first: u64, last: u64) -> Result<Range<u64>, QueryError> {
        Ok(self.view.first_transaction(first)?..self.view.first_transaction(last.saturating_add(1))?)
    }

    /// The place among all transactions of the one that has the frame which so many others of blocks `first..=last` come before, and
    /// how many of these are its own; `None` where there are not so many. The frames of the blocks must be stored.
    pub fn frame_after(
        &self,
        (first, last): (u64, u64),
        others: u64,
    ) -> Result<Option<(u64, u64)>, QueryError> {
        let end = self.view.first_frame(last.saturating_add(1))?;
        let frame = self.view.first_frame(first)?.checked_add(others);
        let Some(frame) = frame.filter(|frame| *frame < end) else {
            return Ok(None);
        };
        let mut places = TopFrames::new(&self.view);
        let (block, place) = places.place_of(frame)?;
        let own = frame - places.first_of(block, place)?;
        Ok(Some((self.view.first_transaction(block)? + place, own)))
    }

    /// The block of the transaction at this place among all.
    pub fn block_of(&self, ordinal: u64) -> Result<u64, QueryError> {
        Ok(self.view.block_of_transaction(ordinal)?.0)
    }

    /// The first (or with `descending` the last) `limit` transactions within `range` in which any of the accounts took
    /// part, in that order. The frames of all their blocks must be stored. Gives up at `deadline`.
    pub fn involving(
        &self,
        accounts: &[Address],
        range: Range<u64>,
        (descending, limit): (bool, usize),
        deadline: Option<Instant>,
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
        let mut time = Limit::new(deadline, POSTINGS_PER_LOOK);
        let mut places = TopFrames::new(&self.view);
        let mut found = Vec::new();
        for account in accounts {
            // Its lists are opened.
            time.check()?;
            let mut sent = self.open(PostingKind::AccountTransactions, account, direction)?;
            let mut of_one = Vec::new();
            walk(&mut sent, &range, direction, |ordinal| {
                time.spend(1)?;
                of_one.push(ordinal);
                Ok((of_one.len() < limit).then_some(Next::Posting))
            })?;
            found.append(&mut of_one);
            for kind in FRAMES {
                let mut calls = self.open(kind, account, direction)?;
                let mut again = 0;
                walk(&mut calls, &frames, direction, |frame| {
                    time.spend(1)?;
                    let (block, place) = places.place_of(frame)?;
                    let ordinal = self.view.first_transaction(block)? + place;
                    if of_one.last() != Some(&ordinal) {
                        again = 0;
                        of_one.push(ordinal);
                        return Ok((of_one.len() < limit).then_some(Next::Posting));
                    }
                    again += 1;
                    if again < ONE_BY_ONE {
                        return Ok(Some(Next::Posting));
                    }
                    // There may be thousands in the transaction: none of them says anything new.
                    Ok(match direction {
                        Direction::Forward => Some(places.first_of(block, place + 1)?),
                        Direction::Backward => places.first_of(block, place)?.checked_sub(1),
                    }
                    .map(Next::From))
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

/// Where a walk goes on.
enum Next {
    /// At the next posting.
    Posting,
    /// At the first one from this ordinal on, in the direction.
    From(u64),
}

/// Hands postings of a list within `range` to `visit`, in the direction, until that says that it goes on nowhere.
fn walk(
    list: &mut PostingCursor<'_>,
    range: &Range<u64>,
    direction: Direction,
    mut visit: impl FnMut(u64) -> Result<Option<Next>, QueryError>,
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
        at = match visit(posting)? {
            None => break,
            Some(Next::Posting) => list.step()?,
            Some(Next::From(target)) => list.seek(target)?,
        };
    }
    Ok(())
}
