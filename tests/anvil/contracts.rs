//! X2 and C3 against what the node's own JSON-RPC says, worked out here anew.

use super::*;

/// Init code that reverts with these bytes, which follow its own 11: it copies them and hands them back.
fn reverting(data: &str) -> String {
    format!("0x60{:02x}80600b6000396000fd{data}", data.len() / 2)
}

/// What a creation that reverts with `data` must be told to have failed by.
const REASONS: [(&str, &str); 4] = [
    ("", "reverted"),
    (
        "08c379a0\
        0000000000000000000000000000000000000000000000000000000000000020\
        0000000000000000000000000000000000000000000000000000000000000005\
        68656c6c6f000000000000000000000000000000000000000000000000000000",
        "reverted: hello",
    ),
    (
        "4e487b710000000000000000000000000000000000000000000000000000000000000011",
        "reverted: panic 0x11 (arithmetic overflow or underflow)",
    ),
    ("deadbeef07", "reverted: custom error 0xdeadbeef with data 0x07"),
];

/// The node's word on a transaction's failure: its own call tracer, whose texts differ from ours.
fn failed(anvil: &Anvil, hash: &str) -> Option<Value> {
    let receipt = anvil.ask("eth_getTransactionReceipt", json!([hash]));
    (receipt["status"] == "0x0")
        .then(|| anvil.ask("debug_traceTransaction", json!([hash, {"tracer": "callTracer"}])))
}

#[test]
fn failures_and_creations_are_those_of_the_node() {
    let Some(anvil) = Anvil::start(31_339) else { return };
    let mut scenario = Scenario::new(&anvil, 5);
    scenario.blocks(30);
    let from = &anvil.accounts[0];
    let calls = REASONS
        .iter()
        .map(|(data, _)| json!({"from": from, "data": reverting(data), "gas": "0x40000"}));
    // And one that meets an invalid instruction.
    let invalid = json!({"from": from, "data": "0xfe", "gas": "0x40000"});
    anvil.block_of(calls.chain([invalid]));
    let last = anvil.ask("eth_getBlockByNumber", json!(["latest", false]));
    let directory = tempfile::tempdir().unwrap();
    let url = anvil.http();
    let server = Server::start([
        "run",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        directory.path().to_str().unwrap(),
    ]);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    let said = |hash: &str| server.json(&format!("/api/transaction/{hash}/contract-status"));
    for (hash, (_, reason)) in list(&last["transactions"]).iter().zip(&REASONS) {
        assert_eq!(said(text(hash))["errDescription"], *reason);
    }
    let model = anvil.model("mainnet");
    check_statuses(&anvil, &model, said);
    check_creations(&server, &model);
    server.stop();
}

fn check_statuses(anvil: &Anvil, model: &Model, said: impl Fn(&str) -> Value) {
    let mut failures = 0;
    for (_, transaction, _) in model.transactions() {
        let hash = text(&transaction["hash"]);
        let found = said(hash);
        assert_eq!((text(&found["hash"]), text(&found["chain"])), (hash, "mainnet"));
        match failed(anvil, hash) {
            None => assert_eq!(
                (&found["isError"], &found["errDescription"]),
                (&json!(0), &json!(""))
            ),
            Some(trace) => {
                failures += 1;
                assert_eq!(found["isError"], 1);
                let described = text(&found["errDescription"]);
                let reverted = text(&trace["error"]).contains("revert");
                assert_eq!(described.starts_with("reverted"), reverted, "{found} {trace}");
                assert_eq!(described.contains("invalid opcode"), !reverted, "{found} {trace}");
            }
        }
    }
    assert!(failures > 5, "{failures}");
}

/// Creations by `trace_block`: by transactions, by contracts, and none under a revert.
fn check_creations(server: &Server, model: &Model) {
    let mut created: Vec<Value> = Vec::new();
    let mut failed = Vec::new();
    for recorded in &model.blocks {
        let traces = recorded.traces.as_deref().unwrap();
        for trace in traces.iter().filter(|trace| trace["type"] == "create") {
            let path = list(&trace["traceAddress"]);
            let of_same = |other: &&Value| other["transactionHash"] == trace["transactionHash"];
            let undone = traces
                .iter()
                .filter(of_same)
                .any(|other| path.starts_with(list(&other["traceAddress"])) && !other["error"].is_null());
            let Some(contract) = trace["result"]["address"].as_str() else {
                continue;
            };
            if undone {
                failed.push(contract.to_owned());
                continue;
            }
            let transactions = list(&recorded.block["transactions"]);
            let transaction = transactions
                .iter()
                .find(|transaction| transaction["hash"] == trace["transactionHash"])
                .unwrap();
            created.push(json!({
                "contractAddress": contract,
                "contractCreator": transaction["from"],
                "contractFactory": if path.is_empty() { Value::Null } else { trace["action"]["from"].clone() },
                "txHash": transaction["hash"],
                "blockNumber": number(&recorded.block["number"]).to_string(),
                "timestamp": number(&recorded.block["timestamp"]).to_string(),
                "creationBytecode": trace["action"]["init"],
            }));
        }
    }
    let nested = created
        .iter()
        .filter(|row| !row["contractFactory"].is_null())
        .count();
    assert!(
        nested > 0 && created.len() > nested + 5,
        "{nested} of {}",
        created.len()
    );
    let path = "/api/contract/contract-creation?contractaddresses=";
    for rows in created.chunks(5) {
        let asked: Vec<&str> = rows.iter().map(|row| text(&row["contractAddress"])).collect();
        let found = server.json(&format!("{path}{}", asked.join(",")));
        assert_eq!(found, json!({"chain": "mainnet", "contracts": rows}));
    }
    for contract in failed {
        server.assert_error(&format!("{path}{contract}"), 404, "Contract not found");
    }
}
