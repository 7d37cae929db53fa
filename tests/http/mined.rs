//! A service over a store that grows: blocks are mined, finalized and replaced while it answers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use quarry::api::{Chains, Settings, Upstream, UpstreamFuture};
use quarry::app::front::front;
use quarry::http::{Limits, Pool, PoolLimits};
use quarry::import::Target;
use quarry::model::{Address, B256, BlockId, Bundle, ChainName, U256};
use quarry::query::Reader;
use quarry::status::ChainStatus;
use quarry::store::{ImportWriter, Imported, OpenOptions, Store, Writer};
use quarry::sync::derive::{NonceRules, derive};

use crate::client::{Server, pool};
use crate::plain::{self, ChainConfig};

struct Served {
    store: Arc<Store>,
    status: Arc<ChainStatus>,
    node: Arc<Node>,
    imported: Arc<Imported>,
}

/// A node that says 3 to everything.
#[derive(Default)]
pub(crate) struct Node {
    /// A block of it that may be another than the index has at that height.
    pub(crate) branch: Mutex<Option<BlockId>>,
    /// How often it was asked whether it has a block.
    pub(crate) compared: AtomicUsize,
}

impl Upstream for Node {
    fn holds(&self, block: BlockId) -> UpstreamFuture<'_, bool> {
        self.compared.fetch_add(1, Ordering::Relaxed);
        let branch = *self.branch.lock().unwrap();
        let holds = branch.is_none_or(|own| own.number != block.number || own.hash == block.hash);
        Box::pin(async move { Ok(holds) })
    }

    fn transaction_count(&self, _: Address, _: u64) -> UpstreamFuture<'_, u64> {
        Box::pin(async { Ok(3) })
    }
    fn token_supply(&self, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        Box::pin(async { Ok(U256::from(3)) })
    }
    fn token_balance(&self, _: Address, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        Box::pin(async { Ok(U256::from(3)) })
    }
    fn balance(&self, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        Box::pin(async { Ok(U256::from(3)) })
    }
}

impl Chains for Served {
    fn reader(&self, chain: ChainName) -> Option<Reader> {
        self.imported.look();
        let reader = || Reader::new(self.store.view()).with_imported(Arc::clone(&self.imported));
        (chain == ChainName::Mainnet).then(reader)
    }
    fn status(&self, chain: ChainName) -> Option<Arc<ChainStatus>> {
        (chain == ChainName::Mainnet).then(|| Arc::clone(&self.status))
    }
    fn upstream(&self, _: ChainName) -> Option<Arc<dyn Upstream>> {
        Some(Arc::clone(&self.node) as Arc<dyn Upstream>)
    }
    fn store_bytes(&self, _: ChainName) -> u64 {
        12
    }
}

pub(crate) struct Mined {
    pub(crate) server: Arc<Server>,
    pub(crate) bundles: Vec<Bundle>,
    pub(crate) node: Arc<Node>,
    config: ChainConfig,
    rules: NonceRules,
    store: Arc<Store>,
    pub(crate) status: Arc<ChainStatus>,
    writer: Writer,
    _directory: tempfile::TempDir,
}

impl Mined {
    /// A service over this many final blocks, with lists that take several frames.
    pub(crate) async fn start(blocks: u64, limits: Limits) -> Self {
        Self::ruled(blocks, limits, pool(), rules()).await
    }

    /// The same, and lists are refused while answers that are not sent yet hold so many bytes.
    pub(crate) async fn with_room(blocks: u64, limits: Limits, unsent_bytes_max: usize) -> Self {
        let pool = Pool::new(PoolLimits {
            unsent_bytes_max,
            ..PoolLimits::default()
        });
        Self::ruled(blocks, limits, pool.unwrap(), rules()).await
    }

    /// The same, and nobody told what the genesis block gave: of accounts that nothing happened to only the node knows.
    pub(crate) async fn without_allocation(blocks: u64) -> Self {
        let mut rules = rules();
        rules.native.allocation = None;
        Self::ruled(blocks, Limits::default(), pool(), rules).await
    }

    /// A service over this many blocks of which none is final.
    pub(crate) async fn not_final(blocks: u64) -> Self {
        let mut mined = Self::start(0, Limits::default()).await;
        for _ in 0..blocks {
            mined.mine(0);
        }
        mined
    }

    async fn ruled(blocks: u64, limits: Limits, pool: Pool, rules: NonceRules) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            cache_bytes: 8 << 20,
            memtable_bytes: 8 << 20,
            ..OpenOptions::new(directory.path())
        };
        let config = ChainConfig {
            logs_per_block: 90,
            emitters: 3,
            ..ChainConfig::default()
        };
        let bundles = plain::chain(11, blocks, &config);
        let store = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(0)).unwrap();
        fill(&store, &bundles, &rules);
        Self::serve(directory, store, (config, bundles), rules, (limits, pool)).await
    }

    /// A service over final blocks of which nothing was read since the store was opened.
    pub(crate) async fn cold(bundles: Vec<Bundle>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = OpenOptions::new(directory.path());
        fill(
            &Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(0)).unwrap(),
            &bundles,
            &rules(),
        );
        let store = Store::open(&options).unwrap();
        Self::serve(
            directory,
            store,
            (ChainConfig::default(), bundles),
            rules(),
            (Limits::default(), pool()),
        )
        .await
    }

    async fn serve(
        directory: tempfile::TempDir,
        store: Arc<Store>,
        (config, bundles): (ChainConfig, Vec<Bundle>),
        rules: NonceRules,
        (limits, pool): (Limits, Pool),
    ) -> Self {
        let writer = store.writer().unwrap();
        let status = Arc::new(ChainStatus::default());
        status.set_node_head((bundles.len() as u64).saturating_sub(1));
        let node = Arc::new(Node::default());
        let chains = Served {
            store: Arc::clone(&store),
            status: Arc::clone(&status),
            node: Arc::clone(&node),
            imported: Imported::follow(store.directory(), &store.identity()),
        };
        let api = Arc::new(front(Arc::new(chains), pool, Settings::default()));
        Self {
            server: Arc::new(Server::start(api, limits).await),
            bundles,
            node,
            rules,
            config,
            store,
            status,
            writer,
            _directory: directory,
        }
    }

    pub(crate) fn head(&self) -> u64 {
        self.store.view().head().unwrap().number
    }

    /// Adds a block that is not final; `fork` tells branches apart.
    pub(crate) fn mine(&mut self, fork: u64) {
        let parent = self.bundles.last().map_or(B256::ZERO, |bundle| bundle.block.hash);
        let number = self.store.view().head().map_or(0, |head| head.number + 1);
        self.mine_this(plain::block(11, number, parent, fork, &self.config));
    }

    /// Adds this block, which is not final.
    pub(crate) fn mine_this(&mut self, bundle: Bundle) {
        let number = bundle.block.number();
        let mut batch = self.writer.batch();
        derive(&bundle, &self.rules, &mut batch).unwrap();
        self.writer.commit_unfinal(batch).unwrap();
        self.bundles.push(bundle);
        self.status.set_node_head(number);
    }

    pub(crate) fn finalize(&mut self, number: u64) {
        self.writer.finalize(number).unwrap();
    }

    /// Where an import goes to; it is checked against the blocks of now.
    pub(crate) fn target(&self) -> Target {
        Target {
            view: self.store.view(),
            writer: ImportWriter::open(self.store.directory(), &self.store.identity()).unwrap(),
        }
    }

    /// The node says that its head is this one.
    pub(crate) fn node_head_is(&self, number: u64) {
        self.status.set_node_head(number);
    }

    /// The node says that this block is safe.
    pub(crate) fn safe_is(&self, number: u64) {
        self.status.set_safe(number);
    }

    /// Takes the newest block away.
    pub(crate) fn unwind(&mut self) {
        let head = self.head();
        self.writer.unwind(head).unwrap();
        self.bundles.pop();
    }

    /// The emitter with the most logs.
    pub(crate) fn busiest(&self) -> Address {
        let logs = || {
            let receipts = self.bundles.iter().flat_map(|bundle| &bundle.receipts);
            receipts.flat_map(|receipt| &receipt.logs)
        };
        let count = |address: Address| logs().filter(|log| log.address == address).count();
        let addresses = logs().map(|log| log.address);
        addresses.max_by_key(|address| count(*address)).unwrap()
    }

    pub(crate) async fn ask(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> hyper::Response<Bytes> {
        ask(&self.server, method, target, headers).await
    }

    pub(crate) async fn get(&self, target: &str, headers: &[(&str, &str)]) -> hyper::Response<Bytes> {
        self.ask("GET", target, headers).await
    }
}

/// Commits final blocks, and brings them to the disk.
fn fill(store: &Arc<Store>, bundles: &[Bundle], rules: &NonceRules) {
    if bundles.is_empty() {
        return;
    }
    let mut writer = store.writer().unwrap();
    let mut batch = writer.batch();
    for bundle in bundles {
        derive(bundle, rules, &mut batch).unwrap();
    }
    writer.commit_final(batch).unwrap();
    writer.settle().unwrap();
}

fn rules() -> NonceRules {
    NonceRules {
        chain_id: 7,
        from_genesis: true,
        native: plain::native_rules(),
        ..NonceRules::default()
    }
}

/// One request on a connection of its own; the body is whole.
pub(crate) async fn ask(
    server: &Server,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
) -> hyper::Response<Bytes> {
    let io = hyper_util::rt::TokioIo::new(server.connect().await);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let mut request = hyper::Request::builder()
        .method(method)
        .uri(target)
        .header("host", "test");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    hyper::Response::from_parts(parts, body)
}

pub(crate) fn header<'a>(response: &'a hyper::Response<Bytes>, name: &str) -> Option<&'a str> {
    response.headers().get(name).map(|value| value.to_str().unwrap())
}
