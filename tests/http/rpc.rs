//! JSON-RPC over 60 indexed blocks of a node that is at block 80.

use quarry::api::UpstreamError;
use quarry::model::{Address, Bundle, Frame, FrameKind};
use serde_json::{Value, json};

use crate::chain::{HEAD, World};
use crate::lists;
use crate::plain::{self, ChainConfig};

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
