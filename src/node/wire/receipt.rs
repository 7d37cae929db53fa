//! Receipts and logs.

use super::object::object;
use super::scalar::{List, MaybeAddress, MaybeWord, Wire};
use super::{WireError, may, need, parse};
use crate::model::{Address, B256, Block, Bloom, Bytes, Log, Receipt, Topics, Transaction};

object! {
    /// A receipt as the node writes it.
    ReceiptWire {
        transaction_hash: Wire<B256> = "transactionHash",
        transaction_index: Wire<u64> = "transactionIndex",
        block_hash: Wire<B256> = "blockHash",
        kind: Wire<u8> = "type",
        status: Wire<bool> = "status",
        root: Wire<MaybeWord> = "root",
        cumulative_gas_used: Wire<u64> = "cumulativeGasUsed",
        gas_used: Wire<u64> = "gasUsed",
        effective_gas_price: Wire<u128> = "effectiveGasPrice",
        contract_address: Wire<MaybeAddress> = "contractAddress",
        logs: List<LogWire> = "logs",
        logs_bloom: Wire<Bloom> = "logsBloom",
        blob_gas_used: Wire<u64> = "blobGasUsed",
        blob_gas_price: Wire<u128> = "blobGasPrice",
    } skip { "blockNumber", "blockTimestamp", "from", "to" } extra: kept
}

object! {
    /// A log as the node writes it; its `logIndex` is not read, for logs are numbered by their place.
    LogWire {
        address: Wire<Address> = "address",
        topics: Topics = "topics",
        data: Wire<Bytes> = "data",
        block_hash: Wire<B256> = "blockHash",
    } skip {} extra: dropped
}

/// The type of transactions that carry blobs (EIP-4844).
const BLOB_TRANSACTION: u8 = 3;

/// Reads the receipts of a block (`eth_getBlockReceipts`) and puts them in the order of its transactions.
///
/// # Errors
///
/// When the text is not a list of receipts, when a receipt is of another block, or when any transaction
/// has none or two.
pub fn receipts(json: &str, block: &Block) -> Result<Vec<Receipt>, WireError> {
    let list: List<ReceiptWire> = parse("receipts", json)?;
    in_order(list.0, block)
}

/// The same from one text for each receipt (`eth_getTransactionReceipt`).
///
/// # Errors
///
/// As [`receipts`].
pub fn receipt_texts(texts: &[&str], block: &Block) -> Result<Vec<Receipt>, WireError> {
    let mut list = Vec::with_capacity(texts.len());
    for text in texts {
        list.push(parse::<ReceiptWire>("receipt", text)?);
    }
    in_order(list, block)
}

fn in_order(list: Vec<ReceiptWire>, block: &Block) -> Result<Vec<Receipt>, WireError> {
    const WHAT: &str = "receipt";
    let mut places: Vec<Option<Receipt>> = vec![None; block.transactions.len()];
    for (position, wire) in list.into_iter().enumerate() {
        let index = match may(wire.transaction_index.clone()) {
            Some(index) => index,
            // Some leave the place out; the hash tells it.
            None => need(
                place_of(wire.transaction_hash.clone(), position, block),
                WHAT,
                "transactionIndex",
                Some(position),
            )?,
        };
        if let Some(found) = may(wire.block_hash.clone())
            && found != block.hash
        {
            return Err(WireError::OtherBlock {
                what: "receipts",
                expected: block.hash,
                found,
            });
        }
        let at = usize::try_from(index).unwrap_or(usize::MAX);
        let (Some(place @ None), Some(transaction)) = (places.get_mut(at), block.transactions.get(at)) else {
            return Err(WireError::SurplusItem { what: WHAT, index });
        };
        let receipt = receipt(wire, at, transaction.kind, block.hash)?;
        if receipt.transaction_hash != transaction.hash {
            return Err(WireError::OtherTransaction {
                what: WHAT,
                index: at,
                expected: transaction.hash,
                found: receipt.transaction_hash,
            });
        }
        *place = Some(receipt);
    }
    let mut receipts = Vec::with_capacity(places.len());
    for (index, place) in places.into_iter().enumerate() {
        receipts.push(place.ok_or(WireError::MissingItem { what: WHAT, index })?);
    }
    Ok(receipts)
}

/// The place in the block of the transaction with this hash, which is that of the receipt as a rule.
fn place_of(hash: Option<Wire<B256>>, position: usize, block: &Block) -> Option<Wire<u64>> {
    let Wire(hash) = hash?;
    let is = |transaction: &Transaction| transaction.hash == hash;
    let place = match block.transactions.get(position).is_some_and(is) {
        true => position,
        false => block.transactions.iter().position(is)?,
    };
    Some(Wire(place as u64))
}

fn receipt(wire: ReceiptWire, index: usize, kind: u8, block_hash: B256) -> Result<Receipt, WireError> {
    const WHAT: &str = "receipt";
    let place = Some(index);
    let stated_bloom = may(wire.logs_bloom);
    let given = match wire.logs {
        Some(given) => given.0,
        // Some write `null` for none.
        None if stated_bloom.is_none_or(|bloom| bloom.is_zero()) => Vec::new(),
        None => {
            return Err(WireError::MissingField {
                what: WHAT,
                field: "logs",
                index: place,
            });
        }
    };
    let mut logs = Vec::with_capacity(given.len());
    for log in given {
        logs.push(read_log(log, index, block_hash)?);
    }
    // Some roll-ups leave the bloom filter out of receipts; it follows from the logs.
    let logs_bloom = stated_bloom.unwrap_or_else(|| {
        let mut bloom = Bloom::ZERO;
        for log in &logs {
            bloom.accrue_raw_log(log.address, &log.topics);
        }
        bloom
    });
    let kind = may(wire.kind).unwrap_or(kind);
    // Some nodes state a price for every transaction; the specification does so only where there are blobs.
    let blobs = kind == BLOB_TRANSACTION;
    let (blob_gas_used, mut extra) = (may(wire.blob_gas_used), wire.extra);
    // Without blobs it is something else (the footprint of the data, on the OP Stack), which nothing is paid for here.
    if let Some(used @ 1..) = blob_gas_used.filter(|_| !blobs) {
        extra.keep_quantity("blobGasUsed", used);
    }
    Ok(Receipt {
        transaction_hash: need(wire.transaction_hash, WHAT, "transactionHash", place)?,
        kind,
        status: may(wire.status),
        root: may(wire.root).and_then(|root| root.0),
        cumulative_gas_used: need(wire.cumulative_gas_used, WHAT, "cumulativeGasUsed", place)?,
        gas_used: need(wire.gas_used, WHAT, "gasUsed", place)?,
        effective_gas_price: may(wire.effective_gas_price),
        contract_address: may(wire.contract_address).and_then(|address| address.0),
        logs,
        logs_bloom,
        blob_gas_used: blob_gas_used.filter(|_| blobs),
        blob_gas_price: may(wire.blob_gas_price).filter(|_| blobs),
        extra: extra.into_text(),
    })
}

fn read_log(wire: LogWire, index: usize, block_hash: B256) -> Result<Log, WireError> {
    if let Some(found) = may(wire.block_hash)
        && found != block_hash
    {
        return Err(WireError::OtherBlock {
            what: "receipts",
            expected: block_hash,
            found,
        });
    }
    Ok(Log {
        address: need(wire.address, "log", "address", Some(index))?,
        topics: wire.topics.unwrap_or_default(),
        data: need(wire.data, "log", "data", Some(index))?,
    })
}
