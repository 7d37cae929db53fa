//! The token ledger's rows of a batch.

use alloy_primitives::map::HashMap;
use rocksdb::ReadOptions;

use super::replay::{doubts, pass, replay, settle};
use super::unmoved::leave;
use super::{Flow, Flows, Passage, TokenMoves};
use crate::codec::amount::{put_amount, read_amount};
use crate::codec::tokens::{self, MIXED, NEGATIVE, TokenState, WRAPPED};
use crate::codec::{Corrupt, bytes};
use crate::model::{Address, TokenKind, U256};
use crate::store::StoreError;
use crate::store::look_up::{LOOK_UPS, look_up};
use crate::store::open::Store;
use crate::store::render::Rows;
use crate::store::schema::Table;
use crate::store::view::family;

/// What moved of one account's holding of a token.
#[derive(Clone, Debug)]
pub(in crate::store) struct Held {
    /// By the token's own standard, which has a history, holders and sums; else what is held now is all there is.
    own: bool,
    holder: Address,
    kind_before: TokenKind,
    address: Address,
    token: u32,
    kind: TokenKind,
    flows: Flows,
}

/// What the balances of a batch say of their tokens.
#[derive(Debug, Default)]
pub(in crate::store) struct TokenTotals {
    holders: HashMap<u32, i64>,
    flags: HashMap<u32, u8>,
    buckets: HashMap<(u32, u16), i64>,
}

impl TokenTotals {
    /// Takes up what another thread found.
    pub(in crate::store) fn add(&mut self, other: Self) {
        for (token, count) in other.holders {
            *self.holders.entry(token).or_default() += count;
        }
        for (token, flags) in other.flags {
            *self.flags.entry(token).or_default() |= flags;
        }
        for (bucket, count) in other.buckets {
            *self.buckets.entry(bucket).or_default() += count;
        }
    }
}

fn corrupt(table: Table, key: &[u8]) -> impl Fn(Corrupt) -> StoreError + use<'_> {
    StoreError::corrupt(table.name(), key)
}

/// Renders ids, whose owners tell which balances they move, and answers what moved by holder.
pub(in crate::store) fn prepare(
    moves: &mut TokenMoves,
    rows: &mut Rows<'_>,
) -> Result<Vec<Held>, StoreError> {
    look_up_states(moves, rows)?;
    leave(moves, rows.store)?;
    render_ids(moves, rows)?;
    rename(moves, rows.store)?;
    let mut held = Vec::with_capacity(moves.balances.len());
    for ((slot, other, holder), mut flows) in moves.balances.drain() {
        let Some(change) = moves.changes.get(slot) else {
            return Err(StoreError::Overflow("a balance without its token"));
        };
        if let Flows::Many(many) = &mut flows {
            settle(many);
        }
        let under = |kind| if change.unmoved { TokenKind::Unknown } else { kind };
        held.push(Held {
            own: other.is_none(),
            holder,
            kind_before: other.unwrap_or(under(change.kind_before)),
            address: change.address,
            token: change.id,
            kind: other.unwrap_or(under(change.kind)),
            flows,
        });
    }
    // The order of their keys in `holdings`: look-ups share blocks.
    held.sort_unstable_by_key(|held| (held.holder, held.kind_before, held.address));
    Ok(held)
}

/// The tokens that the batch changes, as they are stored.
fn look_up_states(moves: &mut TokenMoves, rows: &mut Rows<'_>) -> Result<(), StoreError> {
    let mut changes: Vec<_> = moves.changes.iter_mut().collect();
    changes.sort_unstable_by_key(|change| change.id);
    let keys: Vec<[u8; 4]> = changes.iter().map(|change| tokens::token(change.id)).collect();
    rows.look_up(Table::TokenStates, &keys, |_, place, found| {
        if let (Some(change), Some(key), Some(bytes)) = (changes.get_mut(place), keys.get(place), found) {
            let state = TokenState::decode(bytes).map_err(corrupt(Table::TokenStates, key))?;
            change.unmoved = state.unmoved;
            change.before = Some(state);
        }
        Ok(())
    })
}

/// Holdings stand under the kind of their token: when that becomes known, all of them move, unless they are too many.
fn rename(moves: &mut TokenMoves, store: &Store) -> Result<(), StoreError> {
    for (slot, change) in moves.changes.iter().enumerate() {
        let held = change.before.is_some_and(|state| state.holders > 0);
        if change.kind == change.kind_before || change.unmoved || !held {
            continue;
        }
        let name = Table::Holders.name();
        let mut options = ReadOptions::default();
        options.set_iterate_range(rocksdb::PrefixRange(tokens::token(change.id)));
        let mut scan = store
            .db
            .raw_iterator_cf_opt(family(&store.db, Table::Holders)?, options);
        scan.seek_to_first();
        while let Some(key) = scan.key() {
            let (_, holder) = tokens::decode_holder(key).map_err(corrupt(Table::Holders, key))?;
            moves
                .balances
                .entry((slot, None, holder))
                .or_insert_with(|| Flows::Many(Vec::new()));
            scan.next();
        }
        scan.status().map_err(StoreError::rocks(name))?;
    }
    Ok(())
}

/// Renders owners and ids; what they move of balances is added to `moves`.
fn render_ids(moves: &mut TokenMoves, rows: &mut Rows<'_>) -> Result<(), StoreError> {
    let mut ids: Vec<((u32, U256), usize, Vec<Passage>)> = Vec::with_capacity(moves.ids.len());
    for ((slot, id), passages) in moves.ids.drain() {
        let Some(change) = moves.changes.get(slot) else {
            return Err(StoreError::Overflow("an id without its token"));
        };
        ids.push(((change.id, id), slot, passages));
    }
    ids.sort_unstable_by_key(|(id, _, _)| *id);
    let keys: Vec<[u8; 36]> = ids
        .iter()
        .map(|((token, id), _, _)| tokens::nft_owner(*token, id))
        .collect();
    rows.look_up(Table::NftOwners, &keys, |rows, place, found| {
        let (Some(((token, id), slot, passages)), Some(key)) = (ids.get(place), keys.get(place)) else {
            return Ok(());
        };
        let owner = found.map(|bytes| {
            let bytes: [u8; 20] = bytes.try_into().map_err(|_| Corrupt("owner"))?;
            Ok(Address::from(bytes))
        });
        let before = owner.transpose().map_err(corrupt(Table::NftOwners, key))?;
        let kind = moves.changes.get(*slot).map(|change| change.kind);
        let other = Some(TokenKind::Erc721).filter(|own| kind != Some(*own));
        let (now, flags) = pass(before, passages, |block, who, gained| {
            moves.add(*slot, other, who, Flow::of(block, U256::ONE, gained));
        });
        if other.is_none() && flags != 0 {
            moves.flag(*slot, flags);
        }
        if now != before {
            let owner = now.as_ref().map(|owner| owner.as_slice());
            rows.set(Table::NftOwners, key, owner, found)?;
            if let Some(before) = before {
                let key = tokens::nft_id(*token, &before, id);
                rows.set(Table::NftIds, &key, None, Some(&[]))?;
            }
            if let Some(now) = now {
                rows.put(Table::NftIds, &tokens::nft_id(*token, &now, id), &[], None)?;
            }
        }
        Ok(())
    })
}

/// Renders balances and holders, in order; hands each row on as table, key, value (none deletes), and value before.
pub(in crate::store) fn render_balances(
    store: &Store,
    balances: &[Held],
    totals: &mut TokenTotals,
    mut put: impl FnMut(Table, &[u8], Option<&[u8]>, Option<&[u8]>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut value = Vec::with_capacity(32);
    for group in balances.chunks(LOOK_UPS) {
        let keys: Vec<_> = group
            .iter()
            .map(|held| tokens::holding(&held.holder, held.kind_before, &held.address))
            .collect();
        let found = look_up(store, Table::Holdings, &keys)?;
        for ((held, key), found) in group.iter().zip(&keys).zip(found) {
            let before = match &found {
                Some(bytes) => read_amount(bytes).map_err(corrupt(Table::Holdings, key))?,
                None => U256::ZERO,
            };
            let (token, holder) = (held.token, &held.holder);
            let mut written = Ok(());
            let (now, flags) = replay(before, held.flows.as_slice(), |block, after| {
                if !held.own {
                    return;
                }
                value.clear();
                put_amount(&mut value, after);
                if written.is_ok() {
                    let key = tokens::balance(token, holder, block);
                    written = put(Table::TokenBalances, &key, Some(&value), None);
                }
            });
            written?;
            if held.own && flags != 0 {
                *totals.flags.entry(token).or_default() |= flags;
            }
            let renamed = held.kind != held.kind_before;
            if now == before && !renamed {
                continue;
            }
            let found = found.as_deref();
            if found.is_some() && (renamed || now.is_zero()) {
                put(Table::Holdings, key, None, found)?;
            }
            if !now.is_zero() {
                value.clear();
                put_amount(&mut value, &now);
                let key = tokens::holding(holder, held.kind, &held.address);
                put(Table::Holdings, &key, Some(&value), found.filter(|_| !renamed))?;
            }
            if now == before || !held.own {
                continue;
            }
            let bucket = |amount: &U256| (token, tokens::bucket(amount));
            let mut holders = 0;
            if !before.is_zero() {
                let key = tokens::holder(token, &before, holder);
                put(Table::Holders, &key, None, Some(&[]))?;
                *totals.buckets.entry(bucket(&before)).or_default() -= 1;
                holders -= 1;
            }
            if !now.is_zero() {
                let key = tokens::holder(token, &now, holder);
                put(Table::Holders, &key, Some(&[]), None)?;
                *totals.buckets.entry(bucket(&now)).or_default() += 1;
                holders += 1;
            }
            *totals.holders.entry(token).or_default() += holders;
        }
    }
    Ok(())
}

/// Renders what the batch changes of tokens themselves.
pub(in crate::store) fn render_tokens(
    moves: &TokenMoves,
    totals: &TokenTotals,
    rows: &mut Rows<'_>,
) -> Result<(), StoreError> {
    for change in &moves.changes {
        let id = &change.id;
        let mut state = change.before.unwrap_or_default();
        state.kind = change.kind;
        state.unmoved = change.unmoved;
        state.first_transfer = state.first_transfer.or(change.first_transfer);
        state.flags |= change.flags | totals.flags.get(id).copied().unwrap_or(0);
        for flow in &change.supply {
            for (sum, net) in [
                (&mut state.minted, flow.minted),
                (&mut state.to_zero, flow.to_zero),
            ] {
                let (after, side) = net.after(*sum);
                *sum = after;
                state.flags |= doubts(side);
            }
            if state.to_zero > state.minted {
                state.flags |= NEGATIVE;
            }
            let mut value = Vec::with_capacity(48);
            tokens::put_supply(&mut value, &state.minted, &state.to_zero);
            rows.put(Table::TokenSupply, &tokens::supply(*id, flow.block), &value, None)?;
        }
        // What was wrapped is no number of ids.
        if state.flags & WRAPPED != 0 && matches!(state.kind, TokenKind::Erc721 | TokenKind::Erc1155) {
            state.flags |= MIXED;
        }
        let holders = totals.holders.get(id).copied().unwrap_or(0);
        state.holders = state.holders.saturating_add_signed(holders);
        let (value, before) = (state.encode(), change.before.map(|state| state.encode()));
        if before.as_ref() != Some(&value) {
            let key = tokens::token(*id);
            rows.put(Table::TokenStates, &key, &value, before.as_deref())?;
        }
        if change.unmoved && !change.before.is_some_and(|state| state.unmoved) {
            let key = tokens::unmoved(&change.address);
            rows.put(Table::Holdings, &key, &[state.kind as u8], None)?;
        }
    }
    render_buckets(totals, rows)
}

fn render_buckets(totals: &TokenTotals, rows: &mut Rows<'_>) -> Result<(), StoreError> {
    let mut buckets: Vec<_> = totals
        .buckets
        .iter()
        .filter(|(_, change)| **change != 0)
        .map(|(&(token, bucket), &change)| (tokens::holder_count(token, bucket), change))
        .collect();
    buckets.sort_unstable();
    let keys: Vec<[u8; 6]> = buckets.iter().map(|(key, _)| *key).collect();
    rows.look_up(Table::HolderCounts, &keys, |rows, place, found| {
        let Some((key, change)) = buckets.get(place) else {
            return Ok(());
        };
        let before = found.map_or(Ok(0), |bytes| bytes::Reader::new(bytes, "holder count").varint());
        let before = before.map_err(corrupt(Table::HolderCounts, key))?;
        let now = before.saturating_add_signed(*change);
        let mut value = Vec::with_capacity(4);
        bytes::put_varint(&mut value, now);
        rows.set(
            Table::HolderCounts,
            key,
            (now > 0).then_some(value.as_slice()),
            found,
        )
    })
}
