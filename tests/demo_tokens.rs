//! The token ledger of the demo chain against what its contracts themselves say, block by block
//! (`demo/state.json.zst`, recorded from their calls).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;

use serde_json::Value;

/// Tokens whose events tell of everything.
const EXACT: [&str; 6] = ["coin", "dollar", "ancient", "wrapped", "deeds", "kittens"];
/// One that lets the zero address hold what it was sent.
const ZERO_HOLDS: &str = "ash";
/// Tokens whose events do not, so that recorded answers of their contracts stand in: fees, rebasing, minting
/// without a log, lies.
const INEXACT: [&str; 4] = ["toll", "tide", "hush", "liar"];

fn state() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/demo/state.json.zst");
    let file = std::fs::File::open(path).unwrap();
    serde_json::from_reader(zstd::Decoder::new(file).unwrap()).unwrap()
}

fn changes(value: &Value) -> Vec<(u64, String)> {
    let change = |row: &Value| (row[0].as_u64().unwrap(), row[1].as_str().unwrap().to_owned());
    value.as_array().unwrap().iter().map(change).collect()
}

/// Supplies and balances that differ from the contract's, of all that were compared.
fn compare(server: &binary::Server, token: &Value, source: &str) -> (Vec<String>, usize) {
    let (mut wrong, mut compared) = (Vec::new(), 0);
    let address = token["address"].as_str().unwrap();
    let mut check = |target: &str, field: &str, expected: &str| {
        let reply = server.get(target);
        compared += 1;
        if reply.status != 200 || reply.json()[field] != expected {
            wrong.push(format!("{target}: {} and not {expected}", reply.text()));
        } else {
            assert_eq!(reply.header("x-balance-source"), Some(source), "{target}");
        }
    };
    let supplies = changes(&token["supply"]);
    for (block, supply) in &supplies {
        let path = format!("/api/token/{address}/total-supply-history?block={block}");
        check(&path, "totalSupply", supply);
    }
    let (_, last) = supplies.last().unwrap();
    check(&format!("/api/token/{address}/total-supply"), "totalSupply", last);
    for (holder, history) in token["balances"].as_object().unwrap() {
        let history = changes(history);
        let past = format!("/api/token/{holder}/total-balance-history?contractaddress={address}");
        for (block, balance) in &history {
            check(&format!("{past}&block={block}"), "balance", balance);
        }
        if let Some((_, now)) = history.last() {
            let target = format!("/api/token/balance?contractaddress={address}&address={holder}");
            check(&target, "balance", now);
        }
    }
    (wrong, compared)
}

#[test]
fn tokens_whose_events_tell_all_are_exact_at_every_block() {
    let server = binary::Server::start(["demo"]);
    let state = state();
    let tokens = state["tokens"].as_object().unwrap();
    assert_eq!(tokens.len(), EXACT.len() + 1 + INEXACT.len());
    for name in EXACT {
        let (wrong, compared) = compare(&server, &tokens[name], "ledger");
        assert!(wrong.is_empty(), "{name}: {wrong:#?}");
        assert!(compared > 40, "{name}: {compared}");
        // As many holders as have something at the end.
        let balances = tokens[name]["balances"].as_object().unwrap().values();
        let holders =
            balances.filter(|history| changes(history).last().is_some_and(|(_, balance)| balance != "0"));
        let address = tokens[name]["address"].as_str().unwrap();
        let count = server.json(&format!("/api/token/holder-count?contractaddress={address}"));
        assert_eq!(count["holderCount"], holders.count(), "{name}");
    }
    // That the zero address holds some of this one, the demo's page of tokens says.
    let (wrong, compared) = compare(&server, &tokens[ZERO_HOLDS], "ledger");
    assert!(wrong.is_empty() && compared > 40, "{compared}: {wrong:#?}");
    for name in INEXACT {
        let (wrong, compared) = compare(&server, &tokens[name], "node");
        assert!(
            wrong.is_empty() && compared > 40,
            "{name}, {compared}: {wrong:#?}"
        );
        let address = tokens[name]["address"].as_str().unwrap();
        let supply = server.get(&format!("/api/token/{address}/total-supply"));
        assert_eq!(supply.header("x-balance-source"), Some("node"), "{name}");
        let balances = tokens[name]["balances"].as_object().unwrap().values();
        let holders =
            balances.filter(|history| changes(history).last().is_some_and(|(_, balance)| balance != "0"));
        let count = server.json(&format!("/api/token/holder-count?contractaddress={address}"));
        assert_eq!(count["holderCount"], holders.count(), "{name}");
    }
}

#[test]
fn refusals_are_those_of_the_contract() {
    let server = binary::Server::start(["demo"]);
    let coin = state()["tokens"]["coin"]["address"].as_str().unwrap().to_owned();
    let nobody = "0x00000000000000000000000000000000000000ee";
    for (target, status, text) in [
        (
            "/api/token/0xzz/total-supply".to_owned(),
            400,
            "Invalid contract address format",
        ),
        (
            format!("/api/token/{nobody}/total-supply"),
            404,
            "Failed to fetch token total supply",
        ),
        (
            format!("/api/token/{nobody}/total-supply-history"),
            404,
            "Token not found",
        ),
        (
            format!("/api/token/{coin}/total-supply-history?block=99999999"),
            400,
            "Invalid block parameter",
        ),
        (
            "/api/token/0xzz/total-supply-history".to_owned(),
            400,
            "Invalid contract address format",
        ),
        (
            format!("/api/token/0xzz/total-balance-history?contractaddress={coin}"),
            400,
            "Invalid address format",
        ),
        (
            format!("/api/token/0xzz/nft-inventory?contractaddress={coin}"),
            400,
            "Invalid address format",
        ),
        (
            format!("/api/token/balance?contractaddress={coin}&offset=11"),
            400,
            "offset must be one of 10, 15, 30, 45",
        ),
        (
            format!("/api/token/holder-list?contractaddress={coin}&page=0"),
            400,
            "Invalid page parameter",
        ),
        (
            "/api/token/balance".to_owned(),
            400,
            "Missing required parameter: contractaddress",
        ),
        (
            "/api/token/erc20-holdings".to_owned(),
            400,
            "Missing required parameter: address",
        ),
        (
            format!("/api/token/holder-count?contractaddress={nobody}"),
            404,
            "Token not found",
        ),
        (
            format!("/api/account/{nobody}/token-tx?startblock=5&endblock=4"),
            400,
            "Invalid block range",
        ),
    ] {
        server.assert_error(&target, status, text);
    }
    // Before its creation and beyond the last page.
    let reply = server.json(&format!("/api/token/{coin}/total-supply-history?block=0"));
    assert_eq!(reply["totalSupply"], "0");
    let reply = server.json(&format!("/api/token/holder-list?contractaddress={coin}&page=999"));
    assert_eq!(reply["holders"], serde_json::json!([]));
}
