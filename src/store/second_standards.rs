//! From layout 6 to 7: what accounts hold of tokens by other standards than the tokens' own.
//!
//! Layout 6 kept nothing of such transfers but their lists. What they moved is told by the logs of the few tokens that
//! emitted some, which are read once more. Rows of blocks that are not final could not be taken off again, so those blocks are
//! taken off first.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rocksdb::{DB, WriteBatch, WriteOptions};

use super::open::{IDENTITY, OpenOptions, Store};
use super::open_pieces::take_unfinal_off;
use super::options::{self, Filters};
use super::schema::Table;
use super::token_ledger::{Flow, Passage, pass, replay};
use super::view::family;
use super::{Direction, PostingCursor, StoreError, Units, View};
use crate::codec::amount::put_amount;
use crate::codec::keys::Term;
use crate::codec::tokens::{self, MIXED};
use crate::codec::value::Identity;
use crate::model::token::{TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE};
use crate::model::{Address, TokenEvent, TokenKind, U256};

/// The cache of blocks that are read.
const CACHE_BYTES: usize = 64 << 20;
/// Rows are written when so many bytes of them are together.
const WRITE_BYTES: usize = 4 << 20;

/// Does it. A second time it writes the same rows.
pub(super) fn apply(db: &Arc<DB>, directory: &Path) -> Result<(), StoreError> {
    take_unfinal_off(db)?;
    let key = db
        .get_cf(family(db, Table::Meta)?, IDENTITY)
        .map_err(StoreError::rocks_at(Table::Meta.name(), IDENTITY))?
        .unwrap_or_default();
    let identity = Identity::decode(&key).map_err(StoreError::corrupt(Table::Meta.name(), IDENTITY))?;
    let options = OpenOptions {
        read_only: true,
        ..OpenOptions::new(directory)
    };
    let cache = options::cache(CACHE_BYTES);
    let store = Store::assemble(Arc::clone(db), &options, cache, identity, Filters::InParts, false)?;
    let view = store.view();
    let mut found = 0u64;
    for token in 0..view.checkpoint().tokens {
        let state = view.token_state(token)?;
        if state.flags & MIXED != 0 {
            let held = Held::of(&view, token, state.kind)?;
            held.write(db, token)?;
            found += 1;
        }
    }
    tracing::info!(found, "tokens of several standards");
    Ok(())
}

/// What is held of one token by standards that are not its own.
#[derive(Debug, Default)]
struct Held {
    address: Address,
    amounts: BTreeMap<(Address, TokenKind), U256>,
    owners: BTreeMap<U256, Address>,
    /// What the block under the walk moves.
    block: u64,
    flows: BTreeMap<(Address, TokenKind), Flow>,
}

impl Held {
    /// Reads what the token emitted.
    fn of(view: &View, token: u32, own: TokenKind) -> Result<Self, StoreError> {
        let mut held = Self {
            address: view.token_address(token)?,
            ..Self::default()
        };
        let Some(emitter) = view.emitter(&held.address)? else {
            return Ok(held);
        };
        let mut lists = Vec::new();
        for topic in [TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH] {
            if let Some(signature) = view.signature(&topic)? {
                let term = Term::log_address_topic0(emitter, signature);
                let mut list = PostingCursor::open(view, term, Direction::Forward)?;
                list.seek(0)?;
                lists.push(list);
            }
        }
        let mut logs = Units::new(view, Table::LogsByBlock)?;
        let mut data = Vec::new();
        while let Some(list) = lists
            .iter_mut()
            .filter(|list| list.current().is_some())
            .min_by_key(|list| list.current())
        {
            let Some(ordinal) = list.current() else { break };
            list.step()?;
            let log = logs.log(view, ordinal, &mut data)?;
            if log.block != held.block {
                held.end_block();
                held.block = log.block;
            }
            if let Some(event) = TokenEvent::of(&held.address.clone(), &log.topics, &data)
                && event.kind() != own
            {
                held.take(&event);
            }
        }
        held.end_block();
        Ok(held)
    }

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
        let (incoming, outgoing) = if gained {
            (value, U256::ZERO)
        } else {
            (U256::ZERO, value)
        };
        let flow = Flow {
            block: self.block,
            incoming,
            outgoing,
        };
        self.flows.entry((*who, kind)).or_default().add(&flow);
    }

    /// A balance exists after blocks only.
    fn end_block(&mut self) {
        for (key, flow) in std::mem::take(&mut self.flows) {
            let amount = self.amounts.entry(key).or_default();
            *amount = replay(*amount, &[flow], |_, _| {}).0;
        }
    }

    fn write(&self, db: &DB, token: u32) -> Result<(), StoreError> {
        let (holdings, owners, ids) = (
            family(db, Table::Holdings)?,
            family(db, Table::NftOwners)?,
            family(db, Table::NftIds)?,
        );
        let mut unlogged = WriteOptions::default();
        unlogged.disable_wal(true);
        let mut write = WriteBatch::default();
        let put_all = |write: &mut WriteBatch, least: usize| {
            if write.size_in_bytes() < least {
                return Ok(());
            }
            db.write_opt(std::mem::take(write), &unlogged)
                .map_err(StoreError::rocks(Table::Holdings.name()))
        };
        let mut value = Vec::with_capacity(32);
        for ((holder, kind), amount) in &self.amounts {
            if !amount.is_zero() {
                value.clear();
                put_amount(&mut value, amount);
                write.put_cf(holdings, tokens::holding(holder, *kind, &self.address), &value);
                put_all(&mut write, WRITE_BYTES)?;
            }
        }
        for (id, owner) in &self.owners {
            write.put_cf(owners, tokens::nft_owner(token, id), owner);
            write.put_cf(ids, tokens::nft_id(token, owner, id), []);
            put_all(&mut write, WRITE_BYTES)?;
        }
        put_all(&mut write, 0)
    }
}
