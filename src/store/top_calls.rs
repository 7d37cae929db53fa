//! From layout 7 to 8: rows of top calls without what their transactions' rows say.
//!
//! Layout 7 kept sender, callee, value and call data of a transaction twice, in its own row and in that of its top call. Units
//! of frames hold more rows without that, so those of a block are cut anew, as a store that is filled now has them.

use std::sync::Arc;

use rocksdb::{DB, WriteBatch};

use super::open::OpenOptions;
use super::recut::recut;
use super::schema::Table;
use super::second_standards::settled_store;
use super::view::family;
use super::{StoreError, Units};
use crate::codec::keys;
use crate::codec::value::{CallOf, FRAME_UNIT_BYTES_MAX, FrameRow, decode_bincode_transaction, encode_frame};

/// Rows are written when so many bytes of them are together.
const WRITE_BYTES: usize = 4 << 20;
/// How many blocks are done between two lines in the log.
const BLOCKS_A_LINE: u64 = 1 << 18;

/// Does it. Rows of either form are read, and a block's rows are replaced in one write: what was done before comes out the same.
pub(super) fn apply(db: &Arc<DB>, options: &OpenOptions) -> Result<WriteBatch, StoreError> {
    let store = settled_store(db, options)?;
    let view = store.view();
    let frames = family(db, Table::Frames)?;
    let mut write = WriteBatch::default();
    let mut stored = Units::new(&view, Table::Frames);
    let mut transactions = Units::new(&view, Table::Transactions);
    let (first, end) = (view.identity().first_block, view.checkpoint().next_traced);
    for number in first..end.min(view.checkpoint().next_block) {
        let rows = view.first_frame(number)?..view.first_frame(number + 1)?;
        let first_transaction = view.first_transaction(number)?;
        recut(
            &mut stored,
            (number, rows),
            FRAME_UNIT_BYTES_MAX,
            (&mut write, frames),
            |ordinal, bytes, row| {
                let frame = FrameRow::decode(bytes)
                    .map_err(StoreError::corrupt(Table::Frames.name(), &keys::number(ordinal)))?;
                if frame.is_top() {
                    let transaction = first_transaction + u64::from(frame.transaction_index());
                    let told = decode_bincode_transaction(transactions.row(transaction)?.bytes()).map_err(
                        StoreError::corrupt(Table::Transactions.name(), &keys::number(transaction)),
                    )?;
                    let call = CallOf::from(&told.transaction);
                    encode_frame(&frame.with(&call), Some(&call), row);
                } else {
                    row.extend_from_slice(bytes);
                }
                Ok(())
            },
        )?;
        store.write_unlogged(&mut write, WRITE_BYTES)?;
        if (number + 1).is_multiple_of(BLOCKS_A_LINE) {
            tracing::info!(block = number, to = end, "frames cut anew");
        }
    }
    store.write_unlogged(&mut write, 0)?;
    Ok(WriteBatch::default())
}
