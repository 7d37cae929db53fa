//! From layout 9 to 10: lists of pairs of dense terms.
//!
//! What they hold is told by the lists of the terms and by the arrays of contracts and signatures, which are read a stretch of logs at a
//! time, as a batch of so many logs would add to them.

use std::sync::Arc;

use rocksdb::{DB, WriteBatch, WriteOptions};

use super::batch::NO_SIGNATURE;
use super::open::OpenOptions;
use super::pairs::{DensePart, Pairs};
use super::render::render_postings;
use super::schema::Table;
use super::second_standards::settled_store;
use super::view::family;
use super::{Direction, PostingCursor, StoreError, View};
use crate::codec::keys::{PostingKind, Term};

/// Logs of a stretch: their postings of dense terms take some 100 MB of memory, and what they become half as much again.
const STRETCH: u64 = 1 << 22;
/// Rows are written when so many bytes of them are together.
const WRITE_BYTES: usize = 16 << 20;
/// Lists that are rendered at a time.
const LISTS_AT_ONCE: usize = 4_096;

/// Does it. Rows that an interrupted run left are taken off first.
pub(super) fn apply(db: &Arc<DB>, options: &OpenOptions) -> Result<WriteBatch, StoreError> {
    apply_by(db, options, STRETCH)
}

fn apply_by(db: &Arc<DB>, options: &OpenOptions, stretch: u64) -> Result<WriteBatch, StoreError> {
    let store = settled_store(db, options)?;
    let view = store.view();
    take_off(db, &view)?;
    let terms = view.dense_terms()?.into_iter();
    let mut terms: Vec<Dense> = terms
        .map(|(term, since)| Dense {
            term,
            since,
            next: since,
            postings: Vec::new(),
        })
        .collect();
    let logs = view.checkpoint().logs;
    tracing::info!(terms = terms.len(), logs, "lists of pairs of dense terms");
    let mut write = WriteBatch::default();
    for first in (0..logs).step_by(usize::try_from(stretch).unwrap_or(usize::MAX)) {
        let end = first.saturating_add(stretch).min(logs);
        for dense in &mut terms {
            dense.go_on(&view, end)?;
        }
        let parts = terms.iter().filter(|dense| dense.since < end);
        let parts = parts.map(|dense| DensePart {
            term: dense.term,
            since: dense.since,
            postings: &dense.postings,
        });
        let pairs = Pairs::new((first, (end - first) as usize), parts);
        let ids = |log| {
            let signature = view.log_signature(log)?.unwrap_or(NO_SIGNATURE);
            Ok((view.log_emitter(log)?, signature))
        };
        pairs.lists(ids, |lists| {
            for group in lists.groups(LISTS_AT_ONCE) {
                render_postings(&store, group, &mut Vec::new(), |table, key, value, _| {
                    write.put_cf(family(db, table)?, key, value);
                    Ok(())
                })?;
                // The lists of a group are looked up before any of them is written, and no two groups of a stretch share one.
                store.write_unlogged(&mut write, WRITE_BYTES)?;
            }
            Ok(())
        })?;
        store.write_unlogged(&mut write, 0)?;
        tracing::info!(log = end, of = logs, "lists of pairs written");
    }
    Ok(WriteBatch::default())
}

/// Takes lists of pairs off, where there are some.
fn take_off(db: &DB, view: &View) -> Result<(), StoreError> {
    let from = PostingKind::Topic1LogAddress as u8;
    let to = PostingKind::Topic2Topic3 as u8 + 1;
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal(true);
    for table in [Table::Postings, Table::OpenPostings] {
        if view.scan_all(table)?.seek(&[from])?.is_some() {
            db.delete_range_cf_opt(family(db, table)?, [from], [to], &unlogged)
                .map_err(StoreError::rocks(table.name()))?;
        }
    }
    Ok(())
}

/// A dense term and since when it is.
struct Dense {
    term: Term,
    since: u64,
    /// No posting that was not taken comes before it.
    next: u64,
    /// Those in a stretch.
    postings: Vec<u64>,
}

impl Dense {
    /// Takes the postings before `end` that were not taken yet; of contracts and signatures none, for they are in arrays. A list that has none
    /// is not opened.
    fn go_on(&mut self, view: &View, end: u64) -> Result<(), StoreError> {
        self.postings.clear();
        if end <= self.next || self.term.number().is_some() {
            return Ok(());
        }
        let mut list = PostingCursor::open(view, self.term, Direction::Forward)?;
        let mut next = list.seek(self.next)?;
        while let Some(posting) = next.filter(|&posting| posting < end) {
            self.postings.push(posting);
            next = list.step()?;
        }
        self.next = next.unwrap_or(u64::MAX);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::codec::log_row::RunRow;
    use crate::model::{Address, B256};
    use crate::store::{BlockEarnings, Store};

    /// The first logs of a chain in which everything is dense sooner or later.
    fn fill(directory: &Path, logs: u64) -> Arc<Store> {
        let store = Store::open_or_create(&OpenOptions::new(directory), 1, B256::ZERO, Some(1)).unwrap();
        let mut writer = store.writer().unwrap();
        let topic = |value: u64| B256::with_last_byte(value as u8);
        let mut batch = writer.batch();
        for log in 0..logs {
            if log % 1_000 == 0 {
                let earnings = BlockEarnings::default();
                batch
                    .begin_block(1 + log / 1_000, topic(log / 1_000), 1, &earnings)
                    .unwrap();
            }
            // Which of them a log has is anybody's guess, and the first is in half of them.
            let guess = (log ^ log >> 7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            let pick = |shift: u32| u64::from((guess >> shift).trailing_zeros()).min(2);
            let emitter = batch.emitter(&Address::with_last_byte(pick(0) as u8)).unwrap();
            let signature = batch.signature(&topic(pick(3))).unwrap();
            let row = RunRow {
                ordinal: log,
                block: 1 + log / 1_000,
                transaction_index: 0,
                transaction_hash: B256::ZERO,
            };
            batch.log(emitter, Some(signature), &row, &[]);
            batch.posting(Term::log_address(emitter), log);
            batch.posting(Term::topic0(signature), log);
            for position in 1..4 {
                let value = topic(pick(4 * position as u32 + 3));
                batch.posting(Term::topic(position, &value).unwrap(), log);
            }
        }
        writer.commit_final(batch).unwrap();
        drop(writer);
        store
    }

    #[test]
    fn a_migration_leaves_the_same_bytes_by_whatever_stretches_and_over_what_one_left() {
        let home = tempfile::tempdir().unwrap();
        let store = fill(home.path(), 150_000);
        let wanted = store.view().digest().unwrap();
        let lists = || {
            let mut lists = 0;
            let view = store.view();
            let mut pieces = view.scan_all(Table::OpenPostings).unwrap();
            pieces.seek(&[PostingKind::Topic1LogAddress as u8]).unwrap();
            while pieces.item().unwrap().is_some() {
                lists += 1;
                pieces.step().unwrap();
            }
            lists
        };
        assert!(lists() > 30, "{} lists", lists());
        let options = OpenOptions::new(home.path());
        for stretch in [7_001, 64_000, STRETCH] {
            drop(apply_by(&store.db, &options, stretch).unwrap());
            // Another view of the same tables.
            let migrated = settled_store(&store.db, &options).unwrap();
            assert_eq!(migrated.view().digest().unwrap(), wanted, "{stretch}");
        }
    }
}
