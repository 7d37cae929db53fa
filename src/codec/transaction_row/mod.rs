//! Rows of transactions with their receipts: what neither arrays (hash, signature) nor logs say of them.
//!
//! ```text
//! | nonce varint | sender 20 bytes | cumulative gas * 2 + parity varint | first log varint | gas used varint | logs varint | gas varint
//! | shape u16 | rare varint (if any) | type u8 | chain id varint? | v varint? | parity u8?
//! | gas price varint? | effective price varint? | most per gas varint? | most above the base fee varint? | most per blob gas varint?
//! | created 20 bytes? | root 32 bytes? | receipt's type u8? | blobs? | authorizations? | blob gas varint? | blob price varint?
//! | other fields text? | receipt's other fields text? | value word | access list? | recipient 20 bytes?
//! | length of the call data * 2 + trimmed varint | call data |
//! ```
//!
//! `shape` and `rare` (little endian) say which of the fields with a `?` are there. What differs from row to row comes first, and what calls of
//! one contract have in common last and in one piece, for that is how packing finds it. Signatures are 64 bytes that no packing makes
//! smaller, and few questions want them: they lie in an array by ordinal. Call data is words behind a selector: words are stored
//! without their zeros, as those of logs are, where that makes them shorter.
//!
//! Why so: `docs/decisions/0049-transaction-rows.md`.

use std::ops::Range;

use super::Corrupt;
use super::value::{CallOf, FeeRow, blob_gas_used};
use crate::model::{AccessListItem, Address, B256, Bytes, Receipt, Transaction, U256, created_contract};
use read::{Stored, access, authorization, listed};

mod call_data;
mod read;
mod shape;
#[cfg(test)]
pub(super) mod tests;
mod write;

pub use call_data::CallData;
pub use write::encode_transaction;

/// Bytes of a signature: r and s.
pub const SIGNATURE_BYTES: usize = 64;
/// A unit of transactions. Lists read neighbours of a block seldom, so a unit is little more than one
/// disk block.
pub const TRANSACTION_UNIT_BYTES_MAX: usize = 4000;

const ROW: &str = "transaction";

/// A transaction's signature as its array has it: r and s, 32 bytes each.
#[must_use]
pub fn signature(transaction: &Transaction) -> [u8; SIGNATURE_BYTES] {
    let mut record = [0; SIGNATURE_BYTES];
    let (r, s) = record.split_at_mut(SIGNATURE_BYTES / 2);
    r.copy_from_slice(&transaction.r.to_be_bytes::<32>());
    s.copy_from_slice(&transaction.s.to_be_bytes::<32>());
    record
}

/// r and s of a record that [`signature`] made.
#[must_use]
pub fn signature_of(record: &[u8; SIGNATURE_BYTES]) -> (U256, U256) {
    let (r, s) = record.split_at(SIGNATURE_BYTES / 2);
    (U256::from_be_slice(r), U256::from_be_slice(s))
}

/// A transaction's row as read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionRow {
    /// The transaction, its hash and signature left zero.
    pub transaction: Transaction,
    /// The receipt, its hash, logs and bloom left empty.
    pub receipt: Receipt,
    /// Places in the block of its logs.
    pub logs: Range<u32>,
}

/// Reads a transaction's row.
pub fn decode_transaction(bytes: &[u8]) -> Result<TransactionRow, Corrupt> {
    let row = Stored::read(bytes)?;
    let access_list = row.access_list.map(|list| {
        listed(list, |row| {
            let (address, keys) = access(row)?;
            Ok(AccessListItem {
                address,
                storage_keys: keys.iter().map(B256::from).collect(),
            })
        })
    });
    let mut room = Vec::new();
    let input = Bytes::copy_from_slice(row.input.bytes(&mut room)?);
    Ok(TransactionRow {
        transaction: Transaction {
            hash: B256::ZERO,
            kind: row.kind,
            nonce: row.nonce,
            from: row.from,
            to: row.to,
            value: row.value,
            gas: row.gas,
            gas_price: row.gas_price,
            max_fee_per_gas: row.max_fee_per_gas,
            max_priority_fee_per_gas: row.max_priority_fee_per_gas,
            max_fee_per_blob_gas: row.max_fee_per_blob_gas,
            access_list: access_list.transpose()?,
            blob_versioned_hashes: row.blobs.map(|hashes| hashes.iter().map(B256::from).collect()),
            authorization_list: row
                .authorizations
                .map(|list| listed(list, authorization))
                .transpose()?,
            input,
            chain_id: row.chain_id,
            v: row.v,
            r: U256::ZERO,
            s: U256::ZERO,
            y_parity: row.y_parity,
            extra: row.extra.map(str::to_owned),
        },
        receipt: Receipt {
            kind: row.receipt_kind,
            status: row.status,
            root: row.root,
            cumulative_gas_used: row.cumulative_gas_used,
            gas_used: row.gas_used,
            effective_gas_price: row.effective_gas_price,
            contract_address: row.contract_address,
            blob_gas_used: row.blob_gas_used,
            blob_gas_price: row.blob_gas_price,
            extra: row.receipt_extra.map(str::to_owned),
            ..Receipt::default()
        },
        logs: row.logs,
    })
}

/// A transaction's row as lists need it: what is long is where it is stored, access lists are passed over.
#[derive(Clone, Copy, Debug)]
pub struct TransactionSlice<'a> {
    /// EIP-2718 type.
    pub kind: u8,
    /// What the receipt says became of it; `None` before Byzantium.
    pub status: Option<bool>,
    /// Sender's nonce.
    pub nonce: u64,
    /// Sender.
    pub from: Address,
    /// Recipient.
    pub to: Option<Address>,
    /// Value in wei.
    pub value: U256,
    /// Gas limit.
    pub gas: u64,
    /// Gas used by the block up to and with this transaction.
    pub cumulative_gas_used: u64,
    /// Gas used and what it cost.
    pub fees: FeeRow,
    /// The contract that the receipt names.
    pub contract_address: Option<Address>,
    /// Call data or init code.
    pub input: CallData<'a>,
}

impl<'a> TransactionSlice<'a> {
    /// Reads a transaction's row.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Corrupt> {
        let row = Stored::read(bytes)?;
        Ok(Self {
            kind: row.kind,
            status: row.status,
            nonce: row.nonce,
            from: row.from,
            to: row.to,
            value: row.value,
            gas: row.gas,
            cumulative_gas_used: row.cumulative_gas_used,
            fees: FeeRow {
                gas_used: row.gas_used,
                effective_gas_price: row.effective_gas_price,
                gas_price: row.gas_price,
                max_fee_per_gas: row.max_fee_per_gas,
                max_priority_fee_per_gas: row.max_priority_fee_per_gas,
                blob_gas_used: blob_gas_used(row.blob_gas_used, row.blobs.map_or(0, <[_]>::len)),
                blob_gas_price: row.blob_gas_price,
                ..FeeRow::default()
            }
            .with_extras(row.kind, row.extra, row.receipt_extra),
            contract_address: row.contract_address,
            input: row.input,
        })
    }

    /// The contract that it made, where it did not fail.
    #[must_use]
    pub fn created(&self) -> Option<Address> {
        created_contract(self.to, self.contract_address)
    }

    /// The call that it makes; `room` is for its data.
    pub fn call<'r>(&self, room: &'r mut Vec<u8>) -> Result<CallOf<'r>, Corrupt>
    where
        'a: 'r,
    {
        Ok(CallOf {
            from: self.from,
            to: self.to,
            value: self.value,
            input: self.input.bytes(room)?,
        })
    }
}
