//! Operations over a real store: 60 indexed blocks of a node that is at block 80.

use std::sync::Arc;

use quarry::api::{Chains, Settings, Upstream, UpstreamError, UpstreamFuture};
use quarry::app::front::front;
use quarry::desk::NodeReply;
use quarry::http::{Limits, Pool};
use quarry::model::token::TRANSFER;
use quarry::model::{Address, B256, Bundle, ChainName, Log, StaticRewards, Topics, U256};
use quarry::query::Reader;
use quarry::status::ChainStatus;
use quarry::store::{OpenOptions, Store};
use quarry::sync::derive::{NonceRules, derive};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::{Reply, Server, pool};
use crate::plain::{self, ChainConfig, account};

pub(crate) const HEAD: u64 = 59;
const NODE_HEAD: u64 = 80;

struct OneChain {
    store: Arc<Store>,
    status: Arc<ChainStatus>,
    node: Option<Arc<dyn Upstream>>,
    static_rewards: Option<Arc<StaticRewards>>,
    excluded: Arc<[Address]>,
}

/// What it tells of whatever it is asked, and of nonces where that is something else.
struct Node(Result<u64, UpstreamError>, Option<u64>);

impl Upstream for Node {
    fn transaction_count(&self, _: Address, _: u64) -> UpstreamFuture<'_, u64> {
        let answer = self.1.map_or_else(|| self.0.clone(), Ok);
        Box::pin(async { answer })
    }
    fn token_supply(&self, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        let answer = self.0.clone();
        Box::pin(async { answer.map(U256::from) })
    }
    fn token_balance(&self, _: Address, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        let answer = self.0.clone();
        Box::pin(async { answer.map(U256::from) })
    }
    fn balance(&self, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        let answer = self.0.clone();
        Box::pin(async { answer.map(U256::from) })
    }
    fn has_code(&self, _: Address, _: u64) -> UpstreamFuture<'_, bool> {
        Box::pin(async { Ok(false) })
    }
    fn call(&self, method: &'static str, params: Box<RawValue>) -> UpstreamFuture<'_, NodeReply> {
        let answer = self.0.clone();
        Box::pin(async move {
            let number = answer?;
            Ok(if method == "eth_call" {
                NodeReply::Error {
                    code: 3,
                    message: "execution reverted".to_owned(),
                    data: Some(params),
                }
            } else {
                let text = format!("{{\"{method}\":{number},\"params\":{params}}}");
                NodeReply::Result(RawValue::from_string(text).unwrap())
            })
        })
    }
}

impl Chains for OneChain {
    fn reader(&self, chain: ChainName) -> Option<Reader> {
        let view = self.store.view();
        let reader = || match &self.static_rewards {
            Some(stated) => Reader::with_rewards(view, Arc::clone(stated)),
            None => Reader::new(view),
        };
        (chain == ChainName::Mainnet).then(|| reader().with_not_circulating(Arc::clone(&self.excluded)))
    }
    fn status(&self, chain: ChainName) -> Option<Arc<ChainStatus>> {
        (chain == ChainName::Mainnet).then(|| Arc::clone(&self.status))
    }
    fn upstream(&self, _: ChainName) -> Option<Arc<dyn Upstream>> {
        self.node.clone()
    }
    fn store_bytes(&self, _: ChainName) -> u64 {
        12
    }
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) bundles: Vec<Bundle>,
    pub(crate) status: Arc<ChainStatus>,
    _directory: tempfile::TempDir,
}

/// What the node offers is passed on.
pub(crate) fn settings() -> Settings {
    Settings {
        rpc_passthrough: true,
        ..Settings::default()
    }
}

impl World {
    pub(crate) async fn start(blocks: u64, node: Option<Result<u64, UpstreamError>>) -> Self {
        Self::over(plain::chain(5, blocks, &ChainConfig::default()), node).await
    }

    /// A server over a store of these blocks.
    pub(crate) async fn over(bundles: Vec<Bundle>, node: Option<Result<u64, UpstreamError>>) -> Self {
        Self::of(bundles, node, None).await
    }

    /// The same, of a chain whose static rewards the operator states.
    pub(crate) async fn of(
        bundles: Vec<Bundle>,
        node: Option<Result<u64, UpstreamError>>,
        static_rewards: Option<&str>,
    ) -> Self {
        let rules = NonceRules {
            chain_id: 7,
            from_genesis: true,
            native: plain::native_rules(),
            ..NonceRules::default()
        };
        Self::ruled(bundles, node, static_rewards, rules).await
    }

    /// The same by these rules.
    pub(crate) async fn ruled(
        bundles: Vec<Bundle>,
        node: Option<Result<u64, UpstreamError>>,
        static_rewards: Option<&str>,
        rules: NonceRules,
    ) -> Self {
        let (directory, store) = Self::filled(&bundles, &rules);
        Self::serving(directory, store, bundles, node, static_rewards, &[]).await
    }

    /// A server over a store that begins with the first of these blocks, with a node that tells balances and nonces.
    pub(crate) async fn begun_later(
        bundles: Vec<Bundle>,
        balance: Result<u64, UpstreamError>,
        nonce: Option<u64>,
        rules: NonceRules,
    ) -> Self {
        let (directory, store) = Self::filled(&bundles, &rules);
        let node: Arc<dyn Upstream> = Arc::new(Node(balance, nonce));
        let under = (settings(), Limits::default(), pool());
        Self::beside(directory, store, bundles, Some(node), (None, &[]), under).await
    }

    /// A server over the usual chain with this node, these settings, limits and room.
    pub(crate) async fn with_node(
        node: Arc<dyn Upstream>,
        settings: Settings,
        limits: Limits,
        pool: Pool,
    ) -> Self {
        let bundles = plain::chain(5, HEAD + 1, &ChainConfig::default());
        let (directory, store) = Self::filled(&bundles, &NonceRules::default());
        let under = (settings, limits, pool);
        Self::beside(directory, store, bundles, Some(node), (None, &[]), under).await
    }

    /// A server over a store of these blocks by these rules, of which none is final.
    pub(crate) async fn not_final(
        bundles: Vec<Bundle>,
        node: Option<Result<u64, UpstreamError>>,
        rules: NonceRules,
    ) -> Self {
        let (directory, store) = Self::empty(&bundles);
        let mut writer = store.writer().unwrap();
        for bundle in &bundles {
            let mut batch = writer.batch();
            derive(bundle, &rules, &mut batch).unwrap();
            writer.commit_unfinal(batch).unwrap();
        }
        drop(writer);
        Self::serving(directory, store, bundles, node, None, &[]).await
    }

    /// A store that is to begin with the first of these blocks.
    fn empty(bundles: &[Bundle]) -> (tempfile::TempDir, Arc<Store>) {
        let directory = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            cache_bytes: 8 << 20,
            memtable_bytes: 8 << 20,
            ..OpenOptions::new(directory.path())
        };
        let first = bundles.first().map_or(0, |bundle| bundle.block.header.number);
        let store = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(first)).unwrap();
        (directory, store)
    }

    /// A store of these blocks by these rules.
    fn filled(bundles: &[Bundle], rules: &NonceRules) -> (tempfile::TempDir, Arc<Store>) {
        let (directory, store) = Self::empty(bundles);
        let mut writer = store.writer().unwrap();
        if !bundles.is_empty() {
            let mut batch = writer.batch();
            for bundle in bundles {
                derive(bundle, rules, &mut batch).unwrap();
            }
            writer.commit_final(batch).unwrap();
        }
        drop(writer);
        (directory, store)
    }

    /// A server over a store that holds these blocks, or some of them.
    pub(crate) async fn serving(
        directory: tempfile::TempDir,
        store: Arc<Store>,
        bundles: Vec<Bundle>,
        node: Option<Result<u64, UpstreamError>>,
        static_rewards: Option<&str>,
        excluded: &[Address],
    ) -> Self {
        let node = node.map(|answer| Arc::new(Node(answer, None)) as Arc<dyn Upstream>);
        let under = (settings(), Limits::default(), pool());
        Self::beside(directory, store, bundles, node, (static_rewards, excluded), under).await
    }

    async fn beside(
        directory: tempfile::TempDir,
        store: Arc<Store>,
        bundles: Vec<Bundle>,
        node: Option<Arc<dyn Upstream>>,
        (static_rewards, excluded): (Option<&str>, &[Address]),
        (settings, limits, pool): (Settings, Limits, Pool),
    ) -> Self {
        let status = Arc::new(ChainStatus::default());
        status.set_node_head(NODE_HEAD);
        status.set_blocks_per_second(2.0);
        let chains = OneChain {
            store,
            status: Arc::clone(&status),
            node,
            static_rewards: static_rewards.map(|text| Arc::new(text.parse().unwrap())),
            excluded: excluded.into(),
        };
        let front = Arc::new(front(Arc::new(chains), pool, settings));
        Self {
            server: Server::start(front, limits).await,
            bundles,
            status,
            _directory: directory,
        }
    }

    pub(crate) async fn get(&self, target: &str) -> (Reply, Value) {
        let reply = self.server.get(target).await;
        let value =
            serde_json::from_str(&reply.whole_body()).unwrap_or_else(|error| panic!("{target}: {error}"));
        (reply, value)
    }

    pub(crate) async fn json(&self, target: &str) -> Value {
        let (reply, value) = self.get(target).await;
        assert_eq!(reply.status, 200, "{target}: {}", reply.body);
        assert_eq!(reply.header("x-indexed-block-number"), Some("59"));
        let hash = const_hex::encode_prefixed(self.bundles[HEAD as usize].block.hash);
        assert_eq!(reply.header("x-indexed-block-hash"), Some(hash.as_str()));
        assert_eq!(reply.header("x-finalized-block-number"), Some("59"));
        value
    }

    /// An emitter with several logs, and how many.
    fn busiest(&self) -> (Address, usize) {
        let logs = || {
            self.bundles
                .iter()
                .flat_map(|bundle| &bundle.receipts)
                .flat_map(|receipt| &receipt.logs)
        };
        let count = |address: Address| logs().filter(|log| log.address == address).count();
        let address = logs()
            .map(|log| log.address)
            .max_by_key(|address| count(*address))
            .unwrap();
        (address, count(address))
    }
}

#[tokio::test]
async fn blocks_in_and_out_of_the_index() {
    let world = World::start(HEAD + 1, None).await;
    let block = |number: u64| format!("/api/block/{number}/transaction-count");
    let counts = world.json(&block(20)).await;
    assert_eq!(counts["txsCount"], world.bundles[20].block.transactions.len());
    assert!(counts["internalTxsCount"].is_u64());
    assert_eq!(counts.as_object().unwrap().len(), 2);
    let indexing = "Data for the requested range is still being indexed";
    world.server.get(&block(60)).await.assert_error(503, indexing);
    world.server.get(&block(80)).await.assert_error(503, indexing);
    let beyond = world.server.get(&block(81)).await;
    beyond.assert_error(404, "Block not found");
    assert_eq!(
        beyond.header("x-indexed-block-number"),
        Some("59"),
        "errors of a snapshot name it too"
    );
}

/// What is told of a block (T8, T9, A11, B1), by the node or without one: later, where the node has it and the index does not; never, above the
/// node's head.
#[tokio::test]
async fn a_block_above_the_index_is_told_later_or_is_none() {
    let (token, holder) = (account(900), account(901));
    let mut bundles = plain::chain(5, HEAD + 1, &ChainConfig::default());
    let place = (10..).find(|&place| !bundles[place].receipts.is_empty()).unwrap();
    let topics = [TRANSFER, B256::ZERO, holder.into_word()];
    bundles[place].receipts[0].logs.push(Log {
        address: token,
        topics: Topics::new(&topics).unwrap(),
        data: U256::from(1_234).to_be_bytes_vec().into(),
    });
    let supply = |block: u64| format!("/api/token/{token}/total-supply-history?block={block}");
    let held = |block: u64| {
        format!("/api/token/{holder}/total-balance-history?contractaddress={token}&block={block}")
    };
    let coins = |block: u64| format!("/api/account/{holder}/balance-history?block={block}");
    let counts = |block: u64| format!("/api/block/{block}/transaction-count");
    let of_dialect = |block: u64| {
        let of_token = format!("contractaddress={token}&blockno={block}");
        [
            format!("/api?module=stats&action=tokensupplyhistory&{of_token}"),
            format!("/api?module=account&action=tokenbalancehistory&address={holder}&{of_token}"),
            format!("/api?module=account&action=balancehistory&address={holder}&blockno={block}"),
        ]
    };
    let indexing = "Data for the requested range is still being indexed";
    for node in [None, Some(Ok(42))] {
        let world = World::over(bundles.clone(), node).await;
        for (block, amount) in [(place as u64 - 1, "0"), (place as u64, "1234"), (HEAD, "1234")] {
            for (target, field) in [(supply(block), "totalSupply"), (held(block), "balance")] {
                let found = world.json(&target).await;
                assert_eq!(
                    (&found["block"], &found[field]),
                    (&block.into(), &amount.into()),
                    "{target}"
                );
            }
        }
        for block in HEAD + 1..=NODE_HEAD {
            for target in [supply(block), held(block), coins(block), counts(block)] {
                let reply = world.server.get(&target).await;
                reply.assert_error(503, indexing);
                assert_eq!(reply.header("retry-after"), Some("1"), "{target}");
            }
            for target in of_dialect(block) {
                let (reply, body) = world.get(&target).await;
                assert_eq!(
                    (reply.status, reply.header("retry-after")),
                    (503, Some("1")),
                    "{target}"
                );
                let text = format!("Error! {indexing}");
                assert_eq!(
                    body,
                    serde_json::json!({"status": "0", "message": "NOTOK", "result": text})
                );
            }
        }
        for block in [NODE_HEAD + 1, u64::MAX] {
            for target in [supply(block), held(block), coins(block)] {
                let reply = world.server.get(&target).await;
                reply.assert_error(400, "Invalid block parameter");
            }
            let reply = world.server.get(&counts(block)).await;
            reply.assert_error(404, "Block not found");
            for target in of_dialect(block) {
                let (reply, body) = world.get(&target).await;
                assert_eq!(
                    (reply.status, &body["result"]),
                    (200, &"Error! Invalid blockno parameter".into()),
                    "{target}"
                );
            }
        }
    }
}

#[tokio::test]
async fn blocks_by_time() {
    let world = World::start(HEAD + 1, None).await;
    let time =
        |time: u64, closest: &str| format!("/api/block/timestamp/{time}/block-number?closest={closest}");
    // Blocks 9, 10 and 11 share a time.
    let shared = world.bundles[10].block.header.timestamp;
    let before = world.json(&time(shared, "before")).await;
    let text = format!(
        r#"{{"timestamp":"{shared}","closest":"before","chain":"mainnet","blockNumber":"11","blockTimestamp":"{shared}"}}"#
    );
    assert_eq!(before, serde_json::from_str::<Value>(&text).unwrap());
    assert_eq!(world.json(&time(shared, "after")).await["blockNumber"], "9");
    world
        .server
        .get(&time(1, "before"))
        .await
        .assert_error(404, "Block not found");
    let indexing = "Data for the requested range is still being indexed";
    world
        .server
        .get(&time(9_000_000_000, "before"))
        .await
        .assert_error(503, indexing);
    world
        .server
        .get(&time(9_000_000_000, "after"))
        .await
        .assert_error(503, indexing);
}

#[tokio::test]
async fn pages_of_logs_by_number_and_by_cursor_agree() {
    let world = World::start(HEAD + 1, None).await;
    let (address, count) = world.busiest();
    assert!(count > 20);
    let list = format!(
        "/api/logs/get-logs?address={}",
        address.to_string().to_uppercase().replace("0X", "0x")
    );
    let (reply, all) = world.get(&list).await;
    let all = all["logs"].as_array().unwrap().clone();
    assert_eq!(
        (all.len(), reply.header("x-total-count")),
        (count, Some(count.to_string().as_str()))
    );
    assert_eq!(reply.header("link"), None, "the last page names no next one");
    assert_eq!(all[0].as_object().unwrap().len(), 10);
    for sort in ["asc", "desc"] {
        let mut expected = all.clone();
        if sort == "desc" {
            expected.reverse();
        }
        let (mut by_page, mut by_cursor) = (Vec::new(), Vec::new());
        for page in 1..=count.div_ceil(7) {
            let (_, logs) = world
                .get(&format!("{list}&sort={sort}&offset=7&page={page}"))
                .await;
            by_page.extend(logs["logs"].as_array().unwrap().clone());
        }
        let mut next = Some(format!("{list}&sort={sort}&page=1&offset=7"));
        while let Some(target) = next {
            let (reply, logs) = world.get(&target).await;
            by_cursor.extend(logs["logs"].as_array().unwrap().clone());
            next = reply.next.inspect(|target| {
                assert!(
                    target.contains("offset=7") && !target.contains("page="),
                    "{target}"
                );
            });
        }
        assert_eq!(by_page, expected);
        assert_eq!(by_cursor, expected);
    }
    for beyond in [
        "page=100000&offset=10000",
        "page=18446744073709551615&offset=10000",
    ] {
        assert_eq!(
            world.get(&format!("{list}&{beyond}")).await.1["logs"]
                .as_array()
                .map(Vec::len),
            Some(0)
        );
    }
}

#[tokio::test]
async fn ranges_of_logs() {
    let world = World::start(HEAD + 1, None).await;
    let list = format!("/api/logs/get-logs?address={}", world.busiest().0);
    let all = world.json(&list).await;
    assert_eq!(
        world.json(&format!("{list}&fromblock=0&toblock=99999999")).await,
        all
    );
    assert_eq!(world.json(&format!("{list}&toblock=latest")).await, all);
    let ahead = world.get(&format!("{list}&fromblock=60")).await;
    assert_eq!(ahead.1, serde_json::json!({"logs": []}));
    assert_eq!(ahead.0.header("x-total-count"), Some("0"));
    let indexing = "Data for the requested range is still being indexed";
    world
        .server
        .get(&format!("{list}&toblock=60"))
        .await
        .assert_error(503, indexing);
    let forged = format!("{list}&cursor={}", "0".repeat(32));
    world
        .server
        .get(&forged)
        .await
        .assert_error(400, "Invalid cursor parameter");
}

#[tokio::test]
async fn transactions_and_the_proxy() {
    let world = World::start(HEAD + 1, None).await;
    let bundle = world
        .bundles
        .iter()
        .find(|bundle| bundle.receipts.iter().any(|r| !r.logs.is_empty()))
        .unwrap();
    let (transaction, receipt) = (&bundle.block.transactions[0], &bundle.receipts[0]);
    let (hash, number) = (transaction.hash, bundle.block.number());
    let status = world.json(&format!("/api/transaction/{hash}/status")).await;
    assert_eq!(
        status,
        serde_json::json!({"status": u8::from(receipt.status.unwrap()), "hash": hash.to_string()})
    );
    let unknown = B256::repeat_byte(9);
    let missing = world
        .server
        .get(&format!("/api/transaction/{unknown}/status"))
        .await;
    missing.assert_error(404, "Transaction not found");

    let proxy =
        async |query: String| world.json(&format!("/api/proxy?action={query}")).await["result"].clone();
    assert_eq!(proxy("eth_blockNumber".into()).await, "0x3b");
    let count = format!("{:#x}", bundle.block.transactions.len());
    assert_eq!(
        proxy(format!("eth_getBlockTransactionCountByNumber&tag={number:#x}")).await,
        count.as_str()
    );
    let block = proxy(format!("eth_getBlockByNumber&tag={number:#x}")).await;
    assert_eq!(block["transactions"][0], hash.to_string().as_str());
    let full = proxy(format!("eth_getBlockByNumber&tag={number:#x}&boolean=true")).await;
    let by_hash = proxy(format!("eth_getTransactionByHash&txhash={hash}")).await;
    assert_eq!(full["transactions"][0], by_hash);
    let by_place = proxy(format!(
        "eth_getTransactionByBlockNumberAndIndex&tag={number:#x}&index=0x0"
    ))
    .await;
    assert_eq!(by_place, by_hash);
    let shown = proxy(format!("eth_getTransactionReceipt&txhash={hash}")).await;
    assert_eq!(shown["logs"].as_array().map(Vec::len), Some(receipt.logs.len()));
    for (tag, expected) in [
        ("latest", "0x3b"),
        ("earliest", "0x0"),
        ("finalized", "0x3b"),
        ("safe", "0x3b"),
    ] {
        assert_eq!(
            proxy(format!("eth_getBlockByNumber&tag={tag}")).await["number"],
            expected,
            "{tag}"
        );
    }
    for nothing in [
        "eth_getBlockByNumber&tag=0x3c".to_owned(),
        "eth_getBlockTransactionCountByNumber&tag=0xffff".to_owned(),
        format!("eth_getTransactionByHash&txhash={unknown}"),
        format!("eth_getTransactionReceipt&txhash={unknown}"),
        format!("eth_getTransactionByBlockNumberAndIndex&tag={number:#x}&index=0xffffffffffffffff"),
    ] {
        assert_eq!(proxy(nothing.clone()).await, Value::Null, "{nothing}");
    }
    let above = format!(
        "/api/proxy?action=eth_getTransactionCount&address={}&tag=0x3c",
        account(1)
    );
    world
        .server
        .get(&above)
        .await
        .assert_error(400, "Invalid tag parameter");
}

#[tokio::test]
async fn nonces_from_the_store_and_from_the_node() {
    let stranger = format!(
        "/api/proxy?action=eth_getTransactionCount&address={}",
        Address::repeat_byte(0x77)
    );
    // Nobody told what the genesis block gave: it may have given a nonce.
    let untold = async |node| {
        let mut native = plain::native_rules();
        native.allocation = None;
        let rules = NonceRules {
            chain_id: 7,
            from_genesis: true,
            native,
            ..NonceRules::default()
        };
        let bundles = plain::chain(5, HEAD + 1, &ChainConfig::default());
        World::ruled(bundles, node, None, rules).await
    };
    let world = untold(Some(Ok(300))).await;
    let (reply, value) = world.get(&stranger).await;
    assert_eq!(
        (reply.header("x-nonce-source"), &value["result"]),
        (Some("node"), &Value::from("0x12c"))
    );
    let sender = world
        .bundles
        .iter()
        .find_map(|bundle| bundle.block.transactions.first())
        .unwrap()
        .from;
    let known = format!("/api/proxy?action=eth_getTransactionCount&address={sender}");
    assert_eq!(world.get(&known).await.0.header("x-nonce-source"), Some("ledger"));
    // The last transaction of an account may be one that a bridge made in its name, with a number of its own.
    let last = world
        .bundles
        .iter()
        .flat_map(|bundle| &bundle.block.transactions)
        .rfind(|transaction| transaction.from == sender)
        .unwrap()
        .hash;
    for (kind, gas) in [(0x7e, 21_000), (0, 0)] {
        let mut bundles = world.bundles.clone();
        let transactions = bundles
            .iter_mut()
            .flat_map(|bundle| &mut bundle.block.transactions);
        for transaction in transactions.filter(|transaction| transaction.hash == last) {
            (transaction.kind, transaction.gas) = (kind, gas);
        }
        let bridged = World::ruled(bundles, Some(Ok(300)), None, NonceRules::default()).await;
        let (reply, value) = bridged.get(&known).await;
        assert_eq!(
            (reply.header("x-nonce-source"), &value["result"]),
            (Some("node"), &Value::from("0x12c"))
        );
    }
    for (told, code) in [
        (UpstreamError::Failed("refused".to_owned()), 502),
        (UpstreamError::TimedOut, 504),
    ] {
        let failing = untold(Some(Err(told.clone()))).await;
        failing
            .server
            .get(&stranger)
            .await
            .assert_error(code, "Upstream node error");
        // Where it is known, nobody need be asked.
        let known = World::start(HEAD + 1, Some(Err(told))).await;
        let (reply, value) = known.get(&stranger).await;
        assert_eq!(
            (reply.header("x-nonce-source"), &value["result"]),
            (Some("ledger"), &Value::from("0x0"))
        );
    }
}

#[tokio::test]
async fn an_empty_store_answers_later() {
    let world = World::start(0, None).await;
    let indexing = "Data for the requested range is still being indexed";
    for target in [
        "/api/proxy?action=eth_blockNumber".to_owned(),
        "/api/block/0/transaction-count".to_owned(),
        format!("/api/logs/get-logs?address={}", account(1)),
    ] {
        world.server.get(&target).await.assert_error(503, indexing);
    }
    let (reply, ready) = world.get("/ready").await;
    assert_eq!(
        (reply.status, &ready["chains"]["mainnet"]["lag"]),
        (503, &Value::Null)
    );
    assert_eq!(
        world.get("/status").await.1["chains"]["mainnet"]["verified"],
        serde_json::json!([])
    );
}

#[tokio::test]
async fn reports() {
    let world = World::start(HEAD + 1, None).await;
    let (reply, ready) = world.get("/ready").await;
    assert_eq!(
        (reply.status, &ready["chains"]["mainnet"]["lag"]),
        (503, &Value::from(21))
    );
    let status = world.get("/status").await.1["chains"]["mainnet"].clone();
    for (name, expected) in [
        ("nodeHead", serde_json::json!(80)),
        ("indexed", serde_json::json!(59)),
        ("finalized", serde_json::json!(59)),
        ("lag", serde_json::json!(21)),
        ("rate", serde_json::json!(2.0)),
        ("etaSeconds", serde_json::json!(11)),
        ("verified", serde_json::json!([{"from": 0, "to": 59}])),
        ("trusted", serde_json::json!([])),
        ("storeBytes", serde_json::json!(12)),
        ("traces", serde_json::json!(true)),
        ("nodeUp", serde_json::json!(false)),
        ("following", serde_json::json!(false)),
        ("message", serde_json::json!("")),
        ("reorgs", serde_json::json!(0)),
        ("verificationFailures", serde_json::json!(0)),
    ] {
        assert_eq!(status[name], expected, "{name}");
    }
    // Ten blocks have to get their call frames first, at the same rate.
    world.status.fill(60, 69);
    let (_, status) = world.get("/status").await;
    assert_eq!(status["chains"]["mainnet"]["etaSeconds"], 16);
}
