//! A3 to A6 of a server, against what follows from a node's own blocks, receipts and `trace_block`.

use std::collections::{BTreeMap, BTreeSet};

use quarry::model::U256;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::binary::{Model, Recorded, Server, list, number, text};

/// An item, the block it lies in and who has part in it.
struct Row {
    block: u64,
    parties: BTreeSet<String>,
    /// Whether it moves something, or is a transaction.
    moves: bool,
    transaction: String,
    item: Value,
}

fn amount(value: &Value) -> U256 {
    match value {
        Value::Null => U256::ZERO,
        _ => text(value).parse().unwrap(),
    }
}

fn decimal(value: &Value) -> Value {
    amount(value).to_string().into()
}

fn or_null(value: &Value, show: impl Fn(&Value) -> Value) -> Value {
    if value.is_null() { Value::Null } else { show(value) }
}

fn parties<'a>(values: impl IntoIterator<Item = &'a Value>) -> BTreeSet<String> {
    values
        .into_iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn path(trace: &Value) -> Vec<u64> {
    list(&trace["traceAddress"])
        .iter()
        .map(|step| step.as_u64().unwrap())
        .collect()
}

fn failed(trace: &Value) -> bool {
    trace.get("error").is_some_and(|error| !error.is_null())
}

/// The transactions of a block; `head` is the last block.
fn transactions(recorded: &Recorded, head: u64) -> Vec<Row> {
    let block = &recorded.block;
    let at = number(&block["number"]);
    let pairs = list(&block["transactions"]).iter().zip(&recorded.receipts);
    let row = |(index, (transaction, receipt)): (usize, (&Value, &Value))| {
        let success = crate::binary::status(recorded, receipt);
        let created = or_null(&receipt["contractAddress"], Clone::clone);
        let created = if success == 1 { created } else { Value::Null };
        let price = match &receipt["effectiveGasPrice"] {
            Value::Null => amount(&transaction["gasPrice"]),
            price => amount(price),
        };
        let fee = amount(&receipt["gasUsed"]) * price
            + amount(&receipt["blobGasUsed"]) * amount(&receipt["blobGasPrice"]);
        let input = text(&transaction["input"]);
        Row {
            block: at,
            parties: parties([&transaction["from"], &transaction["to"], &created]),
            moves: true,
            transaction: text(&transaction["hash"]).to_owned(),
            item: json!({
                "hash": transaction["hash"],
                "blockNumber": at.to_string(),
                "timestamp": decimal(&block["timestamp"]),
                "blockHash": block["hash"],
                "transactionIndex": index,
                "from": transaction["from"],
                "to": transaction["to"],
                "contractAddress": created,
                "value": decimal(&transaction["value"]),
                "nonce": decimal(&transaction["nonce"]),
                "type": if transaction["type"].is_null() { 0 } else { number(&transaction["type"]) },
                "gas": decimal(&transaction["gas"]),
                "gasUsed": decimal(&receipt["gasUsed"]),
                "cumulativeGasUsed": decimal(&receipt["cumulativeGasUsed"]),
                "gasPrice": price.to_string(),
                "maxFeePerGas": or_null(&transaction["maxFeePerGas"], decimal),
                "maxPriorityFeePerGas": or_null(&transaction["maxPriorityFeePerGas"], decimal),
                "fee": fee.to_string(),
                "status": success,
                "isError": 1 - success,
                "input": input,
                "methodId": if input.len() < 10 { "0x" } else { &input[..10] },
                "functionName": "",
                "confirmations": head - at + 1,
            }),
        }
    };
    pairs.enumerate().map(row).collect()
}

/// The nested frames of a block, in order.
fn frames(chain_id: u64, recorded: &Recorded) -> Vec<Row> {
    let block = &recorded.block;
    let at = number(&block["number"]);
    let space = Uuid::new_v5(
        &Uuid::NAMESPACE_URL,
        format!("quarry:chain:{chain_id}").as_bytes(),
    );
    let bytes = |value: &Value| const_hex::decode(text(value)).unwrap();
    let mut undone: BTreeMap<(u64, Vec<u64>), bool> = BTreeMap::new();
    let mut rows = Vec::new();
    for trace in recorded
        .traces
        .iter()
        .flatten()
        .filter(|trace| trace["type"] != "reward")
    {
        let (action, result, path) = (&trace["action"], &trace["result"], path(trace));
        let index = trace["transactionPosition"].as_u64().unwrap();
        let above = path
            .split_last()
            .is_some_and(|(_, parent)| undone[&(index, parent.to_vec())]);
        let reverted = above || failed(trace);
        undone.insert((index, path.clone()), reverted);
        if path.is_empty() {
            continue;
        }
        let steps: Vec<String> = path.iter().map(u64::to_string).collect();
        let trace_id = steps.join("_");
        let hash = &list(&block["transactions"])[index as usize]["hash"];
        let name = [
            bytes(&block["hash"]),
            b"i".to_vec(),
            bytes(hash),
            trace_id.clone().into_bytes(),
        ]
        .concat();
        let kind = text(&trace["type"]);
        let made = match kind {
            "create" if !reverted => result["address"].clone(),
            _ => Value::Null,
        };
        let call_type = action["callType"].as_str().unwrap_or("call");
        let or_empty = |value: &Value| {
            if value.is_null() {
                json!("0x")
            } else {
                value.clone()
            }
        };
        let zero = json!("0x0");
        let (kind, from, to, value, input, output) = match kind {
            "suicide" => {
                let empty = json!("0x");
                let (of, to) = (&action["address"], action["refundAddress"].clone());
                ("selfdestruct", of, to, &action["balance"], empty.clone(), empty)
            }
            "create" => {
                let method = action["creationMethod"].as_str().unwrap_or("create");
                let code = or_empty(&result["code"]);
                (
                    method,
                    &action["from"],
                    Value::Null,
                    &action["value"],
                    or_empty(&action["init"]),
                    code,
                )
            }
            _ => {
                let moves = !matches!(call_type, "delegatecall" | "staticcall");
                let value = if moves { &action["value"] } else { &zero };
                let output = or_empty(&result["output"]);
                (
                    call_type,
                    &action["from"],
                    action["to"].clone(),
                    value,
                    or_empty(&action["input"]),
                    output,
                )
            }
        };
        let gas_used = if result["gasUsed"].is_null() && failed(trace) {
            &action["gas"]
        } else {
            &result["gasUsed"]
        };
        rows.push(Row {
            block: at,
            parties: parties([from, &to, &result["address"]]),
            moves: kind == "call" && !amount(value).is_zero()
                || matches!(kind, "create" | "create2" | "selfdestruct"),
            transaction: text(hash).to_owned(),
            item: json!({
                "uuid": Uuid::new_v5(&space, &name).to_string(),
                "transactionHash": hash,
                "blockNumber": at.to_string(),
                "blockHash": block["hash"],
                "timestamp": decimal(&block["timestamp"]),
                "transactionIndex": index,
                "from": from,
                "to": to,
                "contractAddress": made,
                "value": decimal(value),
                "type": kind,
                "traceId": trace_id,
                "depth": path.len(),
                "gas": decimal(&action["gas"]),
                "gasUsed": decimal(gas_used),
                "input": input,
                "output": output,
                "isError": u8::from(reverted),
                "errCode": failed(trace),
            }),
        });
    }
    rows
}

/// An item as served, with whether there is an error text in place of the text: nodes word it differently.
fn served(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(code) = item.get_mut("errCode") {
        *code = (!text(code).is_empty()).into();
    }
    item
}

/// One list, whole and page by page in both orders.
#[track_caller]
fn check(server: &Server, target: &str, name: &str, expected: &[&Row], pages: bool) {
    let whole = server.get(target);
    assert_eq!(whole.status, 200, "{target}: {}", whole.text());
    assert_eq!(
        whole.header("x-total-count"),
        Some(expected.len().to_string().as_str()),
        "{target}"
    );
    let body = whole.json();
    let found = list(&body[name]);
    for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(served(found), expected.item, "{target} item {place}");
    }
    assert_eq!(found.len(), expected.len(), "{target}");
    if pages && !found.is_empty() {
        for sort in ["asc", "desc"] {
            let offset = found.len().div_ceil(3);
            let (mut rows, mut next) = (Vec::new(), Some(format!("{target}&sort={sort}&offset={offset}")));
            while let Some(target) = next {
                let reply = server.get(&target);
                assert_eq!(reply.status, 200, "{target}: {}", reply.text());
                rows.extend(list(&reply.json()[name]).iter().cloned());
                next = reply.next();
            }
            if sort == "desc" {
                rows.reverse();
            }
            assert_eq!(rows, found, "{target} {sort}");
        }
    }
}

/// A3 to A6: of the accounts that take part most and of some others, of every block and of every transaction.
#[track_caller]
pub fn check_account_lists(server: &Server, model: &Model, accounts_max: usize) {
    let chain = model.name;
    let head = model
        .blocks
        .iter()
        .map(|recorded| number(&recorded.block["number"]))
        .max()
        .unwrap();
    let sent: Vec<Row> = model
        .blocks
        .iter()
        .flat_map(|recorded| transactions(recorded, head))
        .collect();
    let mut calls: Vec<Row> = model
        .blocks
        .iter()
        .flat_map(|recorded| frames(model.id, recorded))
        .collect();
    calls.sort_by_key(|row| row.block);
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    for account in sent.iter().chain(&calls).flat_map(|row| &row.parties) {
        *parts.entry(account).or_default() += 1;
    }
    let mut accounts: Vec<(usize, &str)> = parts
        .into_iter()
        .map(|(account, count)| (count, account))
        .collect();
    accounts.sort_unstable_by(|a, b| b.cmp(a));
    let step = (accounts.len() / accounts_max).max(1);
    let busy = accounts.iter().take(accounts_max / 2);
    let asked: BTreeSet<&str> = busy
        .chain(accounts.iter().step_by(step))
        .map(|(_, account)| *account)
        .collect();
    let traced = model.blocks.iter().all(|recorded| recorded.traces.is_some());
    for account in asked {
        let of = |rows: &'_ [Row]| -> Vec<usize> {
            let mine = |(place, row): (usize, &Row)| row.parties.contains(account).then_some(place);
            rows.iter().enumerate().filter_map(mine).collect()
        };
        let mine: Vec<&Row> = of(&sent).into_iter().map(|place| &sent[place]).collect();
        let target = format!("/api/account/{account}/tx-list?chain={chain}");
        check(server, &target, "transactions", &mine, true);
        if traced {
            let mine: Vec<&Row> = of(&calls).into_iter().map(|place| &calls[place]).collect();
            check_internal(
                server,
                &format!("/api/account/{account}/tx-list-internal?chain={chain}"),
                &mine,
                true,
            );
        }
    }
    let list_of = "/api/account/tx-list-internal";
    if !traced {
        let target = format!("{list_of}?chain={chain}&startblock={head}&endblock={head}");
        return server.assert_error(
            &target,
            503,
            "Data for the requested range is still being indexed",
        );
    }
    let all: Vec<&Row> = calls.iter().collect();
    check_internal(
        server,
        &format!("{list_of}?chain={chain}&startblock=0&endblock=latest"),
        &all,
        true,
    );
    for recorded in &model.blocks {
        let at = number(&recorded.block["number"]);
        let here: Vec<&Row> = calls.iter().filter(|row| row.block == at).collect();
        let target = format!("{list_of}?chain={chain}&startblock={at}&endblock={at}");
        check_internal(server, &target, &here, false);
        for transaction in list(&recorded.block["transactions"]) {
            let hash = text(&transaction["hash"]);
            let inside: Vec<&Row> = here
                .iter()
                .copied()
                .filter(|row| row.transaction == hash)
                .collect();
            check_internal(
                server,
                &format!("{list_of}?chain={chain}&hash={hash}"),
                &inside,
                false,
            );
        }
    }
}

/// The default set, then all frames.
#[track_caller]
fn check_internal(server: &Server, target: &str, rows: &[&Row], pages: bool) {
    let moving: Vec<&Row> = rows.iter().copied().filter(|row| row.moves).collect();
    check(server, target, "internalTransactions", &moving, pages);
    check(
        server,
        &format!("{target}&includeZeroValue=true"),
        "internalTransactions",
        rows,
        pages,
    );
}
