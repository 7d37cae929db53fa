//! Keys and values of the store: any bytes are decoded or refused, and what decodes is written as bytes that decode to
//! the same. The first byte chooses the decoder.

use std::fmt::Debug;

use quarry::codec::bytes::{Reader, read_word, read_words};
use quarry::codec::imported::contracts::{
    decode_facts, decode_names, decode_whole_text, encode_facts, encode_names,
};
use quarry::codec::imported::prices::{decode_price, encode_price, price_time};
use quarry::codec::imported::tokens::{decode_token, encode_token};
use quarry::codec::imported::{decode_record, encode_record};
use quarry::codec::keys::{Term, decode_account_at, decode_day, decode_emitter_run, decode_number};
use quarry::codec::observed::{
    Refreshed, decode_balance, decode_feed, decode_held_key, decode_metadata, decode_order_key,
    decode_verdict, encode_balance, encode_feed, encode_metadata, encode_verdict,
};
use quarry::codec::tokens::{
    TokenState, decode_holder, decode_holder_count, decode_holding, decode_nft_id, read_supply,
};
use quarry::codec::transaction_row::{TransactionSlice, decode_transaction, encode_transaction};
use quarry::codec::value::{
    AccountRow, CallOf, Checkpoint, Creation, DayRow, FeeRow, Finality, FrameRow, FundingRow, Identity,
    SupplyRow, Tail, Undo, decode_bincode_transaction, decode_block, decode_frame_place,
    decode_new_addresses, encode_block, encode_frame,
};
use quarry::codec::{Corrupt, amount};
use quarry::model::{Address, U256};

/// How many decoders there are.
pub(crate) const KINDS: u8 = 34;

/// What decodes must survive being written and read again.
fn kept<T: PartialEq + Debug>(
    bytes: &[u8],
    decode: impl Fn(&[u8]) -> Result<T, Corrupt>,
    encode: impl Fn(&T) -> Vec<u8>,
) {
    if let Ok(value) = decode(bytes) {
        let again = encode(&value);
        assert_eq!(decode(&again).as_ref(), Ok(&value));
    }
}

fn keys(bytes: &[u8]) {
    if let Ok((term, last)) = Term::decode(bytes) {
        assert_eq!(term.key(last), bytes);
    }
    let _ = (decode_number(bytes), decode_emitter_run(bytes), decode_day(bytes));
    let _ = (
        decode_account_at(bytes),
        decode_order_key(bytes),
        decode_held_key(bytes),
    );
    let _ = (
        decode_holding(bytes),
        decode_holder(bytes),
        decode_holder_count(bytes),
    );
    let _ = (decode_nft_id(bytes), price_time(bytes));
}

fn transaction(bytes: &[u8]) {
    let whole = decode_transaction(bytes);
    let slice = TransactionSlice::decode(bytes);
    let mut room = Vec::new();
    if let Ok(slice) = &slice {
        let _ = slice.call(&mut room);
    }
    if let Ok(row) = whole {
        let mut again = Vec::new();
        encode_transaction(&row.transaction, &row.receipt, &row.logs, &mut again);
        // What can be told shortly need not have been; what was written stays as it is.
        let read = decode_transaction(&again).expect("what was written");
        assert_eq!(read, row);
        let slice = slice.expect("what the whole row is read from");
        assert_eq!(slice.value, row.transaction.value);
        assert_eq!(slice.fees, FeeRow::new(&row.transaction, &row.receipt));
        let call = slice.call(&mut room).expect("what the whole row is read from");
        assert_eq!(call.input, &row.transaction.input[..]);
    }
    // Of stores that are brought up to this layout.
    let _ = decode_bincode_transaction(bytes);
}

fn frame(bytes: &[u8]) {
    let Ok(row) = FrameRow::decode(bytes) else { return };
    assert_eq!(decode_frame_place(bytes), Ok(row.transaction_index()));
    // The call that it may leave to its transaction.
    let to = match &row {
        FrameRow::OfTransaction(top) if top.kind.is_creation() => None,
        _ => Some(Address::ZERO),
    };
    let call = CallOf {
        from: Address::ZERO,
        to,
        value: U256::ZERO,
        input: &[],
    };
    let frame = row.with(&call);
    let mut again = Vec::new();
    encode_frame(&frame, Some(&call), &mut again);
    let read = FrameRow::decode(&again).expect("what was written").with(&call);
    assert_eq!(read.transaction_index, frame.transaction_index);
    assert_eq!(read.into_frame(), frame.into_frame());
}

fn words(bytes: &[u8]) {
    let mut reader = Reader::new(bytes, "words");
    let mut word = [0; 32];
    while read_word(&mut reader, &mut word).is_ok() {
        std::hint::black_box(&word);
        if reader.rest().is_empty() {
            break;
        }
    }
    let mut out = Vec::new();
    for count in [0, 1, 2, 33, usize::MAX / 32] {
        out.clear();
        let _ = read_words(&mut Reader::new(bytes, "words"), count, &mut out);
    }
    let _ = (
        amount::read_amount(bytes),
        read_supply(&mut Reader::new(bytes, "supply")),
    );
    let _ = amount::read_sized_amount(&mut Reader::new(bytes, "amount"));
}

/// Decodes `data`.
pub(crate) fn run(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % KINDS {
        0..=2 => keys(bytes),
        3 => words(bytes),
        4..=6 => transaction(bytes),
        7 | 8 => frame(bytes),
        9 | 10 => kept(bytes, decode_block, encode_block),
        11 => kept(bytes, DayRow::decode, DayRow::encode),
        12 => kept(bytes, AccountRow::decode, AccountRow::encode),
        13 => kept(bytes, FundingRow::decode, FundingRow::encode),
        14 => kept(bytes, SupplyRow::decode, SupplyRow::encode),
        15 => kept(bytes, Identity::decode, Identity::encode),
        16 => kept(bytes, Checkpoint::decode, Checkpoint::encode),
        17 => kept(bytes, Finality::decode, Finality::encode),
        18 => kept(bytes, Creation::decode, Creation::encode),
        19 => kept(bytes, Undo::decode, Undo::encode),
        20 => kept(bytes, Tail::decode, Tail::encode),
        21 => kept(bytes, TokenState::decode, TokenState::encode),
        22 => kept(bytes, Refreshed::decode, Refreshed::encode),
        23 => kept(bytes, decode_feed, encode_feed),
        24 => kept(bytes, decode_metadata, encode_metadata),
        25 => kept(bytes, decode_verdict, encode_verdict),
        26 => kept(bytes, decode_balance, |&(balance, block)| {
            encode_balance(balance, block)
        }),
        27 => kept(bytes, decode_record, encode_record),
        28 => kept(bytes, decode_price, |&price| encode_price(price)),
        29 => kept(bytes, decode_token, encode_token),
        30 => kept(bytes, decode_facts, encode_facts),
        31 => kept(bytes, decode_names, encode_names),
        _ => {
            let _ = (decode_whole_text(bytes), decode_new_addresses(bytes));
        }
    }
}
