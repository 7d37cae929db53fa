//! B1: how many transactions a block has. B2: which block a time falls on.

use serde::Serialize;

use crate::http::{HttpError, parse_u64};
use crate::query::{BlockTime, Closest};

use super::answer::{Answer, Plan, Snapshot};
use super::caching::Reach;
use super::faults::{BLOCK_NOT_FOUND, needs_traces, query_failed, still_indexing};
use super::input::Input;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TransactionCount {
    txs_count: u64,
    internal_txs_count: u64,
}

pub(super) fn transaction_count(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let number = input.segment(0, parse_u64, || HttpError::invalid("blockNumber"))?;
    Ok(Plan::point(move |snapshot| {
        snapshot.extent().check_block(number)?;
        let counts = snapshot
            .reader
            .block_counts(number)
            .map_err(query_failed)?
            .ok_or_else(|| HttpError::internal(format!("indexed block {number} has no counts")))?;
        let counts = TransactionCount {
            txs_count: counts.transactions,
            internal_txs_count: counts.internal_transactions.ok_or_else(needs_traces)?,
        };
        Answer::json(&counts, Reach::UpTo(number))
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockNumber {
    timestamp: String,
    closest: &'static str,
    chain: &'static str,
    block_number: String,
    block_timestamp: String,
}

pub(super) fn number_by_time(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let time = input.segment(0, parse_u64, || HttpError::invalid("unixTimestamp"))?;
    let choices = [("before", Closest::Before), ("after", Closest::After)];
    let closest = input
        .params
        .take_choice("closest", &choices)?
        .unwrap_or(Closest::Before);
    Ok(Plan::point(move |snapshot| {
        let found = snapshot
            .reader
            .block_by_time(time, closest)
            .map_err(query_failed)?;
        let found = settle(snapshot, time, closest, found)?;
        let reach = match closest {
            // The next block ends the search: it lies after the time.
            Closest::Before => Reach::UpTo(found.number.saturating_add(1)),
            Closest::After => Reach::UpTo(found.number),
        };
        let answer = BlockNumber {
            timestamp: time.to_string(),
            closest: match closest {
                Closest::Before => "before",
                Closest::After => "after",
            },
            chain: snapshot.chain.as_str(),
            block_number: found.number.to_string(),
            block_timestamp: found.timestamp.to_string(),
        };
        Answer::json(&answer, reach)
    }))
}

/// The block found, unless blocks that are not indexed could be closer.
fn settle(
    snapshot: &Snapshot,
    time: u64,
    closest: Closest,
    found: Option<BlockTime>,
) -> Result<BlockTime, HttpError> {
    let extent = snapshot.extent();
    let behind = extent.is_behind();
    let (above, below) = match (closest, found) {
        // The blocks that follow may still be at or before the time.
        (Closest::Before, Some(block)) => (block.number == extent.head, false),
        (Closest::Before, None) => (false, true),
        // The blocks that came earlier may already be at or after the time.
        (Closest::After, Some(block)) => (false, block.number == extent.first && time <= block.timestamp),
        (Closest::After, None) => (true, false),
    };
    if (above && behind) || (below && extent.first > 0) {
        return Err(still_indexing());
    }
    found.ok_or_else(|| HttpError::not_found(BLOCK_NOT_FOUND))
}
