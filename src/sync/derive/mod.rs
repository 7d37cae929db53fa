//! Blocks into rows: functions of a verified bundle and of what the store held before, in chain order.
//!
//! One derivation, one file. They push into a [`Batch`] and decide nothing about when it is written.

mod blocks;
mod days;
mod frames;
mod logs;
pub mod native;
mod nonces;
mod tokens;
mod transactions;

use crate::model::{Bundle, TransactionTrace};
use crate::store::{Batch, BlockEarnings, StoreError, View};

pub use nonces::NonceRules;

/// Pushes everything that a block brings.
pub fn derive(bundle: &Bundle, rules: &NonceRules, batch: &mut Batch) -> Result<(), StoreError> {
    let block = &bundle.block;
    let base = batch.checkpoint().transactions;
    let traced = batch.checkpoint().next_traced == block.number();
    let traces = bundle.traces.as_deref().filter(|_| traced);
    blocks::derive(bundle, batch)?;
    transactions::derive(bundle, traces, batch)?;
    let first_log = batch.checkpoint().logs;
    logs::derive(bundle, batch)?;
    tokens::derive(bundle, first_log, batch)?;
    if let Some(traces) = traces {
        frames::derive(block, traces, base, None, batch)?;
    }
    nonces::derive(bundle, traces, rules, batch)?;
    match traces {
        Some(traces) => native::derive(bundle, traces, base, &rules.native, batch),
        None => Ok(()),
    }
}

/// What a block's fee recipient earned.
pub fn earnings(bundle: &Bundle) -> Result<BlockEarnings, StoreError> {
    blocks::earnings(&bundle.block, &days::of_block(bundle))
}

/// Pushes the frames of a block that is stored (in `view`) without them, and what follows from them; its transactions begin at
/// ordinal `first`.
pub fn derive_traces(
    bundle: &Bundle,
    traces: &[TransactionTrace],
    (view, first): (&View, u64),
    rules: &NonceRules,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    frames::derive(&bundle.block, traces, first, Some(view), batch)?;
    nonces::derive_traces(bundle, traces, first, rules, batch)?;
    native::derive(bundle, traces, first, &rules.native, batch)
}

/// Pushes what a genesis file says of accounts, where block 0 is stored without it and nothing else is.
pub fn derive_genesis(rules: &NonceRules, batch: &mut Batch) -> Result<(), StoreError> {
    nonces::derive_genesis(rules, batch)?;
    native::allocate(&rules.native, batch)
}

/// A position or count that goes into 32 bits.
fn narrow(number: usize, what: &'static str) -> Result<u32, StoreError> {
    u32::try_from(number).map_err(|_| StoreError::Overflow(what))
}
