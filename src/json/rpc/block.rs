//! `eth_getBlockByNumber`.

use super::{LeftOut, Place, transaction};
use crate::json::{object::Object, writer};
use crate::model::{B256, Block, BlockEntry, BlockId, Header, Withdrawal};

/// Appends a block, with full transactions or with their hashes only.
///
/// For hashes `transaction_hashes` are taken; where it is empty, those of the block's transactions.
pub fn block(out: &mut Vec<u8>, entry: &BlockEntry, full: bool) {
    if full {
        return with_transactions(out, &entry.block, LeftOut::Filled);
    }
    let mut object = begin(out, &entry.block, Bloom::Stated);
    if entry.transaction_hashes.is_empty() {
        object.array("transactions", &entry.block.transactions, |out, transaction| {
            writer::hex(out, transaction.hash.as_slice());
        });
    } else {
        object.array("transactions", &entry.transaction_hashes, |out, hash| {
            writer::hex(out, hash.as_slice());
        });
    }
    object.end_with_extra(entry.block.extra.as_deref());
}

/// Appends a header on its own (an uncle's): the fields that enter its hash.
pub fn header(out: &mut Vec<u8>, header: &Header) {
    let mut object = Object::begin(out);
    header_fields(&mut object, header, Bloom::Stated);
    object.end();
}

/// Appends a block's header with its hash (`eth_getHeaderByNumber`).
pub fn headline(out: &mut Vec<u8>, block: &Block) {
    let mut object = Object::begin(out);
    object.hex("hash", block.hash);
    header_fields(&mut object, &block.header, Bloom::Stated);
    object.end_with_extra(block.extra.as_deref());
}

/// Appends an uncle as `eth_getUncleByBlockNumberAndIndex` states it; its size is not known.
pub fn uncle(out: &mut Vec<u8>, hash: &B256, header: &Header) {
    let mut object = Object::begin(out);
    object.hex("hash", hash);
    header_fields(&mut object, header, Bloom::Stated);
    object.array("uncles", [(); 0], |_, ()| {});
    object.end();
}

/// Whether a block's bloom is stated: Otterscan does without.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Bloom {
    Stated,
    Null,
}

/// Appends a block with full transactions.
pub(super) fn with_transactions(out: &mut Vec<u8>, block: &Block, left_out: LeftOut) {
    let mut object = begin(out, block, Bloom::Stated);
    object.array(
        "transactions",
        block.transactions.iter().enumerate(),
        |out, (index, transaction)| {
            transaction::write(out, transaction, None, &place(block, index, left_out));
        },
    );
    object.end_with_extra(block.extra.as_deref());
}

/// The place of the transaction at `index` of `block`.
pub(super) fn place(block: &Block, index: usize, left_out: LeftOut) -> Place {
    Place {
        block: BlockId {
            number: block.number(),
            hash: block.hash,
        },
        timestamp: block.header.timestamp,
        base_fee_per_gas: block.header.base_fee_per_gas,
        transaction_index: index as u64,
        left_out,
    }
}

/// All but the transactions and the unknown fields.
pub(super) fn begin<'a>(out: &'a mut Vec<u8>, block: &Block, bloom: Bloom) -> Object<'a> {
    let mut object = Object::begin(out);
    object.hex("hash", block.hash);
    header_fields(&mut object, &block.header, bloom);
    object.quantity_if_known("size", block.size);
    if let Some(total) = &block.total_difficulty {
        object.quantity_u256("totalDifficulty", total);
    }
    object.array("uncles", &block.uncles, |out, hash| {
        writer::hex(out, hash.as_slice())
    });
    if let Some(withdrawals) = &block.withdrawals {
        object.array("withdrawals", withdrawals, withdrawal);
    }
    object
}

fn header_fields(object: &mut Object<'_>, header: &Header, bloom: Bloom) {
    object.hex("parentHash", header.parent_hash);
    object.hex("sha3Uncles", header.ommers_hash);
    object.hex("miner", header.beneficiary);
    object.hex("stateRoot", header.state_root);
    object.hex("transactionsRoot", header.transactions_root);
    object.hex("receiptsRoot", header.receipts_root);
    match bloom {
        Bloom::Stated => object.hex("logsBloom", header.logs_bloom),
        Bloom::Null => object.null("logsBloom"),
    }
    object.quantity_u256("difficulty", &header.difficulty);
    object.quantity("number", header.number);
    object.quantity("gasLimit", header.gas_limit);
    object.quantity("gasUsed", header.gas_used);
    object.quantity("timestamp", header.timestamp);
    object.hex("extraData", &header.extra_data);
    object.hex("mixHash", header.mix_hash);
    object.hex("nonce", header.nonce);
    object.quantity_if_known("baseFeePerGas", header.base_fee_per_gas);
    object.hex_if_known("withdrawalsRoot", header.withdrawals_root);
    object.quantity_if_known("blobGasUsed", header.blob_gas_used);
    object.quantity_if_known("excessBlobGas", header.excess_blob_gas);
    object.hex_if_known("parentBeaconBlockRoot", header.parent_beacon_block_root);
    object.hex_if_known("requestsHash", header.requests_hash);
}

fn withdrawal(out: &mut Vec<u8>, withdrawal: &Withdrawal) {
    let mut object = Object::begin(out);
    object.quantity("index", withdrawal.index);
    object.quantity("validatorIndex", withdrawal.validator_index);
    object.hex("address", withdrawal.address);
    object.quantity("amount", withdrawal.amount_gwei);
    object.end();
}
