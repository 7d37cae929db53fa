//! `trace_block`: localized traces, flat and in pre-order.

use crate::json::{object::Object, writer};
use crate::model::{B256, Block, BlockId, Frame, FrameKind, Transaction, TransactionTrace};

/// Appends the traces of a block as recordings have them, one array for all its transactions. Rewards are not among them. A creation
/// that made nothing keeps its `result`, too, without `address` in it, so that its gas and output are not lost.
pub fn traces(out: &mut Vec<u8>, block: &Block, of_transactions: &[TransactionTrace]) {
    out.push(b'[');
    let start = out.len();
    let pairs = block.transactions.iter().zip(of_transactions);
    for (position, (transaction, trace)) in (0_u64..).zip(pairs) {
        let place = TracePlace {
            block: BlockId {
                number: block.number(),
                hash: block.hash,
            },
            transaction: transaction.hash,
            position,
        };
        if is_made_up(transaction, trace) {
            continue;
        }
        for (frame, subtraces) in trace.frames.iter().zip(subtraces(&trace.frames)) {
            if out.len() > start {
                out.push(b',');
            }
            write(out, frame, subtraces, &place, false);
        }
    }
    out.push(b']');
}

/// Whether the node had no trace of a creation without gas, as only a chain's own has: what stands in its place has no address, and whoever
/// reads the recording makes it again.
fn is_made_up(transaction: &Transaction, trace: &TransactionTrace) -> bool {
    match trace.frames.as_slice() {
        [top] => transaction.gas == 0 && top.error.is_none() && made_nothing(top),
        _ => false,
    }
}

/// Which transaction a trace is of.
#[derive(Clone, Copy, Debug)]
pub struct TracePlace {
    /// The block.
    pub block: BlockId,
    /// Hash of the transaction.
    pub transaction: B256,
    /// Its position in the block.
    pub position: u64,
}

/// Whether a frame is a creation that failed, so that there is no address of what it made.
#[must_use]
pub fn made_nothing(frame: &Frame) -> bool {
    frame.kind.is_creation() && (frame.error.is_some() || frame.to.is_none())
}

/// Appends the trace of one frame, which has so many direct children, as nodes give it.
///
/// A failed call keeps `result` beside `error`, as nodes do for reverts, so that gas and output are not lost. A creation that made
/// nothing has none: clients take no `result` of a creation without `address`.
pub fn trace(out: &mut Vec<u8>, frame: &Frame, subtraces: u64, place: &TracePlace) {
    write(out, frame, subtraces, place, made_nothing(frame));
}

fn write(out: &mut Vec<u8>, frame: &Frame, subtraces: u64, place: &TracePlace, is_without_result: bool) {
    let mut object = Object::begin(out);
    let kind = match frame.kind {
        FrameKind::Create | FrameKind::Create2 => "create",
        FrameKind::SelfDestruct => "suicide",
        FrameKind::Call | FrameKind::DelegateCall | FrameKind::StaticCall | FrameKind::CallCode => "call",
    };
    object.string("type", kind);
    action(object.key("action"), frame);
    if is_without_result {
        object.null("result");
    } else {
        result(object.key("result"), frame);
    }
    if let Some(error) = &frame.error {
        object.string("error", error);
    }
    object.integer("subtraces", subtraces);
    object.array("traceAddress", &frame.path, |out, step| {
        writer::integer(out, u64::from(*step))
    });
    object.hex("blockHash", place.block.hash);
    object.integer("blockNumber", place.block.number);
    object.hex("transactionHash", place.transaction);
    object.integer("transactionPosition", place.position);
    object.end();
}

fn action(out: &mut Vec<u8>, frame: &Frame) {
    let mut object = Object::begin(out);
    if frame.kind == FrameKind::SelfDestruct {
        object.hex("address", frame.from);
        object.hex_or_null("refundAddress", frame.to);
        object.quantity_u256("balance", &frame.value);
        return object.end();
    }
    object.hex("from", frame.from);
    object.quantity("gas", frame.gas);
    object.quantity_u256("value", &frame.value);
    if frame.kind.is_creation() {
        object.string("creationMethod", frame.kind.as_str());
        object.hex("init", &frame.input);
    } else {
        object.string("callType", frame.kind.as_str());
        object.hex_or_null("to", frame.to);
        object.hex("input", &frame.input);
    }
    object.end();
}

fn result(out: &mut Vec<u8>, frame: &Frame) {
    if frame.kind == FrameKind::SelfDestruct {
        return writer::null(out);
    }
    let mut object = Object::begin(out);
    object.quantity("gasUsed", frame.gas_used);
    if frame.kind.is_creation() {
        object.hex_if_known("address", frame.to);
        object.hex("code", &frame.output);
    } else {
        object.hex("output", &frame.output);
    }
    object.end();
}

/// For each frame the number of its direct children. In pre-order the parent of a frame is the last one before
/// it that is one step shorter.
#[must_use]
pub fn subtraces(frames: &[Frame]) -> Vec<u64> {
    let mut counts = vec![0; frames.len()];
    let mut open: Vec<usize> = Vec::new();
    for (place, frame) in frames.iter().enumerate() {
        open.truncate(frame.path.len());
        if let Some(count) = open.last().and_then(|&parent| counts.get_mut(parent)) {
            *count += 1;
        }
        open.push(place);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Transaction, U256};
    use serde_json::{Value, json};

    fn frame(kind: FrameKind, path: &[u32]) -> Frame {
        Frame {
            kind,
            path: path.to_vec(),
            from: Address::repeat_byte(1),
            to: Some(Address::repeat_byte(2)),
            value: U256::from(3),
            gas: 16,
            gas_used: 8,
            input: vec![4].into(),
            output: vec![5].into(),
            ..Frame::default()
        }
    }

    #[test]
    fn frames_become_localized_traces() {
        let mut failed = frame(FrameKind::Create2, &[1]);
        failed.error = Some("reverted".to_owned());
        failed.to = None;
        let frames = vec![
            frame(FrameKind::Call, &[]),
            frame(FrameKind::DelegateCall, &[0]),
            frame(FrameKind::StaticCall, &[0, 0]),
            failed,
            frame(FrameKind::SelfDestruct, &[2]),
        ];
        let hash = B256::repeat_byte(9);
        let transactions = vec![
            Transaction::default(),
            Transaction {
                hash,
                ..Transaction::default()
            },
        ];
        let block = Block {
            transactions,
            ..Block::default()
        };
        let mut out = Vec::new();
        traces(
            &mut out,
            &block,
            &[TransactionTrace::default(), TransactionTrace { frames }],
        );
        let value: Value = serde_json::from_slice(&out).unwrap();
        let list = value.as_array().unwrap();
        assert_eq!(list.len(), 5);
        let counts: Vec<u64> = list
            .iter()
            .map(|trace| trace["subtraces"].as_u64().unwrap())
            .collect();
        assert_eq!(counts, [3, 1, 0, 0, 0]);
        let one = "0x0101010101010101010101010101010101010101";
        let two = "0x0202020202020202020202020202020202020202";
        let zero = B256::ZERO.to_string();
        assert_eq!(
            list[2],
            json!({
                "type": "call", "subtraces": 0, "traceAddress": [0, 0], "blockHash": zero, "blockNumber": 0,
                "transactionHash": hash.to_string(), "transactionPosition": 1,
                "action": {"callType": "staticcall", "from": one, "to": two, "gas": "0x10", "value": "0x3",
                    "input": "0x04"},
                "result": {"gasUsed": "0x8", "output": "0x05"},
            })
        );
        assert_eq!(list[3]["error"], "reverted");
        assert_eq!(list[3]["result"], json!({"gasUsed": "0x8", "code": "0x05"}));
        assert_eq!(list[3]["action"]["creationMethod"], "create2");
        assert_eq!(list[4]["type"], "suicide");
        assert_eq!(
            list[4]["action"],
            json!({"address": one, "refundAddress": two, "balance": "0x3"})
        );
        assert_eq!(list[4]["result"], Value::Null);
    }

    #[test]
    fn a_creation_that_failed_has_no_result_where_clients_ask() {
        let place = TracePlace {
            block: BlockId::default(),
            transaction: B256::ZERO,
            position: 0,
        };
        let result_of = |frame: &Frame| {
            let mut out = Vec::new();
            trace(&mut out, frame, 0, &place);
            let mut value: Value = serde_json::from_slice(&out).unwrap();
            value["result"].take()
        };
        let two = "0x0202020202020202020202020202020202020202";
        let mut creation = frame(FrameKind::Create, &[]);
        assert_eq!(
            result_of(&creation),
            json!({"gasUsed": "0x8", "address": two, "code": "0x05"})
        );
        creation.error = Some("reverted".to_owned());
        for to in [None, Some(Address::repeat_byte(2))] {
            creation.to = to;
            assert_eq!(result_of(&creation), Value::Null);
        }
        let mut call = frame(FrameKind::Call, &[]);
        call.error = Some("reverted".to_owned());
        assert_eq!(result_of(&call), json!({"gasUsed": "0x8", "output": "0x05"}));
    }
}
