//! One chain's sync: learn where the node is, unwind what it left, fetch what is missing, wait for more.

use std::sync::Arc;
use std::time::Duration;

use super::allocation;
use super::error::{FILL_WAITS, SYNC_WAITS, SyncError};
use super::fetch::Fetch;
use super::fill::{Filling, fill, tell_fill};
use super::finality::{Finality, Named};
use super::hand::Hand;
use super::offers::Offers;
use super::openings::Openings;
use super::origin::{Origin, asks_which_chain};
use super::patience::Patience;
use super::pipeline::Source;
use super::reorg::{Relation, relate, theirs};
use super::rules::ChainRules;
use super::side::Side;
use super::stuck::{CALLS_AFTER, Stuck, is_old};
use crate::model::B256;
use crate::node::{BlockId, BlockTag, Capabilities, Node, NodeError};
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Store, View, Writer};

/// How a chain is synced.
#[derive(Clone, Debug)]
pub struct SyncOptions {
    /// Stop after this block (`quarry sync --to`); follow the tip without it.
    pub stop_at: Option<u64>,
    /// Blocks below the last stored one that count as final where the node names no `finalized` block.
    pub finality_depth: u64,
    /// How long a node may contradict what is final, or be of another chain, before the sync stops.
    pub contradiction_wait: Duration,
    /// Bytes of a backfill batch.
    pub batch_bytes_max: usize,
    /// Blocks fetched at the same time.
    pub window: usize,
}

/// First wait after a failure; it doubles up to [`WAIT_MAX`] while nothing gets better.
pub(super) const WAIT_FIRST: Duration = Duration::from_millis(500);
/// Short enough that a node that comes back is noticed within seconds: asking a dead one costs nothing.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(5);
/// The head is looked at after this long even when nobody announced one.
pub(super) const IDLE_MAX: Duration = Duration::from_secs(5);
/// The same where the node is behind what it showed before, which passes in a moment.
const BEHIND_MAX: Duration = Duration::from_secs(1);

/// The sync of one chain.
#[derive(Debug)]
pub struct Engine {
    node: Node,
    offers: Offers,
    origin: Origin,
    side: Side,
    options: SyncOptions,
    stuck: Stuck,
    filling: Filling,
    /// What the node named as final last and does not have.
    unbelieved: Option<B256>,
}

/// What one round found to do.
enum Round {
    /// Blocks were committed, or taken off.
    Moved,
    /// The node has nothing new.
    Idle,
    /// The node is behind the store, or behind itself, or does not tell what it must have.
    Behind,
    /// `stop_at` is reached.
    Done,
}

impl Engine {
    /// A sync of `store` from `node`, whose capabilities were probed.
    #[must_use]
    pub fn new(
        node: Node,
        capabilities: Capabilities,
        writer: Writer,
        status: Arc<ChainStatus>,
        rules: ChainRules,
        options: SyncOptions,
    ) -> Self {
        Self {
            offers: Offers::new(&node, capabilities),
            origin: Origin::new(node.clone(), Arc::clone(writer.store())),
            node,
            side: Side {
                giver: "node",
                store: Arc::clone(writer.store()),
                hand: Hand::new(writer),
                status,
                rules,
                patience: Patience::new(options.contradiction_wait),
                finality_depth: options.finality_depth,
                batch_bytes_max: options.batch_bytes_max,
            },
            stuck: Stuck::new(CALLS_AFTER),
            filling: Filling::new(),
            options,
            unbelieved: None,
        }
    }

    /// Runs until the end is asked for, `stop_at` is reached, or something happens that waiting cannot
    /// mend. Everything that may pass is waited out, with growing waits, and said in the status.
    pub async fn run(mut self, mut shutdown: Shutdown) -> Result<(), SyncError> {
        let mut heads = self.node.heads();
        let mut announced = 0;
        let mut wait = WAIT_FIRST;
        let result = loop {
            if shutdown.is_fired() {
                break Ok(());
            }
            let next_before = self.side.next_block();
            let round = self.round(&mut shutdown).await;
            // What was written without the log is brought to disk where nothing follows it: a crash would take off what was
            // served as final. Who asked for an end has it then, and bulk mode its own.
            let rests = match &round {
                Ok(Round::Moved) => false,
                Ok(_) => true,
                Err(_) => WAIT_MAX <= wait && self.side.next_block() == next_before,
            };
            let round = match rests {
                true => {
                    let settled = self.side.hand.with(|writer| Ok(writer.settle()?)).await;
                    round.and_then(|round| settled.map(|()| round))
                }
                false => round,
            };
            if round.is_ok() {
                self.side.status.has_room();
            }
            match round {
                Ok(Round::Done) => break Ok(()),
                Ok(Round::Moved) => {
                    wait = WAIT_FIRST;
                    self.went_on();
                }
                Ok(round @ (Round::Idle | Round::Behind)) => {
                    wait = WAIT_FIRST;
                    // A head may be announced by one node and asked for at another that lags.
                    let behind = matches!(round, Round::Behind) || self.side.next_block() <= announced;
                    let span = if behind { BEHIND_MAX } else { IDLE_MAX };
                    let head = async {
                        match heads.next().await {
                            Some(head) => head.number,
                            // Nobody announces heads any more.
                            None => std::future::pending().await,
                        }
                    };
                    let news = async {
                        tokio::select! {
                            head = head => announced = head,
                            () = self.filling.first_look.ended() => {}
                        }
                    };
                    if shutdown.unless(tokio::time::timeout(span, news)).await.is_none() {
                        break Ok(());
                    }
                }
                Err(error) => {
                    if self.side.next_block() != next_before {
                        wait = WAIT_FIRST;
                        self.went_on();
                    }
                    self.offers.hear(&error);
                    // Who answers next may be another one.
                    self.origin.forget();
                    let error = self.explained(error);
                    let waiting = if self.filling.is_under_way {
                        FILL_WAITS
                    } else {
                        SYNC_WAITS
                    };
                    let Some(pause) = self.side.pause(&error, wait, waiting) else {
                        error.tell_end(&self.side.status);
                        break Err(error);
                    };
                    if shutdown.unless(tokio::time::sleep(pause)).await.is_none() {
                        break Ok(());
                    }
                    wait = (wait * 2).min(self.stuck.wait_max());
                }
            }
        };
        self.side.hand.end(result).await
    }

    /// Hears of a failure, and says what it means.
    fn explained(&mut self, error: SyncError) -> SyncError {
        let (known, head) = (self.offers.known(), self.side.status.node_head());
        let takes_genesis = allocation::may_be_added(&self.side.store.view());
        let stuck = match self.filling.is_under_way {
            true => self.filling.hear(&error, known, self.node.config().probe_pause),
            false => {
                self.stuck.hear(&error);
                &self.stuck
            }
        };
        stuck.explained(error, head, known, takes_genesis)
    }

    /// Blocks came: what failed before is over.
    fn went_on(&mut self) {
        self.offers.went_on();
        self.stuck.went_on();
    }

    /// One look at the node, and all the work that it shows.
    async fn round(&mut self, shutdown: &mut Shutdown) -> Result<Round, SyncError> {
        self.filling.is_under_way = false;
        let Some(head) = shutdown.unless(self.node.head()).await.transpose()? else {
            return Ok(Round::Done);
        };
        self.side.status.set_node_up(true);
        let view = self.side.store.view();
        let next = view.checkpoint().next_block;
        // No stored block tells that it is the same node as was asked for its chain: its block 0 must.
        let is_asked = view.head().is_none() || self.origin.is_due(next, head);
        let Some(relation) = self.compare(&view, head, is_asked, shutdown).await? else {
            return Ok(Round::Done);
        };
        if let Some(round) = self.react(relation, next, head).await? {
            return Ok(round);
        }
        self.offers.look(&self.node, &self.side.store)?;
        if is_asked {
            self.origin.agrees(next);
        }
        self.side.is_agreed();
        if next == 1 && self.side.add_allocation(&view).await? {
            return Ok(Round::Moved);
        }
        if let Some(ways) = self.filling.ways(&view, &self.node, self.offers.known())? {
            drop(view);
            return self.fill(ways, shutdown).await;
        }
        let Some(finality) = self.move_finality(&view, head, shutdown).await? else {
            return Ok(Round::Done);
        };
        if self.is_at_stop(next) {
            return self.end(&view, finality, shutdown).await;
        }
        self.fetch(view, finality, shutdown).await
    }

    /// How the node's chain and ours stand to each other; `None` where the end is asked for. Which chain the node is of is asked beside it
    /// where `is_asked`, and after it where it is a reason to.
    async fn compare(
        &self,
        view: &View,
        head: u64,
        is_asked: bool,
        shutdown: &mut Shutdown,
    ) -> Result<Option<Relation>, SyncError> {
        let theirs = |number| theirs(&self.node, number, head);
        // Beside the other question: it takes no time of its own.
        let same = async {
            match is_asked {
                true => self.origin.ask(view.head().is_none()).await,
                false => Ok(()),
            }
        };
        let told = async { tokio::join!(relate(view, head, theirs), same) };
        let Some((relation, same)) = shutdown.unless(told).await else {
            return Ok(None);
        };
        same?;
        if let Some(deep) = asks_which_chain(&relation) {
            let same = shutdown.unless(self.origin.ask(deep)).await;
            if same.transpose()?.is_none() {
                return Ok(None);
            }
        }
        // Not before: that of another chain is no head of ours. How old a block is that it does not tell is known by it.
        if !relation.as_ref().is_err_and(SyncError::contradicts) {
            self.side.status.set_node_head(head);
        }
        relation.map(Some)
    }

    /// What this round does where the node has left our chain, or does not have our head; `None` where it has it.
    async fn react(&mut self, relation: Relation, next: u64, head: u64) -> Result<Option<Round>, SyncError> {
        Ok(Some(match relation {
            Relation::Ahead => return Ok(None),
            Relation::Parted { fork, depth } => {
                let next = self.side.first_after(fork);
                tracing::warn!(depth, next, "the node's chain left ours: unwinding");
                self.origin.forget();
                self.side.unwind(next, depth).await?;
                Round::Moved
            }
            _ if self.is_at_stop(next) => Round::Done,
            // No second node lags so far behind.
            Relation::Lacks(block) if is_old(block, head) => {
                let source = NodeError::null_block("eth_getBlockByNumber", block);
                return Err(SyncError::Node { block, source });
            }
            Relation::Behind { .. } | Relation::Lacks(_) => {
                self.side.wait_for(relation);
                Round::Behind
            }
        }))
    }

    /// Whether all blocks up to `stop_at` are stored.
    fn is_at_stop(&self, next: u64) -> bool {
        self.options.stop_at.is_some_and(|stop| next > stop)
    }

    /// Moves finality as far as the node bears it out; `None` where the end is asked for.
    async fn move_finality(
        &mut self,
        view: &View,
        head: u64,
        shutdown: &mut Shutdown,
    ) -> Result<Option<Finality>, SyncError> {
        let judged = shutdown.unless(self.finality(head, view)).await;
        let Some(finality) = judged.transpose()? else {
            return Ok(None);
        };
        if let Some(number) = finality.newly(view) {
            // What is final by depth was shown before, as a rule. The node's own word of it counts if it is of the chain by now.
            if self.offers.known().finalized_tag || !self.origin.has_shown(number) {
                let same = shutdown.unless(self.origin.ask(false)).await;
                if same.transpose()?.is_none() {
                    return Ok(None);
                }
                self.origin.agrees(view.checkpoint().next_block);
            }
            self.side.finalize(number).await?;
        }
        Ok(Some(finality))
    }

    /// What is final; also keeps `safe` in the status.
    async fn finality(&mut self, head: u64, view: &View) -> Result<Finality, SyncError> {
        if self.offers.known().safe_tag
            && let Some(safe) = self.node.tagged(BlockTag::Safe).await?
            && view.block_number(&safe.hash)? == Some(safe.number)
        {
            self.side.status.set_safe(safe.number);
        }
        let tells = self.offers.known().finalized_tag;
        let named = match tells {
            true => self.node.tagged(BlockTag::Finalized).await?,
            false => None,
        };
        let named = named.map(|BlockId { number, hash, .. }| Named {
            number,
            hash: Some(hash),
        });
        let theirs = |number| theirs(&self.node, number, head);
        let finality = self.side.judge(view, head, (tells, named), theirs).await?;
        if let Some(named) = finality.unbelieved
            && self.unbelieved != Some(named)
        {
            tracing::warn!(%named, "the node names a final block that it does not have itself: nothing is final by that");
        }
        self.unbelieved = finality.unbelieved;
        Ok(finality)
    }

    /// Ends the sync where all blocks up to `stop_at` are stored and nothing is waited for.
    async fn end(
        &mut self,
        view: &View,
        finality: Finality,
        shutdown: &mut Shutdown,
    ) -> Result<Round, SyncError> {
        if self.filling.first_look.is_pending() {
            return Ok(Round::Idle);
        }
        // Nothing comes any more that could name the last block.
        let last = finality.coming.and_then(|_| view.head());
        if let Some(last) = last.filter(|last| view.finalized() < Some(last.number)) {
            let theirs = |number| self.origin.hash(number);
            self.side
                .hand
                .finalize_if_there(last, 2, theirs, shutdown)
                .await?;
        }
        Ok(Round::Done)
    }

    /// Fetches the blocks behind our head.
    async fn fetch(
        &mut self,
        view: Arc<View>,
        finality: Finality,
        shutdown: &mut Shutdown,
    ) -> Result<Round, SyncError> {
        let Some((next, last)) = self.side.wanted(&finality, &view, self.options.stop_at) else {
            return Ok(Round::Idle);
        };
        let last = match () {
            () if self.stuck.is_alone() => next,
            // What comes meanwhile may have to come again.
            () if self.filling.first_look.is_pending() => last.min(next + self.options.window as u64),
            () => last,
        };
        let piece = finality.piece(&view, next, last);
        // A snapshot that is kept for a whole backfill keeps what it sees from being written over.
        drop(view);
        let bundles = self.bundles(piece.first, piece.last, self.stuck.ways(self.offers.known()));
        let word = self.origin.word();
        self.side.take(piece, bundles, word, shutdown).await?;
        Ok(Round::Moved)
    }

    /// Goes on with filling in traces.
    async fn fill(&mut self, ways: Arc<Capabilities>, shutdown: &mut Shutdown) -> Result<Round, SyncError> {
        let next_traced = |store: &Store| store.view().checkpoint().next_traced;
        let before = next_traced(&self.side.store);
        let filled = self.fill_traces(ways, shutdown).await;
        if before < next_traced(&self.side.store) {
            self.filling.stuck.went_on();
        }
        filled?;
        if !self.side.store.view().has_traces() {
            // The rest comes next: what was taken off must not come without traces again.
            self.filling.first_look.stands();
        }
        Ok(Round::Moved)
    }

    /// Fetches the frames of blocks that were stored while the node had no traces.
    async fn fill_traces(
        &mut self,
        ways: Arc<Capabilities>,
        shutdown: &mut Shutdown,
    ) -> Result<(), SyncError> {
        let view = self.side.store.view();
        let final_to = view
            .finalized()
            .map_or(view.first_block(), |finalized| finalized + 1);
        let first = view.checkpoint().next_traced;
        if view.checkpoint().next_block > final_to {
            // Blocks that may still be unwound are taken off and come again with their frames.
            let then = match first < final_to {
                true => "the head stands still until the traces of all before them are there",
                false => "they come again with their traces",
            };
            tracing::info!(from = final_to, "blocks that are not final are taken off, {then}");
            tell_fill(&self.side.status, first, final_to);
            self.origin.forget();
            return self
                .side
                .hand
                .with(move |writer| Ok(writer.unwind(final_to)?))
                .await;
        }
        self.side.add_allocation(&view).await?;
        tell_fill(&self.side.status, first, final_to);
        let last = final_to.saturating_sub(1);
        let fetched_to = if self.filling.stuck.is_alone() {
            first
        } else {
            last
        };
        let source = self.bundles(first, fetched_to, ways);
        let (rules, bytes_max) = (self.side.rules.nonces.clone(), self.side.batch_bytes_max);
        let status = Arc::clone(&self.side.status);
        let filled_to = move |next| tell_fill(&status, next, final_to);
        let fill = |writer| fill(writer, source, (rules, bytes_max), filled_to, shutdown);
        self.side.hand.lend(fill).await
    }

    fn bundles(&self, first: u64, last: u64, ways: Arc<Capabilities>) -> impl Source + use<> {
        let Side {
            store, status, rules, ..
        } = &self.side;
        let native = &rules.nonces.native;
        let fetch = Fetch {
            node: self.node.clone(),
            ways,
            rules: rules.verify,
            native: native.clone(),
            openings: Openings::wanted(&self.node, store, native),
            status: Arc::clone(status),
        };
        fetch.bundles(first, last, self.options.window)
    }
}
