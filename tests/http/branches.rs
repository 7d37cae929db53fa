//! What the node is asked for is of the chain that the headers name, also while a reorg is on its way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quarry::http::Limits;
use quarry::model::{B256, BlockId};
use serde_json::json;

use crate::client::{Reply, Server};
use crate::mined::Mined;

/// An account of which only the node knows.
const TARGET: &str =
    "/api/proxy?action=eth_getTransactionCount&tag=latest&address=0x7777777777777777777777777777777777777777";

fn newest(mined: &Mined) -> BlockId {
    let block = &mined.bundles.last().unwrap().block;
    BlockId {
        number: block.number(),
        hash: block.hash,
    }
}

#[tokio::test]
async fn an_answer_of_the_node_is_of_the_branch_that_the_headers_name() {
    let mut mined = Mined::without_allocation(3).await;
    mined.mine(1);
    let old = newest(&mined);
    let reply = mined.server.get(TARGET).await;
    assert_eq!(
        (reply.status, reply.header("x-nonce-source")),
        (200, Some("node"))
    );
    assert_eq!(mined.node.compared.swap(0, Ordering::Relaxed), 1);

    // The node goes over to another branch, the index follows while a client waits.
    let number = old.number;
    mined.unwind();
    mined.mine(2);
    let new = newest(&mined);
    assert_ne!(new, old);
    mined.unwind();
    mined.mine(1);
    assert_eq!(newest(&mined), old);
    *mined.node.branch.lock().unwrap() = Some(new);
    let server = Arc::clone(&mined.server);
    let asked = tokio::spawn(async move { server.get(TARGET).await });
    let node = Arc::clone(&mined.node);
    while node.compared.load(Ordering::Relaxed) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    mined.unwind();
    mined.mine(2);
    let reply = asked.await.unwrap();
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.header("x-indexed-block-hash"),
        Some(format!("{:?}", new.hash).as_str())
    );

    // It stays on a branch that nobody else sees.
    let lost = BlockId {
        number,
        hash: B256::repeat_byte(9),
    };
    *mined.node.branch.lock().unwrap() = Some(lost);
    let reply = mined.server.get(TARGET).await;
    assert!(reply.header("retry-after").is_some());
    reply.assert_error(503, "Data for the requested range is still being indexed");

    // A final block is the same on all of them.
    mined.finalize(number);
    mined.node.compared.store(0, Ordering::Relaxed);
    assert_eq!(mined.server.get(TARGET).await.status, 200);
    assert_eq!(mined.node.compared.load(Ordering::Relaxed), 0);
}

/// The answer to a call of JSON-RPC about that account, alone or the only one of a batch.
async fn state(server: &Server, is_batch: bool) -> Reply {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionCount","params":["0x7777777777777777777777777777777777777777"]}"#;
    let body = if is_batch {
        format!("[{call}]")
    } else {
        call.to_owned()
    };
    let reply = server.post("/rpc", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    reply
}

#[tokio::test]
async fn a_json_rpc_call_that_comes_alone_waits_for_the_branch_of_the_node() {
    let mut mined = Mined::without_allocation(3).await;
    mined.mine(1);
    let old = newest(&mined);
    mined.unwind();
    mined.mine(2);
    let new = newest(&mined);
    mined.unwind();
    mined.mine(1);
    *mined.node.branch.lock().unwrap() = Some(new);

    // A batch is of one snapshot, and says what that one cannot.
    let reply = state(&mined.server, true).await.json();
    let indexing = "Data for the requested range is still being indexed";
    assert_eq!(reply[0]["error"], json!({"code": -32002, "message": indexing}));
    assert_eq!(mined.node.compared.swap(0, Ordering::Relaxed), 1);

    let server = Arc::clone(&mined.server);
    let asked = tokio::spawn(async move { state(&server, false).await });
    let node = Arc::clone(&mined.node);
    while node.compared.load(Ordering::Relaxed) < 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    mined.unwind();
    mined.mine(2);
    let reply = asked.await.unwrap();
    assert_eq!(reply.json()["result"], "0x3", "{}", reply.body);
    assert_eq!(
        reply.header("x-indexed-block-hash"),
        Some(format!("{:?}", new.hash).as_str())
    );

    // A branch that nobody else sees is waited for as often as elsewhere.
    *mined.node.branch.lock().unwrap() = Some(old);
    mined.node.compared.store(0, Ordering::Relaxed);
    let reply = state(&mined.server, false).await.json();
    assert_eq!(reply["error"], json!({"code": -32002, "message": indexing}));
    assert_eq!(mined.node.compared.load(Ordering::Relaxed), 6);
}

#[tokio::test]
async fn state_at_a_block_that_is_not_there_yet_is_refused() {
    let world = Mined::not_final(4).await;
    let account = "0x7777777777777777777777777777777777777777";
    for tag in ["safe", "finalized"] {
        for method in ["eth_getTransactionCount", "eth_getBalance", "ots_hasCode"] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": [account, tag]});
            let answer = world.server.post("/rpc", &body.to_string()).await.json();
            let expected = json!({"code": -32001, "message": "Block not found"});
            assert_eq!(answer["error"], expected, "{method} at {tag}: {answer}");
        }
        // The specification has `null` there.
        let target = format!("/api/proxy?action=eth_getTransactionCount&address={account}&tag={tag}");
        let reply = world.server.get(&target).await;
        assert_eq!(
            (reply.status, reply.json()),
            (200, json!({"jsonrpc": "2.0", "id": 1, "result": null}))
        );
    }
}

#[tokio::test]
async fn what_is_final_is_safe_whatever_the_node_called_safe_last() {
    let mut world = Mined::start(40, Limits::default()).await;
    world.mine(0);
    let number = async |tag: &str| {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["{tag}",false]}}"#);
        world.server.post("/rpc", &body).await.json()["result"]["number"].take()
    };
    assert_eq!(
        [number("finalized").await, number("safe").await],
        ["0x27", "0x27"]
    );
    // As of long ago, while the index caught up; of now; and of a block that is to come.
    for (told, safe) in [(5, "0x27"), (40, "0x28"), (99, "0x28")] {
        world.safe_is(told);
        assert_eq!([number("finalized").await, number("safe").await], ["0x27", safe]);
    }
}
