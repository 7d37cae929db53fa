//! From layout 7 to 8: rows of top calls without what their transactions' rows say.
//!
//! Layout 7 kept sender, callee, value and call data of a transaction twice, in its own row and in that of its top call. Units
//! of frames hold more rows without that, so those of a block are cut anew, as a store that is filled now has them.

use std::path::Path;
use std::sync::Arc;

use rocksdb::{DB, WriteBatch, WriteOptions};

use super::schema::Table;
use super::second_standards::settled;
use super::view::family;
use super::{StoreError, Units, View};
use crate::codec::chunk::UnitBuilder;
use crate::codec::keys;
use crate::codec::value::{CallOf, FRAME_UNIT_BYTES_MAX, FrameRow, decode_bincode_transaction, encode_frame};

/// Rows are written when so many bytes of them are together.
const WRITE_BYTES: usize = 4 << 20;
/// How many blocks are done between two lines in the log.
const BLOCKS_A_LINE: u64 = 1 << 18;

/// Does it. Rows of either form are read, and a block's rows are replaced in one write: what was done before comes out the same.
pub(super) fn apply(db: &Arc<DB>, directory: &Path) -> Result<WriteBatch, StoreError> {
    let view = settled(db, directory)?;
    let frames = family(db, Table::Frames)?;
    let failed = || StoreError::rocks(Table::Frames.name());
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal(true);
    let mut write = WriteBatch::default();
    let mut reading = Reading::new(&view);
    let (first, end) = (view.identity().first_block, view.checkpoint().next_traced);
    for number in first..end.min(view.checkpoint().next_block) {
        reading.replace(number, |key, value| match value {
            Some(value) => write.put_cf(frames, key, value),
            None => write.delete_cf(frames, key),
        })?;
        if write.size_in_bytes() >= WRITE_BYTES {
            db.write_opt(std::mem::take(&mut write), &unlogged)
                .map_err(failed())?;
        }
        if (number + 1).is_multiple_of(BLOCKS_A_LINE) {
            tracing::info!(block = number, to = end, "frames cut anew");
        }
    }
    db.write_opt(write, &unlogged).map_err(failed())?;
    Ok(WriteBatch::default())
}

/// The frames of block after block, and the transactions that make the top calls.
struct Reading<'v> {
    view: &'v View,
    frames: Units<'v>,
    transactions: Units<'v>,
}

impl<'v> Reading<'v> {
    fn new(view: &'v View) -> Self {
        Self {
            view,
            frames: Units::new(view, Table::Frames),
            transactions: Units::new(view, Table::Transactions),
        }
    }

    /// Hands the units of a block to `change`, first those that go (without a value), then those that come.
    fn replace(
        &mut self,
        number: u64,
        mut change: impl FnMut(&[u8], Option<&[u8]>),
    ) -> Result<(), StoreError> {
        let (first, end) = (self.view.first_frame(number)?, self.view.first_frame(number + 1)?);
        let first_transaction = self.view.first_transaction(number)?;
        let mut units = UnitBuilder::new(number, FRAME_UNIT_BYTES_MAX);
        let mut row = Vec::with_capacity(512);
        let (mut stored, mut made) = (first, Vec::new());
        let mut put = |unit: Option<(u64, &[u8])>| {
            if let Some((count, value)) = unit {
                stored += count;
                made.push((keys::number(stored - 1), value.to_vec()));
            }
        };
        for ordinal in first..end {
            let key = keys::number(ordinal);
            let mut unit = self.frames.unit(ordinal)?;
            // A unit is named by its last row.
            if unit.last() == ordinal {
                change(&key, None);
            }
            let missing = StoreError::Missing {
                table: Table::Frames.name(),
                what: "row",
                number: ordinal,
            };
            let bytes = unit.row(ordinal)?.ok_or(missing)?.bytes();
            let frame = FrameRow::decode(bytes).map_err(StoreError::corrupt(Table::Frames.name(), &key))?;
            row.clear();
            if frame.is_top() {
                let transaction = first_transaction + u64::from(frame.transaction_index());
                let told = decode_bincode_transaction(self.transactions.row(transaction)?.bytes()).map_err(
                    StoreError::corrupt(Table::Transactions.name(), &keys::number(transaction)),
                )?;
                let call = CallOf::from(&told.transaction);
                encode_frame(&frame.with(&call), Some(&call), &mut row);
            } else {
                row.extend_from_slice(bytes);
            }
            put(units.push(&row));
        }
        put(units.finish());
        for (key, value) in made {
            change(&key, Some(&value));
        }
        Ok(())
    }
}
