//! Daily series against sums over the node's own blocks, receipts and traces, over days and through reorgs.

use quarry::model::Day;

use super::*;

fn wide(value: &Value) -> u128 {
    u128::from_str_radix(text(value).trim_start_matches("0x"), 16).unwrap()
}

fn day(recorded: &Recorded) -> Day {
    Day::of(number(&recorded.block["timestamp"]))
}

/// `sum / count`, rounded half up.
fn mean(sum: u128, count: u128) -> u128 {
    (2 * sum + count) / (2 * count)
}

/// A number with so many decimals, without the zeros at its end.
fn exact(number: u128, decimals: usize) -> String {
    let digits = format!("{number:0>width$}", width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let text = format!("{whole}.{}", fraction.trim_end_matches('0'));
    text.trim_end_matches('.').to_owned()
}

fn hundredths(number: u128) -> String {
    format!("{}.{:02}", number / 100, number % 100)
}

/// Everybody who takes part in a block (answers.md section 6, S5), by the node's words.
fn participants(recorded: &Recorded) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let block = &recorded.block;
    if number(&block["number"]) == 0 {
        return all;
    }
    let mut add = |place: &Value| all.extend(place.as_str().map(str::to_lowercase));
    add(&block["miner"]);
    for withdrawal in block["withdrawals"].as_array().into_iter().flatten() {
        add(&withdrawal["address"]);
    }
    for transaction in list(&block["transactions"]) {
        add(&transaction["from"]);
        add(&transaction["to"]);
    }
    let traces = recorded.traces.as_deref().unwrap_or_default();
    let path = |trace: &Value| {
        let path: Vec<u64> = list(&trace["traceAddress"]).iter().map(number).collect();
        (trace["transactionHash"].clone(), path)
    };
    let failed: Vec<_> = traces
        .iter()
        .filter(|trace| !trace["error"].is_null())
        .map(path)
        .collect();
    for trace in traces {
        let (hash, place) = path(trace);
        if failed.iter().any(|(of, up)| *of == hash && place.starts_with(up)) {
            continue;
        }
        let action = &trace["action"];
        let moves = |value: &Value| value.is_string() && wide(value) > 0;
        match text(&trace["type"]) {
            "call" if action["callType"] == "call" && moves(&action["value"]) => {
                add(&action["from"]);
                add(&action["to"]);
            }
            "create" => {
                add(&trace["result"]["address"]);
                if moves(&action["value"]) {
                    add(&action["from"]);
                }
            }
            "suicide" if moves(&action["balance"]) => {
                add(&action["address"]);
                add(&action["refundAddress"]);
            }
            _ => {}
        }
    }
    all
}

/// Every series over every day of the chain.
#[track_caller]
fn compare_days(server: &Server, model: &Model) -> i64 {
    let (first, last) = (day(&model.blocks[0]), day(model.blocks.last().unwrap()));
    let mut known = BTreeSet::new();
    let mut before: Option<u64> = None;
    for number in first.number()..=last.number() {
        let day = Day::from_number(number);
        let of_day: Vec<&Recorded> = model
            .blocks
            .iter()
            .filter(|block| self::day(block) == day)
            .collect();
        let count = of_day.len() as u128;
        let sum = |field: &str| of_day.iter().map(|block| wide(&block.block[field])).sum::<u128>();
        let (mut transactions, mut prices, mut tips, mut burnt) = (0u128, 0u128, 0u128, 0u128);
        let mut new = 0;
        for block in &of_day {
            let base = wide(&block.block["baseFeePerGas"]);
            for receipt in &block.receipts {
                let (gas, price) = (wide(&receipt["gasUsed"]), wide(&receipt["effectiveGasPrice"]));
                transactions += 1;
                prices += price;
                burnt += gas * base;
                tips += gas * (price - base);
            }
            for account in participants(block) {
                new += u64::from(known.insert(account));
            }
        }
        let times = of_day
            .iter()
            .map(|block| super::number(&block.block["timestamp"]));
        let (start, end) = (times.clone().min().unwrap_or(0), times.max());
        let (since, intervals) = before.map_or((start, count.saturating_sub(1)), |time| (time, count));
        let seconds = u128::from(end.unwrap_or(since) - since) * 100;
        let over = |count: u128, text: &dyn Fn() -> Value| if count == 0 { Value::Null } else { text() };
        for (path, wanted) in [
            (
                "stats/daily-transaction-count",
                json!({"transactionCount": transactions as u64}),
            ),
            ("stats/daily-unique-addresses", json!({"newAddressCount": new})),
            (
                "stats/daily-transaction-fees",
                json!({"transactionFee_Coin": exact(tips + burnt, 18), "burntFee_Coin": exact(burnt, 18)}),
            ),
            (
                "stats/daily-network-utilization",
                json!({"networkUtilization": over(count, &|| {
                    hundredths(mean(sum("gasUsed") * 10_000, sum("gasLimit"))).into()
                })}),
            ),
            (
                "block/daily-average-size",
                json!({"blockSize_Bytes": over(count, &|| json!(mean(sum("size"), count) as u64))}),
            ),
            (
                "block/daily-count-and-rewards",
                json!({"blockCount": count as u64, "blockRewards_Coin": exact(tips, 18)}),
            ),
            ("block/daily-block-rewards", json!({"blockRewards_Coin": "0"})),
            (
                "block/daily-average-block-time",
                json!({"blockTime_Sec": over(intervals, &|| hundredths(mean(seconds, intervals)).into())}),
            ),
            (
                "gas-tracker/daily-average-gas-price",
                json!({"avgGasPrice_Gwei": over(transactions, &|| {
                    exact(mean(prices, transactions), 9).into()
                })}),
            ),
            (
                "gas-tracker/daily-total-gas-used",
                json!({
                    "gasUsed": sum("gasUsed").to_string(),
                    "gasLimit": over(count, &|| mean(sum("gasLimit"), count).to_string().into()),
                }),
            ),
        ] {
            let target = format!("/api/{path}?startDate={day}&endDate={day}");
            let mut entry = wanted;
            entry["date"] = day.to_string().into();
            entry["unixTimeStamp"] = day.start().into();
            let found = server.json(&target);
            assert_eq!(found["data"], json!([entry]), "{target}");
        }
        before = end.or(before);
    }
    last.number() - first.number()
}

#[test]
fn days_are_sums_over_the_nodes_blocks() {
    let Some(anvil) = Anvil::start(31_361) else { return };
    let mut scenario = Scenario::new(&anvil, 61);
    let directory = tempfile::tempdir().unwrap();
    let (path, url) = (directory.path().to_str().unwrap(), anvil.http());
    for pause in [40_000, 50_000, 200_000, 30_000] {
        scenario.blocks(4);
        anvil.ask("evm_increaseTime", json!([pause]));
    }
    scenario.blocks(3);
    let server = Server::start(["run", "--mainnet-rpc", &url, "--data-dir", path]);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    assert!(compare_days(&server, &anvil.model("mainnet")) >= 3);
    // Across the last day's first block: what it brought goes with it.
    anvil.ask("anvil_reorg", json!([8, []]));
    scenario.blocks(2);
    caught_up(&server, &anvil, "mainnet", SOON);
    compare_days(&server, &anvil.model("mainnet"));
    for _ in 0..2 {
        anvil.ask("evm_increaseTime", json!([90_000]));
        scenario.blocks(2);
        caught_up(&server, &anvil, "mainnet", SOON);
    }
    compare_days(&server, &anvil.model("mainnet"));
    server.stop();
}
