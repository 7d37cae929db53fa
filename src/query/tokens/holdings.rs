//! What an account holds: tokens (T6, T7).

use std::iter::Peekable;

use super::places::{KeyPart, TokenCursor};
use crate::codec::amount::read_amount;
use crate::codec::tokens;
use crate::model::{Address, TokenKind, TokenMetadata, U256};
use crate::query::{QueryError, Reader};
use crate::store::{Scan, Table};

/// The tokens of an account are counted up to this many.
const COUNTED_MAX: u64 = 1_000;

/// A token that an account holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its contract.
    pub token: Address,
    /// What the contract says of itself.
    pub metadata: TokenMetadata,
    /// Smallest units, or number of ids.
    pub balance: U256,
}

/// A page of what an account holds, by contract address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HoldingPage {
    /// The tokens.
    pub tokens: Vec<Held>,
    /// How many there are, where they are few or the page was reached by counting and reaches the end.
    pub total: Option<u64>,
    /// Where the next page begins, where there is one.
    pub next: Option<TokenCursor>,
}

/// Walks over what an account holds: by the ledger, or by what contracts said last where it is not right.
struct HoldingWalk<'a> {
    reader: &'a Reader,
    holder: &'a Address,
    kind: TokenKind,
    scan: Scan<'a>,
    told: Peekable<std::iter::Copied<std::slice::Iter<'a, (Address, U256)>>>,
}

impl<'a> HoldingWalk<'a> {
    /// From the first token behind `after`; `told` are the tokens that no row tells of, by address.
    fn begin(
        reader: &'a Reader,
        holder: &'a Address,
        kind: TokenKind,
        told: &'a [(Address, U256)],
        after: Option<TokenCursor>,
    ) -> Result<Self, QueryError> {
        let from = tokens::holding(holder, kind, &Address::ZERO);
        let mut to = tokens::holding(holder, kind, &Address::repeat_byte(0xff)).to_vec();
        to.push(0);
        let mut scan = reader.view.scan(Table::Holdings, from.to_vec(), to)?;
        let mut behind = 0;
        match after.map(|place| place.token()) {
            None => scan.seek(&from)?,
            Some(after) => {
                behind = told.partition_point(|(token, _)| *token <= after);
                scan.seek_behind(&tokens::holding(holder, kind, &after))?
            }
        };
        let told = told.get(behind..).unwrap_or_default();
        Ok(Self {
            reader,
            holder,
            kind,
            scan,
            told: told.iter().copied().peekable(),
        })
    }

    /// The next token and how much of it.
    fn step(&mut self) -> Result<Option<(Address, U256)>, QueryError> {
        let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::Holdings.name());
        loop {
            let row = self.scan.item()?;
            let row = row
                .map(|(key, value)| {
                    let token = tokens::decode_holding(key).map_err(corrupt)?;
                    let balance = read_amount(value).map_err(corrupt)?;
                    let refreshed = self.reader.refreshed(&token, self.kind, self.holder)?;
                    Ok::<_, QueryError>((token, refreshed.unwrap_or(balance)))
                })
                .transpose()?;
            let before = |(token, _): &(Address, U256)| row.is_none_or(|(next, _)| *token < next);
            let (token, balance) = match (self.told.next_if(before), row) {
                (Some(told), _) => told,
                (None, Some(row)) => {
                    self.scan.step()?;
                    row
                }
                (None, None) => return Ok(None),
            };
            // By events it has some, by the contract none.
            if !balance.is_zero() {
                return Ok(Some((token, balance)));
            }
        }
    }

    /// How many tokens there are, with the `walked` ones before this place, where they are not many.
    fn few(mut self, walked: u64) -> Result<Option<u64>, QueryError> {
        for count in walked..=COUNTED_MAX {
            if self.step()?.is_none() {
                return Ok(Some(count));
            }
        }
        Ok(None)
    }
}

impl Reader {
    /// The tokens of a kind that an account holds, by contract address (T6, T7).
    pub fn holdings(
        &self,
        holder: &Address,
        kind: TokenKind,
        part: &KeyPart<TokenCursor>,
    ) -> Result<HoldingPage, QueryError> {
        let told = self.without_rows(holder, kind)?;
        let mut walk = HoldingWalk::begin(self, holder, kind, &told, part.after)?;
        let mut place = 0;
        while part.after.is_none() && place < part.skip && walk.step()?.is_some() {
            place += 1;
        }
        let mut page = HoldingPage::default();
        let mut ended = false;
        // One more than asked for says whether rows follow.
        while page.tokens.len() <= part.limit && !ended {
            match walk.step()? {
                Some((token, balance)) => page.tokens.push(Held {
                    token,
                    metadata: self.token_metadata(&token)?,
                    balance,
                }),
                None => ended = true,
            }
        }
        let walked = place + page.tokens.len() as u64;
        page.total = match part.after {
            None if ended => Some(walked),
            None => walk.few(walked)?,
            Some(_) => HoldingWalk::begin(self, holder, kind, &told, None)?.few(0)?,
        };
        page.next = part.cut(&mut page.tokens, |held| TokenCursor::of(&held.token));
        Ok(page)
    }

    /// Tokens of a kind that an account holds by no row of the ledger, by address: by what their contracts said last, and for
    /// the zero address by verdicts.
    fn without_rows(&self, holder: &Address, kind: TokenKind) -> Result<Vec<(Address, U256)>, QueryError> {
        let mut found = Vec::new();
        for token in self.token_facts.held_by(holder)? {
            if self.is_told_of(&token, kind)?
                && self.view.holding(holder, kind, &token)?.is_zero()
                && let Some(balance) = self.token_facts.balance(&token, holder)?
            {
                found.push((token, balance));
            }
        }
        if holder.is_zero() {
            for address in self.token_facts.held_by_zero()? {
                let token = self.token(&address)?;
                if let Some(token) = token.filter(|token| token.kind() == kind && token.is_exact()) {
                    found.push((address, self.token_balance(&token, holder)?));
                }
            }
            found.sort_unstable();
        }
        Ok(found)
    }

    /// What the contract said last that an account holds by a standard, where the ledger does not know it.
    pub(super) fn refreshed(
        &self,
        token: &Address,
        kind: TokenKind,
        holder: &Address,
    ) -> Result<Option<U256>, QueryError> {
        // Of most tokens nothing was said, as they are exact: the token itself need not be looked up for that.
        let Some(balance) = self.token_facts.balance(token, holder)? else {
            return Ok(None);
        };
        Ok(self.is_told_of(token, kind)?.then_some(balance))
    }

    /// Whether it is the contract that tells what is held of a token by a standard: it is not exact, and its `balanceOf` speaks
    /// of that one.
    fn is_told_of(&self, token: &Address, kind: TokenKind) -> Result<bool, QueryError> {
        match self.token(token)?.filter(|token| !token.is_exact()) {
            Some(token) => Ok(self.standard_of_balances(&token)? == kind),
            None => Ok(false),
        }
    }
}
