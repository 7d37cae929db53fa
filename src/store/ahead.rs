//! Rows that are wanted next, read on several threads.
//!
//! A wallet's logs lie in as many disk blocks as there are of them. Read one after the other each waits for the disk, and a disk answers
//! eight reads in little more than the time of one; where they lie in the system's cache unpacking them takes longest, and there are
//! several cores for that. So once a row that lies far from the one before was not in the block cache, those wanted after it are read by
//! several threads, as many as its time says, with what else a row calls for. Why so: `docs/decisions/0051-rows-ahead.md`.

use std::cell::OnceCell;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rocksdb::perf::{PerfContext, PerfMetric};

use super::schema::Table;
use super::view::View;
use super::{UnitRow, Units, memory};
use crate::clock;
use crate::codec::chunk;
use crate::machine;
use crate::metrics::visits;

/// Threads that read for others, of the whole process.
const READERS: usize = 8;
/// Rows that are read at a time.
const ROWS: usize = 128;
/// Fewer are read by who wants them.
const ROWS_MIN: usize = 8;
/// Neighbours in a page that one thread reads: some lie in one block.
const ROWS_A_TURN: usize = 2;
/// What took longer came from a disk.
const DISK: Duration = Duration::from_micros(40);
/// Longer rows are read by who wants them.
const ROW_BYTES_MAX: usize = 16 << 10;

/// Reads what a row calls for in arrays, so that whoever is given it need not wait for that.
pub type Touch = fn(&View, u64, UnitRow<'_>);

/// What is wanted of a table after a row.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The row's ordinal, and those that are wanted after it, in that order.
    pub ordinals: &'a [u64],
    /// What else each calls for.
    pub touch: Touch,
}

impl Wanted<'_> {
    /// A row with nothing wanted after it.
    #[must_use]
    pub(super) const fn only(ordinals: &[u64; 1]) -> Wanted<'_> {
        Wanted {
            ordinals,
            touch: |_, _, _| (),
        }
    }

    /// The row that is wanted now.
    #[inline]
    pub(super) fn first(&self) -> u64 {
        self.ordinals.first().copied().unwrap_or(u64::MAX)
    }

    /// Whether enough rows are wanted after it to be read ahead, by a thread that may wait for a disk.
    pub(super) fn goes_on(&self) -> bool {
        self.ordinals.len() > ROWS_MIN && !memory::only()
    }
}

/// Rows that were read ahead, in the order in which they are wanted; each is a unit of its own.
#[derive(Debug, Default)]
pub(super) struct Ahead(VecDeque<(u64, Arc<[u8]>)>);

impl Ahead {
    /// The row with an ordinal, if it was read. Those before it are not wanted any more.
    pub(super) fn take(&mut self, ordinal: u64) -> Option<Arc<[u8]>> {
        let place = self.0.iter().position(|(at, _)| *at == ordinal)?;
        self.0.drain(..place);
        let (_, row) = self.0.pop_front()?;
        visits::unit();
        Some(row)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Reads the rows that are wanted after the first one, which took so long.
    pub(super) fn fill(&mut self, view: &Arc<View>, table: Table, wanted: Wanted<'_>, took: Duration) {
        let ordinals = wanted.ordinals.get(1..).unwrap_or(&[]);
        let ordinals = ordinals.get(..ROWS).unwrap_or(ordinals);
        let helpers = if took > DISK {
            READERS
        } else {
            machine::cores() - 1
        };
        self.0 = Batch::read(view, table, ordinals, wanted.touch, helpers).into();
    }
}

/// A read that is watched for a miss of the block cache.
pub(super) struct Miss {
    blocks: u64,
    began: Instant,
}

impl Miss {
    pub(super) fn watch() -> Self {
        Self {
            blocks: blocks_read(),
            began: clock::now(),
        }
    }

    /// How long it took, where blocks had to be read.
    pub(super) fn took(self) -> Option<Duration> {
        (self.blocks != blocks_read()).then(|| clock::now() - self.began)
    }
}

/// How many blocks this thread read from files, ever.
fn blocks_read() -> u64 {
    thread_local! {
        static COUNTS: OnceCell<PerfContext> = const { OnceCell::new() };
    }
    COUNTS.with(|counts| {
        counts
            .get_or_init(PerfContext::default)
            .metric(PerfMetric::BlockReadCount)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rows that several threads read.
struct Batch {
    table: Table,
    touch: Touch,
    ordinals: Vec<u64>,
    /// The first that nobody took.
    next: AtomicUsize,
    /// Empty where a row is too long or could not be read: whoever wants it finds out why.
    rows: Vec<OnceLock<Arc<[u8]>>>,
    readers: Mutex<Of>,
    left: Condvar,
}

/// Whose rows they are, and how many threads read them for it.
struct Of {
    /// Nothing once all were taken: a thread that comes late has nothing to hold on to.
    view: Option<Arc<View>>,
    reading: usize,
}

impl Batch {
    fn read(
        view: &Arc<View>,
        table: Table,
        ordinals: &[u64],
        touch: Touch,
        helpers: usize,
    ) -> Vec<(u64, Arc<[u8]>)> {
        let batch = Arc::new(Self {
            table,
            touch,
            ordinals: ordinals.to_vec(),
            next: AtomicUsize::new(0),
            rows: ordinals.iter().map(|_| OnceLock::new()).collect(),
            readers: Mutex::new(Of {
                view: Some(Arc::clone(view)),
                reading: 0,
            }),
            left: Condvar::new(),
        });
        let turns = ordinals.len().div_ceil(ROWS_A_TURN);
        Readers::of_process().ask(&batch, helpers.min(turns.saturating_sub(1)));
        batch.work(view);
        let mut of = lock(&batch.readers);
        of.view = None;
        while of.reading > 0 {
            of = batch.left.wait(of).unwrap_or_else(PoisonError::into_inner);
        }
        drop(of);
        let rows = batch.ordinals.iter().zip(&batch.rows);
        rows.filter_map(|(&ordinal, row)| Some((ordinal, Arc::clone(row.get()?))))
            .collect()
    }

    /// Reads until nothing is left to be taken.
    fn work(&self, view: &Arc<View>) {
        let mut units = Units::owned(view, self.table);
        loop {
            let first = self.next.fetch_add(ROWS_A_TURN, Ordering::Relaxed);
            let turn = self.ordinals.iter().zip(&self.rows).skip(first).take(ROWS_A_TURN);
            if turn.len() == 0 {
                return;
            }
            for (&ordinal, place) in turn {
                let Ok(row) = units.row(ordinal) else { continue };
                let bytes = row.bytes();
                if bytes.len() <= ROW_BYTES_MAX {
                    let unit = chunk::unit_of_row(row.block, row.index, bytes);
                    (self.touch)(view, ordinal, row);
                    let _ = place.set(unit.into());
                }
            }
        }
    }

    /// Works for who made it, if that still waits for something.
    fn help(&self) {
        let view = {
            let mut of = lock(&self.readers);
            let Some(view) = of.view.clone() else { return };
            of.reading += 1;
            view
        };
        // Whoever waits must not do so for ever; a row that is not there it reads itself.
        let _ = catch_unwind(AssertUnwindSafe(|| self.work(&view)));
        drop(view);
        let mut of = lock(&self.readers);
        of.reading -= 1;
        if of.reading == 0 {
            self.left.notify_all();
        }
    }
}

/// The threads that read for others.
struct Readers {
    asked: Mutex<VecDeque<Arc<Batch>>>,
    more: Condvar,
}

impl Readers {
    /// Those of the process; begun by the first who asks.
    fn of_process() -> &'static Self {
        static READERS_OF_PROCESS: OnceLock<Readers> = OnceLock::new();
        let mut is_new = false;
        let readers = READERS_OF_PROCESS.get_or_init(|| {
            is_new = true;
            Self {
                asked: Mutex::default(),
                more: Condvar::new(),
            }
        });
        if is_new {
            for number in 0..READERS {
                let thread = std::thread::Builder::new().name(format!("reader {number}"));
                if let Err(error) = thread.spawn(|| readers.run()) {
                    tracing::warn!(%error, "a thread for reading rows could not be begun; they are read one after the other");
                }
            }
        }
        readers
    }

    /// Asks for so many threads' help. Where others wait for some already there is none to be had.
    fn ask(&self, batch: &Arc<Batch>, helpers: usize) {
        let mut asked = lock(&self.asked);
        let helpers = helpers.min(READERS.saturating_sub(asked.len()));
        asked.extend(std::iter::repeat_n(Arc::clone(batch), helpers));
        drop(asked);
        for _ in 0..helpers {
            self.more.notify_one();
        }
    }

    fn run(&self) {
        loop {
            let mut asked = lock(&self.asked);
            let batch = loop {
                match asked.pop_front() {
                    Some(batch) => break batch,
                    None => asked = self.more.wait(asked).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(asked);
            batch.help();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread::ThreadId;

    use super::super::view::family;
    use super::*;
    use crate::codec::keys;
    use crate::model::B256;
    use crate::store::{OpenOptions, Store, StoreError, from_memory};

    const STEP: u64 = 1000;
    const STORED: u64 = 600;

    fn bytes(ordinal: u64) -> Vec<u8> {
        ordinal.to_be_bytes().repeat(1 + (ordinal / STEP % 40) as usize)
    }

    fn wanted(ordinals: &[u64]) -> Wanted<'_> {
        Wanted {
            ordinals,
            touch: |_, _, _| (),
        }
    }

    fn open(home: &std::path::Path, cache_bytes: usize) -> Arc<Store> {
        let options = OpenOptions {
            cache_bytes,
            ..OpenOptions::new(home)
        };
        Store::open_or_create(&options, 1, B256::ZERO, None).unwrap()
    }

    /// Units of one row each, far apart, in files.
    fn filled(home: &std::path::Path, cache_bytes: usize) -> Arc<Store> {
        let store = open(home, cache_bytes);
        for at in 0..STORED {
            let unit = chunk::unit_of_row(at, 0, &bytes(at * STEP));
            let table = family(&store.db, Table::Transactions).unwrap();
            store.db.put_cf(table, keys::number(at * STEP), unit).unwrap();
        }
        store.compact().unwrap();
        drop(store);
        open(home, cache_bytes)
    }

    fn ordinals() -> Vec<u64> {
        (0..STORED).map(|at| at * STEP).collect()
    }

    #[test]
    fn rows_that_are_far_apart_are_read_ahead() {
        let home = tempfile::tempdir().unwrap();
        let view = filled(home.path(), 0).view();
        let mut random = fastrand::Rng::with_seed(1);
        let mut forward = ordinals();
        forward.retain(|_| random.u8(..) < 200);
        let backward: Vec<u64> = forward.iter().rev().copied().collect();
        for list in [forward, backward] {
            let mut units = Units::owned(&view, Table::Transactions);
            let mut ahead = 0;
            for (place, &ordinal) in list.iter().enumerate() {
                // Also with a row that is left out now and then.
                if random.u8(..) < 20 {
                    continue;
                }
                let row = units.row_of(wanted(&list[place..])).unwrap();
                assert_eq!(
                    (row.block, row.index, row.bytes()),
                    (ordinal / STEP, 0, &bytes(ordinal)[..])
                );
                ahead += units.rows_ahead();
            }
            assert!(ahead > list.len(), "{ahead}");
        }
    }

    #[test]
    fn nothing_is_read_ahead_of_blocks_in_the_cache_or_of_who_must_not_wait() {
        let home = tempfile::tempdir().unwrap();
        let view = filled(home.path(), 64 << 20).view();
        let list = ordinals();
        let pass = || {
            let mut units = Units::owned(&view, Table::Transactions);
            let mut ahead = 0;
            for place in 0..list.len() {
                if units.row_of(wanted(&list[place..])).is_err() {
                    return None;
                }
                ahead += units.rows_ahead();
            }
            Some(ahead)
        };
        assert_eq!(from_memory(|| pass().unwrap_or_default()), None);
        assert!(pass().unwrap() > 0);
        assert_eq!(pass(), Some(0));
        // Rows that nothing follows.
        let home = tempfile::tempdir().unwrap();
        let view = filled(home.path(), 0).view();
        let mut units = Units::owned(&view, Table::Transactions);
        for ordinal in ordinals() {
            units.row(ordinal).unwrap();
            assert_eq!(units.rows_ahead(), 0);
        }
    }

    #[test]
    fn several_threads_read() {
        static SEEN: Mutex<Option<HashSet<ThreadId>>> = Mutex::new(None);
        /// Waits for another thread to come.
        fn touch(_: &View, _: u64, _: UnitRow<'_>) {
            let began = clock::now();
            loop {
                let mut seen = lock(&SEEN);
                let seen = seen.get_or_insert_default();
                seen.insert(std::thread::current().id());
                if seen.len() > 1 || clock::now() - began > Duration::from_secs(20) {
                    return;
                }
                std::thread::yield_now();
            }
        }
        let home = tempfile::tempdir().unwrap();
        let view = filled(home.path(), 0).view();
        let rows = Batch::read(&view, Table::Transactions, &ordinals()[..ROWS], touch, READERS);
        assert_eq!(rows.len(), ROWS);
        assert!(lock(&SEEN).as_ref().unwrap().len() > 1);
    }

    #[test]
    fn what_cannot_be_read_is_told_where_it_is_wanted() {
        let home = tempfile::tempdir().unwrap();
        let store = filled(home.path(), 0);
        let table = family(&store.db, Table::Transactions).unwrap();
        store
            .db
            .put_cf(table, keys::number(30 * STEP), b"no unit")
            .unwrap();
        let long = vec![7; 2 * ROW_BYTES_MAX];
        let unit = chunk::unit_of_row(40, 0, &long);
        store.db.put_cf(table, keys::number(40 * STEP), unit).unwrap();
        drop(store);
        let view = open(home.path(), 0).view();
        let list = ordinals();
        let mut units = Units::owned(&view, Table::Transactions);
        for place in 0..100 {
            let row = units.row_of(wanted(&list[place..]));
            match place {
                30 => assert!(matches!(row, Err(StoreError::Corrupt { .. })), "{row:?}"),
                40 => assert_eq!(row.unwrap().bytes(), long),
                _ => assert_eq!(row.unwrap().bytes(), bytes(list[place])),
            }
        }
        // A touch that panics takes nobody along but its row, and whoever wants that.
        let view = filled(tempfile::tempdir().unwrap().path(), 0).view();
        let rows = catch_unwind(AssertUnwindSafe(|| {
            let touch: Touch = |_, ordinal, _| {
                let thread = std::thread::current();
                let is_reader = thread.name().is_some_and(|name| name.starts_with("reader"));
                assert!(!is_reader, "{ordinal}");
            };
            Batch::read(&view, Table::Transactions, &list[..ROWS], touch, READERS)
        }));
        assert!(rows.unwrap().len() <= ROWS);
    }

    #[test]
    fn a_store_can_be_closed_at_once() {
        let home = tempfile::tempdir().unwrap();
        drop(filled(home.path(), 0));
        for _ in 0..30 {
            let store = open(home.path(), 0);
            let view = store.view();
            let rows = Batch::read(
                &view,
                Table::Transactions,
                &ordinals()[..ROWS],
                |_, _, _| (),
                READERS,
            );
            assert_eq!(rows.len(), ROWS);
            // Nobody else holds it: it is locked no more once these are gone.
            drop(view);
            assert_eq!(Arc::strong_count(&store), 1);
            drop(store);
        }
    }
}
