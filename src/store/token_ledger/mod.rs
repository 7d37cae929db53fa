//! The token ledger's part of a batch: what moved, collected by token, holder and id, to be applied to the present
//! balances when the batch is rendered.
//!
//! What a block does to a balance is one movement, whatever the order inside the block: a balance exists after
//! blocks only. So rows do not depend on how blocks share batches.

mod net;
mod read;
mod render;
mod replay;
mod unmoved;

pub use net::Net;
pub(super) use render::{Held, TokenTotals, prepare, render_balances, render_tokens};
pub(super) use replay::{pass, replay};

use alloy_primitives::map::{AddressMap, HashMap};

use unmoved::{MOVED_BYTES, Room};

use super::batch::with_room;
use super::{Batch, FlatArray, StoreError, Table};
use crate::codec::tokens::{self, MIXED, TokenState, WRAPPED};
use crate::model::{Address, TokenKind, U256};

/// A token as the store knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenId {
    pub(super) id: u32,
    /// The standard of its first transfer, [`TokenKind::Unknown`] before that.
    pub(super) kind: TokenKind,
    /// Accounts that hold some of it, at most; counted while it has no kind.
    pub(super) holders_max: u64,
}

/// A token as a derivation knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchToken {
    /// The id.
    pub id: u32,
    /// Its place among what the batch changes.
    slot: usize,
    /// The standard by which it is moved, where that is not its own.
    other: Option<TokenKind>,
}

impl BatchToken {
    /// Whether what is moved is of the token's own standard, that of its first transfer.
    #[must_use]
    pub const fn is_own(self) -> bool {
        self.other.is_none()
    }
}

/// What a block moved to and from an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flow {
    pub(super) block: u64,
    pub(super) net: Net,
}

/// What moved block by block; most accounts move in one block of a batch.
#[derive(Clone, Debug)]
pub(super) enum Flows {
    One(Flow),
    Many(Vec<Flow>),
}

impl Flows {
    pub(super) fn as_slice(&self) -> &[Flow] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }

    fn last(&mut self) -> Option<&mut Flow> {
        match self {
            Self::One(one) => Some(one),
            Self::Many(many) => many.last_mut(),
        }
    }

    /// Adds a movement.
    fn add(&mut self, flow: Flow) {
        match self.last() {
            Some(last) if last.block == flow.block => last.net.add(&flow.net),
            _ => match self {
                Self::One(one) => *self = Self::Many(vec![*one, flow]),
                Self::Many(many) => many.push(flow),
            },
        }
    }
}

impl Flow {
    /// So much came to an account, or went.
    pub(super) fn of(block: u64, value: U256, gained: bool) -> Self {
        let mut net = Net::default();
        if gained {
            net.come(value);
        } else {
            net.go(value);
        }
        Self { block, net }
    }
}

/// An id changed hands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) block: u64,
    pub(super) from: Address,
    pub(super) to: Address,
}

/// What a batch changes of a token itself.
#[derive(Clone, Debug)]
pub(super) struct TokenChange {
    pub(super) id: u32,
    pub(super) address: Address,
    /// As it is stored before the batch; looked up when that is rendered.
    before: Option<TokenState>,
    /// Its kind before the batch.
    pub(super) kind_before: TokenKind,
    pub(super) kind: TokenKind,
    pub(super) flags: u8,
    /// Its first transfer, where that is in the batch.
    pub(super) first_transfer: Option<u64>,
    /// And the block of that.
    settled_in: u64,
    /// Accounts that hold some of it when that block begins, at most.
    holders_max: u64,
    /// Whether what is held of it stays under no kind.
    unmoved: bool,
    /// From and to the zero address, block by block.
    pub(super) supply: Vec<SupplyFlow>,
}

/// What a block does to the sums of a token.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SupplyFlow {
    pub(super) block: u64,
    /// Transfers from the zero address, and deposits. Less withdrawals: what they unwrap was never sent to the zero address,
    /// which may hold coins of its own.
    pub(super) minted: Net,
    /// Transfers to the zero address.
    pub(super) to_zero: Net,
}

impl SupplyFlow {
    /// A transfer between accounts of which one or both may be the zero address.
    fn of(block: u64, value: U256, (from_zero, to_zero): (bool, bool)) -> Self {
        let net = |counts: bool| Net::of(if counts { value } else { U256::ZERO });
        Self {
            block,
            minted: net(from_zero),
            to_zero: net(to_zero),
        }
    }
}

/// What a batch changes of tokens.
///
/// A token is looked up once an event: what follows takes its slot.
#[derive(Debug, Default)]
pub(super) struct TokenMoves {
    slots: AddressMap<usize>,
    /// By slot.
    pub(super) changes: Vec<TokenChange>,
    /// By slot, standard where it is not the token's own, and account.
    pub(super) balances: HashMap<(usize, Option<TokenKind>, Address), Flows>,
    /// By slot and id.
    pub(super) ids: HashMap<(usize, U256), Vec<Passage>>,
    /// What first transfers of the current block move.
    room: Room,
}

impl TokenMoves {
    /// With room for as many balances and ids as the batch before had.
    pub(super) fn with_room((balances, ids): (usize, usize)) -> Self {
        Self {
            balances: with_room(balances),
            ids: with_room(ids),
            ..Self::default()
        }
    }

    /// How many balances and ids there are.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.balances.len(), self.ids.len())
    }

    /// What is to be known later of the tokens that were of no kind before the batch.
    pub(super) fn learnt(&self) -> impl Iterator<Item = (&Address, TokenId)> {
        let unsettled = self
            .changes
            .iter()
            .filter(|change| change.kind_before == TokenKind::Unknown);
        unsettled.map(|change| {
            let token = TokenId {
                id: change.id,
                kind: change.kind,
                holders_max: change.holders_max,
            };
            (&change.address, token)
        })
    }

    fn flag(&mut self, slot: usize, flags: u8) {
        if let Some(change) = self.changes.get_mut(slot) {
            change.flags |= flags;
        }
    }

    /// Moves `flow` to or from an account, by another standard than the token's own where that is given; answers whether it is
    /// new to the batch.
    fn add(&mut self, slot: usize, other: Option<TokenKind>, account: Address, flow: Flow) -> bool {
        match self.balances.entry((slot, other, account)) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Flows::One(flow));
                true
            }
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                entry.get_mut().add(flow);
                false
            }
        }
    }

    /// Counts what came from and went to the zero address.
    fn add_supply(&mut self, slot: usize, flow: SupplyFlow) {
        let Some(change) = self.changes.get_mut(slot) else {
            return;
        };
        match change.supply.last_mut() {
            Some(last) if last.block == flow.block => {
                last.minted.add(&flow.minted);
                last.to_zero.add(&flow.to_zero);
            }
            _ => change.supply.push(flow),
        }
    }
}

/// About how many bytes of memory an account's part takes, beyond what it adds to the write.
const MOVE_BYTES: usize = 280;

impl Batch {
    /// The token at an address, known from now on where it is new. What the batch changes of it may follow.
    pub fn token(&mut self, address: &Address) -> Result<BatchToken, StoreError> {
        if let Some(&slot) = self.moves.slots.get(address)
            && let Some(change) = self.moves.changes.get(slot)
        {
            return Ok(BatchToken {
                id: change.id,
                slot,
                other: None,
            });
        }
        let token = match self.dictionary.tokens.get(address) {
            Some(&token) => token,
            None => {
                let token = self.find_token(address)?;
                self.dictionary.tokens.insert(*address, token);
                token
            }
        };
        let slot = self.moves.changes.len();
        self.moves.slots.insert(*address, slot);
        self.moves.changes.push(TokenChange {
            id: token.id,
            address: *address,
            before: None,
            kind_before: token.kind,
            kind: token.kind,
            flags: 0,
            first_transfer: None,
            settled_in: 0,
            holders_max: token.holders_max,
            unmoved: false,
            supply: Vec::new(),
        });
        self.bytes += 400;
        Ok(BatchToken {
            id: token.id,
            slot,
            other: None,
        })
    }

    fn find_token(&mut self, address: &Address) -> Result<TokenId, StoreError> {
        if let Some(id) = self.stored_id(Table::Tokens, address.as_slice())? {
            let key = tokens::token(id);
            let state = self
                .stored(Table::TokenStates, &key)?
                .ok_or(StoreError::Missing {
                    table: Table::TokenStates.name(),
                    what: "token",
                    number: u64::from(id),
                })?;
            let state =
                TokenState::decode(&state).map_err(StoreError::corrupt(Table::TokenStates.name(), &key))?;
            return Ok(TokenId {
                id,
                kind: state.kind,
                holders_max: state.holders,
            });
        }
        let id = self.checkpoint.tokens;
        self.checkpoint.tokens = id.checked_add(1).ok_or(StoreError::Overflow("token id"))?;
        self.new_id(Table::Tokens, FlatArray::Tokens, address.as_slice(), id)?;
        Ok(TokenId {
            id,
            kind: TokenKind::Unknown,
            holders_max: 0,
        })
    }

    /// States that a token emitted a transfer of `kind`, log `ordinal`; answers the token as that transfer moves it: by its
    /// own standard, which the first one settles, or by another one.
    pub fn token_emits(&mut self, token: BatchToken, kind: TokenKind, ordinal: u64) -> BatchToken {
        let block = self.checkpoint.next_block.saturating_sub(1);
        let Some(change) = self.moves.changes.get_mut(token.slot) else {
            return token;
        };
        if change.kind == TokenKind::Unknown {
            change.kind = kind;
            change.first_transfer = Some(ordinal);
            change.settled_in = block;
            // Holdings stand under the kind: what is held moves when the batch is rendered.
            self.bytes += self.moves.room.take(block, change.holders_max) as usize * MOVED_BYTES;
        } else if change.kind != kind {
            change.flags |= MIXED;
        }
        BatchToken {
            other: Some(kind).filter(|_| change.kind != kind),
            ..token
        }
    }

    /// Whether deposits and withdrawals move balances of a token: where it has another standard than ERC-20 they do
    /// not. It is remembered that they did.
    pub fn token_wraps(&mut self, token: BatchToken) -> bool {
        let Some(change) = self.moves.changes.get_mut(token.slot) else {
            return false;
        };
        let wraps = matches!(change.kind, TokenKind::Unknown | TokenKind::Erc20);
        if wraps {
            change.flags |= WRAPPED;
        }
        wraps
    }

    /// Moves `value` of a token in the current block; the zero address has no balance, its sums are kept.
    pub fn move_token(&mut self, token: BatchToken, from: &Address, to: &Address, value: U256) {
        let block = self.checkpoint.next_block.saturating_sub(1);
        let zero = (from.is_zero(), to.is_zero());
        if token.is_own() && (zero.0 || zero.1) {
            self.moves
                .add_supply(token.slot, SupplyFlow::of(block, value, zero));
        }
        for (account, gained) in [(from, false), (to, true)] {
            self.move_of(token, account, Flow::of(block, value, gained));
        }
    }

    /// Takes `value` of a token off an account in the current block: a withdrawal, which undoes a deposit.
    pub fn unwrap_token(&mut self, token: BatchToken, from: &Address, value: U256) {
        let block = self.checkpoint.next_block.saturating_sub(1);
        let unwrapped = Flow::of(block, value, false);
        let sums = SupplyFlow {
            block,
            minted: unwrapped.net,
            to_zero: Net::default(),
        };
        self.moves.add_supply(token.slot, sums);
        self.move_of(token, from, unwrapped);
    }

    fn move_of(&mut self, token: BatchToken, account: &Address, flow: Flow) {
        if account.is_zero() || !self.moves.add(token.slot, token.other, *account, flow) {
            return;
        }
        self.bytes += MOVE_BYTES;
        if let Some(change) = self.moves.changes.get_mut(token.slot)
            && change.kind == TokenKind::Unknown
        {
            change.holders_max += 1;
        }
    }

    /// Hands an id (ERC-721) on in the current block. Who owned it loses it, whoever `from` is.
    pub fn move_id(&mut self, token: BatchToken, id: U256, from: &Address, to: &Address) {
        let block = self.checkpoint.next_block.saturating_sub(1);
        let zero = (from.is_zero(), to.is_zero());
        if token.is_own() && (zero.0 || zero.1) {
            self.moves
                .add_supply(token.slot, SupplyFlow::of(block, U256::ONE, zero));
        }
        let passage = Passage {
            block,
            from: *from,
            to: *to,
        };
        let passages = self.moves.ids.entry((token.slot, id)).or_default();
        if passages.is_empty() {
            self.bytes += 2 * MOVE_BYTES;
        }
        passages.push(passage);
    }

    /// Gives the next ordinal to a transfer in an ERC-1155 log.
    pub fn multi_transfer(&mut self, log: u64, position: u32) -> u64 {
        let ordinal = self.checkpoint.multi_transfers;
        self.checkpoint.multi_transfers += 1;
        if let Some(array) = self.flats.get_mut(FlatArray::MultiTransfers as usize) {
            array.extend_from_slice(&log.to_be_bytes());
            array.extend_from_slice(&position.to_be_bytes());
        }
        self.bytes += 12;
        ordinal
    }
}
