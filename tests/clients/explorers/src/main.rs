//! `foundry-block-explorers`, unmodified, against the service at QUARRY_URL: what came of each call, one JSON object a line.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

use foundry_block_explorers::Client;
use foundry_block_explorers::account::{InternalTxQueryOption, Tag, TokenQueryOption};
use serde_json::{Value, json};

fn say<T, E: std::fmt::Debug>(name: &str, came: Result<T, E>, show: impl FnOnce(T) -> Value) {
    let name = format!("foundry-block-explorers {name}");
    let line = match came {
        Ok(value) => json!({"call": name, "ok": show(value)}),
        Err(error) => json!({"call": name, "error": format!("{error:?}")}),
    };
    println!("{line}");
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(calls());
}

async fn calls() {
    let base = std::env::var("QUARRY_URL").unwrap();
    let of: Value = serde_json::from_str(&std::env::var("QUARRY_WORLD").unwrap()).unwrap();
    let text = |name: &str| of[name].as_str().unwrap();
    let client = Client::builder()
        .with_api_url(format!("{base}/v2/api?chainid=1"))
        .unwrap()
        .with_url(base.as_str())
        .unwrap()
        .with_api_key("key")
        .no_proxy()
        .build()
        .unwrap();
    let [sender, friend, coin, deeds, payer, payee, miner] =
        ["sender", "friend", "coin", "deeds", "payer", "payee", "miner"]
            .map(|name| text(name).parse().unwrap());
    let balance = client.get_ether_balance_single(&sender, Some(Tag::Latest)).await;
    say("get_ether_balance_single", balance, |found| json!(found.balance));
    let several = client
        .get_ether_balance_multi(&[sender, friend], Some(Tag::Latest))
        .await;
    say("get_ether_balance_multi", several, |found| json!(found.len()));
    say(
        "get_transactions",
        client.get_transactions(&sender, None).await,
        |found| json!(found.len()),
    );
    let by_hash = InternalTxQueryOption::ByTransactionHash(text("paid").parse().unwrap());
    let internal = client.get_internal_transactions(by_hash, None).await;
    say("get_internal_transactions by hash", internal, |found| {
        json!(found[0].value.to_string())
    });
    let by_address = InternalTxQueryOption::ByAddress(payee);
    let internal = client.get_internal_transactions(by_address, None).await;
    say("get_internal_transactions by address", internal, |found| {
        json!(found[0].value.to_string())
    });
    let both = TokenQueryOption::ByAddressAndContract(friend, coin);
    let coins = client.get_erc20_token_transfer_events(both, None).await;
    say("get_erc20_token_transfer_events by both", coins, |found| {
        json!(found[0].value.to_string())
    });
    let coins = client
        .get_erc20_token_transfer_events(TokenQueryOption::ByContract(coin), None)
        .await;
    say("get_erc20_token_transfer_events by contract", coins, |found| {
        json!(found.len())
    });
    let held = client
        .get_erc721_token_transfer_events(TokenQueryOption::ByAddress(friend), None)
        .await;
    say("get_erc721_token_transfer_events", held, |found| {
        json!(found[0].token_id)
    });
    let goods = client
        .get_erc1155_token_transfer_events(TokenQueryOption::ByAddress(friend), None)
        .await;
    say("get_erc1155_token_transfer_events", goods, |found| {
        json!([found[0].token_id, found[0].token_value])
    });
    let mined = client.get_mined_blocks(&miner, None, None).await;
    say("get_mined_blocks", mined, |found| json!(!found.is_empty()));
    let at = client
        .get_block_by_timestamp(of["time"].as_u64().unwrap(), "before")
        .await;
    say("get_block_by_timestamp", at, |found| {
        json!(found.block_number.as_number().unwrap().to::<u64>())
    });
    let abi = client.contract_abi(coin).await;
    say("contract_abi", abi, |found| {
        json!(found.functions.contains_key("transfer"))
    });
    let source = client.contract_source_code(deeds).await;
    say("contract_source_code", source, |found| {
        let item = &found.items[0];
        json!([
            item.contract_name,
            item.sources().len(),
            item.compiler_version().is_ok()
        ])
    });
    let created = client.contract_creation_data(coin).await;
    say("contract_creation_data", created, |found| {
        json!(format!("{:?}", found.contract_creator))
    });
    say("gas_oracle", client.gas_oracle().await, |found| {
        json!(found.gas_used_ratio.len())
    });
    let paid = client.check_contract_execution_status(text("paid")).await;
    say("check_contract_execution_status", paid, |()| json!(true));
    let paid = client.check_transaction_receipt_status(text("paid")).await;
    say("check_transaction_receipt_status", paid, |()| json!(true));
    let failed = client.check_contract_execution_status(text("failed")).await;
    say("check_contract_execution_status of a failure", failed, |()| {
        json!(true)
    });
    let unverified = client.contract_abi(payer).await;
    say("contract_abi unverified", unverified, |_| json!(true));
    let unverified = client.contract_source_code(payer).await;
    say("contract_source_code unverified", unverified, |_| json!(true));
}
