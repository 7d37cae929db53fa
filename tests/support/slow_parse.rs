//! From the JSON of a node to the model, by way of `serde_json::Value`: slow, short, and independent of the
//! parser that the product uses, so that each can be held against the other. Panics on what it cannot read.

#[allow(
    clippy::duplicate_mod,
    reason = "test programs with and without `support` use this file"
)]
#[path = "skipped.rs"]
mod skipped;

use std::{fmt::Debug, fs::File, io::BufRead, io::BufReader, path::PathBuf, str::FromStr};

use quarry::model::{
    AccessListItem, Authorization, B256, Block, Bundle, Bytes, Frame, FrameKind, Header, Log, Receipt,
    Topics, Transaction, TransactionTrace, U256, Withdrawal,
};
use serde_json::Value;

/// A file of the shared data; `None`, with the reason printed, where it is absent.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let full = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../shared/data")
        .join(path);
    if full.exists() {
        return Some(full);
    }
    skipped::skipped(&format!("no shared data at {}", full.display()));
    None
}

/// The lines of a recorded chain file.
pub(crate) fn lines(path: PathBuf) -> impl Iterator<Item = Value> {
    let decoder = zstd::Decoder::new(File::open(path).unwrap()).unwrap();
    let lines = BufReader::new(decoder).lines();
    lines.map(|line| {
        let line = quote_numbers(
            &quote_numbers(&line.unwrap(), "\"value\":"),
            "\"totalDifficulty\":",
        );
        serde_json::from_str(&line).unwrap()
    })
}

/// Puts plain numbers after a field in quotes: those beyond 64 bits would lose digits in a `Value`.
fn quote_numbers(line: &str, field: &str) -> String {
    let mut parts = line.split(field);
    let mut quoted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let part = part.trim_start();
        let (digits, rest) = part.split_at(part.find(|c: char| !c.is_ascii_digit()).unwrap_or(0));
        let mark = if digits.is_empty() { "" } else { "\"" };
        quoted.extend([field, mark, digits, mark, rest]);
    }
    quoted
}

/// The bundle of a line, with the traces of `trace_block` where the line has them and without uncle headers:
/// the `uncleHeaders` of the recorded lines are pairs of miner and number.
pub(crate) fn bundle(line: &Value) -> Bundle {
    let block = block(&line["block"]);
    let traces = line["traces"]
        .as_array()
        .map(|entries| flat_traces(entries, &block));
    Bundle {
        receipts: list(&line["receipts"], receipt),
        traces,
        block,
        openings: None,
    }
}

/// The traces of a line as `debug_traceBlockByNumber` with `callTracer` states them.
pub(crate) fn call_traces(line: &Value) -> Option<Vec<TransactionTrace>> {
    line["callTraces"]
        .as_array()
        .map(|entries| entries.iter().map(|entry| call_trace(&entry["result"])).collect())
}

fn block(json: &Value) -> Block {
    Block {
        hash: need(json, "hash"),
        header: header(json),
        size: number(json, "size"),
        total_difficulty: u256(json, "totalDifficulty"),
        transactions: list(&json["transactions"], transaction),
        uncles: list(&json["uncles"], |hash| parse(hash.as_str().unwrap())),
        uncle_headers: Vec::new(),
        withdrawals: optional_list(json, "withdrawals", withdrawal),
        extra: None,
    }
}

fn header(json: &Value) -> Header {
    Header {
        parent_hash: need(json, "parentHash"),
        ommers_hash: need(json, "sha3Uncles"),
        beneficiary: need(json, "miner"),
        state_root: need(json, "stateRoot"),
        transactions_root: need(json, "transactionsRoot"),
        receipts_root: need(json, "receiptsRoot"),
        logs_bloom: need(json, "logsBloom"),
        difficulty: u256(json, "difficulty").unwrap(),
        number: number(json, "number").unwrap(),
        gas_limit: number(json, "gasLimit").unwrap(),
        gas_used: number(json, "gasUsed").unwrap(),
        timestamp: number(json, "timestamp").unwrap(),
        extra_data: need(json, "extraData"),
        mix_hash: need(json, "mixHash"),
        nonce: need(json, "nonce"),
        base_fee_per_gas: number(json, "baseFeePerGas"),
        withdrawals_root: text(json, "withdrawalsRoot"),
        blob_gas_used: number(json, "blobGasUsed"),
        excess_blob_gas: number(json, "excessBlobGas"),
        parent_beacon_block_root: text(json, "parentBeaconBlockRoot"),
        requests_hash: text(json, "requestsHash"),
    }
}

fn withdrawal(json: &Value) -> Withdrawal {
    Withdrawal {
        index: number(json, "index").unwrap(),
        validator_index: number(json, "validatorIndex").unwrap(),
        address: need(json, "address"),
        amount_gwei: number(json, "amount").unwrap(),
    }
}

fn transaction(json: &Value) -> Transaction {
    Transaction {
        hash: need(json, "hash"),
        kind: number(json, "type").unwrap_or(0),
        nonce: number(json, "nonce").unwrap(),
        from: need(json, "from"),
        to: text(json, "to"),
        value: u256(json, "value").unwrap(),
        gas: number(json, "gas").unwrap(),
        gas_price: number(json, "gasPrice"),
        max_fee_per_gas: number(json, "maxFeePerGas"),
        max_priority_fee_per_gas: number(json, "maxPriorityFeePerGas"),
        max_fee_per_blob_gas: number(json, "maxFeePerBlobGas"),
        access_list: optional_list(json, "accessList", |item| AccessListItem {
            address: need(item, "address"),
            storage_keys: list(&item["storageKeys"], |key| parse(key.as_str().unwrap())),
        }),
        blob_versioned_hashes: optional_list(json, "blobVersionedHashes", |hash| {
            parse(hash.as_str().unwrap())
        }),
        authorization_list: optional_list(json, "authorizationList", authorization),
        input: need(json, "input"),
        chain_id: number(json, "chainId"),
        v: number(json, "v"),
        r: u256(json, "r").unwrap(),
        s: u256(json, "s").unwrap(),
        y_parity: number(json, "yParity"),
        extra: None,
    }
}

fn authorization(json: &Value) -> Authorization {
    Authorization {
        chain_id: u256(json, "chainId").unwrap(),
        address: need(json, "address"),
        nonce: number(json, "nonce").unwrap(),
        y_parity: number(json, "yParity").unwrap(),
        r: u256(json, "r").unwrap(),
        s: u256(json, "s").unwrap(),
    }
}

fn receipt(json: &Value) -> Receipt {
    Receipt {
        transaction_hash: need(json, "transactionHash"),
        kind: number(json, "type").unwrap_or(0),
        status: number::<u8>(json, "status").map(|status| status == 1),
        root: text(json, "root"),
        cumulative_gas_used: number(json, "cumulativeGasUsed").unwrap(),
        gas_used: number(json, "gasUsed").unwrap(),
        effective_gas_price: number(json, "effectiveGasPrice"),
        contract_address: text(json, "contractAddress"),
        logs: list(&json["logs"], |log| Log {
            address: need(log, "address"),
            topics: Topics::new(&list(&log["topics"], |topic| {
                parse::<B256>(topic.as_str().unwrap())
            }))
            .unwrap(),
            data: need(log, "data"),
        }),
        logs_bloom: need(json, "logsBloom"),
        blob_gas_used: number(json, "blobGasUsed"),
        blob_gas_price: number(json, "blobGasPrice"),
        extra: None,
    }
}

/// The entries of `trace_block`, a list for each transaction; rewards are left out.
fn flat_traces(entries: &[Value], block: &Block) -> Vec<TransactionTrace> {
    let mut traces = vec![TransactionTrace::default(); block.transactions.len()];
    for entry in entries {
        if let Some(position) = entry["transactionPosition"].as_u64() {
            traces[position as usize].frames.push(flat_frame(entry));
        }
    }
    traces
        .iter_mut()
        .for_each(|trace| mark_reverted(&mut trace.frames));
    traces
}

fn flat_frame(entry: &Value) -> Frame {
    let (action, result) = (&entry["action"], &entry["result"]);
    let path = list(&entry["traceAddress"], |index| index.as_u64().unwrap() as u32);
    let error = entry["error"].as_str().map(str::to_owned);
    let kind = match entry["type"].as_str().unwrap() {
        "suicide" => {
            return Frame {
                kind: FrameKind::SelfDestruct,
                path,
                from: need(action, "address"),
                to: text(action, "refundAddress"),
                value: u256(action, "balance").unwrap(),
                error,
                ..Frame::default()
            };
        }
        "create" if action["creationMethod"] == "create2" => FrameKind::Create2,
        "create" => FrameKind::Create,
        _ => call_kind(action["callType"].as_str().unwrap()),
    };
    let creation = kind.is_creation();
    let gas = number(action, "gas").unwrap();
    Frame {
        kind,
        path,
        from: need(action, "from"),
        to: if creation {
            text(result, "address")
        } else {
            text(action, "to")
        },
        value: own_value(kind, u256(action, "value")),
        gas,
        gas_used: number(result, "gasUsed").unwrap_or(gas),
        input: need(action, if creation { "init" } else { "input" }),
        output: text(result, if creation { "code" } else { "output" }).unwrap_or_default(),
        error,
        reverted: false,
    }
}

fn call_trace(top: &Value) -> TransactionTrace {
    let mut frames = Vec::new();
    push_frames(top, Vec::new(), &mut frames);
    mark_reverted(&mut frames);
    TransactionTrace { frames }
}

fn push_frames(call: &Value, path: Vec<u32>, frames: &mut Vec<Frame>) {
    let kind = call_kind(&call["type"].as_str().unwrap().to_lowercase());
    let error = call["error"].as_str().map(str::to_owned);
    let failed_creation = kind.is_creation() && error.is_some();
    frames.push(Frame {
        kind,
        path: path.clone(),
        from: need(call, "from"),
        to: text(call, "to").filter(|_| !failed_creation),
        value: own_value(kind, u256(call, "value")),
        gas: number(call, "gas").unwrap(),
        gas_used: number(call, "gasUsed").unwrap(),
        input: text(call, "input").unwrap_or_default(),
        output: text::<Bytes>(call, "output").unwrap_or_default(),
        error,
        reverted: false,
    });
    for (index, child) in call["calls"].as_array().into_iter().flatten().enumerate() {
        let mut path = path.clone();
        path.push(index as u32);
        push_frames(child, path, frames);
    }
}

fn call_kind(name: &str) -> FrameKind {
    match name {
        "selfdestruct" => FrameKind::SelfDestruct,
        name => FrameKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == name)
            .expect(name),
    }
}

/// Delegate and static calls move nothing, though some nodes repeat the value of the caller.
fn own_value(kind: FrameKind, stated: Option<U256>) -> U256 {
    match kind {
        FrameKind::DelegateCall | FrameKind::StaticCall => U256::ZERO,
        _ => stated.unwrap_or_default(),
    }
}

fn mark_reverted(frames: &mut [Frame]) {
    let failed: Vec<Vec<u32>> = frames
        .iter()
        .filter(|frame| frame.error.is_some())
        .map(|frame| frame.path.clone())
        .collect();
    for frame in frames {
        frame.reverted = failed.iter().any(|path| frame.path.starts_with(path));
    }
}

/// A value that must be there.
fn need<T: FromStr<Err: Debug>>(json: &Value, field: &str) -> T {
    text(json, field).unwrap_or_else(|| panic!("`{field}` is absent in {json}"))
}

/// A value in its own notation; `None` where it is absent or null.
fn text<T: FromStr<Err: Debug>>(json: &Value, field: &str) -> Option<T> {
    json.get(field).and_then(Value::as_str).map(parse)
}

/// A number; `None` where it is absent or null.
fn number<T: TryFrom<U256, Error: Debug>>(json: &Value, field: &str) -> Option<T> {
    u256(json, field).map(|number| T::try_from(number).unwrap())
}

/// Quantities are hexadecimal text; three of the recorded mainnet blocks state plain numbers.
fn u256(json: &Value, field: &str) -> Option<U256> {
    match json.get(field)? {
        Value::Null => None,
        Value::String(text) => Some(parse(text)),
        number => Some(U256::from(number.as_u64().unwrap())),
    }
}

fn parse<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse()
        .unwrap_or_else(|error| panic!("`{text}` cannot be read: {error:?}"))
}

fn list<T>(json: &Value, read: impl FnMut(&Value) -> T) -> Vec<T> {
    json.as_array().into_iter().flatten().map(read).collect()
}

fn optional_list<T>(json: &Value, field: &str, read: impl FnMut(&Value) -> T) -> Option<Vec<T>> {
    json.get(field)
        .filter(|value| !value.is_null())
        .map(|value| list(value, read))
}
