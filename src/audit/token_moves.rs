//! What the logs of a block say of tokens: what moves between holders, whose ids are, and of which standard a token is.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use alloy_primitives::map::{AddressMap, HashMap};

use super::Audit;
use super::sums::{Sums, fingerprint, weighed};
use crate::codec::tokens::{DOUBTS, MIXED, TokenState, WRAPPED};
use crate::model::{Address, Bundle, Log, TokenEvent, TokenKind, U256};
use crate::store::{StoreError, View};

/// A change of what a holder has, as a number whose sum over a block does not depend on how changes are cut.
pub(super) fn change(token: u32, holder: &Address, by: U256) -> u64 {
    weighed(by, fingerprint((token, holder)))
}

/// Stand for the two sums of the supply among the holders.
pub(super) const MINTED: Address = Address::repeat_byte(0xf1);
pub(super) const TO_ZERO: Address = Address::repeat_byte(0xf0);

/// Whether the ledger of a token can be told from its transfers one by one.
pub(super) fn is_plain(state: &TokenState) -> bool {
    let wraps = state.flags & WRAPPED != 0;
    state.flags & DOUBTS == 0 && (!wraps || counts_units(state.kind))
}

/// Whether deposits and withdrawals move what is held of a token.
const fn counts_units(kind: TokenKind) -> bool {
    matches!(kind, TokenKind::Unknown | TokenKind::Erc20)
}

/// That an account owns an id.
pub(super) fn owned(owner: &Address, id: &[u8; 32]) -> u64 {
    fingerprint((owner, id))
}

/// What all logs of a token say of it, whatever order they are read in.
pub(super) struct Seen {
    /// Ordinal and standard of its first transfer.
    first: AtomicU64,
    /// Ordinal of its first deposit or withdrawal.
    wrapped: AtomicU64,
    /// A bit for each standard by which something moved.
    kinds: AtomicU8,
    /// Who got ids, less who gave them away: who owns them in the end, where nobody gave away what was another's. Wraps.
    owners: AtomicU64,
}

/// Stands for none.
const NEVER: u64 = u64::MAX;
/// Bits of a standard's code.
const KIND_BITS: u32 = 2;

const fn bit(kind: TokenKind) -> u8 {
    1 << kind as u8
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            first: AtomicU64::new(NEVER),
            wrapped: AtomicU64::new(NEVER),
            kinds: AtomicU8::new(0),
            owners: AtomicU64::new(0),
        }
    }
}

impl Seen {
    fn event(&self, ordinal: u64, event: &TokenEvent<'_>) {
        let kind = event.kind();
        if kind == TokenKind::Unknown {
            self.wrapped.fetch_min(ordinal, Ordering::Relaxed);
            return;
        }
        let first = (ordinal << KIND_BITS) | kind as u64;
        self.first.fetch_min(first, Ordering::Relaxed);
        self.kinds.fetch_or(bit(kind), Ordering::Relaxed);
        if let TokenEvent::Unique { from, to, id } = event {
            let id = id.to_be_bytes::<32>();
            if !to.is_zero() {
                self.owners.fetch_add(owned(to, &id), Ordering::Relaxed);
            }
            if !from.is_zero() {
                self.owners.fetch_sub(owned(from, &id), Ordering::Relaxed);
            }
        }
    }

    /// The sum of who owns which id.
    pub(super) fn owners(&self) -> u64 {
        self.owners.load(Ordering::Relaxed)
    }

    /// Whether the logs say what a token's row says of its standards.
    pub(super) fn is_as_in(&self, state: &TokenState) -> bool {
        let first = self.first.load(Ordering::Relaxed);
        let (kind, first) = if first == NEVER {
            (TokenKind::Unknown, None)
        } else {
            let code = (first & ((1 << KIND_BITS) - 1)) as u8;
            let kind = TokenKind::from_code(code).unwrap_or_default();
            (kind, Some(first >> KIND_BITS))
        };
        let wrapped = self.wrapped.load(Ordering::Relaxed);
        // By other standards ids are counted, so that only what came before the first transfer moved something.
        let is_wrapped = if counts_units(kind) {
            wrapped != NEVER
        } else {
            first.is_some_and(|first| wrapped < first)
        };
        let others = self.kinds.load(Ordering::Relaxed) & !bit(kind);
        let is_mixed = others != 0 || (is_wrapped && !counts_units(kind));
        let has = |flag: u8| state.flags & flag != 0;
        (state.kind, state.first_transfer) == (kind, first)
            && (has(WRAPPED), has(MIXED)) == (is_wrapped, is_mixed)
    }
}

/// A token as it was looked up.
#[derive(Clone, Copy)]
struct Token {
    id: u32,
    kind: TokenKind,
    is_plain: bool,
}

/// Token ids and states that were looked up; of one thread.
#[derive(Default)]
pub(super) struct Known(AddressMap<Option<Token>>);

/// Tokens that a thread remembers at a time.
const KNOWN_MAX: usize = 1 << 16;

impl Known {
    fn token(&mut self, view: &View, address: &Address) -> Result<Option<Token>, StoreError> {
        if let Some(&token) = self.0.get(address) {
            return Ok(token);
        }
        let token = match view.token(address)? {
            Some(id) => {
                let state = view.token_state(id)?;
                Some(Token {
                    id,
                    kind: state.kind,
                    is_plain: is_plain(&state),
                })
            }
            None => None,
        };
        if self.0.len() >= KNOWN_MAX {
            self.0.clear();
        }
        self.0.insert(*address, token);
        Ok(token)
    }
}

/// What the audited blocks move.
pub(super) struct Moves {
    /// Of tokens whose ledgers follow from their transfers one by one.
    pub(super) sums: Sums,
    /// By token, where all blocks are audited.
    seen: Vec<Seen>,
}

impl Moves {
    pub(super) fn new(audit: &Audit<'_>) -> Self {
        let tokens = if audit.is_whole() {
            audit.view.checkpoint().tokens
        } else {
            0
        };
        Self {
            sums: Sums::new(audit.range),
            seen: (0..tokens).map(|_| Seen::default()).collect(),
        }
    }

    /// What all logs say of a token; `None` where not all blocks are audited.
    pub(super) fn seen(&self, token: u32) -> Option<&Seen> {
        self.seen.get(token as usize)
    }

    /// Adds what the logs of a block say.
    pub(super) fn add(&self, view: &View, bundle: &Bundle, known: &mut Known) -> Result<(), StoreError> {
        let block = bundle.block.number();
        let mut ordinals = view.first_log(block)?..;
        for receipt in &bundle.receipts {
            let logs = receipt.logs.iter().zip(&mut ordinals);
            let events = logs.filter_map(|(log, ordinal)| {
                let event = TokenEvent::of(&log.address, &log.topics, &log.data)?;
                Some((ordinal, log, event))
            });
            let events: Vec<(u64, &Log, TokenEvent<'_>)> = events.collect();
            let mut twins = Twins::of(&events);
            for (ordinal, log, event) in &events {
                let Some(token) = known.token(view, &log.address)? else {
                    continue;
                };
                if let Some(seen) = self.seen(token.id) {
                    seen.event(*ordinal, event);
                }
                if token.is_plain {
                    self.event(block, token, (*log, event), &mut twins);
                }
            }
        }
        Ok(())
    }

    /// Adds what one of the events of a transaction moves.
    fn event(
        &self,
        block: u64,
        Token { id: token, kind, .. }: Token,
        (log, event): (&Log, &TokenEvent<'_>),
        twins: &mut Twins,
    ) {
        let sums = &self.sums;
        let moved = |from: &Address, to: &Address, value: U256| {
            if from.is_zero() {
                sums.add(block, change(token, &MINTED, value));
            } else {
                sums.take(block, change(token, from, value));
            }
            if to.is_zero() {
                sums.add(block, change(token, &TO_ZERO, value));
            } else {
                sums.add(block, change(token, to, value));
            }
        };
        match event {
            // Such a log speaks of something else there.
            TokenEvent::Deposit { .. } | TokenEvent::Withdrawal { .. } if !counts_units(kind) => {}
            TokenEvent::Fungible { from, to, value } if kind == TokenKind::Erc20 => {
                moved(from, to, *value);
            }
            TokenEvent::Unique { from, to, .. } if kind == TokenKind::Erc721 => {
                moved(from, to, U256::ONE);
            }
            TokenEvent::Multi { from, to, items } if kind == TokenKind::Erc1155 => {
                items.iter().for_each(|(_, value)| moved(from, to, value));
            }
            TokenEvent::Deposit { account, value } if !twins.tells(&log.address, account, *value, true) => {
                moved(&Address::ZERO, account, *value);
            }
            TokenEvent::Withdrawal { account, value }
                if !twins.tells(&log.address, account, *value, false) =>
            {
                // What is unwrapped was minted no more.
                sums.take(block, change(token, &MINTED, *value));
                if !account.is_zero() {
                    sums.take(block, change(token, account, *value));
                }
            }
            _ => {}
        }
    }
}

/// Transfers of a transaction from and to the zero address that tell of a deposit or withdrawal each: by token, account and value, and
/// whether units came. The n-th of equal ones is told by the n-th of equal transfers.
#[derive(Default)]
struct Twins(HashMap<(Address, Address, U256, bool), u64>);

impl Twins {
    fn of(events: &[(u64, &Log, TokenEvent<'_>)]) -> Self {
        let mut twins = Self::default();
        for (_, log, event) in events {
            let TokenEvent::Fungible { from, to, value } = event else {
                continue;
            };
            for (zero, account, came) in [(from, to, true), (to, from, false)] {
                if zero.is_zero() {
                    *twins.0.entry((log.address, *account, *value, came)).or_default() += 1;
                }
            }
        }
        twins
    }

    /// Whether a transfer tells of the next deposit or withdrawal like this.
    fn tells(&mut self, token: &Address, account: &Address, value: U256, came: bool) -> bool {
        let left = self.0.get_mut(&(*token, *account, value, came));
        left.is_some_and(|left| {
            let tells = *left > 0;
            *left = left.saturating_sub(1);
            tells
        })
    }
}
