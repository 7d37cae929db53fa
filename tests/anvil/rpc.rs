//! `POST /rpc` against the node itself, method by method, and with the clients that people use.

use super::*;
use binary::differences;

/// Asks both, and notes where they differ.
struct Both<'a> {
    server: &'a Server,
    anvil: &'a Anvil,
    differences: Vec<String>,
    asked: usize,
}

impl Both<'_> {
    /// The node's own answer, a result or an error.
    fn node(&self, method: &str, params: &Value) -> Result<Value, Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply = exchange(&self.anvil.address, &self.anvil.connection, request.as_bytes()).unwrap();
        let mut answer = reply.json();
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    fn same(&mut self, method: &str, params: Value) -> Value {
        self.same_but(method, params, |_| ())
    }

    /// The same once `forgive` has taken out of the node's answer what no specification has.
    fn same_but(&mut self, method: &str, params: Value, forgive: impl Fn(&mut Value)) -> Value {
        self.asked += 1;
        let mut expected = self.node(method, &params);
        if let Ok(expected) = &mut expected {
            forgive(expected);
        }
        let found = self.server.rpc(method, params.clone());
        let what = format!("{method} {params}");
        match (&expected, &found) {
            (Ok(expected), Ok(found)) => differences(&what, expected, found, &[], &mut self.differences),
            (Err(_), Err(_)) => {}
            _ => self
                .differences
                .push(format!("{what}: {expected:?} and {found:?}")),
        }
        found.unwrap_or_default()
    }
}

/// Anvil's own additions to receipts.
fn receipt(value: &mut Value) {
    if let Some(receipt) = value.as_object_mut() {
        receipt.remove("blockTimestamp");
        receipt.remove("blobGasPrice");
    }
}

fn receipts(value: &mut Value) {
    value.as_array_mut().into_iter().flatten().for_each(receipt);
}

fn started(anvil: &Anvil, more: &[&str]) -> (Server, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let (url, data) = (anvil.http(), directory.path().display().to_string());
    let mut args = vec!["run", "--mainnet-rpc", &url, "--data-dir", &data];
    args.extend(more);
    let server = Server::start(args);
    ready(&server);
    caught_up(&server, anvil, "mainnet", SOON);
    (server, directory)
}

#[test]
fn json_rpc_answers_as_the_node_does() {
    let Some(anvil) = Anvil::start(31_360) else { return };
    let mut scenario = Scenario::new(&anvil, 21);
    scenario.blocks(40);
    anvil.mine(5);
    scenario.blocks(5);
    let emitters = scenario.emitters.clone();
    let (server, _directory) = started(&anvil, &["--rpc-passthrough"]);
    let model = anvil.model("mainnet");
    let mut both = Both {
        server: &server,
        anvil: &anvil,
        differences: Vec::new(),
        asked: 0,
    };
    for method in [
        "eth_chainId",
        "net_version",
        "eth_blockNumber",
        "eth_syncing",
        "eth_gasPrice",
    ] {
        both.same(method, json!([]));
    }
    for tag in ["latest", "earliest", "safe", "finalized"] {
        both.same("eth_getBlockByNumber", json!([tag, true]));
        both.same("eth_getBlockTransactionCountByNumber", json!([tag]));
        both.same("eth_getBalance", json!([anvil.accounts[0], tag]));
    }
    blocks_and_transactions(&mut both, &model);
    accounts(&mut both, &model, &emitters);
    logs(&mut both, &model, &emitters);
    traces(&mut both, &model, &emitters);
    passed_on(&mut both, &emitters);
    assert!(
        both.differences.is_empty(),
        "{} of {}: {:#?}",
        both.differences.len(),
        both.asked,
        both.differences
    );
    assert!(both.asked > 500, "{}", both.asked);
    otterscan(&server, &anvil, &model, &emitters);
    server.stop();
}

fn blocks_and_transactions(both: &mut Both<'_>, model: &Model) {
    let nowhere = format!("0x{}", word(7));
    for recorded in &model.blocks {
        let block = &recorded.block;
        let (number, hash) = (&block["number"], &block["hash"]);
        for full in [true, false] {
            both.same("eth_getBlockByNumber", json!([number, full]));
            both.same("eth_getBlockByHash", json!([hash, full]));
        }
        for (method, block) in [("Number", number), ("Hash", hash)] {
            both.same(&format!("eth_getBlockTransactionCountBy{method}"), json!([block]));
            both.same(&format!("eth_getUncleCountByBlock{method}"), json!([block]));
            for index in 0..=list(&recorded.block["transactions"]).len() {
                let params = json!([block, format!("0x{index:x}")]);
                both.same(&format!("eth_getTransactionByBlock{method}AndIndex"), params);
            }
            let uncle = json!([block, "0x0"]);
            both.same(&format!("eth_getUncleByBlock{method}AndIndex"), uncle);
        }
        both.same_but("eth_getBlockReceipts", json!([number]), receipts);
        both.same_but("eth_getBlockReceipts", json!([hash]), receipts);
        both.same_but("eth_getBlockReceipts", json!([{"blockHash": hash}]), receipts);
    }
    for (_, transaction, _) in model.transactions() {
        let hash = &transaction["hash"];
        both.same("eth_getTransactionByHash", json!([hash]));
        both.same_but("eth_getTransactionReceipt", json!([hash]), receipt);
    }
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        both.same(method, json!([nowhere]));
    }
    both.same("eth_getBlockByHash", json!([nowhere, false]));
    both.same("eth_getBlockByNumber", json!(["0xffffff", false]));
}

fn accounts(both: &mut Both<'_>, model: &Model, emitters: &[String]) {
    let head = both.anvil.head();
    let hash = &model.blocks[model.blocks.len() / 2].block["hash"];
    let nobody = format!("0x{}", "ab".repeat(20));
    for account in both
        .anvil
        .accounts
        .clone()
        .iter()
        .chain(emitters)
        .chain([&nobody])
    {
        for block in [0, 1, head / 3, head / 2, head - 1, head] {
            let tag = format!("0x{block:x}");
            both.same("eth_getBalance", json!([account, tag]));
            both.same("eth_getTransactionCount", json!([account, tag]));
        }
        // Anvil wants the block said.
        let now = both.same("eth_getBalance", json!([account, "latest"]));
        assert_eq!(both.server.rpc("eth_getBalance", json!([account])), Ok(now));
        both.same("eth_getBalance", json!([account, {"blockHash": hash}]));
        both.same("eth_getBalance", json!([account, {"blockNumber": "0x5"}]));
        both.same("eth_getTransactionCount", json!([account, {"blockHash": hash}]));
        both.same("eth_getTransactionCount", json!([account, "latest"]));
    }
}

fn logs(both: &mut Both<'_>, model: &Model, emitters: &[String]) {
    let head = format!("0x{:x}", both.anvil.head());
    let from = |mut filter: Value, from: &str, to: &str| {
        filter["fromBlock"] = from.into();
        filter["toBlock"] = to.into();
        json!([filter])
    };
    let log = model.logs.iter().find(|log| log.topics.len() == 4).unwrap();
    let topics: Vec<Value> = log.topics.iter().map(|topic| json!(topic)).collect();
    let second = model
        .logs
        .iter()
        .find(|other| other.topics.first() != log.topics.first() && !other.topics.is_empty());
    let second = json!(second.unwrap().topics[0]);
    let [a, b, c] = [&emitters[1], &emitters[3], &emitters[4]];
    let mut found = 0;
    for filter in [
        json!({}),
        json!({"address": a}),
        json!({"address": [a, b]}),
        json!({"address": [a, b, c], "topics": [[topics[0], second]]}),
        json!({"address": [c, c], "topics": [null, topics[1]]}),
        json!({"topics": [topics[0]]}),
        json!({"topics": [[topics[0], second, topics[0]]]}),
        json!({"topics": [null, null, topics[2]]}),
        json!({"topics": [null, topics[1], topics[2]]}),
        json!({"topics": [[topics[0], second], [topics[1], topics[2]], null, topics[3]]}),
        json!({"topics": [[], topics[1]]}),
        json!({"address": [], "topics": []}),
        json!({"address": format!("0x{}", "cd".repeat(20))}),
        json!({"topics": [format!("0x{}", "cd".repeat(32))]}),
    ] {
        let all = both.same("eth_getLogs", from(filter.clone(), "0x0", &head));
        found += list(&all).len();
        both.same("eth_getLogs", from(filter.clone(), "earliest", "latest"));
        both.same("eth_getLogs", from(filter.clone(), "0x9", "0x1d"));
        both.same("eth_getLogs", json!([filter]));
        for recorded in model.blocks.iter().rev().take(12) {
            let mut filter = filter.clone();
            filter["blockHash"] = recorded.block["hash"].clone();
            both.same("eth_getLogs", json!([filter]));
        }
    }
    assert!(found > 300, "{found}");
    both.same("eth_getLogs", json!([{"blockHash": format!("0x{}", word(1))}]));
}

fn traces(both: &mut Both<'_>, model: &Model, emitters: &[String]) {
    for recorded in &model.blocks {
        both.same_but("trace_block", json!([recorded.block["number"]]), errors);
    }
    for (_, transaction, _) in model.transactions() {
        let hash = &transaction["hash"];
        both.same_but("trace_transaction", json!([hash]), errors);
    }
    let accounts = both.anvil.accounts.clone();
    let head = format!("0x{:x}", both.anvil.head());
    for filter in [
        json!({"fromBlock": "0x1", "toBlock": head}),
        json!({"fromBlock": "0x5", "toBlock": "0x15", "fromAddress": [accounts[0]]}),
        json!({"fromBlock": "0x1", "toBlock": head, "toAddress": [emitters[2], emitters[3]]}),
        json!({"fromBlock": "0x1", "toBlock": head, "fromAddress": [accounts[1]], "toAddress": [emitters[4]]}),
        json!({"fromBlock": "0x1", "toBlock": head, "fromAddress": [emitters[4]], "after": 2, "count": 5}),
        json!({"fromBlock": "0x1", "toBlock": head, "count": 0}),
    ] {
        both.same_but("trace_filter", json!([filter]), errors);
    }
}

/// Errors of calls are worded the same way for every node.
fn errors(value: &mut Value) {
    for trace in value.as_array_mut().into_iter().flatten() {
        if trace["error"] == "Reverted" {
            trace["error"] = "reverted".into();
        }
    }
}

fn passed_on(both: &mut Both<'_>, emitters: &[String]) {
    let from = both.anvil.accounts[0].clone();
    let input = format!("0x{}{}{}{}", word(1), word(0x1000), word(0), word(0));
    let reverting = format!("0x{}{}{}{}", word(1), word(0x1000), word(0), word(1));
    for input in [input, reverting] {
        let call = json!({"from": from, "to": emitters[0], "data": input});
        let expected = both.node("eth_call", &json!([call, "latest"]));
        let found = both.server.rpc("eth_call", json!([call, "latest"]));
        assert_eq!(found, expected);
    }
    for emitter in emitters {
        both.same("eth_getCode", json!([emitter, "latest"]));
        both.same("eth_getStorageAt", json!([emitter, "0x0", "latest"]));
    }
    both.same("eth_feeHistory", json!(["0x5", "latest", [10.0, 50.5]]));
    both.same("eth_estimateGas", json!([{"from": from, "to": emitters[0]}]));
    for method in [
        "eth_sendTransaction",
        "eth_sendRawTransaction",
        "evm_mine",
        "anvil_mine",
        "txpool_content",
        "admin_nodeInfo",
        "debug_traceTransaction",
        "eth_sign",
        "eth_newFilter",
    ] {
        let head = both.anvil.head();
        let error = both.server.rpc(method, json!([])).unwrap_err();
        assert_eq!(error["code"], -32601, "{method}");
        assert_eq!(both.anvil.head(), head);
    }
}

/// What Otterscan asks when it shows a block, its transactions and an account.
fn otterscan(server: &Server, anvil: &Anvil, model: &Model, emitters: &[String]) {
    let ask = |method: &str, params: Value| {
        server
            .rpc(method, params.clone())
            .unwrap_or_else(|error| panic!("{method} {params}: {error}"))
    };
    assert_eq!(ask("ots_getApiLevel", json!([])), 8);
    let headers = ask("erigon_getHeaderByNumber", json!([1]));
    assert_eq!(headers["hash"], model.blocks[1].block["hash"]);
    for recorded in &model.blocks {
        let (block, receipts) = (&recorded.block, &recorded.receipts);
        let transactions = list(&block["transactions"]);
        let details = ask("ots_getBlockDetails", json!([number(&block["number"])]));
        let by_hash = ask("ots_getBlockDetailsByHash", json!([block["hash"]]));
        assert_eq!(details, by_hash);
        assert_eq!(details["block"]["hash"], block["hash"]);
        assert_eq!(details["block"]["transactionCount"], transactions.len());
        assert_eq!(details["block"]["logsBloom"], Value::Null);
        let fee = |receipt: &Value| number(&receipt["gasUsed"]) * number(&receipt["effectiveGasPrice"]);
        let fees: u64 = receipts.iter().map(fee).sum();
        assert_eq!(number(&details["totalFees"]), fees);
        let mut seen = Vec::new();
        for page in 0..3 {
            let params = json!([number(&block["number"]), page, 2]);
            let page = ask("ots_getBlockTransactions", params);
            assert_eq!(
                list(&page["receipts"]).len(),
                list(&page["fullblock"]["transactions"]).len()
            );
            seen.splice(
                0..0,
                list(&page["fullblock"]["transactions"])
                    .iter()
                    .map(|one| one["hash"].clone()),
            );
        }
        let hashes: Vec<Value> = transactions.iter().map(|one| one["hash"].clone()).collect();
        assert_eq!(seen, hashes);
    }
    for (recorded, transaction, receipt) in model.transactions() {
        let hash = &transaction["hash"];
        let (sender, nonce) = (&transaction["from"], &transaction["nonce"]);
        let by_nonce = ask(
            "ots_getTransactionBySenderAndNonce",
            json!([sender, number(nonce)]),
        );
        assert_eq!(&by_nonce, hash);
        let of_it: Vec<&Value> = recorded
            .traces
            .iter()
            .flatten()
            .filter(|trace| trace["transactionHash"] == *hash)
            .collect();
        let calls = ask("ots_traceTransaction", json!([hash]));
        assert_eq!(list(&calls).len(), of_it.len());
        for (call, trace) in list(&calls).iter().zip(&of_it) {
            assert_eq!(call["depth"], list(&trace["traceAddress"]).len());
            let from = trace["action"].get("from").unwrap_or(&trace["action"]["address"]);
            assert_eq!(&call["from"], from);
        }
        let operations = ask("ots_getInternalOperations", json!([hash]));
        assert_eq!(
            list(&operations).len(),
            binary::internal_transactions(&of_it.iter().map(|trace| (*trace).clone()).collect::<Vec<_>>())
        );
        let error = ask("ots_getTransactionError", json!([hash]));
        assert!(text(&error).starts_with("0x"));
        assert!(receipt["status"] == "0x0" || error == "0x", "{error}");
    }
    assert_eq!(ask("ots_hasCode", json!([emitters[0], "latest"])), true);
    assert_eq!(ask("ots_hasCode", json!([emitters[0], "0x0"])), false);
    assert_eq!(ask("ots_hasCode", json!([anvil.accounts[4], "latest"])), false);
    let creator = ask("ots_getContractCreator", json!([emitters[2]]));
    assert_eq!(text(&creator["creator"]), anvil.accounts[0].to_lowercase());
    assert_eq!(
        ask("ots_getContractCreator", json!([anvil.accounts[0]])),
        Value::Null
    );
    for account in anvil.accounts.iter().chain(emitters) {
        search(&ask, model, account);
    }
}

/// Both searches page through all transactions that an account took part in.
fn search(ask: &impl Fn(&str, Value) -> Value, model: &Model, account: &str) {
    let account = account.to_lowercase();
    let mut expected: Vec<Value> = Vec::new();
    for (recorded, transaction, _) in model.transactions() {
        let hash = &transaction["hash"];
        let traces = recorded
            .traces
            .iter()
            .flatten()
            .filter(|trace| trace["transactionHash"] == *hash);
        let takes_part = |trace: &Value| {
            ["from", "to", "address", "refundAddress"]
                .iter()
                .any(|key| trace["action"][key] == *account)
                || trace["result"]["address"] == *account
        };
        if traces.clone().any(takes_part) {
            expected.push(hash.clone());
        }
    }
    expected.reverse();
    for size in [1, 3, 25] {
        let (mut before, mut at) = (Vec::new(), 0);
        loop {
            let page = ask("ots_searchTransactionsBefore", json!([account, at, size]));
            assert_eq!(page["firstPage"], at == 0);
            let txs = list(&page["txs"]);
            assert_eq!(txs.len(), list(&page["receipts"]).len());
            before.extend(txs.iter().map(|one| one["hash"].clone()));
            let Some(last) = txs.last().filter(|_| page["lastPage"] == false) else {
                break;
            };
            at = number(&last["blockNumber"]);
        }
        assert_eq!(before, expected, "{account} by {size}");
        let (mut after, mut at) = (Vec::new(), 0);
        loop {
            let page = ask("ots_searchTransactionsAfter", json!([account, at, size]));
            assert_eq!(page["lastPage"], at == 0);
            let txs = list(&page["txs"]);
            after.splice(0..0, txs.iter().map(|one| one["hash"].clone()));
            let Some(first) = txs.first().filter(|_| page["firstPage"] == false) else {
                break;
            };
            at = number(&first["blockNumber"]);
        }
        assert_eq!(after, expected, "{account} by {size}");
    }
}

/// A script of `tests/clients` against the server and the node; its words where it cannot run.
fn client(script: &str, server: &Server, anvil: &Anvil, emitter: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let package = script.split('.').next().unwrap();
    if !root.join("tools/node_modules").join(package).is_dir() {
        crate::binary::skipped::skipped(&format!("{package} is not installed (run `tools/setup.sh npm`)"));
        return;
    }
    let ran = direct(&mut Command::new("node"))
        .arg(root.join("tests/clients").join(script))
        .args([&format!("http://{}/rpc", server.address), &anvil.http(), emitter])
        .env("NODE_PATH", root.join("tools/node_modules"))
        .output();
    let Ok(ran) = ran else {
        crate::binary::skipped::skipped("no node on the path");
        return;
    };
    let (out, err) = (
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr),
    );
    assert!(ran.status.success(), "{script}\n{out}\n{err}");
    assert!(out.contains("compared"), "{script}: {out}");
}

#[test]
fn clients_read_through_it() {
    let Some(anvil) = Anvil::start(31_361) else { return };
    let mut scenario = Scenario::new(&anvil, 22);
    scenario.blocks(25);
    let (server, _directory) = started(&anvil, &["--rpc-passthrough"]);
    let emitter = scenario.emitters[3].clone();
    client("ethers.cjs", &server, &anvil, &emitter);
    client("viem.cjs", &server, &anvil, &emitter);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(alloy(&server, &anvil, &emitter));
    server.stop();
}

/// The same by alloy's provider.
async fn alloy(server: &Server, anvil: &Anvil, emitter: &str) {
    use alloy_provider::{Provider, ProviderBuilder};
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let connect = |url: String| ProviderBuilder::new().connect_reqwest(client.clone(), url.parse().unwrap());
    let ours = connect(format!("http://{}/rpc", server.address));
    let node = connect(anvil.http());
    let head = node.get_block_number().await.unwrap();
    assert_eq!(ours.get_block_number().await.unwrap(), head);
    assert_eq!(ours.get_chain_id().await.unwrap(), 31_361);
    for number in 0..=head {
        let block = ours
            .get_block_by_number(number.into())
            .full()
            .await
            .unwrap()
            .unwrap();
        assert_eq!(
            block,
            node.get_block_by_number(number.into())
                .full()
                .await
                .unwrap()
                .unwrap()
        );
        let found = ours.get_block_receipts(number.into()).await.unwrap().unwrap();
        for hash in block.transactions.hashes() {
            let one = ours.get_transaction_receipt(hash).await.unwrap().unwrap();
            assert!(found.contains(&one));
            assert_eq!(
                one.gas_used,
                node.get_transaction_receipt(hash)
                    .await
                    .unwrap()
                    .unwrap()
                    .gas_used
            );
        }
    }
    let emitter = emitter.parse().unwrap();
    let balance = node.get_balance(emitter).await.unwrap();
    assert_eq!(ours.get_balance(emitter).await.unwrap(), balance);
    assert_eq!(
        ours.get_code_at(emitter).await.unwrap(),
        node.get_code_at(emitter).await.unwrap()
    );
}
