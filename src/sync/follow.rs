//! The sync of a chain whose blocks the embedding process gives: as the engine does it of a node, without what only
//! nodes need (pace, probing, filling in of traces).

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use tokio::runtime::Handle;

use super::engine::{IDLE_MAX, WAIT_FIRST, WAIT_MAX};
use super::error::{SYNC_WAITS, SyncError};
use super::finality::{FinalBlocks, Named};
use super::hand::Hand;
use super::patience::Patience;
use super::pipeline::{Source, Word, verified};
use super::reorg::{Relation, relate};
use super::rules::ChainRules;
use super::side::Side;
use super::source::{BlockSource, SourceError};
use super::verify::Rules;
use crate::clock;
use crate::model::{B256, Bundle};
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::Writer;
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
    side: Side,
    options: FollowOptions,
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
            side: Side {
                giver: "source",
                store: Arc::clone(writer.store()),
                hand: Hand::new(writer),
                status,
                rules,
                patience: Patience::new(options.contradiction_wait),
                finality_depth: options.finality_depth,
                batch_bytes_max: options.batch_bytes_max,
            },
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
        self.side.store_all(source, final_blocks, None, shutdown).await
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
            let next_before = self.side.next_block();
            // Begun before the look: what happens meanwhile is news.
            let news = source.changed();
            let round = Box::pin(self.round(&mut shutdown)).await;
            let (round, idle) = match (round, self.settle().await) {
                (Ok(round), Ok(idle)) => (Ok(round), idle),
                (Err(error), _) | (Ok(_), Err(error)) => (Err(error), IDLE_MAX),
            };
            if round.is_ok() {
                self.side.status.has_room();
            }
            let pause = async {
                match round {
                    Ok(Round::Moved) => wait = WAIT_FIRST,
                    Ok(Round::Idle) => {
                        wait = WAIT_FIRST;
                        if let Ok(Err(error)) = tokio::time::timeout(idle, news).await {
                            SyncError::from(error).tell_wait(SYNC_WAITS, &self.side.status);
                            tokio::time::sleep(WAIT_FIRST).await;
                        }
                    }
                    Err(error) => {
                        if self.side.next_block() != next_before {
                            wait = WAIT_FIRST;
                        }
                        let Some(pause) = self.side.pause(&error, wait, SYNC_WAITS) else {
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
                    error.tell_end(&self.side.status);
                    break Err(error);
                }
            }
        };
        self.side.hand.end(result).await
    }

    /// One look at the source, and all the work that it shows.
    async fn round(&mut self, shutdown: &mut Shutdown) -> Result<Round, SyncError> {
        let source = Arc::clone(&self.source);
        let Some(head) = shutdown.unless(source.head()).await.transpose()? else {
            return Ok(Round::Idle);
        };
        let status = &self.side.status;
        status.set_node_up(true);
        let Some(head) = head else {
            status.set_message("waiting for the first block of the source");
            return Ok(Round::Idle);
        };
        status.set_node_head(head.number);
        let view = self.side.store.view();
        let identity = view.identity();
        // A source of another chain, which waiting does not mend.
        if view.head().is_none() && identity.genesis_hash != [0; 32] {
            let asked = shutdown.unless(source.hash(0)).await;
            if let Some(Some(found)) = asked.transpose()? {
                self.side.store.check_chain(identity.chain_id, found)?;
            }
        }
        let theirs = |number| {
            let source = &source;
            async move { Ok(source.hash(number).await?) }
        };
        let related = shutdown.unless(relate(&view, head.number, theirs)).await;
        let Some(relation) = related.transpose()? else {
            return Ok(Round::Idle);
        };
        match relation {
            Relation::Parted { fork, depth } => {
                let next = self.side.first_after(fork);
                drop(view);
                tracing::warn!(depth, next, "the source's chain left ours: unwinding");
                self.side.unwind(next, depth).await?;
                return Ok(Round::Moved);
            }
            Relation::Behind { .. } | Relation::Lacks(_) => {
                self.side.wait_for(relation);
                return Ok(Round::Idle);
            }
            Relation::Ahead => {}
        }
        self.side.is_agreed();
        if view.checkpoint().next_block == 1 && self.side.add_allocation(&view).await? {
            return Ok(Round::Moved);
        }
        let named = head.finalized.map(|number| Named { number, hash: None });
        let named = (named.is_some(), named);
        let judged = shutdown
            .unless(self.side.judge(&view, head.number, named, theirs))
            .await;
        let Some(finality) = judged.transpose()? else {
            return Ok(Round::Idle);
        };
        if let Some(number) = finality.newly(&view) {
            self.side.finalize(number).await?;
        }
        let Some((next, last)) = self.side.wanted(&finality, &view, None) else {
            return Ok(Round::Idle);
        };
        let piece = finality.piece(&view, next, last);
        // A snapshot that is kept for a whole backfill keeps what it sees from being written over.
        drop(view);
        let bundles = self.bundles(piece.first, piece.last);
        let word: Word = Arc::new(move |number| Box::pin(their_hash(Arc::clone(&source), number)));
        self.side.take(piece, bundles, word, shutdown).await?;
        Ok(Round::Moved)
    }

    /// Tells the source what it may forget: final blocks that no crash takes off the store. Answers how long the next
    /// look may wait.
    async fn settle(&mut self) -> Result<Duration, SyncError> {
        let finalized = self.side.store.view().finalized();
        let Some(number) = finalized.filter(|&number| self.settled.is_none_or(|told| told < number)) else {
            return Ok(IDLE_MAX);
        };
        let wait = self.settle_after.saturating_duration_since(clock::now());
        if !wait.is_zero() {
            return Ok(wait);
        }
        self.side.hand.with(|writer| Ok(writer.settle()?)).await?;
        self.settle_after = clock::now() + SETTLE_PAUSE;
        self.settled = Some(number);
        self.source.settled(number);
        Ok(IDLE_MAX)
    }

    /// Verified bundles of the source in order, several in flight.
    fn bundles(&self, first: u64, last: u64) -> impl Source + use<> {
        let (source, rules) = (Arc::clone(&self.source), self.side.rules.verify);
        let (status, runtime) = (Arc::clone(&self.side.status), Handle::current());
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
