//! Lists of accounts over a real store: text in, JSON out.

use quarry::model::{Address, B256, Bundle};
use serde_json::{Value, json};

use crate::chain::{HEAD, World};
use crate::client::Reply;
use crate::lists::{self, Row, Whose};
use crate::plain::{self, ChainConfig, account};

const CHAIN_ID: u64 = 7;
const INDEXING: &str = "Data for the requested range is still being indexed";
const NO_TRACES: &str = "Data for the requested range is still being indexed";

fn bundles(traces: bool) -> Vec<Bundle> {
    let config = ChainConfig {
        traces,
        ..ChainConfig::default()
    };
    let mut bundles = plain::chain(5, HEAD + 1, &config);
    lists::vary(&mut bundles, 5);
    bundles
}

fn items(rows: &[Row]) -> Vec<Value> {
    rows.iter().map(|(_, item)| item.clone()).collect()
}

/// A transaction with most internal transactions: its place and hash.
fn busiest(bundles: &[Bundle]) -> (u64, usize, B256) {
    let places = bundles.iter().flat_map(|bundle| {
        let frames = bundle.traces.iter().flatten().map(|trace| trace.frames.len());
        frames
            .enumerate()
            .map(move |(index, count)| (count, bundle.block.number(), index))
    });
    let (_, number, index) = places.max().unwrap();
    (
        number,
        index,
        bundles[number as usize].block.transactions[index].hash,
    )
}

/// A list, the name of its array, the text before it, and all of its items.
struct Listed {
    target: String,
    name: &'static str,
    before: String,
    items: Vec<Value>,
}

fn every_list(bundles: &[Bundle]) -> Vec<Listed> {
    let paged = r#""chain":"mainnet","page":1,"offset":10000,"sort":"asc","#;
    let mut all = Vec::new();
    for number in [1, 3, 7] {
        let who = account(number);
        let address = const_hex::encode_prefixed(who);
        // Any case is taken, lower case is given.
        let path = format!("/api/account/0X{}", const_hex::encode_upper(who));
        let before = format!(r#"{{"address":"{address}",{paged}"#);
        all.push(Listed {
            target: format!("{path}/tx-list?"),
            name: "transactions",
            before: before.clone(),
            items: items(&lists::transactions(bundles, who)),
        });
        for zero in [false, true] {
            all.push(Listed {
                target: format!("{path}/tx-list-internal?includeZeroValue={zero}"),
                name: "internalTransactions",
                before: before.clone(),
                items: items(&lists::internal(CHAIN_ID, bundles, Whose::Of(who), zero)),
            });
        }
    }
    let miner = account(1);
    let reward = |number: u64| lists::tips(&bundles[number as usize]);
    all.push(Listed {
        target: format!("/api/account/{miner}/mined-blocks?"),
        name: "blocks",
        before: format!(r#"{{"address":"{}",{paged}"#, const_hex::encode_prefixed(miner)),
        items: items(&lists::mined(bundles, miner, reward)),
    });
    let (number, index, hash) = busiest(bundles);
    for zero in [false, true] {
        all.push(Listed {
            target: format!(
                "/api/account/tx-list-internal?startblock=0&endblock=99999999&includeZeroValue={zero}"
            ),
            name: "internalTransactions",
            before: format!(r#"{{"startblock":0,"endblock":99999999,{paged}"#),
            items: items(&lists::internal(CHAIN_ID, bundles, Whose::All, zero)),
        });
        all.push(Listed {
            target: format!("/api/account/tx-list-internal?hash={hash}&includeZeroValue={zero}"),
            name: "internalTransactions",
            before: format!(r#"{{"hash":"{hash}","chain":"mainnet","#),
            items: items(&lists::internal(
                CHAIN_ID,
                bundles,
                Whose::In(number, index),
                zero,
            )),
        });
    }
    all
}

/// Some nodes name in a receipt whom the call went to.
#[tokio::test]
async fn whom_a_call_went_to_is_not_told_as_created() {
    let mut bundles = bundles(true);
    let pairs = bundles
        .iter_mut()
        .flat_map(|bundle| bundle.block.transactions.iter().zip(&mut bundle.receipts));
    let mut calls = pairs.filter(|(transaction, receipt)| {
        transaction.to.is_some() && receipt.status == Some(true) && receipt.contract_address.is_none()
    });
    let (call, receipt) = calls.next().unwrap();
    let (from, to, hash) = (call.from, call.to, call.hash);
    receipt.contract_address = to;
    drop(calls);
    let world = World::over(bundles, None).await;
    let told = async |target: &str, name: &str| {
        let (_, value) = world.get(target).await;
        let rows = value[name]
            .as_array()
            .unwrap_or_else(|| panic!("{target}: {value}"));
        let row = rows.iter().find(|row| row["hash"] == json!(hash)).unwrap();
        assert_eq!(row["to"], json!(to));
        row["contractAddress"].clone()
    };
    let list = format!("/api/account/{from}/tx-list");
    assert_eq!(told(&list, "transactions").await, Value::Null);
    let list = format!("/api?module=account&action=txlist&address={from}");
    assert_eq!(told(&list, "result").await, json!(""));
    // The receipt is what the node said.
    let receipt = format!("/api/proxy?action=eth_getTransactionReceipt&txhash={hash}");
    let (_, receipt) = world.get(&receipt).await;
    assert_eq!(receipt["result"]["contractAddress"], json!(to));
}

#[tokio::test]
async fn whole_lists() {
    let bundles = bundles(true);
    let world = World::over(bundles.clone(), None).await;
    let mut streamed = 0;
    for Listed {
        target,
        name,
        before,
        items,
    } in every_list(&bundles)
    {
        assert!(items.len() > 2, "{target}");
        let (reply, value) = world.get(&target).await;
        let body = reply.whole_body();
        let head = format!("{before}\"{name}\":[");
        assert!(body.starts_with(&head), "{target}: {}", &body[..300]);
        assert!(value[name].as_array().unwrap() == &items, "{target}");
        let count = items.len().to_string();
        assert_eq!(reply.header("x-total-count"), Some(count.as_str()));
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("vary"), Some("accept"));
        assert_eq!(reply.header("x-indexed-block-number"), Some("59"));
        assert_eq!(reply.next, None);
        streamed += u32::from(reply.header("transfer-encoding").is_some());
        // The same as lines.
        let lines = world
            .server
            .get_as(&target, "application/x-ndjson, */*;q=0.1")
            .await;
        assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
        assert_eq!(lines.header("vary"), Some("accept"));
        assert_eq!(lines.header("x-total-count"), Some(count.as_str()));
        let text = lines.whole_body();
        assert!(text.ends_with('\n'));
        let inside = &body[head.len()..body.len() - 2];
        assert!(text.trim_end().replace("}\n{", "},{") == inside, "{target}");
        assert_eq!(text.lines().count(), items.len());
    }
    assert!(streamed > 0, "some list is longer than a frame");
}

#[tokio::test]
async fn pages_by_number_and_by_cursor_agree() {
    let bundles = bundles(true);
    let world = World::over(bundles.clone(), None).await;
    for Listed {
        target, name, items, ..
    } in every_list(&bundles)
    {
        for sort in ["asc", "desc"] {
            let mut expected = items.clone();
            if sort == "desc" {
                expected.reverse();
            }
            let offset = items.len().div_ceil(5);
            let list = format!("{target}&sort={sort}&offset={offset}");
            let array = |value: &Value| value[name].as_array().unwrap().clone();
            let (mut by_page, mut by_cursor, mut as_lines) = (Vec::new(), Vec::new(), String::new());
            for page in 1..=5 {
                let (_, value) = world.get(&format!("{list}&page={page}")).await;
                if value.get("page").is_some() {
                    assert_eq!(
                        (&value["page"], &value["offset"], &value["sort"]),
                        (&json!(page), &json!(offset), &json!(sort))
                    );
                }
                by_page.extend(array(&value));
            }
            let mut next = Some(list);
            while let Some(target) = next {
                let (reply, value) = world.get(&target).await;
                by_cursor.extend(array(&value));
                let lines = world.server.get_as(&target, "application/x-ndjson").await;
                as_lines += &lines.whole_body();
                assert_eq!(lines.next, reply.next);
                next = reply.next;
            }
            assert!(by_page == expected, "{target} {sort}");
            assert!(by_cursor == expected, "{target} {sort}");
            let lines: Vec<Value> = as_lines
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            assert!(lines == expected, "{target} {sort}");
        }
        for beyond in ["page=7777&offset=10000", "page=18446744073709551615&offset=10000"] {
            let (reply, value) = world.get(&format!("{target}&{beyond}")).await;
            assert_eq!(value[name], json!([]));
            assert_eq!(
                reply.header("x-total-count"),
                Some(items.len().to_string().as_str())
            );
        }
    }
}

#[tokio::test]
async fn ranges() {
    let bundles = bundles(true);
    let world = World::over(bundles.clone(), None).await;
    let within = |rows: Vec<Row>, first: u64, last: u64| -> Vec<Value> {
        let rows: Vec<Row> = rows
            .into_iter()
            .filter(|(block, _)| (first..=last).contains(block))
            .collect();
        items(&rows)
    };
    let who = account(2);
    let lists_of = [
        (
            format!("/api/account/{who}/tx-list"),
            "transactions",
            lists::transactions(&bundles, who),
        ),
        (
            format!("/api/account/{who}/tx-list-internal"),
            "internalTransactions",
            lists::internal(CHAIN_ID, &bundles, Whose::Of(who), false),
        ),
        (
            "/api/account/tx-list-internal".to_owned(),
            "internalTransactions",
            lists::internal(CHAIN_ID, &bundles, Whose::All, false),
        ),
    ];
    for (path, name, rows) in lists_of {
        for (range, first, last) in [
            ("startblock=20&endblock=40", 20, 40),
            ("startblock=0&endblock=13", 0, 13),
            ("startblock=59&endblock=59", 59, 59),
            ("startblock=30&endblock=latest", 30, 59),
            ("startblock=latest&endblock=latest", 59, 59),
            ("startblock=latest&endblock=81", 59, 59),
        ] {
            let (reply, value) = world.get(&format!("{path}?{range}")).await;
            let expected = within(rows.clone(), first, last);
            assert_eq!(
                reply.header("x-total-count"),
                Some(expected.len().to_string().as_str())
            );
            assert!(value[name] == json!(expected), "{path}?{range}");
        }
        let (reply, ahead) = world.get(&format!("{path}?startblock=60&endblock=latest")).await;
        assert_eq!(
            (&ahead[name], reply.header("x-total-count")),
            (&json!([]), Some("0"))
        );
        let lines = world
            .server
            .get_as(
                &format!("{path}?startblock=60&endblock=latest"),
                "application/x-ndjson",
            )
            .await;
        assert_eq!((lines.status, lines.body.as_str()), (200, ""));
        let refused = async |range: &str, status, text: &str| {
            world
                .server
                .get(&format!("{path}?{range}"))
                .await
                .assert_error(status, text);
        };
        refused("startblock=1&endblock=60", 503, INDEXING).await;
        refused("startblock=latest&endblock=58", 400, "Invalid block range").await;
        refused("startblock=9&endblock=8", 400, "Invalid block range").await;
        let forged = format!("startblock=0&endblock=latest&cursor={}", "0".repeat(32));
        refused(&forged, 400, "Invalid cursor parameter").await;
    }
    let echoed = world
        .json("/api/account/tx-list-internal?startblock=latest&endblock=latest")
        .await;
    assert_eq!(
        (&echoed["startblock"], &echoed["endblock"]),
        (&json!(59), &json!(59))
    );
}

/// Numbers that no machine word holds count as beyond everything, and are said again as they were given.
#[tokio::test]
async fn numbers_of_any_size_are_said_again() {
    const HUGE: &str = "99999999999999999999999";
    let world = World::over(bundles(true), None).await;
    let said = async |target: String, parts: &[String]| {
        let reply = world.server.get(&target).await;
        let body = reply.whole_body();
        assert_eq!(reply.status, 200, "{target}: {body}");
        for part in parts {
            assert!(body.contains(part), "{target}: {part} is not in {body}");
        }
    };
    for (given, page) in [
        (HUGE, HUGE),
        ("18446744073709551616", "18446744073709551616"),
        ("018446744073709551615", "18446744073709551615"),
        ("007", "7"),
    ] {
        let page = [format!("\"page\":{page},\"offset\":10000,")];
        said(format!("/api/account/{}/tx-list?page={given}", account(2)), &page).await;
    }
    let range = "/api/account/tx-list-internal?startblock";
    for (ends, first, last) in [
        (format!("1&endblock={HUGE}"), "1", HUGE),
        (format!("{HUGE}&endblock={HUGE}9"), HUGE, &format!("{HUGE}9")),
        (format!("{HUGE}&endblock=latest"), HUGE, "59"),
    ] {
        let parts = [format!("\"startblock\":{first},\"endblock\":{last},")];
        said(format!("{range}={ends}&offset=1"), &parts).await;
    }
    let reversed = format!("{range}={HUGE}9&endblock={HUGE}");
    let reply = world.server.get(&reversed).await;
    reply.assert_error(400, "Invalid block range");
    // With all of the node's blocks indexed, the last one is before any later time.
    world.status.set_node_head(HEAD);
    for time in ["18446744073709551616", HUGE] {
        let parts = [
            format!("\"timestamp\":\"{time}\""),
            "\"blockNumber\":\"59\"".to_owned(),
        ];
        said(format!("/api/block/timestamp/00{time}/block-number"), &parts).await;
        let after = format!("/api/block/timestamp/{time}/block-number?closest=after");
        world
            .server
            .get(&after)
            .await
            .assert_error(404, "Block not found");
    }
}

#[tokio::test]
async fn what_is_not_there() {
    let world = World::over(bundles(true), None).await;
    let stranger = account(777);
    let address = const_hex::encode_prefixed(stranger);
    for (list, name) in [
        ("tx-list", "transactions"),
        ("mined-blocks", "blocks"),
        ("tx-list-internal", "internalTransactions"),
        ("tx-list-internal?includeZeroValue=true", "internalTransactions"),
    ] {
        let (reply, value) = world.get(&format!("/api/account/{stranger}/{list}")).await;
        assert_eq!((reply.status, reply.header("x-total-count")), (200, Some("0")));
        assert_eq!(
            value,
            json!({"address": address, "chain": "mainnet", "page": 1, "offset": 10000, "sort": "asc", name: []})
        );
    }
    let unknown = B256::repeat_byte(9);
    for target in [
        format!("/api/account/tx-list-internal?hash={unknown}"),
        // The hash wins, whatever the range says.
        format!("/api/account/tx-list-internal?startblock=9&endblock=3&hash={unknown}"),
    ] {
        let reply: Reply = world.server.get(&target).await;
        reply.assert_error(404, "Transaction not found");
    }
    // Without a hash, and with one of a transaction that has nothing internal.
    let quiet = world.bundles.iter().find_map(|bundle| {
        let traces = bundle.traces.as_ref().unwrap();
        let index = traces.iter().position(|trace| trace.frames.len() == 1)?;
        Some(bundle.block.transactions[index].hash)
    });
    let quiet = quiet.unwrap();
    assert_eq!(
        world
            .json(&format!(
                "/api/account/tx-list-internal?hash={quiet}&startblock=x"
            ))
            .await,
        json!({"hash": quiet.to_string(), "chain": "mainnet", "internalTransactions": []})
    );
}

#[tokio::test]
async fn a_store_without_traces() {
    let bundles = bundles(false);
    let world = World::over(bundles.clone(), None).await;
    let hash = bundles
        .iter()
        .find_map(|bundle| bundle.block.transactions.first())
        .unwrap()
        .hash;
    let who = account(1);
    for target in [
        format!("/api/account/{who}/tx-list-internal"),
        format!("/api/account/{who}/tx-list-internal?includeZeroValue=true&startblock=50"),
        "/api/account/tx-list-internal?startblock=0&endblock=9".to_owned(),
        format!("/api/account/tx-list-internal?hash={hash}"),
        // Whom no transaction names may have been met by a call, and holds nothing.
        format!("/api/account/{:?}/balance", Address::repeat_byte(0x77)),
        // Statuses before Byzantium.
        format!("/api/account/{who}/tx-list"),
    ] {
        let reply = world.server.get(&target).await;
        assert_eq!(reply.header("retry-after"), Some("60"), "{target}");
        reply.assert_error(503, NO_TRACES);
    }
    let (_, status) = world.get("/status").await;
    let withheld = status["chains"]["mainnet"]["withheld"].as_array().unwrap();
    let told = |operation: &str| {
        withheld.iter().any(|one| {
            let operations = one["operations"].as_str().unwrap().split(", ");
            let because = one["because"].as_str().unwrap();
            operations.into_iter().any(|one| one == operation)
                && because.starts_with("blocks from 0 on have no call frames")
        })
    };
    for operation in [
        "A1", "A3", "A4", "A5", "A6", "A10", "B1", "C3", "S1", "S5", "X1", "X2",
    ] {
        assert!(told(operation), "{operation}: {withheld:?}");
    }
    assert!(!told("T3") && !told("L1"), "{withheld:?}");
    let later = world
        .json(&format!("/api/account/{who}/tx-list?startblock=14"))
        .await;
    let expected: Vec<Value> = lists::transactions(&bundles, who)
        .into_iter()
        .filter(|(block, _)| *block >= 14)
        .map(|(_, item)| item)
        .collect();
    assert!(!expected.is_empty());
    assert!(later["transactions"] == json!(expected));
}

#[tokio::test]
async fn lines_of_logs() {
    let world = World::over(bundles(true), None).await;
    let target = format!("/api/logs/get-logs?topic0={}", plain::topic(0));
    let (reply, value) = world.get(&target).await;
    let logs = value["logs"].as_array().unwrap();
    assert!(logs.len() > 5);
    assert_eq!(reply.header("vary"), Some("accept"));
    let lines = world.server.get_as(&target, "application/x-ndjson").await;
    let text = lines.whole_body();
    let parsed: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(&parsed, logs);
    for usual in [
        "*/*",
        "application/json, application/x-ndjson",
        "application/x-ndjson;q=0",
    ] {
        let reply = world.server.get_as(&target, usual).await;
        assert_eq!(reply.header("content-type"), Some("application/json"), "{usual}");
    }
    // A refusal is JSON whatever is accepted.
    let refused = world
        .server
        .get_as("/api/logs/get-logs", "application/x-ndjson")
        .await;
    refused.assert_error(400, "At least one topic is required");
}
