//! Daily series over seeded chains, against sums over their plain values.

use std::collections::{BTreeMap, BTreeSet};

use quarry::api::UpstreamError;
use quarry::model::{Address, Bundle, Day, U256};
use quarry::store::{OpenOptions, Store};
use quarry::sync::derive::{NonceRules, derive, derive_traces};
use serde_json::{Map, Value, json};

use crate::chain::{HEAD, World};
use crate::participants::{day, participants};
use crate::plain::{self, Rng};
use crate::rewards::{REWARDS, eras, is_paid_in_token, pay_in_tokens};

/// Path, longest range, fields.
const SERIES: [(&str, u64, &[&str]); 11] = [
    ("/api/stats/daily-transaction-count", 90, &["transactionCount"]),
    ("/api/stats/daily-unique-addresses", 90, &["newAddressCount"]),
    (
        "/api/stats/daily-transaction-fees",
        90,
        &["transactionFee_Coin", "burntFee_Coin"],
    ),
    (
        "/api/stats/daily-network-utilization",
        90,
        &["networkUtilization"],
    ),
    ("/api/block/daily-average-size", 15, &["blockSize_Bytes"]),
    (
        "/api/block/daily-count-and-rewards",
        15,
        &["blockCount", "minerRewards"],
    ),
    ("/api/block/daily-block-rewards", 31, &["blockRewards_Coin"]),
    ("/api/block/daily-average-block-time", 5, &["blockTime_Sec"]),
    (
        "/api/gas-tracker/daily-average-gas-price",
        90,
        &["avgGasPrice_Gwei"],
    ),
    (
        "/api/gas-tracker/daily-total-gas-used",
        31,
        &["gasUsed", "gasLimit"],
    ),
    (
        "/api/gas-tracker/daily-average-gas-limit",
        31,
        &["gasUsed", "gasLimit"],
    ),
];
const INDEXING: &str = "Data for the requested range is still being indexed";

/// A chain of every era over some weeks, a leap day among them: days with many blocks, with one, and with none.
fn weeks(seed: u64) -> Vec<Bundle> {
    let mut bundles = eras(seed);
    let mut rng = Rng(seed);
    let mut time = 1_708_900_000;
    for bundle in &mut bundles {
        time += match rng.below(12) {
            0 => 100_000 + rng.below(400_000),
            1..=3 => 20_000 + rng.below(20_000),
            4 => 0,
            _ => 1 + rng.below(3000),
        };
        let header = &mut bundle.block.header;
        header.timestamp = time;
        header.gas_used = rng.below(30_000_000);
        header.gas_limit = 29_000_000 + rng.below(2_000_000);
        bundle.block.size = Some(500 + rng.below(100_000));
        for trace in bundle.traces.iter_mut().flatten() {
            for frame in trace.frames.iter_mut().skip(1) {
                frame.reverted = rng.below(4) == 0;
                // Somebody who is seen nowhere else.
                if rng.below(3) == 0 {
                    frame.to = Some(plain::account(5000 + rng.below(100)));
                }
            }
        }
    }
    bundles
}

/// `sum / count` rounded half up, by the definition: the nearest, of two the greater one.
fn rounded(sum: u128, count: u128) -> u128 {
    let below = sum / count;
    if (sum - below * count) * 2 >= count {
        below + 1
    } else {
        below
    }
}

fn hundredths(number: u128) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

/// A number with so many decimals, without the zeros at its end.
pub(crate) fn exact(number: u128, decimals: usize) -> String {
    let text = format!("{number:0>width$}", width = decimals + 1);
    let (whole, fraction) = text.split_at(text.len() - decimals);
    let text = format!("{whole}.{}", fraction.trim_end_matches('0'));
    text.trim_end_matches('.').to_owned()
}

fn static_reward(bundle: &Bundle) -> u128 {
    let header = &bundle.block.header;
    match header.number {
        0 => 0,
        _ if header.difficulty.is_zero() => 0,
        1..20 => 5_000_000_000_000_000_001,
        20..30 => 3_000_000_000_000_000_000,
        30.. => 2_000_000_000_000_000_000,
    }
}

/// All that is said of a day, by field; what its `before` ends with is known to whoever asks.
fn expected(bundles: &[Bundle], day: Day) -> BTreeMap<&'static str, Value> {
    let of_day: Vec<&Bundle> = bundles
        .iter()
        .filter(|bundle| crate::participants::day(bundle) == day)
        .collect();
    let before = bundles
        .iter()
        .filter(|bundle| crate::participants::day(bundle) < day)
        .map(|bundle| bundle.block.header.timestamp);
    let blocks = of_day.len() as u128;
    let (mut transactions, mut priced, mut prices) = (0u128, 0u128, 0u128);
    let (mut tips, mut burnt) = (0u128, 0u128);
    let (mut used, mut limit, mut size) = (0u128, 0u128, 0u128);
    let (mut static_rewards, mut inclusion, mut uncles, mut late) = (0u128, 0u128, 0u128, 0u64);
    for bundle in &of_day {
        let header = &bundle.block.header;
        used += u128::from(header.gas_used);
        limit += u128::from(header.gas_limit);
        size += u128::from(bundle.block.size.unwrap());
        let reward = static_reward(bundle);
        static_rewards += reward;
        inclusion += reward / 32 * bundle.block.uncles.len() as u128;
        for uncle in &bundle.block.uncle_headers {
            uncles += reward * u128::from(uncle.number + 8 - header.number) / 8;
            late += 1;
        }
        for (transaction, receipt) in bundle.block.transactions.iter().zip(&bundle.receipts) {
            transactions += 1;
            if is_paid_in_token(transaction) {
                continue;
            }
            let (gas, price) = (u128::from(receipt.gas_used), receipt.effective_gas_price.unwrap());
            let base = u128::from(header.base_fee_per_gas.unwrap_or(0));
            priced += 1;
            prices += price;
            tips += gas * (price - base);
            burnt += gas * base;
            burnt += u128::from(receipt.blob_gas_used.unwrap_or(0)) * receipt.blob_gas_price.unwrap_or(0);
        }
    }
    let known: BTreeSet<Address> = bundles
        .iter()
        .filter(|bundle| crate::participants::day(bundle) < day)
        .flat_map(participants)
        .collect();
    let here: BTreeSet<Address> = of_day.iter().flat_map(|bundle| participants(bundle)).collect();
    let times = || of_day.iter().map(|bundle| bundle.block.header.timestamp);
    let (since, intervals) = match before.max() {
        Some(before) => (before, blocks),
        None => (times().min().unwrap_or(0), blocks.saturating_sub(1)),
    };
    let over = |count: u128, text: &dyn Fn() -> Value| if count == 0 { Value::Null } else { text() };
    let seconds = || u128::from(times().max().unwrap() - since) * 100;
    BTreeMap::from([
        ("transactionCount", json!(transactions as u64)),
        ("newAddressCount", json!(here.difference(&known).count())),
        ("transactionFee_Coin", json!(exact(tips + burnt, 18))),
        ("burntFee_Coin", json!(exact(burnt, 18))),
        (
            "networkUtilization",
            over(limit, &|| json!(hundredths(rounded(used * 10_000, limit)))),
        ),
        (
            "blockSize_Bytes",
            over(blocks, &|| json!(rounded(size, blocks) as u64)),
        ),
        ("blockCount", json!(blocks as u64)),
        (
            "minerRewards",
            json!(exact(static_rewards + inclusion + tips, 18)),
        ),
        (
            "blockRewards_Coin",
            json!(exact(static_rewards + inclusion + uncles, 18)),
        ),
        (
            "blockTime_Sec",
            over(intervals, &|| json!(hundredths(rounded(seconds(), intervals)))),
        ),
        (
            "avgGasPrice_Gwei",
            over(priced, &|| json!(exact(rounded(prices, priced), 9))),
        ),
        ("gasUsed", json!(used.to_string())),
        (
            "gasLimit",
            over(blocks, &|| json!(rounded(limit, blocks).to_string())),
        ),
        // Of Etherscan's dialect alone.
        (
            "share",
            over(limit, &|| {
                let share = rounded(used * 10_000, limit);
                json!(format!("{}.{:04}", share / 10_000, share % 10_000))
            }),
        ),
        (
            "avgGasPrice_Wei",
            over(priced, &|| json!(rounded(prices, priced).to_string())),
        ),
        ("uncles", json!(late)),
        ("uncleRewards", json!(exact(uncles, 18))),
    ])
}

fn body(bundles: &[Bundle], fields: &[&str], first: Day, last: Day, sort: &str) -> Value {
    let (from, to) = (day(&bundles[0]), day(bundles.last().unwrap()));
    let mut data = Vec::new();
    for number in first.max(from).number()..=last.min(to).number() {
        let day = Day::from_number(number);
        let values = expected(bundles, day);
        let mut entry = Map::new();
        entry.insert("date".to_owned(), json!(day.to_string()));
        entry.insert("unixTimeStamp".to_owned(), json!(number * 86_400));
        for field in fields {
            // B5 and B6 spell different things alike.
            let name = if *field == "minerRewards" {
                "blockRewards_Coin"
            } else {
                field
            };
            entry.insert(name.to_owned(), values[field].clone());
        }
        data.push(Value::Object(entry));
    }
    if sort == "desc" {
        data.reverse();
    }
    json!({
        "startDate": first.to_string(), "endDate": last.to_string(), "chain": "mainnet", "sort": sort, "data": data,
    })
}

fn target(path: &str, first: Day, last: Day) -> String {
    format!("{path}?startDate={first}&endDate={last}")
}

/// A world at the tip of its node.
async fn at_the_tip(bundles: Vec<Bundle>, rewards: Option<&str>) -> World {
    let world = World::of(bundles, None, rewards).await;
    world.status.set_node_head(HEAD);
    world
}

#[tokio::test]
async fn series_equal_sums_over_the_chain() {
    for seed in [3, 4, 5] {
        let world = at_the_tip(weeks(seed), Some(REWARDS)).await;
        let (from, to) = (day(&world.bundles[0]).number(), day(&world.bundles[59]).number());
        assert!(to - from > 12, "{seed}: {from} {to}");
        let mut rng = Rng(seed);
        let mut empty = 0;
        for (path, most, fields) in SERIES {
            for round in 0..24 {
                let first = from - 8 + rng.below((to - from) as u64 + 16) as i64;
                let days = match round {
                    0 => most - 1,
                    1 => 0,
                    _ => rng.below(most),
                };
                let (first, last) = (Day::from_number(first), Day::from_number(first + days as i64));
                let (suffix, sort) = match round % 3 {
                    0 => ("", "asc"),
                    1 => ("&sort=asc", "asc"),
                    _ => ("&sort=desc", "desc"),
                };
                let target = target(path, first, last) + suffix;
                let found = world.json(&target).await;
                assert_eq!(
                    found,
                    body(&world.bundles, fields, first, last, sort),
                    "seed {seed}: {target}"
                );
                let data = found["data"].as_array().unwrap();
                empty += data.iter().filter(|entry| entry["gasUsed"] == "0").count();
            }
        }
        assert!(empty > 0, "{seed}");
    }
}

/// What is paid in tokens is counted, and neither its prices nor its fees are summed.
#[tokio::test]
async fn series_leave_out_what_is_paid_in_tokens() {
    let mut bundles = weeks(6);
    pay_in_tokens(&mut bundles);
    let world = at_the_tip(bundles, Some(REWARDS)).await;
    let (from, to) = (day(&world.bundles[0]), day(&world.bundles[59]));
    for (path, most, fields) in SERIES {
        for first in (from.number()..=to.number()).step_by(most as usize) {
            let last = Day::from_number(first + most as i64 - 1);
            let first = Day::from_number(first);
            let found = world.json(&target(path, first, last)).await;
            assert_eq!(
                found,
                body(&world.bundles, fields, first, last, "asc"),
                "{path} {first}"
            );
        }
    }
}

/// Action, and its fields by those that are expected of a day, with what stands for a mean over nothing.
type Action = (
    &'static str,
    &'static [(&'static str, &'static str, Option<&'static str>)],
);

/// The daily actions of Etherscan's dialect but that of prices.
const ACTIONS: [Action; 12] = [
    ("dailytx", &[("transactionCount", "transactionCount", None)]),
    ("dailynewaddress", &[("newAddressCount", "newAddressCount", None)]),
    (
        "dailytxnfee",
        &[("transactionFee_Eth", "transactionFee_Coin", None)],
    ),
    (
        "dailynetutilization",
        &[("networkUtilization", "share", Some("\"\""))],
    ),
    (
        "dailyavgblocksize",
        &[("blockSize_bytes", "blockSize_Bytes", Some("0"))],
    ),
    (
        "dailyblkcount",
        &[
            ("blockCount", "blockCount", None),
            ("blockRewards_Eth", "minerRewards", None),
        ],
    ),
    (
        "dailyblockrewards",
        &[("blockRewards_Eth", "blockRewards_Coin", None)],
    ),
    (
        "dailyuncleblkcount",
        &[
            ("uncleBlockCount", "uncles", None),
            ("uncleBlockRewards_Eth", "uncleRewards", None),
        ],
    ),
    (
        "dailyavgblocktime",
        &[("blockTime_sec", "blockTime_Sec", Some("\"\""))],
    ),
    (
        "dailyavggasprice",
        &[("avgGasPrice_Wei", "avgGasPrice_Wei", Some("\"\""))],
    ),
    ("dailygasused", &[("gasUsed", "gasUsed", None)]),
    ("dailyavggaslimit", &[("gasLimit", "gasLimit", Some("\"\""))]),
];

#[tokio::test]
async fn series_of_the_dialect_equal_sums_over_the_chain() {
    for seed in [3, 4, 5] {
        let world = at_the_tip(weeks(seed), Some(REWARDS)).await;
        let (from, to) = (day(&world.bundles[0]).number(), day(&world.bundles[59]).number());
        let days: Vec<_> = (from..=to)
            .map(|number| (number, expected(&world.bundles, Day::from_number(number))))
            .collect();
        for (action, fields) in ACTIONS {
            let mut nothing = 0;
            let entries = days.iter().map(|(number, values)| {
                let mut entry = Map::new();
                entry.insert("UTCDate".to_owned(), json!(Day::from_number(*number).to_string()));
                entry.insert("unixTimeStamp".to_owned(), json!((number * 86_400).to_string()));
                for (name, told, over_nothing) in fields {
                    let value = match (&values[told], over_nothing) {
                        (Value::Null, Some(text)) => {
                            nothing += 1;
                            serde_json::from_str(text).unwrap()
                        }
                        (value, _) => value.clone(),
                    };
                    entry.insert((*name).to_owned(), value);
                }
                Value::Object(entry)
            });
            let mut entries: Vec<Value> = entries.collect();
            let has_means = fields.iter().any(|(_, _, over_nothing)| over_nothing.is_some());
            assert_eq!(
                has_means,
                nothing > 0,
                "seed {seed}: {action} has no day without blocks"
            );
            // All days, and more than the chain has.
            let (first, last) = (Day::from_number(from - 1), Day::from_number(to + 1));
            let asked = format!("/api?module=stats&action={action}&startdate={first}&enddate={last}");
            for sort in ["", "&sort=asc", "&sort=desc"] {
                if sort.ends_with("desc") {
                    entries.reverse();
                }
                let told = json!({"status": "1", "message": "OK", "result": entries});
                let target = format!("{asked}{sort}");
                assert_eq!(world.json(&target).await, told, "seed {seed}: {target}");
            }
        }
        // No two of these say the same by chance.
        let differ = |one: &str, other: &str| days.iter().any(|(_, values)| values[one] != values[other]);
        assert!(differ("minerRewards", "blockRewards_Coin"));
        let is_late = |(_, values): &&(i64, BTreeMap<_, Value>)| values["uncles"] != json!(0);
        assert!(days.iter().filter(is_late).count() > 2, "{seed}");
    }
}

#[tokio::test]
async fn days_before_that_of_block_0_are_told() {
    let mut bundles = weeks(4);
    let last = bundles[59].block.header.timestamp;
    // As the genesis files of some development chains have it.
    bundles[0].block.header.timestamp = last + 400 * 86_400;
    let world = at_the_tip(bundles, None).await;
    let (path, _, fields) = SERIES[0];
    let (first, last) = (day(&world.bundles[1]), day(&world.bundles[59]));
    let found = world.json(&target(path, first, last)).await;
    assert_eq!(found, body(&world.bundles[1..], fields, first, last, "asc"));
    assert!(!found["data"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn days_stand_in_the_order_of_the_shown_body() {
    let world = at_the_tip(weeks(3), None).await;
    let first = day(&world.bundles[1]);
    let target = target("/api/gas-tracker/daily-average-gas-price", first, first);
    let reply = world.server.get(&target).await;
    let values = expected(&world.bundles, first);
    let wanted = format!(
        r#"{{"startDate":"{first}","endDate":"{first}","chain":"mainnet","sort":"asc","data":[{{"date":"{first}","unixTimeStamp":{},"avgGasPrice_Gwei":{}}}]}}"#,
        first.start(),
        values["avgGasPrice_Gwei"]
    );
    assert_eq!(reply.whole_body(), wanted);
}

#[tokio::test]
async fn days_that_a_silent_node_may_have_blocks_of_are_not_told() {
    let world = at_the_tip(weeks(3), None).await;
    let last = day(&world.bundles[59]);
    let (before, after) = (Day::from_number(last.number() - 1), last.next());
    let status = async |path: &str, first: Day, last: Day| world.server.get(&target(path, first, last)).await;
    for (path, _, _) in SERIES {
        // It was heard a moment ago, and has nothing after the indexed head.
        world.status.set_node_head(HEAD);
        assert_eq!(status(path, before, after).await.status, 200, "{path}");
        // Two months ago: there may be more of the last day, and of those that follow it.
        world
            .status
            .set_node_head_at(HEAD, quarry::clock::unix_now() - 60 * 86_400);
        for (first, end) in [(before, last), (last, last), (after, after)] {
            status(path, first, end).await.assert_error(503, INDEXING);
        }
        assert_eq!(status(path, before, before).await.status, 200, "{path}");
    }
    // As of times after the last block.
    let time = world.bundles[59].block.header.timestamp;
    let by_time = async |time: u64, closest: &str| {
        let target = format!("/api/block/timestamp/{time}/block-number?closest={closest}");
        world.server.get(&target).await
    };
    by_time(time + 60, "before").await.assert_error(503, INDEXING);
    by_time(time + 60, "after").await.assert_error(503, INDEXING);
    assert_eq!(by_time(time - 1, "before").await.status, 200);
    assert_eq!(by_time(time - 1, "after").await.status, 200);
    world.status.set_node_head(HEAD);
    assert_eq!(by_time(time + 60, "before").await.status, 200);
    by_time(time + 60, "after")
        .await
        .assert_error(404, "Block not found");
}

#[tokio::test]
async fn ranges_that_are_refused() {
    let world = at_the_tip(weeks(3), None).await;
    for (path, most, _) in SERIES {
        let get = async |query: &str, status: u16, text: &str| {
            let target = format!("{path}?{query}");
            world.server.get(&target).await.assert_error(status, text);
        };
        let first = Day::from_civil(2024, 2, 28).unwrap();
        let too_late = Day::from_number(first.number() + most as i64);
        let too_long = format!("Date range exceeds {most} days");
        get(&format!("startDate={first}&endDate={too_late}"), 400, &too_long).await;
        get("startDate=0001-01-01&endDate=9999-12-31", 400, &too_long).await;
        for (query, text) in [
            ("", "Missing required parameter: startDate"),
            (
                "startDate=&endDate=2024-03-01",
                "Missing required parameter: startDate",
            ),
            ("endDate=2024-03-01", "Missing required parameter: startDate"),
            ("startDate=2024-03-01", "Missing required parameter: endDate"),
            ("startDate=2023-02-29&endDate=x", "Invalid startDate parameter"),
            (
                "startDate=2024-02-29&endDate=2024-02-30",
                "Invalid endDate parameter",
            ),
            (
                "startDate=2024-02-29&endDate=2024-2-29",
                "Invalid endDate parameter",
            ),
            (
                "startDate=2024-02-29&endDate=2024-02-28",
                "endDate is before startDate",
            ),
            (
                "startDate=2024-02-29&endDate=2023-02-28&sort=up",
                "endDate is before startDate",
            ),
            (
                "startDate=2024-02-29&endDate=2024-02-29&sort=up",
                "Invalid sort parameter",
            ),
            (
                "startDate=2024-02-29&endDate=2024-02-29&endDate=2024-02-29",
                "Duplicate parameter: endDate",
            ),
            ("startDate=2024-02-29&endDate=2024-02-29&chain=x", "Invalid chain"),
        ] {
            get(query, 400, text).await;
        }
        let main_only = path.ends_with("fees") || path.ends_with("utilization");
        let (status, text) = if main_only {
            (400, "Chain testnet is not supported for this operation")
        } else {
            (503, "Chain testnet is not configured")
        };
        get(
            "startDate=2024-02-29&endDate=2024-02-29&chain=testnet",
            status,
            text,
        )
        .await;
    }
    let reply = world.server.get("/api/stats/total-supply?chain=testnet").await;
    reply.assert_error(400, "Chain testnet is not supported for this operation");
}

#[tokio::test]
async fn days_that_are_not_wholly_indexed() {
    let world = World::of(weeks(3), None, Some(REWARDS)).await;
    let head = day(&world.bundles[59]);
    let days = |offset: i64| Day::from_number(head.number() + offset);
    for (path, _, fields) in SERIES {
        // The node is 21 blocks ahead.
        for (first, last) in [(-2, 0), (0, 0), (-1, 2), (1, 3), (500, 501)] {
            let target = target(path, days(first), days(last));
            world.server.get(&target).await.assert_error(503, INDEXING);
        }
        let found = world.json(&target(path, days(-3), days(-1))).await;
        assert_eq!(
            found,
            body(&world.bundles, fields, days(-3), days(-1), "asc"),
            "{path}"
        );
    }
    // A few blocks are what a node is ahead of its index at the tip.
    world.status.set_node_head(HEAD + 5);
    for (path, _, fields) in SERIES {
        let found = world.json(&target(path, days(-1), days(3))).await;
        assert_eq!(
            found,
            body(&world.bundles, fields, days(-1), days(3), "asc"),
            "{path}"
        );
    }
    world.status.set_node_head(HEAD + 6);
    let ahead = target(SERIES[0].0, days(0), days(0));
    world.server.get(&ahead).await.assert_error(503, INDEXING);
}

struct Filled {
    directory: tempfile::TempDir,
    store: std::sync::Arc<Store>,
}

fn rules(from_genesis: bool) -> NonceRules {
    NonceRules {
        chain_id: 7,
        from_genesis,
        native: if from_genesis {
            plain::native_rules()
        } else {
            Default::default()
        },
        ..NonceRules::default()
    }
}

/// A store of these blocks, which may begin in the middle; frames of the last `untraced` blocks come later.
fn filled(bundles: &[Bundle], untraced: usize) -> Filled {
    let genesis = quarry::model::B256::repeat_byte(1);
    let rules = rules(bundles[0].block.number() == 0);
    filled_by(bundles, untraced, genesis, &rules)
}

fn filled_by(
    bundles: &[Bundle],
    untraced: usize,
    genesis: quarry::model::B256,
    rules: &NonceRules,
) -> Filled {
    let directory = tempfile::tempdir().unwrap();
    let options = OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        ..OpenOptions::new(directory.path())
    };
    let first = bundles[0].block.number();
    let store = Store::open_or_create(&options, 7, genesis, Some(first)).unwrap();
    let mut writer = store.writer().unwrap();
    let mut batch = writer.batch();
    for (place, bundle) in bundles.iter().enumerate() {
        let mut bundle = bundle.clone();
        if place >= bundles.len() - untraced {
            bundle.traces = None;
        }
        derive(&bundle, rules, &mut batch).unwrap();
    }
    writer.commit_final(batch).unwrap();
    drop(writer);
    Filled { directory, store }
}

#[tokio::test]
async fn a_store_that_begins_later_does_not_tell_its_first_day() {
    let bundles = weeks(4);
    let later: Vec<Bundle> = bundles[25..].to_vec();
    let Filled { directory, store } = filled(&later, 0);
    let world = World::serving(directory, store, bundles, None, Some(REWARDS), &[]).await;
    world.status.set_node_head(HEAD);
    let first = day(&later[0]);
    let days = |offset: i64| Day::from_number(first.number() + offset);
    for (path, _, fields) in SERIES {
        for (from, to) in [(0, 0), (-1, 2), (-3, -1)] {
            let target = target(path, days(from), days(to));
            world.server.get(&target).await.assert_error(503, INDEXING);
        }
        let target = target(path, days(1), days(4));
        if fields == ["newAddressCount"] {
            world.server.get(&target).await.assert_error(503, INDEXING);
        } else {
            // Also the mean time of the second day, which counts from the end of the first.
            let wanted = body(&world.bundles, fields, days(1), days(4), "asc");
            assert_eq!(world.json(&target).await, wanted, "{path}");
        }
    }
    let first_block = &later[0].block;
    for target in [
        target("/api/stats/historical-price", days(0), days(2)),
        format!("/api/token/erc1155-holdings?address={}", Address::repeat_byte(1)),
        format!(
            "/api/block/timestamp/{}/block-number",
            first_block.header.timestamp - 1
        ),
        format!("/api/block/{}/transaction-count", first_block.number() - 1),
        "/api/stats/total-supply".to_owned(),
    ] {
        let reply = world.server.get(&target).await;
        reply.assert_error(503, INDEXING);
        assert_eq!(reply.header("retry-after"), Some("3600"), "{target}");
    }
    // What waiting will not bring is said in another place.
    let number = later[0].block.number();
    let wanted = json!([
        ["S1", format!("the store begins at block {number}")],
        [
            "A10",
            "the ledger of native balances ended, see nativeLedger: accounts whose first inflow it does not have"
        ],
        [
            "S5",
            format!("the store begins at block {number}: who took part before is not known")
        ],
        [
            "A10, T3, T4, T5, T10",
            format!("the store begins at block {number}: accounts and tokens that are older")
        ],
        [
            "T6, T7, erc1155-holdings",
            format!("the store begins at block {number}: what accounts held before is not known")
        ],
        [
            "B1, B2, B3",
            format!("the store begins at block {number}: blocks and times before it")
        ],
        [
            "S3, S4, S6, S7, B4, B5, B6, B7, G1, G2, G3",
            format!("{first}: the store begins within this day, at block {number}")
        ],
    ]);
    assert_eq!(withheld(&world).await, wanted);
}

/// What `/status` says is withheld.
async fn withheld(world: &World) -> Value {
    let (_, status) = world.get("/status").await;
    let all = status["chains"]["mainnet"]["withheld"].as_array().unwrap();
    let pair = |one: &Value| json!([one["operations"], one["because"]]);
    all.iter().map(pair).collect()
}

#[tokio::test]
async fn new_addresses_wait_for_traces() {
    let bundles = weeks(5);
    let Filled { directory, store } = filled(&bundles, 20);
    let world = World::serving(
        directory,
        std::sync::Arc::clone(&store),
        bundles.clone(),
        None,
        None,
        &[],
    )
    .await;
    world.status.set_node_head(HEAD);
    let untraced = day(&bundles[40]);
    let path = "/api/stats/daily-unique-addresses";
    let days = |offset: i64| Day::from_number(untraced.number() + offset);
    let (whole, cut) = (target(path, days(-4), days(-1)), target(path, days(-4), days(0)));
    let wanted = body(&bundles, &["newAddressCount"], days(-4), days(-1), "asc");
    assert_eq!(world.json(&whole).await, wanted);
    world.server.get(&cut).await.assert_error(503, INDEXING);
    let supply = "/api/stats/total-supply";
    world.server.get(supply).await.assert_error(503, INDEXING);
    // What the blocks themselves tell is there.
    let count = target("/api/stats/daily-transaction-count", days(0), days(4));
    let wanted = body(&bundles, &["transactionCount"], days(0), days(4), "asc");
    assert_eq!(world.json(&count).await, wanted);

    let mut writer = store.writer().unwrap();
    let view = store.view();
    for part in bundles[40..].chunks(7) {
        let mut batch = writer.batch();
        for bundle in part {
            let first = view.block(bundle.block.number()).unwrap().first_transaction;
            let traces = bundle.traces.as_deref().unwrap();
            derive_traces(bundle, traces, (&view, first), &rules(true), &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
    }
    drop(writer);
    let wanted = body(&bundles, &["newAddressCount"], days(-4), days(60), "asc");
    assert_eq!(world.json(&target(path, days(-4), days(60))).await, wanted);
}

#[tokio::test]
async fn the_supply_is_what_all_accounts_hold() {
    // A chain whose blocks add up, so that the ledger follows it to the end.
    let bundles = plain::chain(9, HEAD + 1, &plain::ChainConfig::default());
    let Filled { directory, store } = filled(&bundles, 0);
    let view = store.view();
    let balance = |account: u64| {
        let row = view.account(&plain::account(account)).unwrap();
        row.map_or(U256::ZERO, |row| row.balance)
    };
    let mut held = U256::ZERO;
    let mut accounts = view.scan_all(quarry::store::Table::Accounts).unwrap();
    while let Some((_, value)) = accounts.item().unwrap() {
        held += quarry::codec::value::AccountRow::decode(value).unwrap().balance;
        accounts.step().unwrap();
    }
    drop(accounts);
    if let Some(fault) = view.checkpoint().native.fault {
        panic!("the chain does not add up: {fault:?}");
    }
    let excluded = [plain::account(1), plain::account(3), plain::account(777_777)];
    let apart = balance(1) + balance(3);
    assert!(!apart.is_zero());
    let world = World::serving(directory, store, bundles, None, None, &excluded).await;
    let reply = world.server.get("/api/stats/total-supply").await;
    let coins = |wei: U256| exact(wei.to::<u128>(), 18);
    let wanted = format!(
        r#"{{"totalSupply":{},"circulatingSupply":{},"chain":"mainnet"}}"#,
        coins(held),
        coins(held - apart)
    );
    assert_eq!(reply.status, 200);
    assert_eq!(reply.whole_body(), wanted);
    assert_eq!(withheld(&world).await, json!([]));
}

/// A chain with what a node tells of each account that a block is the first to touch, and rules without the genesis file.
fn without_a_genesis_file() -> (Vec<Bundle>, NonceRules) {
    let mut bundles = plain::chain(9, HEAD + 1, &plain::ChainConfig::default());
    let Filled { directory, store } = filled(&bundles, 0);
    let rich = plain::native_rules().allocation.unwrap();
    let mut told = rich.to_vec();
    let view = store.view();
    let mut accounts = view.scan_all(quarry::store::Table::Accounts).unwrap();
    while let Some((key, _)) = accounts.item().unwrap() {
        let account = Address::from_slice(key);
        if !rich.iter().any(|(one, _)| *one == account) {
            told.push((account, U256::ZERO));
        }
        accounts.step().unwrap();
    }
    drop(accounts);
    drop((view, store, directory));
    for bundle in &mut bundles {
        bundle.openings = Some(told.clone());
    }
    let unallocated = NonceRules {
        native: Default::default(),
        ..rules(true)
    };
    (bundles, unallocated)
}

const MAINNET: quarry::model::B256 =
    alloy_primitives::b256!("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");
const MAINNET_ALLOCATION: u128 = 72_009_990_499_480_000_000_000_000;

/// Without a genesis file, Ethereum mainnet's allocation is known; of other chains it is not.
#[tokio::test]
async fn the_supply_without_a_genesis_file() {
    let (bundles, unallocated) = without_a_genesis_file();
    let supply_of = async |genesis, rules: &NonceRules| {
        let Filled { directory, store } = filled_by(&bundles, 0, genesis, rules);
        let sums = store.view().supply(HEAD).unwrap().unwrap();
        let world = World::serving(directory, store, bundles.clone(), None, None, &[]).await;
        let said = withheld(&world).await;
        (world.server.get("/api/stats/total-supply").await, said, sums)
    };
    let (reply, said, sums) = supply_of(MAINNET, &unallocated).await;
    let total = sums.total_from(U256::from(MAINNET_ALLOCATION)).unwrap();
    assert!(total != sums.total().unwrap());
    let total = exact(total.to::<u128>(), 18);
    let wanted = format!(r#"{{"totalSupply":{total},"circulatingSupply":{total},"chain":"mainnet"}}"#);
    assert_eq!((reply.status, reply.whole_body()), (200, wanted));
    assert_eq!(said, json!([]));
    let (reply, said, _) = supply_of(quarry::model::B256::repeat_byte(1), &unallocated).await;
    assert_eq!(reply.header("retry-after"), Some("3600"));
    reply.assert_error(503, INDEXING);
    let because = "what block 0 allocated is not known: fill a new store with --genesis";
    assert_eq!(said, json!([["S1", because]]));
}

/// An account that does not circulate and that no block touched has what block 0 gave it: the node tells that, and where there is none
/// nobody does. How much there is altogether does not hang on it.
#[tokio::test]
async fn the_supply_beside_an_account_that_no_block_touched() {
    let (bundles, rules) = without_a_genesis_file();
    let untouched = plain::account(777_777);
    let excluded = [plain::account(1), untouched];
    let path = "/api/stats/total-supply";
    let coins = |wei: U256| exact(wei.to::<u128>(), 18);
    for node in [
        Some(Ok(12_345)),
        Some(Err(UpstreamError::Failed("gone".to_owned()))),
        None,
    ] {
        let Filled { directory, store } = filled_by(&bundles, 0, MAINNET, &rules);
        let view = store.view();
        assert!(view.account(&untouched).unwrap().is_none());
        let apart = view.account(&excluded[0]).unwrap();
        let apart = apart.map_or(U256::ZERO, |row| row.balance);
        let sums = view.supply(HEAD).unwrap().unwrap();
        let total = sums.total_from(U256::from(MAINNET_ALLOCATION)).unwrap();
        drop(view);
        let bundles = bundles.clone();
        let world = World::serving(directory, store, bundles, node.clone(), None, &excluded).await;
        let (reply, said) = (world.server.get(path).await, withheld(&world).await);
        match &node {
            Some(Ok(told)) => {
                let wanted = format!(
                    r#"{{"totalSupply":{},"circulatingSupply":{},"chain":"mainnet"}}"#,
                    coins(total),
                    coins(total - apart - U256::from(*told))
                );
                assert_eq!((reply.status, reply.whole_body()), (200, wanted));
                assert_eq!(said, json!([]));
            }
            Some(Err(_)) => {
                reply.assert_error(502, "Upstream node error");
                assert_eq!(said, json!([]));
            }
            None => {
                assert_eq!(reply.header("retry-after"), Some("3600"));
                reply.assert_error(503, INDEXING);
                let because = format!(
                    "what block 0 gave to {untouched}, which does not circulate, is not known, and there is no node to ask: fill \
                     a new store with --genesis"
                );
                assert_eq!(said, json!([["S1", because]]));
            }
        }
        let (_, all) = world.get("/api?module=stats&action=ethsupply").await;
        assert_eq!(all["result"], total.to_string());
        let (_, parts) = world.get("/api?module=stats&action=ethsupply2").await;
        assert_eq!(parts["status"], "1", "{parts}");
    }
}

#[tokio::test]
async fn a_day_with_what_the_source_does_not_tell() {
    let mut bundles = weeks(3);
    let place = (10..40)
        .find(|&place| !bundles[place].block.uncles.is_empty())
        .unwrap();
    bundles[place].block.uncle_headers.clear();
    bundles[place].block.size = None;
    let world = at_the_tip(bundles, Some(REWARDS)).await;
    let untold = day(&world.bundles[place]);
    for path in ["/api/block/daily-average-size", "/api/block/daily-block-rewards"] {
        let reply = world.server.get(&target(path, untold, untold)).await;
        reply.assert_error(503, INDEXING);
    }
    let path = "/api/block/daily-count-and-rewards";
    let mut known = world.bundles.clone();
    known[place].block.size = Some(0);
    let wanted = body(&known, &["blockCount", "minerRewards"], untold, untold, "asc");
    assert_eq!(world.json(&target(path, untold, untold)).await, wanted);
    let said = withheld(&world).await;
    for (operations, what) in [("B4", "size"), ("B3, B6", "uncles")] {
        let because = format!("{untold}: the source of blocks did not tell their {what}");
        assert!(
            said.as_array().unwrap().contains(&json!([operations, because])),
            "{said}"
        );
    }
}

/// Ninety days are one scan: a row is read for each that has blocks, and one more where the day before counts.
#[tokio::test]
async fn a_series_reads_a_row_a_day() {
    let mut bundles = weeks(3);
    let mut time = 1_700_000_000;
    for (place, bundle) in bundles.iter_mut().enumerate() {
        time += if place % 3 == 0 { 86_400 } else { 20_000 };
        bundle.block.header.timestamp = time;
    }
    let days: BTreeSet<Day> = bundles.iter().map(day).collect();
    let world = at_the_tip(bundles, None).await;
    for (path, most, _) in SERIES {
        let endpoint = quarry::api::endpoints()
            .iter()
            .find(|endpoint| endpoint.path == path)
            .unwrap();
        let last = *days.last().unwrap();
        let first = Day::from_number(last.number() - most as i64 + 1);
        let read = async |kind: &str| {
            let page = world.server.get("/metrics").await.whole_body();
            let name = format!(
                "quarry_store_visits_total{{operation=\"{}\",kind=\"{kind}\"}} ",
                endpoint.ids.join(",")
            );
            let line = page.lines().find_map(|line| line.strip_prefix(&name));
            line.map_or(0, |count| count.parse::<u64>().unwrap())
        };
        let before = (read("rows").await, read("gets").await);
        world.json(&target(path, first, last)).await;
        let rows = read("rows").await - before.0;
        let with_blocks = days.range(first..=last).count() as u64;
        let back = u64::from(path.ends_with("block-time"));
        if path.ends_with("unique-addresses") {
            assert!(0 < rows && rows <= with_blocks, "{path}: {rows}");
        } else {
            assert_eq!(rows, with_blocks + back, "{path}");
        }
        assert_eq!(read("gets").await, before.1, "{path}");
    }
}
