//! Blocks: how many transactions one has (B1), which one a time falls on (B2), what one brought (B3).

use crate::http::HttpError;
use crate::query::{BlockCounts, BlockReward, BlockTime, Closest, UncleReward};

use super::answer::Snapshot;
use super::caching::Reach;
use super::faults::{BLOCK_NOT_FOUND, needs_uncles, never_indexed, query_failed, still_indexing};

/// How many transactions an indexed block has.
pub(crate) fn counts(snapshot: &Snapshot, number: u64) -> Result<BlockCounts, HttpError> {
    snapshot.extent().check_block(number)?;
    let counts = snapshot.reader.block_counts(number).map_err(query_failed)?;
    counts.ok_or_else(|| HttpError::internal(format!("indexed block {number} has no counts")))
}

/// What an indexed block brought to those who sealed it and its uncles, which are told apart.
pub(crate) fn reward(snapshot: &Snapshot, number: u64) -> Result<(BlockReward, Vec<UncleReward>), HttpError> {
    snapshot.extent().check_block(number)?;
    let mut reward = snapshot
        .reader
        .block_reward(number)
        .map_err(query_failed)?
        .ok_or_else(|| HttpError::internal(format!("indexed block {number} has no rewards")))?;
    let total = reward.clone();
    let uncles = reward.uncles.take().ok_or_else(needs_uncles)?;
    Ok((total, uncles))
}

/// What an answer about the block that was found speaks of.
pub(crate) const fn reach_of(closest: Closest, number: u64) -> Reach {
    match closest {
        // The next block ends the search: it lies after the time.
        Closest::Before => Reach::UpTo(number.saturating_add(1)),
        Closest::After => Reach::UpTo(number),
    }
}

/// The block that is closest to a time on one side of it.
pub(crate) fn by_time(snapshot: &Snapshot, time: u64, closest: Closest) -> Result<BlockTime, HttpError> {
    let found = snapshot
        .reader
        .block_by_time(time, closest)
        .map_err(query_failed)?;
    settle(snapshot, time, closest, found)
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
    if above && behind {
        return Err(still_indexing());
    }
    if below && extent.first > 0 {
        return Err(never_indexed());
    }
    found.ok_or_else(|| HttpError::not_found(BLOCK_NOT_FOUND))
}
