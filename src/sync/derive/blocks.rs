//! The block row, and the list of its fee recipient.

use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::value::encode_block;
use crate::model::Block;
use crate::store::{Batch, StoreError, Table};

pub(super) fn derive(block: &Block, batch: &mut Batch) -> Result<(), StoreError> {
    let number = block.number();
    batch.begin_block(number, block.hash, block.header.timestamp)?;
    batch.row(Table::Blocks, &keys::number(number), encode_block(block));
    // Nobody mined block 0 (answers.md section 8).
    if number > 0 {
        batch.posting(
            Term::account(PostingKind::AccountMined, &block.header.beneficiary),
            number,
        );
    }
    Ok(())
}
