//! What is not final, and what a store says of itself: undo records and tails of the blocks that may be taken off, the rows
//! about the store, and that tables and arrays end where it does.

use std::collections::HashSet;

use super::{Audit, Check, Nobody, Tally, facts, native};
use crate::codec::keys;
use crate::codec::value::{Checkpoint, Finality, Identity, Tail, Undo, Unverified};
use crate::query::QueryError;
use crate::store::{FlatArray, StoreError, Summed, Table};

/// The row about the store that each block writes anew.
const CHECKPOINT: &[u8] = b"checkpoint";

/// A row that a block wrote: the code of its table, and its key.
type Written = (u8, Vec<u8>);

pub(super) fn run(audit: &Audit<'_>) -> Check {
    let tally = audit.tally("rows of other tables", "rows", 3);
    for part in [meta, unfinal, ends] {
        if let Err(error) = part(audit, &tally) {
            tally.wrong(None, format!("cannot be read to the end: {error}"));
        }
        audit.observer.advances(1);
    }
    tally.done()
}

/// The rows about the store can be read.
fn meta(audit: &Audit<'_>, tally: &Tally<'_>) -> Result<(), QueryError> {
    let mut rows = audit.view.scan_all(Table::Meta)?;
    let mut last = None;
    while let Some((key, value)) = rows.item()? {
        let read = match key {
            b"identity" => Identity::decode(value).map(drop),
            CHECKPOINT => Checkpoint::decode(value).map(drop),
            b"final" => Finality::decode(value).map(drop),
            b"unverified" => Unverified::decode(value).map(drop),
            // Else it is how far migrations are.
            _ => {
                match Summed::of(key, value) {
                    Ok(Some(sums)) => follows(last.replace(sums), &sums, tally),
                    Ok(None) => {}
                    Err(error) => tally.wrong(None, error.to_string()),
                }
                Ok(())
            }
        };
        if let Err(corrupt) = read {
            tally.wrong(None, QueryError::Corrupt(corrupt, Table::Meta.name()).to_string());
        }
        tally.count(1);
        rows.step()?;
    }
    Ok(())
}

/// Rows of an array's sums follow each other, and none is missing.
fn follows(last: Option<Summed>, sums: &Summed, tally: &Tally<'_>) {
    let before = last.filter(|before| before.array == sums.array);
    let wanted = before.map_or(0, |before| before.row + 1);
    if sums.row != wanted {
        let (name, found) = (sums.array.name(), sums.row);
        let text = format!("the sums of `{name}.flat` have row {found} where {wanted} comes");
        tally.wrong(None, text);
    }
}

/// Each block that is not final can be taken off: it has its undo record and its tail, and no other block has any.
fn unfinal(audit: &Audit<'_>, tally: &Tally<'_>) -> Result<(), QueryError> {
    let view = &audit.view;
    let from = view.finalized().map_or(view.first_block(), |last| last + 1);
    let end = view.checkpoint().next_block;
    for table in [Table::Tail, Table::Undo] {
        let missing = |block: u64| {
            let text = format!("it is not final and has no row in {}", table.name());
            tally.wrong(Some(block), text);
        };
        let mut next = from;
        let mut rows = view.scan_all(table)?;
        while let Some((key, value)) = rows.item()? {
            let block = keys::decode_number(key).ok();
            match block.filter(|&block| block >= next && block < end) {
                Some(block) => {
                    (next..block).for_each(missing);
                    next = block + 1;
                    let fault = if table == Table::Tail {
                        tail(value)
                    } else {
                        undo(audit, block, value)?
                    };
                    if let Err(text) = fault {
                        tally.wrong(Some(block), format!("its row in {}: {text}", table.name()));
                    }
                }
                None => {
                    let key = const_hex::encode(key);
                    let text = format!("{} has a row 0x{key} of no block that is not final", table.name());
                    tally.wrong(None, text);
                }
            }
            tally.count(1);
            rows.step()?;
        }
        (next..end).for_each(missing);
    }
    Ok(())
}

/// What is wrong with a tail. What its records say is held against the block, as that of all arrays.
fn tail(value: &[u8]) -> Result<(), String> {
    let tail = Tail::decode(value).map_err(|corrupt| corrupt.to_string())?;
    let mut arrays = tail.arrays.iter().zip(FlatArray::ALL);
    let broken = arrays.find(|(bytes, array)| !bytes.len().is_multiple_of(array.width()));
    match broken {
        Some((_, array)) => Err(format!("no whole records of {}", array.name())),
        None => Ok(()),
    }
}

/// What is wrong with the undo record of a block: it leads back to the checkpoint before, and takes off the rows that the
/// block alone wrote.
fn undo(audit: &Audit<'_>, block: u64, value: &[u8]) -> Result<Result<(), String>, QueryError> {
    let undo = match Undo::decode(value) {
        Ok(undo) => undo,
        Err(corrupt) => return Ok(Err(corrupt.to_string())),
    };
    let mut taken_off: HashSet<Written> = HashSet::new();
    let mut checkpoint = None;
    let mut last: Option<(u8, &[u8])> = None;
    for (code, key, before) in &undo.rows {
        let place = (*code, key.as_slice());
        let table = Table::from_code(*code);
        if table.is_none_or(|table| [Table::Tail, Table::Undo].contains(&table)) || last > Some(place) {
            return Ok(Err("its rows are not as they are written".to_owned()));
        }
        last = Some(place);
        if place == (Table::Meta as u8, CHECKPOINT) {
            checkpoint = Some(before.as_deref());
        } else if before.is_none() {
            taken_off.insert((*code, key.clone()));
        }
    }
    if !is_before(audit, block, checkpoint)? {
        return Ok(Err("it does not lead back to the block before".to_owned()));
    }
    let mut written = own_rows(audit, block)?.into_iter();
    Ok(match written.find(|row| !taken_off.contains(row)) {
        Some((code, key)) => {
            let name = Table::from_code(code).map_or("", Table::name);
            Err(format!("{name} would keep the row 0x{}", const_hex::encode(key)))
        }
        None => Ok(()),
    })
}

/// Whether a block goes on from a checkpoint: that of the block before it, and of none where it is the first.
fn is_before(audit: &Audit<'_>, block: u64, checkpoint: Option<Option<&[u8]>>) -> Result<bool, StoreError> {
    let view = &audit.view;
    let Some(before) = block.checked_sub(1).filter(|_| block > view.first_block()) else {
        return Ok(checkpoint == Some(None));
    };
    let Some(Ok(checkpoint)) = checkpoint.flatten().map(Checkpoint::decode) else {
        return Ok(false);
    };
    let log = view.first_log(block)?;
    let (now, frames) = (view.checkpoint(), view.block_frames(block)?);
    let counts = (
        checkpoint.transactions,
        checkpoint.logs,
        checkpoint.multi_transfers,
    );
    let first = (
        view.first_transaction(block)?,
        log,
        view.first_multi_transfer(log)?,
    );
    Ok(checkpoint.next_block == block
        && checkpoint.hash == view.block(before)?.hash.0
        && counts == first
        && checkpoint.next_traced == now.next_traced.min(block)
        && checkpoint.frames == frames.map_or(now.frames, |frames| frames.first_frame)
        && checkpoint.emitters <= now.emitters
        && checkpoint.signatures <= now.signatures
        && checkpoint.tokens <= now.tokens)
}

/// Rows that a block wrote where nothing was.
fn own_rows(audit: &Audit<'_>, block: u64) -> Result<Vec<Written>, QueryError> {
    let view = &audit.view;
    let mut rows = vec![(Table::Blocks as u8, keys::number(block).to_vec())];
    // What is wrong with the block itself was told.
    let Some(bundle) = audit.reader.bundle(block)? else {
        return Ok(rows);
    };
    let coins = native::coins_of(audit, &bundle)?;
    let quiet = Tally::new("", "", &Nobody);
    let mut called_for = Vec::new();
    facts::called_for(
        audit,
        &bundle,
        coins.as_ref(),
        &mut facts::Known::default(),
        &quiet,
        &mut |table, key, _| called_for.push((table, key.to_vec())),
    )?;
    // A row of an account may have been there before the account took part.
    called_for.retain(|(table, _)| *table != Table::Accounts);
    let holders = coins.iter().flat_map(|coins| coins.accounts.keys());
    called_for.extend(holders.map(|account| (Table::Balances, keys::account_at(account, block).to_vec())));
    called_for.push((Table::Supply, keys::number(block).to_vec()));
    for (table, key) in called_for {
        if view.get(table, &key)?.is_some() {
            rows.push((table as u8, key));
        }
    }
    Ok(rows)
}

/// Tables of numbers and arrays end where the store ends, and begin where it begins.
fn ends(audit: &Audit<'_>, tally: &Tally<'_>) -> Result<(), QueryError> {
    let (view, now) = (&audit.view, audit.view.checkpoint());
    let first = view.first_block();
    for (table, first, end) in [
        (Table::Blocks, first, now.next_block),
        (Table::Transactions, 0, now.transactions),
        (Table::LogsByBlock, 0, now.logs),
        (Table::Frames, 0, now.frames),
        (Table::Supply, first, audit.native_end().max(first)),
    ] {
        let mut rows = view.scan_all(table)?;
        let is_before = rows
            .item()?
            .is_some_and(|(key, _)| key < &keys::number(first)[..]);
        let is_behind = rows.seek(&keys::number(end))?.is_some();
        if is_before || is_behind {
            let text = format!("{} has rows of what is not stored", table.name());
            tally.wrong(None, text);
        }
    }
    let (blocks, traced) = (now.next_block - first, now.next_traced - first);
    for array in FlatArray::ALL {
        let records = match array {
            FlatArray::Blocks | FlatArray::BlockEarnings => blocks,
            FlatArray::BlockFrames => traced,
            FlatArray::TransactionHashes
            | FlatArray::TransactionStatuses
            | FlatArray::TransactionSignatures => now.transactions,
            FlatArray::LogEmitters | FlatArray::LogSignatures => now.logs,
            FlatArray::Emitters => u64::from(now.emitters),
            FlatArray::Signatures => u64::from(now.signatures),
            FlatArray::Tokens => u64::from(now.tokens),
            FlatArray::MultiTransfers => now.multi_transfers,
        };
        let found = view.array_len(array);
        if found != records {
            let text = format!("the array {} has {found} records of {records}", array.name());
            tally.wrong(None, text);
        }
    }
    Ok(())
}
