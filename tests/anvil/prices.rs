//! Feeds on a real node: a proxy is asked what it stands for, and its aggregators' events give the prices, also with the
//! node dead.
//!
//! `feed.json` is `Feed.sol` compiled by solc, as it says.

use super::*;
use alloy_primitives::keccak256;

/// Mines a transaction alone and answers its receipt.
fn sent(anvil: &Anvil, transaction: Value) -> Value {
    anvil.block_of([transaction]);
    let receipts = anvil.ask("eth_getBlockReceipts", json!(["latest"]));
    let [receipt] = list(&receipts) else {
        panic!("{receipts}");
    };
    assert_eq!(receipt["status"], "0x1", "{receipt}");
    receipt.clone()
}

fn deploy(anvil: &Anvil, code: &Value, words: &str) -> String {
    let data = format!("{}{words}", text(code));
    let receipt = sent(
        anvil,
        json!({"from": anvil.accounts[0], "data": data, "gas": "0x100000"}),
    );
    text(&receipt["contractAddress"]).to_owned()
}

fn call(anvil: &Anvil, to: &str, signature: &str, word: &str) {
    let selector = const_hex::encode(&keccak256(signature)[..4]);
    let data = format!("0x{selector}{word}");
    sent(
        anvil,
        json!({"from": anvil.accounts[0], "to": to, "data": data, "gas": "0x100000"}),
    );
}

#[test]
fn prices_of_a_proxied_feed() {
    let Some(anvil) = Anvil::start(31_000) else { return };
    let code: Value = serde_json::from_str(include_str!("feed.json")).unwrap();
    let address = |address: &str| format!("{:0>64}", address.trim_start_matches("0x"));
    let first = deploy(&anvil, &code["Aggregator"], &word(6));
    let second = deploy(&anvil, &code["Aggregator"], &word(6));
    let stable = deploy(&anvil, &code["Aggregator"], &word(2));
    let proxy = deploy(&anvil, &code["Proxy"], "");
    for aggregator in [&first, &second] {
        call(&anvil, &proxy, "confirm(address)", &address(aggregator));
    }
    let transmit = |feed: &str, answer: &str| call(&anvil, feed, "transmit(int256)", answer);
    transmit(&first, &word(2_000_500_000));
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("quarry.toml");
    let text = format!(
        "[mainnet]\nrpc = \"{}\"\nsymbol = \"TEST\"\n[mainnet.prices]\nnative = \"{proxy}\"\nstable = [\"{stable}\"]\n",
        anvil.http()
    );
    std::fs::write(&config, text).unwrap();
    let paths = [config.as_os_str(), directory.path().as_os_str()];
    let args = |command: &str| {
        let command = std::ffi::OsString::from(command);
        let flags = ["--config", "--data-dir"].map(std::ffi::OsString::from);
        let [config, data] = paths.map(std::ffi::OsStr::to_os_string);
        let [a, b] = flags;
        [command, a, config, b, data]
    };
    let server = Server::start(args("run"));
    caught_up(&server, &anvil, "mainnet", SOON);
    // The proxy is asked beside the sync.
    let price = |server: &Server| server.get("/api/stats/token-price");
    let found = eventually("the proxy's aggregators are known", SOON, || {
        let reply = price(&server);
        (reply.status == 200).then(|| reply.json())
    });
    assert_eq!(
        (&found["priceUSD"], &found["symbol"], &found["source"]),
        (&json!("2000.5"), &json!("TEST"), &json!("feed"))
    );

    transmit(&second, &word(2_100_000_000));
    // Below zero: no price.
    transmit(&second, &format!("{}{:0>2x}", "f".repeat(62), 7));
    transmit(&stable, &word(99));
    anvil.ask("evm_increaseTime", json!([86_400]));
    anvil.mine(1);
    transmit(&first, &word(2_205_000_000));
    caught_up(&server, &anvil, "mainnet", SOON);
    let answer = price(&server).json();
    assert_eq!(answer["priceUSD"], "2205");
    assert_eq!(answer["change24h_Percent"], "5.00");
    let latest = anvil.ask("eth_getBlockByNumber", json!(["latest", false]));
    assert_eq!(answer["timestamp"], number(&latest["timestamp"]).to_string());
    let series = "/api/stats/historical-price?startDate=2000-01-01&endDate=2100-01-01&sort=desc";
    let days = server.json(series);
    let last = &days["data"][0];
    assert_eq!(
        (&last["nativeCoinPrice_USD"], &last["stableCoinPrice_USD"]),
        (&json!("2205"), &json!("0.99"))
    );
    assert_eq!(days["data"][1]["nativeCoinPrice_USD"], "2100");

    // What was learnt is kept: no node is needed any more.
    server.stop();
    anvil.kill();
    let server = Server::start(args("serve"));
    assert_eq!(price(&server).json(), answer);
    assert_eq!(server.json(series), days);
}
