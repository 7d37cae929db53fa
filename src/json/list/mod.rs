//! Items of the lists of accounts (answers.md section 4): transactions, internal transactions
//! and mined blocks.

mod tokens;

pub use tokens::{held_id, holder, holding, inventory_item, transfer};

use std::fmt::Write as _;

use super::{UuidSpace, writer};
use crate::model::{Address, InternalTransaction, ListedTransaction, MinedBlock, U256};

/// Bytes of an item's names, punctuation and values of bounded length; more are rare and only cost a growth.
const ITEM_BYTES: usize = 1100;

/// Appends a transaction (A3); `head` is the last indexed block, from which confirmations count, and `function` the
/// function that is called by an ABI, or nothing.
pub fn listed_transaction(out: &mut Vec<u8>, transaction: &ListedTransaction<'_>, head: u64, function: &str) {
    out.reserve(ITEM_BYTES + 2 * transaction.input.len());
    hex(out, "{\"hash\":\"0x", &transaction.hash.0);
    decimal(out, "\",\"blockNumber\":\"", transaction.block.number);
    decimal(out, "\",\"timestamp\":\"", transaction.timestamp);
    hex(out, "\",\"blockHash\":\"0x", &transaction.block.hash.0);
    decimal(
        out,
        "\",\"transactionIndex\":",
        u64::from(transaction.transaction_index),
    );
    hex(out, ",\"from\":\"0x", &transaction.from.0.0);
    text(out, "\",\"to\":");
    address_or_null(out, transaction.to);
    text(out, ",\"contractAddress\":");
    address_or_null(out, transaction.contract_address);
    amount(out, ",\"value\":", &transaction.value);
    decimal(out, ",\"nonce\":\"", transaction.nonce);
    decimal(out, "\",\"type\":", u64::from(transaction.kind));
    decimal(out, ",\"gas\":\"", transaction.gas);
    decimal(out, "\",\"gasUsed\":\"", transaction.gas_used);
    decimal(
        out,
        "\",\"cumulativeGasUsed\":\"",
        transaction.cumulative_gas_used,
    );
    price(out, "\",\"gasPrice\":", Some(transaction.gas_price));
    price(out, ",\"maxFeePerGas\":", transaction.max_fee_per_gas);
    price(
        out,
        ",\"maxPriorityFeePerGas\":",
        transaction.max_priority_fee_per_gas,
    );
    amount(out, ",\"fee\":", &transaction.fee);
    text(
        out,
        if transaction.success {
            ",\"status\":1,\"isError\":0,\"input\":\"0x"
        } else {
            ",\"status\":0,\"isError\":1,\"input\":\"0x"
        },
    );
    writer::hex_digits(out, transaction.input);
    text(out, "\",\"methodId\":\"0x");
    writer::hex_digits(out, transaction.input.get(..4).unwrap_or(&[]));
    let confirmations = head.saturating_sub(transaction.block.number) + 1;
    text(out, "\",\"functionName\":\"");
    writer::escaped(out, function);
    decimal(out, "\",\"confirmations\":", confirmations);
    out.push(b'}');
}

/// Appends an internal transaction (A4, A5, A6). `trace_id` is room for its text, reused from item to item.
pub fn internal_transaction(
    out: &mut Vec<u8>,
    ids: &UuidSpace,
    trace_id: &mut String,
    internal: &InternalTransaction<'_>,
) {
    out.reserve(ITEM_BYTES + 2 * (internal.input.len() + internal.output.len()));
    self::trace_id(trace_id, internal.path);
    let id = ids.internal_transaction(&internal.block.hash, &internal.transaction_hash, trace_id);
    text(out, "{\"uuid\":");
    writer::uuid(out, id);
    hex(out, ",\"transactionHash\":\"0x", &internal.transaction_hash.0);
    decimal(out, "\",\"blockNumber\":\"", internal.block.number);
    hex(out, "\",\"blockHash\":\"0x", &internal.block.hash.0);
    decimal(out, "\",\"timestamp\":\"", internal.timestamp);
    decimal(
        out,
        "\",\"transactionIndex\":",
        u64::from(internal.transaction_index),
    );
    hex(out, ",\"from\":\"0x", &internal.from.0.0);
    // What a creation made is no recipient, and what is undone made nothing.
    let creation = internal.kind.is_creation();
    text(out, "\",\"to\":");
    address_or_null(out, internal.to.filter(|_| !creation));
    text(out, ",\"contractAddress\":");
    address_or_null(out, internal.to.filter(|_| creation && !internal.reverted));
    amount(out, ",\"value\":", &internal.value);
    text(out, ",\"type\":\"");
    text(out, internal.kind.as_str());
    text(out, "\",\"traceId\":\"");
    text(out, trace_id);
    decimal(out, "\",\"depth\":", internal.path.len() as u64);
    decimal(out, ",\"gas\":\"", internal.gas);
    decimal(out, "\",\"gasUsed\":\"", internal.gas_used);
    text(out, "\",\"input\":\"0x");
    writer::hex_digits(out, internal.input);
    text(out, "\",\"output\":\"0x");
    writer::hex_digits(out, internal.output);
    decimal(out, "\",\"isError\":", u64::from(internal.reverted));
    text(out, ",\"errCode\":\"");
    writer::escaped(out, internal.error.unwrap_or_default());
    text(out, "\"}");
}

/// The text of a place in a call tree (`traceId`), over what was in `text`.
pub fn trace_id(text: &mut String, path: &[u32]) {
    text.clear();
    for (depth, step) in path.iter().enumerate() {
        // Writing into a string has no way to fail.
        let _ = write!(text, "{}{step}", if depth > 0 { "_" } else { "" });
    }
}

/// Appends a block that an account mined (A9).
pub fn mined_block(out: &mut Vec<u8>, mined: &MinedBlock) {
    out.reserve(ITEM_BYTES);
    decimal(out, "{\"blockNumber\":\"", mined.block.number);
    decimal(out, "\",\"timestamp\":\"", mined.timestamp);
    hex(out, "\",\"blockHash\":\"0x", &mined.block.hash.0);
    amount(out, "\",\"blockReward\":", &mined.reward);
    decimal(out, ",\"txsCount\":", mined.transactions);
    out.push(b'}');
}

#[inline(always)]
fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// What stands before a number, and its digits.
#[inline(always)]
fn decimal(out: &mut Vec<u8>, before: &str, value: u64) {
    text(out, before);
    writer::integer(out, value);
}

/// What stands before hex digits, and they.
#[inline(always)]
fn hex<const N: usize>(out: &mut Vec<u8>, before: &str, value: &[u8; N]) {
    text(out, before);
    writer::hex_digits(out, value);
}

#[inline(always)]
fn amount(out: &mut Vec<u8>, before: &str, value: &U256) {
    text(out, before);
    match u64::try_from(*value) {
        Ok(small) => writer::decimal(out, small),
        Err(_) => writer::decimal_u256(out, value),
    }
}

#[inline(always)]
fn price(out: &mut Vec<u8>, before: &str, value: Option<u128>) {
    match value {
        Some(value) => amount(out, before, &U256::from(value)),
        None => {
            text(out, before);
            writer::null(out);
        }
    }
}

#[inline(always)]
fn address_or_null(out: &mut Vec<u8>, address: Option<Address>) {
    match address {
        Some(address) => writer::hex(out, &address.0.0),
        None => writer::null(out),
    }
}

#[cfg(test)]
mod tests;
