//! The flat arrays: every byte of a block's records is what its bodies call for. Their sums tell of
//! bytes that are not what was written; nothing else tells of what was written wrongly, or before there were sums.

use std::ops::Range;

use super::{Audit, Tally};
use crate::model::{Bundle, TokenEvent};
use crate::store::{FlatArray, StoreError, Table, Units, status_byte};
use crate::sync::derive;

/// The arrays and the look-ups by hash say of a block what its rows say.
pub(super) fn check(audit: &Audit<'_>, bundle: &Bundle, tally: &Tally<'_>) -> Result<(), StoreError> {
    of_block(audit, bundle, tally)?;
    of_transactions(audit, bundle, tally)?;
    of_logs(audit, bundle, tally)?;
    of_frames(audit, bundle, tally)
}

/// Units of its rows say of each where it stands, as readers take it.
fn placed(
    audit: &Audit<'_>,
    table: Table,
    number: u64,
    ordinals: Range<u64>,
    tally: &Tally<'_>,
) -> Result<(), StoreError> {
    let mut units = Units::new(&audit.view, table);
    for (ordinal, place) in ordinals.zip(0..) {
        let row = units.row(ordinal)?;
        let (block, index) = (row.block, row.index);
        if (block, index) != (number, place) {
            let name = table.name();
            tally.wrong(
                Some(number),
                format!("row {ordinal} of {name} is called number {index} of block {block}, it is {place}"),
            );
        }
    }
    Ok(())
}

/// Its hash, time and first ordinals, and what its fee recipient earned.
fn of_block(audit: &Audit<'_>, bundle: &Bundle, tally: &Tally<'_>) -> Result<(), StoreError> {
    let (view, block) = (&audit.view, &bundle.block);
    let number = block.number();
    let wrong = |what: &str| tally.wrong(Some(number), what);
    let facts = view.block(number)?;
    if facts.timestamp != block.header.timestamp {
        wrong("its time in the array is another than in its header");
    }
    let head = view.head().filter(|head| head.number == number);
    if facts.hash != block.hash || head.is_some_and(|head| head.hash != block.hash) {
        wrong("its hash in the array is another than in its row");
    }
    if view.block_number(&block.hash)? != Some(number) {
        wrong("its hash does not lead to it");
    }
    if number == view.first_block() && (facts.first_transaction, facts.first_log) != (0, 0) {
        wrong("its ordinals do not begin with 0");
    }
    if view
        .first_transaction(number + 1)?
        .checked_sub(facts.first_transaction)
        != Some(block.transactions.len() as u64)
    {
        wrong("its transactions are not as many as the ordinals say");
    }
    let mut record = Vec::with_capacity(FlatArray::BlockEarnings.width());
    derive::earnings(bundle)?.encode(&mut record);
    let place = number - view.first_block();
    if view.array_record(FlatArray::BlockEarnings, place)? != record {
        wrong("what its fee recipient earned in the array is not what its transactions paid");
    }
    Ok(())
}

/// The look-ups of its transactions by hash, and what became of them.
fn of_transactions(audit: &Audit<'_>, bundle: &Bundle, tally: &Tally<'_>) -> Result<(), StoreError> {
    let (view, number) = (&audit.view, bundle.block.number());
    let transactions = bundle.block.transactions.iter().zip(&bundle.receipts);
    for ((transaction, receipt), ordinal) in transactions.zip(view.block(number)?.first_transaction..) {
        let wrong = |what: &str| tally.wrong(Some(number), format!("{}: {what}", transaction.hash));
        if view.stored_transaction_ordinal(&transaction.hash)? != Some(ordinal) {
            wrong("the hash does not lead to its transaction");
        }
        if view.array_record(FlatArray::TransactionStatuses, ordinal)? != [status_byte(receipt.status)] {
            wrong("its status in the array differs from its receipt's");
        }
    }
    tally.count(bundle.block.transactions.len() as u64);
    let ordinals = view.first_transaction(number)?..view.first_transaction(number + 1)?;
    placed(audit, Table::Transactions, number, ordinals, tally)
}

/// Emitters and signatures of its logs, and where its ERC-1155 transfers stand.
fn of_logs(audit: &Audit<'_>, bundle: &Bundle, tally: &Tally<'_>) -> Result<(), StoreError> {
    let (view, number) = (&audit.view, bundle.block.number());
    let mut log = view.first_log(number)?;
    let mut multi = view.first_multi_transfer(log)?;
    for entry in bundle.receipts.iter().flat_map(|receipt| &receipt.logs) {
        let wrong = |what: &str| tally.wrong(Some(number), format!("log {log} has {what}"));
        if view.emitter_address(view.log_emitter(log)?)? != entry.address {
            wrong("another emitter in the array than in its row");
        }
        let topic = view.log_signature(log)?.map(|id| view.signature_topic(id));
        if topic.transpose()? != entry.topics.first().copied() {
            wrong("another signature in the array than in its row");
        }
        if let Some(TokenEvent::Multi { items, .. }) =
            TokenEvent::of(&entry.address, &entry.topics, &entry.data)
        {
            for position in (0..).take(items.len()) {
                if view.multi_transfer(multi)? != (log, position) {
                    wrong("an ERC-1155 transfer that stands elsewhere in the array");
                }
                multi += 1;
            }
        }
        log += 1;
    }
    let end = view.first_log(number + 1)?;
    if end != log {
        tally.wrong(Some(number), "its logs are not as many as the ordinals say");
    }
    let (next, all) = (view.checkpoint().next_block, view.checkpoint().multi_transfers);
    let stated = if number + 1 == next {
        all
    } else {
        view.first_multi_transfer(end)?
    };
    if stated != multi {
        let text = "its ERC-1155 transfers are not as many as the ordinals say";
        tally.wrong(Some(number), text);
    }
    Ok(())
}

/// Where its frames begin, and how many are internal transactions.
fn of_frames(audit: &Audit<'_>, bundle: &Bundle, tally: &Tally<'_>) -> Result<(), StoreError> {
    let (view, number) = (&audit.view, bundle.block.number());
    let (Some(stored), Some(traces)) = (view.block_frames(number)?, &bundle.traces) else {
        return Ok(());
    };
    let wrong = |what: &str| tally.wrong(Some(number), what);
    let frames = || traces.iter().flat_map(|trace| &trace.frames);
    if view.first_frame(number + 1)?.checked_sub(stored.first_frame) != Some(frames().count() as u64)
        || (number == view.first_block() && stored.first_frame != 0)
    {
        wrong("its frames are not as many as the ordinals say");
    }
    let internal = frames().filter(|frame| frame.is_internal_transaction()).count();
    if stored.internal_transactions as usize != internal {
        wrong("its internal transactions are not as many as the array says");
    }
    let ordinals = stored.first_frame..view.first_frame(number + 1)?;
    placed(audit, Table::Frames, number, ordinals, tally)
}
