//! The module `block`.

use serde::Serialize;

use crate::desk::amounts::fixed;
use crate::desk::amounts::mean;
use crate::desk::answer::{Plan, Snapshot};
use crate::desk::blocks;
use crate::desk::caching::Reach;
use crate::desk::faults::{needs_traces, query_failed};
use crate::http::{HttpError, parse_u64};
use crate::model::{TokenEvent, U256};
use crate::query::Closest;

use super::ask::Ask;
use super::envelope::ok;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reward {
    block_number: String,
    time_stamp: String,
    block_miner: String,
    block_reward: String,
    uncles: Vec<Uncle>,
    uncle_inclusion_reward: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Uncle {
    miner: String,
    uncle_position: String,
    blockreward: String,
}

/// `getblockreward`.
pub(super) fn reward(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let number = ask.block_number()?;
    Ok(Plan::scan(move |snapshot| {
        let (reward, uncles) = blocks::reward(snapshot, number)?;
        let uncle = |(position, uncle): (usize, &crate::query::UncleReward)| Uncle {
            miner: const_hex::encode_prefixed(uncle.miner),
            uncle_position: position.to_string(),
            blockreward: uncle.reward.to_string(),
        };
        let result = Reward {
            block_number: number.to_string(),
            time_stamp: reward.timestamp.to_string(),
            block_miner: reward.miner.map(const_hex::encode_prefixed).unwrap_or_default(),
            block_reward: reward.total().to_string(),
            uncles: uncles.iter().enumerate().map(uncle).collect(),
            uncle_inclusion_reward: reward.uncle_inclusion_reward.to_string(),
        };
        ok(&result, Reach::Head)
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Countdown {
    current_block: String,
    countdown_block: String,
    remaining_block: String,
    estimate_time_in_sec: String,
}

/// Blocks over which the time between two is averaged.
const COUNTDOWN_BLOCKS: u64 = 1000;

/// `getblockcountdown`: at the pace of the last blocks, the time since the last one not taken off.
pub(super) fn countdown(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let asked = ask.block_as_given()?;
    Ok(Plan::point(move |snapshot| {
        let head = snapshot.reader.head().number;
        if asked.number() <= head {
            return Err(HttpError::bad_request("Block number already pass"));
        }
        // Of 78 digits and more nobody counts on.
        let number = asked.to_string().parse().unwrap_or(U256::MAX);
        let remaining = number.saturating_sub(U256::from(head));
        let pace = pace(snapshot)?;
        let tenths = pace.map(|(seconds, blocks)| {
            let tenths = U256::from(seconds) * U256::from(10);
            mean(tenths.saturating_mul(remaining), U256::from(blocks))
        });
        let result = Countdown {
            current_block: head.to_string(),
            countdown_block: asked.to_string(),
            remaining_block: remaining.to_string(),
            estimate_time_in_sec: tenths
                .flatten()
                .map(|tenths| fixed(tenths, 1))
                .unwrap_or_default(),
        };
        ok(&result, Reach::Head)
    }))
}

/// Seconds between the head and a block some way below it, and how many blocks that is.
fn pace(snapshot: &Snapshot) -> Result<Option<(u64, u64)>, HttpError> {
    let reader = &snapshot.reader;
    let head = reader.head().number;
    // Block 0 of many chains is much older than block 1.
    let first = head
        .saturating_sub(COUNTDOWN_BLOCKS)
        .max(reader.first_block().max(1));
    if first >= head {
        return Ok(None);
    }
    let time = |number| {
        let entry = reader.block(number, false).map_err(query_failed)?;
        let entry = entry.ok_or_else(|| HttpError::internal(format!("indexed block {number} is missing")))?;
        Ok::<_, HttpError>(entry.block.header.timestamp)
    };
    Ok(Some((time(head)?.saturating_sub(time(first)?), head - first)))
}

/// `getblocknobytime`.
pub(super) fn by_time(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let text = ask.params.require("timestamp")?;
    let time = parse_u64(&text).ok_or_else(|| HttpError::invalid("timestamp"))?;
    let closest = match ask.params.take("closest")?.as_deref() {
        None | Some("before") => Closest::Before,
        Some("after") => Closest::After,
        Some(_) => return Err(HttpError::invalid("closest")),
    };
    Ok(Plan::point(move |snapshot| {
        let found = blocks::by_time(snapshot, time, closest)?;
        ok(&found.number.to_string(), blocks::reach_of(closest, found.number))
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counts {
    block: u64,
    txs_count: u64,
    internal_txs_count: u64,
    erc20_txs_count: u64,
    erc721_txs_count: u64,
    erc1155_txs_count: u64,
}

/// `getblocktxnscount`: of tokens, how many transfers.
pub(super) fn transaction_counts(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let number = ask.block_number()?;
    Ok(Plan::scan(move |snapshot| {
        let counts = blocks::counts(snapshot, number)?;
        let mut result = Counts {
            block: number,
            txs_count: counts.transactions,
            internal_txs_count: counts.internal_transactions.ok_or_else(needs_traces)?,
            erc20_txs_count: 0,
            erc721_txs_count: 0,
            erc1155_txs_count: 0,
        };
        let bundle = snapshot.reader.bundle(number).map_err(query_failed)?;
        let receipts = bundle.iter().flat_map(|bundle| &bundle.receipts);
        for log in receipts.flat_map(|receipt| &receipt.logs) {
            match TokenEvent::of(&log.address, &log.topics, &log.data) {
                Some(TokenEvent::Fungible { .. }) => result.erc20_txs_count += 1,
                Some(TokenEvent::Unique { .. }) => result.erc721_txs_count += 1,
                Some(TokenEvent::Multi { items, .. }) => result.erc1155_txs_count += items.len() as u64,
                Some(TokenEvent::Deposit { .. } | TokenEvent::Withdrawal { .. }) | None => {}
            }
        }
        ok(&result, Reach::UpTo(number))
    }))
}
