//! From layout 6 to 7: what accounts hold of tokens by other standards than the tokens' own.
//!
//! Layout 6 kept nothing of such transfers but their lists. What they moved is told by the logs of the few tokens that
//! emitted some, which are read once more. Rows of blocks that are not final could not be taken off again, so those blocks are
//! taken off first.

use std::collections::BTreeMap;
use std::sync::Arc;

use rocksdb::{DB, WriteBatch};

use super::caches::Caches;
use super::flats::Flats;
use super::open::{FINALITY, IDENTITY, OpenOptions, Store};
use super::open_pieces::take_unfinal_off;
use super::options::{self, Filters};
use super::schema::Table;
use super::token_ledger::{Flow, Passage, pass, replay};
use super::view::family;
use super::{Direction, PostingCursor, StoreError, Units, View};
use crate::codec::amount::put_amount;
use crate::codec::keys::Term;
use crate::codec::tokens::{self, MIXED};
use crate::codec::value::{Finality, Identity};
use crate::model::token::{TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE};
use crate::model::{Address, TokenEvent, TokenKind, U256};

/// Rows are written when so many bytes of them are together.
const WRITE_BYTES: usize = 4 << 20;
/// How many tokens are looked at between two lines in the log.
const TOKENS_A_LINE: u32 = 1 << 20;

/// Does it. A second time it writes the same rows, and takes off what is not so any more: between an interrupted migration and
/// the next one the quarry of layout 6 may have gone on with the store.
pub(super) fn apply(db: &Arc<DB>, options: &OpenOptions) -> Result<WriteBatch, StoreError> {
    let store = settled_store(db, options)?;
    let view = store.view();
    let (mut found, tokens) = (0u64, view.checkpoint().tokens);
    for token in 0..tokens {
        let state = view.token_state(token)?;
        if state.flags & MIXED != 0 {
            let held = view.other_holdings(token, state.kind)?;
            held.write(&view, &store, token, state.kind)?;
            found += 1;
            tracing::debug!(address = ?held.address, logs = held.logs, "a token of several standards");
        }
        if (token + 1).is_multiple_of(TOKENS_A_LINE) {
            tracing::info!(
                looked_at = token + 1,
                tokens,
                found,
                "tokens of several standards"
            );
        }
    }
    tracing::info!(tokens, found, "tokens of several standards");
    Ok(WriteBatch::default())
}

/// Takes the blocks off that are not final, and gives what is left as readers see it, to write rows to.
pub(super) fn settled_store(db: &Arc<DB>, options: &OpenOptions) -> Result<Arc<Store>, StoreError> {
    take_unfinal_off(db)?;
    let identity = db
        .get_cf(family(db, Table::Meta)?, IDENTITY)
        .map_err(StoreError::rocks_at(Table::Meta.name(), IDENTITY))?
        .unwrap_or_default();
    let identity = Identity::decode(&identity).map_err(StoreError::corrupt(Table::Meta.name(), IDENTITY))?;
    let finality = db
        .get_cf(family(db, Table::Meta)?, FINALITY)
        .map_err(StoreError::rocks_at(Table::Meta.name(), FINALITY))?;
    let arrays = match finality {
        Some(bytes) => Finality::decode(&bytes)
            .map_err(StoreError::corrupt(Table::Meta.name(), FINALITY))?
            .flat_records
            .len(),
        None => 0,
    };
    Flats::add_new(&options.directory.join("flat"), arrays)?;
    let opened = OpenOptions {
        read_only: true,
        ..options.clone()
    };
    let caches = Caches {
        // The open database has one.
        blocks: options::cache(0),
        rows: None,
        dense: Arc::default(),
    };
    Store::assemble(Arc::clone(db), &opened, caches, identity, Filters::InParts, None)
}

/// What is held of one token by standards that are not its own, as its logs tell: read out of them, with no look at what is stored
/// of it.
#[derive(Debug, Default)]
pub struct OtherHoldings {
    /// Smallest units, or number of ids, by account and standard; of accounts that had some once, none.
    pub amounts: BTreeMap<(Address, TokenKind), U256>,
    /// Owners of ids.
    pub owners: BTreeMap<U256, Address>,
    address: Address,
    /// Logs that were read.
    logs: u64,
    /// What the block under the walk moves.
    block: u64,
    flows: BTreeMap<(Address, TokenKind), Flow>,
}

impl View {
    /// What is held of a token by standards other than `own`: reads all of its transfers.
    pub fn other_holdings(&self, token: u32, own: TokenKind) -> Result<OtherHoldings, StoreError> {
        let mut held = OtherHoldings {
            address: self.token_address(token)?,
            ..OtherHoldings::default()
        };
        let moved = |kind: TokenKind| Ok::<_, StoreError>(kind != own && self.moved_by(token, kind)?);
        let single = moved(TokenKind::Erc20)? || moved(TokenKind::Erc721)?;
        let multi = moved(TokenKind::Erc1155)?;
        let Some(emitter) = self.emitter(&held.address)? else {
            return Ok(held);
        };
        let mut lists = Vec::new();
        for (topic, wanted) in [
            (TRANSFER, single),
            (TRANSFER_SINGLE, multi),
            (TRANSFER_BATCH, multi),
        ] {
            if let Some(signature) = self.signature(&topic)?.filter(|_| wanted) {
                let term = Term::log_address_topic0(emitter, signature);
                let mut list = PostingCursor::open(self, term, Direction::Forward)?;
                list.seek(0)?;
                lists.push(list);
            }
        }
        let mut logs = Units::new(self, Table::LogsByBlock);
        let mut data = Vec::new();
        while let Some((ordinal, list)) = lists
            .iter_mut()
            .filter_map(|list| Some((list.current()?, list)))
            .min_by_key(|(ordinal, _)| *ordinal)
        {
            list.step()?;
            let log = logs.log(self, ordinal, &mut data)?;
            held.logs += 1;
            if log.block != held.block {
                held.end_block();
                held.block = log.block;
            }
            let address = held.address;
            if let Some(event) = TokenEvent::of(&address, &log.topics, &data)
                && event.kind() != own
            {
                held.take(&event);
            }
        }
        held.end_block();
        Ok(held)
    }
}

impl OtherHoldings {
    fn take(&mut self, event: &TokenEvent<'_>) {
        match event {
            TokenEvent::Fungible { from, to, value } => self.pay(TokenKind::Erc20, from, to, *value),
            TokenEvent::Multi { from, to, items } => {
                for (_, value) in items.iter() {
                    self.pay(TokenKind::Erc1155, from, to, value);
                }
            }
            TokenEvent::Unique { from, to, id } => {
                let passage = Passage {
                    block: self.block,
                    from: *from,
                    to: *to,
                };
                let mut moved = Vec::new();
                let before = self.owners.remove(id);
                let (now, _) = pass(before, &[passage], |_, who, gained| moved.push((who, gained)));
                self.owners.extend(now.map(|owner| (*id, owner)));
                for (who, gained) in moved {
                    self.moves(TokenKind::Erc721, &who, gained, U256::ONE);
                }
            }
            TokenEvent::Deposit { .. } | TokenEvent::Withdrawal { .. } => {}
        }
    }

    fn pay(&mut self, kind: TokenKind, from: &Address, to: &Address, value: U256) {
        for (who, gained) in [(from, false), (to, true)] {
            if !who.is_zero() {
                self.moves(kind, who, gained, value);
            }
        }
    }

    fn moves(&mut self, kind: TokenKind, who: &Address, gained: bool, value: U256) {
        let moved = Flow::of(self.block, value, gained);
        let flow = self.flows.entry((*who, kind)).or_default();
        flow.net.add(&moved.net);
    }

    /// A balance exists after blocks only.
    fn end_block(&mut self) {
        for (key, flow) in std::mem::take(&mut self.flows) {
            let amount = self.amounts.entry(key).or_default();
            *amount = replay(*amount, &[flow], |_, _| {}).0;
        }
    }

    fn write(&self, view: &View, store: &Store, token: u32, own: TokenKind) -> Result<(), StoreError> {
        let (holdings, owners, ids) = (
            family(&store.db, Table::Holdings)?,
            family(&store.db, Table::NftOwners)?,
            family(&store.db, Table::NftIds)?,
        );
        let mut write = WriteBatch::default();
        let mut value = Vec::with_capacity(32);
        for ((holder, kind), amount) in &self.amounts {
            let key = tokens::holding(holder, *kind, &self.address);
            if !amount.is_zero() {
                value.clear();
                put_amount(&mut value, amount);
                write.put_cf(holdings, key, &value);
            } else if view.get(Table::Holdings, &key)?.is_some() {
                write.delete_cf(holdings, key);
            }
            store.write_unlogged(&mut write, WRITE_BYTES)?;
        }
        if own == TokenKind::Erc721 {
            return store.write_unlogged(&mut write, 0);
        }
        // Both tables by themselves: one of them may have reached the disk without the other.
        let mut scan = view.scan_token(Table::NftOwners, token)?;
        scan.seek(&tokens::token(token))?;
        while let Some((key, owner)) = scan.item()? {
            let id = key.last_chunk::<32>().map(|id| U256::from_be_bytes(*id));
            let told = id.and_then(|id| self.owners.get(&id));
            if told.is_none_or(|told| told.as_slice() != owner) {
                write.delete_cf(owners, key);
            }
            store.write_unlogged(&mut write, WRITE_BYTES)?;
            scan.step()?;
        }
        let mut scan = view.scan_token(Table::NftIds, token)?;
        scan.seek(&tokens::token(token))?;
        while let Some((key, _)) = scan.item()? {
            let id = tokens::decode_nft_id(key).map_err(StoreError::corrupt(Table::NftIds.name(), key))?;
            let told = self.owners.get(&id);
            if told.is_none_or(|told| tokens::nft_id(token, told, &id) != key) {
                write.delete_cf(ids, key);
            }
            store.write_unlogged(&mut write, WRITE_BYTES)?;
            scan.step()?;
        }
        for (id, owner) in &self.owners {
            write.put_cf(owners, tokens::nft_owner(token, id), owner);
            write.put_cf(ids, tokens::nft_id(token, owner, id), []);
            store.write_unlogged(&mut write, WRITE_BYTES)?;
        }
        store.write_unlogged(&mut write, 0)
    }
}
