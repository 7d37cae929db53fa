//! The sync of a chain whose blocks the embedding process gives: as the engine does it of a node, without what only
//! nodes need (pace, probing, filling in of traces).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::runtime::Handle;

use super::allocation;
use super::engine::{IDLE_MAX, WAIT_FIRST, WAIT_MAX};
use super::error::{SYNC_WAITS, SyncError};
use super::finality::{FinalBlocks, Finality, Named, judge};
use super::hand::Hand;
use super::patience::Patience;
use super::pipeline::{Pipeline, Source, Word, verified};
use super::reorg::{Relation, relate};
use super::rules::ChainRules;
use super::source::{BlockSource, SourceError, SourceHead};
use super::verify::Rules;
use crate::clock;
use crate::model::{B256, Bundle, UNFINAL_BLOCKS_MAX};
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Store, View, Writer};
use crate::tasks;

/// How a source is followed.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Blocks below the last stored one that count as final where the source names none.
    pub finality_depth: u64,
    /// Bytes of a batch of final blocks.
    pub batch_bytes_max: usize,
    /// How long the source may contradict what is final before the sync stops.
    pub contradiction_wait: Duration,
    /// Blocks asked for at the same time.
    pub window: usize,
}

/// The sync of one chain from a [`BlockSource`].
pub struct Follower {
    source: Arc<dyn BlockSource>,
    store: Arc<Store>,
    hand: Hand,
    status: Arc<ChainStatus>,
    rules: ChainRules,
    options: FollowOptions,
    patience: Patience,
    /// The block up to which the source was told that it may forget.
    settled: Option<u64>,
    /// It is told more from this time on.
    settle_after: Instant,
}

/// Between two words of what a source may forget: everything is flushed before.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// What a round found to do.
enum Round {
    Moved,
    Idle,
}

impl Follower {
    /// A sync of the writer's store from `source`.
    #[must_use]
    pub fn new(
        source: Arc<dyn BlockSource>,
        writer: Writer,
        status: Arc<ChainStatus>,
        rules: ChainRules,
        options: FollowOptions,
    ) -> Self {
        Self {
            source,
            store: Arc::clone(writer.store()),
            hand: Hand::new(writer),
            status,
            rules,
            patience: Patience::new(options.contradiction_wait),
            options,
            settled: None,
            settle_after: clock::now(),
        }
    }

    /// Stores blocks that are final and come with the chain itself (block 0 of a genesis file).
    ///
    /// # Errors
    ///
    /// When the store fails.
    pub async fn begin_with(&mut self, bundle: Bundle, shutdown: &mut Shutdown) -> Result<(), SyncError> {
        let final_blocks = FinalBlocks::Named(bundle.block.number(), bundle.block.hash);
        let source = futures_util::stream::iter([Ok(bundle)]);
        self.store_all(source, final_blocks, None, shutdown).await
    }

    /// Runs until the end is asked for or something happens that waiting cannot mend. What may pass is waited out, with
    /// growing waits, and said in the status.
    ///
    /// # Errors
    ///
    /// What ended it.
    pub async fn run(mut self, mut shutdown: Shutdown) -> Result<(), SyncError> {
        let mut wait = WAIT_FIRST;
        let source = Arc::clone(&self.source);
        let result = loop {
            if shutdown.is_fired() {
                break Ok(());
            }
            let next_before = self.store.view().checkpoint().next_block;
            // Begun before the look: what happens meanwhile is news.
            let news = source.changed();
            let round = Box::pin(self.round(&mut shutdown)).await;
            let (round, idle) = match (round, self.settle().await) {
                (Ok(round), Ok(idle)) => (Ok(round), idle),
                (Err(error), _) | (Ok(_), Err(error)) => (Err(error), IDLE_MAX),
            };
            if round.is_ok() {
                self.status.has_room();
            }
            let pause = async {
                match round {
                    Ok(Round::Moved) => wait = WAIT_FIRST,
                    Ok(Round::Idle) => {
                        wait = WAIT_FIRST;
                        if let Ok(Err(error)) = tokio::time::timeout(idle, news).await {
                            SyncError::from(error).tell_wait(SYNC_WAITS, &self.status);
                            tokio::time::sleep(WAIT_FIRST).await;
                        }
                    }
                    Err(error) => {
                        if self.store.view().checkpoint().next_block != next_before {
                            wait = WAIT_FIRST;
                        }
                        let Some(pause) = self.patience.pause(&error, wait, SYNC_WAITS, &self.status) else {
                            return Err(error);
                        };
                        tokio::time::sleep(pause).await;
                        wait = (wait * 2).min(WAIT_MAX);
                    }
                }
                Ok(())
            };
            match shutdown.unless(pause).await {
                None => break Ok(()),
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    error.tell_end(&self.status);
                    break Err(error);
                }
            }
        };
        self.hand.end(result).await
    }

    /// One look at the source, and all the work that it shows.
    async fn round(&mut self, shutdown: &mut Shutdown) -> Result<Round, SyncError> {
        let source = Arc::clone(&self.source);
        let Some(head) = shutdown.unless(source.head()).await else {
            return Ok(Round::Idle);
        };
        let head = head?;
        self.status.set_node_up(true);
        let Some(head) = head else {
            self.status
                .set_message("waiting for the first block of the source");
            return Ok(Round::Idle);
        };
        self.status.set_node_head(head.number);
        let view = self.store.view();
        let identity = self.store.identity();
        // A source of another chain, which waiting does not mend.
        if view.head().is_none() && identity.genesis_hash != [0; 32] {
            let asked = shutdown.unless(source.hash(0)).await;
            if let Some(Some(found)) = asked.transpose()? {
                self.store.check_chain(identity.chain_id, found)?;
            }
        }
        let theirs = |number| {
            let source = &source;
            async move { Ok(source.hash(number).await?) }
        };
        let Some(relation) = shutdown.unless(relate(&view, head.number, theirs)).await else {
            return Ok(Round::Idle);
        };
        let relation = relation?;
        match relation {
            Relation::Parted { fork, depth } => {
                let next = fork.map_or(view.first_block(), |fork| fork + 1);
                drop(view);
                tracing::warn!(depth, next, "the source's chain left ours: unwinding");
                self.hand.with(move |writer| Ok(writer.unwind(next)?)).await?;
                self.status.unwound(depth);
                self.patience.is_agreed(&self.status);
                return Ok(Round::Moved);
            }
            Relation::Behind { .. } | Relation::Lacks(_) => {
                if relation == (Relation::Behind { is_ours: true }) {
                    self.status.set_contradicted(false);
                }
                self.status.set_message(relation.waits_for("source"));
                return Ok(Round::Idle);
            }
            Relation::Ahead => {}
        }
        self.patience.is_agreed(&self.status);
        if view.checkpoint().next_block == 1 && allocation::is_missing(&view, &self.rules.nonces) {
            let rules = self.rules.nonces.clone();
            self.hand
                .with(move |writer| allocation::add(writer, &rules))
                .await?;
            return Ok(Round::Moved);
        }
        let finality = match shutdown.unless(self.finality(head, &view, theirs)).await {
            Some(finality) => finality?,
            None => return Ok(Round::Idle),
        };
        if let Some(number) = finality.stored.filter(|&number| view.finalized() < Some(number)) {
            self.hand.with(move |writer| Ok(writer.finalize(number)?)).await?;
        }
        let Some((next, last)) = finality.wanted(&view, None, "source", &self.status) else {
            return Ok(Round::Idle);
        };
        let final_blocks = finality.coming_among(next, last);
        let named = finality.named_by_next(&view, next, last);
        // A snapshot that is kept for a whole backfill keeps what it sees from being written over.
        drop(view);
        let bundles = self.bundles(next, last);
        let asked = Arc::clone(&source);
        let word: Word = Box::new(move |number| Box::pin(their_hash(Arc::clone(&asked), number)));
        self.store_all(bundles, final_blocks, Some(word), shutdown)
            .await?;
        let came = self.store.view().checkpoint().next_block;
        if let Some(named) = named.filter(|_| next < came) {
            // Once more, as of a batch.
            let theirs = |number| their_hash(Arc::clone(&source), number);
            self.hand.finalize_if_there(named, 1, theirs, shutdown).await?;
        }
        Ok(Round::Moved)
    }

    /// What is final, by the source's word as far as it is borne out, or by depth.
    async fn finality<F>(
        &self,
        head: SourceHead,
        view: &View,
        theirs: impl Fn(u64) -> F,
    ) -> Result<Finality, SyncError>
    where
        F: Future<Output = Result<Option<B256>, SyncError>>,
    {
        let named = head.finalized.map(|number| Named { number, hash: None });
        let depth = match named {
            Some(_) => UNFINAL_BLOCKS_MAX,
            None => self.options.finality_depth.min(UNFINAL_BLOCKS_MAX),
        };
        let finality = judge(view, head.number, named, depth, theirs).await?;
        if let Some(number) = finality.stored {
            self.status.set_finalized(number);
        }
        Ok(finality)
    }

    /// Tells the source what it may forget: final blocks that no crash takes off the store. Answers how long the next
    /// look may wait.
    async fn settle(&mut self) -> Result<Duration, SyncError> {
        let finalized = self.store.view().finalized();
        let Some(number) = finalized.filter(|&number| self.settled.is_none_or(|told| told < number)) else {
            return Ok(IDLE_MAX);
        };
        let wait = self.settle_after.saturating_duration_since(clock::now());
        if !wait.is_zero() {
            return Ok(wait);
        }
        self.hand.with(|writer| Ok(writer.settle()?)).await?;
        self.settle_after = clock::now() + SETTLE_PAUSE;
        self.settled = Some(number);
        self.source.settled(number);
        Ok(IDLE_MAX)
    }

    async fn store_all(
        &mut self,
        bundles: impl Source,
        final_blocks: FinalBlocks,
        word: Option<Word>,
        shutdown: &mut Shutdown,
    ) -> Result<(), SyncError> {
        let pipeline = Pipeline {
            rules: self.rules.clone(),
            final_blocks,
            batch_bytes_max: self.options.batch_bytes_max,
        };
        let run = |writer| pipeline.run_by(writer, bundles, word, shutdown);
        self.hand.lend(run).await
    }

    /// Verified bundles of the source in order, several in flight.
    fn bundles(&self, first: u64, last: u64) -> impl Source + use<> {
        let (source, rules) = (Arc::clone(&self.source), self.rules.verify);
        let (status, runtime) = (Arc::clone(&self.status), Handle::current());
        Box::pin(
            futures_util::stream::iter(first..=last)
                .map(move |number| {
                    // The source may let few be asked at the same time: they get on also while nobody takes them.
                    let fetched = tasks::on(&runtime, fetch(Arc::clone(&source), number, rules));
                    async move { fetched.await.ok_or(SyncError::SourcePanicked)? }
                })
                .buffered(self.options.window.max(1))
                .inspect(move |fetched| {
                    if fetched.is_ok() {
                        status.went_on();
                    }
                }),
        )
    }
}

/// The hash of a block that the source has given.
async fn their_hash(source: Arc<dyn BlockSource>, number: u64) -> Result<B256, SyncError> {
    let hash = source.hash(number).await?;
    Ok(hash.ok_or_else(|| SourceError::new(format_args!("block {number} was given and is not there")))?)
}

/// One block of the source, verified off the async threads.
async fn fetch(source: Arc<dyn BlockSource>, number: u64, rules: Rules) -> Result<Bundle, SyncError> {
    let bundle = source.bundle(number).await?;
    let bundle =
        bundle.ok_or_else(|| SourceError::new(format_args!("block {number} was named and is not there")))?;
    let found = bundle.block.number();
    if found != number {
        let text = format_args!("asked for block {number}, got block {found}");
        return Err(SourceError::new(text).into());
    }
    verified(number, bundle, rules).await
}
