//! The one writer: whole blocks in, unfinal blocks out again, finality forward.
//!
//! Final blocks (backfill) are written without RocksDB's log and reach the disk by atomic flushes of all
//! tables, so that a crash leaves a prefix of the batches. Blocks that are not final are written one by
//! one with the log synced, each with an undo record. The two never mix: before the first logged write
//! after unlogged ones, everything is flushed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rocksdb::{FlushOptions, WriteBatch, WriteOptions};

use super::StoreError;
use super::batch::{Batch, Dictionary, Sizes};
use super::flat::Flats;
use super::open::{FINALITY, Store, load_tail};
use super::render::{Rows, render};
use super::schema::Table;
use super::stages::{Point, Stage, Step};
use super::view::{View, family};
use crate::clock;
use crate::codec::value::{Checkpoint, Finality, Tail, Undo};
use crate::codec::{Corrupt, keys};

/// A crash loses no more than the unlogged writes of this span: a slow backfill fills memtables slowly.
const UNLOGGED_AGE_MAX: Duration = Duration::from_secs(60);

/// How long a write waits for flushes, and how often they are looked at.
const FLUSH_WAIT_MAX: Duration = Duration::from_secs(30);
const FLUSH_LOOK: Duration = Duration::from_millis(2);

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
    /// The last final batch; nothing after a block that is not final.
    room: Sizes,
}

impl Writer {
    pub(super) fn new(store: Arc<Store>, state: State) -> Self {
        Self {
            store,
            state: Some(state),
            dictionary: Dictionary::default(),
            room: Sizes::default(),
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
        Batch::new(Arc::clone(&self.store), dictionary, self.checkpoint(), &self.room)
    }

    /// The same, with room for a batch that is committed at about `bytes`.
    #[must_use]
    pub fn batch_of(&mut self, bytes: usize) -> Batch {
        self.room.write = self.room.write.max(bytes);
        self.batch()
    }

    /// Commits final blocks: all of them or none.
    pub fn commit_final(&mut self, mut batch: Batch) -> Result<(), StoreError> {
        if self.next_unfinal() < self.checkpoint().next_block {
            self.finalize(self.checkpoint().next_block - 1)?;
        }
        self.reached(Step::Final, Point::Begun, batch.checkpoint.next_block);
        let mut room = batch.sizes();
        let mut rows = Rows::begin(&self.store, std::mem::take(&mut batch.plain), false)?;
        let before = self.state()?.checkpoint;
        render(&mut batch, &mut rows, &before)?;
        let write = rows.write;
        room.write = write.size_in_bytes();
        self.room = room;
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
        write: WriteBatch,
        checkpoint: Checkpoint,
        flats: &[Vec<u8>],
    ) -> Result<(), StoreError> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        let next_unfinal = checkpoint.next_block;
        let next = (checkpoint.next_block, next_unfinal);
        self.write_with_arrays(Step::Final, next, write, &options, |arrays| {
            arrays.append(flats, false)
        })?;
        let state = self
            .state
            .as_mut()
            .ok_or(StoreError::Overflow("the writer's state"))?;
        state.checkpoint = checkpoint;
        let since = *state.unlogged.get_or_insert_with(clock::now);
        self.publish()?;
        if clock::now() - since >= UNLOGGED_AGE_MAX {
            self.settle()?;
        }
        Ok(())
    }

    /// Writes rows together with finality, after the array files were grown by `grow` and forced to disk. When
    /// any of it fails the arrays are as before.
    fn write_with_arrays(
        &mut self,
        step: Step,
        (next_block, next_unfinal): (u64, u64),
        mut write: WriteBatch,
        options: &WriteOptions,
        grow: impl FnOnce(&mut Flats) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let store = Arc::clone(&self.store);
        self.make_room();
        let state = self
            .state
            .as_mut()
            .ok_or(StoreError::Overflow("the writer's state"))?;
        let saved = state.flats.position();
        let written = (|| {
            grow(&mut state.flats)?;
            store.reached(step, Point::Grown, next_block, state);
            state.flats.sync()?;
            store.reached(step, Point::Synced, next_block, state);
            let finality = Finality {
                next_unfinal,
                flat_records: state.flats.file_records().to_vec(),
            };
            write.put_cf(family(&store.db, Table::Meta)?, FINALITY, finality.encode());
            store
                .db
                .write_opt(write, options)
                .map_err(StoreError::rocks("database"))?;
            Ok(finality)
        })();
        match written {
            Ok(finality) => {
                state.finality = finality;
                store.reached(step, Point::Written, next_block, state);
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
        self.reached(Step::Unfinal, Point::Begun, batch.checkpoint.next_block);
        self.room = Sizes::default();
        let mut rows = Rows::begin(&self.store, std::mem::take(&mut batch.plain), true)?;
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
        self.reached(Step::Unfinal, Point::Written, checkpoint.next_block);
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
        let next_block = self.checkpoint().next_block;
        self.reached(Step::Finalize, Point::Begun, next_block);
        let store = Arc::clone(&self.store);
        let mut write = WriteBatch::default();
        for number in from..next_unfinal {
            for table in [Table::Tail, Table::Undo] {
                write.delete_cf(family(&store.db, table)?, keys::number(number));
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        let next = (next_block, next_unfinal);
        self.write_with_arrays(Step::Finalize, next, write, &options, |arrays| {
            (from..next_unfinal)
                .try_for_each(|number| arrays.append(&load_tail(&store.db, number)?.arrays, true))
        })?;
        self.publish()
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
        self.reached(Step::Unwind, Point::Begun, number);
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
        self.reached(Step::Unwind, Point::Written, number);
        Ok(())
    }

    /// Brings everything that was written without RocksDB's log to disk. Called before logged writes,
    /// and before a clean exit.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        if self.state()?.unlogged.is_none() {
            return Ok(());
        }
        let next_block = self.checkpoint().next_block;
        self.reached(Step::Settle, Point::Begun, next_block);
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
        self.reached(Step::Settle, Point::Written, next_block);
        Ok(())
    }

    fn reached(&self, step: Step, point: Point, next_block: u64) {
        if let Some(state) = &self.state {
            self.store.reached(step, point, next_block, state);
        }
    }

    /// Waits until flushes have caught up: memtables may take twice what the operator gave them. A flush that finds no
    /// room on the disk never catches up; after a while the write goes on and hears it from RocksDB.
    fn make_room(&self) {
        let most = 2 * self.store.memtable_bytes as u64;
        let began = clock::now();
        // Empty memtables take room, too: without a flush under way there is nothing to wait for.
        while self.store.unflushed_bytes() > most
            && self.store.is_flushing()
            && clock::now() - began < FLUSH_WAIT_MAX
        {
            self.store.waits.store(true, Ordering::Relaxed);
            std::thread::sleep(FLUSH_LOOK);
        }
        self.store.waits.store(false, Ordering::Relaxed);
    }

    fn write_logged(&self, write: WriteBatch) -> Result<(), StoreError> {
        let mut options = WriteOptions::default();
        options.set_sync(true);
        self.make_room();
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

impl Store {
    fn reached(&self, step: Step, point: Point, next_block: u64, state: &State) {
        let Some(observer) = &self.observer else { return };
        let records = match point {
            Point::Synced => Some(state.flats.file_records()),
            // What the last sync left, or the array file was opened with.
            _ => state.finality.flat_records.as_slice().try_into().ok(),
        };
        observer.tell(&Stage {
            step,
            point,
            next_block,
            synced: records.unwrap_or_default(),
        });
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
