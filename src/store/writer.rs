//! The one writer: whole blocks in, unfinal blocks out again, finality forward.
//!
//! A final batch may be committed on a thread of its own while the next one is derived ([`Writer::begin_commit`]). What
//! the next one must know of it (ids, accounts, nonces) is handed on in memory; one commit is under way at most,
//! and every other step waits for it.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use super::StoreError;
use super::batch::{Batch, Dictionary, Nonces, Sizes};
use super::open::Store;
use super::pen::{Pen, State};
use crate::codec::value::Checkpoint;

/// What a commit leaves: the pen, and the bytes of the write.
type Committed = (Pen, Result<usize, StoreError>);

/// The one writer of a store; gives its place back when dropped.
#[derive(Debug)]
pub struct Writer {
    store: Arc<Store>,
    /// `None` while a commit is under way.
    pen: Option<Pen>,
    /// The commit under way; without a result when its thread died.
    under_way: Option<JoinHandle<Option<Committed>>>,
    /// How far the store is, or will be after the commit under way.
    checkpoint: Checkpoint,
    next_unfinal: u64,
    dictionary: Dictionary,
    /// Nonces of the commit under way, which no view shows yet.
    nonces: Arc<Nonces>,
    /// The last final batch; nothing after a block that is not final.
    room: Sizes,
}

impl Writer {
    pub(super) fn new(store: Arc<Store>, state: State) -> Self {
        let mut writer = Self {
            pen: None,
            under_way: None,
            checkpoint: Checkpoint::default(),
            next_unfinal: 0,
            dictionary: Dictionary::default(),
            nonces: Arc::default(),
            room: Sizes::default(),
            store: Arc::clone(&store),
        };
        writer.take_up(Pen { store, state });
        writer
    }

    /// Goes on from where the store is.
    fn take_up(&mut self, pen: Pen) {
        self.checkpoint = pen.state.checkpoint;
        self.next_unfinal = pen.state.finality.next_unfinal;
        self.nonces = Arc::default();
        self.pen = Some(pen);
    }

    /// Forgets what may not be so after a failure or an unwinding.
    fn forget(&mut self) {
        self.dictionary.clear();
        self.room = Sizes::default();
    }

    /// The store that is written.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// How far the store is, or will be when the commit under way succeeds.
    #[must_use]
    pub const fn checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }

    /// Number of the first block that is not final.
    #[must_use]
    pub const fn next_unfinal(&self) -> u64 {
        self.next_unfinal
    }

    /// A batch that goes on where the store is.
    #[must_use]
    pub fn batch(&mut self) -> Batch {
        let dictionary = std::mem::take(&mut self.dictionary);
        let earlier = Arc::clone(&self.nonces);
        Batch::new(
            Arc::clone(&self.store),
            dictionary,
            earlier,
            self.checkpoint,
            &self.room,
        )
    }

    /// The same, with room for a batch that is committed at about `bytes`.
    #[must_use]
    pub fn batch_of(&mut self, bytes: usize) -> Batch {
        self.room.write = self.room.write.max(bytes);
        self.batch()
    }

    /// Waits for the commit under way, if there is one, and answers what became of it: when it failed, the store is as
    /// before it and batches that went on from it are refused.
    pub fn wait(&mut self) -> Result<(), StoreError> {
        let Some(thread) = self.under_way.take() else {
            return Ok(());
        };
        let committed = thread.join().ok().flatten();
        let (pen, result) = committed.ok_or(StoreError::WriterLost)?;
        self.finished(pen, result)
    }

    fn finished(&mut self, pen: Pen, result: Result<usize, StoreError>) -> Result<(), StoreError> {
        self.take_up(pen);
        match result {
            Ok(bytes) => {
                self.room.write = bytes;
                self.dictionary.trim();
                Ok(())
            }
            Err(error) => {
                self.forget();
                Err(error)
            }
        }
    }

    /// The pen, when no commit is under way any more.
    fn take_pen(&mut self) -> Result<Pen, StoreError> {
        self.wait()?;
        self.pen.take().ok_or(StoreError::WriterLost)
    }

    /// A step of the pen.
    pub(super) fn step(
        &mut self,
        step: impl FnOnce(&mut Pen) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut pen = self.take_pen()?;
        let result = step(&mut pen);
        self.take_up(pen);
        result
    }

    /// Commits final blocks: all of them or none.
    pub fn commit_final(&mut self, batch: Batch) -> Result<(), StoreError> {
        let (mut pen, batch) = self.hand_over(batch)?;
        let result = pen.commit_final(batch);
        self.finished(pen, result)
    }

    /// Begins to commit final blocks, all of them or none, on a thread of its own; the next batch may be made at once.
    /// An error is of this batch when its commit could not begin, of an earlier one otherwise; what becomes of this
    /// one [`Self::wait`] tells, or the next step.
    pub fn begin_commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        let handed = self.hand_over(batch)?;
        // Taken by the thread, or by us where there is none to be had.
        let work = Arc::new(Mutex::new(Some(handed)));
        let theirs = Arc::clone(&work);
        let thread = std::thread::Builder::new().name("commit".to_owned());
        match thread.spawn(move || commit(&theirs)) {
            Ok(thread) => self.under_way = Some(thread),
            Err(_) => {
                let committed = commit(&work).ok_or(StoreError::WriterLost);
                let (pen, result) = committed?;
                self.finished(pen, result)?;
            }
        }
        if self.dictionary.is_full() {
            // Ids may be forgotten only when the store tells them.
            self.wait()?;
        }
        Ok(())
    }

    /// The same for the last batch before a flush: what was committed before it is flushed meanwhile.
    pub fn begin_last_commit(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.wait()?;
        if let Some(pen) = &self.pen {
            pen.begin_flush()?;
        }
        self.begin_commit(batch)
    }

    /// Keeps what the next batch must know of a final one, and gives up the pen for it.
    fn hand_over(&mut self, mut batch: Batch) -> Result<(Pen, Batch), StoreError> {
        if self.next_unfinal < self.checkpoint.next_block {
            self.finalize(self.checkpoint.next_block - 1)?;
        }
        let pen = self.take_pen()?;
        let write = self.room.write;
        self.room = Sizes {
            write,
            ..batch.sizes()
        };
        (self.dictionary, self.nonces) = batch.hand_over();
        self.checkpoint = *batch.checkpoint();
        self.next_unfinal = self.checkpoint.next_block;
        Ok((pen, batch))
    }

    /// Commits one block that is not final, with its undo record.
    pub fn commit_unfinal(&mut self, mut batch: Batch) -> Result<(), StoreError> {
        if batch.blocks() != 1 {
            return Err(StoreError::Overflow(
                "more than one block in a batch that is not final",
            ));
        }
        let (dictionary, _) = batch.hand_over();
        let result = self.step(|pen| pen.commit_unfinal(batch));
        self.room = Sizes::default();
        match &result {
            Ok(()) => {
                self.dictionary = dictionary;
                self.dictionary.trim();
            }
            Err(_) => self.forget(),
        }
        result
    }

    /// States that blocks up to and including `number` are final: they can no longer be unwound.
    pub fn finalize(&mut self, number: u64) -> Result<(), StoreError> {
        self.step(|pen| pen.finalize(number))
    }

    /// Takes blocks off the end, so that `next_block` comes next again. The bytes of the store are then
    /// those of a store that never saw them. Final blocks are refused.
    pub fn unwind(&mut self, next_block: u64) -> Result<(), StoreError> {
        let result = self.step(|pen| pen.unwind(next_block));
        self.forget();
        result
    }

    /// Brings everything that was written without RocksDB's log to disk. Called before logged writes,
    /// and before a clean exit.
    pub fn settle(&mut self) -> Result<(), StoreError> {
        self.step(Pen::settle)
    }
}

fn commit(work: &Mutex<Option<(Pen, Batch)>>) -> Option<Committed> {
    let handed = work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (mut pen, batch) = handed?;
    let result = pen.commit_final(batch);
    Some((pen, result))
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A commit that failed leaves what was committed before it.
        let waited = self.wait();
        if let Err(error) = self.settle().and(waited) {
            tracing::error!(%error, "could not flush the store; the last blocks will be fetched again");
        }
        if let Some(pen) = self.pen.take() {
            self.store.return_writer(pen.state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::keys;
    use crate::model::B256;
    use crate::store::{BlockEarnings, Observer, OpenOptions, Step, Table};

    fn begin(batch: &mut Batch) {
        let earnings = BlockEarnings::default();
        batch.begin_block(0, B256::ZERO, 1, &earnings).unwrap();
    }

    #[test]
    fn a_commit_that_panicked_is_told_as_that() {
        let home = tempfile::tempdir().unwrap();
        let broken = Observer::new(|stage| assert!(stage.step != Step::Final, "a commit breaks off"));
        let options = OpenOptions {
            observer: Some(broken),
            ..OpenOptions::new(home.path())
        };
        let store = Store::open_or_create(&options, 1, B256::ZERO, None).unwrap();
        let mut writer = store.writer().unwrap();
        let mut batch = writer.batch();
        begin(&mut batch);
        writer.begin_commit(batch).unwrap();
        for _ in 0..2 {
            let error = writer.wait().and_then(|()| writer.settle()).unwrap_err();
            assert!(matches!(error, StoreError::WriterLost), "{error}");
        }
        drop(writer);
        assert!(store.writer().is_none());
    }

    #[test]
    fn keys_are_kept_of_a_block_that_may_be_unwound_and_of_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        let mut writer = store.writer().unwrap();
        let mut batch = writer.batch();
        let mut kept = |begins: bool, number: u64| {
            if begins {
                begin(&mut batch);
            }
            let before = batch.bytes();
            batch.row(Table::Frames, &keys::number(number), b"a row").unwrap();
            (batch.plain.keys.len(), batch.bytes() - before)
        };
        // What is filled in.
        assert_eq!(kept(false, 0), (0, 8 + 5 + 16));
        assert_eq!(kept(false, 1), (0, 8 + 5 + 16));
        assert_eq!(kept(true, 2), (1, 8 + 5 + 16 + 8 + 56));
    }
}
