//! What each daily series says of a day: S4, S6, S7, B4 to B7, G1 to G3. Averages are made here, of exact sums.

use crate::http::HttpError;
use crate::model::U256;
use crate::query::DayReward;

use super::amounts::{Unit, decimal, fixed, mean};
use super::days::{Manner, OneDay, Series};
use super::faults::{needs_sizes, needs_uncles, query_failed};

const fn plain<T>(value: fn(&OneDay<'_>) -> Result<T, HttpError>) -> Series<T> {
    Series {
        manner: Manner {
            looks_back: false,
            is_stated: false,
        },
        value,
    }
}

const fn stated<T>(value: fn(&OneDay<'_>) -> Result<T, HttpError>) -> Series<T> {
    Series {
        manner: Manner {
            looks_back: false,
            is_stated: true,
        },
        value,
    }
}

fn coins(wei: U256) -> String {
    Unit::Coin.native(wei)
}

/// S4: how many transactions.
pub(crate) const TRANSACTIONS: Series<u64> = plain(|day| Ok(day.row.transactions));

/// S6: fees that were paid, and those of them that were burnt, in coins.
pub(crate) const FEES: Series<(String, String)> =
    plain(|day| Ok((coins(day.row.fees_paid()), coins(day.row.fees_burnt()))));

/// S7: hundredths of a percent are ten thousandths of the limit.
pub(crate) const UTILIZATION: Series<Option<String>> = plain(|day| {
    let used = day.row.gas_used.saturating_mul(U256::from(10_000));
    Ok(mean(used, day.row.gas_limit).map(|share| fixed(share, 2)))
});

/// B4: mean size, bytes.
pub(crate) const SIZE: Series<Option<u64>> = plain(|day| {
    if day.row.unsized_blocks > 0 {
        return Err(needs_sizes());
    }
    let mean = mean(U256::from(day.row.size), U256::from(day.row.blocks));
    Ok(mean.map(|bytes| bytes.saturating_to()))
});

fn reward(day: &OneDay<'_>) -> Result<DayReward, HttpError> {
    day.snapshot
        .reader
        .day_reward(day.day, day.row)
        .map_err(query_failed)
}

/// B5: blocks, and what their fee recipients got, in coins.
pub(crate) const BLOCKS: Series<(u64, String)> = stated(|day| {
    let reward = reward(day)?;
    let rewards = reward
        .static_reward
        .saturating_add(reward.uncle_inclusion)
        .saturating_add(day.row.tips);
    Ok((day.row.blocks, coins(rewards)))
});

/// B6: what the protocol gave, in coins.
pub(crate) const REWARDS: Series<String> = stated(|day| {
    let reward = reward(day)?;
    let uncles = reward.uncles.ok_or_else(needs_uncles)?;
    let rewards = reward
        .static_reward
        .saturating_add(reward.uncle_inclusion)
        .saturating_add(uncles);
    Ok(coins(rewards))
});

/// Uncles, and what they brought to those who sealed them, in coins.
pub(crate) const UNCLES: Series<(u64, String)> = stated(|day| {
    let uncles = reward(day)?.uncles.ok_or_else(needs_uncles)?;
    Ok((day.row.uncles, coins(uncles)))
});

/// B7, seconds: from the last block of the day before, or from the chain's first block, which has none before it.
pub(crate) const BLOCK_TIME: Series<Option<String>> = Series {
    manner: Manner {
        looks_back: true,
        is_stated: false,
    },
    value: |day| {
        let row = day.row;
        let (since, intervals) = match day.before {
            Some(before) => (before.last_time, row.blocks),
            None => (row.first_time, row.blocks.saturating_sub(1)),
        };
        let hundredths = U256::from(row.last_time.saturating_sub(since)) * U256::from(100);
        Ok(mean(hundredths, U256::from(intervals)).map(|time| fixed(time, 2)))
    },
};

/// The mean price of gas, wei; of what was paid in tokens the prices are left out.
pub(crate) const GAS_PRICE_WEI: Series<Option<U256>> =
    plain(|day| Ok(mean(day.row.gas_prices, U256::from(day.row.priced()))));

/// G1: the same in gwei, of which a wei is a billionth.
pub(crate) const GAS_PRICE: Series<Option<String>> =
    plain(|day| Ok((GAS_PRICE_WEI.value)(day)?.map(|wei| decimal(wei, 9))));

/// G2, G3: gas used by all blocks, and their mean limit.
pub(crate) const GAS: Series<(U256, Option<U256>)> = plain(|day| {
    let limit = mean(day.row.gas_limit, U256::from(day.row.blocks));
    Ok((day.row.gas_used, limit))
});
