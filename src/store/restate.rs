//! Block rewards that are stated of a store that is there.

use super::StoreError;
use super::open::{Store, put_identity};
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
        let kept = self.identity().rewards();
        let paid = self.view().checkpoint().next_traced;
        if stated == kept || !stated.agrees_before(&kept, paid) {
            return Ok(kept);
        }
        let restated = Identity {
            static_rewards: Some(stated.steps().to_vec()),
            ..self.identity().clone()
        };
        put_identity(&self.db, &restated)?;
        Ok(stated)
    }
}
