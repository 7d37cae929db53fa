//! A1, A2, A10, A11 over a real store, with and without a node.

use quarry::api::UpstreamError;
use quarry::model::{Bundle, FrameKind, U256};
use serde_json::{Value, json};

use crate::chain::World;
use crate::ledger::{Blocks, call, rules, sealer, who, withdrawal};

const INDEXING: &str = "Data for the requested range is still being indexed";
const HELD: u64 = 2_000_000_000_000_000_000;

fn hex(number: u64) -> String {
    const_hex::encode_prefixed(who(number))
}

/// Sixty blocks, so that the head is the other tests': the first three are told of below.
fn bundles() -> Vec<Bundle> {
    let mut blocks = Blocks::new();
    blocks.push(vec![call(who(1), who(2), 1_500_000_000_000_000_000).with(
        FrameKind::Call,
        &[0],
        who(2),
        who(3),
        400,
    )]);
    blocks.push(vec![call(who(2), who(4), 0)]);
    blocks.push(vec![]).block.withdrawals = Some(vec![withdrawal(who(5), 7)]);
    while blocks.0.len() < 60 {
        blocks.push(vec![]);
    }
    blocks.0
}

async fn world(node: Option<Result<u64, UpstreamError>>) -> World {
    World::ruled(bundles(), node, None, rules(&[(who(1), HELD), (who(6), 8)])).await
}

async fn sourced(world: &World, target: &str) -> (Value, String) {
    let (reply, body) = world.get(target).await;
    assert_eq!(reply.status, 200, "{target}: {body}");
    (
        body,
        reply.header("x-balance-source").unwrap_or_default().to_owned(),
    )
}

#[tokio::test]
async fn balances_now() {
    let world = world(None).await;
    let balance = |number: u64| format!("/api/account/{}/balance", hex(number));
    let (body, source) = sourced(&world, &balance(2)).await;
    assert_eq!(source, "ledger");
    assert_eq!(body, json!({"account": hex(2), "balance": "1499999999999999500"}));
    let (body, _) = sourced(&world, &format!("{}?unit=coin", balance(2))).await;
    assert_eq!(body["balance"], "1.4999999999999995");
    // Any case is taken, lower case is given.
    let upper = format!(
        "/api/account/0X{}/balance?unit=coin",
        const_hex::encode_upper(who(3))
    );
    let (body, _) = sourced(&world, &upper).await;
    assert_eq!(body, json!({"account": hex(3), "balance": "0.0000000000000004"}));
    // Somebody who holds nothing, somebody who only holds something, and nobody.
    assert_eq!(world.json(&balance(4)).await["balance"], "0");
    assert_eq!(world.json(&balance(6)).await["balance"], "8");
    world
        .server
        .get(&balance(7))
        .await
        .assert_error(404, "Address not found");
    world
        .server
        .get("/api/account/0x12/balance")
        .await
        .assert_error(400, "Invalid address format");
    let unit = format!("{}?unit=ether", balance(2));
    world
        .server
        .get(&unit)
        .await
        .assert_error(400, "Invalid unit parameter");
}

#[tokio::test]
async fn balances_of_several() {
    let world = world(None).await;
    let list = [2, 7, 2, 6].map(hex).join("%20,%20");
    let (body, source) = sourced(&world, &format!("/api/account/balance-multi?address={list}")).await;
    assert_eq!(source, "ledger");
    let one = |number: u64, balance: &str| json!({"account": hex(number), "balance": balance});
    let expected = [one(2, "1499999999999999500"), one(7, "0"), one(6, "8")];
    assert_eq!(body, json!({"chain": "mainnet", "balances": expected}));
    let many = |count: u64| (0..count).map(hex).collect::<Vec<_>>().join(",");
    let target = |list: String| format!("/api/account/balance-multi?unit=coin&address={list}");
    let body = world.json(&target(many(100))).await;
    assert_eq!(body["balances"].as_array().unwrap().len(), 100);
    assert_eq!(body["balances"][6]["balance"], "0.000000000000000008");
    let too_many = world.server.get(&target(many(101))).await;
    too_many.assert_error(400, "At most 100 addresses are allowed");
    let once_more = world
        .server
        .get(&target(format!("{},{}", many(100), hex(1))))
        .await;
    once_more.assert_error(400, "At most 100 addresses are allowed");
    let missing = world.server.get("/api/account/balance-multi").await;
    missing.assert_error(400, "Missing required parameter: address");
    let malformed = world.server.get(&target(format!("{},0x1", hex(1)))).await;
    malformed.assert_error(400, "Invalid address format");
}

#[tokio::test]
async fn balances_then() {
    let world = world(None).await;
    let at = |number: u64, block: &str| format!("/api/account/{}/balance-history{block}", hex(number));
    let expected = [
        (0, "0"),
        (1, "1499999999999999600"),
        (2, "1499999999999999500"),
        (59, "1499999999999999500"),
    ];
    for (block, balance) in expected {
        let (body, source) = sourced(&world, &at(2, &format!("?block={block}"))).await;
        let expected = json!({"account": hex(2), "chain": "mainnet", "block": block, "balance": balance});
        assert_eq!((body, source.as_str()), (expected, "ledger"));
    }
    for latest in ["", "?block=latest", "?block="] {
        assert_eq!(world.json(&at(2, latest)).await["block"], 59);
    }
    // Nobody holds nothing.
    assert_eq!(world.json(&at(7, "?block=3")).await["balance"], "0");
    // A block that is final stays as it is; the head does not.
    let (reply, _) = world.get(&at(2, "?block=1")).await;
    assert!(reply.header("cache-control").unwrap().contains("immutable"));
    let (reply, _) = world.get(&at(2, "")).await;
    assert!(!reply.header("cache-control").unwrap().contains("immutable"));
    // The index ends at 59, the node at 80.
    world
        .server
        .get(&at(2, "?block=60"))
        .await
        .assert_error(503, INDEXING);
    for block in ["81", "-1", "0x1", "earliest"] {
        let reply = world.server.get(&at(2, &format!("?block={block}"))).await;
        reply.assert_error(400, "Invalid block parameter");
    }
}

#[tokio::test]
async fn first_inflows() {
    let world = world(None).await;
    let by = |number: u64| format!("/api/account/{}/funded-by", hex(number));
    let hash = |block: usize| const_hex::encode_prefixed(world.bundles[block].block.transactions[0].hash);
    let shown = |number: u64, from: Value, txn: Value, kind: &str, value: &str, block: u64, age: &str| {
        json!({
            "address": hex(number), "chain": "mainnet", "fundingAddress": from, "fundingTxn": txn, "kind": kind,
            "value": value, "block": block, "timestamp": (1_700_000_000 + block * 3600).to_string(),
            "ageSeconds": (59 - block) * 3600, "age": age,
        })
    };
    let transaction = shown(
        2,
        hex(1).into(),
        hash(1).into(),
        "transaction",
        "1500000000000000000",
        1,
        "2 days 10 hrs",
    );
    assert_eq!(world.json(&by(2)).await, transaction);
    let internal = shown(
        3,
        hex(2).into(),
        hash(1).into(),
        "internal",
        "400",
        1,
        "2 days 10 hrs",
    );
    assert_eq!(world.json(&by(3)).await, internal);
    let withdrawal = shown(
        5,
        Value::Null,
        Value::Null,
        "withdrawal",
        "7000000000",
        3,
        "2 days 8 hrs",
    );
    assert_eq!(world.json(&by(5)).await, withdrawal);
    let genesis = shown(6, Value::Null, Value::Null, "genesis", "8", 0, "2 days 11 hrs");
    assert_eq!(world.json(&by(6)).await, genesis);
    let reward = world.json(&format!("/api/account/{}/funded-by", sealer())).await;
    assert_eq!(
        (&reward["kind"], &reward["value"]),
        (&json!("reward"), &json!("100"))
    );
    // Part of something, and never funded; nobody.
    for number in [4, 7] {
        world
            .server
            .get(&by(number))
            .await
            .assert_error(404, "Address not found");
    }
}

/// Etherscan's dialect has no kinds: what nobody sent has neither sender nor transaction.
#[tokio::test]
async fn first_inflows_in_the_dialect() {
    let world = world(None).await;
    let by = |account: &str| format!("/api?module=account&action=fundedby&address={account}");
    let hash = const_hex::encode_prefixed(world.bundles[1].block.transactions[0].hash);
    let sealed = const_hex::encode_prefixed(sealer());
    for (account, block, [from, txn, value, age]) in [
        (
            hex(2),
            1,
            [&*hex(1), &*hash, "1500000000000000000", "2 days 10 hrs"],
        ),
        (hex(3), 1_u64, [&*hex(2), &*hash, "400", "2 days 10 hrs"]),
        (sealed, 1, ["", "", "100", "2 days 10 hrs"]),
        (hex(5), 3, ["", "", "7000000000", "2 days 8 hrs"]),
        (hex(6), 0, ["", "", "8", "2 days 11 hrs"]),
    ] {
        let expected = json!({"status": "1", "message": "OK", "result": {
            "block": block, "timeStamp": (1_700_000_000 + block * 3600).to_string(), "fundingAddress": from,
            "fundingTxn": txn, "value": value, "age": age,
        }});
        assert_eq!(world.json(&by(&account)).await, expected, "{account}");
    }
    let refused = json!({"status": "0", "message": "NOTOK", "result": "Error! Address not found"});
    for number in [4, 7] {
        let (reply, body) = world.get(&by(&hex(number))).await;
        assert_eq!((reply.status, &body), (200, &refused), "{number}");
    }
}

/// A store that begins later: whoever may have been funded and emptied before has a nonce from then, and the node is asked for it
/// where the store does not show it.
#[tokio::test]
async fn first_inflows_of_a_store_that_begins_later() {
    const OF_BEFORE: (u16, Option<u64>) = (503, None);
    const NEVER: (u16, Option<u64>) = (404, None);
    let mut blocks = Blocks::new();
    blocks.push(vec![]);
    let to = |number: u64, value: u64| call(who(1), who(number), value);
    blocks.push(vec![to(3, 400), to(4, 10_000), to(5, 10_000), to(6, 0)]);
    let sent = blocks.push(vec![call(who(4), who(7), 1), call(who(5), who(7), 1)]);
    for (transaction, nonce) in sent.block.transactions.iter_mut().zip([7, 0]) {
        transaction.nonce = nonce;
    }
    while blocks.0.len() < 60 {
        blocks.push(vec![]);
    }
    let mut bundles = blocks.0.split_off(2);
    let openings: Vec<_> = [(1, HELD), (3, 0), (4, 0), (5, 0), (6, 0), (7, 0), (99, 5)]
        .map(|(number, wei)| (who(number), U256::from(wei)))
        .into();
    for bundle in &mut bundles {
        bundle.openings = Some(openings.clone());
    }
    let rules = || {
        let mut rules = rules(&[]);
        (rules.native.allocation, rules.from_genesis) = (None, false);
        rules
    };
    let down = Err(UpstreamError::Failed("down".to_owned()));
    // What the node tells of nonce and balance before the store; then the answers for 3 (received), 4 (sent with nonce 7), 5 (sent
    // with nonce 0), 6 (received nothing), 8 (nobody) and 1 (held something before).
    const FIRST: (u16, Option<u64>) = (200, Some(2));
    for (node, expected, seconds) in [
        (None, [OF_BEFORE, OF_BEFORE, FIRST, OF_BEFORE, OF_BEFORE], "3600"),
        (Some(Ok(0)), [FIRST, FIRST, FIRST, NEVER, NEVER], ""),
        (
            Some(Ok(3)),
            [OF_BEFORE, OF_BEFORE, FIRST, OF_BEFORE, OF_BEFORE],
            "3600",
        ),
        (
            Some(down),
            [OF_BEFORE, OF_BEFORE, FIRST, OF_BEFORE, OF_BEFORE],
            "1",
        ),
    ] {
        let world = World::ruled(bundles.clone(), node.clone(), None, rules()).await;
        for (number, expected) in [3, 4, 5, 6, 8].into_iter().zip(expected) {
            let target = format!("/api/account/{}/funded-by", hex(number));
            let (reply, body) = world.get(&target).await;
            assert_eq!(
                (reply.status, body["block"].as_u64()),
                expected,
                "{node:?} {number}: {body}"
            );
            if reply.status == 503 {
                reply.assert_error(503, INDEXING);
                // No waiting brings it, but where the node may come back.
                assert_eq!(reply.header("retry-after"), Some(seconds));
            }
        }
        let held = world
            .server
            .get(&format!("/api/account/{}/funded-by", hex(1)))
            .await;
        held.assert_error(503, INDEXING);
        assert_eq!(held.header("retry-after"), Some("3600"));
    }
    // While no block is final there is none before the first to be held against the node's, and it is asked all the same.
    let world = World::not_final(bundles.clone(), Some(Ok(0)), rules()).await;
    let (reply, body) = world.get(&format!("/api/account/{}/funded-by", hex(3))).await;
    assert_eq!((reply.status, body["block"].as_u64()), FIRST, "{body}");
    // Who has a nonce took part, whatever is left of it.
    let balance = format!("/api/account/{}/balance", hex(50));
    for (held, nonce, status) in [(0, 0, 404), (0, 2, 200), (7, 0, 200)] {
        let world = World::begun_later(bundles.clone(), Ok(held), Some(nonce), rules()).await;
        let (reply, body) = world.get(&balance).await;
        assert_eq!(reply.status, status, "{held} {nonce}: {body}");
        if status == 200 {
            assert_eq!(body["balance"], held.to_string());
        }
    }
    let world = World::ruled(bundles, None, None, rules()).await;
    // What nobody did since the first block changed only a node could tell, and there is none.
    let stranger = hex(50);
    for target in [
        balance,
        format!("/api/account/balance-multi?address={stranger}"),
        format!("/api/account/{stranger}/balance-history"),
        format!("/api?module=account&action=balance&address={stranger}"),
    ] {
        let reply = world.server.get(&target).await;
        assert_eq!(
            (reply.status, reply.header("retry-after")),
            (503, Some("3600")),
            "{target}"
        );
        assert!(reply.body.contains(INDEXING), "{target}");
    }
    let withheld = world.get("/status").await.1["chains"]["mainnet"]["withheld"].clone();
    let told = |one: &Value| one["operations"] == "A1, A2, A11";
    assert!(withheld.as_array().unwrap().iter().any(told), "{withheld}");
    let nonce = format!("/api/proxy?action=eth_getTransactionCount&address={stranger}");
    world
        .server
        .get(&nonce)
        .await
        .assert_error(502, "Upstream node error");
    // A block of before never comes, one of later does.
    for (block, seconds) in [(1, "3600"), (60, "1")] {
        let target = format!("/api/account/{}/balance-history?block={block}", hex(3));
        let reply = world.server.get(&target).await;
        reply.assert_error(503, INDEXING);
        assert_eq!(reply.header("retry-after"), Some(seconds), "{block}");
    }
}

/// A store that cannot tell: the node is asked, and what it says is told as its word.
#[tokio::test]
async fn without_openings_the_node_is_asked() {
    let mut untold = rules(&[]);
    untold.native.allocation = None;
    let targets = [
        format!("/api/account/{}/balance", hex(2)),
        format!("/api/account/balance-multi?address={}", hex(2)),
        format!("/api/account/{}/balance-history?block=2", hex(2)),
    ];
    let alone = World::ruled(bundles(), None, None, untold.clone()).await;
    // No waiting brings the ledger back: it is not a matter of indexing.
    for target in &targets {
        alone
            .server
            .get(target)
            .await
            .assert_error(502, "Upstream node error");
    }
    let funded = alone
        .server
        .get(&format!("/api/account/{}/funded-by", hex(2)))
        .await;
    assert_eq!(funded.header("retry-after"), Some("3600"));
    funded.assert_error(503, INDEXING);
    let withdrawals = format!(
        "/api?module=account&action=txsBeaconWithdrawal&address={}",
        hex(5)
    );
    let reply = alone.server.get(&withdrawals).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("3600")));
    let status = alone.get("/status").await.1;
    let withheld = &status["chains"]["mainnet"]["withheld"];
    let because = "the ledger of native balances ended, see nativeLedger";
    assert_eq!(withheld[0], json!({"operations": "S1", "because": because}));
    let because = format!("{because}: accounts whose first inflow it does not have");
    assert_eq!(withheld[1], json!({"operations": "A10", "because": because}));
    let sentence = status["chains"]["mainnet"]["nativeLedger"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        sentence.starts_with("not kept since block 1: the source does not tell"),
        "{sentence}"
    );
    let metrics = alone.server.get("/metrics").await;
    assert!(
        metrics
            .body
            .contains("quarry_native_ledger_fault_block{chain=\"mainnet\"} 1"),
        "{}",
        metrics.body
    );
    assert!(
        metrics
            .body
            .contains("quarry_native_ledger_kept{chain=\"mainnet\"} 0")
    );

    let asked = World::ruled(bundles(), Some(Ok(12_345)), None, untold.clone()).await;
    let (body, source) = sourced(&asked, &targets[0]).await;
    assert_eq!((&body["balance"], source.as_str()), (&json!("12345"), "node"));
    let (body, source) = sourced(&asked, &targets[1]).await;
    assert_eq!(
        (&body["balances"][0]["balance"], source.as_str()),
        (&json!("12345"), "node")
    );
    let (body, source) = sourced(&asked, &targets[2]).await;
    assert_eq!((&body["block"], &body["balance"]), (&json!(2), &json!("12345")));
    assert_eq!(source, "node");
    // Nobody, by the node's word.
    let empty = World::ruled(bundles(), Some(Ok(0)), None, untold.clone()).await;
    let nobody = format!("/api/account/{}/balance", hex(7));
    empty
        .server
        .get(&nobody)
        .await
        .assert_error(404, "Address not found");
    assert_eq!(empty.json(&targets[0]).await["balance"], "0");

    for (error, code) in [
        (UpstreamError::Failed("down".to_owned()), 502),
        (UpstreamError::TimedOut, 504),
    ] {
        let down = World::ruled(bundles(), Some(Err(error)), None, untold.clone()).await;
        for target in &targets {
            down.server
                .get(target)
                .await
                .assert_error(code, "Upstream node error");
        }
    }
    // Openings, but not of everybody: who was never met is asked for, and nobody says what it holds.
    let mut told = bundles();
    let openings = [
        (who(1), HELD),
        (who(2), 0),
        (who(3), 0),
        (who(4), 0),
        (who(5), 0),
        (sealer(), 0),
    ];
    for bundle in &mut told {
        bundle.openings = Some(openings.map(|(account, wei)| (account, U256::from(wei))).into());
    }
    let node = World::ruled(told.clone(), Some(Ok(77)), None, untold.clone()).await;
    assert_eq!(sourced(&node, &targets[0]).await.1, "ledger");
    let (body, source) = sourced(&node, &nobody).await;
    assert_eq!((&body["balance"], source.as_str()), (&json!("77"), "node"));
    let funded = node.json(&format!("/api/account/{}/funded-by", hex(7))).await;
    assert_eq!(
        (&funded["kind"], &funded["value"], &funded["block"]),
        (&json!("genesis"), &json!("77"), &json!(0))
    );
    // A node that fails is no reason to take an account for empty that the genesis block may have filled.
    let of_nobody = [
        nobody.clone(),
        format!("/api/account/balance-multi?address={}", hex(7)),
        format!("/api/account/{}/balance-history?block=2", hex(7)),
        format!("/api/account/{}/funded-by", hex(7)),
    ];
    let down = Err(UpstreamError::Failed("down".to_owned()));
    let down = World::ruled(told.clone(), Some(down), None, untold.clone()).await;
    for target in &of_nobody {
        down.server
            .get(target)
            .await
            .assert_error(502, "Upstream node error");
    }
    // Nor is a service without a node: the ledger's word would be a guess.
    let alone = World::ruled(told, None, None, untold).await;
    for target in &of_nobody {
        let reply = alone.server.get(target).await;
        reply.assert_error(502, "Upstream node error");
        assert_eq!(reply.header("x-balance-source"), None, "{target}");
    }
    let mixed = format!("/api/account/balance-multi?address={},{}", hex(2), hex(7));
    alone
        .server
        .get(&mixed)
        .await
        .assert_error(502, "Upstream node error");
    // Whom it met it knows.
    assert_eq!(sourced(&alone, &targets[0]).await.1, "ledger");
    let funded = format!("/api/account/{}/funded-by", hex(4));
    alone
        .server
        .get(&funded)
        .await
        .assert_error(404, "Address not found");
}
