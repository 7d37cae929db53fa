//! Lists of tokens, holders and ids: their cursors, and what a store that begins late says. Over the demo's chain.

use quarry::json::UuidSpace;
use quarry::model::{Address, U256};
use quarry::store::ToldBalance;
use serde_json::Value;

use crate::verdicts::{COIN, HOLDER, LIAR, World};

/// Made in block 15, when the coin and others had moved.
const DOLLAR: &str = "0x2910e325cf29dd912e3476b61ef12f49cb931096";
const DEEDS: &str = "0x0116686e2291dbd5e317f47fadbfb43b599786ef";
const OWNER: &str = "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc";

/// The rows of a list, page after page by `Link`, and how many pages there were.
async fn walk(world: &World, first: &str, name: &str, source: Option<&str>) -> (Vec<Value>, usize) {
    let mut rows = Vec::new();
    let mut next = Some(first.to_owned());
    let mut pages = 0;
    let mut total = None;
    while let Some(target) = next {
        let reply = world.server.get(&target).await;
        assert_eq!(
            (reply.status, reply.header("x-balance-source")),
            (200, source),
            "{target}"
        );
        let said = reply.header("x-total-count").unwrap().to_owned();
        assert_eq!(*total.get_or_insert(said.clone()), said, "{target}");
        rows.extend(reply.json()[name].as_array().unwrap().iter().cloned());
        pages += 1;
        next = reply.next;
    }
    assert_eq!(total, Some(rows.len().to_string()));
    (rows, pages)
}

/// The same list by page numbers.
async fn by_number(world: &World, target: &str, name: &str) -> Vec<Value> {
    let mut rows = Vec::new();
    for page in 1.. {
        let reply = world.server.get(&format!("{target}&page={page}")).await;
        let value = reply.json();
        let found = value[name].as_array().unwrap();
        if found.is_empty() {
            assert_eq!(reply.next, None);
            break;
        }
        rows.extend(found.iter().cloned());
    }
    rows
}

#[tokio::test]
async fn cursors_walk_over_the_whole_list() {
    let world = World::start(false).await;
    let lists = [
        (
            format!("/api/token/holder-list?contractaddress={COIN}&offset=10"),
            "holders",
            Some("ledger"),
        ),
        (
            format!("/api/token/balance?contractaddress={COIN}&offset=15"),
            "holders",
            Some("ledger"),
        ),
        (
            format!("/api/token/erc20-holdings?address={HOLDER}&offset=1"),
            "tokens",
            None,
        ),
        (
            format!("/api/token/erc721-holdings?address={OWNER}&offset=1"),
            "tokens",
            None,
        ),
        (
            format!("/api/token/{OWNER}/nft-inventory?contractaddress={DEEDS}&offset=1"),
            "tokens",
            None,
        ),
        (
            format!("/api/token/erc1155-holdings?address={OWNER}&offset=1"),
            "tokens",
            None,
        ),
    ];
    for (target, name, source) in lists {
        let (rows, pages) = walk(&world, &target, name, source).await;
        assert!(!rows.is_empty());
        assert!(pages > 1 || target.contains("erc721"), "{target} has one page");
        assert_eq!(rows, by_number(&world, &target, name).await, "{target}");
        // A cursor wins over a page; one of another list or form is none.
        for wrong in [
            "0",
            "zz",
            "%20",
            &"0".repeat(34),
            &"g".repeat(40),
            &"g".repeat(64),
            &"g".repeat(104),
        ] {
            let reply = world.server.get(&format!("{target}&cursor={wrong}")).await;
            reply.assert_error(400, "Invalid cursor parameter");
        }
        let reply = world.server.get(&target).await;
        if let Some(next) = &reply.next {
            let first = reply.json()[name].as_array().unwrap().len();
            let reply = world.server.get(&format!("{next}&page=7")).await;
            assert_eq!(reply.json()[name][0], rows[first]);
        }
    }
}

/// T2 has the path of T3, and none of its parameters: what they hold is not looked at.
#[tokio::test]
async fn a_balance_minds_no_parameter_of_the_list_of_holders() {
    let world = World::start(false).await;
    let list = format!("/api/token/balance?contractaddress={COIN}");
    let target = format!("{list}&address={HOLDER}");
    let told = world.server.get(&target).await;
    assert_eq!(told.status, 200, "{}", told.body);
    for more in [
        "offset=abc",
        "offset=%ff",
        "page=0",
        "page=1&page=2",
        "cursor=%zz",
    ] {
        let reply = world.server.get(&format!("{target}&{more}")).await;
        assert_eq!((reply.status, &reply.body), (200, &told.body), "{more}");
        assert_eq!(
            world.server.get(&format!("{list}&{more}")).await.status,
            400,
            "{more}"
        );
    }
}

#[tokio::test]
async fn cursors_walk_over_told_holders() {
    let world = World::start(true).await;
    world.judge(false);
    let told: Vec<ToldBalance> = (1..=35u8)
        .map(|holder| ToldBalance {
            holder: Address::repeat_byte(holder),
            balance: U256::from(holder / 3 + 1),
            block: 9,
        })
        .collect();
    let coin: Address = COIN.parse().unwrap();
    world.observed.put_balances(&coin, &told, Some((None, true)));
    let target = format!("/api/token/holder-list?contractaddress={COIN}&offset=10");
    let (rows, pages) = walk(&world, &target, "holders", Some("node")).await;
    assert_eq!((rows.len(), pages), (35, 4));
    assert_eq!(rows, by_number(&world, &target, "holders").await);
    // What only contracts tell of stands among the rest of what an account holds.
    let told = |who: &Address| ToldBalance {
        holder: *who,
        balance: U256::from(7),
        block: 9,
    };
    let accounts = [Address::repeat_byte(1), HOLDER.parse().unwrap()];
    let liar: Address = LIAR.parse().unwrap();
    world.observed.put_verdict(&liar, &world.verdict(false));
    world
        .observed
        .put_balances(&liar, &accounts.each_ref().map(told), Some((None, true)));
    for (account, least) in accounts.iter().zip([2, 3]) {
        let held = format!("/api/token/erc20-holdings?address={account:?}&offset=1");
        let (rows, pages) = walk(&world, &held, "tokens", None).await;
        assert!(rows.len() >= least && pages == rows.len(), "{held}: {pages}");
        assert!(
            rows.iter()
                .any(|row| row["contractAddress"] == LIAR && row["balance"] == "7")
        );
        assert_eq!(rows, by_number(&world, &held, "tokens").await);
    }
    // One who is gone since is gone on behind.
    let reply = world.server.get(&target).await;
    let last: Address = rows[9]["address"].as_str().unwrap().parse().unwrap();
    let gone = ToldBalance {
        holder: last,
        balance: U256::ZERO,
        block: 10,
    };
    world.observed.put_balances(&coin, &[gone], None);
    let reply = world.server.get(&reply.next.unwrap()).await;
    assert_eq!(
        reply.json()["holders"].as_array().unwrap()[0]["address"],
        rows[10]["address"]
    );
    assert_eq!(reply.header("x-total-count"), Some("34"));
}

#[tokio::test]
async fn short_lists_are_not_given() {
    let world = World::start_at(false, 14).await;
    let of_token = |token: &str| {
        [
            format!("/api/token/balance?contractaddress={token}"),
            format!("/api/token/holder-list?contractaddress={token}"),
            format!("/api/token/holder-count?contractaddress={token}"),
            format!("/api/token/info?contractaddress={token}"),
            format!("/api/token/{OWNER}/nft-inventory?contractaddress={token}"),
        ]
    };
    let of_accounts =
        ["erc20", "erc721", "erc1155"].map(|kind| format!("/api/token/{kind}-holdings?address={HOLDER}"));
    for target in of_token(COIN).iter().chain(&of_accounts) {
        let reply = world.server.get(target).await;
        reply.assert_error(503, "Data for the requested range is still being indexed");
    }
    for target in of_token(DOLLAR).iter().chain(&of_token(DEEDS)) {
        assert_eq!(world.server.get(target).await.status, 200, "{target}");
    }
    let nobody = format!("/api/token/holder-count?contractaddress={HOLDER}");
    world
        .server
        .get(&nobody)
        .await
        .assert_error(404, "Token not found");
}

/// What the demo's account 5 did with ids of `goods`: made some, twice the same id in one batch, and sent of them.
#[tokio::test]
async fn items_of_batches_are_rows_of_their_own() {
    let world = World::start(false).await;
    let target = format!("/api/account/{OWNER}/token-1155-tx");
    let reply = world.server.get(&target).await;
    assert_eq!(reply.status, 200);
    let body = reply.json();
    let rows = body["transfers"].as_array().unwrap();
    assert_eq!(
        reply.header("x-total-count"),
        Some(rows.len().to_string().as_str())
    );
    let moved: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            (
                row["tokenId"].as_str().unwrap(),
                row["tokenValue"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        moved,
        [
            ("1", "10"),
            ("2", "20"),
            ("2", "5"),
            ("3", "1"),
            ("2", "7"),
            ("1", "4"),
            ("3", "1")
        ]
    );
    // The items of one log differ in their place in it alone, which only their ids tell.
    let ids = UuidSpace::new(31_337);
    for (row, position) in rows.iter().zip([0, 1, 2, 3, 0, 0, 1]) {
        let hash = row["blockHash"].as_str().unwrap().parse().unwrap();
        let log_index = row["logIndex"].as_u64().unwrap() as u32;
        let expected = ids.transfer(&hash, log_index, position).to_string();
        assert_eq!(row["uuid"], expected);
    }
    assert!(rows[..4].iter().all(|row| row["logIndex"] == rows[0]["logIndex"]));
    let zero = format!("0x{}", "00".repeat(20));
    assert!(
        rows[..4]
            .iter()
            .all(|row| row["from"] == zero && row["to"] == OWNER)
    );
    assert!(rows[4..].iter().all(|row| row["from"] == OWNER));
    let names: Vec<&String> = rows[0].as_object().unwrap().keys().collect();
    let mut expected: Vec<&str> =
        "uuid transactionHash logIndex blockNumber blockHash timestamp transactionIndex from to \
        contractAddress tokenId tokenValue tokenName tokenSymbol tokenDecimal nonce gas gasPrice gasUsed \
        cumulativeGasUsed confirmations"
            .split_whitespace()
            .collect();
    expected.sort_unstable();
    let mut names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, expected);

    // Pages, by cursor and newest first, cut through the batch.
    let (walked, pages) = walk(&world, &format!("{target}?sort=desc&offset=3"), "transfers", None).await;
    assert!(pages == 3 && walked.iter().rev().eq(rows));
    let block: u64 = rows[0]["blockNumber"].as_str().unwrap().parse().unwrap();
    for (range, count) in [(block..=block, 7), (0..=block - 1, 0), (block + 1..=block + 9, 0)] {
        let target = format!("{target}?startblock={}&endblock={}", range.start(), range.end());
        let found = world.server.get(&target).await.json();
        assert_eq!(found["transfers"].as_array().unwrap().len(), count, "{target}");
    }

    // One token alone, by either spelling.
    let goods = rows[0]["contractAddress"].as_str().unwrap();
    for name in ["contractaddress", "contractAddress"] {
        let one = world.server.get(&format!("{target}?{name}={goods}")).await.json();
        assert_eq!(
            (&one["transfers"], &one["contractAddress"]),
            (&body["transfers"], &Value::from(goods))
        );
        let none = world.server.get(&format!("{target}?{name}={COIN}")).await;
        assert_eq!(none.json()["transfers"], Value::Array(Vec::new()));
        let wrong = world.server.get(&format!("{target}?{name}=0x12")).await;
        wrong.assert_error(400, "Invalid contract address format");
    }
    let both = world
        .server
        .get(&format!(
            "{target}?contractaddress={goods}&contractAddress={goods}"
        ))
        .await;
    both.assert_error(400, "Duplicate parameter: contractaddress");

    // What is left of each id.
    let held = format!("/api/token/erc1155-holdings?address={OWNER}");
    let left = world.server.get(&held).await.json();
    let units: Vec<(&str, &str)> = left["tokens"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["tokenId"].as_str().unwrap(), row["balance"].as_str().unwrap()))
        .collect();
    assert_eq!(units, [("1", "6"), ("2", "18")]);
    assert!(
        left["tokens"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["contractAddress"] == goods)
    );
    for (filter, count) in [(goods, 2), (COIN, 0)] {
        let reply = world
            .server
            .get(&format!("{held}&contractAddress={filter}"))
            .await;
        assert_eq!(reply.json()["tokens"].as_array().unwrap().len(), count);
    }
    world
        .server
        .get("/api/token/erc1155-holdings")
        .await
        .assert_error(400, "Missing required parameter: address");
}
