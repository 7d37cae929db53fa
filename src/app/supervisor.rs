//! One chain from its node's first word to the end: connect, probe, open, sync; again after trouble.

use std::sync::Arc;
use std::time::Duration;

use super::AppError;
use super::chains::Chain;
use super::files;
use super::hearing::keep_hearing;
use super::process::blocking;
use crate::cli::StoreArgs;
use crate::config::{BackfillMemory, ChainConfig, Config};
use crate::enquiry::{Enquirer, EnquiryOptions};
use crate::model::{BlockRange, ChainName, StaticRewards};
use crate::node::{Capabilities, Node, NodeConfig, NodeError};
use crate::shutdown::Shutdown;
use crate::status::ChainStatus;
use crate::store::{Observed, OpenOptions, Store, StoreError, View, Writer};
use crate::sync::genesis::{self, ChainGenesis};
use crate::sync::{ChainRules, Engine, Patience, SYNC_WAITS, SyncError, SyncOptions};
use crate::tasks;

const WAIT_FIRST: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(5);

/// How to open a chain's store.
pub(super) fn open_options(config: &Config, chain: ChainName, chains: usize) -> OpenOptions {
    let open = OpenOptions::new(config.store_dir(chain));
    OpenOptions {
        cache_bytes: config.cache_size.0.saturating_sub(config.service.kept_bytes) / chains.max(1),
        memtable_bytes: BackfillMemory::of(config.backfill_memory).memtables,
        open_tables_max: files::of_tables(open.open_tables_max, chains),
        ..open
    }
}

/// How to open each chain's store for serving it: those that are there (a directory that holds something) share the cache.
pub(super) fn open_served(config: &Config) -> [(ChainName, OpenOptions); 2] {
    let stores = ChainName::ALL.iter().filter(|&&chain| {
        let entries = std::fs::read_dir(config.store_dir(chain));
        entries.is_ok_and(|mut entries| entries.next().is_some())
    });
    let stores = stores.count();
    ChainName::ALL.map(|chain| (chain, open_options(config, chain, stores)))
}

/// Opens a chain's store for reading.
pub(super) fn open_stored(store: &StoreArgs, chain: ChainName) -> Result<Arc<Store>, AppError> {
    let mut open = open_options(&Config::of_store(store)?, chain, 1);
    open.read_only = true;
    Ok(Store::open(&open)?)
}

/// The stored blocks from `from` to `to`, where they are said; else from the first one, and to the last.
pub(super) fn stored_range(view: &View, from: Option<u64>, to: Option<u64>) -> Result<BlockRange, AppError> {
    let Some(head) = view.head() else {
        return Err(AppError::Usage("the store holds no blocks yet".to_owned()));
    };
    let (first, last) = (view.first_block(), head.number);
    let (from, to) = (from.unwrap_or(first), to.unwrap_or(last));
    BlockRange::new(from, to)
        .filter(|_| from >= first && to <= last)
        .ok_or_else(|| {
            AppError::Usage(format!(
                "blocks {from} to {to} are not a range of the stored blocks {first} to {last}"
            ))
        })
}

/// The genesis file of a chain, if it has one.
pub(super) fn load_genesis(path: Option<&std::path::Path>) -> Result<Option<ChainGenesis>, AppError> {
    Ok(path.map(genesis::load).transpose()?)
}

/// The static rewards that somebody states: the operator, else the genesis file.
pub(super) fn stated_rewards(
    stated: Option<&StaticRewards>,
    genesis: Option<&ChainGenesis>,
) -> Option<StaticRewards> {
    let by_file = || genesis.map(|genesis| StaticRewards::of_forks(&genesis.forks));
    stated.cloned().or_else(by_file)
}

/// The rules by which a store is gone on with that is being written. Rewards that are stated become its own, and those of whoever reads it,
/// where they agree with what its ledger has; the log tells where they do not.
pub(super) fn rules_of(
    name: ChainName,
    writer: &mut Writer,
    (genesis, stated): (Option<&ChainGenesis>, Option<&StaticRewards>),
    trust_node: bool,
) -> Result<ChainRules, StoreError> {
    let identity = writer.store().identity();
    let (chain_id, hash) = (identity.chain_id, identity.genesis_hash.into());
    let said = stated_rewards(stated, genesis);
    let is_stated = said.is_some() || identity.static_rewards.is_some();
    if let Some(sentence) = ChainRules::unstated(chain_id, hash, is_stated) {
        tracing::warn!(chain = %name, "{sentence}");
    }
    let rewards = match said {
        None => identity.rewards(),
        Some(said) => {
            let kept = writer.restate_rewards(said.clone())?;
            if said != kept {
                tracing::warn!(
                    chain = %name,
                    stated = %said,
                    kept = %kept,
                    "other block rewards are stated than the store was made with, and native balances go on with those: where they \
                     are wrong, fill a new --data-dir"
                );
            }
            kept
        }
    };
    let rules = ChainRules::new(chain_id, hash, genesis, identity.first_block, trust_node);
    Ok(rules.with_static_rewards(rewards))
}

/// Syncs a chain until the end is asked for, or until something happens that waiting cannot mend.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) chain: Arc<Chain>,
    pub(super) settings: ChainConfig,
    pub(super) genesis: Option<ChainGenesis>,
    pub(super) open: OpenOptions,
    pub(super) memory: BackfillMemory,
    /// Stop after this block; `Some(None)` for the node's head at the start.
    pub(super) stop_at: Option<Option<u64>>,
}

impl Supervisor {
    /// Runs; what may pass is waited out with growing waits and said in the status. Answers the block after which it was to stop, where
    /// that is known: it may have been asked to end before.
    pub(super) async fn run(self, mut shutdown: Shutdown) -> Result<Option<u64>, AppError> {
        let Some((node, capabilities, store)) = self.meet(&mut shutdown).await? else {
            return Ok(None);
        };
        // Not before it is known to be a node of this chain: what is asked of it is told as ours.
        self.chain.set_node(Some(node.clone()));
        let Some(mut writer) = store.writer() else {
            return Err(AppError::Usage("the store is being written already".to_owned()));
        };
        let told = (self.genesis.as_ref(), self.chain.static_rewards());
        let rules = rules_of(self.chain.name, &mut writer, told, self.settings.trust_node)?;
        let stop_at = self.stop_at.map(|stop| stop.unwrap_or(capabilities.head));
        let options = SyncOptions {
            stop_at,
            finality_depth: self.settings.finality_depth,
            contradiction_wait: self.contradiction_wait(),
            batch_bytes_max: self.memory.batch,
            window: self.memory.window(self.settings.rpc_concurrency),
        };
        let status = self.chain.status.clone().unwrap_or_default();
        let hearing = keep_hearing(
            node.clone(),
            Arc::clone(&store),
            Arc::clone(&status),
            shutdown.clone(),
        );
        tasks::beside(hearing);
        let enquirer = self.enquirer(&node, &store, &status);
        let enquiring = enquirer.map(|enquirer| tasks::beside(enquirer.run(shutdown.clone())));
        let engine = Engine::new(node, capabilities, writer, status, rules, options);
        let outcome = Box::pin(engine.run(shutdown.clone())).await;
        // A sync that stopped by itself leaves a store that is served, and a node to ask, unless that has another chain.
        if outcome.as_ref().is_err_and(SyncError::contradicts) {
            self.chain.set_node(None);
        }
        if let Some(enquiring) = enquiring.filter(|_| shutdown.is_fired()) {
            let _ = enquiring.await;
        }
        outcome?;
        Ok(stop_at)
    }

    /// Connects to the node and opens the store of its chain, however long the node is away; `None` when the end is asked
    /// for.
    async fn meet(
        &self,
        shutdown: &mut Shutdown,
    ) -> Result<Option<(Node, Capabilities, Arc<Store>)>, AppError> {
        let name = self.chain.name;
        let (mut wait, mut patience) = (WAIT_FIRST, Patience::new(self.contradiction_wait()));
        let status = self.chain.status.clone().unwrap_or_default();
        // A node may take a minute to be found silent: until then nobody would know why nothing happens.
        tracing::info!(chain = %name, node = self.node_config().shown_url(), "asking the node for its chain");
        status.set_message("asking the node for its chain");
        let mut met = None;
        loop {
            let meeting = Box::pin(async {
                match met.take() {
                    None => self.connect().await,
                    Some(met) => Self::meet_again(met).await,
                }
            });
            let pause = match shutdown.unless(meeting).await {
                None => return Ok(None),
                Some(Ok((node, capabilities))) => match self.store(&capabilities).await {
                    Ok(store) => {
                        status.set_node_up(true);
                        status.has_room();
                        patience.is_agreed(&status);
                        return Ok(Some((node, capabilities, store)));
                    }
                    // One node behind a balancer may be of another chain; who waits for a command is told at once.
                    Err(error) => {
                        status.set_node_up(true);
                        let error = match error {
                            AppError::Store(error) => SyncError::from(error),
                            AppError::Sync(error) => error,
                            other => return Err(other),
                        };
                        let waits = error.is_disk_full() || (self.stop_at.is_none() && error.contradicts());
                        match waits
                            .then(|| patience.pause(&error, wait, SYNC_WAITS, &status))
                            .flatten()
                        {
                            Some(pause) => {
                                met = error.is_disk_full().then_some((node, capabilities));
                                pause
                            }
                            None => {
                                error.tell_end(&status);
                                return Err(error.into());
                            }
                        }
                    }
                },
                // No waiting mends a URL, nor the id of a chain.
                Some(Err(error @ SyncError::Ask(NodeError::Url(_) | NodeError::ChainId { .. }))) => {
                    return Err(error.into());
                }
                Some(Err(error)) => {
                    tracing::warn!(chain = %name, %error, "the node does not answer, waiting");
                    status.set_message(format!("waiting for the node: {error}"));
                    let asked = match &error {
                        SyncError::Ask(error) => error.rest_asked(),
                        _ => None,
                    };
                    wait.max(asked.unwrap_or_default())
                }
            };
            if shutdown.unless(tokio::time::sleep(pause)).await.is_none() {
                return Ok(None);
            }
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    const fn contradiction_wait(&self) -> Duration {
        Duration::from_secs(self.settings.contradiction_wait)
    }

    /// Who asks about tokens while the tip is followed; nobody where the operator wants none or a sync is to end.
    fn enquirer(&self, node: &Node, store: &Arc<Store>, status: &Arc<ChainStatus>) -> Option<Enquirer> {
        let per_second = self.settings.token_checks;
        let observed = self.chain.observed()?;
        (0 < per_second && self.stop_at.is_none()).then(|| {
            Enquirer::new(
                node.clone(),
                Arc::clone(store),
                observed,
                Arc::clone(status),
                EnquiryOptions::new(per_second),
            )
            .with_feeds(self.chain.feeds())
        })
    }

    fn node_config(&self) -> NodeConfig {
        NodeConfig {
            concurrency_max: self.settings.rpc_concurrency,
            bytes_in_flight_max: self.memory.in_flight,
            ..NodeConfig::new(self.settings.rpc.clone().unwrap_or_default())
        }
    }

    async fn connect(&self) -> Result<(Node, Capabilities), SyncError> {
        let config = self.node_config();
        let shown = config.shown_url();
        let node = Node::connect(config).await?;
        let capabilities = node.probe().await?;
        let name = self.chain.name;
        // A new store is of the chain that the node says, for good: one wrong answer must not decide it.
        if self.chain.store().is_none() {
            says_the_same(&node, &capabilities).await?;
        }
        tracing::info!(
            chain = %name,
            node = shown,
            client = capabilities.client_version,
            chain_id = capabilities.chain_id,
            head = capabilities.head,
            traces = ?capabilities.traces,
            "node found"
        );
        if let Some(sentence) = capabilities.sentence() {
            tracing::warn!(chain = %name, "{sentence}");
        }
        Ok((node, capabilities))
    }

    /// A node that was met while the disk was full, and where it is now.
    async fn meet_again(
        (node, capabilities): (Node, Capabilities),
    ) -> Result<(Node, Capabilities), SyncError> {
        says_the_same(&node, &capabilities).await?;
        let head = node.head().await?;
        Ok((node, Capabilities { head, ..capabilities }))
    }

    /// The chain's store: the one that is open already, checked against the node, or a new one.
    async fn store(&self, capabilities: &Capabilities) -> Result<Arc<Store>, AppError> {
        let (chain_id, hash) = (capabilities.chain_id, capabilities.genesis_hash);
        if let Some(genesis) = &self.genesis {
            let stated = (genesis.forks.chain_id, genesis.block.hash);
            let found = match stated {
                (_, of_file) if of_file != hash => Some(format!("the block 0 {hash}")),
                (of_file, _) if of_file != chain_id => Some(format!("chain id {chain_id}")),
                _ => None,
            };
            if let Some(found) = found {
                let (chain_id, hash) = stated;
                return Err(SyncError::OtherGenesis {
                    chain_id,
                    hash,
                    found,
                }
                .into());
            }
        }
        if let Some(store) = self.chain.store() {
            store.check_chain(chain_id, hash)?;
            if !store.is_read_only() {
                let first = store.identity().first_block;
                return match self.settings.start_block {
                    Some(wanted) if wanted != first => Err(StoreError::OtherStart {
                        path: self.open.directory.clone(),
                        found: first,
                        wanted,
                    }
                    .into()),
                    _ => Ok(store),
                };
            }
            // It is served while the disk is full, and opened for writing once there is room. The node's head is heard meanwhile.
            if let Some(status) = &self.chain.status {
                status.set_node_head(capabilities.head);
            }
        }
        let (mut open, start) = (self.open.clone(), self.settings.start_block);
        // What a new store remembers, so that it is served by the rules that it is filled by.
        open.static_rewards = stated_rewards(self.chain.static_rewards(), self.genesis.as_ref());
        let opened = blocking(move || {
            let store = Store::open_or_create(&open, chain_id, hash, start)?;
            let observed = Observed::open_with_room(store.directory(), &store.identity(), false)?;
            Ok((store, observed))
        });
        let (store, observed) = opened.await?;
        self.chain.set_store(Arc::clone(&store), observed);
        Ok(store)
    }
}

/// Whether a node says again that it is of the chain that it said.
async fn says_the_same(node: &Node, capabilities: &Capabilities) -> Result<(), SyncError> {
    let first = (capabilities.chain_id, capabilities.genesis_hash);
    let (chain_id, hash) = node.chain().await?;
    if (chain_id, hash) == first {
        return Ok(());
    }
    Err(SyncError::Ask(NodeError::Malformed {
        method: "eth_chainId",
        reason: format!(
            "the node says chain id {} with the block 0 {}, then {chain_id} with {hash}",
            first.0, first.1
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{B256, Bundle};
    use crate::sync::derive::derive;

    /// What one chain does not have the other one may take.
    #[test]
    fn a_cache_is_shared_among_the_stores_that_are_there() {
        let home = tempfile::tempdir().unwrap();
        let config = Config::of_store(&StoreArgs {
            data_dir: Some(home.path().to_owned()),
            ..StoreArgs::default()
        })
        .unwrap();
        let whole = config.cache_size.0 - config.service.kept_bytes;
        let shares = || open_served(&config).map(|(_, open)| open.cache_bytes);
        let make = |chain, name: &str| std::fs::create_dir_all(config.store_dir(chain).join(name)).unwrap();
        assert_eq!(shares(), [whole; 2]);
        make(ChainName::Testnet, "rocksdb");
        // A place that a store is to be put on.
        make(ChainName::Mainnet, "");
        assert_eq!(shares(), [whole; 2]);
        make(ChainName::Mainnet, "rocksdb");
        assert_eq!(shares(), [whole / 2; 2]);
    }

    /// A ledger that was begun by one schedule is gone on with by that one, whatever is stated later of blocks that it has.
    #[test]
    fn a_store_keeps_the_rewards_that_it_was_made_with() {
        let of = |text: &str| text.parse::<StaticRewards>().unwrap();
        let hash = B256::repeat_byte(9);
        let home = tempfile::tempdir().unwrap();
        let opened = || Store::open_or_create(&OpenOptions::new(home.path()), 61, hash, Some(0)).unwrap();
        // Whoever reads the store meanwhile goes by the same ones, and so does whoever opens it next.
        let rewards = |stated: Option<&str>| {
            let (said, store) = (stated.map(of), opened());
            let mut writer = store.writer().unwrap();
            let rules = rules_of(ChainName::Mainnet, &mut writer, (None, said.as_ref()), false);
            let kept = rules.unwrap().nonces.native.static_rewards;
            assert_eq!(store.view().identity().rewards(), kept);
            drop((writer, store));
            assert_eq!(opened().identity().rewards(), kept);
            kept
        };
        let push = |blocks: std::ops::Range<u8>| {
            let store = opened();
            let mut writer = store.writer().unwrap();
            let mut batch = writer.batch();
            for number in blocks {
                let mut bundle = Bundle {
                    traces: Some(Vec::new()),
                    ..Bundle::default()
                };
                bundle.block.hash = B256::with_last_byte(10 + number);
                bundle.block.header.number = number.into();
                bundle.block.header.parent_hash = B256::with_last_byte(9 + number);
                let rules = ChainRules::new(61, hash, None, 0, true).nonces;
                derive(&bundle, &rules, &mut batch).unwrap();
            }
            writer.commit_final(batch).unwrap();
            writer.settle().unwrap();
        };
        // Block 0 pays nothing: what is stated then is the first that counts.
        push(0..1);
        assert_eq!(rewards(None), StaticRewards::default());
        assert_eq!(rewards(Some("0:3")), of("0:3"));
        push(1..4);
        assert_eq!(rewards(Some("0:5")), of("0:3"));
        assert_eq!(rewards(Some("0:3,3:2")), of("0:3"));
        assert_eq!(rewards(None), of("0:3"));
        // Of a block that is still to come, as chains announce it. It is kept.
        assert_eq!(rewards(Some("0:3,4:2")), of("0:3,4:2"));
        push(4..6);
        assert_eq!(rewards(None), of("0:3,4:2"));
        assert_eq!(rewards(Some("0:3")), of("0:3,4:2"));
    }
}
