//! What each daily series says of a day, by the names of the specification: S4, S6, S7, B4 to B7, G1 to G3.

use serde::Serialize;

use crate::desk::answer::Plan;
use crate::desk::day_values::{
    BLOCK_TIME, BLOCKS, FEES, GAS, GAS_PRICE, REWARDS, SIZE, TRANSACTIONS, UTILIZATION,
};
use crate::http::HttpError;

use super::days::series;
use super::input::Input;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Transactions {
    transaction_count: u64,
}

/// S4.
pub(super) fn transactions(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, TRANSACTIONS, |transaction_count| Transactions {
        transaction_count,
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
    series(input, FEES, |(paid, burnt)| Fees { paid, burnt })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Utilization {
    network_utilization: Option<String>,
}

/// S7.
pub(super) fn utilization(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, UTILIZATION, |network_utilization| Utilization {
        network_utilization,
    })
}

#[derive(Serialize)]
struct Size {
    #[serde(rename = "blockSize_Bytes")]
    bytes: Option<u64>,
}

/// B4.
pub(super) fn size(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, SIZE, |bytes| Size { bytes })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blocks {
    block_count: u64,
    #[serde(rename = "blockRewards_Coin")]
    rewards: String,
}

/// B5.
pub(super) fn blocks(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, BLOCKS, |(block_count, rewards)| Blocks {
        block_count,
        rewards,
    })
}

#[derive(Serialize)]
struct Rewards {
    #[serde(rename = "blockRewards_Coin")]
    rewards: String,
}

/// B6.
pub(super) fn rewards(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, REWARDS, |rewards| Rewards { rewards })
}

#[derive(Serialize)]
struct BlockTime {
    #[serde(rename = "blockTime_Sec")]
    seconds: Option<String>,
}

/// B7.
pub(super) fn block_time(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, BLOCK_TIME, |seconds| BlockTime { seconds })
}

#[derive(Serialize)]
struct GasPrice {
    #[serde(rename = "avgGasPrice_Gwei")]
    gwei: Option<String>,
}

/// G1.
pub(super) fn gas_price(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, GAS_PRICE, |gwei| GasPrice { gwei })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Gas {
    gas_used: String,
    gas_limit: Option<String>,
}

/// G2, G3.
pub(super) fn gas(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    series(input, GAS, |(used, limit)| Gas {
        gas_used: used.to_string(),
        gas_limit: limit.map(|limit| limit.to_string()),
    })
}
