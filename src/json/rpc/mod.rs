//! Blocks, transactions, receipts and traces as the Ethereum JSON-RPC specification gives them: what the proxy
//! answers and what a recorded chain holds.
//!
//! Values are the node's own, as the model keeps them; fields that only roll-ups have follow from `extra`. The
//! order of keys is ours.

mod block;
mod log_entry;
mod otterscan;
mod receipt;
mod trace;
mod transaction;

pub use block::{block, header, headline, uncle};
pub use log_entry::log_entry;
pub use otterscan::{
    BlockDetails, block_details, block_transactions, call, contract_creator, found, internal_operation,
};
pub use receipt::{dated_receipt, receipt, receipt_without_logs};
pub use trace::{TracePlace, made_nothing, subtraces, trace, traces};
pub use transaction::transaction;

use super::object::Object;
use crate::model::{BlockId, Bundle, Log, LogEntry, Transaction};

/// Where a transaction lies, and what its block says of it.
#[derive(Clone, Copy, Debug)]
struct Place {
    block: BlockId,
    timestamp: u64,
    base_fee_per_gas: Option<u64>,
    transaction_index: u64,
    left_out: LeftOut,
}

/// What becomes of fields that a node leaves out and the specification has (`accessList`, `yParity`, prices).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeftOut {
    /// They are made of what there is, for whoever asks.
    Filled,
    /// They stay away, so that what is read again is what was stored.
    Away,
}

impl Place {
    const fn fills(&self) -> bool {
        matches!(self.left_out, LeftOut::Filled)
    }

    /// The first three fields of a transaction, a receipt and a log.
    fn write(&self, object: &mut Object<'_>) {
        object.hex("blockHash", self.block.hash);
        object.quantity("blockNumber", self.block.number);
        object.quantity("transactionIndex", self.transaction_index);
    }
}

/// Appends one line of a recorded chain, without the newline: `{"block":...,"receipts":[...],"traces":[...]}`, the
/// last one absent where the bundle has no traces, `uncleHeaders` added where it has them. What the node left out is left out.
pub fn bundle(out: &mut Vec<u8>, bundle: &Bundle) {
    let block = &bundle.block;
    let mut object = Object::begin(out);
    block::with_transactions(object.key("block"), block, LeftOut::Away);
    let mut first_log_index = 0;
    let pairs = block.transactions.iter().zip(&bundle.receipts).enumerate();
    object.array("receipts", pairs, |out, (index, (transaction, receipt))| {
        let place = block::place(block, index, LeftOut::Away);
        receipt::write(out, transaction, receipt, &place, first_log_index);
        first_log_index += receipt.logs.len() as u64;
    });
    if let Some(of_transactions) = &bundle.traces {
        traces(object.key("traces"), block, of_transactions);
    }
    if !block.uncle_headers.is_empty() {
        object.array("uncleHeaders", &block.uncle_headers, header);
    }
    object.end();
}

/// Appends a log of a receipt.
fn log(out: &mut Vec<u8>, log: &Log, transaction: &Transaction, place: &Place, log_index: u64) {
    let number = |wide: u64| u32::try_from(wide).unwrap_or(u32::MAX);
    log_entry(
        out,
        &LogEntry {
            ordinal: 0,
            block_number: place.block.number,
            block_hash: place.block.hash,
            timestamp: place.timestamp,
            transaction_hash: transaction.hash,
            transaction_index: number(place.transaction_index),
            log_index: number(log_index),
            address: log.address,
            topics: &log.topics,
            data: &log.data,
        },
    );
}

#[cfg(test)]
mod parse;
#[cfg(test)]
mod tests;
