//! The module `gastracker`.

use serde::Serialize;

use crate::desk::amounts::{decimal, fixed, mean};
use crate::desk::answer::{Plan, Snapshot};
use crate::desk::caching::Reach;
use crate::desk::faults::query_failed;
use crate::http::HttpError;
use crate::model::{Block, Transaction, U256};

use super::ask::Ask;
use super::envelope::ok;

/// Blocks that prices are told from, and those of them whose use is told.
const BLOCKS: u64 = 20;
const RATIOS: u64 = 5;
/// Shares of the transactions that paid at most so much, percent.
const SAFE: usize = 35;
const PROPOSED: usize = 60;
const FAST: usize = 90;

#[derive(Serialize)]
struct Oracle {
    #[serde(rename = "LastBlock")]
    last_block: String,
    #[serde(rename = "SafeGasPrice")]
    safe: String,
    #[serde(rename = "ProposeGasPrice")]
    proposed: String,
    #[serde(rename = "FastGasPrice")]
    fast: String,
    #[serde(rename = "suggestBaseFee")]
    base_fee: String,
    #[serde(rename = "gasUsedRatio")]
    used: String,
}

/// `gasoracle`: the base fee of the next block (EIP-1559), and on it what 35, 60 and 90 percent of the transactions of
/// the last 20 blocks gave at most; gwei.
pub(super) fn oracle(_: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(Plan::scan(|snapshot| {
        let head = snapshot.reader.head().number;
        let lowest = snapshot.reader.first_block();
        let first = head.saturating_sub(BLOCKS - 1).max(lowest);
        let mut tips = Vec::new();
        let mut ratios = Vec::new();
        let mut base_fee = None;
        for number in first..=head {
            let block = block(snapshot, number)?;
            let fee = u128::from(block.header.base_fee_per_gas.unwrap_or(0));
            tips.extend(block.transactions.iter().filter_map(|given| tip(given, fee)));
            if number + RATIOS > head {
                ratios.push(ratio(&block));
            }
            if number == head {
                base_fee = next_base_fee(&block);
            }
        }
        tips.sort_unstable();
        let base = base_fee.unwrap_or(0);
        let price = |percent| gwei(u128::from(base) + at_percent(&tips, percent));
        let result = Oracle {
            last_block: head.to_string(),
            safe: price(SAFE),
            proposed: price(PROPOSED),
            fast: price(FAST),
            base_fee: gwei(u128::from(base)),
            used: ratios.join(","),
        };
        ok(&result, Reach::Head)
    }))
}

fn block(snapshot: &Snapshot, number: u64) -> Result<Block, HttpError> {
    let entry = snapshot.reader.block(number, true).map_err(query_failed)?;
    let entry = entry.ok_or_else(|| HttpError::internal(format!("indexed block {number} is missing")))?;
    Ok(entry.block)
}

/// What a transaction gave above the base fee, wei per gas; `None` of one that is paid in a token.
fn tip(transaction: &Transaction, base_fee: u128) -> Option<u128> {
    if Transaction::is_paid_in_token(transaction.extra.as_deref()) {
        return None;
    }
    Some(
        match (transaction.max_fee_per_gas, transaction.max_priority_fee_per_gas) {
            (Some(most), Some(tip)) => most.saturating_sub(base_fee).min(tip),
            _ => transaction.gas_price.unwrap_or(0).saturating_sub(base_fee),
        },
    )
}

/// What at least `percent` of the transactions gave at most; 0 without any.
fn at_percent(sorted: &[u128], percent: usize) -> u128 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(0)
}

/// Used over limit, nine decimals.
fn ratio(block: &Block) -> String {
    let used = U256::from(block.header.gas_used) * U256::from(1_000_000_000_u64);
    mean(used, U256::from(block.header.gas_limit)).map_or_else(|| "0".to_owned(), |ratio| fixed(ratio, 9))
}

/// The base fee of the block that follows (EIP-1559), wei; `None` on chains without one.
fn next_base_fee(block: &Block) -> Option<u64> {
    /// How far a full or an empty block moves it: an eighth.
    const DENOMINATOR: u128 = 8;
    let header = &block.header;
    let fee = header.base_fee_per_gas?;
    // Half of the limit is aimed at.
    let target = u128::from(header.gas_limit / 2);
    let (used, base) = (u128::from(header.gas_used), u128::from(fee));
    if target == 0 || used == target {
        return Some(fee);
    }
    let by = base * used.abs_diff(target) / target / DENOMINATOR;
    let next = if used > target {
        base + by.max(1)
    } else {
        base.saturating_sub(by)
    };
    Some(u64::try_from(next).unwrap_or(u64::MAX))
}

fn gwei(wei: u128) -> String {
    decimal(U256::from(wei), 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percents_of_what_was_given() {
        assert_eq!(at_percent(&[], 35), 0);
        assert_eq!(at_percent(&[7], 35), 7);
        let ten: Vec<u128> = (1..=10).collect();
        assert_eq!(
            (at_percent(&ten, 35), at_percent(&ten, 60), at_percent(&ten, 90)),
            (4, 6, 9)
        );
        assert_eq!(at_percent(&ten, 100), 10);
    }

    #[test]
    fn what_is_paid_in_a_token_gives_no_coins() {
        let mut given = Transaction {
            max_fee_per_gas: Some(150),
            max_priority_fee_per_gas: Some(30),
            ..Transaction::default()
        };
        assert_eq!(
            [0, 100, 140, 200].map(|base| tip(&given, base)),
            [30, 30, 10, 0].map(Some)
        );
        given.extra = Some(r#"{"feeCurrency":"0x0e2a3e05bc9a16f5292a6170456a710cb89c6f72"}"#.to_owned());
        assert_eq!(tip(&given, 100), None);
    }

    #[test]
    fn base_fees_move_by_an_eighth_at_most() {
        let next = |used: u64, fee: u64| {
            let mut block = Block::default();
            block.header.gas_limit = 30_000_000;
            block.header.gas_used = used;
            block.header.base_fee_per_gas = Some(fee);
            next_base_fee(&block)
        };
        // Mainnet block 15537393: 29,983,006 of 29,999,972 gas at 48,811,794,595 wei, then 54,908,963,834.
        assert_eq!(next(15_000_000, 1000), Some(1000));
        assert_eq!(next(30_000_000, 1000), Some(1125));
        assert_eq!(next(0, 1000), Some(875));
        assert_eq!(next(30_000_000, 1), Some(2));
        assert_eq!(next(0, 7), Some(7));
        assert_eq!(next_base_fee(&Block::default()), None);
    }
}
