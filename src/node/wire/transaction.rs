//! Transactions.

use super::object::object;
use super::scalar::{Amount, List, MaybeAddress, Wire};
use super::{WireError, may, need};
use crate::model::{AccessListItem, Address, Authorization, B256, Bytes, Transaction, U256};

object! {
    /// A transaction as the node writes it inside a block.
    TransactionWire {
        hash: Wire<B256> = "hash",
        block_hash: Wire<B256> = "blockHash",
        transaction_index: Wire<u64> = "transactionIndex",
        kind: Wire<u8> = "type",
        nonce: Wire<u64> = "nonce",
        from: Wire<Address> = "from",
        to: Wire<MaybeAddress> = "to",
        value: Amount = "value",
        gas: Wire<u64> = "gas" | "gasLimit",
        gas_price: Wire<u128> = "gasPrice",
        max_fee_per_gas: Wire<u128> = "maxFeePerGas",
        max_priority_fee_per_gas: Wire<u128> = "maxPriorityFeePerGas",
        max_fee_per_blob_gas: Wire<u128> = "maxFeePerBlobGas",
        access_list: List<AccessListItemWire> = "accessList",
        blob_versioned_hashes: List<Wire<B256>> = "blobVersionedHashes",
        authorization_list: List<AuthorizationWire> = "authorizationList",
        input: Wire<Bytes> = "input" | "data",
        chain_id: Wire<u64> = "chainId",
        v: Wire<u64> = "v",
        r: Wire<U256> = "r",
        s: Wire<U256> = "s",
        y_parity: Wire<u8> = "yParity",
    } skip {
        "blockNumber", "blockTimestamp", "creates", "publicKey", "raw", "standardV", "condition",
    } extra: kept
}

object! {
    AccessListItemWire {
        address: Wire<Address> = "address",
        storage_keys: List<Wire<B256>> = "storageKeys",
    } skip {} extra: dropped
}

object! {
    AuthorizationWire {
        chain_id: Wire<U256> = "chainId",
        address: Wire<Address> = "address",
        nonce: Wire<u64> = "nonce",
        y_parity: Wire<u8> = "yParity",
        v: Wire<u8> = "v",
        r: Wire<U256> = "r",
        s: Wire<U256> = "s",
    } skip {} extra: dropped
}

/// Turns the transaction at `index` of the block `block_hash` into its value.
pub(super) fn transaction(
    wire: TransactionWire,
    index: usize,
    block_hash: B256,
) -> Result<Transaction, WireError> {
    const WHAT: &str = "transaction";
    let place = Some(index);
    if let Some(found) = may(wire.block_hash)
        && found != block_hash
    {
        return Err(WireError::OtherBlock {
            what: "transactions",
            expected: block_hash,
            found,
        });
    }
    if let Some(found) = may(wire.transaction_index)
        && usize::try_from(found) != Ok(index)
    {
        return Err(WireError::malformed(
            "block",
            format_args!("`transactionIndex` of transaction {index} is {found}"),
        ));
    }
    Ok(Transaction {
        hash: need(wire.hash, WHAT, "hash", place)?,
        kind: may(wire.kind).unwrap_or(0),
        nonce: need(wire.nonce, WHAT, "nonce", place)?,
        from: need(wire.from, WHAT, "from", place)?,
        to: may(wire.to).and_then(|to| to.0),
        value: wire
            .value
            .ok_or(WireError::MissingField {
                what: WHAT,
                field: "value",
                index: place,
            })?
            .0,
        gas: need(wire.gas, WHAT, "gas", place)?,
        gas_price: may(wire.gas_price),
        max_fee_per_gas: may(wire.max_fee_per_gas),
        max_priority_fee_per_gas: may(wire.max_priority_fee_per_gas),
        max_fee_per_blob_gas: may(wire.max_fee_per_blob_gas),
        access_list: wire
            .access_list
            .map(|list| access_list(list, index))
            .transpose()?,
        blob_versioned_hashes: wire
            .blob_versioned_hashes
            .map(|list| list.0.into_iter().map(|hash| hash.0).collect()),
        authorization_list: wire
            .authorization_list
            .map(|list| authorizations(list, index))
            .transpose()?,
        input: need(wire.input, WHAT, "input", place)?,
        chain_id: may(wire.chain_id),
        v: may(wire.v),
        // Deposits of roll-ups are not signed.
        r: may(wire.r).unwrap_or_default(),
        s: may(wire.s).unwrap_or_default(),
        y_parity: may(wire.y_parity),
        extra: wire.extra.into_text(),
    })
}

fn access_list(list: List<AccessListItemWire>, index: usize) -> Result<Vec<AccessListItem>, WireError> {
    let mut items = Vec::with_capacity(list.0.len());
    for wire in list.0 {
        items.push(AccessListItem {
            address: need(wire.address, "transaction", "accessList.address", Some(index))?,
            storage_keys: wire
                .storage_keys
                .map(|keys| keys.0.into_iter().map(|key| key.0).collect())
                .unwrap_or_default(),
        });
    }
    Ok(items)
}

fn authorizations(list: List<AuthorizationWire>, index: usize) -> Result<Vec<Authorization>, WireError> {
    const WHAT: &str = "transaction";
    let place = Some(index);
    let mut items = Vec::with_capacity(list.0.len());
    for wire in list.0 {
        items.push(Authorization {
            chain_id: need(wire.chain_id, WHAT, "authorizationList.chainId", place)?,
            address: need(wire.address, WHAT, "authorizationList.address", place)?,
            nonce: need(wire.nonce, WHAT, "authorizationList.nonce", place)?,
            y_parity: need(wire.y_parity.or(wire.v), WHAT, "authorizationList.yParity", place)?,
            r: need(wire.r, WHAT, "authorizationList.r", place)?,
            s: need(wire.s, WHAT, "authorizationList.s", place)?,
        });
    }
    Ok(items)
}
