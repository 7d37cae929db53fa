//! Blocks and headers.

use super::object::object;
use super::scalar::{Amount, List, Wire};
use super::transaction::{TransactionWire, transaction};
use super::{WireError, may, need, parse};
use crate::model::{Address, B64, B256, Block, Bloom, Bytes, Header, Withdrawal};
use crate::node::reader::{Fault, FromJson, Reader};

object! {
    /// A block or an uncle header as the node writes it.
    BlockWire {
        hash: Wire<B256> = "hash",
        parent_hash: Wire<B256> = "parentHash",
        ommers_hash: Wire<B256> = "sha3Uncles",
        miner: Wire<Address> = "miner",
        author: Wire<Address> = "author",
        state_root: Wire<B256> = "stateRoot",
        transactions_root: Wire<B256> = "transactionsRoot",
        receipts_root: Wire<B256> = "receiptsRoot",
        logs_bloom: Wire<Bloom> = "logsBloom",
        difficulty: Amount = "difficulty",
        number: Wire<u64> = "number",
        gas_limit: Wire<u64> = "gasLimit",
        gas_used: Wire<u64> = "gasUsed",
        timestamp: Wire<u64> = "timestamp",
        extra_data: Wire<Bytes> = "extraData",
        mix_hash: Wire<B256> = "mixHash",
        nonce: Wire<B64> = "nonce",
        base_fee_per_gas: Wire<u64> = "baseFeePerGas",
        withdrawals_root: Wire<B256> = "withdrawalsRoot",
        blob_gas_used: Wire<u64> = "blobGasUsed",
        excess_blob_gas: Wire<u64> = "excessBlobGas",
        parent_beacon_block_root: Wire<B256> = "parentBeaconBlockRoot",
        requests_hash: Wire<B256> = "requestsHash",
        size: Wire<u64> = "size",
        total_difficulty: Amount = "totalDifficulty",
        transactions: List<TransactionWire> = "transactions",
        uncles: List<Wire<B256>> = "uncles",
        withdrawals: List<WithdrawalWire> = "withdrawals",
    } skip { "sealFields" } extra: kept
}

object! {
    WithdrawalWire {
        index: Wire<u64> = "index",
        validator_index: Wire<u64> = "validatorIndex",
        address: Wire<Address> = "address",
        amount: Wire<u64> = "amount",
    } skip {} extra: dropped
}

object! {
    /// The little that is needed of a block that is only looked at (its transactions may be hashes).
    BlockIdWire {
        number: Wire<u64> = "number",
        hash: Wire<B256> = "hash",
        parent_hash: Wire<B256> = "parentHash",
    } skip {} extra: dropped
}

/// Number, hash and parent of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockId {
    /// Block number.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
    /// Hash of the parent.
    pub parent_hash: B256,
}

/// Reads number, hash and parent of a block, whether its transactions are full or hashes.
///
/// # Errors
///
/// When the text is not a block.
pub fn block_id(json: &str) -> Result<BlockId, WireError> {
    known_block_id(json)?.ok_or(WireError::MissingField {
        what: "block",
        field: "number",
        index: None,
    })
}

/// The same; `None` for a block that has neither number nor hash, as some nodes tell of a tag that names none.
///
/// # Errors
///
/// When the text is not a block.
pub fn known_block_id(json: &str) -> Result<Option<BlockId>, WireError> {
    let wire: BlockIdWire = parse("block", json)?;
    if wire.number.is_none() && wire.hash.is_none() {
        return Ok(None);
    }
    Ok(Some(BlockId {
        number: need(wire.number, "block", "number", None)?,
        hash: need(wire.hash, "block", "hash", None)?,
        parent_hash: need(wire.parent_hash, "block", "parentHash", None)?,
    }))
}

/// Reads the hash of a block and looks at the rest only as far as it must: whoever reads the block finds what is wrong with
/// it.
///
/// # Errors
///
/// When no hash is found.
pub fn block_hash(json: &str) -> Result<B256, WireError> {
    let mut hash: Option<Wire<B256>> = None;
    let read = Reader::new(json).object(|reader, key| {
        if key == "hash" && hash.is_none() {
            hash = FromJson::read(reader)?;
            return Ok(());
        }
        reader.extent().map(drop)
    });
    read.map_err(|fault| WireError::malformed("block", fault))?;
    need(hash, "block", "hash", None)
}

/// Reads a block with full transactions (`eth_getBlockByNumber(_, true)`).
///
/// Required are hash, number, parent, time, miner (or `author`), gas limit and gas used, and the
/// transactions. The roots are required too, unless all four are absent: such a bare header comes
/// from recorded chains of trusted sources, has zeros in their place, and no hash can be computed of it.
///
/// # Errors
///
/// When the text is not such a block; the error names the field.
pub fn block(json: &str) -> Result<Block, WireError> {
    let mut wire: BlockWire = parse("block", json)?;
    let hash = need(wire.hash.take(), "block", "hash", None)?;
    let given = wire.transactions.take().ok_or(WireError::MissingField {
        what: "block",
        field: "transactions",
        index: None,
    })?;
    let size = may(wire.size.take());
    let total_difficulty = wire.total_difficulty.take().map(|amount| amount.0);
    let uncles = wire.uncles.take().map(|list| list.0).unwrap_or_default();
    let withdrawals = wire.withdrawals.take().map(withdrawals).transpose()?;
    let extra = std::mem::take(&mut wire.extra).into_text();
    let header = header(wire, "block")?;
    let mut transactions = Vec::with_capacity(given.0.len());
    for (index, wire) in given.0.into_iter().enumerate() {
        transactions.push(transaction(wire, index, hash)?);
    }
    Ok(Block {
        hash,
        header,
        size,
        total_difficulty,
        transactions,
        uncles: uncles.into_iter().map(|hash| hash.0).collect(),
        uncle_headers: Vec::new(),
        withdrawals,
        extra,
    })
}

/// Miner and number of an uncle.
struct UnclePair(Address, u64);

impl<'a> FromJson<'a> for UnclePair {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let (mut miner, mut number) = (None, None);
        reader.array(|reader| {
            if miner.is_none() {
                miner = Some(Wire::read(reader)?.0);
            } else if number.is_none() {
                number = Some(Wire::read(reader)?.0);
            } else {
                return Err(Fault::new("expected two items"));
            }
            Ok(())
        })?;
        let pair = miner.zip(number).map(|(miner, number)| Self(miner, number));
        pair.ok_or_else(|| Fault::new("expected two items"))
    }
}

/// Reads the header of an uncle (`eth_getUncleByBlockNumberAndIndex`).
///
/// A recorded chain may state an uncle as the pair `[miner, number]`, all that rewards need; the
/// header then has zeros everywhere else.
///
/// # Errors
///
/// When the text is neither.
pub fn uncle_header(json: &str) -> Result<Header, WireError> {
    if json.trim_start().starts_with('[') {
        let pair: UnclePair = parse("uncle", json)?;
        return Ok(Header {
            beneficiary: pair.0,
            number: pair.1,
            ..Header::default()
        });
    }
    header(parse("uncle", json)?, "uncle")
}

fn header(wire: BlockWire, what: &'static str) -> Result<Header, WireError> {
    let bare = wire.state_root.is_none()
        && wire.transactions_root.is_none()
        && wire.receipts_root.is_none()
        && wire.ommers_hash.is_none();
    let root = |value: Option<Wire<B256>>, field: &'static str| {
        if bare {
            Ok(B256::ZERO)
        } else {
            need(value, what, field, None)
        }
    };
    let logs_bloom = if bare {
        may(wire.logs_bloom).unwrap_or_default()
    } else {
        need(wire.logs_bloom, what, "logsBloom", None)?
    };
    Ok(Header {
        parent_hash: need(wire.parent_hash, what, "parentHash", None)?,
        ommers_hash: root(wire.ommers_hash, "sha3Uncles")?,
        beneficiary: need(wire.miner.or(wire.author), what, "miner", None)?,
        state_root: root(wire.state_root, "stateRoot")?,
        transactions_root: root(wire.transactions_root, "transactionsRoot")?,
        receipts_root: root(wire.receipts_root, "receiptsRoot")?,
        logs_bloom,
        difficulty: wire.difficulty.unwrap_or_default().0,
        number: need(wire.number, what, "number", None)?,
        gas_limit: need(wire.gas_limit, what, "gasLimit", None)?,
        gas_used: need(wire.gas_used, what, "gasUsed", None)?,
        timestamp: need(wire.timestamp, what, "timestamp", None)?,
        extra_data: need(wire.extra_data, what, "extraData", None)?,
        // Chains sealed by authority state neither.
        mix_hash: may(wire.mix_hash).unwrap_or_default(),
        nonce: may(wire.nonce).unwrap_or_default(),
        base_fee_per_gas: may(wire.base_fee_per_gas),
        withdrawals_root: may(wire.withdrawals_root),
        blob_gas_used: may(wire.blob_gas_used),
        excess_blob_gas: may(wire.excess_blob_gas),
        parent_beacon_block_root: may(wire.parent_beacon_block_root),
        requests_hash: may(wire.requests_hash),
    })
}

fn withdrawals(list: List<WithdrawalWire>) -> Result<Vec<Withdrawal>, WireError> {
    let mut withdrawals = Vec::with_capacity(list.0.len());
    for (place, wire) in list.0.into_iter().enumerate() {
        let place = Some(place);
        withdrawals.push(Withdrawal {
            index: need(wire.index, "withdrawal", "index", place)?,
            validator_index: need(wire.validator_index, "withdrawal", "validatorIndex", place)?,
            address: need(wire.address, "withdrawal", "address", place)?,
            amount_gwei: need(wire.amount, "withdrawal", "amount", place)?,
        });
    }
    Ok(withdrawals)
}
