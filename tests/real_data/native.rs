//! Native balances against what executing the chains gave.

use std::collections::HashMap;
use std::sync::Arc;

use quarry::model::{Address, B256, U256};
use quarry::node::recorded::RecordedChain;
use quarry::query::{Balance, Reader};
use quarry::store::{OpenOptions, Store};
use quarry::sync::ChainRules;
use quarry::sync::derive::derive;
use serde_json::Value;

use super::binary::{Server, number, text};
use super::{ETHTEST, EXECUTION_APIS, Imported, lines, serve, shared};

fn amount(value: &Value) -> U256 {
    text(value).parse().unwrap()
}

/// The accounts of a state file or a genesis file, by lower-case address.
fn accounts(state: &Value) -> Vec<(String, U256)> {
    let listed = state.as_object().unwrap().iter();
    listed
        .map(|(account, state)| {
            let account = format!("0x{}", account.trim_start_matches("0x").to_lowercase());
            (account, state.get("balance").map_or(U256::ZERO, amount))
        })
        .collect()
}

fn json_file(path: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[track_caller]
fn balance_at(server: &Server, account: &str, block: &str) -> U256 {
    let target = format!("/api/account/{account}/balance-history?block={block}");
    let reply = server.get(&target);
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    assert_eq!(reply.header("x-balance-source"), Some("ledger"), "{target}");
    amount(&reply.json()["balance"])
}

/// A1 of every account of a state at the head.
fn check_head(server: &Server, state: &Value) -> usize {
    let state = state.get("accounts").unwrap_or(state);
    let mut held = 0;
    for (account, balance) in accounts(state) {
        assert_eq!(balance_at(server, &account, "latest"), balance, "{account}");
        if balance.is_zero() {
            continue;
        }
        let found = server.json(&format!("/api/account/{account}/balance"));
        assert_eq!(found["account"], account.as_str());
        assert_eq!(amount(&found["balance"]), balance, "{account}");
        held += 1;
    }
    held
}

#[test]
fn every_balance_of_the_execution_apis_chain_is_reproduced() {
    let Some(chain) = Imported::with_blob_gas(EXECUTION_APIS, "55 blocks") else {
        return;
    };
    let server = serve(chain.path());
    let status = server.json("/status");
    assert_eq!(status["chains"]["mainnet"]["nativeLedger"], "kept");
    let genesis = json_file(&chain.genesis);
    let mut balances: HashMap<String, U256> = HashMap::new();
    for (account, balance) in accounts(&genesis["alloc"]) {
        assert_eq!(balance_at(&server, &account, "0"), balance, "{account}");
        balances.insert(account, balance);
    }
    let mut asked = 0;
    for line in &chain.lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = number(&line["number"]);
        for (account, balance) in accounts(&line["accountsChanged"]) {
            let before = balances.insert(account.clone(), balance).unwrap_or_default();
            let asked_at = |block: u64| balance_at(&server, &account, &block.to_string());
            assert_eq!(asked_at(at), balance, "{account} after block {at}");
            assert_eq!(asked_at(at - 1), before, "{account} before block {at}");
            asked += 1;
        }
        // What nobody touched is as it was.
        for (account, balance) in balances.iter().take(10) {
            assert_eq!(
                balance_at(&server, account, &at.to_string()),
                *balance,
                "{account} at {at}"
            );
        }
    }
    let state = json_file(&shared("dev-chains/execution-apis/head-state.json").unwrap());
    let held = check_head(&server, &state);
    println!("{asked} balances by block, {held} holders at the head");
    assert!(asked > 150 && held > 20, "{asked} {held}");
    server.stop();
}

#[test]
fn the_head_state_of_the_ethtest_chain_is_reproduced() {
    let Some(chain) = Imported::with_blob_gas(ETHTEST, "601 blocks") else {
        return;
    };
    let server = serve(chain.path());
    let status = server.json("/status");
    assert_eq!(status["chains"]["mainnet"]["nativeLedger"], "kept");
    let state = json_file(&shared("dev-chains/geth-ethtest/head-state.json").unwrap());
    let held = check_head(&server, &state);
    println!("{held} holders at the head");
    assert!(held > 20, "{held}");
    server.stop();
}

/// Mainnet in the middle of its life: what accounts held before comes from the recorded state.
#[test]
fn mainnet_balance_changes_are_reproduced() {
    let (Some(blocks), Some(state)) = (
        shared("mainnet-blocks/complete.jsonl.zst"),
        shared("mainnet-blocks/state-15000001-15000015.jsonl.zst"),
    ) else {
        return;
    };
    const FIRST: u64 = 15_000_001;
    let states: Vec<Value> = lines(&state)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut openings: HashMap<Address, U256> = HashMap::new();
    for state in &states {
        for (account, change) in state["accounts"].as_object().unwrap() {
            let before = amount(&change["balanceBefore"]);
            openings.entry(account.parse().unwrap()).or_insert(before);
        }
    }
    let told: Vec<(Address, U256)> = openings
        .iter()
        .map(|(account, balance)| (*account, *balance))
        .collect();
    let genesis: B256 = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3"
        .parse()
        .unwrap();
    let rules = ChainRules::new(1, genesis, None, FIRST, false).nonces;
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_or_create(&OpenOptions::new(directory.path()), 1, genesis, Some(FIRST)).unwrap();
    let mut writer = store.writer().unwrap();
    for line in RecordedChain::open(blocks).unwrap() {
        let mut bundle = line.unwrap().parse().unwrap();
        if !(FIRST..FIRST + 15).contains(&bundle.block.number()) {
            continue;
        }
        bundle.openings = Some(told.clone());
        let mut batch = writer.batch();
        derive(&bundle, &rules, &mut batch).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }
    let reader = Reader::new(store.view());
    assert_eq!(reader.native_fault(), None);
    assert_eq!(reader.head().number, FIRST + 14);
    let (mut changed, mut compared) = (0, 0);
    for state in &states {
        let block = number(&state["block"]);
        for (account, change) in state["accounts"].as_object().unwrap() {
            let account: Address = account.parse().unwrap();
            let balance = amount(&change["balance"]);
            let found = match reader.balance(&account, block).unwrap() {
                Balance::Exact(found) => found,
                // Never met: it keeps what it opened with.
                _ => openings[&account],
            };
            assert_eq!(found, balance, "{account} after block {block}");
            changed += usize::from(balance != amount(&change["balanceBefore"]));
            compared += 1;
        }
    }
    // Every row of the ledger is one of the recorded changes.
    let rows = store.view().contents().unwrap();
    let rows = rows.iter().find(|table| table.name == "balances").unwrap().rows;
    println!("{compared} accounts compared, {changed} changed, {rows} rows");
    let met = openings
        .iter()
        .filter(|(account, balance)| !balance.is_zero() && store.view().account(account).unwrap().is_some());
    assert_eq!(rows, (changed + met.count()) as u64);
    assert!(changed > 3_000, "{changed}");
    drop((writer, Arc::clone(&store)));
}
