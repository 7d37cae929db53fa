//! What the benches share: a synthetic chain, its shares, and a file of it.
#![allow(dead_code, reason = "each bench uses a part of it")]
#![allow(clippy::expect_used, reason = "a bench that cannot go on stops")]

pub(crate) mod asked;
pub(crate) mod draw;
pub(crate) mod emitters;
pub(crate) mod filled;
pub(crate) mod generator;
pub(crate) mod holders;
pub(crate) mod logs;
pub(crate) mod memory;
pub(crate) mod part;
pub(crate) mod recorded;
pub(crate) mod served;
pub(crate) mod shares;
pub(crate) mod sizes;

use quarry::model::{Bundle, LogEntry};

/// The logs of a block with their places; `ordinal` counts from the block's first log.
pub(crate) fn log_entries(bundle: &Bundle) -> impl Iterator<Item = LogEntry<'_>> {
    let block = &bundle.block;
    let of_transactions = block.transactions.iter().zip(&bundle.receipts).enumerate();
    let logs = of_transactions.flat_map(|(index, (transaction, receipt))| {
        receipt
            .logs
            .iter()
            .map(move |log| (index as u32, transaction.hash, log))
    });
    logs.enumerate()
        .map(|(place, (transaction_index, transaction_hash, log))| LogEntry {
            ordinal: place as u64,
            block_number: block.number(),
            block_hash: block.hash,
            timestamp: block.header.timestamp,
            transaction_hash,
            transaction_index,
            log_index: place as u32,
            address: log.address,
            topics: &log.topics,
            data: &log.data,
        })
}
