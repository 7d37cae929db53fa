//! Transactions and receipts.

use super::args::Args;
use super::blocks::of_block;
use super::fault::Fault;
use super::methods::{Work, at_block, null, shared, store, text};
use crate::desk::answer::Plan;
use crate::desk::faults::query_failed;
use crate::desk::proxy;
use crate::http::Lane;
use crate::json::object::array;
use crate::json::{rpc, writer};

/// `eth_getTransactionByHash`.
pub(super) fn by_hash(args: &mut Args) -> Result<Work, Fault> {
    Ok(shared(proxy::transaction_by_hash(args.hash("hash")?)))
}

/// `eth_getTransactionByBlock...AndIndex`.
pub(super) fn by_position(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    let index = args.number("index")?;
    Ok(at_block(block, move |tag| {
        proxy::transaction_by_position(tag, index)
    }))
}

/// `eth_getTransactionReceipt`.
pub(super) fn receipt(args: &mut Args) -> Result<Work, Fault> {
    Ok(shared(proxy::transaction_receipt(args.hash("hash")?)))
}

/// `eth_getBlockReceipts`.
pub(super) fn block_receipts(args: &mut Args) -> Result<Work, Fault> {
    let block = args.block("block")?;
    let plan = of_block(block, |snapshot, number| {
        let entries = snapshot.reader.block_entries(number, 0..u64::MAX, true);
        let entries = entries.map_err(query_failed)?;
        Ok(text(|out| array(out, &entries, rpc::receipt)))
    });
    Ok(store(Plan {
        lane: Lane::Scan,
        ..plan
    }))
}

/// `ots_getTransactionBySenderAndNonce`.
pub(super) fn by_sender_and_nonce(args: &mut Args) -> Result<Work, Fault> {
    let sender = args.address("sender")?;
    let nonce = args.number("nonce")?;
    Ok(store(Plan::point(move |snapshot| {
        let found = snapshot.reader.transaction_by_nonce(&sender, nonce);
        Ok(match found.map_err(query_failed)? {
            Some(hash) => text(|out| writer::hex(out, hash.as_slice())),
            None => null(),
        })
    })))
}
