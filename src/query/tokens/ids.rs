//! The ids of an ERC-721 token that an account owns (T10).

use std::collections::BTreeSet;
use std::time::Instant;

use super::Token;
use super::places::{IdCursor, KeyPart};
use crate::clock;
use crate::codec::keys::{PostingKind, Term};
use crate::codec::tokens;
use crate::model::{Address, TokenEvent, TokenKind, U256};
use crate::query::{QueryError, Reader};
use crate::store::{Direction, PostingCursor, Table, Units};

/// How often the clock is looked at.
const LOGS_PER_LOOK: u32 = 1_024;

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

impl Reader {
    /// The ids of an ERC-721 token that an account owns, by the ledger (T10); those of the zero address where it holds what it is
    /// sent, which takes a walk over them and gives up at `deadline`.
    pub fn nft_ids(
        &self,
        token: &Token,
        owner: &Address,
        part: &KeyPart<IdCursor>,
        deadline: Option<Instant>,
    ) -> Result<NftPage, QueryError> {
        if owner.is_zero() {
            return self.ids_of_zero(token, part, deadline);
        }
        let from = tokens::nft_id(token.id, owner, &U256::ZERO);
        let mut to = tokens::nft_id(token.id, owner, &U256::MAX).to_vec();
        to.push(0);
        let total = if token.kind() == TokenKind::Erc721 && token.is_wrapped() {
            // Its balance counts more than ids.
            let mut scan = self.view.scan(Table::NftIds, from.to_vec(), to.clone())?;
            let mut count = 0;
            scan.seek(&from)?;
            while scan.item()?.is_some() {
                count += 1;
                scan.step()?;
            }
            count
        } else {
            let held = self.holding(token, owner, TokenKind::Erc721)?;
            u64::try_from(held).unwrap_or(u64::MAX)
        };
        // Whom the contract says to hold none holds none of what events name.
        let told = self.refreshed(&token.address, TokenKind::Erc721, owner)?;
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

    /// The ids that were sent to the zero address and came back from nowhere since, where the contract says that it holds them.
    fn ids_of_zero(
        &self,
        token: &Token,
        part: &KeyPart<IdCursor>,
        deadline: Option<Instant>,
    ) -> Result<NftPage, QueryError> {
        let held = token.verdict.zero.zero_holds(token.state.to_zero);
        if token.kind() != TokenKind::Erc721 || !token.is_exact() || held.is_zero() {
            return Ok(NftPage::default());
        }
        let late = || deadline.is_some_and(|deadline| clock::now() >= deadline);
        let (mut ids, mut sent) = (BTreeSet::new(), U256::ZERO);
        let view = &self.view;
        let term = Term::token_account(PostingKind::TokenAccountErc721, token.id, &Address::ZERO);
        let mut list = PostingCursor::open(view, term, Direction::Forward)?;
        let mut logs = Units::new(view, Table::LogsByBlock);
        let (mut data, mut steps) = (Vec::new(), 0u32);
        list.seek(0)?;
        while let Some(ordinal) = list.current() {
            steps = steps.wrapping_add(1);
            if steps.is_multiple_of(LOGS_PER_LOOK) && late() {
                return Err(QueryError::TimedOut);
            }
            let log = logs.log(view, ordinal, &mut data)?;
            if let Some(TokenEvent::Unique { to, id, .. }) =
                TokenEvent::of(&token.address, &log.topics, &data)
                && to.is_zero()
            {
                ids.insert(id);
                sent += U256::ONE;
                if sent == held {
                    break;
                }
            }
            list.step()?;
        }
        let mut left = Vec::with_capacity(ids.len());
        for (step, id) in ids.into_iter().enumerate() {
            if step.is_multiple_of(LOGS_PER_LOOK as usize) && late() {
                return Err(QueryError::TimedOut);
            }
            if view
                .get(Table::NftOwners, &tokens::nft_owner(token.id, &id))?
                .is_none()
            {
                left.push(id);
            }
        }
        let total = left.len() as u64;
        let begin = match part.after {
            Some(after) => left.partition_point(|id| *id <= after.id()),
            None => usize::try_from(part.skip).map_or(left.len(), |skip| skip.min(left.len())),
        };
        let mut ids = left.split_off(begin);
        let next = part.cut(&mut ids, IdCursor::of);
        Ok(NftPage { ids, total, next })
    }
}
