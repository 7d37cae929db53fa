//! The two copies of the logs, and the dictionaries.

use std::ops::Range;

use super::sums::{Sums, fingerprint};
use super::{Audit, Check, Ordinals, Tally};
use crate::codec::bytes::Reader;
use crate::codec::keys::HashKind;
use crate::codec::log_row::{RunReader, decode_block_row};
use crate::codec::{Corrupt, keys};
use crate::query::QueryError;
use crate::store::{StoreError, Table, Units};

/// The copy by emitter holds the logs that the copy by block holds, and no others.
pub(super) fn run(audit: &Audit<'_>) -> Check {
    let logs = Ordinals::of(&audit.view, audit.range).map(|ordinals| ordinals.logs);
    let tally = audit.tally(
        "logs by emitter against logs by block",
        "logs",
        logs.as_ref()
            .map_or(0, |logs| logs.end.saturating_sub(logs.start)),
    );
    let walked = logs
        .map_err(QueryError::from)
        .and_then(|logs| walk(audit, logs, &tally));
    tally.ended(walked)
}

fn walk(audit: &Audit<'_>, logs: Range<u64>, tally: &Tally<'_>) -> Result<(), QueryError> {
    let view = &audit.view;
    let sums = Sums::new(audit.range);
    let mut units = Units::new(view, Table::LogsByBlock);
    for ordinal in logs {
        let row = units.row(ordinal)?;
        let (block, index) = (row.block, row.index);
        let mut body = row.reader;
        let Ok(place) = decode_block_row(&mut body) else {
            tally.wrong(Some(block), format!("log {ordinal} cannot be read"));
            continue;
        };
        let facts = view.block(block)?;
        if ordinal.checked_sub(facts.first_log) != Some(index) {
            let text = format!("log {ordinal} is called the one at place {index}");
            tally.wrong(Some(block), text);
        }
        let transaction = facts.first_transaction + u64::from(place.transaction_index);
        let hash = view.transaction_hash(transaction)?;
        let whole = (
            place.emitter,
            ordinal,
            block,
            place.transaction_index,
            hash,
            body.rest(),
        );
        sums.add(block, fingerprint(whole));
        tally.items(1);
    }
    let name = Table::LogsByEmitter.name();
    let mut scan = view.scan_all(Table::LogsByEmitter)?;
    // The emitter under the scan, and how many of its logs were seen.
    let mut list: Option<(u32, u64)> = None;
    while let Some((key, value)) = scan.item()? {
        let read = || -> Result<((u32, u64), RunReader<'_>), Corrupt> {
            Ok((keys::decode_emitter_run(key)?, RunReader::new(value)?))
        };
        let ((emitter, last), mut run) = read().map_err(|corrupt| QueryError::Corrupt(corrupt, name))?;
        let before = list
            .filter(|(of, _)| *of == emitter)
            .map_or(0, |(_, count)| count);
        if run.header().rank != before {
            let text = format!(
                "a run of {} says {} logs before it, there are {before}",
                view.emitter_address(emitter)?,
                run.header().rank
            );
            tally.wrong(Some(run.header().first_block), text);
        }
        let (mut count, mut ends) = (0, None);
        while let Some((row, body)) = run
            .next_row()
            .map_err(|corrupt| QueryError::Corrupt(corrupt, name))?
        {
            count += 1;
            let first = ends.map_or((row.ordinal, row.block), |(first, _)| first);
            ends = Some((first, (row.ordinal, row.block, row.transaction_index)));
            let hash = row.transaction_hash;
            let whole = (
                emitter,
                row.ordinal,
                row.block,
                row.transaction_index,
                hash,
                body.rest(),
            );
            sums.take(row.block, fingerprint(whole));
        }
        let said = run.header();
        let stated = (
            (said.first_ordinal, said.first_block),
            (said.last_ordinal, said.last_block, said.last_transaction_index),
        );
        let open = [keys::OPEN, keys::OPEN_RUN].contains(&last);
        if ends != Some(stated) || !(open || last == said.last_ordinal) {
            let text = format!("a run of {} is not as it says", view.emitter_address(emitter)?);
            tally.wrong(Some(said.first_block), text);
        }
        list = Some((emitter, before + count));
        scan.step()?;
    }
    for block in sums.unbalanced() {
        tally.wrong(Some(block), "its logs by emitter are not its logs by block");
    }
    Ok(())
}

/// Ids and what they stand for lead to each other; hashes lead to what has them, and nothing else is there.
pub(super) fn dictionaries(audit: &Audit<'_>) -> Check {
    let (view, checkpoint) = (&audit.view, audit.view.checkpoint());
    let hashes = checkpoint.transactions + checkpoint.next_block - view.first_block();
    let given = [checkpoint.emitters, checkpoint.signatures, checkpoint.tokens];
    let ids: u64 = given.map(u64::from).iter().sum();
    let tally = audit.tally("dictionaries and hashes", "entries", ids + hashes);
    let walked = walk_dictionaries(audit, hashes, &tally);
    tally.ended(walked)
}

fn walk_dictionaries(audit: &Audit<'_>, hashes: u64, tally: &Tally<'_>) -> Result<(), QueryError> {
    let view = &audit.view;
    let (emitters, signatures) = (view.checkpoint().emitters, view.checkpoint().signatures);
    let tokens = view.checkpoint().tokens;
    for id in 0..emitters {
        let found = view
            .emitter_address(id)
            .and_then(|address| view.emitter(&address));
        report(tally, id, "emitter", found);
    }
    for id in 0..signatures {
        let found = view.signature_topic(id).and_then(|topic| view.signature(&topic));
        report(tally, id, "signature", found);
    }
    for id in 0..tokens {
        let found = view.token_address(id).and_then(|address| view.token(&address));
        report(tally, id, "token", found);
    }
    for (table, ids) in [
        (Table::Emitters, emitters),
        (Table::Signatures, signatures),
        (Table::Tokens, tokens),
    ] {
        let mut rows = 0u32;
        let mut scan = view.scan_all(table)?;
        while scan.item()?.is_some() {
            rows += 1;
            scan.step()?;
        }
        if rows != ids {
            let text = format!("{} holds {rows} rows for {ids} ids", table.name());
            tally.wrong(None, text);
        }
    }
    let found = hash_rows(audit, tally)?;
    if found != hashes {
        let text = format!("there are {found} hashes of {hashes} blocks and transactions");
        tally.wrong(None, text);
    }
    Ok(())
}

/// Checks that every number in a row of hashes has that hash; answers how many there are.
fn hash_rows(audit: &Audit<'_>, tally: &Tally<'_>) -> Result<u64, QueryError> {
    let view = &audit.view;
    let mut found = 0;
    let mut scan = view.scan_all(Table::Hashes)?;
    while let Some((key, value)) = scan.item()? {
        let mut numbers = Reader::new(value, "hash row");
        let of_blocks = key.first() == Some(&(HashKind::Block as u8));
        while !numbers.is_empty() {
            let hash = numbers.varint().ok().and_then(|number| {
                let hash = if of_blocks {
                    view.block(number).map(|block| block.hash)
                } else {
                    view.transaction_hash(number)
                };
                hash.ok()
            });
            found += 1;
            tally.items(1);
            if hash.is_none_or(|hash| key.get(1..) != hash.get(..8)) {
                let text = format!(
                    "the row of hashes 0x{} names what has another",
                    const_hex::encode(key)
                );
                tally.wrong(None, text);
                break;
            }
        }
        scan.step()?;
    }
    Ok(found)
}

fn report(tally: &Tally<'_>, id: u32, what: &str, found: Result<Option<u32>, StoreError>) {
    tally.items(1);
    match found {
        Ok(found) if found == Some(id) => {}
        Ok(_) => tally.wrong(None, format!("{what} {id} is not found by what it stands for")),
        Err(error) => tally.wrong(None, error.to_string()),
    }
}
