//! A genesis file that is given when block 0 is stored already without what it says of accounts.

use super::derive::{NonceRules, derive_genesis};
use super::error::SyncError;
use crate::store::{View, Writer};

/// Whether a store may take the allocation of a genesis file that is given now: it begins at block 0, and no balance changed since.
pub(super) fn may_be_added(view: &View) -> bool {
    view.first_block() == 0 && view.checkpoint().next_traced <= 1
}

/// Whether block 0 is stored without the allocation that is known by now.
pub(super) fn is_missing(view: &View, rules: &NonceRules) -> bool {
    let (next, native) = (view.checkpoint().next_traced, view.checkpoint().native);
    // Where block 0 is yet to come, or its frames are, the allocation comes with it.
    may_be_added(view) && next == 1 && !native.allocated && rules.native.allocation.is_some()
}

/// Adds it, where all stored blocks are final: the rows are those of a store that had it from the start.
pub(super) fn add(writer: &mut Writer, rules: &NonceRules) -> Result<(), SyncError> {
    tracing::info!("block 0 is stored without the accounts of the genesis file: they are added");
    let mut batch = writer.batch();
    derive_genesis(rules, &mut batch)?;
    Ok(writer.commit_final(batch)?)
}
