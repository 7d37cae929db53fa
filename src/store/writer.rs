//! The one writer: whole blocks in, unfinal blocks out again, finality forward.
//!
//! Final blocks (backfill) are written without RocksDB's log and reach the disk by atomic flushes of all
//! tables, so that a crash leaves a prefix of the batches. Blocks that are not final are written one by
//! one with the log synced, each with an undo record. The two never mix: before the first logged write
//! after unlogged ones, everything is flushed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rocksdb::{FlushOptions, ReadOptions, WriteBatch, WriteOptions};

use super::StoreError;
use super::batch::{Batch, Dictionary, Postings};
use super::flat::Flats;
use super::open::{CHECKPOINT, FINALITY, Store, load_tail};
use super::schema::Table;
use super::view::{View, family};
use crate::clock;
use crate::codec::keys::{self, Term};
use crate::codec::posting::{self, CHUNK_POSTINGS};
use crate::codec::value::{Checkpoint, Finality, Tail, Undo};
use crate::codec::{Corrupt, bytes};

/// Open chunks looked up at a time: enough for RocksDB to sort and share block reads.
const LOOK_UPS: usize = 1024;

/// A crash loses no more than the unlogged writes of this span: a slow backfill fills memtables slowly.
const UNLOGGED_AGE_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct State {
    pub(super) flats: Flats,
    pub(super) checkpoint: Checkpoint,
    pub(super) finality: Finality,
    /// Since when there are writes that are not in RocksDB's log and not flushed by us. Kept here, not in
    /// the writer: a writer that could not flush leaves it to the next one.
    pub(super) unlogged: Option<Instant>,
}

/// The one writer of a store; gives its place back when dropped.
#[derive(Debug)]
pub struct Writer {
    store: Arc<Store>,
    state: Option<State>,
    dictionary: Dictionary,
}

/// Rows on their way into one write, with what they overwrite when that must be kept.
struct Rows<'s> {
    store: &'s Store,
    write: WriteBatch,
    undo: Option<Undo>,
}

impl Rows<'_> {
    fn put(
        &mut self,
        table: Table,
        key: &[u8],
        value: &[u8],
        before: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        self.write.put_cf(family(&self.store.db, table)?, key, value);
        if let Some(undo) = &mut self.undo {
            undo.rows
                .push((table as u8, key.to_vec(), before.map(<[u8]>::to_vec)));
        }
        Ok(())
    }

    /// Looks up the rows under sorted keys and hands each, by position, to `each`.
    fn look_up<K: AsRef<[u8]>>(
        &mut self,
        table: Table,
        keys: &[K],
        mut each: impl FnMut(&mut Self, usize, Option<&[u8]>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let db = &self.store.db;
        let family = family(db, table)?;
        let options = ReadOptions::default();
        for (group, keys) in keys.chunks(LOOK_UPS).enumerate() {
            let found = db.batched_multi_get_cf_opt(family, keys.iter().map(AsRef::as_ref), true, &options);
            for (place, value) in found.into_iter().enumerate() {
                let value = value.map_err(StoreError::rocks(table.name()))?;
                each(self, group * LOOK_UPS + place, value.as_deref())?;
            }
        }
        Ok(())
    }
}

impl Writer {
    pub(super) fn new(store: Arc<Store>, state: State) -> Self {
        Self {
            store,
            state: Some(state),
            dictionary: Dictionary::default(),
        }
    }

    fn state(&self) -> Result<&State, StoreError> {
        self.state
            .as_ref()
            .ok_or(StoreError::Overflow("the writer's state"))
    }

    /// The store that is written.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// How far the store is.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        self.state
            .as_ref()
            .map(|state| state.checkpoint)
            .unwrap_or_default()
    }

    /// Number of the first block that is not final.
    #[must_use]
    pub fn next_unfinal(&self) -> u64 {
        self.state.as_ref().map_or(0, |state| state.finality.next_unfinal)
    }

    /// A batch that goes on where the store is.
    #[must_use]
    pub fn batch(&mut self) -> Batch {
        let dictionary = std::mem::take(&mut self.dictionary);
        Batch::new(Arc::clone(&self.store), dictionary, self.checkpoint())
    }

    /// Commits final blocks: all of them or none.
    pub fn commit_final(&mut self, mut batch: Batch) -> Result<(), StoreError> {
        if self.next_unfinal() < self.checkpoint().next_block {
            self.finalize(self.checkpoint().next_block - 1)?;
        }
        let mut rows = Rows {
            store: &self.store,
            // Room for all of it, so that a write of 100 MB is not copied again and again as it grows.
            write: WriteBatch::with_capacity_bytes(batch.bytes()),
            undo: None,
        };
        let before = self.state()?.checkpoint;
        render(&mut batch, &mut rows, &before)?;
        let write = rows.write;
        let checkpoint = batch.checkpoint;
        let flats = std::mem::take(&mut batch.flats);
        self.dictionary = batch.into_dictionary();
        let result = self.write_final(write, checkpoint, &flats);
        if result.is_err() {
            self.dictionary.clear();
        }
        result
    }

    fn write_final(
        &mut self,
        mut write: WriteBatch,
        checkpoint: Checkpoint,
        flats: &[Vec<u8>],
    ) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        let state = self
            .state
            .as_mut()
            .ok_or(StoreError::Overflow("the writer's state"))?;
        let saved = state.flats.position();
        let written = (|| {
            state.flats.append(flats, false)?;
            state.flats.sync()?;
            let finality = Finality {
                next_unfinal: checkpoint.next_block,
                flat_records: state.flats.file_records().to_vec(),
            };
            write.put_cf(family(&store.db, Table::Meta)?, FINALITY, finality.encode());
            let mut options = WriteOptions::default();
            options.disable_wal(true);
            store
                .db
                .write_opt(write, &options)
                .map_err(StoreError::rocks("database"))?;
            Ok(finality)
        })();
        match written {
            Ok(finality) => {
                state.checkpoint = checkpoint;
                state.finality = finality;
                let since = *state.unlogged.get_or_insert_with(clock::now);
                self.publish()?;
                if clock::now() - since >= UNLOGGED_AGE_MAX {
                    self.settle()?;
                }
                Ok(())
            }
            Err(error) => {
                state.flats.restore(saved);
                Err(error)
            }
        }
    }

    /// Commits one block that is not final, with its undo record.
    pub fn commit_unfinal(&mut self, mut batch: Batch) -> Result<(), StoreError> {
        if batch.blocks != 1 {
            return Err(StoreError::Overflow(
                "more than one block in a batch that is not final",
            ));
        }
        self.settle()?;
        let mut rows = Rows {
            store: &self.store,
            write: WriteBatch::default(),
            undo: Some(Undo::default()),
        };
        let before = self.state()?.checkpoint;
        render(&mut batch, &mut rows, &before)?;
        let Rows { mut write, undo, .. } = rows;
        let checkpoint = batch.checkpoint;
        let key = keys::number(before.next_block);
        let tail = Tail {
            arrays: std::mem::take(&mut batch.flats).into(),
        };
        write.put_cf(family(&self.store.db, Table::Tail)?, key, tail.encode());
        write.put_cf(
            family(&self.store.db, Table::Undo)?,
            key,
            undo.unwrap_or_default().encode(),
        );
        self.dictionary = batch.into_dictionary();
        if let Err(error) = self.write_logged(write) {
            self.dictionary.clear();
            return Err(error);
        }
        if let Some(state) = &mut self.state {
            state.flats.push_tail(&tail.arrays);
            state.checkpoint = checkpoint;
        }
        self.publish()
    }

    /// States that blocks up to and including `number` are final: they can no longer be unwound.
    pub fn finalize(&mut self, number: u64) -> Result<(), StoreError> {
        let from = self.next_unfinal();
        let next_unfinal = number.saturating_add(1).min(self.checkpoint().next_block);
        if next_unfinal <= from {
            return Ok(());
        }
        self.settle()?;
        let store = Arc::clone(&self.store);
        let state = self
            .state
            .as_mut()
            .ok_or(StoreError::Overflow("the writer's state"))?;
        let saved = state.flats.position();
        let mut write = WriteBatch::default();
        let prepared = (|| {
            for number in from..next_unfinal {
                state.flats.append(&load_tail(&store.db, number)?.arrays, true)?;
                for table in [Table::Tail, Table::Undo] {
                    write.delete_cf(family(&store.db, table)?, keys::number(number));
                }
            }
            state.flats.sync()?;
            let finality = Finality {
                next_unfinal,
                flat_records: state.flats.file_records().to_vec(),
            };
            write.put_cf(family(&store.db, Table::Meta)?, FINALITY, finality.encode());
            let mut options = WriteOptions::default();
            options.set_sync(true);
            store
                .db
                .write_opt(write, &options)
                .map_err(StoreError::rocks("database"))?;
            Ok(finality)
        })();
        match prepared {
            Ok(finality) => {
                state.finality = finality;
                self.publish()
            }
            Err(error) => {
                state.flats.restore(saved);
                Err(error)
            }
        }
    }

    /// Takes blocks off the end, so that `next_block` comes next again. The bytes of the store are then
    /// those of a store that never saw them. Final blocks are refused.
    pub fn unwind(&mut self, next_block: u64) -> Result<(), StoreError> {
        if next_block < self.next_unfinal() {
            return Err(StoreError::Final {
                block: next_block,
                finalized: self.next_unfinal().saturating_sub(1),
            });
        }
        self.settle()?;
        self.dictionary.clear();
        let mut unwound = Ok(());
        while unwound.is_ok() && self.checkpoint().next_block > next_block {
            unwound = self.unwind_one();
        }
        // Whatever was taken off is gone, also when the rest could not be.
        self.publish()?;
        unwound
    }

    fn unwind_one(&mut self) -> Result<(), StoreError> {
        let number = self.checkpoint().next_block - 1;
        let key = keys::number(number);
        let db = &self.store.db;
        let name = Table::Undo.name();
        let undo = db
            .get_cf(family(db, Table::Undo)?, key)
            .map_err(StoreError::rocks(name))?
            .ok_or(StoreError::Missing {
                table: name,
                what: "block",
                number,
            })?;
        let undo = Undo::decode(&undo).map_err(StoreError::corrupt(name, &key))?;
        let tail = load_tail(db, number)?;
        let mut write = WriteBatch::default();
        let mut checkpoint = None;
        for (code, row_key, before) in undo.rows.iter().rev() {
            let table = Table::from_code(*code)
                .ok_or_else(|| StoreError::corrupt(name, &key)(Corrupt("table code of an undo record")))?;
            match before {
                Some(value) => write.put_cf(family(db, table)?, row_key, value),
                None => write.delete_cf(family(db, table)?, row_key),
            }
            if table == Table::Meta {
                checkpoint.clone_from(before);
            }
        }
        for table in [Table::Tail, Table::Undo] {
            write.delete_cf(family(db, table)?, key);
        }
        let checkpoint = match checkpoint {
            Some(bytes) => Checkpoint::decode(&bytes).map_err(StoreError::corrupt(name, &key))?,
            None => Checkpoint {
                next_block: self.store.identity.first_block,
                next_traced: self.store.identity.first_block,
                ..Checkpoint::default()
            },
        };
        self.write_logged(write)?;
        if let Some(state) = &mut self.state {
            state.flats.pop_tail(&tail.arrays);
            state.checkpoint = checkpoint;
        }
        Ok(())
    }

    /// Brings everything that was written without RocksDB's log to disk. Called before logged writes,
    /// and before a clean exit.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        if self.state()?.unlogged.is_none() {
            return Ok(());
        }
        let families = Table::ALL
            .iter()
            .map(|&table| family(&self.store.db, table))
            .collect::<Result<Vec<_>, _>>()?;
        let mut options = FlushOptions::default();
        options.set_wait(true);
        self.store
            .db
            .flush_cfs_opt(&families, &options)
            .map_err(StoreError::rocks("database"))?;
        if let Some(state) = &mut self.state {
            state.unlogged = None;
        }
        Ok(())
    }

    fn write_logged(&self, write: WriteBatch) -> Result<(), StoreError> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.store
            .db
            .write_opt(write, &options)
            .map_err(StoreError::rocks("database"))
    }

    fn publish(&self) -> Result<(), StoreError> {
        let state = self.state()?;
        self.store.publish(View::new(
            &self.store.db,
            state.flats.view(),
            state.checkpoint,
            state.finality.clone(),
            Arc::clone(&self.store.identity),
        ));
        Ok(())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Err(error) = self.settle() {
            tracing::error!(%error, "could not flush the store; the last blocks will be fetched again");
        }
        if let Some(state) = self.state.take() {
            self.store.return_writer(state);
        }
    }
}

/// Terms that a thread renders at a time.
const TERMS_AT_ONCE: usize = 8 * LOOK_UPS;
/// Threads that help to render the postings of a large batch, at most.
const HELPERS_MAX: usize = 3;

/// Turns a batch into rows: plain ones, hashes, posting chunks, runs, checkpoint.
///
/// Postings are half of the work. In a large batch of final blocks other threads take part of them; where a
/// row stands in the write says nothing, for no two have the same key.
fn render(batch: &mut Batch, rows: &mut Rows<'_>, before: &Checkpoint) -> Result<(), StoreError> {
    let mut postings: Vec<_> = std::mem::take(&mut batch.postings).into_iter().collect();
    postings.sort_unstable_by_key(|(term, _)| *term);
    let groups: Vec<_> = postings.chunks(TERMS_AT_ONCE).collect();
    let next = AtomicUsize::new(0);
    let take = || groups.get(next.fetch_add(1, Ordering::Relaxed)).copied();
    let helpers = match rows.undo {
        None => std::thread::available_parallelism()
            .map_or(1, usize::from)
            .min(groups.len())
            .saturating_sub(1)
            .min(HELPERS_MAX),
        Some(_) => 0,
    };
    let store = rows.store;
    std::thread::scope(|scope| {
        let help = || {
            let mut rendered = Rendered::default();
            while let Some(group) = take() {
                render_postings(store, group, |key, value, _| {
                    rendered.push(key, value);
                    Ok(())
                })?;
            }
            Ok::<_, StoreError>(rendered)
        };
        let helpers: Vec<_> = (0..helpers).map(|_| scope.spawn(help)).collect();
        for (table, key, value) in std::mem::take(&mut batch.rows) {
            rows.put(table, &key, &value, None)?;
        }
        render_hashes(std::mem::take(&mut batch.hashes), rows)?;
        render_runs(batch, rows)?;
        while let Some(group) = take() {
            render_postings(store, group, |key, value, before| {
                rows.put(Table::Postings, key, value, before)
            })?;
        }
        for helper in helpers {
            let rendered = helper
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            rendered.each(|key, value| rows.put(Table::Postings, key, value, None))?;
        }
        Ok::<_, StoreError>(())
    })?;
    let first = before.next_block == rows.store.identity.first_block;
    let old = (!first).then(|| before.encode());
    rows.put(
        Table::Meta,
        CHECKPOINT,
        &batch.checkpoint.encode(),
        old.as_deref(),
    )
}

/// Rows that another thread made, one after the other.
#[derive(Default)]
struct Rendered {
    bytes: Vec<u8>,
    /// Lengths of key and value.
    rows: Vec<(usize, usize)>,
}

impl Rendered {
    fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.rows.push((key.len(), value.len()));
    }

    fn each(&self, mut put: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>) -> Result<(), StoreError> {
        let mut rest = self.bytes.as_slice();
        for &(key, value) in &self.rows {
            let (row, others) = rest.split_at(key + value);
            let (key, value) = row.split_at(key);
            put(key, value)?;
            rest = others;
        }
        Ok(())
    }
}

fn render_runs(batch: &mut Batch, rows: &mut Rows<'_>) -> Result<(), StoreError> {
    let mut runs: Vec<_> = std::mem::take(&mut batch.runs).into_iter().collect();
    runs.sort_unstable_by_key(|(emitter, _)| *emitter);
    let mut value = Vec::new();
    for (emitter, run) in runs {
        for (last, value) in &run.closed {
            let key = keys::emitter_run(emitter, *last);
            rows.put(Table::LogsByEmitter, &key, value, None)?;
        }
        let key = keys::emitter_run(emitter, keys::OPEN);
        value.clear();
        run.builder.encode_into(&mut value);
        rows.put(Table::LogsByEmitter, &key, &value, run.before.as_deref())?;
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

/// Renders the chunks of some terms, in order; hands each on as key, value, and value before.
fn render_postings(
    store: &Store,
    postings: &[(Term, Postings)],
    mut put: impl FnMut(&[u8], &[u8], Option<&[u8]>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let name = Table::Postings.name();
    let family = family(&store.db, Table::Postings)?;
    let options = ReadOptions::default();
    let mut list = Vec::with_capacity(2 * CHUNK_POSTINGS);
    let mut value = Vec::with_capacity(4096);
    let mut key = Vec::with_capacity(41);
    // The keys of a group, one after the other.
    let (mut keys, mut ends) = (Vec::with_capacity(41 * LOOK_UPS), Vec::with_capacity(LOOK_UPS));
    for group in postings.chunks(LOOK_UPS) {
        keys.clear();
        ends.clear();
        for (term, _) in group {
            let start = keys.len();
            term.write_key(keys::OPEN, &mut keys);
            ends.push(start..keys.len());
        }
        let open_keys = ends.iter().map(|range| keys.get(range.clone()).unwrap_or(&[]));
        let found = store
            .db
            .batched_multi_get_cf_opt(family, open_keys.clone(), true, &options);
        for (((term, new), open_key), found) in group.iter().zip(open_keys).zip(found) {
            let found = found.map_err(StoreError::rocks(name))?;
            let mut rank = 0;
            let mut left = new.as_slice();
            if let Some(bytes) = &found {
                rank = posting::decode(bytes, &mut list)
                    .map_err(StoreError::corrupt(name, open_key))?
                    .rank;
                list.extend_from_slice(left);
                left = list.as_slice();
            }
            // A chunk is sealed only when more follows it, so the open one is never empty.
            while left.len() > CHUNK_POSTINGS {
                let (sealed, rest) = left.split_at(CHUNK_POSTINGS);
                value.clear();
                posting::encode(rank, sealed, &mut value);
                key.clear();
                term.write_key(sealed.last().copied().unwrap_or(0), &mut key);
                put(&key, &value, None)?;
                rank += CHUNK_POSTINGS as u64;
                left = rest;
            }
            value.clear();
            posting::encode(rank, left, &mut value);
            put(open_key, &value, found.as_deref())?;
        }
    }
    Ok(())
}
