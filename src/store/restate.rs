//! Block rewards that are stated of a store that is there.

use rocksdb::WriteOptions;

use super::StoreError;
use super::open::{IDENTITY, Store};
use super::schema::Table;
use super::view::family;
use crate::codec::value::Identity;
use crate::model::StaticRewards;

impl Store {
    /// The rewards that its ledger of native balances goes on with where these are stated: they become the store's own where they say the same
    /// of all blocks that the ledger has, for a chain announces what it will pay, and a store may have no block yet that was paid for. Else
    /// its own stay, for by two schedules the ledger would be that of no chain. Whoever opened it before reads by its former ones until it is opened
    /// again.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn restate_rewards(&self, stated: StaticRewards) -> Result<StaticRewards, StoreError> {
        let identity = self.identity();
        let kept = self
            .static_rewards()
            .unwrap_or_else(|| StaticRewards::well_known(identity.chain_id, identity.genesis_hash.into()));
        let paid = self.view().checkpoint().next_traced;
        if stated == kept || !stated.agrees_before(&kept, paid) {
            return Ok(kept);
        }
        let restated = Identity {
            static_rewards: Some(stated.steps().to_vec()),
            ..identity.clone()
        };
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        self.db
            .put_cf_opt(
                family(&self.db, Table::Meta)?,
                IDENTITY,
                restated.encode(),
                &synced,
            )
            .map_err(StoreError::rocks_at(Table::Meta.name(), IDENTITY))?;
        Ok(stated)
    }
}
