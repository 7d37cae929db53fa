//! What Otterscan asks for, API level 8.

use super::block::{Bloom, begin};
use super::{dated_receipt, made_nothing, receipt_without_logs, transaction};
use crate::json::object::{Object, array};
use crate::json::writer;
use crate::model::{Address, Block, Frame, FrameKind, TransactionEntry, U256};

/// What `ots_getBlockDetails` says of a block beside its header.
#[derive(Clone, Copy, Debug)]
pub struct BlockDetails {
    /// Transactions.
    pub transactions: u64,
    /// What the protocol gave who sealed it, wei.
    pub block_reward: U256,
    /// What it gave who sealed its uncles.
    pub uncle_reward: U256,
    /// Fees paid for gas.
    pub fees: U256,
}

/// Appends the answer to `ots_getBlockDetails`.
pub fn block_details(out: &mut Vec<u8>, block: &Block, details: &BlockDetails) {
    let mut object = Object::begin(out);
    let mut shown = begin(object.key("block"), block, Bloom::Null);
    shown.integer("transactionCount", details.transactions);
    shown.end_with_extra(block.extra.as_deref());
    let mut issuance = Object::begin(object.key("issuance"));
    issuance.quantity_u256("blockReward", &details.block_reward);
    issuance.quantity_u256("uncleReward", &details.uncle_reward);
    let all = details.block_reward.saturating_add(details.uncle_reward);
    issuance.quantity_u256("issuance", &all);
    issuance.end();
    object.quantity_u256("totalFees", &details.fees);
    object.end();
}

/// Appends the answer to `ots_getBlockTransactions`: of `count` transactions these, their input cut to a selector.
pub fn block_transactions(out: &mut Vec<u8>, block: &Block, count: u64, entries: &mut [TransactionEntry]) {
    for entry in &mut *entries {
        let input = &mut entry.transaction.input;
        *input = input.slice(..input.len().min(4));
    }
    let mut object = Object::begin(out);
    let mut shown = begin(object.key("fullblock"), block, Bloom::Null);
    shown.array("transactions", &*entries, transaction);
    shown.integer("transactionCount", count);
    shown.end_with_extra(block.extra.as_deref());
    object.array("receipts", &*entries, receipt_without_logs);
    object.end();
}

/// Appends a call as `ots_traceTransaction` states it. `unmade` stands where a creation made nothing: clients want an address
/// there.
pub fn call(out: &mut Vec<u8>, frame: &Frame, unmade: Address) {
    let kind = match frame.kind {
        FrameKind::Call => "CALL",
        FrameKind::DelegateCall => "DELEGATECALL",
        FrameKind::StaticCall => "STATICCALL",
        FrameKind::CallCode => "CALLCODE",
        FrameKind::Create => "CREATE",
        FrameKind::Create2 => "CREATE2",
        FrameKind::SelfDestruct => "SELFDESTRUCT",
    };
    let mut object = Object::begin(out);
    object.string("type", kind);
    object.integer("depth", frame.path.len() as u64);
    object.hex("from", frame.from);
    let to = if made_nothing(frame) {
        Some(unmade)
    } else {
        frame.to
    };
    object.hex_or_null("to", to);
    match frame.kind {
        FrameKind::DelegateCall | FrameKind::StaticCall => object.null("value"),
        _ => object.quantity_u256("value", &frame.value),
    }
    object.hex("input", &frame.input);
    object.hex("output", &frame.output);
    object.end();
}

/// Appends an internal transaction as `ots_getInternalOperations` states it.
pub fn internal_operation(out: &mut Vec<u8>, frame: &Frame) {
    let kind = match frame.kind {
        FrameKind::SelfDestruct => 1_u8,
        FrameKind::Create => 2,
        FrameKind::Create2 => 3,
        _ => 0,
    };
    let mut object = Object::begin(out);
    object.integer("type", kind);
    object.hex("from", frame.from);
    object.hex_or_null("to", frame.to);
    object.quantity_u256("value", &frame.value);
    object.end();
}

/// Appends a page of a search: transactions with their receipts, the newest first.
pub fn found(out: &mut Vec<u8>, entries: &[TransactionEntry], is_first: bool, is_last: bool) {
    let mut object = Object::begin(out);
    array(object.key("txs"), entries, transaction);
    object.array("receipts", entries, dated_receipt);
    object.boolean("firstPage", is_first);
    object.boolean("lastPage", is_last);
    object.end();
}

/// Appends how a contract came to be, for `ots_getContractCreator`.
pub fn contract_creator(out: &mut Vec<u8>, transaction: &[u8], creator: &[u8]) {
    let mut object = Object::begin(out);
    writer::hex(object.key("hash"), transaction);
    writer::hex(object.key("creator"), creator);
    object.end();
}
