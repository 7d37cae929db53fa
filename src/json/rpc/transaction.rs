//! `eth_getTransactionByHash`.

use super::{LeftOut, Place};
use crate::json::{object::Object, writer};
use crate::model::{AccessListItem, Authorization, Transaction, TransactionEntry};

/// The Ethereum types that have an access list and a parity: EIP-2930, 1559, 4844 and 7702.
const TYPED: std::ops::RangeInclusive<u8> = 1..=4;

/// Appends a transaction.
pub fn transaction(out: &mut Vec<u8>, entry: &TransactionEntry) {
    write(
        out,
        &entry.transaction,
        entry.receipt.effective_gas_price,
        &place(entry),
    );
}

/// The place of an entry.
pub(super) fn place(entry: &TransactionEntry) -> Place {
    Place {
        block: entry.block,
        timestamp: entry.timestamp,
        base_fee_per_gas: entry.base_fee_per_gas,
        transaction_index: u64::from(entry.transaction_index),
        left_out: LeftOut::Filled,
    }
}

/// The price paid per gas: as the node states it, else as EIP-1559 gives it. The rule tells no price in a token.
pub(super) fn gas_price(transaction: &Transaction, place: &Place) -> Option<u128> {
    transaction.gas_price.or_else(|| {
        place.fills().then_some(())?;
        // The block's is in coin.
        let in_coin = !Transaction::is_paid_in_token(transaction.extra.as_deref());
        let base = u128::from(place.base_fee_per_gas.filter(|_| in_coin)?);
        let tip = transaction.max_priority_fee_per_gas?;
        Some(transaction.max_fee_per_gas?.min(base.saturating_add(tip)))
    })
}

/// Appends `transaction`; `price_paid` is the receipt's price, for a node that states none in the transaction.
pub(super) fn write(out: &mut Vec<u8>, transaction: &Transaction, price_paid: Option<u128>, place: &Place) {
    let typed = place.fills() && TYPED.contains(&transaction.kind);
    let mut object = Object::begin(out);
    place.write(&mut object);
    object.quantity("blockTimestamp", place.timestamp);
    object.hex("hash", transaction.hash);
    object.quantity("type", transaction.kind);
    object.quantity("nonce", transaction.nonce);
    object.hex("from", transaction.from);
    object.hex_or_null("to", transaction.to);
    object.quantity_u256("value", &transaction.value);
    object.quantity("gas", transaction.gas);
    object.quantity_if_known("gasPrice", gas_price(transaction, place).or(price_paid));
    object.quantity_if_known("maxFeePerGas", transaction.max_fee_per_gas);
    object.quantity_if_known("maxPriorityFeePerGas", transaction.max_priority_fee_per_gas);
    object.quantity_if_known("maxFeePerBlobGas", transaction.max_fee_per_blob_gas);
    object.hex("input", &transaction.input);
    // Some nodes leave an empty list out; the specification has the field for every typed transaction.
    let empty = typed.then_some(const { &Vec::new() });
    if let Some(list) = transaction.access_list.as_ref().or(empty) {
        object.array("accessList", list, access_list_item);
    }
    if let Some(hashes) = &transaction.blob_versioned_hashes {
        object.array("blobVersionedHashes", hashes, |out, hash| {
            writer::hex(out, hash.as_slice())
        });
    }
    if let Some(list) = &transaction.authorization_list {
        object.array("authorizationList", list, authorization);
    }
    object.quantity_if_known("chainId", transaction.chain_id);
    object.quantity_if_known("v", transaction.v);
    object.quantity_u256("r", &transaction.r);
    object.quantity_u256("s", &transaction.s);
    // Likewise `yParity`: for a typed transaction `v` is the parity.
    let parity = transaction
        .y_parity
        .map(u64::from)
        .or(transaction.v.filter(|_| typed));
    object.quantity_if_known("yParity", parity);
    object.end_with_extra(transaction.extra.as_deref());
}

fn access_list_item(out: &mut Vec<u8>, item: &AccessListItem) {
    let mut object = Object::begin(out);
    object.hex("address", item.address);
    object.array("storageKeys", &item.storage_keys, |out, key| {
        writer::hex(out, key.as_slice())
    });
    object.end();
}

fn authorization(out: &mut Vec<u8>, tuple: &Authorization) {
    let mut object = Object::begin(out);
    object.quantity_u256("chainId", &tuple.chain_id);
    object.hex("address", tuple.address);
    object.quantity("nonce", tuple.nonce);
    object.quantity("yParity", tuple.y_parity);
    object.quantity_u256("r", &tuple.r);
    object.quantity_u256("s", &tuple.s);
    object.end();
}
