//! Asking the node what blocks do not tell, and comparing ledgers with it.
//!
//! One [`Enquirer`] runs beside each chain's sync. It asks every token for its name, symbol and decimals once (again where the block of that is orphaned),
//! compares what the ledger says of tokens with what their contracts say (a *verdict*), again as they move and
//! slowly all others, and keeps the balances of those that events do not explain. All of it goes into the side
//! store; none of it is needed for the chain's own store. The ledger of native balances is compared too. It asks at a bounded rate, a few questions at a time, and
//! waits longer and longer while the node fails.

mod asking;
mod feeds;
mod job;
mod judge;
mod left_over;
mod look;
mod metadata;
mod moved;
mod native;
mod perform;
mod queue;
mod rate;
mod recent;
mod refresh;
mod samples;
mod sweep;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::clock;
use crate::model::Address;
use crate::node::Node;
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Observed, Store};
use crate::tasks;

use asking::Hashes;
use job::Ended;
use left_over::LeftOver;
use look::Looker;
use queue::Queue;
use rate::Rate;
use recent::Recent;
use samples::Samples;
use sweep::Swept;

/// How hard the node is leant on.
#[derive(Clone, Copy, Debug)]
pub struct EnquiryOptions {
    /// Questions a second (`--token-checks`). Those about holders that a block just touched may come beside them, up to ten times as many.
    pub per_second: u32,
    /// Jobs at one time. Each has one question in flight, of holders that a block just touched a few.
    pub jobs_max: usize,
    /// How often new blocks are looked for.
    pub tick: Duration,
    /// A token that keeps moving is compared again after this long.
    pub recheck_after: Duration,
    /// A token that does not move is compared again after so many blocks.
    pub recheck_blocks: u64,
    /// What showed a token not to be exact is looked at again after so many blocks, then after four times as many, and so on.
    pub retry_blocks: u64,
    /// The pause between two rounds over all tokens, and between two over all holders of a token that is not exact.
    pub round_pause: Duration,
}

impl EnquiryOptions {
    /// Sensible ones for so many questions a second.
    #[must_use]
    pub const fn new(per_second: u32) -> Self {
        Self {
            per_second,
            jobs_max: 4,
            tick: Duration::from_millis(250),
            recheck_after: Duration::from_secs(15),
            recheck_blocks: 50_000,
            retry_blocks: 50,
            round_pause: Duration::from_secs(600),
        }
    }
}

/// First wait after the node failed; it doubles up to [`WAIT_MAX`].
const WAIT_FIRST: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// What jobs work with.
#[derive(Debug)]
struct Tools {
    node: Node,
    store: Arc<Store>,
    observed: Arc<Observed>,
    status: Arc<ChainStatus>,
    rate: Rate,
    hashes: Hashes,
    /// The node has no states of blocks that the index reaches while it is far behind.
    is_pruned: AtomicBool,
    /// Tokens asked for their names, by block.
    described: Recent,
    /// Tokens that were compared, by block.
    judged: Recent,
    /// Tokens that are not exact, asked for balances and supply, by block.
    valued: Recent,
    /// Such tokens whose holders were held against the ledger's.
    swept: Swept,
    /// What such tokens said of some of their holders.
    samples: Samples,
    /// Tokens that could not be compared.
    left_over: LeftOver,
}

/// Finds out about the tokens of one chain.
#[derive(Debug)]
pub struct Enquirer {
    tools: Arc<Tools>,
    options: EnquiryOptions,
    /// Contracts that are configured as price feeds.
    feeds: Vec<Address>,
}

impl Enquirer {
    /// An enquirer about the chain of `store`, which keeps what it learns in `observed`.
    #[must_use]
    pub fn new(
        node: Node,
        store: Arc<Store>,
        observed: Arc<Observed>,
        status: Arc<ChainStatus>,
        options: EnquiryOptions,
    ) -> Self {
        let rate = Rate::new(options.per_second);
        Self {
            tools: Arc::new(Tools {
                node,
                store,
                observed,
                status,
                rate,
                hashes: Hashes::default(),
                is_pruned: AtomicBool::default(),
                described: Recent::default(),
                judged: Recent::default(),
                valued: Recent::default(),
                swept: Swept::default(),
                samples: Samples::default(),
                left_over: LeftOver::default(),
            }),
            options,
            feeds: Vec::new(),
        }
    }

    /// The same, which also asks what these contracts of price feeds are.
    #[must_use]
    pub fn with_feeds(mut self, feeds: Vec<Address>) -> Self {
        self.feeds = feeds;
        self
    }

    /// Asks until the end is asked for. Nothing that a node or a token does ends it.
    pub async fn run(self, shutdown: Shutdown) {
        let feeds = feeds::run(Arc::clone(&self.tools), self.feeds.clone(), shutdown.clone());
        let native = native::run(Arc::clone(&self.tools), shutdown.clone());
        tokio::join!(self.tokens(shutdown), feeds, native);
    }

    async fn tokens(self, mut shutdown: Shutdown) {
        let Self { tools, options, .. } = self;
        let mut looker = Looker::new(options);
        let mut queue = Queue::new(options);
        let mut running = FuturesUnordered::new();
        let (mut wait, mut rest_until) = (WAIT_FIRST, clock::now());
        let mut look_at = clock::now();
        loop {
            if shutdown.is_fired() {
                return;
            }
            if look_at <= clock::now() {
                let room = queue.room();
                let at_work = Arc::clone(&tools);
                let looked = tasks::blocking(move || {
                    let news = looker.look(&at_work, room);
                    (looker, news)
                });
                let Ok((back, news)) = looked.await else {
                    tracing::error!("the enquirer of tokens died");
                    return;
                };
                look_at = clock::now() + options.tick;
                looker = back;
                match news {
                    Ok(news) => queue.take(news, &tools),
                    Err(error) => tracing::warn!(%error, "tokens cannot be looked at"),
                }
            }
            while running.len() < options.jobs_max && rest_until <= clock::now() {
                let Some(job) = queue.next() else { break };
                let tools = Arc::clone(&tools);
                // On the heap: a job's state holds several requests.
                running.push(Box::pin(async move { tools.perform(job).await }));
            }
            let pause = look_at.saturating_duration_since(clock::now());
            tokio::select! {
                () = shutdown.fired() => return,
                () = tokio::time::sleep(pause.max(Duration::from_millis(1))) => {}
                Some(ended) = running.next() => {
                    if matches!(ended, Ended::NodeFailed { .. }) {
                        rest_until = clock::now() + wait;
                        wait = (wait * 2).min(WAIT_MAX);
                    } else {
                        wait = WAIT_FIRST;
                    }
                    queue.ended(ended, &tools);
                }
            }
        }
    }
}
