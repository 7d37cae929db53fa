//! What each daily series says of a day: S4, S6, S7, B4 to B7, G1 to G3. Averages are made here, of exact sums.

use serde::Serialize;

use crate::http::HttpError;
use crate::model::U256;
use crate::query::DayReward;

use super::amounts::{Unit, decimal, fixed, mean};
use super::answer::Plan;
use super::days::{Manner, OneDay, series};
use super::faults::{needs_sizes, needs_uncles, query_failed};
use super::input::Input;

const PLAIN: Manner = Manner {
    looks_back: false,
    is_stated: false,
};
const STATED: Manner = Manner {
    looks_back: false,
    is_stated: true,
};
const LOOKING_BACK: Manner = Manner {
    looks_back: true,
    is_stated: false,
};

fn coins(wei: U256) -> String {
    Unit::Coin.native(wei)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Transactions {
    transaction_count: u64,
}

/// S4.
pub(super) fn transactions(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, PLAIN, |day| {
        Ok(Transactions {
            transaction_count: day.row.transactions,
        })
    })
}

#[derive(Serialize)]
struct Fees {
    #[serde(rename = "transactionFee_Coin")]
    paid: String,
    #[serde(rename = "burntFee_Coin")]
    burnt: String,
}

/// S6.
pub(super) fn fees(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, PLAIN, |day| {
        Ok(Fees {
            paid: coins(day.row.fees_paid()),
            burnt: coins(day.row.fees_burnt()),
        })
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Utilization {
    network_utilization: Option<String>,
}

/// S7: hundredths of a percent are ten thousandths of the limit.
pub(super) fn utilization(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, PLAIN, |day| {
        let used = day.row.gas_used.saturating_mul(U256::from(10_000));
        Ok(Utilization {
            network_utilization: mean(used, day.row.gas_limit).map(|share| fixed(share, 2)),
        })
    })
}

#[derive(Serialize)]
struct Size {
    #[serde(rename = "blockSize_Bytes")]
    bytes: Option<u64>,
}

/// B4.
pub(super) fn size(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, PLAIN, |day| {
        if day.row.unsized_blocks > 0 {
            return Err(needs_sizes());
        }
        let mean = mean(U256::from(day.row.size), U256::from(day.row.blocks));
        Ok(Size {
            bytes: mean.map(|bytes| bytes.saturating_to()),
        })
    })
}

fn reward(day: &OneDay<'_>) -> Result<DayReward, HttpError> {
    day.snapshot
        .reader
        .day_reward(day.day, day.row)
        .map_err(query_failed)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blocks {
    block_count: u64,
    #[serde(rename = "blockRewards_Coin")]
    rewards: String,
}

/// B5: what the fee recipients of the blocks got.
pub(super) fn blocks(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, STATED, |day| {
        let reward = reward(day)?;
        let rewards = reward
            .static_reward
            .saturating_add(reward.uncle_inclusion)
            .saturating_add(day.row.tips);
        Ok(Blocks {
            block_count: day.row.blocks,
            rewards: coins(rewards),
        })
    })
}

#[derive(Serialize)]
struct Rewards {
    #[serde(rename = "blockRewards_Coin")]
    rewards: String,
}

/// B6: what the protocol gave.
pub(super) fn rewards(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, STATED, |day| {
        let reward = reward(day)?;
        let uncles = reward.uncles.ok_or_else(needs_uncles)?;
        let rewards = reward
            .static_reward
            .saturating_add(reward.uncle_inclusion)
            .saturating_add(uncles);
        Ok(Rewards {
            rewards: coins(rewards),
        })
    })
}

#[derive(Serialize)]
struct BlockTime {
    #[serde(rename = "blockTime_Sec")]
    seconds: Option<String>,
}

/// B7: from the last block of the day before, or from the chain's first block, which has none before it.
pub(super) fn block_time(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, LOOKING_BACK, |day| {
        let row = day.row;
        let (since, intervals) = match day.before {
            Some(before) => (before.last_time, row.blocks),
            None => (row.first_time, row.blocks.saturating_sub(1)),
        };
        let hundredths = U256::from(row.last_time.saturating_sub(since)) * U256::from(100);
        Ok(BlockTime {
            seconds: mean(hundredths, U256::from(intervals)).map(|time| fixed(time, 2)),
        })
    })
}

#[derive(Serialize)]
struct GasPrice {
    #[serde(rename = "avgGasPrice_Gwei")]
    gwei: Option<String>,
}

/// G1: a wei is a billionth of a gwei.
pub(super) fn gas_price(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, PLAIN, |day| {
        let mean = mean(day.row.gas_prices, U256::from(day.row.transactions));
        Ok(GasPrice {
            gwei: mean.map(|wei| decimal(wei, 9)),
        })
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Gas {
    gas_used: String,
    gas_limit: Option<String>,
}

/// G2, G3.
pub(super) fn gas(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, PLAIN, |day| {
        let limit = mean(day.row.gas_limit, U256::from(day.row.blocks));
        Ok(Gas {
            gas_used: day.row.gas_used.to_string(),
            gas_limit: limit.map(|limit| limit.to_string()),
        })
    })
}
