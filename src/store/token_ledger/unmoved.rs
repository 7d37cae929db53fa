//! What is held of tokens whose kind becomes known: which of it moves to the keys of that kind, and which stays.
//!
//! Holdings stand under the kind of their token. A contract that emitted deposits alone is of none, and its first transfer would
//! move whatever is held of it in the commit of one block, however much that is. So the first transfers of a block move
//! [`MOVED_MAX`] holdings at most: what is held of a token that there is no more room for stays where it is, for good, and so
//! does what is held of it later.

use alloy_primitives::map::HashMap;

use super::TokenMoves;
use super::replay::replay;
use crate::codec::amount::read_amount;
use crate::codec::tokens;
use crate::model::{Address, TokenKind, U256};
use crate::store::look_up::{LOOK_UPS, look_up};
use crate::store::open::Store;
use crate::store::{StoreError, Table};

/// Holdings that the first transfers of one block move at most.
pub(super) const MOVED_MAX: u64 = 65_536;

/// About how many bytes of memory a holding takes that moves: its part of the batch, the look-up, two rows of the write.
pub(super) const MOVED_BYTES: usize = 1_200;

/// How many holdings the first transfers of a block move at most.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room {
    block: u64,
    taken: u64,
}

impl Room {
    /// Takes as much as there is for so many holders of another token; answers how much that is.
    pub(super) fn take(&mut self, block: u64, holders: u64) -> u64 {
        if self.block != block {
            *self = Self { block, taken: 0 };
        }
        let taken = holders.min(MOVED_MAX - self.taken);
        self.taken += taken;
        taken
    }
}

/// Says of which tokens what is held stays. A token's holders are those after the block before that of its first transfer, and
/// tokens come in the order of their first transfers, so that it does not matter which blocks share the batch.
pub(super) fn leave(moves: &mut TokenMoves, store: &Store) -> Result<(), StoreError> {
    let settled = moves.changes.iter().enumerate().filter_map(|(slot, change)| {
        let ordinal = change.first_transfer?;
        Some((change.settled_in, ordinal, slot, change.holders_max))
    });
    let mut settled: Vec<_> = settled.collect();
    settled.sort_unstable();
    let is_full = |block: &&[(u64, u64, usize, u64)]| {
        let most = block.iter().map(|(.., holders_max)| *holders_max);
        most.fold(0, u64::saturating_add) > MOVED_MAX
    };
    let full: Vec<_> = settled.chunk_by(|a, b| a.0 == b.0).filter(is_full).collect();
    if full.is_empty() {
        return Ok(());
    }
    let slots = full.iter().flat_map(|block| block.iter()).map(|of| of.2);
    let holders = holders_before(moves, slots, store)?;
    for block in full {
        let mut room = Room::default();
        for (number, _, slot, _) in block {
            let held = holders.get(slot).copied().unwrap_or(0);
            if room.taken + held <= MOVED_MAX {
                room.take(*number, held);
            } else if let Some(change) = moves.changes.get_mut(*slot) {
                change.unmoved = true;
            }
        }
    }
    Ok(())
}

/// How many hold some of each of these tokens after the block before that of its first transfer.
fn holders_before(
    moves: &TokenMoves,
    slots: impl Iterator<Item = usize>,
    store: &Store,
) -> Result<HashMap<usize, u64>, StoreError> {
    let change = |slot: usize| {
        let change = moves.changes.get(slot);
        change.ok_or(StoreError::Overflow("a balance without its token"))
    };
    let mut holders: HashMap<usize, u64> = HashMap::default();
    for slot in slots {
        holders.insert(slot, change(slot)?.before.map_or(0, |state| state.holders));
    }
    // Who moved some of it before: stored rows do not tell of those.
    let mut moved: Vec<(Address, Address, usize)> = Vec::new();
    for ((slot, other, holder), flows) in &moves.balances {
        if other.is_some() || !holders.contains_key(slot) {
            continue;
        }
        let change = change(*slot)?;
        let first = flows.as_slice().first();
        if first.is_some_and(|flow| flow.block < change.settled_in) {
            moved.push((*holder, change.address, *slot));
        }
    }
    moved.sort_unstable();
    for group in moved.chunks(LOOK_UPS) {
        let keys: Vec<_> = group
            .iter()
            .map(|(holder, token, _)| tokens::holding(holder, TokenKind::Unknown, token))
            .collect();
        let found = look_up(store, Table::Holdings, &keys)?;
        for (((holder, _, slot), key), found) in group.iter().zip(&keys).zip(found) {
            let before = match &found {
                Some(bytes) => {
                    read_amount(bytes).map_err(StoreError::corrupt(Table::Holdings.name(), key))?
                }
                None => U256::ZERO,
            };
            let settled_in = change(*slot)?.settled_in;
            let flows = moves.balances.get(&(*slot, None, *holder));
            let flows = flows.map_or(&[][..], |flows| flows.as_slice());
            let earlier = flows.partition_point(|flow| flow.block < settled_in);
            let (now, _) = replay(before, flows.get(..earlier).unwrap_or(&[]), |_, _| {});
            let more = i64::from(!now.is_zero()) - i64::from(!before.is_zero());
            let held = holders.entry(*slot).or_default();
            *held = held.saturating_add_signed(more);
        }
    }
    Ok(holders)
}
