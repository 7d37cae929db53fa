//! Items against what serde writes of the same fields.

use super::*;
use crate::model::{B256, BlockId, FrameKind};
use proptest::prelude::*;
use serde::Serialize;

/// A transaction as one would write it without haste.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainTransaction {
    hash: String,
    block_number: String,
    timestamp: String,
    block_hash: String,
    transaction_index: u32,
    from: String,
    to: Option<String>,
    contract_address: Option<String>,
    value: String,
    nonce: String,
    r#type: u8,
    gas: String,
    gas_used: String,
    cumulative_gas_used: String,
    gas_price: String,
    max_fee_per_gas: Option<String>,
    max_priority_fee_per_gas: Option<String>,
    fee: String,
    status: u8,
    is_error: u8,
    input: String,
    method_id: String,
    function_name: String,
    confirmations: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainInternal {
    uuid: String,
    transaction_hash: String,
    block_number: String,
    block_hash: String,
    timestamp: String,
    transaction_index: u32,
    from: String,
    to: Option<String>,
    contract_address: Option<String>,
    value: String,
    r#type: String,
    trace_id: String,
    depth: usize,
    gas: String,
    gas_used: String,
    input: String,
    output: String,
    is_error: u8,
    err_code: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlainMined {
    block_number: String,
    timestamp: String,
    block_hash: String,
    block_reward: String,
    txs_count: u64,
}

fn show(bytes: impl AsRef<[u8]>) -> String {
    const_hex::encode_prefixed(bytes)
}

fn word() -> impl Strategy<Value = B256> {
    any::<[u8; 32]>().prop_map(B256::from)
}

fn address() -> impl Strategy<Value = Address> {
    any::<[u8; 20]>().prop_map(Address::from)
}

/// Small, of one word, and of any size.
fn value() -> impl Strategy<Value = U256> {
    prop_oneof![
        Just(U256::ZERO),
        any::<u64>().prop_map(U256::from),
        any::<u128>().prop_map(U256::from),
        word().prop_map(|word| U256::from_be_bytes(word.0)),
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

proptest! {
    #[test]
    fn transactions_are_what_serde_writes(
        hashes in (word(), word()),
        parties in (address(), proptest::option::of(address()), proptest::option::of(address())),
        amounts in (value(), value()),
        numbers in any::<(u32, u64, u64, u64, u64, u64, u8)>(),
        prices in any::<(u128, Option<u128>, Option<u128>)>(),
        block in 0u64..1 << 40,
        above in 0u64..1000,
        success in any::<bool>(),
        input in bytes(),
    ) {
        let transaction = ListedTransaction {
            hash: hashes.0,
            block: BlockId { number: block, hash: hashes.1 },
            timestamp: numbers.1,
            transaction_index: numbers.0,
            from: parties.0,
            to: parties.1,
            contract_address: parties.2,
            value: amounts.0,
            nonce: numbers.2,
            kind: numbers.6,
            gas: numbers.3,
            gas_used: numbers.4,
            cumulative_gas_used: numbers.5,
            gas_price: prices.0,
            max_fee_per_gas: prices.1,
            max_priority_fee_per_gas: prices.2,
            fee: amounts.1,
            success,
            input: &input,
        };
        let plain = PlainTransaction {
            hash: show(transaction.hash),
            block_number: block.to_string(),
            timestamp: transaction.timestamp.to_string(),
            block_hash: show(transaction.block.hash),
            transaction_index: transaction.transaction_index,
            from: show(transaction.from),
            to: transaction.to.map(show),
            contract_address: transaction.contract_address.map(show),
            value: transaction.value.to_string(),
            nonce: transaction.nonce.to_string(),
            r#type: transaction.kind,
            gas: transaction.gas.to_string(),
            gas_used: transaction.gas_used.to_string(),
            cumulative_gas_used: transaction.cumulative_gas_used.to_string(),
            gas_price: transaction.gas_price.to_string(),
            max_fee_per_gas: transaction.max_fee_per_gas.map(|price| price.to_string()),
            max_priority_fee_per_gas: transaction.max_priority_fee_per_gas.map(|price| price.to_string()),
            fee: transaction.fee.to_string(),
            status: u8::from(success),
            is_error: u8::from(!success),
            input: show(&input),
            method_id: if input.len() < 4 { "0x".to_owned() } else { show(&input[..4]) },
            function_name: String::new(),
            confirmations: above + 1,
        };
        let mut out = Vec::new();
        listed_transaction(&mut out, &transaction, block + above, "");
        prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&plain).unwrap());
    }

    #[test]
    fn internal_transactions_are_what_serde_writes(
        hashes in (word(), word()),
        parties in (address(), proptest::option::of(address())),
        amount in value(),
        numbers in any::<(u32, u64, u64, u64, u64)>(),
        kind in 0usize..7,
        path in proptest::collection::vec(0u32..2000, 1..12),
        texts in (bytes(), bytes()),
        error in proptest::option::of("[ -~\"\\\\\n]{1,20}"),
        reverted in any::<bool>(),
    ) {
        let internal = InternalTransaction {
            transaction_hash: hashes.0,
            block: BlockId { number: numbers.1, hash: hashes.1 },
            timestamp: numbers.2,
            transaction_index: numbers.0,
            kind: FrameKind::ALL[kind],
            path: &path,
            from: parties.0,
            to: parties.1,
            value: amount,
            gas: numbers.3,
            gas_used: numbers.4,
            input: &texts.0,
            output: &texts.1,
            error: error.as_deref(),
            reverted,
        };
        let ids = UuidSpace::new(7);
        let steps: Vec<String> = path.iter().map(u32::to_string).collect();
        let trace_id = steps.join("_");
        let (to, made) = match internal.kind {
            FrameKind::Create | FrameKind::Create2 if reverted => (None, None),
            FrameKind::Create | FrameKind::Create2 => (None, internal.to),
            _ => (internal.to, None),
        };
        let plain = PlainInternal {
            uuid: ids.internal_transaction(&hashes.1, &hashes.0, &trace_id).to_string(),
            transaction_hash: show(hashes.0),
            block_number: numbers.1.to_string(),
            block_hash: show(hashes.1),
            timestamp: numbers.2.to_string(),
            transaction_index: numbers.0,
            from: show(internal.from),
            to: to.map(show),
            contract_address: made.map(show),
            value: amount.to_string(),
            r#type: internal.kind.as_str().to_owned(),
            trace_id,
            depth: path.len(),
            gas: numbers.3.to_string(),
            gas_used: numbers.4.to_string(),
            input: show(&texts.0),
            output: show(&texts.1),
            is_error: u8::from(reverted),
            err_code: error.clone().unwrap_or_default(),
        };
        let (mut out, mut room) = (Vec::new(), "left over".to_owned());
        super::internal_transaction(&mut out, &ids, &mut room, &internal);
        prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&plain).unwrap());
    }
    #[test]
    fn mined_blocks_are_what_serde_writes(hash in word(), reward in value(), numbers in any::<(u64, u64, u64)>()) {
        let mined = MinedBlock {
            block: BlockId { number: numbers.0, hash },
            timestamp: numbers.1,
            reward,
            transactions: numbers.2,
        };
        let plain = PlainMined {
            block_number: numbers.0.to_string(),
            timestamp: numbers.1.to_string(),
            block_hash: show(hash),
            block_reward: reward.to_string(),
            txs_count: numbers.2,
        };
        let mut out = Vec::new();
        mined_block(&mut out, &mined);
        prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&plain).unwrap());
    }
}
