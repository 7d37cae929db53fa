//! The store's side of a sync, whoever gives the blocks.

use std::sync::Arc;
use std::time::Duration;

use super::allocation;
use super::error::SyncError;
use super::finality::{FinalBlocks, Finality, Named, Piece, judge};
use super::hand::Hand;
use super::patience::Patience;
use super::pipeline::{Pipeline, Source, Word};
use super::reorg::Relation;
use super::rules::ChainRules;
use crate::model::{B256, UNFINAL_BLOCKS_MAX};
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Store, View};

/// What the sync from a node and the one from a source have both, and do with it in each round.
#[derive(Debug)]
pub(super) struct Side {
    /// Who gives the blocks, as messages name it.
    pub(super) giver: &'static str,
    pub(super) store: Arc<Store>,
    pub(super) hand: Hand,
    pub(super) status: Arc<ChainStatus>,
    pub(super) rules: ChainRules,
    pub(super) patience: Patience,
    /// Blocks below the last stored one that count as final where the giver names none.
    pub(super) finality_depth: u64,
    /// Bytes of a batch of final blocks.
    pub(super) batch_bytes_max: usize,
}

impl Side {
    pub(super) fn next_block(&self) -> u64 {
        self.store.view().checkpoint().next_block
    }

    /// The giver has our head, and nothing else speaks against it.
    pub(super) fn is_agreed(&mut self) {
        self.patience.is_agreed(&self.status);
    }

    /// How long to wait after a failure; `None` where no waiting mends it.
    pub(super) fn pause(
        &mut self,
        error: &SyncError,
        wait: Duration,
        waiting: &'static str,
    ) -> Option<Duration> {
        self.patience.pause(error, wait, waiting, &self.status)
    }

    /// Says what is waited for where the giver neither has our head nor left our chain.
    pub(super) fn wait_for(&self, relation: Relation) {
        if relation == (Relation::Behind { is_ours: true }) {
            // What it has is ours as far as it goes: clients may ask it.
            self.status.set_contradicted(false);
        }
        self.status.set_message(relation.waits_for(self.giver));
    }

    /// The first block to take off where the giver's chain left ours after `fork`.
    pub(super) fn first_after(&self, fork: Option<u64>) -> u64 {
        fork.map_or(self.store.identity().first_block, |fork| fork + 1)
    }

    /// Takes off the `depth` blocks from `next` on, which the giver's chain left.
    pub(super) async fn unwind(&mut self, next: u64, depth: u64) -> Result<(), SyncError> {
        self.hand.with(move |writer| Ok(writer.unwind(next)?)).await?;
        self.status.unwound(depth);
        self.is_agreed();
        Ok(())
    }

    /// Adds the allocation of a genesis file to a block 0 that is stored without it; whether there was one to add.
    pub(super) async fn add_allocation(&mut self, view: &View) -> Result<bool, SyncError> {
        let is_missing = allocation::is_missing(view, &self.rules.nonces);
        if is_missing {
            let rules = self.rules.nonces.clone();
            self.hand
                .with(move |writer| allocation::add(writer, &rules))
                .await?;
        }
        Ok(is_missing)
    }

    /// Judges what is final: by the giver's word, where it `tells` what is, else by depth.
    pub(super) async fn judge<F>(
        &self,
        view: &View,
        head: u64,
        (tells, named): (bool, Option<Named>),
        theirs: impl Fn(u64) -> F,
    ) -> Result<Finality, SyncError>
    where
        F: Future<Output = Result<Option<B256>, SyncError>>,
    {
        let depth = match tells {
            true => UNFINAL_BLOCKS_MAX,
            false => self.finality_depth.min(UNFINAL_BLOCKS_MAX),
        };
        let finality = judge(view, head, named, depth, theirs).await?;
        if let Some(number) = finality.stored {
            self.status.set_finalized(number);
        }
        Ok(finality)
    }

    /// The blocks to fetch now, up to `stop_at`; the status says so.
    pub(super) fn wanted(
        &self,
        finality: &Finality,
        view: &View,
        stop_at: Option<u64>,
    ) -> Option<(u64, u64)> {
        finality.wanted(view, stop_at, self.giver, &self.status)
    }

    /// Moves finality to a stored block.
    pub(super) async fn finalize(&mut self, number: u64) -> Result<(), SyncError> {
        self.hand.with(move |writer| Ok(writer.finalize(number)?)).await
    }

    /// Takes the blocks of `piece`, which are `bundles`; who gives them is asked by `word` before any of them becomes final.
    pub(super) async fn take(
        &mut self,
        piece: Piece,
        bundles: impl Source,
        word: Word,
        shutdown: &mut Shutdown,
    ) -> Result<(), SyncError> {
        let asked = Some(Arc::clone(&word));
        self.store_all(bundles, piece.final_blocks, asked, shutdown)
            .await?;
        if let Some(named) = piece.named.filter(|_| piece.first < self.next_block()) {
            // Once more, as of a batch: who named it may be of a branch that the others left.
            let theirs = |number| word(number);
            self.hand.finalize_if_there(named, 1, theirs, shutdown).await?;
        }
        Ok(())
    }

    /// Takes bundles, of which these are final.
    pub(super) async fn store_all(
        &mut self,
        bundles: impl Source,
        final_blocks: FinalBlocks,
        word: Option<Word>,
        shutdown: &mut Shutdown,
    ) -> Result<(), SyncError> {
        let pipeline = Pipeline {
            rules: self.rules.clone(),
            final_blocks,
            batch_bytes_max: self.batch_bytes_max,
        };
        let run = |writer| pipeline.run_by(writer, bundles, word, shutdown);
        self.hand.lend(run).await
    }
}
