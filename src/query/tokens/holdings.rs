//! What an account holds: tokens (T6, T7).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::Token;
use super::held_rows::HeldRows;
use super::places::{KeyPart, TokenCursor};
use crate::model::{Address, TokenKind, TokenMetadata, U256};
use crate::query::limit::Limit;
use crate::query::{QueryError, Reader};

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

/// How often the clock is looked at: a token takes some microseconds.
const TOKENS_PER_LOOK: u32 = 64;

/// Tokens that were told of are read so many at a time.
const TOLD_AT_ONCE: usize = 256;

/// Walks over the tokens that an account holds by no row of the ledger: by what their contracts said last, and for the zero address by
/// verdicts. Each is looked at when the walk comes to it.
struct ToldWalk<'a> {
    reader: &'a Reader,
    holder: &'a Address,
    kind: TokenKind,
    /// What comes next of the tokens that were told of, and behind which others follow unless there are none.
    said: VecDeque<Address>,
    said_to: Option<Address>,
    said_all: bool,
    /// What verdicts say, and how much of it was passed.
    by_verdict: Arc<[Address]>,
    passed: usize,
}

impl<'a> ToldWalk<'a> {
    /// From the first token behind `after`.
    fn begin(
        reader: &'a Reader,
        holder: &'a Address,
        kind: TokenKind,
        after: Option<Address>,
    ) -> Result<Self, QueryError> {
        let by_verdict = match holder.is_zero() {
            true => reader.token_facts.held_by_zero()?,
            false => Arc::default(),
        };
        let passed = after.map_or(0, |after| by_verdict.partition_point(|token| *token <= after));
        Ok(Self {
            reader,
            holder,
            kind,
            said: VecDeque::new(),
            said_to: after,
            said_all: false,
            by_verdict,
            passed,
        })
    }

    /// The next token that a contract told of.
    fn next_said(&mut self) -> Result<Option<Address>, QueryError> {
        if self.said.is_empty() && !self.said_all {
            let facts = &self.reader.token_facts;
            let more = facts.held_by(self.holder, self.said_to.as_ref(), TOLD_AT_ONCE)?;
            self.said_all = more.len() < TOLD_AT_ONCE;
            self.said_to = more.last().copied().or(self.said_to);
            self.said = more.into();
        }
        Ok(self.said.front().copied())
    }

    /// The next token and how much of it.
    fn step(&mut self, limit: &mut Limit) -> Result<Option<(Address, U256)>, QueryError> {
        loop {
            limit.spend(1)?;
            let by_verdict = self.by_verdict.get(self.passed).copied();
            let (token, balance) = match (self.next_said()?, by_verdict) {
                (Some(said), by_verdict) if by_verdict.is_none_or(|token| said <= token) => {
                    self.said.pop_front();
                    (said, self.said_of(&said)?)
                }
                (_, Some(token)) => {
                    self.passed += 1;
                    (token, self.by_verdict_of(&token)?)
                }
                _ => return Ok(None),
            };
            if let Some(balance) = balance {
                return Ok(Some((token, balance)));
            }
        }
    }

    /// What its contract said of a token, where that counts and no row tells of it.
    fn said_of(&self, token: &Address) -> Result<Option<U256>, QueryError> {
        let (reader, holder, kind) = (self.reader, self.holder, self.kind);
        let Some(told_of) = reader.told_of(token, kind)? else {
            return Ok(None);
        };
        match reader.holding(&told_of, holder, kind)?.is_zero() {
            true => Ok(reader.token_facts.balance(token, holder)?),
            false => Ok(None),
        }
    }

    /// What the zero address was sent of a token, where it holds that.
    fn by_verdict_of(&self, token: &Address) -> Result<Option<U256>, QueryError> {
        let token = self.reader.token(token)?;
        let token = token.filter(|token| token.kind() == self.kind && token.is_exact());
        token
            .map(|token| self.reader.token_balance(&token, self.holder))
            .transpose()
    }
}

/// Walks over what an account holds: by the ledger, or by what contracts said last where it is not right.
struct HoldingWalk<'a> {
    rows: HeldRows<'a>,
    told: ToldWalk<'a>,
    limit: Limit,
    /// What comes next of each.
    next_row: Option<(Address, U256)>,
    next_told: Option<(Address, U256)>,
}

impl<'a> HoldingWalk<'a> {
    /// From the first token behind `after`, until `deadline`.
    fn begin(
        reader: &'a Reader,
        holder: &'a Address,
        kind: TokenKind,
        after: Option<TokenCursor>,
        deadline: Option<Instant>,
    ) -> Result<Self, QueryError> {
        let after = after.map(|place| place.token());
        let mut limit = Limit::new(deadline, TOKENS_PER_LOOK);
        let mut walk = Self {
            rows: HeldRows::begin(&reader.view, holder, kind, after.as_ref(), &mut limit)?,
            told: ToldWalk::begin(reader, holder, kind, after)?,
            limit,
            next_row: None,
            next_told: None,
        };
        walk.next_row = walk.read_row()?;
        walk.next_told = walk.told.step(&mut walk.limit)?;
        Ok(walk)
    }

    /// The next token by the ledger's rows.
    fn read_row(&mut self) -> Result<Option<(Address, U256)>, QueryError> {
        let Some((token, balance)) = self.rows.step(&mut self.limit)? else {
            return Ok(None);
        };
        let ToldWalk {
            reader, holder, kind, ..
        } = self.told;
        let refreshed = reader.refreshed(&token, kind, holder)?;
        Ok(Some((token, refreshed.unwrap_or(balance))))
    }

    /// The next token and how much of it.
    fn step(&mut self) -> Result<Option<(Address, U256)>, QueryError> {
        loop {
            let is_told = match (self.next_told, self.next_row) {
                (Some((told, _)), Some((row, _))) => told < row,
                (told, _) => told.is_some(),
            };
            let next = match is_told {
                true => {
                    let told = self.told.step(&mut self.limit)?;
                    std::mem::replace(&mut self.next_told, told)
                }
                false if self.next_row.is_none() => None,
                false => {
                    let row = self.read_row()?;
                    std::mem::replace(&mut self.next_row, row)
                }
            };
            // By events it has some, by the contract none.
            if next.is_none_or(|(_, balance)| !balance.is_zero()) {
                return Ok(next);
            }
        }
    }

    /// How many tokens there are, with the `walked` ones before this place, where they are not many and there is time to count them.
    fn few(mut self, walked: u64) -> Result<Option<u64>, QueryError> {
        for count in walked..=COUNTED_MAX {
            match self.step() {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(Some(count)),
                Err(QueryError::TimedOut) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

impl Reader {
    /// The tokens of a kind that an account holds, by contract address (T6, T7). Gives up at `deadline`.
    pub fn holdings(
        &self,
        holder: &Address,
        kind: TokenKind,
        part: &KeyPart<TokenCursor>,
        deadline: Option<Instant>,
    ) -> Result<HoldingPage, QueryError> {
        let mut walk = HoldingWalk::begin(self, holder, kind, part.after, deadline)?;
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
            Some(_) => match HoldingWalk::begin(self, holder, kind, None, deadline) {
                Ok(walk) => walk.few(0)?,
                Err(QueryError::TimedOut) => None,
                Err(error) => return Err(error),
            },
        };
        page.next = part.cut(&mut page.tokens, |held| TokenCursor::of(&held.token));
        Ok(page)
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
        Ok(self.told_of(token, kind)?.map(|_| balance))
    }

    /// The token, where it is its contract that tells what is held of it by a standard: it is not exact, and its `balanceOf` speaks
    /// of that one.
    fn told_of(&self, token: &Address, kind: TokenKind) -> Result<Option<Token>, QueryError> {
        match self.token(token)?.filter(|token| !token.is_exact()) {
            Some(token) if self.standard_of_balances(&token)? == kind => Ok(Some(token)),
            _ => Ok(None),
        }
    }
}
