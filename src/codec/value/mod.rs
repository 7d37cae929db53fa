//! The one door to `bincode`: values that are neither lists nor rows of a unit's own format.
//!
//! bincode 2.0.1 is pinned and unmaintained; golden bytes in `tests` fix what it writes. All
//! integers are varints, options one byte, lists a length and their items. Keys never pass through here.

use bincode::config::{Configuration, standard};
use bincode::{BorrowDecode, Encode};

mod days;
mod fees;
mod frame;
mod native;
mod record;
#[cfg(test)]
mod tests;
mod transaction;

pub use days::{DayRow, decode_new_addresses};
pub use fees::{BlockFees, FeeRow, Paid, blob_gas_used, blob_price};
pub use frame::{
    CallOf, FRAME_UNIT_BYTES_MAX, FrameRow, FrameSlice, TopSlice, decode_frame_place, encode_frame,
};
pub use native::{AccountRow, Funded, FundingKind, FundingRow, SupplyRow};
pub use record::{
    Checkpoint, Creation, Finality, Identity, NONCE_UNKNOWN, NativeFault, NativeFaultReason, NativeState,
    Tail, Undo, Unverified,
};
pub use transaction::decode_bincode_transaction;

use super::Corrupt;
use crate::model::{Address, B64, B256, Block, Bloom, Bytes, Header, U256, Withdrawal};

const CONFIG: Configuration = standard();

/// Encodes a value. The types here hold nothing that bincode can refuse.
fn encode<T: Encode>(value: &T) -> Vec<u8> {
    bincode::encode_to_vec(value, CONFIG).unwrap_or_default()
}

/// Appends an encoded value, without the pass that finds its length first.
fn encode_into<T: Encode>(value: &T, out: &mut Vec<u8>) {
    let written = bincode::encode_into_std_write(value, out, CONFIG);
    debug_assert!(written.is_ok(), "a vector takes every value");
}

/// Reads a value that fills `bytes`.
///
/// bincode reserves what a stated length asks for before it looks whether so much is there, so that a damaged length
/// could take all memory. What may be reserved is bounded by what lies there: no value takes 32 times its bytes.
fn decode<'a, T: BorrowDecode<'a, ()>>(bytes: &'a [u8], what: &'static str) -> Result<T, Corrupt> {
    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    let read = match bytes.len() {
        0..=KIB => bincode::borrow_decode_from_slice(bytes, CONFIG.with_limit::<{ 32 * KIB }>()),
        length if length <= MIB => {
            bincode::borrow_decode_from_slice(bytes, CONFIG.with_limit::<{ 32 * MIB }>())
        }
        _ => bincode::borrow_decode_from_slice(bytes, CONFIG.with_limit::<{ 4096 * MIB }>()),
    };
    match read {
        Ok((value, read)) if read == bytes.len() => Ok(value),
        _ => Err(Corrupt(what)),
    }
}

/// A 256-bit number without its leading zero bytes.
#[derive(Encode, BorrowDecode, Clone, Copy)]
struct Trimmed<'a>(&'a [u8]);

fn trim(bytes: &[u8; 32]) -> Trimmed<'_> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    Trimmed(bytes.get(zeros..).unwrap_or(&[]))
}

impl Trimmed<'_> {
    fn number(self) -> Result<U256, Corrupt> {
        U256::try_from_be_slice(self.0).ok_or(Corrupt("256-bit number"))
    }
}
#[derive(Encode, BorrowDecode)]
struct HeaderValue<'a> {
    parent_hash: [u8; 32],
    ommers_hash: [u8; 32],
    beneficiary: [u8; 20],
    state_root: [u8; 32],
    transactions_root: [u8; 32],
    receipts_root: [u8; 32],
    logs_bloom: &'a [u8],
    difficulty: Trimmed<'a>,
    number: u64,
    gas_limit: u64,
    gas_used: u64,
    timestamp: u64,
    extra_data: &'a [u8],
    mix_hash: [u8; 32],
    nonce: [u8; 8],
    base_fee_per_gas: Option<u64>,
    withdrawals_root: Option<[u8; 32]>,
    blob_gas_used: Option<u64>,
    excess_blob_gas: Option<u64>,
    parent_beacon_block_root: Option<[u8; 32]>,
    requests_hash: Option<[u8; 32]>,
}

/// A bloom is stored only where it is not empty: most uncles' and early blocks' are.
fn bloom_bytes(bloom: &Bloom) -> &[u8] {
    if bloom.is_zero() { &[] } else { bloom.as_slice() }
}

fn read_bloom(bytes: &[u8]) -> Result<Bloom, Corrupt> {
    if bytes.is_empty() {
        Ok(Bloom::ZERO)
    } else {
        Bloom::try_from(bytes).map_err(|_| Corrupt("bloom"))
    }
}

fn header_value<'a>(header: &'a Header, difficulty: &'a [u8; 32]) -> HeaderValue<'a> {
    HeaderValue {
        parent_hash: header.parent_hash.0,
        ommers_hash: header.ommers_hash.0,
        beneficiary: header.beneficiary.into_array(),
        state_root: header.state_root.0,
        transactions_root: header.transactions_root.0,
        receipts_root: header.receipts_root.0,
        logs_bloom: bloom_bytes(&header.logs_bloom),
        difficulty: trim(difficulty),
        number: header.number,
        gas_limit: header.gas_limit,
        gas_used: header.gas_used,
        timestamp: header.timestamp,
        extra_data: &header.extra_data,
        mix_hash: header.mix_hash.0,
        nonce: header.nonce.0,
        base_fee_per_gas: header.base_fee_per_gas,
        withdrawals_root: header.withdrawals_root.map(|hash| hash.0),
        blob_gas_used: header.blob_gas_used,
        excess_blob_gas: header.excess_blob_gas,
        parent_beacon_block_root: header.parent_beacon_block_root.map(|hash| hash.0),
        requests_hash: header.requests_hash.map(|hash| hash.0),
    }
}

impl HeaderValue<'_> {
    fn header(&self) -> Result<Header, Corrupt> {
        Ok(Header {
            parent_hash: B256::from(self.parent_hash),
            ommers_hash: B256::from(self.ommers_hash),
            beneficiary: Address::from(self.beneficiary),
            state_root: B256::from(self.state_root),
            transactions_root: B256::from(self.transactions_root),
            receipts_root: B256::from(self.receipts_root),
            logs_bloom: read_bloom(self.logs_bloom)?,
            difficulty: self.difficulty.number()?,
            number: self.number,
            gas_limit: self.gas_limit,
            gas_used: self.gas_used,
            timestamp: self.timestamp,
            extra_data: Bytes::copy_from_slice(self.extra_data),
            mix_hash: B256::from(self.mix_hash),
            nonce: B64::from(self.nonce),
            base_fee_per_gas: self.base_fee_per_gas,
            withdrawals_root: self.withdrawals_root.map(B256::from),
            blob_gas_used: self.blob_gas_used,
            excess_blob_gas: self.excess_blob_gas,
            parent_beacon_block_root: self.parent_beacon_block_root.map(B256::from),
            requests_hash: self.requests_hash.map(B256::from),
        })
    }
}

/// Index, validator, address, amount.
type WithdrawalValue = (u64, u64, [u8; 20], u64);

#[derive(Encode, BorrowDecode)]
struct BlockValue<'a> {
    hash: [u8; 32],
    header: HeaderValue<'a>,
    size: Option<u64>,
    total_difficulty: Option<Trimmed<'a>>,
    uncles: Vec<[u8; 32]>,
    uncle_headers: Vec<HeaderValue<'a>>,
    withdrawals: Option<Vec<WithdrawalValue>>,
    extra: Option<&'a str>,
}

/// A block's row: all but its transactions.
#[must_use]
pub fn encode_block(block: &Block) -> Vec<u8> {
    let difficulty = block.header.difficulty.to_be_bytes::<32>();
    let total = block.total_difficulty.map(|total| total.to_be_bytes::<32>());
    let uncle_difficulties: Vec<[u8; 32]> = block
        .uncle_headers
        .iter()
        .map(|uncle| uncle.difficulty.to_be_bytes::<32>())
        .collect();
    encode(&BlockValue {
        hash: block.hash.0,
        header: header_value(&block.header, &difficulty),
        size: block.size,
        total_difficulty: total.as_ref().map(trim),
        uncles: block.uncles.iter().map(|uncle| uncle.0).collect(),
        uncle_headers: block
            .uncle_headers
            .iter()
            .zip(&uncle_difficulties)
            .map(|(uncle, difficulty)| header_value(uncle, difficulty))
            .collect(),
        withdrawals: block.withdrawals.as_ref().map(|list| {
            list.iter()
                .map(|w| (w.index, w.validator_index, w.address.into_array(), w.amount_gwei))
                .collect()
        }),
        extra: block.extra.as_deref(),
    })
}

/// Reads a block's row; `transactions` is empty.
pub fn decode_block(bytes: &[u8]) -> Result<Block, Corrupt> {
    let value: BlockValue<'_> = decode(bytes, "block")?;
    Ok(Block {
        hash: B256::from(value.hash),
        header: value.header.header()?,
        size: value.size,
        total_difficulty: value.total_difficulty.map(Trimmed::number).transpose()?,
        transactions: Vec::new(),
        uncles: value.uncles.into_iter().map(B256::from).collect(),
        uncle_headers: value
            .uncle_headers
            .iter()
            .map(HeaderValue::header)
            .collect::<Result<_, _>>()?,
        withdrawals: value.withdrawals.map(|list| {
            list.into_iter()
                .map(|(index, validator_index, address, amount_gwei)| Withdrawal {
                    index,
                    validator_index,
                    address: Address::from(address),
                    amount_gwei,
                })
                .collect()
        }),
        extra: value.extra.map(str::to_owned),
    })
}
