//! Call frames, the lists of internal transactions, and contract creations.

use super::narrow;
use crate::codec::chunk::UnitBuilder;
use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::transaction_row::TransactionSlice;
use crate::codec::value::{CallOf, Creation, FRAME_UNIT_BYTES_MAX, FrameSlice, encode_frame};
use crate::model::{Block, TransactionTrace};
use crate::store::{Batch, StoreError, Table, Units, View};

/// Pushes the frames of a block whose transactions begin at ordinal `first_transaction`, and are stored already where there is a view:
/// what their rows say is left out then, which another node may have told.
pub(super) fn derive(
    block: &Block,
    traces: &[TransactionTrace],
    first_transaction: u64,
    view: Option<&View>,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let count: usize = traces.iter().map(|trace| trace.frames.len()).sum();
    let first = batch.frames(count as u64);
    let mut units = UnitBuilder::new(block.number(), FRAME_UNIT_BYTES_MAX);
    let (mut ordinal, mut stored, mut internal) = (first, first, 0u32);
    let mut put = |batch: &mut Batch, unit: Option<(u64, &[u8])>| {
        if let Some((count, value)) = unit {
            stored += count;
            batch.row(Table::Frames, &keys::number(stored - 1), value)?;
        }
        Ok::<_, StoreError>(())
    };
    let mut transactions = view.map(|view| Units::new(view, Table::Transactions));
    let (mut row, mut data) = (Vec::with_capacity(512), Vec::new());
    for (index, trace) in traces.iter().enumerate() {
        let transaction_index = narrow(index, "transaction index")?;
        let call = match &mut transactions {
            None => block.transactions.get(index).map(CallOf::from),
            Some(transactions) => {
                let ordinal = first_transaction + index as u64;
                let row = TransactionSlice::decode(transactions.row(ordinal)?.bytes());
                let call = row.and_then(|row| row.call(&mut data));
                Some(call.map_err(StoreError::corrupt(
                    Table::Transactions.name(),
                    &keys::number(ordinal),
                ))?)
            }
        };
        for frame in &trace.frames {
            row.clear();
            encode_frame(&FrameSlice::of(transaction_index, frame), call.as_ref(), &mut row);
            put(batch, units.push(&row))?;
            // The top call is the transaction itself and is in none of the lists.
            if !frame.path.is_empty() {
                let of_default_set = frame.is_internal_transaction();
                internal += u32::from(of_default_set);
                let (all, of_account) = if of_default_set {
                    (PostingKind::Internal, PostingKind::AccountInternal)
                } else {
                    (PostingKind::Calls, PostingKind::AccountCalls)
                };
                batch.posting(Term::whole(all), ordinal);
                // What is undone made nothing: no field of the item names it.
                let to = frame.to.filter(|_| !(frame.reverted && frame.kind.is_creation()));
                for account in [Some(frame.from), to].into_iter().flatten() {
                    batch.posting(Term::account(of_account, &account), ordinal);
                }
            }
            if frame.kind.is_creation()
                && !frame.reverted
                && let Some(created) = frame.to
            {
                let nested = !frame.path.is_empty();
                let creation = Creation {
                    frame: nested.then_some(ordinal),
                    factory: nested.then(|| frame.from.into_array()),
                };
                let key = keys::account_at(&created, first_transaction + index as u64);
                batch.row(Table::Creations, &key, &creation.encode())?;
            }
            ordinal += 1;
        }
    }
    put(batch, units.finish())?;
    batch.traced(first, internal);
    Ok(())
}
