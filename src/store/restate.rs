//! Block rewards that are stated of a store that is there.

use rocksdb::{DB, WriteOptions};

use super::StoreError;
use super::open::{CHECKPOINT, IDENTITY};
use super::schema::Table;
use super::view::family;
use crate::codec::value::{Checkpoint, Identity};
use crate::model::StaticRewards;

/// The identity of a store that is opened to be filled, with the rewards of `wanted` where they say the same of all blocks that the ledger of native
/// balances has: a chain announces what it will pay, and a store may have no block yet that was paid for. Else with its own, for by
/// two schedules the ledger would be that of no chain.
pub(super) fn restated(db: &DB, found: Identity, wanted: &Identity) -> Result<Identity, StoreError> {
    let is_same = (found.chain_id, found.genesis_hash) == (wanted.chain_id, wanted.genesis_hash);
    let Some(stated) = wanted.static_rewards.clone().filter(|_| is_same) else {
        return Ok(found);
    };
    let stated = StaticRewards::of_steps(stated);
    let kept = match found.static_rewards.clone() {
        Some(steps) => StaticRewards::of_steps(steps),
        None => StaticRewards::well_known(found.chain_id, found.genesis_hash.into()),
    };
    let meta = family(db, Table::Meta)?;
    let failed = |key| StoreError::rocks_at(Table::Meta.name(), key);
    let checkpoint = db.get_cf(meta, CHECKPOINT).map_err(failed(CHECKPOINT))?;
    let paid = match checkpoint {
        Some(bytes) => {
            let checkpoint = Checkpoint::decode(&bytes);
            checkpoint
                .map_err(StoreError::corrupt(Table::Meta.name(), CHECKPOINT))?
                .next_traced
        }
        None => 0,
    };
    if stated == kept || !stated.agrees_before(&kept, paid) {
        return Ok(found);
    }
    let restated = Identity {
        static_rewards: Some(stated.steps().to_vec()),
        ..found
    };
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    db.put_cf_opt(meta, IDENTITY, restated.encode(), &synced)
        .map_err(failed(IDENTITY))?;
    Ok(restated)
}
