//! Consensus encodings of the model: RLP and EIP-2718 envelopes, written into a reused buffer.
//!
//! The length of receipts and logs is computed first. Other lists are written payload first and their header is moved
//! in front: they are short, or seldom.

use alloy_primitives::{B256, U256, keccak256};

use crate::model::{AccessListItem, Authorization, Block, Header, Log, Receipt, Transaction, Withdrawal};

/// The magic byte before a signed authorization (EIP-7702).
const AUTHORIZATION_MAGIC: u8 = 0x05;

/// Why a transaction has no encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionFault {
    /// Its type is none of 0 to 4.
    UnsupportedType,
    /// A field that its type needs is absent.
    Missing(&'static str),
}

/// What a receipt says of the outcome of its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// EIP-658 status, from Byzantium on.
    Status(bool),
    /// Intermediate state root, before Byzantium.
    Root(B256),
}

/// Hash of a header: of a block or of an uncle.
pub(super) fn header_hash(header: &Header, buffer: &mut Vec<u8>) -> B256 {
    buffer.clear();
    put_header(header, buffer);
    keccak256(buffer)
}

/// `sha3Uncles`: hash of the list of uncle headers.
pub(super) fn ommers_hash(uncles: &[Header], buffer: &mut Vec<u8>) -> B256 {
    buffer.clear();
    put_list(buffer, |out| {
        uncles.iter().for_each(|uncle| put_header(uncle, out))
    });
    keccak256(buffer)
}

/// Bytes of an RLP-encoded block without transactions and uncles: what a node calls the size of a genesis.
pub(super) fn bare_block_size(block: &Block) -> u64 {
    let mut buffer = Vec::with_capacity(1024);
    put_list(&mut buffer, |out| {
        put_header(&block.header, out);
        put_list(out, |_| {});
        put_list(out, |_| {});
        if block.withdrawals.is_some() {
            put_list(out, |_| {});
        }
    });
    buffer.len() as u64
}

/// The hash that the authority of an EIP-7702 tuple signs.
pub(super) fn authorization_hash(authorization: &Authorization) -> B256 {
    let mut buffer = vec![AUTHORIZATION_MAGIC];
    put_list(&mut buffer, |out| {
        put_u256(out, authorization.chain_id);
        put_bytes(out, authorization.address.as_slice());
        put_u64(out, authorization.nonce);
    });
    keccak256(buffer)
}

/// Appends a header. The fields after the nonce are optional from the end: an absent one with a present one
/// behind it is an empty string, as geth writes it.
pub(super) fn put_header(header: &Header, out: &mut Vec<u8>) {
    put_list(out, |out| {
        put_bytes(out, header.parent_hash.as_slice());
        put_bytes(out, header.ommers_hash.as_slice());
        put_bytes(out, header.beneficiary.as_slice());
        put_bytes(out, header.state_root.as_slice());
        put_bytes(out, header.transactions_root.as_slice());
        put_bytes(out, header.receipts_root.as_slice());
        put_bytes(out, header.logs_bloom.as_slice());
        put_u256(out, header.difficulty);
        put_u64(out, header.number);
        put_u64(out, header.gas_limit);
        put_u64(out, header.gas_used);
        put_u64(out, header.timestamp);
        put_bytes(out, &header.extra_data);
        put_bytes(out, header.mix_hash.as_slice());
        put_bytes(out, header.nonce.as_slice());
        let mut present = out.len();
        let mut optional = |out: &mut Vec<u8>, field: Option<Field<'_>>| {
            match field {
                Some(Field::Number(number)) => put_u64(out, number),
                Some(Field::Word(word)) => put_bytes(out, word.as_slice()),
                None => return put_bytes(out, &[]),
            }
            present = out.len();
        };
        optional(out, header.base_fee_per_gas.map(Field::Number));
        optional(out, header.withdrawals_root.as_ref().map(Field::Word));
        optional(out, header.blob_gas_used.map(Field::Number));
        optional(out, header.excess_blob_gas.map(Field::Number));
        optional(out, header.parent_beacon_block_root.as_ref().map(Field::Word));
        optional(out, header.requests_hash.as_ref().map(Field::Word));
        out.truncate(present);
    });
}

/// An optional field of a header.
enum Field<'a> {
    Number(u64),
    Word(&'a B256),
}

/// Appends the EIP-2718 encoding of a transaction: what its hash and the transactions root are made of.
pub(super) fn put_transaction(tx: &Transaction, out: &mut Vec<u8>) -> Result<(), TransactionFault> {
    match tx.kind {
        0 => put_legacy(tx, out),
        1..=4 => put_typed(tx, out),
        _ => Err(TransactionFault::UnsupportedType),
    }
}

fn put_legacy(tx: &Transaction, out: &mut Vec<u8>) -> Result<(), TransactionFault> {
    let gas_price = need(tx.gas_price, "gasPrice")?;
    let v = need(tx.v, "v")?;
    put_list(out, |out| {
        put_u64(out, tx.nonce);
        put_u128(out, gas_price);
        put_call(tx, out);
        put_u64(out, v);
        put_u256(out, tx.r);
        put_u256(out, tx.s);
    });
    Ok(())
}

fn put_typed(tx: &Transaction, out: &mut Vec<u8>) -> Result<(), TransactionFault> {
    let chain_id = need(tx.chain_id, "chainId")?;
    let parity = need(tx.y_parity.map(u64::from).or(tx.v), "yParity")?;
    // Some nodes leave an empty list out; should it not have been empty, the hash tells.
    let access_list = tx.access_list.as_deref().unwrap_or_default();
    let (tip, fee) = if tx.kind == 1 {
        (None, need(tx.gas_price, "gasPrice")?)
    } else {
        let tip = need(tx.max_priority_fee_per_gas, "maxPriorityFeePerGas")?;
        (Some(tip), need(tx.max_fee_per_gas, "maxFeePerGas")?)
    };
    let blobs = if tx.kind == 3 {
        let fee = need(tx.max_fee_per_blob_gas, "maxFeePerBlobGas")?;
        Some((
            fee,
            need(tx.blob_versioned_hashes.as_deref(), "blobVersionedHashes")?,
        ))
    } else {
        None
    };
    let authorizations = if tx.kind == 4 {
        Some(need(tx.authorization_list.as_deref(), "authorizationList")?)
    } else {
        None
    };
    out.push(tx.kind);
    put_list(out, |out| {
        put_u64(out, chain_id);
        put_u64(out, tx.nonce);
        if let Some(tip) = tip {
            put_u128(out, tip);
        }
        put_u128(out, fee);
        put_call(tx, out);
        put_list(out, |out| {
            access_list
                .iter()
                .for_each(|item| put_access_list_item(item, out))
        });
        if let Some((fee, hashes)) = blobs {
            put_u128(out, fee);
            put_words(hashes, out);
        }
        if let Some(authorizations) = authorizations {
            put_list(out, |out| {
                authorizations
                    .iter()
                    .for_each(|item| put_authorization(item, out))
            });
        }
        put_u64(out, parity);
        put_u256(out, tx.r);
        put_u256(out, tx.s);
    });
    Ok(())
}

fn need<T>(field: Option<T>, name: &'static str) -> Result<T, TransactionFault> {
    field.ok_or(TransactionFault::Missing(name))
}

/// The fields that lie together in every type: gas limit, recipient, value, data.
fn put_call(tx: &Transaction, out: &mut Vec<u8>) {
    put_u64(out, tx.gas);
    put_bytes(out, tx.to.as_ref().map_or(&[], |to| to.as_slice()));
    put_u256(out, tx.value);
    put_bytes(out, &tx.input);
}

fn put_access_list_item(item: &AccessListItem, out: &mut Vec<u8>) {
    put_list(out, |out| {
        put_bytes(out, item.address.as_slice());
        put_words(&item.storage_keys, out);
    });
}

fn put_authorization(authorization: &Authorization, out: &mut Vec<u8>) {
    put_list(out, |out| {
        put_u256(out, authorization.chain_id);
        put_bytes(out, authorization.address.as_slice());
        put_u64(out, authorization.nonce);
        put_u64(out, u64::from(authorization.y_parity));
        put_u256(out, authorization.r);
        put_u256(out, authorization.s);
    });
}

/// Appends the EIP-2718 encoding of a receipt.
pub(super) fn put_receipt(receipt: &Receipt, outcome: Outcome, out: &mut Vec<u8>) {
    let gas = receipt.cumulative_gas_used;
    let logs_len = receipt
        .logs
        .iter()
        .map(|log| headed_len(log_payload_len(log)))
        .sum();
    let outcome_len = match outcome {
        Outcome::Status(_) => 1,
        Outcome::Root(_) => WORD_LEN,
    };
    let gas_len = if gas < 0x80 { 1 } else { 1 + significant_bytes(gas) };
    let len = outcome_len + gas_len + string_len(&receipt.logs_bloom.0.0) + headed_len(logs_len);
    out.reserve(1 + headed_len(len));
    if receipt.kind != 0 {
        out.push(receipt.kind);
    }
    put_length(out, 0xc0, len);
    match outcome {
        Outcome::Status(status) => put_u64(out, u64::from(status)),
        Outcome::Root(root) => put_bytes(out, root.as_slice()),
    }
    put_u64(out, gas);
    put_bytes(out, receipt.logs_bloom.as_slice());
    put_length(out, 0xc0, logs_len);
    receipt.logs.iter().for_each(|log| put_log(log, out));
}

fn put_log(log: &Log, out: &mut Vec<u8>) {
    put_length(out, 0xc0, log_payload_len(log));
    put_bytes(out, log.address.as_slice());
    put_words(&log.topics, out);
    put_bytes(out, &log.data);
}

fn log_payload_len(log: &Log) -> usize {
    string_len(log.address.as_slice()) + headed_len(log.topics.len() * WORD_LEN) + string_len(&log.data)
}

/// Appends a withdrawal (EIP-4895).
pub(super) fn put_withdrawal(withdrawal: &Withdrawal, out: &mut Vec<u8>) {
    put_list(out, |out| {
        put_u64(out, withdrawal.index);
        put_u64(out, withdrawal.validator_index);
        put_bytes(out, withdrawal.address.as_slice());
        put_u64(out, withdrawal.amount_gwei);
    });
}

/// Bytes of a word with its header.
const WORD_LEN: usize = 33;

fn put_words(words: &[B256], out: &mut Vec<u8>) {
    put_length(out, 0xc0, words.len() * WORD_LEN);
    words.iter().for_each(|word| put_bytes(out, word.as_slice()));
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    put_number(out, &number.to_be_bytes(), significant_bytes(number));
}

fn put_u128(out: &mut Vec<u8>, number: u128) {
    let zeros = number.leading_zeros() as usize / 8;
    put_number(out, &number.to_be_bytes(), 16 - zeros);
}

fn put_u256(out: &mut Vec<u8>, number: U256) {
    put_number(out, &number.to_be_bytes::<32>(), number.byte_len());
}

/// Bytes of a number without leading zeros.
const fn significant_bytes(number: u64) -> usize {
    8 - number.leading_zeros() as usize / 8
}

/// A number is its big-endian bytes without leading zeros, `significant` of them; zero is the empty string.
fn put_number(out: &mut Vec<u8>, big_endian: &[u8], significant: usize) {
    let zeros = big_endian.len() - significant;
    put_bytes(out, big_endian.get(zeros..).unwrap_or(&[]));
}

/// An RLP string.
#[inline]
pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes {
        [byte] if *byte < 0x80 => {}
        _ => put_length(out, 0x80, bytes.len()),
    }
    out.extend_from_slice(bytes);
}

/// Bytes of an RLP string with its header.
#[inline]
fn string_len(bytes: &[u8]) -> usize {
    match bytes {
        [byte] if *byte < 0x80 => 1,
        _ => headed_len(bytes.len()),
    }
}

/// Bytes of an RLP list, or of a string of more than one byte, with its header.
#[inline]
const fn headed_len(payload: usize) -> usize {
    match payload {
        ..=55 => 1 + payload,
        _ => 1 + significant_bytes(payload as u64) + payload,
    }
}

/// An RLP list whose payload `fill` appends.
fn put_list(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    fill(out);
    let payload_end = out.len();
    put_length(out, 0xc0, payload_end - start);
    let header_len = out.len() - payload_end;
    if let Some(list) = out.get_mut(start..) {
        list.rotate_right(header_len);
    }
}

/// The header of a string (`base` 0x80) or a list (`base` 0xc0).
#[inline]
pub(super) fn put_length(out: &mut Vec<u8>, base: u8, length: usize) {
    match length {
        ..=55 => out.push(base + length as u8),
        56..=0xff => out.extend_from_slice(&[base + 56, length as u8]),
        _ => put_long_length(out, base, length),
    }
}

fn put_long_length(out: &mut Vec<u8>, base: u8, length: usize) {
    let digits = significant_bytes(length as u64);
    out.push(base + 55 + digits as u8);
    let bytes = length.to_be_bytes();
    out.extend_from_slice(bytes.get(bytes.len() - digits..).unwrap_or(&[]));
}

#[cfg(test)]
mod tests {
    use alloy_rlp::Encodable;
    use proptest::prelude::*;

    use super::*;

    fn header(optional: usize) -> (Header, alloy_consensus::Header) {
        let ours = Header {
            parent_hash: B256::repeat_byte(1),
            number: 7,
            difficulty: U256::from(1u64 << 40),
            gas_limit: 30_000_000,
            extra_data: vec![9; 32].into(),
            base_fee_per_gas: (optional >= 1).then_some(7),
            withdrawals_root: (optional >= 2).then_some(B256::repeat_byte(2)),
            blob_gas_used: (optional >= 3).then_some(0),
            excess_blob_gas: (optional >= 4).then_some(131_072),
            parent_beacon_block_root: (optional >= 5).then_some(B256::repeat_byte(3)),
            requests_hash: (optional >= 6).then_some(B256::repeat_byte(4)),
            ..Header::default()
        };
        let theirs = alloy_consensus::Header {
            parent_hash: ours.parent_hash,
            state_root: ours.state_root,
            ommers_hash: ours.ommers_hash,
            number: ours.number,
            difficulty: ours.difficulty,
            gas_limit: ours.gas_limit,
            extra_data: ours.extra_data.clone(),
            base_fee_per_gas: ours.base_fee_per_gas,
            withdrawals_root: ours.withdrawals_root,
            blob_gas_used: ours.blob_gas_used,
            excess_blob_gas: ours.excess_blob_gas,
            parent_beacon_block_root: ours.parent_beacon_block_root,
            requests_hash: ours.requests_hash,
            transactions_root: ours.transactions_root,
            receipts_root: ours.receipts_root,
            ..alloy_consensus::Header::default()
        };
        (ours, theirs)
    }

    #[test]
    fn headers_of_every_fork_hash_as_alloy_does() {
        for optional in 0..=6 {
            let (ours, theirs) = header(optional);
            assert_eq!(
                header_hash(&ours, &mut Vec::new()),
                theirs.hash_slow(),
                "{optional} optional fields"
            );
        }
    }

    #[test]
    fn an_absent_field_before_a_present_one_is_an_empty_string() {
        let (mut ours, _) = header(2);
        let mut full = Vec::new();
        put_header(&ours, &mut full);
        ours.base_fee_per_gas = None;
        let mut gap = Vec::new();
        put_header(&ours, &mut gap);
        // A base fee of 7 is one byte, and so is the empty string in its place.
        assert_eq!(full.len(), gap.len());
        let changed: Vec<_> = full.iter().zip(&gap).filter(|(a, b)| a != b).collect();
        assert_eq!(changed, [(&7, &0x80)]);
    }

    proptest! {
        #[test]
        fn strings_and_numbers_are_written_as_alloy_writes_them(
            bytes in proptest::collection::vec(any::<u8>(), 0..700),
            number in any::<u128>(),
            shift in 0u32..128,
        ) {
            let number = number >> shift;
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            put_bytes(&mut ours, &bytes);
            put_u128(&mut ours, number);
            put_u256(&mut ours, U256::from(number));
            bytes.as_slice().encode(&mut theirs);
            number.encode(&mut theirs);
            U256::from(number).encode(&mut theirs);
            prop_assert_eq!(&ours, &theirs);

            let mut list = Vec::new();
            put_list(&mut list, |out| out.extend_from_slice(&ours));
            let mut expected = Vec::new();
            alloy_rlp::Header { list: true, payload_length: theirs.len() }.encode(&mut expected);
            expected.extend_from_slice(&theirs);
            prop_assert_eq!(list, expected);
        }
    }
}
