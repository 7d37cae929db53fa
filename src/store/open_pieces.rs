//! From layout 5 to 6: the end of each list of postings becomes an open chunk and an open piece.
//!
//! In layout 5 a list ended in an open chunk of 1 to 1,024 postings. What overwrote it stands in the undo records of
//! blocks that are not final, so those blocks are taken off first.

use std::sync::Arc;

use rocksdb::{DB, DBPinnableSlice, IteratorMode, ReadOptions, WriteBatch, WriteOptions};

use super::StoreError;
use super::open::{OpenOptions, Store};
use super::pen::taken_off;
use super::schema::Table;
use super::second_standards::settled_store;
use super::view::family;
use crate::codec::keys::{self, Term};
use crate::codec::open_postings::Cut;
use crate::codec::posting;

/// Rows are written when so many bytes of them are together.
const WRITE_BYTES: usize = 4 << 20;
/// How many lists are moved between two lines in the log.
const LISTS_A_LINE: u64 = 10_000_000;

/// A key and its value.
type Row = (Box<[u8]>, Box<[u8]>);

/// Does it. What was moved already is known by its piece.
pub(super) fn apply(db: &Arc<DB>, options: &OpenOptions) -> Result<WriteBatch, StoreError> {
    move_ends(&*settled_store(db, options)?)?;
    Ok(WriteBatch::default())
}

/// Takes the blocks off that are not final.
pub(super) fn take_unfinal_off(db: &DB) -> Result<(), StoreError> {
    let failed = || StoreError::rocks(Table::Undo.name());
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    loop {
        let last = db.iterator_cf(family(db, Table::Undo)?, IteratorMode::End).next();
        let Some((key, _)) = last.transpose().map_err(failed())? else {
            return Ok(());
        };
        let number = keys::decode_number(&key).map_err(StoreError::corrupt(Table::Undo.name(), &key))?;
        let (write, _) = taken_off(db, number)?;
        db.write_opt(write, &synced).map_err(failed())?;
    }
}

fn move_ends(store: &Store) -> Result<(), StoreError> {
    let db = &store.db;
    let (chunks, pieces) = (Table::Postings, Table::OpenPostings);
    let (chunk_family, piece_family) = (family(db, chunks)?, family(db, pieces)?);
    let failed = || StoreError::rocks(chunks.name());
    let mut options = ReadOptions::default();
    options.set_total_order_seek(true);
    options.fill_cache(false);
    let mut write = WriteBatch::default();
    let mut postings = Vec::new();
    let mut value = Vec::new();
    // The chunk before the one that is looked at.
    let mut before: Option<Row> = None;
    let mut lists = 0u64;
    for row in db.iterator_cf_opt(chunk_family, options, IteratorMode::Start) {
        let (key, chunk) = row.map_err(failed())?;
        let corrupt = |corrupt| StoreError::corrupt(chunks.name(), &key)(corrupt);
        let (term, last) = Term::decode(&key).map_err(corrupt)?;
        let piece_key = term.piece_key();
        let is_moved = || -> Result<bool, StoreError> {
            let piece: Option<DBPinnableSlice<'_>> =
                db.get_pinned_cf(piece_family, &piece_key).map_err(failed())?;
            Ok(piece.is_some())
        };
        if last == keys::OPEN && !is_moved()? {
            let header = posting::decode(&chunk, &mut postings).map_err(corrupt)?;
            let cut = Cut::of(header.rank + header.count as u64);
            let (folded, piece) = postings.split_at(postings.len() - cut.piece.min(postings.len()));
            value.clear();
            posting::encode(header.rank + folded.len() as u64, piece, &mut value);
            write.put_cf(piece_family, &piece_key, &value);
            if !folded.is_empty() {
                value.clear();
                posting::encode(header.rank, folded, &mut value);
                write.put_cf(chunk_family, &key, &value);
            } else if header.rank == 0 {
                write.delete_cf(chunk_family, &key);
            } else if let Some((sealed_key, sealed)) = &before {
                // The last sealed chunk is open again: what follows it is in the piece.
                write.put_cf(chunk_family, &key, sealed);
                write.delete_cf(chunk_family, sealed_key);
            }
            lists += 1;
            if lists.is_multiple_of(LISTS_A_LINE) {
                tracing::info!(lists, "lists of postings moved");
            }
        }
        store.write_unlogged(&mut write, WRITE_BYTES)?;
        before = Some((key, chunk));
    }
    store.write_unlogged(&mut write, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::open_postings::OpenPostings;
    use crate::codec::posting::CHUNK_POSTINGS;
    use crate::model::B256;

    /// A list of every kind of end.
    const LENGTHS: [u64; 16] = [
        1, 63, 64, 65, 128, 1023, 1024, 1025, 1087, 1088, 1089, 2048, 2049, 2112, 2113, 5000,
    ];

    fn list(place: usize, count: u64) -> (Term, Vec<u64>) {
        (
            Term::log_address(place as u32),
            (0..count).map(|at| 10 + at * 3).collect(),
        )
    }

    fn rows(db: &DB, table: Table) -> Vec<Row> {
        let rows = db.iterator_cf(family(db, table).unwrap(), IteratorMode::Start);
        rows.map(Result::unwrap).collect()
    }

    #[test]
    fn ends_of_lists_become_what_a_fresh_store_has() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        let db = &store.db;
        let (mut chunks, mut pieces) = (Vec::new(), Vec::new());
        for (place, count) in LENGTHS.into_iter().enumerate() {
            let (term, postings) = list(place, count);
            // As layout 5 had it.
            let parts = postings.chunks(CHUNK_POSTINGS);
            for (before, part) in parts.clone().enumerate() {
                let is_last = before + 1 == parts.len();
                let last = if is_last {
                    keys::OPEN
                } else {
                    *part.last().unwrap()
                };
                let mut value = Vec::new();
                posting::encode((before * CHUNK_POSTINGS) as u64, part, &mut value);
                db.put_cf(family(db, Table::Postings).unwrap(), term.key(last), value)
                    .unwrap();
            }
            // As it is written now.
            let mut open = OpenPostings::default();
            open.extend(&postings).unwrap();
            open.chunks::<()>(|last, value| {
                chunks.push((term.key(last.unwrap_or(keys::OPEN)).into(), value.into()));
                Ok(())
            })
            .unwrap();
            pieces.push((term.piece_key().into(), Box::from(open.piece())));
        }
        // A second time it finds nothing to do.
        for _ in 0..2 {
            move_ends(&store).unwrap();
            assert_eq!(rows(db, Table::Postings), chunks);
            assert_eq!(rows(db, Table::OpenPostings), pieces);
        }
    }
}
