//! What the lists of accounts must say of a chain, worked out from its bundles without haste.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use quarry::model::{Address, Bundle, Frame, FrameKind, Receipt, Transaction, U256};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::plain::{Rng, account};

/// An item and the block it lies in.
pub type Row = (u64, Value);

/// Makes a plain chain richer: transactions before Byzantium, prices that only the transaction or the header
/// tells, blobs, roll-up fees, and call trees of several levels with failures in them.
pub fn vary(bundles: &mut [Bundle], seed: u64) {
    for bundle in bundles {
        let number = bundle.block.number();
        let mut rng = Rng(seed ^ number.wrapping_mul(0x9e37));
        let traces = bundle.traces.iter_mut().flatten();
        let mut traces: Vec<_> = traces.collect();
        let receipts = &mut bundle.receipts;
        for (index, (transaction, receipt)) in bundle.block.transactions.iter_mut().zip(receipts).enumerate()
        {
            if number < 14 {
                receipt.status = None;
            }
            if rng.below(9) == 0 {
                transaction.to = transaction.to.map(|_| transaction.from);
            }
            match rng.below(5) {
                0 => receipt.effective_gas_price = None,
                // There is a market only where there is a base fee.
                1 if bundle.block.header.base_fee_per_gas.is_some() => {
                    receipt.effective_gas_price = None;
                    (transaction.kind, transaction.gas_price) = (2, None);
                    transaction.max_fee_per_gas = Some(u128::from(5 + rng.below(9)));
                    transaction.max_priority_fee_per_gas = Some(u128::from(rng.below(4)));
                }
                2 => {
                    transaction.kind = 3;
                    (receipt.blob_gas_used, receipt.blob_gas_price) =
                        (Some(131_072), Some(u128::from(rng.next())));
                }
                3 => {
                    receipt.extra = Some(format!(
                        r#"{{"l1Fee":"{:#x}","l1GasUsed":"0x1"}}"#,
                        rng.below(1000)
                    ))
                }
                _ => {}
            }
            if let Some(trace) = traces.get_mut(index) {
                trace.frames.truncate(1);
                let failed = match receipt.status {
                    Some(success) => !success,
                    None => rng.below(3) == 0,
                };
                let top = &mut trace.frames[0];
                (top.error, top.reverted) = (failed.then(|| "out of gas".to_owned()), failed);
                let mut frames = Vec::new();
                grow(&mut rng, &mut Vec::new(), failed, &mut frames);
                trace.frames.extend(frames);
            }
        }
    }
}

/// Appends the children of the frame at `path`, in pre-order.
fn grow(rng: &mut Rng, path: &mut Vec<u32>, reverted: bool, frames: &mut Vec<Frame>) {
    for child in 0..rng.below(4 - path.len() as u64) as u32 {
        path.push(child);
        let kind = FrameKind::ALL[rng.below(7) as usize];
        let failed = kind != FrameKind::SelfDestruct && rng.below(6) == 0;
        let moves = !matches!(kind, FrameKind::DelegateCall | FrameKind::StaticCall);
        let ends = kind == FrameKind::SelfDestruct;
        let bytes = |rng: &mut Rng| vec![rng.next() as u8; if ends { 0 } else { rng.below(70) as usize }];
        frames.push(Frame {
            kind,
            path: path.clone(),
            from: account(rng.below(8)),
            to: (!(failed && kind.is_creation())).then(|| account(rng.below(8))),
            value: U256::from(if moves { rng.below(2) } else { 0 }),
            gas: if ends { 0 } else { rng.below(90_000) },
            gas_used: if ends { 0 } else { rng.below(50_000) },
            input: bytes(rng).into(),
            output: bytes(rng).into(),
            error: failed.then(|| "reverted".to_owned()),
            reverted: reverted || failed,
        });
        grow(rng, path, reverted || failed, frames);
        path.pop();
    }
}

fn show(bytes: impl AsRef<[u8]>) -> String {
    const_hex::encode_prefixed(bytes)
}

fn top(bundle: &Bundle, index: usize) -> Option<&Frame> {
    bundle.traces.as_ref()?.get(index)?.frames.first()
}

/// The item of a transaction (answers.md section 4).
fn transaction_item(bundle: &Bundle, index: usize, head: u64) -> Value {
    let (transaction, receipt) = (&bundle.block.transactions[index], &bundle.receipts[index]);
    let success = receipt
        .status
        .unwrap_or_else(|| top(bundle, index).is_some_and(|frame| frame.error.is_none()));
    let price = price(transaction, receipt, bundle);
    let product = |a: u64, b: u128| U256::from(a) * U256::from(b);
    let mut fee = product(receipt.gas_used, price);
    if let (Some(gas), Some(price)) = (receipt.blob_gas_used, receipt.blob_gas_price) {
        fee += product(gas, price);
    }
    if let Some(extra) = &receipt.extra {
        let extra: Value = serde_json::from_str(extra).unwrap();
        let digits = extra["l1Fee"].as_str().unwrap().trim_start_matches("0x");
        fee += U256::from_str_radix(digits, 16).unwrap();
    }
    let number = bundle.block.number();
    json!({
        "hash": show(transaction.hash),
        "blockNumber": number.to_string(),
        "timestamp": bundle.block.header.timestamp.to_string(),
        "blockHash": show(bundle.block.hash),
        "transactionIndex": index,
        "from": show(transaction.from),
        "to": transaction.to.map(show),
        "contractAddress": receipt.contract_address.filter(|_| success).map(show),
        "value": transaction.value.to_string(),
        "nonce": transaction.nonce.to_string(),
        "type": transaction.kind,
        "gas": transaction.gas.to_string(),
        "gasUsed": receipt.gas_used.to_string(),
        "cumulativeGasUsed": receipt.cumulative_gas_used.to_string(),
        "gasPrice": price.to_string(),
        "maxFeePerGas": transaction.max_fee_per_gas.map(|price| price.to_string()),
        "maxPriorityFeePerGas": transaction.max_priority_fee_per_gas.map(|price| price.to_string()),
        "fee": fee.to_string(),
        "status": u8::from(success),
        "isError": u8::from(!success),
        "input": show(&transaction.input),
        "methodId": if transaction.input.len() < 4 { "0x".to_owned() } else { show(&transaction.input[..4]) },
        "functionName": "",
        "confirmations": head - number + 1,
    })
}

fn price(transaction: &Transaction, receipt: &Receipt, bundle: &Bundle) -> u128 {
    receipt
        .effective_gas_price
        .or(transaction.gas_price)
        .unwrap_or_else(|| by_market(transaction, bundle))
}

/// What the transactions of a block paid above the base fee; all that a block of this chain brings.
pub fn tips(bundle: &Bundle) -> U256 {
    let base = u128::from(bundle.block.header.base_fee_per_gas.unwrap_or(0));
    let pairs = bundle.block.transactions.iter().zip(&bundle.receipts);
    let tip = |(transaction, receipt): (&Transaction, &Receipt)| {
        let above = price(transaction, receipt, bundle).saturating_sub(base);
        U256::from(receipt.gas_used) * U256::from(above)
    };
    pairs.map(tip).fold(U256::ZERO, |sum, tip| sum + tip)
}

fn by_market(transaction: &Transaction, bundle: &Bundle) -> u128 {
    let base = u128::from(bundle.block.header.base_fee_per_gas.unwrap_or(0));
    let tip = transaction.max_priority_fee_per_gas.unwrap();
    transaction.max_fee_per_gas.unwrap().min(base + tip)
}

/// The transactions of an account, oldest first.
pub fn transactions(bundles: &[Bundle], of: Address) -> Vec<Row> {
    let head = bundles.last().map_or(0, |bundle| bundle.block.number());
    let mut rows = Vec::new();
    for bundle in bundles {
        for (index, (transaction, receipt)) in
            bundle.block.transactions.iter().zip(&bundle.receipts).enumerate()
        {
            let created = receipt.contract_address.filter(|_| receipt.status != Some(false));
            if [Some(transaction.from), transaction.to, created].contains(&Some(of)) {
                rows.push((bundle.block.number(), transaction_item(bundle, index, head)));
            }
        }
    }
    rows
}

/// The item of an internal transaction.
fn internal_item(chain_id: u64, bundle: &Bundle, index: usize, frame: &Frame) -> Value {
    let transaction = &bundle.block.transactions[index];
    let steps: Vec<String> = frame.path.iter().map(u32::to_string).collect();
    let trace_id = steps.join("_");
    let space = Uuid::new_v5(
        &Uuid::NAMESPACE_URL,
        format!("quarry:chain:{chain_id}").as_bytes(),
    );
    let name = [
        bundle.block.hash.as_slice(),
        b"i",
        transaction.hash.as_slice(),
        trace_id.as_bytes(),
    ]
    .concat();
    let creation = matches!(frame.kind, FrameKind::Create | FrameKind::Create2);
    json!({
        "uuid": Uuid::new_v5(&space, &name).to_string(),
        "transactionHash": show(transaction.hash),
        "blockNumber": bundle.block.number().to_string(),
        "blockHash": show(bundle.block.hash),
        "timestamp": bundle.block.header.timestamp.to_string(),
        "transactionIndex": index,
        "from": show(frame.from),
        "to": frame.to.filter(|_| !creation).map(show),
        "contractAddress": frame.to.filter(|_| creation && !frame.reverted).map(show),
        "value": frame.value.to_string(),
        "type": frame.kind.as_str(),
        "traceId": trace_id,
        "depth": frame.path.len(),
        "gas": frame.gas.to_string(),
        "gasUsed": frame.gas_used.to_string(),
        "input": show(&frame.input),
        "output": show(&frame.output),
        "isError": u8::from(frame.reverted),
        "errCode": frame.error.clone().unwrap_or_default(),
    })
}

/// Whose internal transactions.
#[derive(Clone, Copy, Debug)]
pub enum Whose {
    /// An account's.
    Of(Address),
    /// Everybody's.
    All,
    /// Those of a transaction, by its place.
    In(u64, usize),
}

/// Internal transactions, oldest first; with `zero`, the frames that move nothing too.
pub fn internal(chain_id: u64, bundles: &[Bundle], whose: Whose, zero: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for bundle in bundles {
        let number = bundle.block.number();
        for (index, trace) in bundle.traces.iter().flatten().enumerate() {
            for frame in trace.frames.iter().filter(|frame| !frame.path.is_empty()) {
                let moves = match frame.kind {
                    FrameKind::Call => frame.value > U256::ZERO,
                    FrameKind::Create | FrameKind::Create2 | FrameKind::SelfDestruct => true,
                    FrameKind::DelegateCall | FrameKind::StaticCall | FrameKind::CallCode => false,
                };
                let wanted = match whose {
                    Whose::Of(account) => {
                        let undone =
                            frame.reverted && matches!(frame.kind, FrameKind::Create | FrameKind::Create2);
                        frame.from == account || (frame.to == Some(account) && !undone)
                    }
                    Whose::All => true,
                    Whose::In(block, place) => (block, place) == (number, index),
                };
                if wanted && (zero || moves) {
                    rows.push((number, internal_item(chain_id, bundle, index, frame)));
                }
            }
        }
    }
    rows
}

/// The blocks that an account mined, oldest first, by `reward` of each block; block 0 is nobody's.
pub fn mined(bundles: &[Bundle], of: Address, reward: impl Fn(u64) -> U256) -> Vec<Row> {
    let mine = |bundle: &&Bundle| bundle.block.number() > 0 && bundle.block.header.beneficiary == of;
    let row = |bundle: &Bundle| {
        let number = bundle.block.number();
        let item = json!({
            "blockNumber": number.to_string(),
            "timestamp": bundle.block.header.timestamp.to_string(),
            "blockHash": show(bundle.block.hash),
            "blockReward": reward(number).to_string(),
            "txsCount": bundle.block.transactions.len(),
        });
        (number, item)
    };
    bundles.iter().filter(mine).map(row).collect()
}
