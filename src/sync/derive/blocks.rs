//! The block row, what its fee recipient earned, and the list of its fee recipient.

use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::value::{FeeRow, encode_block};
use crate::model::Bundle;
use crate::store::{Batch, BlockEarnings, StoreError, Table};

pub(super) fn derive(bundle: &Bundle, batch: &mut Batch) -> Result<(), StoreError> {
    let block = &bundle.block;
    let number = block.number();
    batch.begin_block(number, block.hash, block.header.timestamp, &earnings(bundle)?)?;
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

fn earnings(bundle: &Bundle) -> Result<BlockEarnings, StoreError> {
    let header = &bundle.block.header;
    let tip = |(transaction, receipt)| FeeRow::new(transaction, receipt).tip(header.base_fee_per_gas);
    let pairs = bundle.block.transactions.iter().zip(&bundle.receipts);
    let tips = pairs.map(tip).fold(0, u128::saturating_add);
    let uncles = u16::try_from(bundle.block.uncles.len());
    Ok(BlockEarnings {
        tips,
        uncles: uncles.map_err(|_| StoreError::Overflow("number of uncles"))?,
        has_difficulty: !header.difficulty.is_zero(),
    })
}
