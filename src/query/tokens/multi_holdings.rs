//! What an account holds of ERC-1155 tokens, id by id.
//!
//! The ledger has how many units of all ids an account holds of a token. Units by id follow from the transfers that
//! it took part in: those of one token are added up at a time, and of tokens that the page does not reach none is read.
//! All ids together may come to nothing where one is held: contracts that mint when they first sell name the creator as who sent it,
//! to whom it never came. So tokens are those of an account's transfers, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use super::held_rows::HeldRows;
use super::places::{HeldIdCursor, KeyPart};
use crate::codec::Corrupt;
use crate::codec::keys::{PostingKind, Term};
use crate::model::{Address, TokenEvent, TokenKind, TokenMetadata, U256};
use crate::query::limit::Limit;
use crate::query::{QueryError, Reader};
use crate::store::{Direction, Net, PostingCursor, Table, Units, View};

/// Transfers that are added up for the sake of the total alone.
const COUNTED_MAX: u64 = 1_000;

/// An account's transfers are looked through for tokens where they are no more than these: each takes a microsecond.
const LOOKED_THROUGH_MAX: u64 = 16_384;

/// How often the clock is looked at, beside once for each token: a transfer takes a microsecond.
const TRANSFERS_PER_LOOK: u32 = 1_024;

/// Units of an id that an account holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldId {
    /// The token's contract.
    pub token: Address,
    /// What the contract says of itself.
    pub metadata: TokenMetadata,
    /// The id.
    pub id: U256,
    /// Units, more than none.
    pub balance: U256,
}

/// A page of what an account holds, by contract address and then by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldIdPage {
    /// The ids.
    pub ids: Vec<HeldId>,
    /// How many there are, where no long lists of transfers have to be added up for that alone.
    pub total: Option<u64>,
    /// Where the next page begins, where there is one.
    pub next: Option<HeldIdCursor>,
}

impl Reader {
    /// The ids of ERC-1155 tokens that an account holds, of one token where `token` is given.
    ///
    /// Gives up at `deadline`.
    pub fn multi_holdings(
        &self,
        holder: &Address,
        token: Option<&Address>,
        part: &KeyPart<HeldIdCursor>,
        deadline: Option<Instant>,
    ) -> Result<HeldIdPage, QueryError> {
        let mut limit = Limit::new(deadline, TRANSFERS_PER_LOOK);
        let after = part.after.map(|place| place.token_and_id());
        let all = self.multi_tokens(holder, token, &mut limit)?;
        let from = after.map_or(Address::ZERO, |(token, _)| token);
        let mut tokens = all.range(from..);
        let (mut page, mut walked) = (HeldIdPage::default(), 0);
        // One more than asked for says whether rows follow.
        while page.ids.len() <= part.limit {
            let Some(&token) = tokens.next() else { break };
            let units = self.units_by_id(holder, &token, &mut limit)?;
            let behind = |id: &U256| after.is_none_or(|after| (token, *id) > after);
            let mut metadata = None;
            for (id, balance) in units.into_iter().filter(|(id, _)| behind(id)) {
                walked += 1;
                if after.is_none() && walked <= part.skip || page.ids.len() > part.limit {
                    continue;
                }
                let metadata = match &metadata {
                    Some(metadata) => metadata,
                    None => metadata.insert(self.token_metadata(&token)?),
                };
                page.ids.push(HeldId {
                    token,
                    metadata: metadata.clone(),
                    id,
                    balance,
                });
            }
        }
        page.total = match after {
            None => self.with_the_rest(holder, walked, tokens, &mut limit)?,
            Some(_) => self.with_the_rest(holder, 0, all.iter(), &mut limit)?,
        };
        page.next = part.cut(&mut page.ids, |held| HeldIdCursor::of_id(&held.token, &held.id));
        Ok(page)
    }

    /// The ERC-1155 tokens of which an account may hold something.
    fn multi_tokens(
        &self,
        holder: &Address,
        only: Option<&Address>,
        limit: &mut Limit,
    ) -> Result<BTreeSet<Address>, QueryError> {
        if let Some(token) = only {
            return Ok(BTreeSet::from([*token]));
        }
        let mut found = BTreeSet::new();
        let mut rows = HeldRows::begin(&self.view, holder, TokenKind::Erc1155, None, limit)?;
        while let Some((token, _)) = rows.step(limit)? {
            found.insert(token);
        }
        let term = Term::account(PostingKind::AccountErc1155, holder);
        let mut transfers = PostingCursor::open(&self.view, term, Direction::Forward)?;
        if transfers.count() <= LOOKED_THROUGH_MAX {
            let mut emitters = BTreeSet::new();
            transfers.seek(0)?;
            while let Some(ordinal) = transfers.current() {
                limit.spend(1)?;
                let (log, _) = self.view.multi_transfer(ordinal)?;
                emitters.insert(self.view.log_emitter(log)?);
                transfers.step()?;
            }
            for emitter in emitters {
                found.insert(self.view.emitter_address(emitter)?);
            }
        }
        Ok(found)
    }

    /// How many ids there are with those of these tokens, where they have few transfers.
    fn with_the_rest<'a>(
        &self,
        holder: &Address,
        mut count: u64,
        rest: impl Iterator<Item = &'a Address>,
        limit: &mut Limit,
    ) -> Result<Option<u64>, QueryError> {
        let mut transfers = 0;
        for token in rest {
            limit.check()?;
            transfers += Sum::list(&self.view, holder, token)?.map_or(0, |list| list.count());
            if transfers > COUNTED_MAX {
                return Ok(None);
            }
            count += self.units_by_id(holder, token, limit)?.len() as u64;
        }
        Ok(Some(count))
    }

    /// What an account holds of each id of a token; ids of which it has none are left out.
    fn units_by_id(
        &self,
        holder: &Address,
        token: &Address,
        limit: &mut Limit,
    ) -> Result<BTreeMap<U256, U256>, QueryError> {
        // Lists are opened, which takes longer than to read the clock.
        limit.check()?;
        let mut sum = Sum::default();
        if let Some(list) = Sum::list(&self.view, holder, token)? {
            sum.add_up(&self.view, holder, token, list, limit)?;
        }
        sum.held.retain(|_, units| !units.is_zero());
        Ok(sum.held)
    }
}

/// Adds up what an account received of a token and sent, as the ledger does: a block is one movement.
#[derive(Default)]
struct Sum {
    held: BTreeMap<U256, U256>,
    block: u64,
    /// What the block moves.
    moved: BTreeMap<U256, Net>,
}

impl Sum {
    /// The transfers of a token that an account took part in.
    fn list<'v>(
        view: &'v View,
        holder: &Address,
        token: &Address,
    ) -> Result<Option<PostingCursor<'v>>, QueryError> {
        let Some(token) = view.token(token)? else {
            return Ok(None);
        };
        let term = Term::token_account(PostingKind::TokenAccountErc1155, token, holder);
        Ok(Some(PostingCursor::open(view, term, Direction::Forward)?))
    }

    fn add_up(
        &mut self,
        view: &View,
        holder: &Address,
        token: &Address,
        mut list: PostingCursor<'_>,
        limit: &mut Limit,
    ) -> Result<(), QueryError> {
        let wrong = || QueryError::Corrupt(Corrupt("transfer"), Table::LogsByBlock.name());
        let mut logs = Units::new(view, Table::LogsByBlock);
        let (mut data, mut last) = (Vec::new(), None);
        list.seek(0)?;
        while let Some(ordinal) = list.current() {
            limit.spend(1)?;
            let (log, position) = view.multi_transfer(ordinal)?;
            // The items of a batch follow each other.
            let topics = match &last {
                Some((at, topics)) if *at == log => topics,
                _ => {
                    let whole = logs.log(view, log, &mut data)?;
                    self.begin(whole.block);
                    &last.insert((log, whole.topics)).1
                }
            };
            let Some(TokenEvent::Multi { from, to, items }) = TokenEvent::of(token, topics, &data) else {
                return Err(wrong());
            };
            let (id, units) = items.get(position as usize).ok_or_else(wrong)?;
            if to == *holder {
                self.moved.entry(id).or_default().come(units);
            }
            if from == *holder {
                self.moved.entry(id).or_default().go(units);
            }
            list.step()?;
        }
        self.end();
        Ok(())
    }

    /// What follows is of this block.
    fn begin(&mut self, block: u64) {
        if self.block != block {
            self.end();
            self.block = block;
        }
    }

    fn end(&mut self) {
        for (id, net) in std::mem::take(&mut self.moved) {
            let held = self.held.entry(id).or_default();
            *held = net.after(*held).0;
        }
    }
}
