//! Supplies and balances of ERC-1155 tokens that the ledger doubts: by the ledger where it can tell, for nobody else can.

use quarry::model::token::{DEPOSIT, TRANSFER, TRANSFER_SINGLE, WITHDRAWAL};
use quarry::model::{Address, B256, Log, Topics, U256};
use serde_json::json;

use crate::chain::World;
use crate::plain::{self, ChainConfig};
use crate::verdicts;

const LATER: &str = "Data for the requested range is still being indexed";
const SUPPLY: &str = "Failed to fetch token total supply";

fn who(byte: u8) -> Address {
    Address::repeat_byte(byte)
}

fn units(token: Address, from: Address, to: Address, (id, amount): (u64, U256)) -> Log {
    let operator = B256::ZERO;
    Log {
        address: token,
        topics: Topics::new(&[TRANSFER_SINGLE, operator, from.into_word(), to.into_word()]).unwrap(),
        data: [U256::from(id), amount]
            .map(|word| word.to_be_bytes::<32>())
            .concat()
            .into(),
    }
}

/// A world with these logs in its first blocks, one each; its node answers 42 to whatever it is asked.
async fn with(logs: Vec<Log>) -> World {
    let mut bundles = plain::chain(5, 60, &ChainConfig::default());
    let with_receipts = bundles.iter_mut().filter(|bundle| !bundle.receipts.is_empty());
    for (bundle, log) in with_receipts.zip(logs) {
        bundle.receipts[0].logs.push(log);
    }
    World::over(bundles, Some(Ok(42))).await
}

/// A deposit, or a withdrawal.
fn wraps(topic: B256, token: Address, account: Address, amount: U256) -> Log {
    Log {
        address: token,
        topics: Topics::new(&[topic, account.into_word()]).unwrap(),
        data: amount.to_be_bytes_vec().into(),
    }
}

/// T1, T8, T2 and T9 of a holder, and the same of Etherscan's clients: what is told, by the ledger, or the refusal. T5 and the shares
/// of T3 follow T1.
async fn told(world: &World, token: Address, holder: Address, what: (Option<&str>, Option<&str>)) {
    let (supply, balance) = what;
    let of = format!("contractaddress={token:?}");
    let rows = [
        (
            format!("/api/token/{token:?}/total-supply"),
            "totalSupply",
            supply,
            SUPPLY,
        ),
        (
            format!("/api/token/{token:?}/total-supply-history"),
            "totalSupply",
            supply,
            LATER,
        ),
        (
            format!("/api/token/balance?{of}&address={holder:?}"),
            "balance",
            balance,
            LATER,
        ),
        (
            format!("/api/token/{holder:?}/total-balance-history?{of}"),
            "balance",
            balance,
            LATER,
        ),
        (
            format!("/api?module=stats&action=tokensupply&{of}"),
            "result",
            supply,
            SUPPLY,
        ),
        (
            format!("/api?module=account&action=tokenbalance&{of}&address={holder:?}"),
            "result",
            balance,
            LATER,
        ),
    ];
    for (target, field, amount, text) in rows {
        let reply = world.server.get(&target).await;
        let Some(amount) = amount else {
            assert_eq!(
                (reply.status, reply.header("retry-after")),
                (503, Some("3600")),
                "{target}"
            );
            let said = match field {
                "result" => ("result", format!("Error! {text}")),
                _ => ("error", text.to_owned()),
            };
            assert_eq!(reply.json()[said.0], said.1, "{target}");
            continue;
        };
        assert_eq!(
            (reply.status, reply.header("x-balance-source")),
            (200, Some("ledger")),
            "{target}: {}",
            reply.whole_body()
        );
        assert_eq!(reply.json()[field], amount, "{target}");
    }
    let info = world.server.get(&format!("/api/token/info?{of}")).await;
    assert_eq!(
        (info.status, info.header("x-balance-source")),
        (200, Some("ledger"))
    );
    assert_eq!(info.json()["totalSupply"], json!(supply));
    let target = format!("/api?module=token&action=tokeninfo&{of}");
    let info = world.server.get(&target).await.json();
    assert_eq!(info["result"][0]["totalSupply"], supply.unwrap_or(""));
    let holders = world.server.get(&format!("/api/token/balance?{of}")).await.json();
    for row in holders["holders"].as_array().unwrap() {
        assert_eq!(row["share"].is_null(), supply.is_none(), "{row}");
    }
}

#[tokio::test]
async fn sums_that_do_not_fit_are_refused_and_all_others_told() {
    let token = who(0xa1);
    let (zero, all) = (Address::ZERO, U256::MAX);
    let world = with(vec![
        units(token, zero, who(1), (3, U256::from(7))),
        units(token, zero, who(2), (1, all)),
        units(token, zero, who(2), (2, all)),
        units(token, who(1), who(3), (3, U256::from(2))),
        // What is left is less than what it has.
        units(token, who(2), who(4), (1, U256::from(9))),
    ])
    .await;
    told(&world, token, who(1), (None, Some("5"))).await;
    told(&world, token, who(3), (None, Some("2"))).await;
    told(&world, token, who(4), (None, Some("9"))).await;
    told(&world, token, who(2), (None, None)).await;
    told(&world, token, who(5), (None, Some("0"))).await;
    // Before it did not fit.
    let early = format!("/api/token/{token:?}/total-supply-history?block=0");
    let reply = world.server.get(&early).await;
    assert_eq!(
        (reply.status, reply.json()["totalSupply"].clone()),
        (200, json!("0"))
    );
}

#[tokio::test]
async fn events_that_take_away_what_none_gave_tell_nothing_of_a_whole() {
    let [liar, honest] = [0xa2, 0xa3].map(who);
    let world = with(vec![
        units(liar, Address::ZERO, who(1), (1, U256::from(7))),
        units(liar, who(2), who(1), (2, U256::from(5))),
        units(honest, Address::ZERO, who(1), (1, U256::from(7))),
    ])
    .await;
    told(&world, liar, who(1), (None, None)).await;
    told(&world, honest, who(1), (Some("7"), Some("7"))).await;
}

/// What was wrapped before the first transfer of units is no number of them, and counts among them all the same.
#[tokio::test]
async fn what_was_wrapped_is_told_as_no_units() {
    let [wrapper, taker] = [0xa5, 0xa6].map(who);
    let world = with(vec![
        wraps(DEPOSIT, wrapper, who(1), U256::from(10).pow(U256::from(18))),
        wraps(DEPOSIT, taker, who(1), U256::MAX),
        wraps(DEPOSIT, taker, who(1), U256::MAX),
        wraps(WITHDRAWAL, taker, who(1), U256::from(9)),
        units(wrapper, Address::ZERO, who(1), (7, U256::from(5))),
        units(taker, Address::ZERO, who(2), (7, U256::from(5))),
    ])
    .await;
    for token in [wrapper, taker] {
        told(&world, token, who(1), (None, None)).await;
        told(&world, token, who(2), (None, None)).await;
        // Whenever it is, also before the first transfer.
        for block in [0, 5, 10, 40] {
            for target in [
                format!("/api/token/{token:?}/total-supply-history?block={block}"),
                format!(
                    "/api/token/{:?}/total-balance-history?contractaddress={token:?}&block={block}",
                    who(1)
                ),
            ] {
                let reply = world.server.get(&target).await;
                assert_eq!(reply.header("retry-after"), Some("3600"), "{target}");
                reply.assert_error(503, LATER);
            }
        }
    }
}

/// One that moves coins, too, has a contract that can be asked.
#[tokio::test]
async fn a_contract_of_coins_and_units_is_asked() {
    let token = who(0xa4);
    let coins = Log {
        address: token,
        topics: Topics::new(&[TRANSFER, B256::ZERO, who(1).into_word()]).unwrap(),
        data: U256::from(3).to_be_bytes_vec().into(),
    };
    let world = with(vec![
        units(token, Address::ZERO, who(1), (1, U256::from(7))),
        coins,
    ])
    .await;
    let supply = world
        .server
        .get(&format!("/api/token/{token:?}/total-supply"))
        .await;
    assert_eq!(
        (supply.status, supply.header("x-balance-source")),
        (200, Some("node"))
    );
    assert_eq!(supply.json()["totalSupply"], "42");
}

/// A store that lacks its first logs says so, as its lists do.
#[tokio::test]
async fn a_token_that_is_older_than_the_store_is_not_told() {
    let chain: serde_json::Value = serde_json::from_str(include_str!("../../demo/chain.json")).unwrap();
    let goods = chain["contracts"]["goods"]["address"].as_str().unwrap();
    let whole = verdicts::World::start_at(true, 0).await;
    let target = format!("/api/token/{goods}/total-supply");
    assert_eq!(whole.server.get(&target).await.status, 200);
    let later = verdicts::World::start_at(true, 60).await;
    for target in [
        target,
        format!(
            "/api/token/balance?contractaddress={goods}&address={}",
            verdicts::HOLDER
        ),
    ] {
        let reply = later.server.get(&target).await;
        assert_eq!(reply.header("retry-after"), Some("3600"));
        reply.assert_error(503, LATER);
    }
}
