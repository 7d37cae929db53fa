//! Block rewards that are stated of a store that is there.

use super::StoreError;
use super::open::put_identity;
use super::pen::Pen;
use super::writer::Writer;
use crate::codec::value::Identity;
use crate::model::StaticRewards;

impl Writer {
    /// The rewards that the store's ledger of native balances goes on with where these are stated: they become the store's own where they say
    /// the same of all blocks that the ledger has, for a chain announces what it will pay, and a store may have no block yet that was paid for.
    /// Else its own stay, for by two schedules the ledger would be that of no chain. Views from then on have them.
    ///
    /// # Errors
    ///
    /// When the disk fails.
    pub fn restate_rewards(&mut self, stated: StaticRewards) -> Result<StaticRewards, StoreError> {
        self.step(|pen| pen.restate_rewards(&stated))?;
        Ok(self.store().identity().rewards())
    }
}

impl Pen {
    fn restate_rewards(&mut self, stated: &StaticRewards) -> Result<(), StoreError> {
        let identity = self.store.identity();
        let kept = identity.rewards();
        let paid = self.state.checkpoint.next_traced;
        if *stated == kept || !stated.agrees_before(&kept, paid) {
            return Ok(());
        }
        let restated = Identity {
            static_rewards: Some(stated.steps().to_vec()),
            ..(*identity).clone()
        };
        self.settle()?;
        put_identity(&self.store.db, &restated)?;
        self.publish_as(restated.into());
        Ok(())
    }
}
