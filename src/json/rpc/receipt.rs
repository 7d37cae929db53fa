//! `eth_getTransactionReceipt`.

use super::{Place, log, transaction};
use crate::json::object::Object;
use crate::model::{Receipt, Transaction, TransactionEntry};

/// Appends a receipt; its logs are numbered from `first_log_index`.
pub fn receipt(out: &mut Vec<u8>, entry: &TransactionEntry) {
    let first_log_index = u64::from(entry.first_log_index);
    write(
        out,
        &entry.transaction,
        &entry.receipt,
        &transaction::place(entry),
        first_log_index,
    );
}

/// Appends a receipt as Otterscan lists those of a block: without logs and bloom.
pub fn receipt_without_logs(out: &mut Vec<u8>, entry: &TransactionEntry) {
    let (transaction, receipt) = (&entry.transaction, &entry.receipt);
    let mut object = begin(out, transaction, receipt, &transaction::place(entry));
    object.null("logs");
    object.null("logsBloom");
    end(object, receipt);
}

/// Appends a receipt as Otterscan's searches give it: whole, with the block's time.
pub fn dated_receipt(out: &mut Vec<u8>, entry: &TransactionEntry) {
    let (transaction, receipt) = (&entry.transaction, &entry.receipt);
    let first_log_index = u64::from(entry.first_log_index);
    let mut object = with_logs(
        out,
        transaction,
        receipt,
        &transaction::place(entry),
        first_log_index,
    );
    object.integer("timestamp", entry.timestamp);
    end(object, receipt);
}

pub(super) fn write(
    out: &mut Vec<u8>,
    transaction: &Transaction,
    receipt: &Receipt,
    place: &Place,
    first_log_index: u64,
) {
    end(
        with_logs(out, transaction, receipt, place, first_log_index),
        receipt,
    );
}

/// All but what follows the logs.
fn with_logs<'a>(
    out: &'a mut Vec<u8>,
    transaction: &Transaction,
    receipt: &Receipt,
    place: &Place,
    first_log_index: u64,
) -> Object<'a> {
    let mut object = begin(out, transaction, receipt, place);
    object.array(
        "logs",
        (first_log_index..).zip(&receipt.logs),
        |out, (index, entry)| {
            log(out, entry, transaction, place, index);
        },
    );
    object.hex("logsBloom", receipt.logs_bloom);
    object
}

/// All but the logs and what follows them.
fn begin<'a>(
    out: &'a mut Vec<u8>,
    transaction: &Transaction,
    receipt: &Receipt,
    place: &Place,
) -> Object<'a> {
    let mut object = Object::begin(out);
    place.write(&mut object);
    object.hex("transactionHash", transaction.hash);
    object.quantity("type", receipt.kind);
    object.hex("from", transaction.from);
    object.hex_or_null("to", transaction.to);
    object.hex_or_null("contractAddress", receipt.contract_address);
    object.quantity("cumulativeGasUsed", receipt.cumulative_gas_used);
    object.quantity("gasUsed", receipt.gas_used);
    let price = receipt.effective_gas_price.or_else(|| {
        place.fills().then_some(())?;
        transaction::gas_price(transaction, place)
    });
    object.quantity_if_known("effectiveGasPrice", price);
    object.quantity_if_known("blobGasUsed", receipt.blob_gas_used);
    object.quantity_if_known("blobGasPrice", receipt.blob_gas_price);
    object
}

fn end(mut object: Object<'_>, receipt: &Receipt) {
    object.hex_if_known("root", receipt.root);
    object.quantity_if_known("status", receipt.status.map(u8::from));
    object.end_with_extra(receipt.extra.as_deref());
}
