//! From layout 9 to 10: lists of pairs of dense terms.
//!
//! What they hold is told by the lists of the terms and by the arrays of contracts and signatures, which are read a stretch of logs at a
//! time, as a batch of so many logs would add to them.

use std::path::Path;
use std::sync::Arc;

use rocksdb::{DB, WriteBatch, WriteOptions};

use super::batch::NO_SIGNATURE;
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
pub(super) fn apply(db: &Arc<DB>, directory: &Path) -> Result<WriteBatch, StoreError> {
    apply_by(db, directory, STRETCH)
}

fn apply_by(db: &Arc<DB>, directory: &Path, stretch: u64) -> Result<WriteBatch, StoreError> {
    let store = settled_store(db, directory)?;
    let view = store.view();
    take_off(db)?;
    let terms = view.dense_terms()?;
    let logs = view.checkpoint().logs;
    tracing::info!(terms = terms.len(), logs, "lists of pairs of dense terms");
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal(true);
    let mut write = WriteBatch::default();
    for first in (0..logs).step_by(usize::try_from(stretch).unwrap_or(usize::MAX)) {
        let end = first.saturating_add(stretch).min(logs);
        let parts = parts(&view, &terms, first, end)?;
        let parts = parts.iter().map(|(dense, postings)| DensePart {
            term: dense.0,
            since: dense.1,
            postings,
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
                if write.size_in_bytes() >= WRITE_BYTES {
                    db.write_opt(std::mem::take(&mut write), &unlogged)
                        .map_err(StoreError::rocks("database"))?;
                }
            }
            Ok(())
        })?;
        db.write_opt(std::mem::take(&mut write), &unlogged)
            .map_err(StoreError::rocks("database"))?;
        tracing::info!(log = end, of = logs, "lists of pairs written");
    }
    Ok(WriteBatch::default())
}

/// Takes lists of pairs off.
fn take_off(db: &DB) -> Result<(), StoreError> {
    let (from, to) = (
        PostingKind::Topic1LogAddress as u8,
        PostingKind::Topic2Topic3 as u8 + 1,
    );
    let mut unlogged = WriteOptions::default();
    unlogged.disable_wal(true);
    for table in [Table::Postings, Table::OpenPostings] {
        db.delete_range_cf_opt(family(db, table)?, [from], [to], &unlogged)
            .map_err(StoreError::rocks(table.name()))?;
    }
    Ok(())
}

/// A dense term and since when it is.
type Dense = (Term, u64);

/// Of each dense term that is dense in a stretch the postings there; of contracts and signatures none, for they are in arrays.
fn parts(view: &View, terms: &[Dense], first: u64, end: u64) -> Result<Vec<(Dense, Vec<u64>)>, StoreError> {
    let mut parts = Vec::with_capacity(terms.len());
    for &(term, since) in terms.iter().filter(|(_, since)| *since < end) {
        let mut postings = Vec::new();
        if term.number().is_none() {
            let mut list = PostingCursor::open(view, term, Direction::Forward)?;
            let mut next = list.seek(first.max(since))?;
            while let Some(posting) = next.filter(|&posting| posting < end) {
                postings.push(posting);
                next = list.step()?;
            }
        }
        parts.push(((term, since), postings));
    }
    Ok(parts)
}
