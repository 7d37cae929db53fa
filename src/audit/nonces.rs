//! The rows of nonces that a block calls for, said again apart from the derivation: contracts as they are created and end,
//! what they and delegated accounts create, and the authorizations that count (EIP-7702).
//!
//! What an account had before the block is read from the store, where it is held against the block that says it.

use std::collections::BTreeMap;

use alloy_primitives::map::{AddressMap, AddressSet};

use super::Audit;
use crate::codec::bytes::{Reader, put_varint};
use crate::codec::value::NONCE_UNKNOWN;
use crate::codec::{Corrupt, keys};
use crate::model::{Address, Bundle, ForkRules, Frame, FrameKind, Header, Transaction, U256};
use crate::store::{StoreError, Table};
use crate::sync::authority::authority;

/// Whether the rows of a block can be told from what is stored. Those of block 0 are of the genesis file. And where frames
/// were filled in up to some block, or that file was given late, those behind it were told by nonces that are not there any more.
pub(super) fn are_told(audit: &Audit<'_>, block: u64) -> bool {
    let untraced = audit.view.checkpoint().next_traced <= audit.view.first_block();
    block > 0 && (untraced || audit.is_traced(block))
}

/// Reads a value.
pub(super) fn decode(value: &[u8]) -> Result<u64, Corrupt> {
    let mut reader = Reader::new(value, "nonce");
    let nonce = reader.varint()?;
    reader.end().map(|()| nonce)
}

/// Hands the rows that a block calls for to `item`, by key and value.
pub(super) fn called_for(
    audit: &Audit<'_>,
    bundle: &Bundle,
    item: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<(), StoreError> {
    let number = bundle.block.number();
    if !are_told(audit, number) {
        return Ok(());
    }
    let is_old = bundle.receipts.iter().any(|receipt| receipt.status.is_none());
    let mut nonces = Nonces {
        audit,
        number,
        first: audit.view.first_transaction(number)?,
        new_contract: of_new_contract(audit, number, is_old),
        may_end: may_end(audit, &bundle.block.header),
        is_old,
        before: AddressMap::default(),
        sent: AddressMap::default(),
        set: BTreeMap::new(),
    };
    for (index, transaction) in bundle.block.transactions.iter().enumerate() {
        let after = transaction.nonce.saturating_add(1);
        nonces.sent.insert(transaction.from, Some(after));
        nonces.authorizations(transaction)?;
        if let Some(trace) = bundle.traces.as_deref().and_then(|traces| traces.get(index)) {
            nonces.frames(&trace.frames)?;
        }
    }
    nonces.end(item)
}

fn forks(audit: &Audit<'_>) -> Option<ForkRules> {
    let identity = audit.view.identity();
    ForkRules::well_known(identity.chain_id, identity.genesis_hash.into())
}

/// Whether contracts end that destroy themselves after the transaction that made them. `None`: only a schedule of forks tells, for some
/// chains took EIP-6780 without blobs.
fn may_end(audit: &Audit<'_>, header: &Header) -> Option<bool> {
    if header.blob_gas_used.is_some() {
        return Some(false);
    }
    let cancun = forks(audit).and_then(|forks| forks.cancun_time);
    let is_told = header.base_fee_per_gas.is_none() || cancun.is_some_and(|first| header.timestamp < first);
    is_told.then_some(true)
}

/// The nonce that a new contract begins with (EIP-161), where that is known.
fn of_new_contract(audit: &Audit<'_>, block: u64, is_old: bool) -> Option<u64> {
    match forks(audit) {
        Some(forks) => Some(u64::from(
            forks.spurious_dragon.is_some_and(|first| first <= block),
        )),
        // Spurious Dragon came before Byzantium, which a receipt without a status came before, whatever the rules say.
        None => {
            let byzantium = audit.rules.byzantium_block;
            let is_later = byzantium.is_some_and(|first| first <= block) && !is_old;
            is_later.then_some(1)
        }
    }
}

/// What a block makes of a nonce.
#[derive(Clone, Copy, Default)]
struct Set {
    nonce: u64,
    /// Whether it counts from a new contract's 1, which may have been 0.
    may_be_less: bool,
    /// Whether it may be that only the node can tell, by rules that are not here.
    may_be_unknown: bool,
}

impl Set {
    fn of(nonce: u64) -> Self {
        Self {
            nonce,
            ..Self::default()
        }
    }
}

struct Nonces<'a> {
    audit: &'a Audit<'a>,
    number: u64,
    /// The block's first transaction.
    first: u64,
    new_contract: Option<u64>,
    may_end: Option<bool>,
    /// A receipt has no status: it may be from before EIP-161.
    is_old: bool,
    before: AddressMap<Option<u64>>,
    sent: AddressMap<Option<u64>>,
    set: BTreeMap<Address, Set>,
}

impl Nonces<'_> {
    /// By the rows so far.
    fn row(&mut self, account: &Address) -> Result<Option<u64>, StoreError> {
        if let Some(set) = self.set.get(account) {
            return Ok(Some(set.nonce));
        }
        if let Some(&before) = self.before.get(account) {
            return Ok(before);
        }
        let last = self.number.saturating_sub(1);
        let before = self.audit.view.ledger_nonce(account, last)?;
        self.before.insert(*account, before);
        Ok(before)
    }

    /// By the transactions that it sent so far.
    fn sent(&mut self, account: &Address) -> Result<Option<u64>, StoreError> {
        if let Some(&sent) = self.sent.get(account) {
            return Ok(sent);
        }
        let sent = self.audit.view.sent_nonce(account, self.first)?;
        self.sent.insert(*account, sent);
        Ok(sent)
    }

    fn put(&mut self, account: &Address, set: Set) {
        self.set.insert(*account, set);
    }

    /// One more than `nonce`.
    fn raise(&mut self, account: &Address, nonce: u64) {
        let doubts = self.set.get(account).copied().unwrap_or_default();
        let nonce = nonce.saturating_add(1).min(NONCE_UNKNOWN - 1);
        self.put(account, Set { nonce, ..doubts });
    }

    fn authorizations(&mut self, transaction: &Transaction) -> Result<(), StoreError> {
        let chain_id = U256::from(self.audit.view.identity().chain_id);
        for tuple in transaction.authorization_list.iter().flatten() {
            if !tuple.chain_id.is_zero() && tuple.chain_id != chain_id {
                continue;
            }
            let Some(account) = authority(tuple) else { continue };
            let (row, sent) = (self.row(&account)?, self.sent(&account)?);
            match row.max(sent) {
                _ if row == Some(NONCE_UNKNOWN) => {}
                None if self.audit.view.first_block() > 0 => self.put(&account, Set::of(NONCE_UNKNOWN)),
                has if has.unwrap_or(0) == tuple.nonce => self.raise(&account, tuple.nonce),
                _ => {}
            }
        }
        Ok(())
    }

    fn frames(&mut self, frames: &[Frame]) -> Result<(), StoreError> {
        // Whether each frame on the way down to the current one was undone.
        let mut undone: Vec<bool> = Vec::new();
        let mut created = AddressSet::default();
        for frame in frames {
            let depth = frame.path.len();
            undone.truncate(depth);
            let within_undone = undone.last().copied().unwrap_or(false);
            undone.push(frame.reverted);
            if !frame.kind.is_creation() {
                continue;
            }
            if depth > 0 && !within_undone && !frame.failed_before_nonce() {
                self.creates(&frame.from)?;
            }
            // Its code runs after that, and may create in turn.
            if let Some(contract) = frame.to.filter(|_| !frame.reverted) {
                let is_guess = self.new_contract.is_none();
                let set = Set {
                    nonce: self.new_contract.unwrap_or(1),
                    may_be_less: is_guess,
                    may_be_unknown: is_guess && self.is_old,
                };
                self.put(&contract, set);
                created.insert(contract);
            }
        }
        for frame in frames {
            if frame.kind != FrameKind::SelfDestruct || frame.reverted {
                continue;
            }
            let ends = created.contains(&frame.from).then_some(true).or(self.may_end);
            if ends != Some(false) {
                let set = Set {
                    may_be_unknown: ends.is_none(),
                    ..Set::of(0)
                };
                self.put(&frame.from, set);
            }
        }
        Ok(())
    }

    /// Code of an account creates a contract.
    fn creates(&mut self, account: &Address) -> Result<(), StoreError> {
        let (row, sent) = (self.row(account)?, self.sent(account)?);
        match row {
            Some(NONCE_UNKNOWN) => {}
            Some(nonce) => self.raise(account, nonce.max(sent.unwrap_or(0))),
            // Delegated before the store begins: what it created until then is not known.
            None if sent.is_some() && self.audit.view.first_block() > 0 => {
                self.put(account, Set::of(NONCE_UNKNOWN));
            }
            None => {}
        }
        Ok(())
    }

    fn end(self, item: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        for (account, set) in self.set {
            let (key, mut nonce) = (keys::account_at(&account, self.number), set.nonce);
            if (set.may_be_less || set.may_be_unknown)
                && let Some(stored) = self.audit.view.get(Table::Nonces, &key)?
                && let Ok(stored) = decode(&stored)
            {
                let is_less = set.may_be_less && stored.checked_add(1) == Some(nonce);
                if is_less || (set.may_be_unknown && stored == NONCE_UNKNOWN) {
                    nonce = stored;
                }
            }
            let mut value = Vec::with_capacity(10);
            put_varint(&mut value, nonce);
            item(&key, &value);
        }
        Ok(())
    }
}
