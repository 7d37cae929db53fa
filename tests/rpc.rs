//! `POST /rpc` of the real binary over the demo chain: the protocol, and answers against those of the other dialect.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use binary::{Server, as_node, list, number, text};
use serde_json::{Value, json};

fn demo() -> Server {
    Server::start(["demo"])
}

#[track_caller]
fn answer(server: &Server, body: &str) -> Value {
    let reply = server.post("/rpc", body);
    assert_eq!(reply.status, 200, "{body}: {}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{body}");
    reply.json()
}

fn code(error: &Value) -> (i64, &str) {
    (error["code"].as_i64().unwrap(), text(&error["message"]))
}

#[test]
fn the_protocol_is_json_rpc_2() {
    let server = demo();
    // Ids come back as they were written.
    for id in [
        "1",
        "\"a b\"",
        "null",
        "-3",
        "1.50",
        "1e2",
        "18446744073709551616",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId","params":[]}}"#);
        let reply = server.post("/rpc", &body);
        let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"0x7a69"}}"#);
        assert_eq!(reply.text(), expected);
        assert!(reply.header("x-indexed-block-number").is_some());
    }
    for (body, expected) in [
        ("", -32700),
        ("{", -32700),
        ("[1,", -32700),
        ("[]", -32600),
        ("7", -32600),
        ("{}", -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"eth_chainId"}"#,
            -32600,
        ),
    ] {
        let found = answer(&server, body);
        assert_eq!(
            (found["id"].clone(), code(&found["error"]).0),
            (Value::Null, expected),
            "{body}"
        );
    }
    // What asks for no answer gets none.
    let silent = r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#;
    for body in [silent.to_owned(), format!("[{silent},{silent}]")] {
        let reply = server.post("/rpc", &body);
        assert_eq!((reply.status, reply.body.len()), (204, 0));
    }
    // A batch keeps its order, whatever its calls take.
    let many: Vec<Value> = (0..200)
        .map(|id| match id % 4 {
            0 => json!({"jsonrpc": "2.0", "id": id, "method": "eth_getLogs", "params": [{"fromBlock": "earliest"}]}),
            1 => json!({"jsonrpc": "2.0", "id": id, "method": "web3_clientVersion"}),
            2 => json!({"jsonrpc": "2.0", "id": id, "method": "eth_nothing"}),
            _ => json!({"jsonrpc": "2.0", "id": id, "method": "eth_getBlockByNumber", "params": ["0x1", false]}),
        })
        .collect();
    let found = answer(&server, &Value::from(many[..24].to_vec()).to_string());
    for (id, one) in list(&found).iter().enumerate() {
        assert_eq!(one["id"], id);
        assert_eq!(one.get("error").is_some(), id % 4 == 2, "{one}");
    }
    assert_eq!(list(&found[0]["result"]).len(), list(&found[4]["result"]).len());
    // One that would take too much is answered as far as it goes, and says so of the rest.
    let found = answer(&server, &Value::from(many).to_string());
    let refused = list(&found)
        .iter()
        .filter(|one| one["error"]["code"] == -32005)
        .count();
    assert!((1..150).contains(&refused), "{refused}");
    assert_eq!(list(&found).len(), 200);
    let crowd: Vec<Value> = (0..1001)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "eth_accounts"}))
        .collect();
    let whole = answer(&server, &Value::from(crowd[1..].to_vec()).to_string());
    assert_eq!(list(&whole).len(), 1000);
    let over = answer(&server, &Value::from(crowd).to_string());
    assert_eq!(
        code(&over["error"]),
        (-32600, "A batch may hold at most 1000 requests")
    );
    server.stop();
}

#[test]
fn the_transport_says_what_it_refuses_in_the_same_words() {
    let server = demo();
    let get = server.get("/rpc");
    assert_eq!(get.status, 405);
    assert_eq!(get.header("allow"), Some("POST, OPTIONS"));
    assert_eq!(code(&get.json()["error"]), (-32600, "JSON-RPC is asked by POST"));
    let options = server.request("OPTIONS", "/rpc", "");
    for name in ["allow", "access-control-allow-methods"] {
        assert_eq!(options.header(name), Some("POST, OPTIONS"), "{name}");
    }
    let large = server.post("/rpc", &" ".repeat((1 << 20) + 1));
    assert_eq!((large.status, code(&large.json()["error"]).0), (413, -32005));
    // Who sends all of it before it reads finds the answer, and not a connection that is gone.
    let body = vec![b' '; (1 << 20) + 1];
    for _ in 0..20 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let head = format!(
            "POST /rpc HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        for piece in body.chunks(16 << 10) {
            stream.write_all(piece).unwrap();
        }
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    }
    let most = format!(
        "{}{}",
        " ".repeat((1 << 20) - 60),
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#
    );
    assert_eq!(answer(&server, &most)["result"], "0x7a69");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;
    for (target, status, found) in [
        ("/rpc/mainnet", 200, "result"),
        ("/rpc?chain=mainnet", 200, "result"),
        ("/rpc/testnet", 200, "error"),
        ("/rpc?chain=testnet", 200, "error"),
        ("/rpc?chain=other", 400, "error"),
    ] {
        let reply = server.post(target, call);
        assert_eq!(reply.status, status, "{target}");
        assert!(reply.json().get(found).is_some(), "{target}: {}", reply.text());
    }
    assert_eq!(server.post("/rpc/other", call).status, 405);
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains(r#"operation="rpc:eth_chainId""#));
    server.stop();
}

#[test]
fn wrong_parameters_are_named() {
    let server = demo();
    let hash = format!("0x{}", "12".repeat(32));
    for (method, params, name) in [
        ("eth_getBalance", json!([]), "address"),
        ("eth_getBalance", json!(["0x12"]), "address"),
        ("eth_getBalance", json!([7]), "address"),
        (
            "eth_getBalance",
            json!([format!("0x{}", "12".repeat(20)), "new"]),
            "block",
        ),
        ("eth_getBlockByNumber", json!([]), "block"),
        ("eth_getBlockByNumber", json!(["12", true]), "block"),
        ("eth_getBlockByNumber", json!(["0x1", "yes"]), "full"),
        ("eth_getTransactionByHash", json!(["0x1"]), "hash"),
        (
            "eth_getTransactionByBlockNumberAndIndex",
            json!(["0x1", -1]),
            "index",
        ),
        ("eth_getLogs", json!([]), "filter"),
        ("eth_getLogs", json!(["0x1"]), "filter"),
        ("eth_getLogs", json!([{"address": "0x1"}]), "address"),
        ("eth_getLogs", json!([{"topics": "0x1"}]), "topics"),
        ("eth_getLogs", json!([{"topics": [null, ["0x1"]]}]), "topics[1]"),
        (
            "eth_getLogs",
            json!([{"topics": [null, null, null, null, null]}]),
            "topics",
        ),
        (
            "eth_getLogs",
            json!([{"fromBlock": "0x9", "toBlock": "0x8"}]),
            "block range",
        ),
        (
            "eth_getLogs",
            json!([{"blockHash": hash, "toBlock": "0x8"}]),
            "blockHash",
        ),
        ("trace_filter", json!([{"mode": "both"}]), "mode"),
        ("trace_get", json!([hash]), "indices"),
        ("ots_getBlockTransactions", json!([1, 0, 0]), "pageSize"),
        ("eth_chainId", json!([1]), "Too many parameters"),
        ("eth_chainId", json!({"a": 1}), "params"),
    ] {
        let error = server.rpc(method, params.clone()).expect_err(&params.to_string());
        let (code, message) = code(&error);
        assert_eq!(code, -32602, "{method} {params}: {message}");
        assert!(message.contains(name), "{method} {params}: {message}");
    }
    // A block that does not exist is no wrong parameter.
    for method in ["eth_getBalance", "eth_getTransactionCount", "ots_hasCode"] {
        let account = format!("0x{}", "12".repeat(20));
        let error = server.rpc(method, json!([account, "0xffffff"])).unwrap_err();
        assert_eq!(code(&error).0, -32001, "{method}: {error}");
    }
    for method in [
        "eth_call",
        "eth_sendRawTransaction",
        "anvil_mine",
        "ETH_CHAINID",
        "",
    ] {
        let error = server.rpc(method, json!([])).unwrap_err();
        assert_eq!(code(&error).0, -32601, "{method}");
    }
    let unknown = server
        .rpc("eth_getLogs", json!([{"blockHash": hash}]))
        .unwrap_err();
    assert_eq!(code(&unknown), (-32001, "Block not found"));
    server.stop();
}

#[test]
fn logs_are_those_of_the_other_dialect() {
    let server = demo();
    let all = server.rpc(
        "eth_getLogs",
        json!([{"fromBlock": "earliest", "toBlock": "latest"}]),
    );
    let all = list(&all.unwrap()).to_vec();
    assert!(all.len() > 3000, "{}", all.len());
    let place = |log: &Value| (number(&log["blockNumber"]), number(&log["logIndex"]));
    assert!(all.windows(2).all(|pair| place(&pair[0]) < place(&pair[1])));
    let emitters: BTreeSet<&str> = all.iter().map(|log| text(&log["address"])).collect();
    let mut compared = 0;
    for emitter in &emitters {
        let target = format!("/api/logs/get-logs?address={emitter}&offset=10000");
        let rows: Vec<Value> = list(&server.json(&target)["logs"]).iter().map(as_node).collect();
        let of_one: Vec<Value> = all
            .iter()
            .filter(|log| log["address"] == **emitter)
            .cloned()
            .collect();
        assert_eq!(rows, of_one, "{emitter}");
        compared += rows.len();
    }
    assert_eq!(compared, all.len());
    // Any values of any position, of any addresses, in any blocks.
    let mut random = fastrand::Rng::with_seed(5);
    let mut found_any = 0;
    for _ in 0..300 {
        let pick = |random: &mut fastrand::Rng| &all[random.usize(..all.len())];
        let addresses: Vec<&Value> = (0..random.usize(..4))
            .map(|_| &pick(&mut random)["address"])
            .collect();
        let mut topics = vec![Vec::new(); random.usize(..5)];
        for (position, values) in topics.iter_mut().enumerate() {
            for _ in 0..random.usize(..3) {
                values.extend(list(&pick(&mut random)["topics"]).get(position).cloned());
            }
        }
        let blocks = (random.u64(..200), 150 + random.u64(..250));
        let (from, to) = (blocks.0.min(blocks.1), blocks.1.min(361));
        let filter = json!({
            "fromBlock": format!("0x{from:x}"), "toBlock": format!("0x{to:x}"),
            "address": addresses, "topics": topics,
        });
        let found = server.rpc("eth_getLogs", json!([filter])).unwrap();
        let matches = |log: &&Value| {
            (from..=to).contains(&number(&log["blockNumber"]))
                && (addresses.is_empty() || addresses.contains(&&log["address"]))
                && topics.iter().enumerate().all(|(position, values)| {
                    let topic = list(&log["topics"]).get(position);
                    values.is_empty() || topic.is_some_and(|topic| values.contains(topic))
                })
        };
        let expected: Vec<&Value> = all.iter().filter(matches).collect();
        assert_eq!(list(&found).iter().collect::<Vec<_>>(), expected, "{filter}");
        found_any += usize::from(!expected.is_empty());
    }
    assert!(found_any > 50, "{found_any}");
    server.stop();
}

#[test]
fn objects_are_those_of_the_other_dialect() {
    let server = demo();
    let head = number(&server.rpc("eth_blockNumber", json!([])).unwrap());
    let mut transactions = 0;
    for at in (0..=head).step_by(7).chain([head]) {
        let tag = format!("0x{at:x}");
        let block = server.rpc("eth_getBlockByNumber", json!([tag, true])).unwrap();
        assert_eq!(
            block,
            server.proxy(&format!("action=eth_getBlockByNumber&boolean=true&tag={tag}"))
        );
        assert_eq!(
            block,
            server
                .rpc("eth_getBlockByHash", json!([block["hash"], true]))
                .unwrap()
        );
        let receipts = server
            .rpc("eth_getBlockReceipts", json!([block["hash"]]))
            .unwrap();
        let traces = server.rpc("trace_block", json!([tag])).unwrap();
        let mut of_transactions = Vec::new();
        for (transaction, receipt) in list(&block["transactions"]).iter().zip(list(&receipts)) {
            let hash = text(&transaction["hash"]);
            let ask = |method: &str| server.rpc(method, json!([hash])).unwrap();
            assert_eq!(&ask("eth_getTransactionByHash"), transaction);
            assert_eq!(&ask("eth_getTransactionReceipt"), receipt);
            assert_eq!(
                receipt,
                &server.proxy(&format!("action=eth_getTransactionReceipt&txhash={hash}"))
            );
            let own = ask("trace_transaction");
            for trace in list(&own) {
                let found = server
                    .rpc("trace_get", json!([hash, trace["traceAddress"]]))
                    .unwrap();
                assert_eq!(&found, trace);
            }
            of_transactions.extend(list(&own).to_vec());
            transactions += 1;
        }
        assert_eq!(list(&traces), of_transactions);
    }
    assert!(transactions > 100, "{transactions}");
    // trace_filter is trace_block, block by block.
    let range = json!([{"fromBlock": "0x0", "toBlock": "latest"}]);
    let all = list(&server.rpc("trace_filter", range).unwrap()).to_vec();
    let from = &all[all.len() / 2]["action"]["from"];
    let some = server
        .rpc(
            "trace_filter",
            json!([{"fromAddress": [from], "after": 1, "count": 3}]),
        )
        .unwrap();
    let expected: Vec<&Value> = all
        .iter()
        .filter(|trace| trace["action"]["from"] == *from)
        .skip(1)
        .take(3)
        .collect();
    assert_eq!(list(&some).iter().collect::<Vec<_>>(), expected);
    server.stop();
}

#[test]
fn searches_give_whole_receipts() {
    let server = demo();
    let (mut seen, mut logs) = (0, 0);
    for account in [
        "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
        "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    ] {
        for method in ["ots_searchTransactionsBefore", "ots_searchTransactionsAfter"] {
            let page = server.rpc(method, json!([account, 100, 25])).unwrap();
            for (transaction, receipt) in list(&page["txs"]).iter().zip(list(&page["receipts"])) {
                let mut expected = server
                    .rpc("eth_getTransactionReceipt", json!([transaction["hash"]]))
                    .unwrap();
                let block = server.rpc("eth_getBlockByHash", json!([receipt["blockHash"], false]));
                expected["timestamp"] = number(&block.unwrap()["timestamp"]).into();
                assert_eq!(receipt, &expected);
                logs += list(&receipt["logs"]).len();
                seen += 1;
            }
        }
    }
    assert!(seen > 70 && logs > 100, "{seen} receipts, {logs} logs");
    // Those of a block come without.
    let page = server
        .rpc("ots_getBlockTransactions", json!([28, 0, 25]))
        .unwrap();
    let receipt = &page["receipts"][0];
    assert_eq!(
        (&receipt["logs"], &receipt["logsBloom"]),
        (&Value::Null, &Value::Null)
    );
    assert!(receipt.as_object().unwrap().contains_key("logs"));
    server.stop();
}

#[test]
fn every_method_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/COMPATIBILITY.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, tables) = page.split_once("### Methods").unwrap();
    let (stored, rest) = tables.split_once("| From the node").unwrap();
    let (passed, _) = rest.split_once("###").unwrap();
    let methods = quarry::rpc::METHODS.iter().map(|method| (method.name, stored));
    let all = methods.chain(quarry::rpc::PASSED_ON.iter().map(|name| (*name, passed)));
    for (name, table) in all {
        assert!(
            table.contains(&format!("`{name}`")),
            "{name} is not in docs/COMPATIBILITY.md"
        );
    }
}

#[test]
fn nothing_that_is_sent_breaks_it() {
    let server = demo();
    let seeds = [
        r#"{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x9","topics":[null,[]]}]}"#,
        r#"[{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x5",false]},{"jsonrpc":"2.0","id":"2","method":"trace_get"}]"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"trace_filter","params":[{"fromBlock":1,"count":3,"after":1e3}]}"#,
        r#"{"jsonrpc":"2.0","id":9,"method":"ots_searchTransactionsBefore","params":["0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",0,3]}"#,
    ];
    let pieces = [
        "null",
        "[",
        "]",
        "{",
        "}",
        "\"",
        ",",
        ":",
        "0x",
        "-1",
        "1e999",
        "\\u0000",
        "\\ud800",
        "latest",
        "18446744073709551615",
        "[[[[",
        "\u{e9}",
        "\n",
        "true",
    ];
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..1500 {
        let mut body = seeds[random.usize(..seeds.len())].to_owned();
        for _ in 0..random.usize(1..4) {
            let at = body.floor_char_boundary(random.usize(..=body.len()));
            let end = body.floor_char_boundary(body.len().min(at + random.usize(..6)));
            body.replace_range(at..end, pieces[random.usize(..pieces.len())]);
        }
        let reply = server.post("/rpc", &body);
        assert!([200, 204].contains(&reply.status), "{body}: {}", reply.text());
        if reply.status == 200 {
            let found = reply.json();
            assert!(found.is_object() || found.is_array(), "{body}");
            assert!(!reply.text().contains("-32603"), "{body}: {found}");
        }
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":{}}}"#,
        "[".repeat(3000) + &"]".repeat(3000)
    );
    assert_eq!(code(&answer(&server, &deep)["error"]).0, -32602);
    assert!(!server.log().contains("panicked"));
    server.stop();
}
