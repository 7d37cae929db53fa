//! The model as the JSON a node would write.

use super::build::INTRINSIC_GAS;
use quarry::model::{Address, Block, Bundle, Frame, FrameKind, Header, Receipt, Transaction};
use serde_json::{Map, Value, json};

/// A quantity.
pub fn quantity(number: impl std::fmt::LowerHex) -> Value {
    Value::from(format!("{number:#x}"))
}

/// The number that a quantity is of.
pub fn number(quantity: &Value) -> Option<u64> {
    u64::from_str_radix(quantity.as_str()?.strip_prefix("0x")?, 16).ok()
}

/// `eth_getBlockByNumber`.
pub fn block(block: &Block, full: bool) -> Value {
    let mut value = header(&block.header);
    value["hash"] = json!(block.hash);
    value["size"] = quantity(block.size.unwrap_or_default());
    value["uncles"] = json!(block.uncles);
    value["transactions"] = block
        .transactions
        .iter()
        .enumerate()
        .map(|(index, item)| {
            if full {
                transaction(item, block, index)
            } else {
                json!(item.hash)
            }
        })
        .collect();
    if let Some(withdrawals) = &block.withdrawals {
        value["withdrawals"] = withdrawals
            .iter()
            .map(|item| {
                json!({
                    "index": quantity(item.index),
                    "validatorIndex": quantity(item.validator_index),
                    "address": item.address,
                    "amount": quantity(item.amount_gwei),
                })
            })
            .collect();
    }
    value
}

fn header(header: &Header) -> Value {
    json!({
        "parentHash": header.parent_hash,
        "sha3Uncles": header.ommers_hash,
        "miner": header.beneficiary,
        "stateRoot": header.state_root,
        "transactionsRoot": header.transactions_root,
        "receiptsRoot": header.receipts_root,
        "logsBloom": header.logs_bloom,
        "difficulty": quantity(header.difficulty),
        "number": quantity(header.number),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "timestamp": quantity(header.timestamp),
        "extraData": header.extra_data,
        "mixHash": header.mix_hash,
        "nonce": header.nonce,
        "baseFeePerGas": header.base_fee_per_gas.map(quantity),
        "withdrawalsRoot": header.withdrawals_root,
    })
}

fn transaction(item: &Transaction, block: &Block, index: usize) -> Value {
    let mut value = json!({
        "hash": item.hash,
        "blockHash": block.hash,
        "blockNumber": quantity(block.number()),
        "transactionIndex": quantity(index),
        "type": quantity(item.kind),
        "nonce": quantity(item.nonce),
        "from": item.from,
        "to": item.to,
        "value": quantity(item.value),
        "gas": quantity(item.gas),
        "gasPrice": item.gas_price.map(quantity),
        "input": item.input,
        "chainId": item.chain_id.map(quantity),
        "v": item.v.map(quantity),
        "r": quantity(item.r),
        "s": quantity(item.s),
    });
    if item.kind == 2 {
        value["maxFeePerGas"] = item.max_fee_per_gas.map(quantity).into();
        value["maxPriorityFeePerGas"] = item.max_priority_fee_per_gas.map(quantity).into();
        value["accessList"] = json!([]);
        value["yParity"] = item.y_parity.map(quantity).into();
    }
    value
}

/// `eth_getBlockReceipts`.
pub fn receipts(bundle: &Bundle) -> Vec<Value> {
    let mut first_log = 0;
    let mut values = Vec::new();
    for (index, receipt) in bundle.receipts.iter().enumerate() {
        values.push(one_receipt(bundle, index, receipt, first_log));
        first_log += receipt.logs.len();
    }
    values
}

fn one_receipt(bundle: &Bundle, index: usize, receipt: &Receipt, first_log: usize) -> Value {
    let block = &bundle.block;
    let of = &block.transactions[index];
    let logs: Vec<Value> = receipt
        .logs
        .iter()
        .enumerate()
        .map(|(place, log)| {
            json!({
                "address": log.address,
                "topics": log.topics.to_vec(),
                "data": log.data,
                "blockNumber": quantity(block.number()),
                "blockHash": block.hash,
                "transactionHash": of.hash,
                "transactionIndex": quantity(index),
                "logIndex": quantity(first_log + place),
                "removed": false,
            })
        })
        .collect();
    json!({
        "transactionHash": receipt.transaction_hash,
        "transactionIndex": quantity(index),
        "blockHash": block.hash,
        "blockNumber": quantity(block.number()),
        "from": of.from,
        "to": of.to,
        "type": quantity(receipt.kind),
        "status": quantity(u8::from(receipt.status == Some(true))),
        "cumulativeGasUsed": quantity(receipt.cumulative_gas_used),
        "gasUsed": quantity(receipt.gas_used),
        "effectiveGasPrice": receipt.effective_gas_price.map(quantity),
        "contractAddress": receipt.contract_address,
        "logs": logs,
        "logsBloom": receipt.logs_bloom,
    })
}

/// `trace_block`, in the words of that method.
pub fn parity(bundle: &Bundle) -> Vec<Value> {
    let block = &bundle.block;
    let mut values = Vec::new();
    for (index, trace) in bundle.traces.iter().flatten().enumerate() {
        for frame in &trace.frames {
            let children = trace
                .frames
                .iter()
                .filter(|other| {
                    other.path.len() == frame.path.len() + 1 && other.path.starts_with(&frame.path)
                })
                .count();
            let mut value = parity_frame(frame);
            value["blockHash"] = json!(block.hash);
            value["blockNumber"] = json!(block.number());
            value["subtraces"] = json!(children);
            value["traceAddress"] = json!(frame.path);
            value["transactionHash"] = json!(block.transactions[index].hash);
            value["transactionPosition"] = json!(index);
            values.push(value);
        }
    }
    values.push(json!({
        "action": {"author": block.header.beneficiary, "rewardType": "block", "value": "0x0"},
        "blockHash": block.hash, "blockNumber": block.number(), "result": null, "subtraces": 0,
        "traceAddress": [], "type": "reward",
    }));
    values
}

fn parity_frame(frame: &Frame) -> Value {
    let mut value = match frame.kind {
        FrameKind::SelfDestruct => json!({
            "type": "suicide",
            "action": {"address": frame.from, "refundAddress": frame.to, "balance": quantity(frame.value)},
            "result": null,
        }),
        FrameKind::Create | FrameKind::Create2 => json!({
            "type": "create",
            "action": {
                "from": frame.from, "value": quantity(frame.value), "gas": quantity(frame.gas),
                "init": frame.input, "creationMethod": frame.kind.as_str(),
            },
            "result": {"address": frame.to, "code": frame.output, "gasUsed": quantity(frame.gas_used)},
        }),
        kind => json!({
            "type": "call",
            "action": {
                "callType": kind.as_str(), "from": frame.from, "to": frame.to, "value": quantity(frame.value),
                "gas": quantity(frame.gas), "input": frame.input,
            },
            "result": {"output": frame.output, "gasUsed": quantity(frame.gas_used)},
        }),
    };
    match frame.error.as_deref() {
        Some("reverted") => value["error"] = json!("Reverted"),
        Some("out of gas") => {
            value["error"] = json!("Out of gas");
            value["result"] = Value::Null;
        }
        Some(other) => value["error"] = json!(other),
        None => {}
    }
    value
}

/// `debug_traceBlockByNumber` with `callTracer`, in the words of that method: with a quiet call of a
/// precompile in each tree, and the intrinsic gas in the top call.
pub fn calls(bundle: &Bundle) -> Vec<Value> {
    let block = &bundle.block;
    let traces = bundle.traces.iter().flatten();
    traces
        .zip(&block.transactions)
        .map(|(trace, of)| {
            let (top, rest) = trace.frames.split_first().expect("a top call");
            let mut value = call_frame(top);
            value["gas"] = quantity(top.gas + INTRINSIC_GAS);
            value["gasUsed"] = quantity(top.gas_used + INTRINSIC_GAS);
            let mut calls = vec![json!({
                "type": "STATICCALL", "from": top.to, "to": Address::with_last_byte(4), "gas": "0x64",
                "gasUsed": "0x12", "input": "0x00", "output": "0x00",
            })];
            for frame in rest {
                let value = call_frame(frame);
                if frame.path.len() == 1 {
                    calls.push(value);
                } else if let Some(last) = calls.last_mut() {
                    last["calls"] = json!([value]);
                }
            }
            value["calls"] = json!(calls);
            json!({"txHash": of.hash, "result": value})
        })
        .collect()
}

fn call_frame(frame: &Frame) -> Value {
    let mut value = Map::new();
    let kind = frame.kind.as_str().to_uppercase();
    value.insert("type".into(), kind.into());
    value.insert("from".into(), json!(frame.from));
    value.insert("to".into(), json!(frame.to));
    if !matches!(frame.kind, FrameKind::StaticCall) {
        value.insert("value".into(), quantity(frame.value));
    }
    value.insert("gas".into(), quantity(frame.gas));
    value.insert("gasUsed".into(), quantity(frame.gas_used));
    value.insert("input".into(), json!(frame.input));
    if !frame.output.is_empty() {
        value.insert("output".into(), json!(frame.output));
    }
    if let Some(error) = &frame.error {
        let text = if error == "reverted" {
            "execution reverted"
        } else {
            error.as_str()
        };
        value.insert("error".into(), text.into());
    }
    Value::Object(value)
}
