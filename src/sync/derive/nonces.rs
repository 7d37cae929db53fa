//! Nonces that sent transactions do not tell.
//!
//! An account's nonce is that of its last sent transaction and one, except for EIP-7702 authorities
//! (each valid authorization counts) and for contracts (1 from EIP-161 on, and one for each creation).
//! Those go into the table `nonces`; `NONCE_UNKNOWN` says that only the node can tell.

use alloy_primitives::U256;
use alloy_primitives::map::AddressSet;

use super::native::NativeRules;
use crate::codec::value::NONCE_UNKNOWN as UNKNOWN;
use crate::model::{Address, Block, Bundle, Frame, FrameKind, Header, Transaction, TransactionTrace};
use crate::store::{Batch, StoreError};
use crate::sync::authority::authority;

/// What the derivations of nonces and of native balances depend on besides the blocks.
#[derive(Clone, Debug, Default)]
pub struct NonceRules {
    /// The chain's id: authorizations for other chains do not count.
    pub chain_id: u64,
    /// The first block in which a new contract's nonce is 1 (EIP-161). `None`: not known; it is 1 where receipts have a status, which came
    /// later, and before that only the node can tell.
    pub spurious_dragon_block: Option<u64>,
    /// The first time of Cancun (EIP-6780), where the chain's schedule states one.
    pub cancun_time: Option<u64>,
    /// Nonces that are not zero in the genesis allocation.
    pub genesis_nonces: Vec<(Address, u64)>,
    /// Whether the store begins at block 0, so that an account it never saw has nonce 0.
    pub from_genesis: bool,
    /// What the ledger of native balances depends on.
    pub native: NativeRules,
}

impl NonceRules {
    /// The nonce that a contract begins with in a block whose receipts have a status or have none.
    const fn of_new_contract(&self, block: u64, states_status: bool) -> u64 {
        match self.spurious_dragon_block {
            Some(first) => (first <= block) as u64,
            None if states_status => 1,
            None => UNKNOWN,
        }
    }

    /// The nonce of a contract that destroyed itself in a block, in another transaction than the one that made it; `None` where it lives on, as
    /// from Cancun on (EIP-6780).
    fn of_ended(&self, header: &Header) -> Option<u64> {
        if header.blob_gas_used.is_some() {
            return None;
        }
        // Chains with a base fee may have taken that rule without blobs, which headers would tell of.
        let is_before = header.base_fee_per_gas.is_none()
            || self.cancun_time.is_some_and(|first| header.timestamp < first);
        Some(if is_before { 0 } else { UNKNOWN })
    }
}

pub(super) fn derive(
    bundle: &Bundle,
    traces: Option<&[TransactionTrace]>,
    rules: &NonceRules,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let block = bundle.block.number();
    if block == 0 {
        derive_genesis(rules, batch)?;
    }
    for (index, transaction) in bundle.block.transactions.iter().enumerate() {
        batch.remember_sent(&transaction.from, transaction.nonce.saturating_add(1));
        for (account, stated) in authorities(transaction, rules) {
            authorize(&account, stated, block, rules, batch)?;
        }
        if let Some(trace) = traces.and_then(|traces| traces.get(index)) {
            let receipt = bundle.receipts.get(index);
            let new_contract =
                rules.of_new_contract(block, receipt.is_some_and(|receipt| receipt.status.is_some()));
            frames(&trace.frames, &bundle.block, new_contract, rules, batch)?;
        }
    }
    Ok(())
}

/// The nonces that accounts begin with.
pub(super) fn derive_genesis(rules: &NonceRules, batch: &mut Batch) -> Result<(), StoreError> {
    for (account, nonce) in &rules.genesis_nonces {
        batch.set_nonce(account, 0, *nonce)?;
    }
    Ok(())
}

/// Derives the nonces of a block that is stored without its frames once more, with them; its first transaction is `first`. Creations by
/// delegated accounts raise nonces that later authorizations are held against, so what these gave without them is taken back.
pub(super) fn derive_traces(
    bundle: &Bundle,
    traces: &[TransactionTrace],
    first: u64,
    rules: &NonceRules,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let block = bundle.block.number();
    batch.fill(block, first);
    for transaction in &bundle.block.transactions {
        for (account, _) in authorities(transaction, rules) {
            batch.take_back_nonce(&account, block)?;
        }
    }
    derive(bundle, Some(traces), rules, batch)
}

/// Who signed the authorizations that may count on this chain, and the nonces that they state.
fn authorities(transaction: &Transaction, rules: &NonceRules) -> impl Iterator<Item = (Address, u64)> {
    let chain_id = U256::from(rules.chain_id);
    let tuples = transaction.authorization_list.iter().flatten();
    let ours = tuples.filter(move |tuple| tuple.chain_id.is_zero() || tuple.chain_id == chain_id);
    ours.filter_map(|tuple| Some((authority(tuple)?, tuple.nonce)))
}

fn authorize(
    account: &Address,
    stated: u64,
    block: u64,
    rules: &NonceRules,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let base = batch.base();
    let ledger = batch.nonce(account)?;
    let by_sending = batch.sent_nonce(account, &base)?;
    let nonce = match (ledger, by_sending) {
        (Some(UNKNOWN), _) => return Ok(()),
        (None, None) if !rules.from_genesis => {
            batch.set_nonce(account, block, UNKNOWN)?;
            return Ok(());
        }
        (ledger, by_sending) => ledger.unwrap_or(0).max(by_sending.unwrap_or(0)),
    };
    if nonce == stated {
        batch.set_nonce(account, block, nonce.saturating_add(1).min(UNKNOWN - 1))?;
    }
    Ok(())
}

/// Raises the nonce of an account whose code created a contract.
fn created_by(
    account: &Address,
    block: u64,
    rules: &NonceRules,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let sent = batch.sent_nonce(account, &batch.base())?;
    match batch.nonce(account)? {
        Some(UNKNOWN) => {}
        // A delegated account (EIP-7702) creates and sends.
        Some(ledger) => {
            let nonce = ledger.max(sent.unwrap_or(0)).saturating_add(1);
            batch.set_nonce(account, block, nonce.min(UNKNOWN - 1))?;
        }
        // Delegated before the store begins: what it created until then is not known.
        None if sent.is_some() && !rules.from_genesis => batch.set_nonce(account, block, UNKNOWN)?,
        None => {}
    }
    Ok(())
}

fn frames(
    frames: &[Frame],
    block: &Block,
    new_contract: u64,
    rules: &NonceRules,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let of_ended = rules.of_ended(&block.header);
    let block = block.number();
    // Whether each frame on the way down to the current one was undone.
    let mut undone: Vec<bool> = Vec::new();
    let mut created = AddressSet::default();
    for frame in frames {
        let depth = frame.path.len();
        undone.truncate(depth);
        let parent_undone = undone.last().copied().unwrap_or(false);
        undone.push(frame.reverted);
        if frame.kind.is_creation() {
            if depth > 0 && !parent_undone && !frame.failed_before_nonce() {
                created_by(&frame.from, block, rules, batch)?;
            }
            // The new contract's nonce is set before its code runs and may create in turn.
            if !frame.reverted
                && let Some(contract) = frame.to
            {
                batch.set_nonce(&contract, block, new_contract)?;
                created.insert(contract);
            }
        }
    }
    for frame in frames
        .iter()
        .filter(|frame| frame.kind == FrameKind::SelfDestruct && !frame.reverted)
    {
        let made_here = created.contains(&frame.from);
        if let Some(nonce) = if made_here { Some(0) } else { of_ended } {
            batch.set_nonce(&frame.from, block, nonce)?;
        }
    }
    Ok(())
}
