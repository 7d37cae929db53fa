//! Who answers about a token: the ledger, the node or nobody, by what is held of it. Over the demo's chain.

use std::path::Path;
use std::sync::{Arc, Mutex};

use quarry::api::{Chains, Settings, Upstream, UpstreamError, UpstreamFuture};
use quarry::app::front::front;
use quarry::desk::NodeReply;
use quarry::http::Limits;
use quarry::model::{
    Address, B256, BlockId, ChainName, NATIVE_COIN, TokenMetadata, TokenVerdict, ToldMetadata, U256,
    ZeroAddress,
};
use quarry::node::recorded::parse_line;
use quarry::query::{KeyPart, ObservedFacts, Reader};
use quarry::status::ChainStatus;
use quarry::store::{Observed, OpenOptions, Store, ToldBalance};
use quarry::sync::genesis::parse as parse_genesis;
use quarry::sync::{ChainRules, FinalBlocks, Pipeline, SyncError};

use serde_json::value::RawValue;
use tracing::Level;

use crate::client::{Reply, Server, pool};
use crate::log::Log;

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
    /// What its tokens say of themselves, and at which block they were asked last; `None`: it fails.
    words: Arc<Mutex<Option<TokenMetadata>>>,
    asked_words: Arc<Mutex<Option<u64>>>,
    /// What `eth_getCode` tells of any address; `None`: it fails.
    code: Arc<Mutex<Option<&'static str>>>,
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
    fn token_metadata(&self, _: Address, block: u64) -> UpstreamFuture<'_, TokenMetadata> {
        *self.asked_words.lock().unwrap() = Some(block);
        let words = self.words.lock().unwrap().clone();
        Box::pin(async { words.ok_or_else(|| UpstreamError::Failed("nothing".to_owned())) })
    }
    fn call(&self, method: &'static str, _: Box<RawValue>) -> UpstreamFuture<'_, NodeReply> {
        assert_eq!(method, "eth_getCode");
        let code = *self.code.lock().unwrap();
        Box::pin(async move {
            let code = code.ok_or(UpstreamError::TimedOut)?;
            Ok(NodeReply::Result(RawValue::from_string(code.to_owned()).unwrap()))
        })
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
    fn has_node(&self, _: ChainName) -> bool {
        self.configured
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
        let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
        let file = std::fs::read_to_string(demo.join("genesis.json")).unwrap();
        let allocation = parse_genesis(&file).unwrap();
        let text = zstd::decode_all(std::fs::File::open(demo.join("chain.jsonl.zst")).unwrap()).unwrap();
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
            rules: ChainRules::new(31_337, genesis, Some(&allocation), first_block, false),
            final_blocks: FinalBlocks::All,
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
            words: Arc::default(),
            asked_words: Arc::default(),
            code: Arc::default(),
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
        let api = Arc::new(front(Arc::new(chains), pool(), Settings::default()));
        let limits = Limits {
            // On this thread, so that its log can be read.
            socket_threads: 0,
            ..Limits::default()
        };
        Self {
            server: Server::start(api, limits).await,
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
        self.observed
            .put_verdict(&COIN.parse().unwrap(), &self.verdict(exact));
    }

    pub(crate) fn verdict(&self, exact: bool) -> TokenVerdict {
        TokenVerdict {
            exact,
            zero_address: ZeroAddress::Burns,
            checked: self.block(9),
            anchor: None,
            compared: 1,
            reason: String::new(),
            supply: (!exact).then(|| U256::from(1_000)),
            differed: None,
        }
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

    /// No contract stands at the token's address any more, as the node says.
    async fn is_gone(&self, token: &str) {
        self.tell(Some(Err(UpstreamError::Failed("0x is no number".to_owned()))));
        for (target, field, text, _) in self.questions(token) {
            *self.node.code.lock().unwrap() = Some("\"0x\"");
            let reply = self.server.get(&target).await;
            assert_eq!(
                (reply.status, reply.header("x-balance-source")),
                (200, Some("node")),
                "{target}"
            );
            assert_eq!(reply.json()[field], "0", "{target}");
            // One that stands and does not tell, and a node that fails with that, too.
            for code in [Some("\"0x60\""), None] {
                *self.node.code.lock().unwrap() = code;
                self.server.get(&target).await.assert_error(502, text);
            }
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
async fn what_nobody_can_tell_is_no_fault_in_the_log() {
    let (log, _guard) = Log::of_this_thread(Level::DEBUG);
    let world = World::start(true).await;
    world.judge(false);
    let untold = UpstreamError::Untold("the contract does not tell".to_owned());
    for (told, status, level) in [
        (Some(Err(untold)), 502, "DEBUG"),
        (None, 502, "DEBUG"),
        (Some(failed()), 502, "WARN"),
        (Some(Err(UpstreamError::TimedOut)), 504, "WARN"),
    ] {
        let before = log.lines("refused").len();
        world.fails(COIN, told, status).await;
        let lines = log.lines("refused").split_off(before);
        let levels: Vec<_> = lines.iter().map(|line| &line["level"]).collect();
        assert_eq!(levels, [level; 4], "{lines:?}");
    }
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
    world.is_gone(COIN).await;
    // Before the contract was made nobody need be asked.
    let early = format!("/api/token/{COIN}/total-supply-history?block=0");
    let reply = world.server.get(&early).await;
    assert_eq!((reply.status, &reply.json()["totalSupply"]), (200, &"0".into()));
    // One that the ledger doubts is asked of the node without a verdict.
    world.by_node(LIAR).await;
    // Whole coins need decimals; once it is known that there are none, that is said before anybody is asked.
    let coins = format!("/api/token/{COIN}/total-supply?unit=coin");
    let silent = TokenMetadata::default();
    let coin = COIN.parse().unwrap();
    world.observed.put_metadata(&coin, &silent.into());
    world
        .server
        .get(&coins)
        .await
        .assert_error(400, "Invalid unit parameter");
    let metadata = TokenMetadata {
        decimals: Some(1),
        ..TokenMetadata::default()
    };
    world.observed.put_metadata(&coin, &metadata.into());
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
    let held = async |target: &str| {
        let body = world.server.get(target).await.json();
        let tokens = body["tokens"].as_array().unwrap().clone();
        let found = tokens.iter().find(|token| token["contractAddress"] == COIN);
        found.map(|token| token["balance"].as_str().unwrap().to_owned())
    };
    // So are the lists of what accounts hold.
    assert_eq!(held(&others).await, None);
    assert_ne!(held(&mine).await.as_deref(), Some("250"));
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

/// The supply of a token whose contract tells none is what events say, and so says the header, whoever told the holders.
#[tokio::test]
async fn a_supply_that_nobody_told_is_the_ledgers() {
    let world = World::start(true).await;
    let coin: Address = COIN.parse().unwrap();
    let info = format!("/api/token/info?contractaddress={COIN}");
    world.judge(true);
    let by_events = world.server.get(&info).await.json()["totalSupply"].clone();
    world.judge(false);
    let told = ToldBalance {
        holder: HOLDER.parse().unwrap(),
        balance: U256::from(250),
        block: 9,
    };
    world.observed.put_balances(&coin, &[told], Some((None, true)));
    let source = async |supply: Option<U256>| {
        let known = world.observed.verdict(&coin).unwrap();
        world
            .observed
            .put_verdict(&coin, &TokenVerdict { supply, ..known });
        let reply = world.server.get(&info).await;
        assert_eq!(reply.json()["holderCount"], 1);
        let source = reply.header("x-balance-source").unwrap().to_owned();
        (reply.json()["totalSupply"].clone(), source)
    };
    for told in [Some(failed()), None] {
        world.tell(told);
        assert_eq!(source(None).await, (by_events.clone(), "ledger".to_owned()));
        assert_eq!(source(Some(U256::from(7))).await, ("7".into(), "node".to_owned()));
    }
    world.tell(Some(Ok(U256::from(42))));
    assert_eq!(source(None).await, ("42".into(), "node".to_owned()));
}

fn six() -> TokenMetadata {
    TokenMetadata {
        name: Some("Asked".to_owned()),
        symbol: None,
        decimals: Some(6),
    }
}

/// Whole coins of a token that nobody asked for its decimals, or that said them on another branch: the node is asked, and
/// where it does not tell the answer is that it is not known yet. 400 is for tokens that have none.
#[tokio::test]
async fn decimals_that_are_not_known_yet_are_asked_for() {
    let (world, alone) = (World::start(true).await, World::start(false).await);
    let head = world.store.view().head().unwrap().number;
    let coin: Address = COIN.parse().unwrap();
    let later = "Data for the requested range is still being indexed";
    let targets = world.questions(COIN).map(|(target, field, ..)| {
        let sign = if target.contains('?') { '&' } else { '?' };
        (format!("{target}{sign}unit=coin"), field)
    });
    let orphaned = ToldMetadata {
        metadata: TokenMetadata::default(),
        anchor: Some(BlockId {
            number: 9,
            hash: B256::repeat_byte(9),
        }),
    };
    for round in 0..2 {
        if round == 1 {
            world.observed.put_metadata(&coin, &orphaned);
        }
        for exact in [true, false] {
            world.judge(exact);
            for (target, field) in &targets {
                // A node that is away; one that does not tell; none at all, when only an operator can change that.
                world.tell(None);
                let reply = world.server.get(target).await;
                assert_eq!(reply.header("retry-after"), Some("1"));
                reply.assert_error(503, later);
                if exact {
                    let reply = alone.server.get(target).await;
                    assert_eq!(reply.header("retry-after"), Some("3600"));
                    reply.assert_error(503, later);
                }
                world.tell(Some(Ok(U256::from(42_000_000))));
                *world.node.words.lock().unwrap() = None;
                world.server.get(target).await.assert_error(503, later);
                *world.node.words.lock().unwrap() = Some(six());
                let reply = world.server.get(target).await;
                assert_eq!(reply.status, 200, "{target}");
                assert_eq!(*world.node.asked_words.lock().unwrap(), Some(head));
                let source = if exact { "ledger" } else { "node" };
                assert_eq!(reply.header("x-balance-source"), Some(source));
                if !exact {
                    assert_eq!(reply.json()[*field], "42");
                }
                // Nothing of it is kept by a request.
                assert_ne!(world.observed.metadata(&coin), Some(six().into()));
                // It was asked and has none.
                *world.node.words.lock().unwrap() = Some(TokenMetadata::default());
                let reply = world.server.get(target).await;
                reply.assert_error(400, "Invalid unit parameter");
                // In its own units nobody needs to know.
                let plain = target.replace("unit=coin", "unit=base");
                assert_eq!(world.server.get(&plain).await.status, 200);
            }
        }
    }
}

/// What is said of a token as a whole is what is said of its supply alone, and its names where nobody asked for them yet.
#[tokio::test]
async fn the_supply_of_what_is_known_of_a_token_is_that_of_its_supply() {
    let world = World::start(true).await;
    let supply = format!("/api/token/{COIN}/total-supply");
    let info = format!("/api/token/info?contractaddress={COIN}");
    let agree = async |source: &str| {
        let (one, other) = (world.server.get(&supply).await, world.server.get(&info).await);
        assert_eq!((one.status, other.status), (200, 200));
        assert_eq!(one.json()["totalSupply"], other.json()["totalSupply"]);
        for reply in [&one, &other] {
            assert_eq!(reply.header("x-balance-source"), Some(source));
        }
        other.json()
    };
    world.tell(Some(Ok(U256::from(42))));
    *world.node.words.lock().unwrap() = Some(six());
    // Without a verdict, not exact, and exact; the names are asked for with it.
    let body = agree("node").await;
    assert_eq!(
        (&body["tokenName"], &body["decimals"], &body["totalSupply"]),
        (&"Asked".into(), &6.into(), &"42".into())
    );
    world.judge(false);
    agree("node").await;
    world.judge(true);
    assert_eq!(agree("ledger").await["tokenName"], "Asked");
    // A node that fails, or is not there: what is known, and that is nothing of its names.
    world.judge(false);
    *world.node.words.lock().unwrap() = None;
    for told in [Some(failed()), Some(Err(UpstreamError::TimedOut)), None] {
        world.tell(told);
        let reply = world.server.get(&info).await;
        let body = reply.json();
        assert_eq!((reply.status, &body["totalSupply"]), (200, &"1000".into()));
        assert!(body["tokenName"].is_null() && body["decimals"].is_null());
    }
    // One of the two is better than none.
    world.tell(Some(Ok(U256::from(43))));
    let body = world.server.get(&info).await.json();
    assert_eq!(
        (&body["totalSupply"], body["tokenName"].is_null()),
        (&"43".into(), true)
    );
    // Names that are known are not asked for.
    world.observed.put_metadata(&COIN.parse().unwrap(), &six().into());
    *world.node.asked_words.lock().unwrap() = None;
    assert_eq!(agree("node").await["tokenName"], "Asked");
    assert_eq!(*world.node.asked_words.lock().unwrap(), None);
}

/// A contract that destructed itself has no supply, whatever its events say, and T1, T5 and `tokeninfo` agree on that. Its holders are
/// those of its events, and so says the header.
#[tokio::test]
async fn a_contract_that_ended_has_no_supply() {
    let world = World::start(true).await;
    let coin: Address = COIN.parse().unwrap();
    let of_coin = |path: &str| format!("{path}contractaddress={COIN}");
    let supply = format!("/api/token/{COIN}/total-supply");
    let info = of_coin("/api/token/info?");
    let info_of_etherscan = of_coin("/api?module=token&action=tokeninfo&");
    let list = of_coin("/api/token/holder-list?");
    let count = of_coin("/api/token/holder-count?");
    world.observed.put_metadata(&coin, &six().into());
    world.judge(true);
    let (listed, counted) = (world.server.get(&list).await, world.server.get(&count).await);
    let by_events = world.server.get(&info).await.json()["totalSupply"].clone();
    // It refused to tell of anybody, and of its supply.
    let reader = Reader::new(world.store.view());
    let token = reader.token(&coin).unwrap().unwrap();
    let all = reader
        .holders(&token, &KeyPart::skipping(0, 10_000), None)
        .unwrap();
    let mut told: Vec<_> = all
        .holders
        .iter()
        .map(|&(holder, balance)| ToldBalance {
            holder,
            balance,
            block: 9,
        })
        .collect();
    let judge = |supply: Option<U256>| {
        let verdict = TokenVerdict {
            supply,
            ..world.verdict(false)
        };
        world.observed.put_verdict(&coin, &verdict);
    };
    judge(None);
    world.observed.put_balances(&coin, &told, Some((None, true)));
    world.tell(Some(Err(UpstreamError::Failed("0x is no number".to_owned()))));
    for code in ["\"0x\"", "\"\"", "null"] {
        *world.node.code.lock().unwrap() = Some(code);
        for target in [&supply, &info, &info_of_etherscan] {
            let reply = world.server.get(target).await;
            assert_eq!(reply.header("x-balance-source"), Some("node"), "{target}");
            let body = reply.json();
            let shown = body["result"].get(0).unwrap_or(&body);
            assert_eq!(shown["totalSupply"], "0", "{target}: {body}");
        }
    }
    // One that stands and does not tell.
    *world.node.code.lock().unwrap() = Some("\"0x60\"");
    let failed = world.server.get(&supply).await;
    failed.assert_error(502, "Failed to fetch token total supply");
    let reply = world.server.get(&info).await;
    assert_eq!(reply.header("x-balance-source"), Some("ledger"));
    assert_eq!(reply.json()["totalSupply"], by_events);
    let source = async |target: &str| {
        let reply = world.server.get(target).await;
        reply.header("x-balance-source").unwrap().to_owned()
    };
    let reply = world.server.get(&list).await;
    assert_eq!(reply.json(), listed.json());
    assert_eq!(reply.header("x-total-count"), listed.header("x-total-count"));
    assert_eq!(world.server.get(&count).await.json(), counted.json());
    assert_eq!(
        (source(&list).await, source(&count).await),
        ("ledger".into(), "ledger".into())
    );
    // It tells a supply, or a balance that no event explains.
    judge(Some(token.supply()));
    assert_eq!(
        (source(&list).await, source(&count).await),
        ("node".into(), "node".into())
    );
    judge(None);
    told.truncate(1);
    told[0].balance += U256::from(1);
    world.observed.put_balances(&coin, &told, None);
    assert_eq!(source(&list).await, "node");
}

/// What a node may yet show to be wrong lasts for ever in no cache, and what it has shown to be wrong is not confirmed.
#[tokio::test]
async fn a_past_balance_is_for_good_once_a_node_has_looked_at_the_ledger() {
    for configured in [true, false] {
        let world = World::start(configured).await;
        let reader = Reader::new(world.store.view());
        let miner = reader.block(9, false).unwrap().unwrap().block.header.beneficiary;
        let target = format!("/api/account/{miner:?}/balance-history?block=9");
        let lasts = |reply: &Reply| reply.header("cache-control").unwrap().contains("immutable");
        let judge = |exact: bool| {
            let verdict = world.verdict(exact);
            world.observed.put_verdict(&NATIVE_COIN, &verdict);
        };
        let reply = world.server.get(&target).await;
        assert_eq!(
            reply.header("x-balance-source"),
            Some("ledger"),
            "{}",
            reply.whole_body()
        );
        assert_eq!(lasts(&reply), !configured, "without a node nobody compares");
        let balance = |tag: &str| format!("/api?module=account&action=balance&address={miner:?}&tag={tag}");
        let by = async |tag: &str| lasts(&world.server.get(&balance(tag)).await);
        assert_eq!(by("0x9").await, !configured);
        assert_eq!(by("earliest").await, !configured);
        assert!(!by("finalized").await && !by("safe").await);
        let withdrawals =
            format!("/api?module=account&action=txsBeaconWithdrawal&address={miner:?}&endblock=9");
        assert_eq!(lasts(&world.server.get(&withdrawals).await), !configured);
        judge(true);
        assert!(lasts(&world.server.get(&withdrawals).await));
        assert!(by("0x9").await && by("earliest").await);
        assert!(!by("finalized").await && !by("safe").await);
        let reply = world.server.get(&target).await;
        assert!(lasts(&reply));
        let tag = reply.header("etag").unwrap();
        assert_eq!(world.server.get_unless(&target, tag).await.status, 304);
        let supply = "/api/stats/total-supply";
        assert_eq!(world.server.get(supply).await.status, 200);
        judge(false);
        // The sums of a ledger that is wrong are wrong for good; the node does not tell them.
        let withheld = world.server.get(supply).await;
        assert_eq!(withheld.header("retry-after"), Some("3600"));
        withheld.assert_error(503, "Data for the requested range is still being indexed");
        let status = world.server.get("/status").await.json();
        let because = "the ledger of native balances is wrong, see nativeLedger";
        assert_eq!(status["chains"]["mainnet"]["withheld"][0]["because"], because);
        world.tell(Some(Ok(U256::from(42))));
        let reply = world.server.get_unless(&target, tag).await;
        assert_eq!((reply.status, lasts(&reply)), (200, false));
        assert_eq!(reply.json()["balance"], "42");
    }
}
