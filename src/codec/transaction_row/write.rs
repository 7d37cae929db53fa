//! Writing a row.

use std::ops::Range;

use super::super::bytes::{put_varint, put_varint_u128, put_word};
use super::CallData;
use super::shape::{
    ACCESS_LIST, AUTHORIZATIONS, BLOB_GAS, BLOB_PRICE, BLOBS, CHAIN, CREATED, EFFECTIVE, EFFECTIVE_SAME,
    EXTRA, GAS_PRICE, MAX_BLOB_FEE, MAX_FEE, MAX_PRIORITY_FEE, PARITY, PARITY_SAME, RARE, RECEIPT_EXTRA,
    RECEIPT_KIND, ROOT, STATUS, SUCCESS, TO, V, V_SHIFT,
};
use crate::model::{B256, Receipt, Transaction};

/// Appends a transaction's row: the transaction and its receipt, but for hash and signature (by ordinal) and for the logs
/// their places in the block.
pub fn encode_transaction(
    transaction: &Transaction,
    receipt: &Receipt,
    logs: &Range<u32>,
    out: &mut Vec<u8>,
) {
    let (v, odd) = V::of(transaction);
    let parity_is_same = v == V::Parity && transaction.y_parity == Some(u8::from(odd));
    let price_is_same =
        transaction.gas_price.is_some() && receipt.effective_gas_price == transaction.gas_price;
    let bit = |is: bool, bit: u16| if is { bit } else { 0 };
    let rare_bit = |is: bool, bit: u64| if is { bit } else { 0 };
    let rare = rare_bit(receipt.contract_address.is_some(), CREATED)
        | rare_bit(receipt.root.is_some(), ROOT)
        | rare_bit(receipt.kind != transaction.kind, RECEIPT_KIND)
        | rare_bit(transaction.y_parity.is_some() && !parity_is_same, PARITY)
        | rare_bit(transaction.max_fee_per_blob_gas.is_some(), MAX_BLOB_FEE)
        | rare_bit(transaction.blob_versioned_hashes.is_some(), BLOBS)
        | rare_bit(transaction.authorization_list.is_some(), AUTHORIZATIONS)
        | rare_bit(receipt.blob_gas_used.is_some(), BLOB_GAS)
        | rare_bit(receipt.blob_gas_price.is_some(), BLOB_PRICE)
        | rare_bit(transaction.extra.is_some(), EXTRA)
        | rare_bit(receipt.extra.is_some(), RECEIPT_EXTRA);
    let shape = bit(receipt.status.is_some(), STATUS)
        | bit(receipt.status == Some(true), SUCCESS)
        | bit(transaction.to.is_some(), TO)
        | bit(transaction.gas_price.is_some(), GAS_PRICE)
        | bit(receipt.effective_gas_price.is_some() && !price_is_same, EFFECTIVE)
        | bit(price_is_same, EFFECTIVE_SAME)
        | bit(transaction.chain_id.is_some(), CHAIN)
        | (v as u16) << V_SHIFT
        | bit(parity_is_same, PARITY_SAME)
        | bit(transaction.max_fee_per_gas.is_some(), MAX_FEE)
        | bit(transaction.max_priority_fee_per_gas.is_some(), MAX_PRIORITY_FEE)
        | bit(transaction.access_list.is_some(), ACCESS_LIST)
        | bit(rare != 0, RARE);

    put_varint(out, transaction.nonce);
    out.extend_from_slice(transaction.from.as_slice());
    put_varint_u128(
        out,
        u128::from(receipt.cumulative_gas_used) << 1 | u128::from(odd),
    );
    put_varint(out, u64::from(logs.start));
    put_varint(out, receipt.gas_used);
    put_varint(out, logs.len() as u64);
    put_varint(out, transaction.gas);

    out.extend_from_slice(&shape.to_le_bytes());
    if rare != 0 {
        put_varint(out, rare);
    }
    out.push(transaction.kind);
    put_some(out, transaction.chain_id.map(u128::from));
    put_some(out, transaction.v.filter(|_| v == V::Own).map(u128::from));
    out.extend(transaction.y_parity.filter(|_| !parity_is_same));
    put_some(out, transaction.gas_price);
    put_some(out, receipt.effective_gas_price.filter(|_| !price_is_same));
    put_some(out, transaction.max_fee_per_gas);
    put_some(out, transaction.max_priority_fee_per_gas);
    put_some(out, transaction.max_fee_per_blob_gas);
    out.extend(
        receipt
            .contract_address
            .iter()
            .flat_map(|created| created.as_slice()),
    );
    out.extend(receipt.root.iter().flat_map(|root| root.as_slice()));
    if receipt.kind != transaction.kind {
        out.push(receipt.kind);
    }
    if let Some(hashes) = &transaction.blob_versioned_hashes {
        put_words(out, hashes);
    }
    if let Some(list) = &transaction.authorization_list {
        put_varint(out, list.len() as u64);
        for item in list {
            out.push(item.y_parity);
            out.extend_from_slice(item.address.as_slice());
            put_varint(out, item.nonce);
            for number in [item.chain_id, item.r, item.s] {
                put_word(out, &number.to_be_bytes());
            }
        }
    }
    put_some(out, receipt.blob_gas_used.map(u128::from));
    put_some(out, receipt.blob_gas_price);
    for extra in [&transaction.extra, &receipt.extra].into_iter().flatten() {
        put_varint(out, extra.len() as u64);
        out.extend_from_slice(extra.as_bytes());
    }

    put_word(out, &transaction.value.to_be_bytes());
    if let Some(list) = &transaction.access_list {
        put_varint(out, list.len() as u64);
        for item in list {
            out.extend_from_slice(item.address.as_slice());
            put_words(out, &item.storage_keys);
        }
    }
    out.extend(transaction.to.iter().flat_map(|to| to.as_slice()));
    CallData::put(out, &transaction.input);
}

fn put_some(out: &mut Vec<u8>, value: Option<u128>) {
    if let Some(value) = value {
        put_varint_u128(out, value);
    }
}

/// How many, and the words as they are: hashes for the most part.
fn put_words(out: &mut Vec<u8>, words: &[B256]) {
    put_varint(out, words.len() as u64);
    out.extend(words.iter().flat_map(|word| word.as_slice()));
}
