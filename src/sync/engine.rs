//! One chain's sync: learn where the node is, unwind what it left, fetch what is missing, wait for more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::allocation;
use super::error::{FILL_WAITS, SYNC_WAITS, SyncError};
use super::fetch::Fetch;
use super::fill::{FirstLook, fill};
use super::finality::{FinalBlocks, Finality, Named, judge};
use super::hand::Hand;
use super::offers::Offers;
use super::openings::Openings;
use super::origin::{Origin, asks_which_chain};
use super::patience::Patience;
use super::pipeline::{Pipeline, Source};
use super::reorg::{Relation, relate, theirs};
use super::rules::ChainRules;
use super::stuck::{CALLS_AFTER, CALLS_AFTER_FILL, Stuck, is_old};
use crate::clock;
use crate::model::{B256, UNFINAL_BLOCKS_MAX};
use crate::node::{BlockId, BlockTag, Capabilities, Node, NodeError, TraceMethod};
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

/// How long the tip is followed before traces that could not be had are asked for again: as long as two looks at what the node offers are apart.
const FILL_PAUSE_PROBES: u32 = 2;

/// The sync of one chain.
#[derive(Debug)]
pub struct Engine {
    node: Node,
    offers: Offers,
    origin: Origin,
    store: Arc<Store>,
    hand: Hand,
    status: Arc<ChainStatus>,
    rules: ChainRules,
    options: SyncOptions,
    /// Missing traces are asked for from this time on.
    fill_after: Instant,
    first_look: FirstLook,
    patience: Patience,
    stuck: Stuck,
    /// The same of a block whose traces are fetched later, between which the tip goes on.
    stuck_fill: Stuck,
    /// Whether this round fetches traces of stored blocks.
    is_filling: bool,
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
            store: Arc::clone(writer.store()),
            hand: Hand::new(writer),
            status,
            rules,
            fill_after: clock::now(),
            first_look: FirstLook::default(),
            patience: Patience::new(options.contradiction_wait),
            stuck: Stuck::new(CALLS_AFTER),
            stuck_fill: Stuck::new(CALLS_AFTER_FILL),
            is_filling: false,
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
            let next_before = self.next_block();
            let round = self.round(&mut shutdown).await;
            // What was written without the log is brought to disk where nothing follows it: a crash would take off what was
            // served as final. Who asked for an end has it then, and bulk mode its own.
            let rests = match &round {
                Ok(Round::Moved) => false,
                Ok(_) => true,
                Err(_) => WAIT_MAX <= wait && self.next_block() == next_before,
            };
            let round = match rests {
                true => {
                    let settled = self.hand.with(|writer| Ok(writer.settle()?)).await;
                    round.and_then(|round| settled.map(|()| round))
                }
                false => round,
            };
            if round.is_ok() {
                self.status.has_room();
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
                    let behind = matches!(round, Round::Behind) || self.next_block() <= announced;
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
                            () = self.first_look.ended() => {}
                        }
                    };
                    if shutdown.unless(tokio::time::timeout(span, news)).await.is_none() {
                        break Ok(());
                    }
                }
                Err(error) => {
                    if self.next_block() != next_before {
                        wait = WAIT_FIRST;
                        self.went_on();
                    }
                    self.offers.hear(&error);
                    // Who answers next may be another one.
                    self.origin.forget();
                    let error = self.explained(error);
                    let waiting = if self.is_filling { FILL_WAITS } else { SYNC_WAITS };
                    let Some(pause) = self.patience.pause(&error, wait, waiting, &self.status) else {
                        error.tell_end(&self.status);
                        break Err(error);
                    };
                    if shutdown.unless(tokio::time::sleep(pause)).await.is_none() {
                        break Ok(());
                    }
                    wait = (wait * 2).min(self.stuck.wait_max());
                }
            }
        };
        self.hand.end(result).await
    }

    /// Hears of a failure, and says what it means.
    fn explained(&mut self, error: SyncError) -> SyncError {
        let (known, head) = (self.offers.known(), self.status.node_head());
        let takes_genesis = allocation::may_be_added(&self.store.view());
        if !self.is_filling {
            self.stuck.hear(&error);
            return self.stuck.explained(error, head, known, takes_genesis);
        }
        // A node that has pruned old traces must not keep the tip waiting; another method may have the block at once.
        let is_counted = self.stuck_fill.hear(&error);
        if !(is_counted && self.stuck_fill.has_another_way(known)) {
            self.fill_after = clock::now() + FILL_PAUSE_PROBES * self.node.config().probe_pause;
        }
        self.stuck_fill.explained(error, head, known, takes_genesis)
    }

    /// Blocks came: what failed before is over.
    fn went_on(&mut self) {
        self.offers.went_on();
        self.stuck.went_on();
    }

    fn next_block(&self) -> u64 {
        self.store.view().checkpoint().next_block
    }

    /// One look at the node, and all the work that it shows.
    async fn round(&mut self, shutdown: &mut Shutdown) -> Result<Round, SyncError> {
        self.is_filling = false;
        let Some(head) = shutdown.unless(self.node.head()).await else {
            return Ok(Round::Done);
        };
        let head = head?;
        self.status.set_node_up(true);
        let view = self.store.view();
        let next = view.checkpoint().next_block;
        let node = &self.node;
        let theirs = |number| theirs(node, number, head);
        // No stored block tells that it is the same node as was asked for its chain: its block 0 must.
        let is_empty = view.head().is_none();
        let is_asked = is_empty || self.origin.is_due(next, head);
        // Beside the other question: it takes no time of its own.
        let same = async {
            match is_asked {
                true => self.origin.ask(is_empty).await,
                false => Ok(()),
            }
        };
        let told = async { tokio::join!(relate(&view, head, theirs), same) };
        let Some((relation, same)) = shutdown.unless(told).await else {
            return Ok(Round::Done);
        };
        same?;
        if let Some(deep) = asks_which_chain(&relation) {
            match shutdown.unless(self.origin.ask(deep)).await {
                Some(same) => same?,
                None => return Ok(Round::Done),
            }
        }
        // Not before: that of another chain is no head of ours. How old a block is that it does not tell is known by it.
        if !relation.as_ref().is_err_and(SyncError::contradicts) {
            self.status.set_node_head(head);
        }
        let relation = relation?;
        match relation {
            Relation::Parted { fork, depth } => {
                self.unwind(fork, depth).await?;
                self.patience.is_agreed(&self.status);
                return Ok(Round::Moved);
            }
            Relation::Ahead => {}
            _ if self.options.stop_at.is_some_and(|stop| next > stop) => return Ok(Round::Done),
            // No second node lags so far behind.
            Relation::Lacks(block) if is_old(block, head) => {
                let source = NodeError::null_block("eth_getBlockByNumber", block);
                return Err(SyncError::Node { block, source });
            }
            Relation::Behind { .. } | Relation::Lacks(_) => {
                if relation == (Relation::Behind { is_ours: true }) {
                    // What it has is ours as far as it goes: clients may ask it.
                    self.status.set_contradicted(false);
                }
                self.status.set_message(relation.waits_for("node"));
                return Ok(Round::Behind);
            }
        }
        self.offers.look(&self.node, &self.store)?;
        if is_asked {
            self.origin.agrees(next);
        }
        self.patience.is_agreed(&self.status);
        if next == 1 && allocation::is_missing(&view, &self.rules.nonces) {
            self.add_allocation().await?;
            return Ok(Round::Moved);
        }
        let may_fill = self.offers.known().traces != TraceMethod::None && self.fill_after <= clock::now();
        let ways = self.stuck_fill.ways(self.offers.known());
        if !view.has_traces()
            && may_fill
            && let Some(looked) = self.first_look.take(&view, &self.node, Arc::clone(&ways))
        {
            drop(view);
            self.is_filling = true;
            looked?;
            let next_traced = |store: &Store| store.view().checkpoint().next_traced;
            let before = next_traced(&self.store);
            let filled = self.fill_traces(ways, shutdown).await;
            if before < next_traced(&self.store) {
                self.stuck_fill.went_on();
            }
            filled?;
            if !self.store.view().has_traces() {
                // The rest comes next: what was taken off must not come without traces again.
                self.first_look.stands();
            }
            return Ok(Round::Moved);
        }
        let finality = match shutdown.unless(self.finality(head, &view)).await {
            Some(finality) => finality?,
            None => return Ok(Round::Done),
        };
        if let Some(number) = finality.stored.filter(|&number| view.finalized() < Some(number)) {
            // What is final by depth was shown before, as a rule. The node's own word of it counts if it is of the chain by now.
            if self.offers.known().finalized_tag || !self.origin.has_shown(number) {
                match shutdown.unless(self.origin.ask(false)).await {
                    Some(same) => same?,
                    None => return Ok(Round::Done),
                }
                self.origin.agrees(next);
            }
            self.hand.with(move |writer| Ok(writer.finalize(number)?)).await?;
        }
        if self.options.stop_at.is_some_and(|stop| next > stop) {
            if self.first_look.is_pending() {
                return Ok(Round::Idle);
            }
            // Nothing comes any more that could name the last block.
            let last = finality.coming.and_then(|_| view.head());
            if let Some(last) = last.filter(|last| view.finalized() < Some(last.number)) {
                let theirs = |number| self.origin.hash(number);
                self.hand.finalize_if_there(last, 2, theirs, shutdown).await?;
            }
            return Ok(Round::Done);
        }
        let Some((next, last)) = finality.wanted(&view, self.options.stop_at, "node", &self.status) else {
            return Ok(Round::Idle);
        };
        let last = match () {
            () if self.stuck.is_alone() => next,
            // What comes meanwhile may have to come again.
            () if self.first_look.is_pending() => last.min(next + self.options.window as u64),
            () => last,
        };
        let final_blocks = finality.coming_among(next, last);
        let named = finality.named_by_next(&view, next, last);
        // A snapshot that is kept for a whole backfill keeps what it sees from being written over.
        drop(view);
        self.fetch(next, last, final_blocks, shutdown).await?;
        if let Some(named) = named.filter(|_| next < self.next_block()) {
            // Once more, as of a batch: who named it may be of a branch that the others left.
            let theirs = |number| self.origin.hash(number);
            self.hand.finalize_if_there(named, 1, theirs, shutdown).await?;
        }
        Ok(Round::Moved)
    }

    /// What is final; also keeps `safe` in the status.
    async fn finality(&mut self, head: u64, view: &View) -> Result<Finality, SyncError> {
        if self.offers.known().safe_tag
            && let Some(safe) = self.node.tagged(BlockTag::Safe).await?
            && view.block_number(&safe.hash)? == Some(safe.number)
        {
            self.status.set_safe(safe.number);
        }
        let (named, depth) = if self.offers.known().finalized_tag {
            (self.node.tagged(BlockTag::Finalized).await?, UNFINAL_BLOCKS_MAX)
        } else {
            (None, self.options.finality_depth.min(UNFINAL_BLOCKS_MAX))
        };
        let named = named.map(|BlockId { number, hash, .. }| Named {
            number,
            hash: Some(hash),
        });
        let finality = judge(view, head, named, depth, |number| {
            theirs(&self.node, number, head)
        })
        .await?;
        if let Some(number) = finality.stored {
            self.status.set_finalized(number);
        }
        if let Some(named) = finality.unbelieved
            && self.unbelieved != Some(named)
        {
            tracing::warn!(%named, "the node names a final block that it does not have itself: nothing is final by that");
        }
        self.unbelieved = finality.unbelieved;
        Ok(finality)
    }

    async fn unwind(&mut self, fork: Option<u64>, depth: u64) -> Result<(), SyncError> {
        let next = fork.map_or(self.store.identity().first_block, |fork| fork + 1);
        tracing::warn!(depth, next, "the node's chain left ours: unwinding");
        self.origin.forget();
        self.hand.with(move |writer| Ok(writer.unwind(next)?)).await?;
        self.status.unwound(depth);
        Ok(())
    }

    /// Fetches the frames of blocks that were stored while the node had no traces.
    async fn fill_traces(
        &mut self,
        ways: Arc<Capabilities>,
        shutdown: &mut Shutdown,
    ) -> Result<(), SyncError> {
        let view = self.store.view();
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
            tell_fill(&self.status, first, final_to);
            self.origin.forget();
            return self.hand.with(move |writer| Ok(writer.unwind(final_to)?)).await;
        }
        if allocation::is_missing(&view, &self.rules.nonces) {
            self.add_allocation().await?;
        }
        tell_fill(&self.status, first, final_to);
        let last = final_to.saturating_sub(1);
        let fetched_to = if self.stuck_fill.is_alone() { first } else { last };
        let source = self.bundles(first, fetched_to, ways);
        let (rules, bytes_max) = (self.rules.nonces.clone(), self.options.batch_bytes_max);
        let status = Arc::clone(&self.status);
        let filled_to = move |next| tell_fill(&status, next, final_to);
        let fill = |writer| fill(writer, source, (rules, bytes_max), filled_to, shutdown);
        self.hand.lend(fill).await
    }

    async fn add_allocation(&mut self) -> Result<(), SyncError> {
        let rules = self.rules.nonces.clone();
        self.hand
            .with(move |writer| allocation::add(writer, &rules))
            .await
    }

    async fn fetch(
        &mut self,
        next: u64,
        last: u64,
        final_blocks: FinalBlocks,
        shutdown: &mut Shutdown,
    ) -> Result<(), SyncError> {
        let pipeline = Pipeline {
            rules: self.rules.clone(),
            final_blocks,
            batch_bytes_max: self.options.batch_bytes_max,
        };
        let source = self.bundles(next, last, self.stuck.ways(self.offers.known()));
        let word = self.origin.word();
        let run = |writer| pipeline.run_by(writer, source, Some(word), shutdown);
        self.hand.lend(run).await
    }

    fn bundles(&self, first: u64, last: u64, ways: Arc<Capabilities>) -> impl Source + use<> {
        let native = &self.rules.nonces.native;
        let fetch = Fetch {
            node: self.node.clone(),
            ways,
            rules: self.rules.verify,
            native: native.clone(),
            openings: Openings::wanted(&self.node, &self.store, native),
            status: Arc::clone(&self.status),
        };
        fetch.bundles(first, last, self.options.window)
    }
}

/// Says that the traces of stored blocks from `next` to before `end` are fetched, if there are any.
fn tell_fill(status: &ChainStatus, next: u64, end: u64) {
    match end.checked_sub(1).filter(|&last| next <= last) {
        Some(last) => status.fill(next, last),
        None => status.ends_filling(),
    }
}
