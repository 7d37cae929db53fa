//! The chains being served, and where each gets its store, its status and its node.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use serde_json::value::RawValue;

use super::{figures, stderr};
use crate::api::{Chains, Upstream, UpstreamError, UpstreamFuture};
use crate::config::Config;
use crate::desk::NodeReply;
use crate::metrics::Page;
use crate::model::{
    Address, B256, BlockId, ChainName, PriceFeeds, StatedPrices, StaticRewards, TokenMetadata, U256,
};
use crate::node::{ErrorClass, Node, NodeError, Passed, Told};
use crate::query::{ObservedFacts, Reader};
use crate::status::{ChainStatus, HeadWord};
use crate::store::{Heartbeat, Imported, Observed, Store};

/// One chain: its store may come later (a new one is made when the node says which chain it is).
pub(super) struct Chain {
    pub(super) name: ChainName,
    pub(super) status: Option<Arc<ChainStatus>>,
    store: RwLock<Option<Arc<Store>>>,
    /// What a node told of it outside of blocks.
    observed: RwLock<Option<Arc<Observed>>>,
    /// What the operator imported beside it.
    imported: RwLock<Option<Arc<Imported>>>,
    /// Of a chain that is only served: what the last process said that wrote the store.
    heard: Option<Heartbeat>,
    node: RwLock<Option<Node>>,
    /// Answers in the place of a node.
    stand_in: Option<Arc<dyn Upstream>>,
    /// Whether there is or will be something to ask about tokens.
    asks: bool,
    stated: Stated,
    /// The feeds of its prices.
    price_feeds: OnceLock<Arc<PriceFeeds>>,
}

/// What the operator states of a chain.
#[derive(Debug, Default)]
pub(super) struct Stated {
    /// Static rewards; else what the store remembers, or what is known of the chain.
    static_rewards: Option<Arc<StaticRewards>>,
    /// Accounts whose coins do not circulate.
    excluded: Arc<[Address]>,
    /// Prices.
    prices: StatedPrices,
}

impl Stated {
    /// No more than static rewards, where there are any.
    pub(super) fn of_rewards(static_rewards: Option<StaticRewards>) -> Self {
        Self {
            static_rewards: static_rewards.map(Arc::new),
            ..Self::default()
        }
    }

    pub(super) fn of(config: &Config, chain: ChainName) -> Self {
        Self {
            static_rewards: config.static_rewards_of(chain).cloned().map(Arc::new),
            excluded: config.excluded_of(chain).into(),
            prices: config.prices_of(chain),
        }
    }
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chain")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Chain {
    /// A chain that is synced.
    pub(super) fn synced(name: ChainName, stated: Stated) -> Arc<Self> {
        Arc::new(Self {
            status: Some(Arc::new(ChainStatus::default())),
            asks: true,
            ..Self::new(name, stated)
        })
    }

    /// A chain whose blocks the embedding process gives, or which is only served, as `is_synced` says; `stand_in`
    /// answers what a node would.
    pub(super) fn embedded(
        name: ChainName,
        is_synced: bool,
        stand_in: Option<Arc<dyn Upstream>>,
        stated: Stated,
    ) -> Arc<Self> {
        Arc::new(Self {
            status: is_synced.then(|| Arc::new(ChainStatus::default())),
            asks: stand_in.is_some(),
            stand_in,
            ..Self::new(name, stated)
        })
    }

    /// A chain that is served as another process writes it.
    pub(super) fn followed(
        name: ChainName,
        store: Arc<Store>,
        observed: Arc<Observed>,
        stated: Stated,
    ) -> Arc<Self> {
        let chain = Self {
            status: Some(Arc::new(ChainStatus::default())),
            ..Self::new(name, stated)
        };
        chain.set_store(store, observed);
        Arc::new(chain)
    }

    /// A chain that is only served.
    pub(super) fn stored(
        name: ChainName,
        store: Arc<Store>,
        observed: Arc<Observed>,
        stated: Stated,
    ) -> Arc<Self> {
        let chain = Self {
            heard: Heartbeat::read(store.directory()),
            ..Self::new(name, stated)
        };
        chain.set_store(store, observed);
        Arc::new(chain)
    }

    /// A chain that is only served, with recorded answers in the place of a node.
    pub(super) fn recorded(
        name: ChainName,
        store: Arc<Store>,
        observed: Arc<Observed>,
        stand_in: Arc<dyn Upstream>,
        stated_prices: StatedPrices,
    ) -> Arc<Self> {
        let chain = Self {
            stand_in: Some(stand_in),
            ..Self::new(
                name,
                Stated {
                    prices: stated_prices,
                    ..Stated::default()
                },
            )
        };
        chain.set_store(store, observed);
        Arc::new(chain)
    }

    /// A chain without a store, a node and a status.
    fn new(name: ChainName, stated: Stated) -> Self {
        Self {
            name,
            status: None,
            store: RwLock::default(),
            observed: RwLock::default(),
            imported: RwLock::default(),
            heard: None,
            node: RwLock::default(),
            stand_in: None,
            asks: false,
            stated,
            price_feeds: OnceLock::new(),
        }
    }

    /// The static rewards that the operator states.
    pub(super) fn static_rewards(&self) -> Option<&StaticRewards> {
        self.stated.static_rewards.as_deref()
    }

    pub(super) fn store(&self) -> Option<Arc<Store>> {
        held(&self.store)
    }

    /// What a node told of it outside of blocks.
    pub(super) fn observed(&self) -> Option<Arc<Observed>> {
        held(&self.observed)
    }

    /// Gives the chain its store, once, and what lies beside it.
    pub(super) fn set_store(&self, store: Arc<Store>, observed: Arc<Observed>) {
        put(&self.observed, observed);
        put(&self.imported, follow(&store));
        let identity = store.identity();
        let feeds = &self.stated.prices;
        let feeds = feeds.on_chain(identity.chain_id, identity.genesis_hash.into());
        let _ = self.price_feeds.set(Arc::new(feeds));
        put(&self.store, store);
    }

    /// Takes from the last process that wrote the store how far the node was.
    pub(super) fn remember(&self, beat: Option<Heartbeat>) {
        let (Some(status), Some(beat)) = (&self.status, beat) else {
            return;
        };
        if let Some(number) = beat.node_head {
            let at = beat.node_heard.unwrap_or(beat.time as u64);
            status.remember_node_head(HeadWord { number, at });
        }
        if let Some(safe) = beat.safe {
            status.set_safe(safe);
        }
    }

    /// Shows a replica's store as it is now.
    pub(super) fn show(&self, store: Arc<Store>) {
        put(&self.store, store);
    }

    /// Another side store to answer from.
    pub(super) fn set_observed(&self, observed: Arc<Observed>) {
        put(&self.observed, observed);
    }

    /// The contracts of its price feeds.
    pub(super) fn feeds(&self) -> Vec<Address> {
        let feeds = self.price_feeds.get();
        feeds.map_or_else(Vec::new, |feeds| {
            feeds.native.iter().chain(&feeds.stable).copied().collect()
        })
    }

    /// How long the node takes on average.
    pub(super) fn latency(&self) -> Option<std::time::Duration> {
        let node = self.node.read().unwrap_or_else(PoisonError::into_inner);
        node.as_ref().map(|node| node.stats().latency_mean())
    }

    /// Gives the chain its node, or takes it away.
    pub(super) fn set_node(&self, node: Option<Node>) {
        *self.node.write().unwrap_or_else(PoisonError::into_inner) = node;
    }
}

fn held<T>(place: &RwLock<Option<Arc<T>>>) -> Option<Arc<T>> {
    place.read().unwrap_or_else(PoisonError::into_inner).clone()
}

fn put<T>(place: &RwLock<Option<Arc<T>>>, value: Arc<T>) {
    *place.write().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

fn follow(store: &Store) -> Arc<Imported> {
    Imported::follow(store.directory(), &store.identity())
}

/// All chains of the process.
#[derive(Debug, Default)]
pub(super) struct Registry {
    chains: Vec<Arc<Chain>>,
}

impl Registry {
    pub(super) const fn new(chains: Vec<Arc<Chain>>) -> Self {
        Self { chains }
    }

    fn get(&self, name: ChainName) -> Option<&Arc<Chain>> {
        self.chains.iter().find(|chain| chain.name == name)
    }
}

impl Chains for Registry {
    fn reader(&self, name: ChainName) -> Option<Reader> {
        let chain = self.get(name)?;
        let view = chain.store()?.view();
        let facts = chain
            .observed()
            .map(|observed| ObservedFacts::new(observed, Arc::clone(&view), chain.asks));
        let reader = match &chain.stated.static_rewards {
            Some(stated) => Reader::with_rewards(view, Arc::clone(stated)),
            None => Reader::new(view),
        };
        let reader = reader.with_not_circulating(Arc::clone(&chain.stated.excluded));
        let reader = match held(&chain.imported) {
            Some(imported) => {
                imported.look();
                reader.with_imported(imported)
            }
            None => reader,
        };
        let reader = match chain.price_feeds.get() {
            Some(feeds) => reader.with_price_feeds(Arc::clone(feeds)),
            None => reader,
        };
        Some(match facts {
            Some(facts) => reader.with_token_facts(Arc::new(facts)),
            None => reader,
        })
    }

    fn node_heard(&self, name: ChainName) -> Option<u64> {
        self.get(name)?.heard?.node_head
    }

    fn safe_heard(&self, name: ChainName) -> Option<u64> {
        self.get(name)?.heard?.safe
    }

    fn status(&self, name: ChainName) -> Option<Arc<ChainStatus>> {
        self.get(name)?.status.clone()
    }

    fn has_node(&self, name: ChainName) -> bool {
        self.get(name).is_some_and(|chain| chain.asks)
    }

    fn upstream(&self, name: ChainName) -> Option<Arc<dyn Upstream>> {
        let chain = self.get(name)?;
        if let Some(stand_in) = &chain.stand_in {
            return Some(Arc::clone(stand_in));
        }
        // It may be a node of another chain, whatever it was before.
        if chain.status.as_ref().is_some_and(|status| status.contradicted()) {
            return None;
        }
        let node = chain.node.read().unwrap_or_else(PoisonError::into_inner).clone();
        node.map(|node| Arc::new(NodeUpstream(node.for_clients())) as Arc<dyn Upstream>)
    }

    fn store_bytes(&self, name: ChainName) -> u64 {
        self.get(name)
            .and_then(|chain| chain.store())
            .map_or(0, |store| store.bytes_on_disk())
    }

    fn measure(&self, name: ChainName, page: &mut Page) {
        let Some(chain) = self.get(name) else { return };
        if let Some(store) = chain.store() {
            figures::store(page, name.as_str(), &store);
        }
        let node = chain.node.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(node) = node {
            figures::node(page, name.as_str(), node.stats());
        }
    }

    fn measure_process(&self, page: &mut Page) {
        stderr::measure(page);
    }
}

/// A node as clients' questions reach it: with little patience, and away from the threads that own clients' sockets.
struct NodeUpstream(Node);

impl NodeUpstream {
    fn ask<T, F>(&self, question: impl FnOnce(Node) -> F) -> UpstreamFuture<'_, T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, UpstreamError>> + Send + 'static,
    {
        let told = self.0.at_home(question(self.0.clone()));
        Box::pin(async move {
            let ended = || UpstreamError::Failed("the question was given up".to_owned());
            told.await.ok_or_else(ended)?
        })
    }
}

impl Upstream for NodeUpstream {
    fn transaction_count(&self, address: Address, block: u64) -> UpstreamFuture<'_, u64> {
        self.ask(move |node| async move { node.transaction_count(address, block).await.map_err(failed) })
    }

    fn token_supply(&self, token: Address, block: u64) -> UpstreamFuture<'_, U256> {
        self.ask(move |node| async move { told(node.token_supply(token, block).await) })
    }

    fn token_balance(&self, token: Address, holder: Address, block: u64) -> UpstreamFuture<'_, U256> {
        self.ask(move |node| async move { told(node.token_balance(token, holder, block).await) })
    }

    fn token_metadata(&self, token: Address, block: u64) -> UpstreamFuture<'_, TokenMetadata> {
        self.ask(move |node| async move {
            let told = node.token_metadata(token, block).await.map_err(failed)?;
            if told.is_bare {
                // As a node says that has no contract there yet.
                return Err(UpstreamError::Untold("the contract returns nothing".to_owned()));
            }
            Ok(told.metadata)
        })
    }

    fn balance(&self, address: Address, block: u64) -> UpstreamFuture<'_, U256> {
        self.ask(move |node| async move { node.balance(address, block).await.map_err(failed) })
    }

    fn has_code(&self, address: Address, block: u64) -> UpstreamFuture<'_, bool> {
        self.ask(move |node| async move { node.has_code(address, block).await.map_err(failed) })
    }

    fn holds(&self, block: BlockId) -> UpstreamFuture<'_, bool> {
        self.ask(move |node| async move {
            let there = node.block_id(block.number).await.map_err(failed)?;
            Ok(there.is_some_and(|there| there.hash == block.hash))
        })
    }

    fn storage(&self, contract: Address, slot: B256, block: u64) -> UpstreamFuture<'_, B256> {
        self.ask(move |node| async move { node.storage(contract, slot, block).await.map_err(failed) })
    }

    fn beacon_implementation(&self, beacon: Address, block: u64) -> UpstreamFuture<'_, Address> {
        self.ask(move |node| async move { told(node.beacon_implementation(beacon, block).await) })
    }

    fn call(&self, method: &'static str, params: Box<RawValue>) -> UpstreamFuture<'_, NodeReply> {
        self.ask(move |node| async move {
            let passed = node.pass_on(method, &params).await.map_err(failed)?;
            Ok(match passed {
                Passed::Result(text) => NodeReply::Result(text),
                Passed::Error { code, message, data } => NodeReply::Error { code, message, data },
            })
        })
    }
}

/// A contract that gives no number is to clients as good as a node that fails: "0" would be a lie.
fn told<T>(told: Result<Told<T>, NodeError>) -> Result<T, UpstreamError> {
    match told.map_err(failed)? {
        Told::Value(value) => Ok(value),
        Told::Nothing(why) => Err(UpstreamError::Untold(format!(
            "the contract does not tell: {why}"
        ))),
    }
}

fn failed(error: NodeError) -> UpstreamError {
    if error.class() == ErrorClass::Timeout {
        UpstreamError::TimedOut
    } else {
        UpstreamError::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeConfig;
    use std::sync::atomic::Ordering;

    #[tokio::test]
    async fn clients_are_soon_told_that_the_node_is_down() {
        // Nothing listens there.
        let node = Node::connect(NodeConfig::new("http://127.0.0.1:1"))
            .await
            .unwrap();
        let chain = Chain::synced(ChainName::Mainnet, Stated::default());
        chain.set_node(Some(node.clone()));
        let upstream = Registry::new(vec![chain]).upstream(ChainName::Mainnet).unwrap();
        upstream.balance(Address::ZERO, 0).await.unwrap_err();
        assert_eq!(node.stats().requests.load(Ordering::Relaxed), 3);
        // Not as what is passed on, which is sent once.
        upstream.has_code(Address::ZERO, 0).await.unwrap_err();
        assert_eq!(node.stats().requests.load(Ordering::Relaxed), 6);
    }
}
