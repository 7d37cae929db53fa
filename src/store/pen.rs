//! The pen: a store and how it stands, in the hand of whoever writes it. Each method is one atomic step.
//!
//! Final blocks (backfill) are written without RocksDB's log and reach the disk by atomic flushes of all
//! tables, so that a crash leaves a prefix of the batches. Blocks that are not final are written one by
//! one with the log synced, each with an undo record. The two never mix: before the first logged write
//! after unlogged ones, everything is flushed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rocksdb::{DB, FlushOptions, WriteBatch, WriteOptions};

use super::StoreError;
use super::batch::Batch;
use super::bulk::Bulk;
use super::filters::Watch;
use super::flats::Flats;
use super::open::{FINALITY, Store, load_tail};
use super::render::{Rows, render};
use super::schema::Table;
use super::stages::{Point, Stage, Step};
use super::unverified::Trust;
use super::view::{View, family};
use crate::clock;
use crate::codec::value::{Checkpoint, Finality, Identity, Tail, Undo};
use crate::codec::{Corrupt, keys};

/// A crash loses no more than the unlogged writes of this span and the commit that ends it: a slow backfill fills memtables slowly.
const UNLOGGED_AGE_MAX: Duration = Duration::from_secs(60);

/// What is flushed before the last commit of a load is at least the memory of all memtables by this.
const FLUSHED_EARLY: u64 = 4;

/// How a store stands.
#[derive(Debug)]
pub(super) struct State {
    pub(super) flats: Flats,
    pub(super) checkpoint: Checkpoint,
    pub(super) finality: Finality,
    /// Since when there are writes that are not in RocksDB's log and not flushed by us. Kept here, not in
    /// the writer: a writer that could not flush leaves it to the next one.
    pub(super) unlogged: Option<Instant>,
    pub(super) bulk: Bulk,
    pub(super) filters: Watch,
    pub(super) trust: Trust,
}

/// A store and how it stands.
#[derive(Debug)]
pub(super) struct Pen {
    pub(super) store: Arc<Store>,
    pub(super) state: State,
}

impl Pen {
    pub(super) fn reached(&self, step: Step, point: Point, next_block: u64) {
        self.store.reached(step, point, next_block, &self.state);
    }

    /// A batch goes on where the store is, or it was made for another one.
    fn check_base(&self, batch: &Batch) -> Result<(), StoreError> {
        if batch.base == self.state.checkpoint {
            return Ok(());
        }
        Err(StoreError::OutOfOrder {
            found: batch.base.next_block,
            wanted: self.state.checkpoint.next_block,
        })
    }

    /// Commits final blocks: all of them or none. Answers the bytes of the write. What is due to be flushed is flushed before: a failure
    /// of that is of none of them.
    pub(super) fn commit_final(&mut self, mut batch: Batch) -> Result<usize, StoreError> {
        self.check_base(&batch)?;
        let is_due = |since| clock::now() - since >= UNLOGGED_AGE_MAX;
        if self.state.unlogged.is_some_and(is_due) {
            self.flush_unlogged()?;
        }
        let checkpoint = batch.checkpoint;
        self.reached(Step::Final, Point::Begun, checkpoint.next_block);
        let mut rows = Rows::begin(&self.store, std::mem::take(&mut batch.plain), false)?;
        render(&mut batch, &mut rows)?;
        let mut write = rows.write;
        let trust = self.state.trust.told(&self.store.db, &batch, &mut write)?;
        let bytes = write.size_in_bytes();
        self.state.bulk.writes(&self.store, bytes);
        let flats = std::mem::take(&mut batch.flats);
        // What the rows were made of is in the way of what is about to be copied.
        drop(batch);
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        let next = (checkpoint.next_block, checkpoint.next_block);
        self.write_with_arrays(Step::Final, next, write, &options, |arrays| {
            arrays.append(&flats, false)
        })?;
        self.state.checkpoint = checkpoint;
        self.state.trust = trust;
        self.state.unlogged.get_or_insert_with(clock::now);
        self.publish();
        self.state.bulk.wrote(&self.store, bytes);
        self.state.filters.wrote(&self.store, bytes);
        Ok(bytes)
    }

    /// Commits one block that is not final, with its undo record.
    pub(super) fn commit_unfinal(&mut self, mut batch: Batch) -> Result<(), StoreError> {
        self.settle()?;
        self.check_base(&batch)?;
        let checkpoint = batch.checkpoint;
        self.reached(Step::Unfinal, Point::Begun, checkpoint.next_block);
        let mut rows = Rows::begin(&self.store, std::mem::take(&mut batch.plain), true)?;
        render(&mut batch, &mut rows)?;
        let Rows { mut write, undo, .. } = rows;
        let mut undo = undo.unwrap_or_default();
        // Rows come from maps too, in any order; of one key they stay in theirs.
        undo.rows.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        let key = keys::number(self.state.checkpoint.next_block);
        let tail = Tail {
            arrays: std::mem::take(&mut batch.flats).into(),
        };
        let db = &self.store.db;
        write.put_cf(family(db, Table::Tail)?, key, tail.encode());
        write.put_cf(family(db, Table::Undo)?, key, undo.encode());
        let trust = self.state.trust.told(db, &batch, &mut write)?;
        let bytes = write.size_in_bytes();
        self.write_logged(write)?;
        self.state.filters.wrote(&self.store, bytes);
        self.state.flats.push_tail(&tail.arrays);
        self.state.checkpoint = checkpoint;
        self.state.trust = trust;
        self.reached(Step::Unfinal, Point::Written, checkpoint.next_block);
        self.publish();
        Ok(())
    }

    /// States that blocks up to and including `number` are final: they can no longer be unwound.
    pub(super) fn finalize(&mut self, number: u64) -> Result<(), StoreError> {
        let from = self.state.finality.next_unfinal;
        let next_block = self.state.checkpoint.next_block;
        let next_unfinal = number.saturating_add(1).min(next_block);
        if next_unfinal <= from {
            return Ok(());
        }
        self.settle()?;
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
        self.publish();
        Ok(())
    }

    /// Takes blocks off the end, so that `next_block` comes next again. Final blocks are refused.
    pub(super) fn unwind(&mut self, next_block: u64) -> Result<(), StoreError> {
        let next_unfinal = self.state.finality.next_unfinal;
        if next_block < next_unfinal {
            return Err(StoreError::Final {
                block: next_block,
                finalized: next_unfinal.saturating_sub(1),
            });
        }
        self.settle()?;
        let mut unwound = Ok(());
        while unwound.is_ok() && self.state.checkpoint.next_block > next_block {
            unwound = self.unwind_one();
        }
        // Whatever was taken off is gone, also when the rest could not be.
        self.publish();
        unwound
    }

    fn unwind_one(&mut self) -> Result<(), StoreError> {
        let number = self.state.checkpoint.next_block - 1;
        self.reached(Step::Unwind, Point::Begun, number);
        let tail = load_tail(&self.store.db, number)?;
        let (write, checkpoint) = taken_off(&self.store.db, number)?;
        let checkpoint = match checkpoint {
            Some(bytes) => Checkpoint::decode(&bytes)
                .map_err(StoreError::corrupt(Table::Undo.name(), &keys::number(number)))?,
            None => Checkpoint::begun(self.store.identity().first_block),
        };
        self.write_logged(write)?;
        self.state.flats.pop_tail(&tail.arrays);
        self.state.checkpoint = checkpoint;
        self.reached(Step::Unwind, Point::Written, number);
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
        self.make_room();
        let Self { store, state } = self;
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
            let meta = family(&store.db, Table::Meta)?;
            write.put_cf(meta, FINALITY, finality.encode());
            state.flats.sum(|key, row| {
                write.put_cf(meta, key, row);
                Ok(())
            })?;
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

    /// Brings everything that was written without RocksDB's log to disk, which ends a bulk load. Called before logged
    /// writes, and before a clean exit.
    pub(super) fn settle(&mut self) -> Result<(), StoreError> {
        self.flush_unlogged()?;
        self.state.bulk.end(&self.store);
        Ok(())
    }

    fn flush_unlogged(&mut self) -> Result<(), StoreError> {
        if self.state.unlogged.is_none() {
            return Ok(());
        }
        let next_block = self.state.checkpoint.next_block;
        self.reached(Step::Settle, Point::Begun, next_block);
        self.flush(true)?;
        self.state.unlogged = None;
        self.reached(Step::Settle, Point::Written, next_block);
        Ok(())
    }

    /// Begins to bring to disk what was written without RocksDB's log, where that is much: beside the last commit of a load,
    /// which leaves less to be waited for.
    pub(super) fn begin_flush(&self) -> Result<(), StoreError> {
        let much = self.store.memtable_bytes as u64 / FLUSHED_EARLY;
        if self.state.unlogged.is_some() && self.store.unflushed_bytes() > much {
            self.flush(false)?;
        }
        Ok(())
    }

    /// Flushes all tables at one point.
    fn flush(&self, waits: bool) -> Result<(), StoreError> {
        let families = Table::ALL
            .iter()
            .map(|&table| family(&self.store.db, table))
            .collect::<Result<Vec<_>, _>>()?;
        let mut options = FlushOptions::default();
        options.set_wait(waits);
        self.store
            .db
            .flush_cfs_opt(&families, &options)
            .map_err(StoreError::rocks("database"))
    }

    fn make_room(&self) {
        self.store.make_room(self.state.bulk.files_max());
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

    fn publish(&self) {
        self.publish_as(self.store.identity());
    }

    /// Publishes how the store stands, as a store of this identity.
    pub(super) fn publish_as(&self, identity: Arc<Identity>) {
        let view = View::new(
            &self.store.db,
            self.state.flats.view(),
            self.state.checkpoint,
            self.state.finality.clone(),
            identity,
        );
        self.store.publish(view.keeping(&self.store.caches));
    }
}

/// The write that takes the last block, which is not final, off the tables, and the checkpoint before it; `None` for the
/// first block of a store.
pub(super) fn taken_off(db: &DB, number: u64) -> Result<(WriteBatch, Option<Vec<u8>>), StoreError> {
    let key = keys::number(number);
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
    Ok((write, checkpoint))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::B256;
    use crate::store::writer::Writer;
    use crate::store::{BlockEarnings, OpenOptions};

    fn commit(writer: &mut Writer, number: u64) -> Result<(), StoreError> {
        let mut batch = writer.batch();
        let hash = B256::with_last_byte(number as u8 + 1);
        batch.begin_block(number, hash, 1, &BlockEarnings::default())?;
        writer.commit_final(batch)
    }

    #[test]
    fn a_commit_that_fails_as_nothing_can_be_flushed_leaves_the_store_as_before() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        let mut writer = store.writer().unwrap();
        commit(&mut writer, 0).unwrap();
        let at_the_limit = |pen: &mut Pen| {
            pen.state.unlogged = clock::now().checked_sub(UNLOGGED_AGE_MAX);
            assert!(pen.state.unlogged.is_some());
            Ok(())
        };
        writer.step(at_the_limit).unwrap();
        // New tables cannot be made while their directory is away.
        let tables = home.path().join("rocksdb");
        let away = home.path().join("away");
        std::fs::rename(&tables, &away).unwrap();
        commit(&mut writer, 1).unwrap_err();
        std::fs::rename(&away, &tables).unwrap();
        assert_eq!(store.view().head().map(|head| head.number), Some(0));
        assert_eq!(writer.checkpoint(), *store.view().checkpoint());
    }
}
