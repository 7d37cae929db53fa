//! Block rewards against what a node recorded of them, and against the balances of a whole chain.

use std::collections::{BTreeMap, HashMap};

use quarry::codec::value::FeeRow;
use quarry::model::{Day, StaticRewards, U256};
use quarry::node::recorded::RecordedChain;
use quarry::query::BlockReward;
use serde_json::Value;

use super::binary::{Server, list, number, text};
use super::{EXECUTION_APIS, Imported, lines, shared};

const MAINNET_GENESIS: &str = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3";

fn amount(value: &Value) -> U256 {
    text(value).parse().unwrap()
}

/// A `reward` trace states what the protocol gave a miner: the static reward and the uncle inclusion.
#[test]
fn mainnet_rewards_are_those_of_the_recorded_reward_traces() {
    let Some(file) = shared("mainnet-blocks/complete.jsonl.zst") else {
        return;
    };
    let rewards = StaticRewards::well_known(1, MAINNET_GENESIS.parse().unwrap());
    let texts = lines(&file);
    let (mut compared, mut with_uncles, mut blobs) = (0, 0, 0);
    for (line, recorded) in texts.iter().zip(RecordedChain::open(file).unwrap()) {
        let bundle = recorded.unwrap().parse().unwrap();
        let block = &bundle.block;
        let fee = |(transaction, receipt)| FeeRow::new(transaction, receipt);
        let fees: Vec<FeeRow> = block.transactions.iter().zip(&bundle.receipts).map(fee).collect();
        let reward = BlockReward::of(block, fees.iter().copied(), &rewards);
        let number = block.number();
        assert_eq!(reward.miner, Some(block.header.beneficiary));
        // Base fees burn by the block's gas, whoever paid them.
        let burnt =
            U256::from(block.header.base_fee_per_gas.unwrap_or(0)) * U256::from(block.header.gas_used);
        assert_eq!(reward.base_fees_burnt, burnt, "block {number}");
        if number >= 15_537_394 {
            assert_eq!(reward.static_reward, U256::ZERO);
        }
        // The price by the header is the one that receipts state.
        if reward.blob_fees_burnt > U256::ZERO {
            let unstated = fees.iter().map(|fee| FeeRow {
                blob_gas_price: None,
                ..*fee
            });
            let by_header = BlockReward::of(block, unstated, &rewards);
            assert_eq!(
                by_header.blob_fees_burnt, reward.blob_fees_burnt,
                "block {number}"
            );
            blobs += 1;
        }
        let line: Value = serde_json::from_str(line).unwrap();
        let traces = line["traces"].as_array();
        for trace in traces
            .into_iter()
            .flatten()
            .filter(|trace| trace["type"] == "reward")
        {
            let action = &trace["action"];
            assert_eq!(action["rewardType"], "block");
            assert_eq!(text(&action["author"]).parse(), Ok(block.header.beneficiary));
            let given = reward.static_reward + reward.uncle_inclusion_reward;
            assert_eq!(given, amount(&action["value"]), "block {number}");
            compared += 1;
            with_uncles += usize::from(!block.uncles.is_empty());
        }
    }
    println!("{blobs} blocks with blobs");
    assert_eq!((compared, with_uncles), (53, 2));
}

/// What all accounts together gained in a block is what was made less what was burnt.
#[test]
fn rewards_and_burnt_fees_are_what_the_balances_gained() {
    let Some(chain) = Imported::with_blob_gas(EXECUTION_APIS, "55 blocks") else {
        return;
    };
    let genesis: Value = serde_json::from_slice(&std::fs::read(&chain.genesis).unwrap()).unwrap();
    let mut balances: HashMap<String, U256> = HashMap::new();
    for (account, state) in genesis["alloc"].as_object().unwrap() {
        let account = format!("0x{}", account.trim_start_matches("0x"));
        balances.insert(account, amount(&state["balance"]));
    }
    let server = Server::start([
        "serve",
        "--data-dir",
        chain.path().to_str().unwrap(),
        "--static-reward",
        "0:5000000000000000000,9:3000000000000000000,12:2000000000000000000",
    ]);
    let mut uncles = 0;
    for line in &chain.lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = number(&line["block"]["number"]);
        let found = server.json(&format!("/api/block/{at}/rewards"));
        assert_eq!(found["blockMiner"], line["block"]["miner"]);
        let (mut before, mut after) = (U256::ZERO, U256::ZERO);
        for (account, state) in line["accountsChanged"].as_object().unwrap() {
            // An account that went is `null`.
            let now = state.get("balance").map_or(U256::ZERO, amount);
            before += balances.insert(account.clone(), now).unwrap_or_default();
            after += now;
        }
        let mut made = amount(&found["staticReward"]) + amount(&found["uncleInclusionReward"]);
        for reward in list(&found["rewards"])
            .iter()
            .filter(|reward| reward["type"] == "uncle")
        {
            made += amount(&reward["reward"]);
            uncles += 1;
        }
        for withdrawal in line["block"]["withdrawals"].as_array().into_iter().flatten() {
            made += amount(&withdrawal["amount"]) * U256::from(1_000_000_000);
        }
        assert_eq!(before + made, after + amount(&found["burntFees"]), "block {at}");
    }
    assert_eq!(uncles, 18);
    // The chain is not well known, but the genesis file told its forks when the store was made.
    let alone = super::serve(chain.path());
    let supply = alone.get("/api/stats/total-supply").text();
    let held = balances.values().fold(U256::ZERO, |sum, balance| sum + *balance);
    assert_eq!(
        supply,
        format!(
            r#"{{"totalSupply":{0},"circulatingSupply":{0},"chain":"mainnet"}}"#,
            coins(held)
        )
    );
    let mut days: BTreeMap<Day, [U256; 2]> = BTreeMap::new();
    for line in &chain.lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let target = format!("/api/block/{}/rewards", number(&line["block"]["number"]));
        let found = alone.json(&target);
        assert_eq!(found, server.json(&target));
        let [miners, protocol] = days
            .entry(Day::of(number(&line["block"]["timestamp"])))
            .or_default();
        *miners += amount(&found["blockReward"]);
        *protocol += amount(&found["staticReward"]) + amount(&found["uncleInclusionReward"]);
        for reward in list(&found["rewards"])
            .iter()
            .filter(|reward| reward["type"] == "uncle")
        {
            *protocol += amount(&reward["reward"]);
        }
    }
    for (day, [miners, protocol]) in days {
        for (path, wanted) in [
            ("daily-count-and-rewards", miners),
            ("daily-block-rewards", protocol),
        ] {
            let target = format!("/api/block/{path}?startDate={day}&endDate={day}");
            let found = alone.json(&target)["data"][0]["blockRewards_Coin"].clone();
            assert_eq!(found, coins(wanted).as_str(), "{target}");
        }
    }
    alone.stop();
    server.stop();
}

fn coins(wei: U256) -> String {
    let digits = format!("{:0>19}", wei.to_string());
    let (whole, fraction) = digits.split_at(digits.len() - 18);
    let text = format!("{whole}.{}", fraction.trim_end_matches('0'));
    text.trim_end_matches('.').to_owned()
}
