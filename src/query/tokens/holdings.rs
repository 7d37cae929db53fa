//! What an account holds: tokens (T6, T7) and ids (T10).

use std::iter::Peekable;

use super::Token;
use super::places::{IdCursor, KeyPart, TokenCursor};
use crate::codec::amount::read_amount;
use crate::codec::tokens;
use crate::model::{Address, TokenKind, TokenMetadata, U256};
use crate::query::{QueryError, Reader};
use crate::store::{Scan, Table};

/// Tokens that are not exact and looked at for one account.
const TOLD_MAX: usize = 1_000;

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

/// A page of ids, ascending as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NftPage {
    /// The ids.
    pub ids: Vec<U256>,
    /// How many there are in all.
    pub total: u64,
    /// Where the next page begins, where there is one.
    pub next: Option<IdCursor>,
}

/// Walks over what an account holds: by the ledger, or by what contracts said last where it is not right.
struct HoldingWalk<'a> {
    reader: &'a Reader,
    holder: &'a Address,
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
                    let refreshed = self.reader.refreshed(&token, self.holder)?;
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
        for token in self.token_facts.held_by(holder, TOLD_MAX)? {
            let known = self.token(&token)?;
            if known.is_some_and(|known| known.kind() == kind && !known.is_exact())
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

    /// What the contract said last that an account holds, where the ledger does not know it.
    fn refreshed(&self, token: &Address, holder: &Address) -> Result<Option<U256>, QueryError> {
        // Of most tokens nothing was said, as they are exact: the token itself need not be looked up for that.
        let Some(balance) = self.token_facts.balance(token, holder)? else {
            return Ok(None);
        };
        let exact = self.token(token)?.is_none_or(|token| token.is_exact());
        Ok((!exact).then_some(balance))
    }

    /// The ids of an ERC-721 token that an account owns, by the ledger (T10).
    pub fn nft_ids(
        &self,
        token: &Token,
        owner: &Address,
        part: &KeyPart<IdCursor>,
    ) -> Result<NftPage, QueryError> {
        let from = tokens::nft_id(token.id, owner, &U256::ZERO);
        let mut to = tokens::nft_id(token.id, owner, &U256::MAX).to_vec();
        to.push(0);
        let total = if token.is_flagged() {
            // Its balance may count more than ids.
            let mut scan = self.view.scan(Table::NftIds, from.to_vec(), to.clone())?;
            let mut count = 0;
            scan.seek(&from)?;
            while scan.item()?.is_some() {
                count += 1;
                scan.step()?;
            }
            count
        } else if token.kind() == TokenKind::Erc721 {
            let held = self.view.holding(owner, TokenKind::Erc721, &token.address)?;
            u64::try_from(held).unwrap_or(u64::MAX)
        } else {
            0
        };
        // Whom the contract says to hold none holds none of what events name.
        let told = self.refreshed(&token.address, owner)?;
        let total = if told.is_some_and(|told| told.is_zero()) {
            0
        } else {
            total
        };
        let mut page = NftPage {
            total,
            ..NftPage::default()
        };
        let skip = if part.after.is_some() { 0 } else { part.skip };
        if skip >= total {
            return Ok(page);
        }
        let mut scan = self.view.scan(Table::NftIds, from.to_vec(), to)?;
        // Walked from the end of the list that is nearer.
        let left = total - 1 - skip;
        if let Some(place) = part.after {
            scan.seek_behind(&tokens::nft_id(token.id, owner, &place.id()))?;
        } else if skip <= left {
            scan.seek(&from)?;
            for _ in 0..skip {
                scan.step()?;
            }
        } else {
            scan.seek_back(&tokens::nft_id(token.id, owner, &U256::MAX))?;
            for _ in 0..left {
                scan.step_back()?;
            }
        }
        // One more than asked for says whether rows follow.
        while page.ids.len() <= part.limit
            && let Some((key, _)) = scan.item()?
        {
            let id = tokens::decode_nft_id(key);
            page.ids
                .push(id.map_err(|corrupt| QueryError::Corrupt(corrupt, Table::NftIds.name()))?);
            scan.step()?;
        }
        page.next = part.cut(&mut page.ids, IdCursor::of);
        Ok(page)
    }
}
