//! Holders of a token by amount (T3) and their number (T4).

use super::{Token, ZeroAddress};
use crate::codec::bytes::Reader as Bytes;
use crate::codec::tokens;
use crate::model::{Address, U256};
use crate::query::{QueryError, Reader};
use crate::store::Table;

/// A page of holders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderPage {
    /// Holders and amounts, largest first, then by address.
    pub holders: Vec<(Address, U256)>,
    /// How many there are in all.
    pub total: u64,
    /// What shares are shares of.
    pub supply: U256,
    /// Whether it is the ledger that says so; else the contract did.
    pub by_ledger: bool,
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

impl Token {
    /// What the zero address holds as a holder like others; `None` where it is none.
    fn zero_holds(&self) -> Option<U256> {
        (self.verdict.zero == ZeroAddress::Holds && !self.state.to_zero.is_zero())
            .then_some(self.state.to_zero)
    }
}

impl Reader {
    /// How many accounts hold some of a token (T4); the second says whether the ledger says so.
    pub fn holder_count(&self, token: &Token) -> Result<(u64, bool), QueryError> {
        if !token.is_exact()
            && let Some(count) = self.token_facts.holder_count(&token.address)?
        {
            return Ok((count, false));
        }
        Ok((
            token.state.holders + u64::from(token.zero_holds().is_some()),
            true,
        ))
    }

    /// The holders of a token after the `skip` largest (T3).
    pub fn holders(&self, token: &Token, skip: u64, limit: usize) -> Result<HolderPage, QueryError> {
        let (total, _) = self.holder_count(token)?;
        if !token.is_exact()
            && let Some(holders) = self.token_facts.holders(&token.address, skip, limit)?
        {
            let supply = self.token_facts.supply(&token.address)?;
            return Ok(HolderPage {
                holders,
                total,
                supply: supply.unwrap_or_else(|| token.supply()),
                by_ledger: false,
            });
        }
        let mut page = HolderPage {
            total,
            supply: token.supply(),
            by_ledger: true,
            holders: Vec::new(),
        };
        let Some(zero) = token.zero_holds() else {
            page.holders = self.ledger_holders(token.id, skip, limit)?;
            return Ok(page);
        };
        // The zero address is in none of the rows: it stands before or among the ones around the page.
        let before = skip.min(1);
        let mut rows = self.ledger_holders(token.id, skip - before, limit + 1)?;
        let order = |(holder, amount): &(Address, U256)| (std::cmp::Reverse(*amount), *holder);
        let zero = (Address::ZERO, zero);
        let place = rows.partition_point(|row| order(row) < order(&zero));
        // Behind the last row only where the list ends there.
        if place < rows.len() || rows.len() <= limit && skip <= token.state.holders {
            rows.insert(place, zero);
        }
        // The row before the page, or the zero address where that stands before it: either way one too many.
        rows.drain(..rows.len().min(before as usize));
        rows.truncate(limit);
        page.holders = rows;
        Ok(page)
    }

    /// The holders by the ledger's rows, the zero address apart.
    fn ledger_holders(
        &self,
        token: u32,
        skip: u64,
        limit: usize,
    ) -> Result<Vec<(Address, U256)>, QueryError> {
        let prefix = tokens::token(token);
        let mut end = prefix.to_vec();
        end.push(0xff);
        let mut scan = self.view.scan(Table::Holders, prefix.to_vec(), end.clone())?;
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
        let mut rows = Vec::with_capacity(limit);
        while rows.len() < limit
            && let Some((key, _)) = scan.item()?
        {
            let (amount, holder) = tokens::decode_holder(key).map_err(corrupt(Table::Holders))?;
            rows.push((holder, amount));
            scan.step()?;
        }
        Ok(rows)
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
