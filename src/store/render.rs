//! A batch into the rows of one write: plain ones, hashes, posting chunks, runs, checkpoint.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use rocksdb::WriteBatch;

use super::StoreError;
use super::batch::{Batch, NO_SIGNATURE, Plain};
use super::dense::DENSE;
use super::flat::FlatArray;
use super::look_up::{Keys, LOOK_UPS, look_up};
use super::open::{CHECKPOINT, Store};
use super::pairs::{DenseTerm, Pairs};
use super::posted::{Group, Sorted};
use super::schema::Table;
use super::token_ledger::{Held, TokenTotals, prepare, render_balances, render_tokens};
use super::view::family;
use crate::codec::bytes;
use crate::codec::keys;
use crate::codec::log_row::RunBuilder;
use crate::codec::open_list::OpenList;
use crate::codec::open_postings::{OpenPostings, wants_chunk};
use crate::codec::posting;
use crate::codec::value::Undo;
use crate::machine;

/// Rows on their way into one write, with what they overwrite when that must be kept.
pub(super) struct Rows<'s> {
    pub(super) store: &'s Store,
    /// By code of the table: looking a family up by name for each row would cost more than putting it.
    families: Vec<&'s rocksdb::ColumnFamily>,
    pub(super) write: WriteBatch,
    pub(super) undo: Option<Undo>,
}

impl<'s> Rows<'s> {
    /// Takes up the plain rows of a batch; `undo` keeps what is overwritten (they overwrite nothing).
    pub(super) fn begin(store: &'s Store, plain: Plain, undo: bool) -> Result<Self, StoreError> {
        let undo = undo.then(|| Undo {
            rows: plain
                .keys
                .into_iter()
                .map(|(table, key)| (table as u8, key, None))
                .collect(),
        });
        let families = Table::ALL.iter().map(|&table| family(&store.db, table));
        Ok(Self {
            store,
            families: families.collect::<Result<_, _>>()?,
            write: plain.write,
            undo,
        })
    }

    pub(super) fn put(
        &mut self,
        table: Table,
        key: &[u8],
        value: &[u8],
        before: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        self.set(table, key, Some(value), before)
    }

    /// Puts a row, or deletes it where there is no value.
    pub(super) fn set(
        &mut self,
        table: Table,
        key: &[u8],
        value: Option<&[u8]>,
        before: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let family = self
            .families
            .get(table as usize)
            .ok_or(StoreError::Overflow("table"))?;
        match value {
            Some(value) => self.write.put_cf(family, key, value),
            None => self.write.delete_cf(family, key),
        }
        if let Some(undo) = &mut self.undo {
            undo.rows
                .push((table as u8, key.to_vec(), before.map(<[u8]>::to_vec)));
        }
        Ok(())
    }

    /// Looks up the rows under sorted keys and hands each, by position, to `each`.
    pub(super) fn look_up<K: AsRef<[u8]>>(
        &mut self,
        table: Table,
        keys: &[K],
        mut each: impl FnMut(&mut Self, usize, Option<&[u8]>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for (group, keys) in keys.chunks(LOOK_UPS).enumerate() {
            for (place, value) in look_up(self.store, table, keys)?.into_iter().enumerate() {
                each(self, group * LOOK_UPS + place, value.as_deref())?;
            }
        }
        Ok(())
    }
}

/// Terms or emitters that a thread renders at a time.
const LISTS_AT_ONCE: usize = 8 * LOOK_UPS;
/// The same in a block that is not final. A thread is begun for no less.
const LISTS_AT_ONCE_AT_THE_TIP: usize = LOOK_UPS / 4;
/// Threads that help to render many lists, at most.
const HELPERS_MAX: usize = 3;

/// Lists that a thread renders at a time.
#[derive(Clone, Copy)]
enum Lists<'b> {
    Logs(&'b [(u32, RunBuilder)]),
    Postings(Group<'b>),
    Balances(&'b [Held]),
}

/// What rendering lists tells beside their rows.
#[derive(Default)]
struct Told<'b> {
    totals: TokenTotals,
    dense: Vec<DenseTerm<'b>>,
}

impl<'b> Lists<'b> {
    fn len(&self) -> usize {
        match self {
            Self::Logs(logs) => logs.len(),
            Self::Postings(postings) => postings.len(),
            Self::Balances(balances) => balances.len(),
        }
    }

    /// Renders the rows of the lists; hands each on as table, key, value (none deletes), and value before.
    fn render(
        self,
        store: &Store,
        told: &mut Told<'b>,
        mut put: impl FnMut(Table, &[u8], Option<&[u8]>, Option<&[u8]>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Logs(logs) => render_logs(store, logs, |key, value, before| {
                put(Table::LogsByEmitter, key, Some(value), before)
            }),
            Self::Postings(postings) => {
                render_postings(store, postings, &mut told.dense, |table, key, value, before| {
                    put(table, key, Some(value), before)
                })
            }
            Self::Balances(balances) => render_balances(store, balances, &mut told.totals, put),
        }
    }
}

/// Threads that help, fewer where the system gives no more of them: all of the work is done without.
fn helpers_in<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    most: usize,
    builder: impl Fn() -> Builder,
    help: impl Fn() -> T + Copy + Send + 's,
) -> Vec<ScopedJoinHandle<'s, T>> {
    let helpers = (0..most).map_while(|_| builder().spawn_scoped(scope, help).ok());
    helpers.collect()
}

/// Renders lists, on several threads where they are many, and what `beside` does meanwhile.
fn render_lists<'b>(
    groups: &[Lists<'b>],
    rows: &mut Rows<'_>,
    beside: impl FnOnce(&mut Rows<'_>) -> Result<(), StoreError>,
) -> Result<Told<'b>, StoreError> {
    let keeps_before = rows.undo.is_some();
    let next = AtomicUsize::new(0);
    let take = || groups.get(next.fetch_add(1, Ordering::Relaxed)).copied();
    let lists: usize = groups.iter().map(Lists::len).sum();
    let helpers = machine::cores()
        .min(groups.len())
        .min(lists.div_ceil(LISTS_AT_ONCE_AT_THE_TIP))
        .saturating_sub(1)
        .min(HELPERS_MAX);
    let store = rows.store;
    let mut told = Told::default();
    std::thread::scope(|scope| {
        let help = || {
            let (mut rendered, mut told) = (Rendered::default(), Told::default());
            while let Some(lists) = take() {
                lists.render(store, &mut told, |table, key, value, before| {
                    rendered.push(table, key, value, before.filter(|_| keeps_before));
                    Ok(())
                })?;
            }
            Ok::<_, StoreError>((rendered, told))
        };
        let helpers = helpers_in(scope, helpers, Builder::new, help);
        beside(rows)?;
        while let Some(lists) = take() {
            lists.render(store, &mut told, |table, key, value, before| {
                rows.set(table, key, value, before)
            })?;
        }
        for helper in helpers {
            let (rendered, theirs) = helper
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            rendered.each(|table, key, value, before| rows.set(table, key, value, before))?;
            told.totals.add(theirs.totals);
            told.dense.extend(theirs.dense);
        }
        Ok::<_, StoreError>(())
    })?;
    Ok(told)
}

/// Turns a batch into rows: plain ones, hashes, posting chunks, runs, checkpoint.
///
/// Lists are most of the work. Where they are many other threads take part of them; where a row stands in the write
/// says nothing, for no two have the same key, nor in an undo record, which is sorted.
///
/// Plain rows are in the write already.
pub(super) fn render(batch: &mut Batch, rows: &mut Rows<'_>) -> Result<(), StoreError> {
    let before = batch.base;
    let postings = std::mem::take(&mut batch.postings).sorted();
    let mut logs: Vec<_> = std::mem::take(&mut batch.logs).into_iter().collect();
    logs.sort_unstable_by_key(|(emitter, _)| *emitter);
    let mut moves = std::mem::take(&mut batch.moves);
    let balances = prepare(&mut moves, rows)?;
    let most = if rows.undo.is_some() {
        LISTS_AT_ONCE_AT_THE_TIP
    } else {
        LISTS_AT_ONCE
    };
    let new = postings.iter().flat_map(|sorted| sorted.groups(most));
    let groups: Vec<_> = logs
        .chunks(most)
        .map(Lists::Logs)
        .chain(new.map(Lists::Postings))
        .chain(balances.chunks(most).map(Lists::Balances))
        .collect();
    let told = render_lists(&groups, rows, |rows| {
        render_hashes(std::mem::take(&mut batch.hashes), rows)?;
        batch.render_accounts(rows)?;
        batch.render_days(rows)
    })?;
    let pairs = pairs_of(batch, rows.store, &told.dense)?;
    let groups = pairs.iter().flat_map(|sorted| sorted.groups(most));
    let groups: Vec<_> = groups.map(Lists::Postings).collect();
    render_lists(&groups, rows, |_| Ok(()))?;
    render_tokens(&moves, &told.totals, rows)?;
    let first = before.next_block == rows.store.identity().first_block;
    let old = (!first).then(|| before.encode());
    rows.put(
        Table::Meta,
        CHECKPOINT,
        &batch.checkpoint.encode(),
        old.as_deref(),
    )
}

/// What a batch adds to lists of pairs.
fn pairs_of(batch: &Batch, store: &Store, dense: &[DenseTerm<'_>]) -> Result<Vec<Sorted>, StoreError> {
    if dense.is_empty() {
        return Ok(Vec::new());
    }
    let first = batch.base.logs;
    let logs = batch.checkpoint.logs - first;
    let view = store.view();
    let since = |term| {
        view.dense_since(term)?.ok_or(StoreError::Missing {
            table: Table::Postings.name(),
            what: "posting of a dense term",
            number: DENSE - 1,
        })
    };
    let parts = dense.iter().map(|dense| dense.part(since));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let pairs = Pairs::new((first, logs as usize), parts.into_iter());
    let ids = |array: FlatArray| batch.flats.get(array as usize).map_or(&[][..], Vec::as_slice);
    let (emitters, signatures) = (ids(FlatArray::LogEmitters), ids(FlatArray::LogSignatures));
    let mut lists = Vec::new();
    let of_log = |log| {
        let id = |ids: &[u8]| {
            let start = (log - first) as usize * size_of::<u32>();
            let bytes = ids.get(start..).and_then(<[u8]>::first_chunk);
            bytes.map_or(NO_SIGNATURE, |bytes| u32::from_be_bytes(*bytes))
        };
        Ok((id(emitters), id(signatures)))
    };
    pairs.lists(of_log, |new| {
        lists.push(new);
        Ok(())
    })?;
    Ok(lists)
}

/// Rows that another thread made, one after the other, in pieces: one piece would be copied as it grows.
#[derive(Default)]
struct Rendered {
    pieces: Vec<Vec<u8>>,
    /// Tables, and lengths of key, value (none deletes the row) and value before.
    rows: Vec<(Table, u32, Option<u32>, Option<u32>)>,
}

/// Memory of about this size is given back and taken again without asking the system.
const PIECE_BYTES: usize = 1 << 20;

impl Rendered {
    fn push(&mut self, table: Table, key: &[u8], value: Option<&[u8]>, before: Option<&[u8]>) {
        let parts = [Some(key), value, before];
        let bytes = parts.iter().flatten().map(|part| part.len()).sum();
        let full = self
            .pieces
            .last()
            .is_none_or(|piece| piece.capacity() - piece.len() < bytes);
        if full {
            self.pieces.push(Vec::with_capacity(bytes.max(PIECE_BYTES)));
        }
        if let Some(piece) = self.pieces.last_mut() {
            for part in parts.into_iter().flatten() {
                piece.extend_from_slice(part);
            }
        }
        // A row is far below 4 GiB: RocksDB takes no larger one.
        let length = |part: &[u8]| part.len() as u32;
        self.rows
            .push((table, length(key), value.map(length), before.map(length)));
    }

    fn each(
        &self,
        mut put: impl FnMut(Table, &[u8], Option<&[u8]>, Option<&[u8]>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut pieces = self.pieces.iter();
        let mut rest: &[u8] = &[];
        for &(table, key, value, before) in &self.rows {
            if rest.is_empty() {
                rest = pieces.next().map_or(&[], Vec::as_slice);
            }
            let mut next = |bytes: u32| {
                let (part, others) = rest.split_at(bytes as usize);
                rest = others;
                part
            };
            put(table, next(key), value.map(&mut next), before.map(&mut next))?;
        }
        Ok(())
    }
}

/// Appends new logs to the ends of their emitters' lists, in order; hands each row on as key, value, and value
/// before.
fn render_logs(
    store: &Store,
    logs: &[(u32, RunBuilder)],
    mut put: impl FnMut(&[u8], &[u8], Option<&[u8]>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let name = Table::LogsByEmitter.name();
    let family = family(&store.db, Table::LogsByEmitter)?;
    let mut value = Vec::new();
    for group in logs.chunks(LOOK_UPS) {
        let keys: Vec<_> = group
            .iter()
            .map(|(emitter, _)| keys::emitter_run(*emitter, keys::OPEN))
            .collect();
        let found = look_up(store, Table::LogsByEmitter, &keys)?;
        for (((emitter, new), open_key), found) in group.iter().zip(&keys).zip(found) {
            let corrupt = |corrupt| StoreError::corrupt(name, open_key)(corrupt);
            let run_key = keys::emitter_run(*emitter, keys::OPEN_RUN);
            let mut list = OpenList::resume(found.as_deref()).map_err(corrupt)?;
            let mut run_before: Option<Vec<u8>> = None;
            let mut rows = new.reader();
            while let Some((row, body)) = rows.next_row().map_err(corrupt)? {
                if list.wants_run(body.rest()) {
                    let stored = store
                        .db
                        .get_cf(family, run_key)
                        .map_err(StoreError::rocks(name))?;
                    let stored = run_before.insert(stored.ok_or(StoreError::Missing {
                        table: name,
                        what: "open run of emitter",
                        number: u64::from(*emitter),
                    })?);
                    list.take_up(stored)
                        .map_err(StoreError::corrupt(name, &run_key))?;
                }
                let sealed = list.push(&row, body.rest()).map_err(corrupt)?;
                if let Some((last, value)) = sealed {
                    put(&keys::emitter_run(*emitter, last), &value, None)?;
                }
            }
            if let Some(run) = list.run() {
                value.clear();
                run.encode_into(&mut value);
                put(&run_key, &value, run_before.as_deref())?;
            }
            value.clear();
            list.piece().encode_into(&mut value);
            put(open_key, &value, found.as_deref())?;
        }
    }
    Ok(())
}

fn render_hashes(mut hashes: Vec<([u8; 9], u64)>, rows: &mut Rows<'_>) -> Result<(), StoreError> {
    hashes.sort_unstable();
    let groups: Vec<&[([u8; 9], u64)]> = hashes.chunk_by(|a, b| a.0 == b.0).collect();
    let keys: Vec<[u8; 9]> = groups
        .iter()
        .filter_map(|group| group.first().map(|(key, _)| *key))
        .collect();
    rows.look_up(Table::Hashes, &keys, |rows, place, found| {
        let mut value = found.map(<[u8]>::to_vec).unwrap_or_default();
        let Some(group) = groups.get(place) else {
            return Ok(());
        };
        for (_, number) in *group {
            bytes::put_varint(&mut value, *number);
        }
        let key = keys.get(place).map_or(&[][..], |key| &key[..]);
        rows.put(Table::Hashes, key, &value, found)
    })
}

/// Renders the lists of some terms, in order; hands each row on as table, key, value, and value before. Adds those that are dense then to
/// `dense`.
pub(super) fn render_postings<'b>(
    store: &Store,
    postings: Group<'b>,
    dense: &mut Vec<DenseTerm<'b>>,
    mut put: impl FnMut(Table, &[u8], &[u8], Option<&[u8]>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (pieces, chunks) = (Table::OpenPostings, Table::Postings);
    let (mut keys, mut chunk_keys) = (Keys::default(), Keys::default());
    let mut list = OpenPostings::default();
    let mut key = Vec::with_capacity(41);
    for group in postings.parts(LOOK_UPS) {
        keys.clear();
        for (term, _) in group.iter() {
            keys.push(|key| term.write_piece_key(key));
        }
        let found = look_up(store, pieces, keys.iter())?;
        // Those that are folded into open chunks, which are looked up at once, too.
        chunk_keys.clear();
        for (((term, new), key), piece) in group.iter().zip(keys.iter()).zip(&found) {
            if let Some(piece) = piece {
                let header = posting::header(piece).map_err(StoreError::corrupt(pieces.name(), key))?;
                if wants_chunk(header.rank, header.count, new.len()) {
                    chunk_keys.push(|key| term.write_key(keys::OPEN, key));
                }
            }
        }
        let found_chunks = look_up(store, chunks, chunk_keys.iter())?;
        let mut found_chunks = chunk_keys.iter().zip(found_chunks);
        for (((term, new), piece_key), piece) in group.iter().zip(keys.iter()).zip(found) {
            let corrupt = |corrupt| StoreError::corrupt(pieces.name(), piece_key)(corrupt);
            list.resume(piece.as_deref()).map_err(corrupt)?;
            dense.extend(DenseTerm::of(term, list.count(), new));
            let mut chunk = None;
            if list.wants_chunk(new.len())
                && let Some((chunk_key, Some(stored))) = found_chunks.next()
            {
                list.take_up(&stored)
                    .map_err(StoreError::corrupt(chunks.name(), chunk_key))?;
                chunk = Some(stored);
            }
            list.extend(new).map_err(corrupt)?;
            list.chunks(|last, value| {
                key.clear();
                term.write_key(last.unwrap_or(keys::OPEN), &mut key);
                let before = chunk.as_deref().filter(|_| last.is_none());
                put(chunks, &key, value, before)
            })?;
            put(pieces, piece_key, list.piece(), piece.as_deref())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_cannot_be_had_is_done_without() {
        // No system has room for such a stack.
        let large = || Builder::new().stack_size(1 << 60);
        let joined = |builder: fn() -> Builder| {
            std::thread::scope(|scope| {
                let helpers = helpers_in(scope, 3, builder, || 7);
                let told = helpers.into_iter().map(|helper| helper.join().unwrap());
                told.sum::<i32>()
            })
        };
        assert_eq!((joined(large), joined(Builder::new)), (0, 21));
    }
}
