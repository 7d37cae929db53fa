//! A small reader of a node's answers for the tests of this room; the real one lives in `node`.

use crate::model::{
    AccessListItem, Authorization, B64, B256, Block, Bloom, Bytes, Header, Log, Receipt, Topics, Transaction,
    U256, Withdrawal,
};
use serde_json::Value;
use std::str::FromStr;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

/// Hex of a fixed or free width.
fn hex<T: FromStr<Err: std::fmt::Debug>>(value: &Value) -> T {
    text(value).parse().unwrap()
}

/// A quantity as text, or as the number that some recorders write.
pub(super) fn word(value: &Value) -> U256 {
    if let Some(number) = value.as_u64() {
        return U256::from(number);
    }
    text(value).parse().unwrap()
}

fn number<T: TryFrom<U256, Error: std::fmt::Debug>>(value: &Value) -> T {
    T::try_from(word(value)).unwrap()
}

fn known<T>(object: &Value, key: &str, read: impl FnOnce(&Value) -> T) -> Option<T> {
    object.get(key).filter(|value| !value.is_null()).map(read)
}

fn list<T>(value: &Value, read: impl FnMut(&Value) -> T) -> Vec<T> {
    value.as_array().unwrap().iter().map(read).collect()
}

pub(super) fn block(value: &Value) -> Block {
    Block {
        hash: hex(&value["hash"]),
        header: header(value),
        size: known(value, "size", number),
        total_difficulty: known(value, "totalDifficulty", word),
        transactions: list(&value["transactions"], transaction),
        uncles: list(&value["uncles"], hex),
        uncle_headers: Vec::new(),
        withdrawals: known(value, "withdrawals", |all| {
            list(all, |one| Withdrawal {
                index: number(&one["index"]),
                validator_index: number(&one["validatorIndex"]),
                address: hex(&one["address"]),
                amount_gwei: number(&one["amount"]),
            })
        }),
        extra: None,
    }
}

fn header(value: &Value) -> Header {
    Header {
        parent_hash: hex(&value["parentHash"]),
        ommers_hash: hex(&value["sha3Uncles"]),
        beneficiary: hex(&value["miner"]),
        state_root: hex(&value["stateRoot"]),
        transactions_root: hex(&value["transactionsRoot"]),
        receipts_root: hex(&value["receiptsRoot"]),
        logs_bloom: hex::<Bloom>(&value["logsBloom"]),
        difficulty: word(&value["difficulty"]),
        number: number(&value["number"]),
        gas_limit: number(&value["gasLimit"]),
        gas_used: number(&value["gasUsed"]),
        timestamp: number(&value["timestamp"]),
        extra_data: hex::<Bytes>(&value["extraData"]),
        mix_hash: hex(&value["mixHash"]),
        nonce: hex::<B64>(&value["nonce"]),
        base_fee_per_gas: known(value, "baseFeePerGas", number),
        withdrawals_root: known(value, "withdrawalsRoot", hex),
        blob_gas_used: known(value, "blobGasUsed", number),
        excess_blob_gas: known(value, "excessBlobGas", number),
        parent_beacon_block_root: known(value, "parentBeaconBlockRoot", hex),
        requests_hash: known(value, "requestsHash", hex),
    }
}

fn transaction(value: &Value) -> Transaction {
    Transaction {
        hash: hex(&value["hash"]),
        kind: known(value, "type", number).unwrap_or(0),
        nonce: number(&value["nonce"]),
        from: hex(&value["from"]),
        to: known(value, "to", hex),
        value: word(&value["value"]),
        gas: number(&value["gas"]),
        gas_price: known(value, "gasPrice", number),
        max_fee_per_gas: known(value, "maxFeePerGas", number),
        max_priority_fee_per_gas: known(value, "maxPriorityFeePerGas", number),
        max_fee_per_blob_gas: known(value, "maxFeePerBlobGas", number),
        access_list: known(value, "accessList", |all| {
            list(all, |one| AccessListItem {
                address: hex(&one["address"]),
                storage_keys: list(&one["storageKeys"], hex),
            })
        }),
        blob_versioned_hashes: known(value, "blobVersionedHashes", |all| list(all, hex::<B256>)),
        authorization_list: known(value, "authorizationList", |all| {
            list(all, |one| Authorization {
                chain_id: word(&one["chainId"]),
                address: hex(&one["address"]),
                nonce: number(&one["nonce"]),
                y_parity: number(&one["yParity"]),
                r: word(&one["r"]),
                s: word(&one["s"]),
            })
        }),
        input: hex(&value["input"]),
        chain_id: known(value, "chainId", number),
        v: known(value, "v", number),
        r: word(&value["r"]),
        s: word(&value["s"]),
        y_parity: known(value, "yParity", number),
        extra: None,
    }
}

pub(super) fn receipt(value: &Value) -> Receipt {
    Receipt {
        transaction_hash: hex(&value["transactionHash"]),
        kind: known(value, "type", number).unwrap_or(0),
        status: known(value, "status", |status| word(status) == U256::from(1)),
        root: known(value, "root", hex),
        cumulative_gas_used: number(&value["cumulativeGasUsed"]),
        gas_used: number(&value["gasUsed"]),
        effective_gas_price: known(value, "effectiveGasPrice", number),
        contract_address: known(value, "contractAddress", hex),
        logs: list(&value["logs"], |log| Log {
            address: hex(&log["address"]),
            topics: Topics::new(&list(&log["topics"], hex)).unwrap(),
            data: hex(&log["data"]),
        }),
        logs_bloom: hex(&value["logsBloom"]),
        blob_gas_used: known(value, "blobGasUsed", number),
        blob_gas_price: known(value, "blobGasPrice", number),
        extra: None,
    }
}
