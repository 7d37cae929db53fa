//! What an embedded service is made of.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::api::{Settings, Upstream};
use crate::http::{Limits, PoolLimits};
use crate::model::{B256, ChainName, StaticRewards};
use crate::sync::BlockSource;
use crate::sync::genesis::ChainGenesis;

/// What a [`super::Service`] is made of. Fields may be set; what is added later has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServiceConfig {
    /// Directory of the stores, one folder a chain, made when absent. It is laid out as `--data-dir` of the binary is,
    /// whose commands (`quarry inspect`, `quarry verify`, `quarry import prices`) work on it.
    pub data_dir: PathBuf,
    /// Bytes of blocks, indexes and filters held in memory, all chains together. 256 MiB.
    pub cache_bytes: usize,
    /// Bytes for what is not written yet, each chain: memtables and a batch. 128 MiB.
    pub write_bytes: usize,
    /// Bounds on requests and connections.
    pub limits: Limits,
    /// Threads of the look-ups and their queues.
    pub pool: PoolLimits,
    /// Choices of the operator.
    pub settings: Settings,
    pub(super) chains: Vec<ChainConfig>,
}

impl ServiceConfig {
    /// A service without chains over stores in `data_dir`.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            cache_bytes: 256 << 20,
            write_bytes: 128 << 20,
            limits: Limits {
                // What the host answers with may be made for its own runtime.
                socket_threads: 0,
                ..Limits::default()
            },
            pool: PoolLimits {
                // Half of the cache, as `quarry run` has it.
                unsent_bytes_max: 128 << 20,
                ..PoolLimits::default()
            },
            settings: Settings::default(),
            chains: Vec::new(),
        }
    }

    /// The same with this chain.
    #[must_use]
    pub fn with_chain(mut self, chain: ChainConfig) -> Self {
        self.chains.push(chain);
        self
    }
}

/// A chain of an embedded service.
#[derive(Clone)]
pub struct ChainConfig {
    pub(super) name: ChainName,
    pub(super) chain_id: u64,
    pub(super) genesis_hash: B256,
    pub(super) first_block: Option<u64>,
    pub(super) genesis: Option<Arc<ChainGenesis>>,
    pub(super) trusts_source: bool,
    pub(super) finality_depth: u64,
    pub(super) contradiction_wait: Duration,
    pub(super) window: usize,
    pub(super) static_rewards: Option<StaticRewards>,
    pub(super) source: Option<Arc<dyn BlockSource>>,
    pub(super) upstream: Option<Arc<dyn Upstream>>,
}

impl fmt::Debug for ChainConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainConfig")
            .field("name", &self.name)
            .field("chain_id", &self.chain_id)
            .field("genesis_hash", &self.genesis_hash)
            .field("first_block", &self.first_block)
            .finish_non_exhaustive()
    }
}

impl ChainConfig {
    /// The chain that requests name `name`, by its id and the hash of its block 0. A store of another chain is refused.
    #[must_use]
    pub fn new(name: ChainName, chain_id: u64, genesis_hash: B256) -> Self {
        Self {
            name,
            chain_id,
            genesis_hash,
            first_block: None,
            genesis: None,
            trusts_source: false,
            finality_depth: 64,
            contradiction_wait: Duration::from_secs(15),
            window: 16,
            static_rewards: None,
            source: None,
            upstream: None,
        }
    }

    /// The chain of a genesis file ([`crate::sync::genesis::parse`]), which tells its id and block 0 too. Block 0 is stored from it;
    /// the source need not have it.
    #[must_use]
    pub fn of_genesis(name: ChainName, genesis: ChainGenesis) -> Self {
        Self::new(name, genesis.forks.chain_id, genesis.block.hash).with_genesis(genesis)
    }

    /// The same, with forks, static rewards and what accounts hold in block 0 as a genesis file tells them. Where its block 0 has
    /// another hash than the chain's, as with development nodes, the source must have block 0.
    #[must_use]
    pub fn with_genesis(mut self, genesis: ChainGenesis) -> Self {
        self.genesis = Some(Arc::new(genesis));
        self
    }

    /// The same, fed by `source`. Without one, what is stored is served and nothing is written.
    #[must_use]
    pub fn fed_by(mut self, source: impl BlockSource) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The same, where a new store begins at this block and not at block 0. What needs the blocks before it is not answered.
    /// A store that is there goes on wherever it began, and is refused where this names another block.
    #[must_use]
    pub const fn from_block(mut self, number: u64) -> Self {
        self.first_block = Some(number);
        self
    }

    /// The same, where hashes and roots of blocks are not verified: for sources that did it, and for chains whose encoding
    /// is not Ethereum's. That blocks follow each other is checked all the same.
    #[must_use]
    pub const fn trusting_the_source(mut self) -> Self {
        self.trusts_source = true;
        self
    }

    /// The same, where so many blocks below the newest one are not final, as long as the source names no final block. 64.
    #[must_use]
    pub const fn with_finality_depth(mut self, blocks: u64) -> Self {
        self.finality_depth = blocks;
        self
    }

    /// The same, where the source may contradict what is final for so long before the sync stops. 15 seconds.
    #[must_use]
    pub const fn with_contradiction_wait(mut self, wait: Duration) -> Self {
        self.contradiction_wait = wait;
        self
    }

    /// The same, where so many blocks are asked of the source at the same time. 16.
    #[must_use]
    pub const fn with_window(mut self, blocks: usize) -> Self {
        self.window = blocks;
        self
    }

    /// The same with static block rewards, where neither genesis hash nor genesis file tell them.
    #[must_use]
    pub fn with_static_rewards(mut self, rewards: StaticRewards) -> Self {
        self.static_rewards = Some(rewards);
        self
    }

    /// The same with somebody to ask what blocks do not tell, such as the state of the embedding node. Without one, answers
    /// that need it say 502.
    #[must_use]
    pub fn with_upstream(mut self, upstream: Arc<dyn Upstream>) -> Self {
        self.upstream = Some(upstream);
        self
    }
}
