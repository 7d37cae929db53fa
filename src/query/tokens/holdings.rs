//! What an account holds: tokens (T6, T7) and ids (T10).

use super::{Token, TokenFacts};
use crate::codec::tokens;
use crate::model::{Address, TokenKind, TokenMetadata, U256};
use crate::query::{QueryError, Reader};
use crate::store::Table;

/// Tokens that are not exact and looked at for one account.
const TOLD_MAX: usize = 1_000;

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
    /// How many there are, where the page reaches the end.
    pub total: Option<u64>,
}

/// A page of ids, ascending as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NftPage {
    /// The ids.
    pub ids: Vec<U256>,
    /// How many there are in all.
    pub total: u64,
}

impl Reader {
    /// The tokens of a kind that an account holds, by contract address (T6, T7).
    pub fn holdings(
        &self,
        holder: &Address,
        kind: TokenKind,
        skip: u64,
        limit: usize,
    ) -> Result<HoldingPage, QueryError> {
        let from = tokens::holding(holder, kind, &Address::ZERO);
        let mut to = tokens::holding(holder, kind, &Address::repeat_byte(0xff)).to_vec();
        to.push(0);
        let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::Holdings.name());
        let mut scan = self.view.scan(Table::Holdings, from.to_vec(), to)?;
        let mut page = HoldingPage::default();
        let mut place = 0u64;
        let mut told = self.only_told(holder, kind)?.into_iter().peekable();
        scan.seek(&from)?;
        loop {
            let row = scan.item()?;
            let row = row
                .map(|(key, value)| {
                    let token = tokens::decode_holding(key).map_err(corrupt)?;
                    let balance = tokens::read_amount(value).map_err(corrupt)?;
                    Ok::<_, QueryError>((token, self.refreshed(&token, holder)?.unwrap_or(balance)))
                })
                .transpose()?;
            let before = |(token, _): &(Address, U256)| row.is_none_or(|(next, _)| *token < next);
            let (token, balance) = match (told.next_if(before), row) {
                (Some(told), _) => told,
                (None, Some(row)) => {
                    scan.step()?;
                    row
                }
                (None, None) => {
                    page.total = Some(place);
                    return Ok(page);
                }
            };
            // By events it has some, by the contract none.
            if balance.is_zero() {
                continue;
            }
            if page.tokens.len() == limit {
                return Ok(page);
            }
            if place >= skip {
                page.tokens.push(Held {
                    token,
                    metadata: self.token_facts.metadata(&token)?,
                    balance,
                });
            }
            place += 1;
        }
    }

    /// Tokens of a kind that an account holds by what their contracts said last and not by events, by address.
    fn only_told(&self, holder: &Address, kind: TokenKind) -> Result<Vec<(Address, U256)>, QueryError> {
        let mut found = Vec::new();
        for token in self.token_facts.held_by(holder, TOLD_MAX)? {
            let known = self.token(&token)?;
            if known.is_some_and(|known| known.kind() == kind)
                && self.view.holding(holder, kind, &token)?.is_zero()
                && let Some(balance) = self.refreshed(&token, holder)?
            {
                found.push((token, balance));
            }
        }
        Ok(found)
    }

    /// What the contract said last that an account holds, where the ledger does not know it.
    fn refreshed(&self, token: &Address, holder: &Address) -> Result<Option<U256>, QueryError> {
        let facts: &dyn TokenFacts = &*self.token_facts;
        match self.token(token)? {
            Some(token) if !token.is_exact() => Ok(facts.balance(&token.address, holder)?),
            _ => Ok(None),
        }
    }

    /// The ids of an ERC-721 token that an account owns, by the ledger (T10).
    pub fn nft_ids(
        &self,
        token: &Token,
        owner: &Address,
        skip: u64,
        limit: usize,
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
        let mut page = NftPage {
            ids: Vec::new(),
            total,
        };
        if skip >= total {
            return Ok(page);
        }
        let mut scan = self.view.scan(Table::NftIds, from.to_vec(), to)?;
        // Walked from the end of the list that is nearer.
        let left = total - 1 - skip;
        if skip <= left {
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
        while page.ids.len() < limit
            && let Some((key, _)) = scan.item()?
        {
            let id = tokens::decode_nft_id(key);
            page.ids
                .push(id.map_err(|corrupt| QueryError::Corrupt(corrupt, Table::NftIds.name()))?);
            scan.step()?;
        }
        Ok(page)
    }
}
