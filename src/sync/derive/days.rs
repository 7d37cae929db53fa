//! What a block adds to the row of its day.

use crate::codec::value::{BlockFees, DayRow, FeeRow};
use crate::model::{Bundle, U256, uncle_eighths};

/// The sums of one block. Rewards are counted and not summed: what the protocol gives follows from the chain's
/// schedule, which the operator may state later.
pub(super) fn of_block(bundle: &Bundle) -> DayRow {
    let (block, header) = (&bundle.block, &bundle.block.header);
    let mut row = DayRow {
        first_block: header.number,
        last_block: header.number,
        first_time: header.timestamp,
        last_time: header.timestamp,
        blocks: 1,
        transactions: block.transactions.len() as u64,
        size: block.size.unwrap_or(0),
        unsized_blocks: u64::from(block.size.is_none()),
        gas_used: U256::from(header.gas_used),
        gas_limit: U256::from(header.gas_limit),
        ..DayRow::default()
    };
    if header.number > 0 && !header.difficulty.is_zero() {
        row.sealed_blocks = 1;
        row.uncles = block.uncles.len() as u64;
        if block.uncle_headers.len() == block.uncles.len() {
            for uncle in &block.uncle_headers {
                if let Some(count) = row
                    .uncle_eighths
                    .get_mut(uncle_eighths(header.number, uncle.number))
                {
                    *count += 1;
                }
            }
        }
    }
    let mut fees = BlockFees::of(header);
    for (transaction, receipt) in block.transactions.iter().zip(&bundle.receipts) {
        let fee = FeeRow::new(transaction, receipt);
        let paid = fees.split(&fee);
        row.in_token += u64::from(fee.in_token);
        for (sum, more) in [
            (&mut row.gas_prices, U256::from(paid.price)),
            (&mut row.tips, U256::from(paid.tip)),
            (&mut row.base_fees_burnt, paid.base_fee_burnt),
            (&mut row.blob_fees_burnt, paid.blob_fee_burnt),
            (&mut row.fees_below, fee.below),
        ] {
            *sum = sum.saturating_add(more);
        }
    }
    row
}
