//! The module `stats`.

use serde::Serialize;

use crate::desk::amounts::Unit;
use crate::desk::answer::{Answer, Plan};
use crate::desk::balances::coin_supply;
use crate::desk::bounds::{AskedBlock, Bound};
use crate::desk::caching::Reach;
use crate::desk::day_values::{
    BLOCK_TIME, BLOCKS, FEES, GAS, GAS_PRICE_WEI, REWARDS, SIZE, TRANSACTIONS, UNCLES, UTILIZATION,
};
use crate::desk::days::{self, Covered, Series};
use crate::desk::{prices, tokens};
use crate::http::HttpError;
use crate::model::{Day, U256};

use super::ask::Ask;
use super::envelope::{items, ok, sourced};

/// `tokensupply`.
pub(super) fn token_supply(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let token = ask.contract()?;
    Ok(Plan::quick(move |snapshot| {
        tokens::supply(snapshot, token, Unit::Base, |supply, source| {
            sourced(&supply, source, Reach::Head)
        })
    }))
}

/// `tokensupplyhistory`.
pub(super) fn token_supply_at(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let token = ask.contract()?;
    let asked = AskedBlock::new("blockno", Bound::Number(ask.block_number()?));
    Ok(Plan::quick(move |snapshot| {
        tokens::supply_at(snapshot, token, asked, Unit::Base, |_, supply, source| {
            sourced(&supply, source, Reach::Head)
        })
    }))
}

/// `ethsupply`: wei.
pub(super) fn supply(_: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(Plan::point(|snapshot| {
        let supply = coin_supply(snapshot)?;
        ok(&supply.total.to_string(), Reach::Head)
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Supply {
    eth_supply: String,
    eth2_staking: String,
    burnt_fees: String,
    withdrawn_total: String,
}

/// `ethsupply2`, wei: what there is is `EthSupply + Eth2Staking - BurntFees`. What was withdrawn is in `EthSupply`, for
/// what is staked a chain's blocks do not tell.
pub(super) fn supply_parts(_: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(Plan::point(|snapshot| {
        let supply = coin_supply(snapshot)?;
        let result = Supply {
            eth_supply: supply.total.saturating_add(supply.burnt).to_string(),
            eth2_staking: "0".to_owned(),
            burnt_fees: supply.burnt.to_string(),
            withdrawn_total: String::new(),
        };
        ok(&result, Reach::Head)
    }))
}

#[derive(Serialize)]
struct Price {
    ethbtc: &'static str,
    ethbtc_timestamp: &'static str,
    ethusd: String,
    ethusd_timestamp: String,
}

/// `ethprice`: in dollars; none is known in bitcoin.
pub(super) fn price(_: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(Plan::point(|snapshot| {
        let (now, _) = prices::now(snapshot)?;
        let result = Price {
            ethbtc: "",
            ethbtc_timestamp: "",
            ethusd: now.usd.to_string(),
            ethusd_timestamp: now.time.to_string(),
        };
        ok(&result, Reach::Head)
    }))
}

#[derive(Serialize)]
struct Entry<T> {
    #[serde(rename = "UTCDate")]
    date: String,
    #[serde(rename = "unixTimeStamp")]
    time: String,
    #[serde(flatten)]
    values: T,
}

/// The days of a series.
fn entries<T, F: Serialize>(
    covered: Covered,
    days: Vec<(Day, T)>,
    fields: impl Fn(T) -> F,
) -> Result<Answer, HttpError> {
    let entry = |(day, value): (Day, T)| Entry {
        date: day.to_string(),
        time: day.start().to_string(),
        values: fields(value),
    };
    let entries: Vec<_> = days.into_iter().map(entry).collect();
    items(&entries, covered.reach)
}

fn series<T: 'static, F: Serialize + 'static>(
    ask: &mut Ask<'_>,
    series: Series<T>,
    fields: fn(T) -> F,
) -> Result<Plan, HttpError> {
    let range = ask.days()?;
    Ok(series.plan(range, move |_, covered, days| entries(covered, days, fields)))
}

#[derive(Serialize)]
struct DayPrice {
    value: String,
}

/// `ethdailyprice`.
pub(super) fn daily_price(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let range = ask.days()?;
    Ok(Plan::scan(move |snapshot| {
        let (covered, days) = prices::by_day(snapshot, range)?;
        entries(covered, days, |(native, _)| DayPrice {
            value: native.map(|usd| usd.to_string()).unwrap_or_default(),
        })
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewAddresses {
    new_address_count: u64,
}

/// `dailynewaddress`.
pub(super) fn new_addresses(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let range = ask.days()?;
    Ok(Plan::point(move |snapshot| {
        let (covered, days) = days::new_addresses(snapshot, range)?;
        entries(covered, days, |new_address_count| NewAddresses {
            new_address_count,
        })
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Transactions {
    transaction_count: u64,
}

/// `dailytx`.
pub(super) fn transactions(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, TRANSACTIONS, |transaction_count| Transactions {
        transaction_count,
    })
}

#[derive(Serialize)]
struct Fees {
    #[serde(rename = "transactionFee_Eth")]
    paid: String,
}

/// `dailytxnfee`.
pub(super) fn fees(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, FEES, |(paid, _)| Fees { paid })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Utilization {
    network_utilization: String,
}

/// `dailynetutilization`: a fraction of 1, where the specification's S7 has percent.
pub(super) fn utilization(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, UTILIZATION, |percent| Utilization {
        network_utilization: percent.as_deref().map(fraction).unwrap_or_default(),
    })
}

/// Percent with two decimals as a fraction with four.
fn fraction(percent: &str) -> String {
    let digits: String = percent.chars().filter(char::is_ascii_digit).collect();
    let digits = format!("{digits:0>5}");
    let (whole, rest) = digits.split_at(digits.len() - 4);
    format!("{whole}.{rest}")
}

#[derive(Serialize)]
struct Size {
    #[serde(rename = "blockSize_bytes")]
    bytes: u64,
}

/// `dailyavgblocksize`.
pub(super) fn size(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, SIZE, |bytes| Size {
        bytes: bytes.unwrap_or(0),
    })
}

#[derive(Serialize)]
struct Blocks {
    #[serde(rename = "blockCount")]
    count: u64,
    #[serde(rename = "blockRewards_Eth")]
    rewards: String,
}

/// `dailyblkcount`.
pub(super) fn blocks(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, BLOCKS, |(count, rewards)| Blocks { count, rewards })
}

#[derive(Serialize)]
struct Rewards {
    #[serde(rename = "blockRewards_Eth")]
    rewards: String,
}

/// `dailyblockrewards`.
pub(super) fn rewards(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, REWARDS, |rewards| Rewards { rewards })
}

#[derive(Serialize)]
struct Uncles {
    #[serde(rename = "uncleBlockCount")]
    count: u64,
    #[serde(rename = "uncleBlockRewards_Eth")]
    rewards: String,
}

/// `dailyuncleblkcount`.
pub(super) fn uncles(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, UNCLES, |(count, rewards)| Uncles { count, rewards })
}

#[derive(Serialize)]
struct BlockTime {
    #[serde(rename = "blockTime_sec")]
    seconds: String,
}

/// `dailyavgblocktime`.
pub(super) fn block_time(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, BLOCK_TIME, |seconds| BlockTime {
        seconds: seconds.unwrap_or_default(),
    })
}

#[derive(Serialize)]
struct GasPrice {
    #[serde(rename = "avgGasPrice_Wei")]
    wei: String,
}

fn text(amount: Option<U256>) -> String {
    amount.map(|amount| amount.to_string()).unwrap_or_default()
}

/// `dailyavggasprice`.
pub(super) fn gas_price(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, GAS_PRICE_WEI, |wei| GasPrice { wei: text(wei) })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GasUsed {
    gas_used: String,
}

/// `dailygasused`.
pub(super) fn gas_used(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, GAS, |(used, _)| GasUsed {
        gas_used: used.to_string(),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GasLimit {
    gas_limit: String,
}

/// `dailyavggaslimit`.
pub(super) fn gas_limit(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    series(ask, GAS, |(_, limit)| GasLimit {
        gas_limit: text(limit),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_keep_every_digit() {
        for (percent, expected) in [
            ("0.00", "0.0000"),
            ("0.01", "0.0001"),
            ("50.71", "0.5071"),
            ("100.00", "1.0000"),
        ] {
            assert_eq!(fraction(percent), expected);
        }
    }
}
