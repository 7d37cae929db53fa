//! The service inside another process: stores in a directory, blocks from that process, answers over HTTP, as a handler or
//! in typed form. `docs/EMBEDDING.md` tells the whole story.
//!
//! Nothing here sets up logging, looks at signals, the environment or arguments, ends the process or keeps state outside
//! of a [`Service`]; several may run in one process, over different directories. What happens is told to `tracing`.
//!
//! ```
//! use quarry::model::ChainName;
//! use quarry::node::recorded::RecordedChain;
//! use quarry::service::{BlockFeed, ChainConfig, Service, ServiceConfig};
//! use quarry::sync::genesis;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let data_dir = std::env::temp_dir().join(format!("quarry-doc-{}", std::process::id()));
//! let mut blocks = Vec::new();
//! for line in RecordedChain::open("demo/chain.jsonl.zst")?.take(21) {
//!     blocks.push(line?.parse()?);
//! }
//!
//! // Blocks are handed to a feed; a source of your own implements `BlockSource`.
//! let feed = BlockFeed::new(1_000);
//! let chain = ChainConfig::new(ChainName::Mainnet, 31_337, blocks[0].block.hash)
//!     .with_genesis(genesis::load("demo/genesis.json".as_ref())?)
//!     .fed_by(feed.clone());
//! let service = Service::start(ServiceConfig::new(&data_dir).with_chain(chain)).await?;
//! for block in blocks {
//!     feed.push(block).await?;
//! }
//! service.reached(ChainName::Mainnet, 20).await?;
//!
//! // In typed form.
//! let reader = service.reader(ChainName::Mainnet).ok_or("nothing is stored")?;
//! assert_eq!(reader.head().number, 20);
//!
//! // Over HTTP: `tokio::spawn(service.serve(listener))`; or without a socket.
//! let request = http::Request::get("/api/proxy?action=eth_blockNumber").body(())?;
//! assert_eq!(service.answer(request).await.status(), 200);
//!
//! service.stop().await?;
//! # let _ = std::fs::remove_dir_all(&data_dir);
//! # Ok(())
//! # }
//! ```

mod config;
mod feed;

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::chains::{Chain, Registry, Stated};
use super::pulse;
use super::supervisor::{rules_of, stated_rewards};
use crate::api::Chains as _;
use crate::app::front::front;
use crate::config::store_dir;
use crate::http::{Limits, Mount, Mounts, Outgoing, Pool};
use crate::model::{Bundle, ChainName};
use crate::query::Reader;
use crate::shutdown::{self, Shutdown, Trigger};
use crate::status::ChainStatus;
use crate::store::{Observed, OpenOptions, Store, StoreError};
use crate::sync::{FollowOptions, Follower, SyncError};

pub use crate::api::{Upstream, UpstreamError, UpstreamFuture};
pub use crate::sync::{BlockSource, SourceError, SourceFuture, SourceHead};
pub use config::{ChainConfig, ServiceConfig};
pub use feed::BlockFeed;

/// Why a service did not start, or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sync of a chain ended.
    #[error("sync of {chain} stopped: {source}")]
    Sync {
        /// The chain.
        chain: ChainName,
        /// Why.
        source: SyncError,
    },
    /// The system gave no threads.
    #[error("cannot start the threads of the service: {0}")]
    Threads(std::io::Error),
    /// What was configured does not go together.
    #[error("{0}")]
    Config(String),
    /// The sync of the chain that was waited for ended; [`Service::stop`] tells of it in typed form.
    #[error("{0}")]
    Stopped(String),
    /// A part of the service panicked.
    #[error("a worker died: {0}")]
    Died(String),
    /// The service is stopping.
    #[error("the service is stopping")]
    Stopping,
}

/// Says that a sync is over whose source panicked: nobody is left to.
struct Fence(Option<Arc<ChainStatus>>);

impl Drop for Fence {
    fn drop(&mut self) {
        if let Some(status) = self.0.as_ref().filter(|_| std::thread::panicking()) {
            status.stop(&"the source of blocks panicked");
        }
    }
}

fn died(error: &tokio::task::JoinError) -> ServiceError {
    ServiceError::Died(error.to_string())
}

/// How often [`Service::reached`] looks.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A running service: chains that are synced and answered from. Dropping it stops all of it, without waiting for the end;
/// [`Self::stop`] waits.
pub struct Service {
    chains: Arc<Registry>,
    mount: Mount<Mounts>,
    front: Arc<Mounts>,
    limits: Limits,
    syncs: JoinSet<Result<(), ServiceError>>,
    pulses: JoinSet<()>,
    trigger: Trigger,
    shutdown: Shutdown,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("chains", &self.chains)
            .finish_non_exhaustive()
    }
}

impl Service {
    /// Opens or makes the stores and begins to follow the sources. Must be called within a tokio runtime, which the syncs
    /// and the servers run on; look-ups have threads of their own.
    ///
    /// # Errors
    ///
    /// When a store cannot be opened, is of another chain, or is being written by another process.
    pub async fn start(config: ServiceConfig) -> Result<Self, ServiceError> {
        let (trigger, shutdown) = shutdown::pair();
        let mut chains = Vec::<Arc<Chain>>::new();
        let (mut syncs, mut pulses) = (JoinSet::new(), JoinSet::new());
        for wanted in &config.chains {
            if chains.iter().any(|chain| chain.name == wanted.name) {
                let text = format!("chain {} is configured twice", wanted.name);
                return Err(ServiceError::Config(text));
            }
            let (chain, follower) = open(&config, wanted.clone(), &shutdown).await?;
            if let Some(follower) = follower {
                pulses.spawn(pulse::keep(Arc::clone(&chain), shutdown.clone()));
                let (name, shutdown) = (wanted.name, shutdown.clone());
                let fence = Fence(chain.status.clone());
                syncs.spawn(async move {
                    let _fence = fence;
                    let ended = Box::pin(follower.run(shutdown)).await;
                    ended.map_err(|source| {
                        tracing::error!(chain = %name, %source, "sync stopped; what is stored is still served");
                        ServiceError::Sync { chain: name, source }
                    })
                });
            }
            chains.push(chain);
        }
        let pool = Pool::new(config.pool).map_err(ServiceError::Threads)?;
        let chains = Arc::new(Registry::new(chains));
        let front = Arc::new(front(
            Arc::clone(&chains) as Arc<dyn crate::api::Chains>,
            pool,
            config.settings,
        ));
        Ok(Self {
            mount: Mount::new(Arc::clone(&front), config.limits.clone()),
            chains,
            front,
            limits: config.limits,
            syncs,
            pulses,
            trigger,
            shutdown,
        })
    }

    /// A snapshot of a chain for typed questions; `None` while nothing of it is stored. What it reads may be on disk: ask
    /// on threads that may block. A snapshot that is kept keeps old rows on the disk.
    #[must_use]
    pub fn reader(&self, chain: ChainName) -> Option<Reader> {
        self.chains.reader(chain).filter(|reader| !reader.is_empty())
    }

    /// The block that a chain goes on with; `None` for a chain that is not configured. A source whose blocks are pushed
    /// begins with it after a restart, or before it: behind the last final block ([`Reader::finalized`]) where blocks may have
    /// been replaced meanwhile, since what is stored is compared with what the source has.
    #[must_use]
    pub fn next_block(&self, chain: ChainName) -> Option<u64> {
        let reader = self.chains.reader(chain)?;
        Some(reader.view().checkpoint().next_block)
    }

    /// What the sync of a chain is doing; `None` where it is not synced.
    #[must_use]
    pub fn status(&self, chain: ChainName) -> Option<Arc<ChainStatus>> {
        self.chains.status(chain)
    }

    /// Waits until the indexed head of a chain is block `number` or a later one.
    ///
    /// # Errors
    ///
    /// When the chain is not synced, its sync stopped, or the service is stopping.
    pub async fn reached(&self, chain: ChainName, number: u64) -> Result<(), ServiceError> {
        self.until(chain, |reader| reader.head().number >= number).await
    }

    /// Waits until a snapshot of a chain is as `is_there` says.
    ///
    /// # Errors
    ///
    /// As those of [`Self::reached`].
    pub async fn until(
        &self,
        chain: ChainName,
        mut is_there: impl FnMut(&Reader) -> bool,
    ) -> Result<(), ServiceError> {
        let status = self.status(chain);
        let status = status.ok_or_else(|| ServiceError::Config(format!("chain {chain} is not synced")))?;
        loop {
            if self.reader(chain).is_some_and(|reader| is_there(&reader)) {
                return Ok(());
            }
            if self.shutdown.is_fired() {
                return Err(ServiceError::Stopping);
            }
            if status.stopped() {
                return Err(ServiceError::Stopped(status.message()));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// All that is served (the operations, Etherscan's dialect) as a handler, for [`crate::http::serve`] or a [`Mount`].
    #[must_use]
    pub fn handler(&self) -> Arc<Mounts> {
        Arc::clone(&self.front)
    }

    /// Answers a request without a connection: for a server that this one is mounted in, and for the process itself. The body
    /// of the answer comes frame by frame (`http_body::Body`).
    pub async fn answer<B>(&self, request: http::Request<B>) -> http::Response<Outgoing> {
        self.mount.answer(request).await
    }

    /// Answers requests as [`Self::answer`] does, detached from the service: cheap to clone, for servers that own their
    /// handlers. It keeps answering from what is stored when the service has stopped.
    #[must_use]
    pub fn mount(&self) -> Mount<Mounts> {
        self.mount.clone()
    }

    /// Serves HTTP/1.1 and HTTP/2 on a listener until the service stops; answers how many connections were cut off then.
    /// Listeners may be several. Spawn it: nothing is accepted before it is polled.
    pub fn serve(&self, listener: TcpListener) -> impl Future<Output = usize> + Send + use<> {
        let (front, limits, mut shutdown) = (self.handler(), self.limits.clone(), self.shutdown.clone());
        async move { crate::http::serve(listener, front, limits, async move { shutdown.fired().await }).await }
    }

    /// Stops: listeners close, what was committed is flushed, and the stores are free to be opened again once readers,
    /// handlers and mounts that were given out are gone too. Open requests are not waited for: await what [`Self::serve`] gave
    /// for that, after this.
    ///
    /// # Errors
    ///
    /// What had stopped a sync before, where something had.
    pub async fn stop(mut self) -> Result<(), ServiceError> {
        self.trigger.fire();
        let mut outcome = Ok(());
        while let Some(ended) = self.syncs.join_next().await {
            outcome = outcome.and(ended.unwrap_or_else(|error| Err(died(&error))));
        }
        // They hold the stores.
        while self.pulses.join_next().await.is_some() {}
        outcome
    }
}

/// Opens a chain's store; where it has a source, with who follows that.
async fn open(
    config: &ServiceConfig,
    wanted: ChainConfig,
    shutdown: &Shutdown,
) -> Result<(Arc<Chain>, Option<Follower>), ServiceError> {
    let is_synced = wanted.source.is_some();
    let genesis = wanted.genesis.as_deref();
    if let Some(other) = genesis.filter(|genesis| genesis.forks.chain_id != wanted.chain_id) {
        let (id, found) = (wanted.chain_id, other.forks.chain_id);
        let text = format!("the genesis file is of chain id {found}, {} of {id}", wanted.name);
        return Err(ServiceError::Config(text));
    }
    let stated = wanted.static_rewards.clone();
    let options = OpenOptions {
        cache_bytes: config.cache_bytes / config.chains.len().max(1),
        memtable_bytes: config.write_bytes / 2,
        read_only: !is_synced,
        static_rewards: stated_rewards(stated.as_ref(), genesis),
        ..OpenOptions::new(store_dir(&config.data_dir, wanted.name))
    };
    let (chain_id, hash, first) = (wanted.chain_id, wanted.genesis_hash, wanted.first_block);
    let opened = tokio::task::spawn_blocking(move || {
        let store = if is_synced {
            Store::open_or_create(&options, chain_id, hash, first)?
        } else {
            let store = Store::open(&options)?;
            store.check_chain(chain_id, hash)?;
            store
        };
        let observed = Observed::open(store.directory(), &store.identity(), !is_synced);
        Ok::<_, StoreError>((store, observed))
    });
    let (store, observed) = opened.await.map_err(|error| died(&error))??;
    let rewards = Stated::of_rewards(stated.clone());
    let chain = Chain::embedded(wanted.name, is_synced, wanted.upstream.clone(), rewards);
    chain.set_store(Arc::clone(&store), observed);
    let (Some(source), Some(status)) = (wanted.source, chain.status.clone()) else {
        return Ok((chain, None));
    };
    let Some(mut writer) = store.writer() else {
        let text = format!("the store of {} is being written already", wanted.name);
        return Err(ServiceError::Config(text));
    };
    let told = (genesis, stated.as_ref());
    let rules = rules_of(wanted.name, &mut writer, told, wanted.trusts_source)?;
    // One that is there may begin at another block than a new one would.
    let first = store.identity().first_block;
    let options = FollowOptions {
        finality_depth: wanted.finality_depth,
        contradiction_wait: wanted.contradiction_wait,
        batch_bytes_max: config.write_bytes / 4,
        window: wanted.window,
    };
    let is_new = writer.checkpoint().next_block == 0;
    let mut follower = Follower::new(source, writer, status, rules, options);
    if let Some(genesis) = genesis.filter(|genesis| first == 0 && is_new && genesis.block.hash == hash) {
        let bundle = Bundle {
            block: genesis.block.clone(),
            receipts: Vec::new(),
            traces: Some(Vec::new()),
            openings: None,
        };
        let begun = follower.begin_with(bundle, &mut shutdown.clone()).await;
        begun.map_err(|source| ServiceError::Sync {
            chain: wanted.name,
            source,
        })?;
    }
    Ok((chain, Some(follower)))
}
