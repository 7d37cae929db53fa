//! Holders of a token by amount (T3) and their number (T4).

use std::cmp::Reverse;
use std::time::Instant;

use super::Token;
use super::places::{HolderCursor, KeyPart};
use crate::codec::bytes::Reader as Bytes;
use crate::codec::tokens;
use crate::model::{Address, U256};
use crate::query::{QueryError, Reader};
use crate::store::{Scan, Table};

/// A page of holders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderPage {
    /// Holders and amounts, largest first, then by address.
    pub holders: Vec<(Address, U256)>,
    /// How many there are in all.
    pub total: u64,
    /// What shares are shares of; `None` where nobody can tell, and then the amounts are what events come to and no more.
    pub supply: Option<U256>,
    /// Whether it is the ledger that says so; else the contract did, or some of it.
    pub by_ledger: bool,
    /// Where the next page begins, where there is one.
    pub next: Option<HolderCursor>,
}

/// The place of a holder in its bucket.
struct Place {
    bucket: u16,
    /// Holders in the bucket.
    count: u64,
    /// Those of them before it.
    inside: u64,
}

fn corrupt(table: Table) -> impl Fn(crate::codec::Corrupt) -> QueryError {
    move |corrupt| QueryError::Corrupt(corrupt, table.name())
}

/// The order of the list.
const fn order((holder, amount): &(Address, U256)) -> (Reverse<U256>, Address) {
    (Reverse(*amount), *holder)
}

/// Where a holder stands among rows that it is not one of.
fn place_of(rows: &[(Address, U256)], holder: &(Address, U256)) -> usize {
    rows.partition_point(|row| order(row) < order(holder))
}

fn read_holders(scan: &mut Scan<'_>, limit: usize) -> Result<Vec<(Address, U256)>, QueryError> {
    let mut rows = Vec::new();
    while rows.len() < limit
        && let Some((key, _)) = scan.item()?
    {
        let (amount, holder) = tokens::decode_holder(key).map_err(corrupt(Table::Holders))?;
        rows.push((holder, amount));
        scan.step()?;
    }
    Ok(rows)
}

impl Token {
    /// What the zero address holds as a holder like others; `None` where it is none.
    fn zero_holds(&self) -> Option<U256> {
        let held = self.verdict.zero.zero_holds(self.state.to_zero);
        (!held.is_zero()).then_some(held)
    }

    /// How many accounts hold some of it, by events.
    fn holder_count(&self) -> u64 {
        self.state.holders + u64::from(self.zero_holds().is_some())
    }
}

/// What a contract told of all of its holders together.
struct Told {
    /// How many have some.
    count: u64,
    /// The supply, where it tells one.
    supply: Option<U256>,
}

impl Reader {
    /// How many accounts hold some of a token (T4); the second says whether the ledger says so.
    pub fn holder_count(&self, token: &Token) -> Result<(u64, bool), QueryError> {
        let by_events = token.holder_count();
        Ok(match self.holders_told(token)? {
            Some(told) => (told.count, told.supply.is_none() && told.count == by_events),
            None => (by_events, true),
        })
    }

    /// What the contract told of its holders, where it has to be asked and all of them were asked for.
    fn holders_told(&self, token: &Token) -> Result<Option<Told>, QueryError> {
        if token.is_exact() {
            return Ok(None);
        }
        let Some(count) = self.token_facts.holder_count(&token.address)? else {
            return Ok(None);
        };
        let supply = self.token_facts.supply(&token.address)?;
        Ok(Some(Told { count, supply }))
    }

    /// The holders of a token, largest first (T3). Passing over those that a contract told of gives up at `deadline`.
    pub fn holders(
        &self,
        token: &Token,
        part: &KeyPart<HolderCursor>,
        deadline: Option<Instant>,
    ) -> Result<HolderPage, QueryError> {
        let after = part.after.map(|place| place.holder()).transpose();
        let after = after.map_err(corrupt(Table::Holders))?;
        // One more than asked for says whether rows follow.
        let limit = part.limit.saturating_add(1);
        let told = self.holders_told(token)?;
        let rows_told = match &told {
            // What contracts told has no ranks, and is walked over from the start: its end is not where another moment's count says. The whole
            // of it would be walked over for nothing.
            Some(told) if after.is_none() && told.count <= part.skip => Some(Vec::new()),
            Some(_) => self
                .token_facts
                .holders(&token.address, after, part.skip, limit, deadline)?,
            None => None,
        };
        // Count and supply were asked for first: where what was told stops to count meanwhile, there are no rows of it, and all is the
        // ledger's.
        let (mut holders, total, supply, by_ledger) = match told.zip(rows_told) {
            Some((told, rows)) => {
                // Where the contract tells no supply it may tell nothing, and then all of it is what events say.
                let by_ledger = told.supply.is_none()
                    && told.count == token.holder_count()
                    && rows == self.holders_by_events(token, after, part.skip, limit)?;
                let supply = told.supply.or_else(|| token.supply_told());
                (rows, told.count, supply, by_ledger)
            }
            None => {
                let rows = self.holders_by_events(token, after, part.skip, limit)?;
                (rows, token.holder_count(), token.supply_told(), true)
            }
        };
        Ok(HolderPage {
            total,
            supply,
            by_ledger,
            next: part.cut(&mut holders, HolderCursor::of),
            holders,
        })
    }

    /// The holders by events behind a place, or past the first `skip`.
    fn holders_by_events(
        &self,
        token: &Token,
        after: Option<(Address, U256)>,
        skip: u64,
        limit: usize,
    ) -> Result<Vec<(Address, U256)>, QueryError> {
        match (token.zero_holds(), after) {
            (None, Some(after)) => self.holders_behind(token.id, &after, limit),
            (None, None) => self.holders_past(token.id, skip, limit),
            (Some(zero), Some(after)) => {
                let mut rows = self.holders_behind(token.id, &after, limit)?;
                let zero = (Address::ZERO, zero);
                if order(&after) < order(&zero) {
                    // Behind the last row it is seen only where the list ends there: what is too much is cut.
                    rows.insert(place_of(&rows, &zero), zero);
                }
                Ok(rows)
            }
            (Some(zero), None) => self.holders_with_zero(token, zero, skip, limit),
        }
    }

    /// The holders past the first `skip`, the zero address among them: it is in none of the rows and stands before or
    /// among the ones around the page.
    fn holders_with_zero(
        &self,
        token: &Token,
        zero: U256,
        skip: u64,
        limit: usize,
    ) -> Result<Vec<(Address, U256)>, QueryError> {
        let before = skip.min(1);
        let mut rows = self.holders_past(token.id, skip - before, limit.saturating_add(1))?;
        let zero = (Address::ZERO, zero);
        let place = place_of(&rows, &zero);
        // Behind the last row only where the list ends there.
        if place < rows.len() || rows.len() <= limit && skip <= token.state.holders {
            rows.insert(place, zero);
        }
        // The row before the page, or the zero address where that stands before it: either way one too many.
        rows.drain(..rows.len().min(before as usize));
        rows.truncate(limit);
        Ok(rows)
    }

    /// The rows of the ledger's holders, and the key that they all begin with.
    fn holder_rows(&self, token: u32) -> Result<(Scan<'_>, [u8; 4], Vec<u8>), QueryError> {
        let prefix = tokens::token(token);
        let mut end = prefix.to_vec();
        end.push(0xff);
        let scan = self.view.scan(Table::Holders, prefix.to_vec(), end.clone())?;
        Ok((scan, prefix, end))
    }

    /// The holders by the ledger's rows, the zero address apart, behind the place of one.
    fn holders_behind(
        &self,
        token: u32,
        (holder, amount): &(Address, U256),
        limit: usize,
    ) -> Result<Vec<(Address, U256)>, QueryError> {
        let (mut scan, ..) = self.holder_rows(token)?;
        scan.seek_behind(&tokens::holder(token, amount, holder))?;
        read_holders(&mut scan, limit)
    }

    /// The holders by the ledger's rows, the zero address apart, past the first `skip`.
    pub(super) fn holders_past(
        &self,
        token: u32,
        skip: u64,
        limit: usize,
    ) -> Result<Vec<(Address, U256)>, QueryError> {
        let (mut scan, prefix, end) = self.holder_rows(token)?;
        if skip == 0 {
            scan.seek(&prefix)?;
        } else {
            let Some(place) = self.bucket_of(token, skip, &end)? else {
                return Ok(Vec::new());
            };
            // Walked from the end of the bucket that is nearer.
            let left = place.count - 1 - place.inside;
            if place.inside <= left {
                scan.seek(&tokens::holder_count(token, place.bucket))?;
                for _ in 0..place.inside {
                    scan.step()?;
                }
            } else {
                scan.seek_back(&tokens::holder_count(token, place.bucket + 1))?;
                for _ in 0..left {
                    scan.step_back()?;
                }
            }
        }
        read_holders(&mut scan, limit)
    }

    /// Where the holder with `skip` others before it is counted.
    fn bucket_of(&self, token: u32, skip: u64, end: &[u8]) -> Result<Option<Place>, QueryError> {
        let prefix = tokens::token(token).to_vec();
        let mut scan = self
            .view
            .scan(Table::HolderCounts, prefix.clone(), end.to_vec())?;
        let mut item = scan.seek(&prefix)?;
        let mut left = skip;
        while let Some((key, value)) = item {
            let bucket = tokens::decode_holder_count(key).map_err(corrupt(Table::HolderCounts))?;
            let count = Bytes::new(value, "holder count")
                .varint()
                .map_err(corrupt(Table::HolderCounts))?;
            if left < count {
                return Ok(Some(Place {
                    bucket,
                    count,
                    inside: left,
                }));
            }
            left -= count;
            item = scan.step()?;
        }
        Ok(None)
    }
}
