//! The block row, what its fee recipient earned, what its day gains, and the list of its fee recipient.

use super::days;
use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::value::{DayRow, encode_block};
use crate::model::{Block, Bundle, Day};
use crate::store::{Batch, BlockEarnings, StoreError, Table};

pub(super) fn derive(bundle: &Bundle, batch: &mut Batch) -> Result<(), StoreError> {
    let block = &bundle.block;
    let (number, timestamp) = (block.number(), block.header.timestamp);
    let sums = days::of_block(bundle);
    batch.begin_block(number, block.hash, timestamp, &earnings(block, &sums)?)?;
    batch.add_to_day(Day::of(timestamp), &sums);
    batch.row(Table::Blocks, &keys::number(number), &encode_block(block))?;
    // Nobody mined block 0 (answers.md section 8).
    if number > 0 {
        batch.posting(
            Term::account(PostingKind::AccountMined, &block.header.beneficiary),
            number,
        );
    }
    Ok(())
}

pub(super) fn earnings(block: &Block, sums: &DayRow) -> Result<BlockEarnings, StoreError> {
    let uncles = u16::try_from(block.uncles.len());
    Ok(BlockEarnings {
        tips: sums.tips.saturating_to(),
        uncles: uncles.map_err(|_| StoreError::Overflow("number of uncles"))?,
        has_difficulty: !block.header.difficulty.is_zero(),
    })
}
