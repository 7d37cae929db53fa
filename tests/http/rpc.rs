//! JSON-RPC over 60 indexed blocks of a node that is at block 80.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quarry::api::{Settings, Upstream, UpstreamError, UpstreamFuture};
use quarry::desk::NodeReply;
use quarry::http::{Limits, Pool, PoolLimits};
use quarry::model::{Address, B256, Bundle, Frame, FrameKind, TransactionTrace, U256};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::chain::{HEAD, World, settings};
use crate::client::pool;
use crate::lists;
use crate::plain::{self, ChainConfig};
use crate::rewards::eras;

async fn rpc(world: &World, method: &str, params: Value) -> Result<Value, (i64, String)> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let reply = world.server.post("/rpc", &body.to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    let mut answer: Value = serde_json::from_str(&reply.whole_body()).unwrap();
    match answer.get("error") {
        Some(error) => Err((
            error["code"].as_i64().unwrap(),
            error["message"].as_str().unwrap().to_owned(),
        )),
        None => Ok(answer["result"].take()),
    }
}

const INDEXING: &str = "Data for the requested range is still being indexed";

#[tokio::test]
async fn blocks_that_are_not_indexed() {
    let world = World::start(HEAD + 1, None).await;
    let indexing = Err((-32002, INDEXING.to_owned()));
    assert_eq!(rpc(&world, "eth_blockNumber", json!([])).await, Ok(json!("0x3b")));
    let syncing = json!({"startingBlock": "0x0", "currentBlock": "0x3b", "highestBlock": "0x50"});
    assert_eq!(rpc(&world, "eth_syncing", json!([])).await, Ok(syncing));
    for number in ["0x3c", "0x50", "0x51"] {
        for method in ["eth_getBlockByNumber", "eth_getBlockReceipts", "trace_block"] {
            let found = rpc(&world, method, json!([number])).await;
            assert_eq!(found, Ok(Value::Null), "{method} {number}");
        }
    }
    let logs = |from: &str, to: &str| json!([{"fromBlock": from, "toBlock": to}]);
    assert_eq!(rpc(&world, "eth_getLogs", logs("0x0", "0x46")).await, indexing);
    let whole = rpc(&world, "eth_getLogs", logs("0x0", "0x3b")).await.unwrap();
    let bundles = world.bundles.iter().flat_map(|bundle| &bundle.receipts);
    let count: usize = bundles.map(|receipt| receipt.logs.len()).sum();
    assert_eq!(whole.as_array().unwrap().len(), count);
    assert_eq!(
        rpc(&world, "eth_getLogs", logs("0x0", "0x51")).await.unwrap(),
        whole
    );
    assert_eq!(
        rpc(&world, "eth_getLogs", logs("0x3c", "latest")).await,
        Ok(json!([]))
    );
    assert_eq!(rpc(&world, "trace_filter", logs("0x0", "0x46")).await, indexing);
    let account = format!("{:?}", crate::plain::account(1));
    let balance = |block: &str| json!([account, block]);
    let unknown = Err((-32001, "Block not found".to_owned()));
    for method in ["eth_getBalance", "eth_getTransactionCount", "ots_hasCode"] {
        assert_eq!(rpc(&world, method, balance("0x3c")).await, indexing, "{method}");
        assert_eq!(rpc(&world, method, balance("0x50")).await, indexing, "{method}");
        assert_eq!(rpc(&world, method, balance("0x51")).await, unknown, "{method}");
    }
}

#[tokio::test]
async fn the_node_is_asked_as_it_is() {
    let world = World::start(HEAD + 1, Some(Ok(7))).await;
    let params = json!([{"to": "0x00"}, "latest"]);
    let code = rpc(&world, "eth_getCode", params.clone()).await.unwrap();
    assert_eq!(code, json!({"eth_getCode": 7, "params": params}));
    let none = rpc(&world, "eth_gasPrice", Value::Null).await.unwrap();
    assert_eq!(none, json!({"eth_gasPrice": 7, "params": []}));
    // Answers of the node stand among those of the store, in order.
    let calls = [
        "eth_chainId",
        "eth_call",
        "eth_gasPrice",
        "eth_blockNumber",
        "eth_sendRawTransaction",
    ];
    let calls = calls.iter().enumerate();
    let batch: Value = calls
        .map(|(id, method)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": []}))
        .collect();
    let reply = world.server.post("/rpc", &batch.to_string()).await;
    let answers: Vec<Value> = serde_json::from_str(&reply.whole_body()).unwrap();
    assert_eq!(answers[0]["result"], "0x7");
    let reverted = json!({"code": 3, "message": "execution reverted", "data": []});
    assert_eq!(answers[1], json!({"jsonrpc": "2.0", "id": 1, "error": reverted}));
    assert_eq!(answers[2]["result"]["eth_gasPrice"], 7);
    assert_eq!(answers[3]["result"], "0x3b");
    assert_eq!(answers[4]["error"]["code"], -32601);
    assert!(reply.header("x-indexed-block-hash").is_some());
}

#[tokio::test]
async fn a_node_that_fails_is_said_without_its_words() {
    let secret = UpstreamError::Failed("http://user:secret@node".to_owned());
    for (node, text) in [
        (Some(Err(secret)), "Upstream node error"),
        (Some(Err(UpstreamError::TimedOut)), "Upstream node error"),
        (None, "The node cannot be reached"),
    ] {
        let world = World::start(HEAD + 1, node).await;
        let (_, found) = rpc(&world, "eth_gasPrice", json!([])).await.unwrap_err();
        assert_eq!(found, text);
        assert_eq!(rpc(&world, "eth_chainId", json!([])).await, Ok(json!("0x7")));
    }
}

/// Blocks whose transactions and calls create contracts, some of them in vain.
fn creating() -> Vec<Bundle> {
    let mut bundles = plain::chain(5, HEAD + 1, &ChainConfig::default());
    lists::vary(&mut bundles, 5);
    for bundle in &mut bundles {
        let traces = bundle.traces.iter_mut().flatten();
        for (receipt, trace) in bundle.receipts.iter().zip(traces) {
            let top = &mut trace.frames[0];
            if let Some(created) = receipt.contract_address {
                top.kind = FrameKind::Create;
                top.to = top.error.is_none().then_some(created);
            }
        }
    }
    bundles
}

#[tokio::test]
async fn creations_that_failed() {
    let world = World::over(creating(), None).await;
    let failed = |frame: &Frame| frame.kind.is_creation() && frame.error.is_some();
    let (mut at_the_top, mut below, mut made) = (0, 0, 0);
    for bundle in &world.bundles {
        let traces = bundle.traces.iter().flatten();
        for (transaction, trace) in bundle.block.transactions.iter().zip(traces) {
            let hash = json!([transaction.hash.to_string()]);
            let traced = rpc(&world, "trace_transaction", hash.clone()).await.unwrap();
            let calls = rpc(&world, "ots_traceTransaction", hash.clone()).await.unwrap();
            for (place, frame) in trace.frames.iter().enumerate() {
                let (trace, call) = (&traced[place], &calls[place]);
                if failed(frame) {
                    // No node gives a creation's result without an address, and clients refuse it.
                    assert_eq!(trace["result"], Value::Null, "{trace}");
                    assert!(trace["error"].is_string(), "{trace}");
                    let to = if frame.path.is_empty() {
                        at_the_top += 1;
                        transaction.from.create(transaction.nonce)
                    } else {
                        below += 1;
                        Address::ZERO
                    };
                    assert_eq!(call["to"], const_hex::encode_prefixed(to), "{call}");
                } else if frame.kind.is_creation() {
                    let to = const_hex::encode_prefixed(frame.to.unwrap());
                    assert_eq!(
                        (&trace["result"]["address"], &call["to"]),
                        (&json!(to), &json!(to))
                    );
                    made += 1;
                }
            }
            // What made nothing is no operation.
            let operations = rpc(&world, "ots_getInternalOperations", hash).await.unwrap();
            let operations = operations.as_array().unwrap();
            let frames = trace.frames.iter();
            let expected = frames.filter(|frame| frame.is_internal_transaction() && !failed(frame));
            assert_eq!(operations.len(), expected.count());
            assert!(operations.iter().all(|operation| operation["to"].is_string()));
        }
    }
    assert!(
        at_the_top > 1 && below > 9 && made > 9,
        "{at_the_top} {below} {made}"
    );
}

/// A node whose answers are so long and take so long.
struct Ponderous {
    bytes: usize,
    /// Whether it answers by an error object.
    fails: bool,
    after: Duration,
    asked: AtomicUsize,
}

impl Ponderous {
    fn new(bytes: usize, fails: bool, after: Duration) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            fails,
            after,
            asked: AtomicUsize::new(0),
        })
    }
}

impl Upstream for Ponderous {
    fn transaction_count(&self, _: Address, _: u64) -> UpstreamFuture<'_, u64> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            tokio::time::sleep(self.after).await;
            Ok(3)
        })
    }
    fn token_supply(&self, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        Box::pin(async { Err(UpstreamError::TimedOut) })
    }
    fn token_balance(&self, _: Address, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        Box::pin(async { Err(UpstreamError::TimedOut) })
    }
    fn balance(&self, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        Box::pin(async { Err(UpstreamError::TimedOut) })
    }
    fn call(&self, _: &'static str, _: Box<RawValue>) -> UpstreamFuture<'_, NodeReply> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            tokio::time::sleep(self.after).await;
            let text = RawValue::from_string(format!("\"{}\"", "7".repeat(self.bytes))).unwrap();
            Ok(if self.fails {
                NodeReply::Error {
                    code: 3,
                    message: "execution reverted".to_owned(),
                    data: Some(text),
                }
            } else {
                NodeReply::Result(text)
            })
        })
    }
}

/// A batch of so many calls.
fn batch_of(count: usize, method: &str, params: &Value) -> String {
    let calls = (0..count).map(|id| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    Value::from_iter(calls).to_string()
}

/// The answers to a batch, and how many of them come before all others were refused as too many.
async fn answered(world: &World, batch: &str) -> (Vec<Value>, usize) {
    let reply = world.server.post("/rpc", batch).await;
    assert_eq!(reply.status, 200, "{:.300}", reply.body);
    let answers: Vec<Value> = serde_json::from_str(&reply.whole_body()).unwrap();
    let too_large = json!({"code": -32005, "message": "The batch is too large: ask for less at once"});
    let is_refused = |answer: &&Value| answer["error"] == too_large;
    let count = answers.iter().take_while(|answer| !is_refused(answer)).count();
    assert!(answers[count..].iter().all(|answer| is_refused(&answer)));
    assert!(answers.iter().enumerate().all(|(id, answer)| answer["id"] == id));
    (answers, count)
}

#[tokio::test]
async fn a_batch_holds_no_more_of_the_nodes_answers_than_may_be() {
    for (fails, place) in [(false, "/result"), (true, "/error/data")] {
        let node = Ponderous::new(1 << 20, fails, Duration::ZERO);
        let world = World::with_node(node.clone(), settings(), Limits::default(), pool()).await;
        let (answers, count) = answered(&world, &batch_of(200, "eth_call", &json!([]))).await;
        assert_eq!(answers.len(), 200);
        // Those that were under way when there was enough come, too.
        assert!((33..=40).contains(&count), "{count}");
        assert_eq!(node.asked.load(Ordering::Relaxed), count);
        for answer in &answers[..count] {
            let text = answer.pointer(place).and_then(Value::as_str).unwrap();
            assert_eq!(text.len(), 1 << 20);
        }
    }
}

#[tokio::test]
async fn a_batch_asks_the_node_no_more_once_there_is_no_room_for_answers() {
    let room = Pool::new(PoolLimits {
        unsent_bytes_max: 8 << 20,
        ..PoolLimits::default()
    });
    let node = Ponderous::new(1 << 20, false, Duration::ZERO);
    let world = World::with_node(node.clone(), settings(), Limits::default(), room.unwrap()).await;
    let reply = world
        .server
        .post("/rpc", &batch_of(40, "eth_call", &json!([])))
        .await;
    let answers: Vec<Value> = serde_json::from_str(&reply.whole_body()).unwrap();
    let count = answers
        .iter()
        .take_while(|answer| answer["result"].is_string())
        .count();
    // Half of the room is taken by then, all of it by one connection; seven were under way.
    assert!((4..=12).contains(&count), "{count}");
    assert_eq!(node.asked.load(Ordering::Relaxed), count);
    for refused in &answers[count..] {
        let text = refused["error"]["message"].as_str().unwrap();
        assert!(text.starts_with("Too many long answers are being sent"), "{text}");
        assert_eq!(refused["error"]["code"], -32002);
    }
}

#[tokio::test]
async fn a_batch_is_answered_as_far_as_it_comes_while_the_node_is_slow() {
    let settings = Settings {
        batch_time_max: Duration::from_secs(1),
        ..settings()
    };
    let limits = Limits {
        answer_timeout: Duration::from_secs(3),
        ..Limits::default()
    };
    // Ten rounds of eight would take seven seconds.
    let slow = || Ponderous::new(10, false, Duration::from_millis(700));
    for (method, params) in [
        ("eth_call", json!([])),
        ("eth_getTransactionCount", json!([Address::repeat_byte(0x77)])),
    ] {
        let node = slow();
        let world = World::with_node(node.clone(), settings.clone(), limits.clone(), pool()).await;
        let (answers, count) = answered(&world, &batch_of(80, method, &params)).await;
        assert_eq!(answers.len(), 80);
        assert!((8..=24).contains(&count), "{method}: {count}");
        assert_eq!(node.asked.load(Ordering::Relaxed), count);
        assert!(answers[..count].iter().all(|answer| answer["result"].is_string()));
    }
}

#[tokio::test]
async fn whether_there_is_code_is_the_nodes_to_judge() {
    // It says that there is none; what it tells of `eth_getCode` is no code at all.
    let world = World::start(HEAD + 1, Some(Ok(7))).await;
    let account = format!("{:?}", plain::account(1));
    for block in ["latest", "0x0", "finalized"] {
        assert_eq!(
            rpc(&world, "ots_hasCode", json!([account, block])).await,
            Ok(json!(false)),
            "{block}"
        );
    }
}

#[tokio::test]
async fn a_creation_that_an_ancestor_undid_has_no_recipient_whatever_is_filtered_by() {
    let [sender, factory, made] = [0x51, 0x52, 0x53].map(Address::repeat_byte);
    let mut bundles = plain::chain(5, HEAD + 1, &ChainConfig::default());
    let bundle = bundles
        .iter_mut()
        .rfind(|bundle| !bundle.block.transactions.is_empty())
        .unwrap();
    let number = format!("0x{:x}", bundle.block.number());
    let top = Frame {
        from: sender,
        to: Some(factory),
        error: Some("reverted".to_owned()),
        reverted: true,
        ..Frame::default()
    };
    let creation = Frame {
        kind: FrameKind::Create,
        path: vec![0],
        from: factory,
        to: Some(made),
        // It did what it was to do; its caller did not.
        reverted: true,
        ..Frame::default()
    };
    bundle.block.transactions[0].from = sender;
    bundle.block.transactions[0].to = Some(factory);
    bundle.receipts[0].status = Some(false);
    bundle.receipts[0].contract_address = None;
    bundle.traces.as_mut().unwrap()[0] = TransactionTrace {
        frames: vec![top, creation],
    };
    let world = World::over(bundles, None).await;
    let shown = rpc(&world, "trace_block", json!([number])).await.unwrap();
    let shown = shown.as_array().unwrap();
    let creation = shown
        .iter()
        .find(|trace| trace["type"] == "create" && trace["action"]["from"] == json!(factory))
        .unwrap();
    assert_eq!(creation["result"]["address"], json!(made));
    let filtered = async |filter: Value| {
        let found = rpc(&world, "trace_filter", json!([filter])).await.unwrap();
        found.as_array().unwrap().clone()
    };
    assert_eq!(filtered(json!({"toAddress": [made]})).await, Vec::<Value>::new());
    let both = json!({"fromAddress": [factory], "toAddress": [made], "mode": "intersection"});
    assert_eq!(filtered(both).await, Vec::<Value>::new());
    // Who made it is in it all the same.
    let made_it = json!({"fromAddress": [factory]});
    assert_eq!(filtered(made_it).await, std::slice::from_ref(creation));
    let either = json!({"fromAddress": [factory], "toAddress": [made]});
    assert_eq!(filtered(either).await, std::slice::from_ref(creation));
}

#[tokio::test]
async fn traces_that_are_to_be_left_out_are_passed_over_by_their_number() {
    let mut bundles = plain::chain(5, HEAD + 1, &ChainConfig::default());
    lists::vary(&mut bundles, 5);
    let world = World::over(bundles, None).await;
    let rows = async || {
        let page = world.server.get("/metrics").await.whole_body();
        let line = r#"quarry_store_visits_total{operation="rpc:trace_filter",kind="rows"} "#;
        let found = page.lines().find_map(|text| text.strip_prefix(line));
        found.map_or(0, |found| found.parse::<u64>().unwrap())
    };
    let filtered = async |filter: Value| {
        let found = rpc(&world, "trace_filter", json!([filter])).await.unwrap();
        found.as_array().unwrap().clone()
    };
    let blocks = json!({"fromBlock": "0x7", "toBlock": "0x38"});
    let all = filtered(blocks.clone()).await;
    assert!(all.len() > 300, "{}", all.len());
    let from = |after: u64, count: u64| {
        let mut filter = blocks.clone();
        (filter["after"], filter["count"]) = (json!(after), json!(count));
        filter
    };
    for after in (0..all.len() + 2).step_by(3) {
        let before = rows().await;
        let found = filtered(from(after as u64, 2)).await;
        let expected: Vec<Value> = all.iter().skip(after).take(2).cloned().collect();
        assert_eq!(found, expected, "{after}");
        // Some of a block, and the transactions of these two.
        let read = rows().await - before;
        assert!(read < 100, "{read} rows for {after}");
    }
    let before = rows().await;
    for after in [all.len() as u64, u64::MAX] {
        assert_eq!(filtered(from(after, 5)).await, Vec::<Value>::new());
    }
    assert_eq!(rows().await, before);
    // Up to the last one.
    let rest = filtered(from(all.len() as u64 - 7, u64::MAX)).await;
    assert_eq!(rest, all[all.len() - 7..]);
}

/// A chain in which an account sends a megabyte in each of some blocks, and nothing of note in another; with the hashes of what it sends,
/// the newest first.
fn heavy() -> (Vec<Bundle>, Address, Vec<Value>) {
    let account = Address::repeat_byte(0x61);
    let mut bundles = plain::chain(5, HEAD + 1, &ChainConfig::default());
    let mut sent = Vec::new();
    for bundle in &mut bundles {
        let number = bundle.block.number();
        // Of these the last one has two transactions of the account.
        let count = if number >= 50 { 2 } else { 1 };
        if (20..=50).contains(&number) {
            for transaction in bundle.block.transactions.iter_mut().take(count) {
                transaction.from = account;
                transaction.input = vec![9; 1 << 20].into();
                sent.push((number, json!(transaction.hash)));
            }
        }
    }
    sent.reverse();
    (bundles, account, sent.into_iter().map(|(_, hash)| hash).collect())
}

#[tokio::test]
async fn pages_of_a_search_end_with_a_block_once_their_text_is_long() {
    let (bundles, account, sent) = heavy();
    let world = World::over(bundles, None).await;
    assert!(sent.len() > 15, "{}", sent.len());
    for (method, is_before) in [
        ("ots_searchTransactionsBefore", true),
        ("ots_searchTransactionsAfter", false),
    ] {
        let (mut found, mut pages, mut block) = (Vec::new(), 0, json!(0));
        loop {
            let page = rpc(&world, method, json!([account, block, 500])).await.unwrap();
            let hashes: Vec<Value> = page["txs"]
                .as_array()
                .unwrap()
                .iter()
                .map(|tx| tx["hash"].clone())
                .collect();
            // Each has two megabytes of text: four, and the rest of a block.
            assert!((1..=5).contains(&hashes.len()), "{}", hashes.len());
            assert_eq!(page["receipts"].as_array().unwrap().len(), hashes.len());
            let [begins, ends] = if is_before {
                ["firstPage", "lastPage"]
            } else {
                ["lastPage", "firstPage"]
            };
            assert_eq!(page[begins], pages == 0, "{method}, page {pages}");
            pages += 1;
            let place = if is_before { hashes.len() - 1 } else { 0 };
            block = page["txs"][place]["blockNumber"].clone();
            if is_before {
                found.extend(hashes);
            } else {
                found.splice(0..0, hashes);
            }
            assert_eq!(page[ends], found.len() == sent.len(), "{method}, page {pages}");
            if page[ends] == true {
                break;
            }
        }
        assert_eq!(found, sent, "{method}");
        assert!(pages > 3, "{pages}");
    }
    // What is short is as it was asked for.
    let page = rpc(&world, "ots_searchTransactionsBefore", json!([account, 0, 1]))
        .await
        .unwrap();
    assert_eq!(
        page["txs"].as_array().unwrap().len(),
        1 + usize::from(page["txs"][0]["blockNumber"] == "0x32")
    );
}

#[tokio::test]
async fn uncles_are_told_without_a_node_in_either_dialect() {
    let mut bundles = eras(3);
    let uncles = bundles
        .iter_mut()
        .flat_map(|bundle| &mut bundle.block.uncle_headers);
    uncles.for_each(|uncle| uncle.parent_hash = B256::repeat_byte(8));
    // Of this block they did not come.
    let bare = bundles
        .iter()
        .rposition(|bundle| !bundle.block.uncles.is_empty())
        .unwrap();
    bundles[bare].block.uncle_headers.clear();
    let world = World::of(bundles, None, None).await;
    let mut told = 0;
    for (number, bundle) in world.bundles.iter().enumerate() {
        let tag = format!("0x{:x}", bundle.block.number());
        for index in 0..=bundle.block.uncles.len() {
            let place = format!("0x{index:x}");
            let expected = rpc(&world, "eth_getUncleByBlockNumberAndIndex", json!([tag, place])).await;
            let query =
                format!("module=proxy&action=eth_getUncleByBlockNumberAndIndex&tag={tag}&index={place}");
            let (reply, found) = world.get(&format!("/api?{query}")).await;
            if number == bare && index < bundle.block.uncles.len() {
                assert_eq!(expected, Err((-32002, INDEXING.to_owned())));
                let refused =
                    json!({"status": "0", "message": "NOTOK", "result": format!("Error! {INDEXING}")});
                assert_eq!((reply.status, found), (503, refused), "{query}");
                continue;
            }
            let uncle = expected.unwrap();
            let hash = bundle.block.uncles.get(index);
            assert_eq!(uncle["hash"], json!(hash), "{query}");
            told += usize::from(hash.is_some());
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": uncle});
            assert_eq!((reply.status, found), (200, answer), "{query}");
        }
    }
    assert!(told > 10, "{told}");
    let latest = world
        .json("/api?module=proxy&action=eth_getUncleByBlockNumberAndIndex&index=0x0")
        .await;
    assert_eq!(latest["result"], Value::Null);
    let (_, wrong) = world
        .get("/api?module=proxy&action=eth_getUncleByBlockNumberAndIndex&tag=0x9&index=1")
        .await;
    assert_eq!(wrong["error"]["message"], "Invalid index parameter", "{wrong}");
}
