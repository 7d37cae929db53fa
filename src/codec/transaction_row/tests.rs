//! Rows against what was written, and against damage.

use super::super::bytes::{Reader, put_varint};
use super::*;
use crate::model::Authorization;

/// An integer of any length.
fn number(random: &mut fastrand::Rng) -> u64 {
    random.u64(..) >> random.u32(..64)
}

fn wide(random: &mut fastrand::Rng) -> u128 {
    random.u128(..) >> random.u32(..128)
}

fn amount(random: &mut fastrand::Rng) -> U256 {
    U256::from_limbs([(); 4].map(|()| random.u64(..))) >> random.usize(..256)
}

fn some<T>(random: &mut fastrand::Rng, make: impl FnOnce(&mut fastrand::Rng) -> T) -> Option<T> {
    random.bool().then(|| make(random))
}

fn address(random: &mut fastrand::Rng) -> Address {
    Address::repeat_byte(random.u8(..))
}

fn words(random: &mut fastrand::Rng) -> Vec<B256> {
    vec![B256::repeat_byte(7); random.usize(..4)]
}

fn access(random: &mut fastrand::Rng) -> Vec<AccessListItem> {
    let item = |random: &mut fastrand::Rng| AccessListItem {
        address: address(random),
        storage_keys: words(random),
    };
    (0..random.usize(..3)).map(|_| item(random)).collect()
}

fn authorizations(random: &mut fastrand::Rng) -> Vec<Authorization> {
    let item = |random: &mut fastrand::Rng| Authorization {
        chain_id: amount(random),
        address: address(random),
        nonce: number(random),
        y_parity: random.u8(..),
        r: amount(random),
        s: amount(random),
    };
    (0..random.usize(..3)).map(|_| item(random)).collect()
}

/// Call data: a selector and words, some with zeros at either end, and a rest; or init code.
fn input(random: &mut fastrand::Rng) -> Vec<u8> {
    let mut data: Vec<u8> = (0..random.usize(..9)).map(|_| random.u8(..)).collect();
    for _ in 0..random.usize(..12) {
        let mut word = [0; 32];
        let (from, to) = (random.usize(..33), random.usize(..33));
        for byte in word.get_mut(from..to).into_iter().flatten() {
            *byte = random.u8(..);
        }
        data.extend_from_slice(&word);
    }
    data.extend((0..random.usize(..40)).map(|_| random.u8(..)));
    data.truncate(random.usize(..700));
    data
}

pub(in crate::codec) fn transaction(random: &mut fastrand::Rng) -> Transaction {
    let plain = Transaction {
        kind: 0,
        nonce: number(random),
        from: address(random),
        to: some(random, address),
        value: amount(random),
        gas: number(random),
        gas_price: some(random, wide),
        chain_id: some(random, number),
        v: some(random, number),
        r: amount(random),
        s: amount(random),
        input: input(random).into(),
        ..Transaction::default()
    };
    if random.u8(..) < 80 {
        return plain;
    }
    Transaction {
        kind: random.u8(..),
        max_fee_per_gas: some(random, wide),
        max_priority_fee_per_gas: some(random, wide),
        max_fee_per_blob_gas: some(random, wide),
        access_list: some(random, access),
        blob_versioned_hashes: some(random, words),
        authorization_list: some(random, authorizations),
        y_parity: some(random, |random| random.u8(..)),
        extra: some(random, |_| "{\"a\":1}".to_owned()),
        ..plain
    }
}

pub(in crate::codec) fn receipt(random: &mut fastrand::Rng) -> Receipt {
    Receipt {
        kind: random.u8(..),
        status: some(random, |random| random.bool()),
        root: some(random, |_| B256::repeat_byte(3)),
        cumulative_gas_used: number(random),
        gas_used: number(random),
        effective_gas_price: some(random, wide),
        contract_address: some(random, address),
        blob_gas_used: some(random, number),
        blob_gas_price: some(random, wide),
        extra: some(random, |_| "{\"l1Fee\":\"0x1f\"}".to_owned()),
        ..Receipt::default()
    }
}

#[test]
fn rows_are_read_as_they_were_written() {
    let mut random = fastrand::Rng::with_seed(1);
    let (mut room, mut trimmed) = (Vec::new(), 0);
    for _ in 0..4_000 {
        let (mut sent, mut got) = (transaction(&mut random), receipt(&mut random));
        if random.bool() {
            got.kind = sent.kind;
            got.effective_gas_price = sent.gas_price;
        }
        if let (Some(chain), true) = (sent.chain_id, random.bool()) {
            sent.v = (chain % (1 << 60))
                .checked_mul(2)
                .map(|twice| twice + 35 + u64::from(random.bool()));
        } else if random.bool() {
            sent.v = Some([0, 1, 27, 28][random.usize(..4)]);
            sent.y_parity = sent.y_parity.map(|_| random.u8(..2));
        }
        let first = number(&mut random) as u32 >> 1;
        let logs = first..first + random.u32(..300);
        let mut bytes = Vec::new();
        encode_transaction(&sent, &got, &logs, &mut bytes);
        let record = signature(&sent);

        let slice = TransactionSlice::decode(&bytes).unwrap();
        assert_eq!(slice.fees, FeeRow::new(&sent, &got));
        let told = (
            slice.kind,
            slice.nonce,
            slice.from,
            slice.to,
            slice.value,
            slice.gas,
        );
        assert_eq!(
            told,
            (sent.kind, sent.nonce, sent.from, sent.to, sent.value, sent.gas)
        );
        let told = (slice.status, slice.cumulative_gas_used, slice.contract_address);
        assert_eq!(told, (got.status, got.cumulative_gas_used, got.contract_address));
        assert_eq!(slice.input.bytes(&mut room).unwrap(), &sent.input[..]);
        assert_eq!(
            (slice.input.len(), slice.input.is_empty()),
            (sent.input.len(), sent.input.is_empty())
        );
        trimmed += usize::from(slice.input.is_trimmed);
        let call = slice.call(&mut room).unwrap();
        assert_eq!((call.from, call.to, call.value), (sent.from, sent.to, sent.value));

        let mut row = decode_transaction(&bytes).unwrap();
        (row.transaction.r, row.transaction.s) = signature_of(&record);
        assert_eq!((row.transaction, row.receipt, row.logs), (sent, got, logs));

        // What ends early or goes on is no row.
        let cut = random.usize(..bytes.len());
        assert!(decode_transaction(&bytes[..cut]).is_err());
        bytes.push(0);
        assert!(decode_transaction(&bytes).is_err());
    }
    assert!(trimmed > 400, "{trimmed}");
}

#[test]
fn a_transfer_of_a_token_is_short() {
    let mut input = vec![0xa9, 0x05, 0x9c, 0xbb];
    input.extend([0; 12]);
    input.extend([7; 20]);
    input.extend([0; 26]);
    input.extend([9; 6]);
    let sent = Transaction {
        kind: 2,
        nonce: 400,
        to: Some(Address::repeat_byte(1)),
        gas: 60_000,
        gas_price: Some(12_000_000_000),
        max_fee_per_gas: Some(20_000_000_000),
        max_priority_fee_per_gas: Some(1_000_000_000),
        access_list: Some(Vec::new()),
        chain_id: Some(1),
        v: Some(1),
        y_parity: Some(1),
        input: input.into(),
        ..Transaction::default()
    };
    let got = Receipt {
        kind: 2,
        status: Some(true),
        cumulative_gas_used: 9_000_000,
        gas_used: 45_000,
        effective_gas_price: Some(12_000_000_000),
        ..Receipt::default()
    };
    let mut bytes = Vec::new();
    encode_transaction(&sent, &got, &(120..121), &mut bytes);
    // Two accounts, the data's 32 bytes that are not zeros with two tags and the selector; 37 for all else.
    assert_eq!(bytes.len(), 40 + 32 + 37, "{bytes:02x?}");
}

#[test]
fn arbitrary_bytes_never_panic() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut room = Vec::new();
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(..200))
            .map(|_| {
                if random.bool() {
                    random.u8(..3)
                } else {
                    random.u8(..)
                }
            })
            .collect();
        if let Ok(slice) = TransactionSlice::decode(&bytes) {
            let _ = slice.call(&mut room);
        }
        let _ = decode_transaction(&bytes);
    }
}

#[test]
fn call_data_that_claims_to_be_long_takes_no_memory() {
    for len in [5u64, 1 << 20, u64::MAX >> 1] {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, len << 1 | 1);
        bytes.extend([0; 60]);
        let mut room = Vec::new();
        let read = CallData::read(Reader::new(&bytes, ROW));
        assert!(
            read.and_then(|data| data.bytes(&mut room).map(<[u8]>::len))
                .is_err()
        );
        assert!(room.capacity() < 1 << 12);
    }
}
