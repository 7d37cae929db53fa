//! Who answers about a token: the ledger, the node or nobody, by what is held of it. Over the demo's chain.

use std::path::Path;
use std::sync::{Arc, Mutex};

use quarry::api::{Api, Chains, Settings, Upstream, UpstreamError, UpstreamFuture};
use quarry::http::Limits;
use quarry::model::{Address, B256, BlockId, ChainName, TokenMetadata, TokenVerdict, U256, ZeroAddress};
use quarry::node::recorded::parse_line;
use quarry::query::{ObservedFacts, Reader};
use quarry::status::ChainStatus;
use quarry::store::{Observed, OpenOptions, Store, ToldBalance};
use quarry::sync::{ChainRules, Pipeline, SyncError};

use crate::client::{Reply, Server, pool};

pub(crate) const COIN: &str = "0x5fbdb2315678afecb367f032d93f642f64180aa3";
pub(crate) const HOLDER: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
/// Emits events that contradict each other.
pub(crate) const LIAR: &str = "0x73511669fd4de447fed18bb79bafeac93ab7f31f";

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.whole_body()).unwrap()
    }
}

type Told = Result<U256, UpstreamError>;

/// A node that tells one thing, and at which block it was asked last.
#[derive(Clone)]
struct Node {
    told: Arc<Mutex<Option<Told>>>,
    asked: Arc<Mutex<Option<u64>>>,
}

impl Node {
    fn answer(&self, block: u64) -> UpstreamFuture<'_, U256> {
        *self.asked.lock().unwrap() = Some(block);
        let told = self.told.lock().unwrap().clone().unwrap();
        Box::pin(async { told })
    }
}

impl Upstream for Node {
    fn transaction_count(&self, _: Address, _: u64) -> UpstreamFuture<'_, u64> {
        Box::pin(async { Err(UpstreamError::TimedOut) })
    }
    fn token_supply(&self, _: Address, block: u64) -> UpstreamFuture<'_, U256> {
        self.answer(block)
    }
    fn token_balance(&self, _: Address, _: Address, block: u64) -> UpstreamFuture<'_, U256> {
        self.answer(block)
    }
    fn balance(&self, _: Address, block: u64) -> UpstreamFuture<'_, U256> {
        self.answer(block)
    }
}

struct Served {
    store: Arc<Store>,
    observed: Arc<Observed>,
    status: Arc<ChainStatus>,
    node: Node,
    /// Whether a node is configured at all.
    configured: bool,
}

impl Chains for Served {
    fn reader(&self, chain: ChainName) -> Option<Reader> {
        let view = self.store.view();
        let facts = ObservedFacts::new(Arc::clone(&self.observed), Arc::clone(&view), self.configured);
        (chain == ChainName::Mainnet).then(|| Reader::new(view).with_token_facts(Arc::new(facts)))
    }
    fn status(&self, chain: ChainName) -> Option<Arc<ChainStatus>> {
        (chain == ChainName::Mainnet).then(|| Arc::clone(&self.status))
    }
    fn upstream(&self, _: ChainName) -> Option<Arc<dyn Upstream>> {
        let up = self.node.told.lock().unwrap().is_some();
        up.then(|| Arc::new(self.node.clone()) as Arc<dyn Upstream>)
    }
    fn store_bytes(&self, _: ChainName) -> u64 {
        12
    }
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) observed: Arc<Observed>,
    store: Arc<Store>,
    node: Node,
    _directory: tempfile::TempDir,
}

impl World {
    pub(crate) async fn start(configured: bool) -> Self {
        Self::start_at(configured, 0).await
    }

    /// Over a store that begins with a later block of the demo's chain.
    pub(crate) async fn start_at(configured: bool, first_block: u64) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/chain.jsonl.zst");
        let text = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
        let text = String::from_utf8(text).unwrap();
        let bundles: Vec<_> = text.lines().map(|line| parse_line(line).unwrap()).collect();
        let genesis = bundles[0].block.hash;
        let directory = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            cache_bytes: 8 << 20,
            memtable_bytes: 8 << 20,
            ..OpenOptions::new(directory.path())
        };
        let store = Store::open_or_create(&options, 31_337, genesis, Some(first_block)).unwrap();
        let pipeline = Pipeline {
            rules: ChainRules::new(31_337, genesis, None, first_block, false),
            finalized: u64::MAX,
            finalized_hash: None,
            batch_bytes_max: 8 << 20,
        };
        let (_trigger, mut shutdown) = quarry::shutdown::pair();
        let source = futures_util::stream::iter(
            bundles
                .into_iter()
                .skip(first_block as usize)
                .map(Ok::<_, SyncError>),
        );
        let (_, result) = pipeline.run(store.writer().unwrap(), source, &mut shutdown).await;
        result.unwrap();
        let observed = Arc::new(Observed::in_memory());
        let node = Node {
            told: Arc::default(),
            asked: Arc::default(),
        };
        let status = Arc::new(ChainStatus::default());
        status.set_node_head(store.view().head().unwrap().number);
        let chains = Served {
            store: Arc::clone(&store),
            observed: Arc::clone(&observed),
            status,
            node: node.clone(),
            configured,
        };
        let api = Arc::new(Api::new(Arc::new(chains), pool(), Settings::default()));
        Self {
            server: Server::start(api, Limits::default()).await,
            observed,
            store,
            node,
            _directory: directory,
        }
    }

    fn tell(&self, told: Option<Told>) {
        *self.node.told.lock().unwrap() = told;
    }

    pub(crate) fn judge(&self, exact: bool) {
        let verdict = TokenVerdict {
            exact,
            zero_address: ZeroAddress::Burns,
            checked: self.block(9),
            anchor: None,
            compared: 1,
            reason: String::new(),
            supply: (!exact).then(|| U256::from(1_000)),
        };
        self.observed.put_verdict(&COIN.parse().unwrap(), &verdict);
    }

    fn block(&self, number: u64) -> BlockId {
        let hash: B256 = self.store.view().block(number).unwrap().hash;
        BlockId { number, hash }
    }

    /// T1, T2, T8, T9 of a token: target, the field of the amount, the text of a node that fails, the block asked at.
    fn questions(&self, token: &str) -> [(String, &'static str, &'static str, u64); 4] {
        let head = self.store.view().head().unwrap().number;
        let node = "Upstream node error";
        [
            (
                format!("/api/token/{token}/total-supply"),
                "totalSupply",
                "Failed to fetch token total supply",
                head,
            ),
            (
                format!("/api/token/balance?contractaddress={token}&address={HOLDER}"),
                "balance",
                node,
                head,
            ),
            (
                format!("/api/token/{token}/total-supply-history?block=200"),
                "totalSupply",
                node,
                200,
            ),
            (
                format!("/api/token/{HOLDER}/total-balance-history?contractaddress={token}&block=200"),
                "balance",
                node,
                200,
            ),
        ]
    }

    async fn by_ledger(&self) {
        for (target, field, ..) in self.questions(COIN) {
            let reply = self.server.get(&target).await;
            assert_eq!(
                (reply.status, reply.header("x-balance-source")),
                (200, Some("ledger"))
            );
            let amount: U256 = reply.json()[field].as_str().unwrap().parse().unwrap();
            let known = if field == "totalSupply" { 1_000_000 } else { 0 };
            assert!(
                U256::from(known) <= amount && amount != U256::from(42),
                "{target}"
            );
        }
    }

    async fn by_node(&self, token: &str) {
        self.tell(Some(Ok(U256::from(42))));
        for (target, field, _, block) in self.questions(token) {
            let reply = self.server.get(&target).await;
            assert_eq!(
                (reply.status, reply.header("x-balance-source")),
                (200, Some("node")),
                "{target}"
            );
            assert_eq!(reply.json()[field], "42");
            assert_eq!(*self.node.asked.lock().unwrap(), Some(block), "{target}");
        }
    }

    async fn fails(&self, token: &str, told: Option<Told>, status: u16) {
        self.tell(told);
        for (target, _, text, _) in self.questions(token) {
            self.server.get(&target).await.assert_error(status, text);
        }
    }
}

fn failed() -> Told {
    Err(UpstreamError::Failed("gone".to_owned()))
}

#[tokio::test]
async fn the_ledger_answers_for_exact_tokens_and_the_node_for_others() {
    let world = World::start(true).await;
    // Without a verdict.
    world.by_node(COIN).await;
    world.fails(COIN, Some(failed()), 502).await;
    world.fails(COIN, Some(Err(UpstreamError::TimedOut)), 504).await;
    world.fails(COIN, None, 502).await;
    // Exact: whatever the node does.
    world.judge(true);
    world.by_ledger().await;
    world.tell(Some(failed()));
    world.by_ledger().await;
    // Not exact.
    world.judge(false);
    world.by_node(COIN).await;
    world.fails(COIN, Some(failed()), 502).await;
    world.fails(COIN, None, 502).await;
    // Before the contract was made nobody need be asked.
    let early = format!("/api/token/{COIN}/total-supply-history?block=0");
    let reply = world.server.get(&early).await;
    assert_eq!((reply.status, &reply.json()["totalSupply"]), (200, &"0".into()));
    // One that the ledger doubts is asked of the node without a verdict.
    world.by_node(LIAR).await;
    // Whole coins need decimals, and that is said before anybody is asked.
    let coins = format!("/api/token/{COIN}/total-supply?unit=coin");
    world
        .server
        .get(&coins)
        .await
        .assert_error(400, "Invalid unit parameter");
    let metadata = TokenMetadata {
        decimals: Some(1),
        ..TokenMetadata::default()
    };
    world.observed.put_metadata(&COIN.parse().unwrap(), &metadata);
    world.tell(Some(Ok(U256::from(42))));
    assert_eq!(world.server.get(&coins).await.json()["totalSupply"], "4.2");
}

#[tokio::test]
async fn without_a_node_the_ledger_answers_unless_it_knows_better() {
    let world = World::start(false).await;
    world.by_ledger().await;
    world.fails(LIAR, None, 502).await;
    world.judge(false);
    world.fails(COIN, None, 502).await;
    world.judge(true);
    world.by_ledger().await;
}

#[tokio::test]
async fn holders_of_tokens_that_are_not_exact_are_what_the_contract_told() {
    let world = World::start(true).await;
    let coin: Address = COIN.parse().unwrap();
    let list = format!("/api/token/holder-list?contractaddress={COIN}");
    let count = format!("/api/token/holder-count?contractaddress={COIN}");
    let mine = format!("/api/token/erc20-holdings?address={HOLDER}");
    let other = Address::repeat_byte(0x77);
    let others = format!("/api/token/erc20-holdings?address={other:?}");
    world.judge(false);
    let told = |holder: Address, balance: u64| ToldBalance {
        holder,
        balance: U256::from(balance),
        block: 9,
    };
    let holder: Address = HOLDER.parse().unwrap();
    let both = [told(holder, 250), told(other, 750)];
    world.observed.put_balances(&coin, &both, None);
    // Not every holder was asked for yet: the ledger's list is whole, and says whose it is.
    let reply = world.server.get(&list).await;
    assert_eq!(reply.header("x-balance-source"), Some("ledger"));
    assert_eq!(reply.json()["holders"].as_array().unwrap().len(), 10);
    let before = reply.header("etag").unwrap().to_owned();
    world.observed.put_balances(&coin, &[], Some((None, true)));
    let reply = world.server.get(&list).await;
    assert_eq!(reply.header("x-balance-source"), Some("node"));
    assert_ne!(reply.header("etag").unwrap(), before);
    assert_eq!(
        reply.json()["holders"],
        serde_json::json!([
            {"address": format!("{other:?}"), "balance": "750", "share": "75.0000"},
            {"address": HOLDER, "balance": "250", "share": "25.0000"},
        ])
    );
    assert_eq!(world.server.get(&count).await.json()["holderCount"], 2);
    // What an account holds: the told amount, also where no event ever named it, and nothing where it is zero.
    let held = async |target: &str| {
        let body = world.server.get(target).await.json();
        let tokens = body["tokens"].as_array().unwrap().clone();
        let found = tokens.iter().find(|token| token["contractAddress"] == COIN);
        found.map(|token| token["balance"].as_str().unwrap().to_owned())
    };
    assert_eq!(held(&mine).await.as_deref(), Some("250"));
    assert_eq!(held(&others).await.as_deref(), Some("750"));
    world.observed.put_balances(&coin, &[told(holder, 0)], None);
    assert_eq!(held(&mine).await, None);
    let info = world
        .server
        .get(&format!("/api/token/info?contractaddress={COIN}"))
        .await;
    assert_eq!(
        (&info.json()["totalSupply"], &info.json()["holderCount"]),
        (&"1000".into(), &1.into())
    );
}
