//! A database that another process writes, followed as RocksDB's secondary instance.
//!
//! Read in the vendored source (`db/db_impl/db_impl_secondary.cc`): an instance puts what it reads of the writer's log into memtables, and
//! takes what the manifest names as tables. A look-up asks the memtables first and stops there, and they are let go only when
//! a later log has rows of the same table. So once the writer has flushed, rows that were read from its log hide newer ones
//! that came in tables, and rows that were deleted come back. An instance that this may have happened to is *spent*: it is closed,
//! and another is opened (decision 0032).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rocksdb::{ColumnFamilyDescriptor, DB, InfoLogger, LogLevel, Options};

use super::stand::{Home, Mark, Written};
use super::{StoreError, options, torn};

/// How often an instance catches up again when the writer changed its tables meanwhile.
const CATCH_UPS_MAX: usize = 40;
const CATCH_UP_PAUSE: Duration = Duration::from_millis(5);

/// What came of catching up.
#[derive(Debug)]
pub(super) enum Caught {
    /// It is of one moment of the writer.
    Whole(Mark),
    /// The writer would not stand still for it; soon.
    Moving,
    /// It may tell what is no more, and always will: another is to be opened.
    Spent,
}

/// What came of learning what the writer wrote since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learnt {
    Nothing,
    /// Answers may be others now.
    Something,
    /// As [`Caught::Spent`].
    Spent,
}

/// A secondary instance.
pub(super) struct Secondary {
    db: Arc<DB>,
    database: PathBuf,
    tables: Vec<&'static str>,
    home: Home,
    /// The manifest that it follows. It is never led to another one: on the way RocksDB would keep tables that the first one
    /// dropped in words that it has not read yet, and rows that were deleted would come back.
    manifest: String,
    /// The files of which it knows all.
    known: Mutex<Option<Written>>,
    /// It may have read rows that hide newer ones: so it stays, whatever later looks find.
    is_spent: AtomicBool,
}

impl std::fmt::Debug for Secondary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secondary")
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

impl Secondary {
    /// Opens an instance of the database in a directory. It has to catch up before it is read. It writes no file anywhere.
    pub(super) fn open(
        database: &Path,
        mut options: Options,
        tables: Vec<(&'static str, Options)>,
    ) -> Result<Self, StoreError> {
        let store = database.parent().unwrap_or(database);
        torn::refuse(database, store)?;
        let home = Home::of(database)?;
        let manifest = Mark::of(database)?.manifest;
        // The writer's compactions remove files under their names: all of them are opened, and kept.
        options.set_max_open_files(options::ALL_TABLES_OPEN);
        // Its diary (`LOG`) would be the only file in the directory that an instance has of its own. Nobody reads it, and a place for
        // it need not be there: a container may have no directory that can be written to.
        options.set_info_logger(InfoLogger::new_callback_logger(LogLevel::Header, |_, _| {}));
        let names = tables.iter().map(|(name, _)| *name).collect();
        let descriptors = tables
            .into_iter()
            .map(|(name, options)| ColumnFamilyDescriptor::new(name, options));
        // Without a diary no directory of its own is looked at: any name will do.
        let opened = DB::open_cf_descriptors_as_secondary(&options, database, database, descriptors);
        Ok(Self {
            db: Arc::new(opened.map_err(|source| StoreError::of_opening(source, store))?),
            database: database.to_owned(),
            tables: names,
            home,
            manifest,
            known: Mutex::default(),
            is_spent: AtomicBool::new(false),
        })
    }

    /// Opens an instance of a database with one table, and brings it to a moment of the writer; `None` where the writer would
    /// not stand still for it.
    pub(super) fn of_one_table(database: &Path, options: &Options) -> Result<Option<Self>, StoreError> {
        let followed = Self::open(database, options.clone(), vec![("default", options.clone())])?;
        let whole = matches!(followed.catch_up()?, Caught::Whole(_));
        Ok(whole.then_some(followed))
    }

    /// The database as it was when it caught up last; whoever keeps it may see it catch up.
    pub(super) const fn db(&self) -> &Arc<DB> {
        &self.db
    }

    /// Whether the writer has gone on to another manifest, or another directory lies there.
    pub(super) fn is_left(&self) -> Result<bool, StoreError> {
        self.is_left_by(&Mark::of(&self.database)?)
    }

    fn is_left_by(&self, mark: &Mark) -> Result<bool, StoreError> {
        Ok(mark.manifest != self.manifest || !self.home.is_at(&self.database)?)
    }

    /// The oldest log with rows that are in no table yet, as the manifest says. It rises when rows that were logged are
    /// flushed, and only then.
    fn oldest_log(&self) -> Result<Option<u64>, StoreError> {
        let property = self.db.property_int_value("rocksdb.min-log-number-to-keep");
        property.map_err(StoreError::rocks("database"))
    }

    /// Rows in memtables: those that were read from logs.
    fn rows_of_logs(&self) -> Result<u64, StoreError> {
        let mut rows = 0;
        for name in &self.tables {
            let Some(family) = self.db.cf_handle(name) else {
                continue;
            };
            for property in [
                "rocksdb.num-entries-active-mem-table",
                "rocksdb.num-entries-imm-mem-tables",
            ] {
                let found = self.db.property_int_value_cf(family, property);
                rows += found.map_err(StoreError::rocks("database"))?.unwrap_or(0);
            }
        }
        Ok(rows)
    }

    /// Brings it to one moment of the writer. Nobody may read it meanwhile who must not see that.
    ///
    /// Where nothing was written RocksDB is not asked: it would start threads for each table to find that out.
    pub(super) fn catch_up(&self) -> Result<Caught, StoreError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..CATCH_UPS_MAX {
            let before = Mark::of(&self.database)?;
            if self.is_spent.load(Ordering::Acquire) || self.is_left_by(&before)? {
                return Ok(Caught::Spent);
            }
            if known
                .as_ref()
                .is_some_and(|known| known.holds(&self.database, &before))
            {
                return Ok(Caught::Whole(before));
            }
            let written = Written::of(&self.database, before.clone(), known.as_ref())?;
            *known = None;
            let (rows, log) = (self.rows_of_logs()?, self.oldest_log()?);
            // What it has read from logs may be older than what was flushed, and where that cannot be told it is taken for so.
            self.is_spent.store(rows > 0, Ordering::Release);
            self.db
                .try_catch_up_with_primary()
                .map_err(StoreError::rocks("database"))?;
            if rows > 0 && self.oldest_log()? != log {
                return Ok(Caught::Spent);
            }
            self.is_spent.store(false, Ordering::Release);
            // Manifest and logs are read one after the other: what moved in between from a log into a table, with the log
            // removed, would be in neither. Then the manifest has grown.
            if Mark::of(&self.database)? == before {
                *known = Some(written);
                return Ok(Caught::Whole(before));
            }
            std::thread::sleep(CATCH_UP_PAUSE);
        }
        Ok(Caught::Moving)
    }

    /// Catches up under its readers, where each row stands for itself.
    pub(super) fn learn(&self) -> Result<Learnt, StoreError> {
        let before = self.db.latest_sequence_number();
        Ok(match self.catch_up()? {
            Caught::Whole(_) if self.db.latest_sequence_number() == before => Learnt::Nothing,
            // Where the writer is in the middle of something a row may be missing that comes with the next look.
            Caught::Whole(_) | Caught::Moving => Learnt::Something,
            Caught::Spent => Learnt::Spent,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use fastrand::Rng;
    use rocksdb::{FlushOptions, IteratorMode, WriteBatch, WriteOptions};

    use super::super::stand::TIMES_DIFFER;
    use super::*;

    const TABLES: [&str; 4] = ["default", "a", "b", "c"];

    type Rows = BTreeMap<(usize, u8), u32>;

    fn options() -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_atomic_flush(true);
        options.set_disable_auto_compactions(true);
        options
    }

    /// A writer like ours: rows are logged or not, and before logged ones follow others all is flushed.
    struct Writer {
        db: DB,
        rows: Rows,
        /// What is in a log or a table.
        shown: Rows,
        unlogged: bool,
        version: u32,
    }

    impl Writer {
        fn new(directory: &Path) -> Self {
            Self {
                db: Self::open(directory),
                rows: Rows::new(),
                shown: Rows::new(),
                unlogged: false,
                version: 0,
            }
        }

        fn open(directory: &Path) -> DB {
            let tables = TABLES.map(|name| ColumnFamilyDescriptor::new(name, options()));
            DB::open_cf_descriptors(&options(), directory, tables).unwrap()
        }

        fn write(&mut self, rng: &mut Rng, logged: bool) {
            if logged && self.unlogged {
                self.flush();
            }
            let mut batch = WriteBatch::default();
            self.version += 1;
            let family = |table: usize| self.db.cf_handle(TABLES[table]).unwrap();
            for _ in 0..rng.usize(1..6) {
                let (table, key) = (rng.usize(..4), rng.u8(..8));
                if rng.u8(..4) == 0 {
                    batch.delete_cf(family(table), [key]);
                    self.rows.remove(&(table, key));
                } else {
                    batch.put_cf(family(table), [key], self.version.to_be_bytes());
                    self.rows.insert((table, key), self.version);
                }
            }
            let mut how = WriteOptions::default();
            how.disable_wal(!logged);
            self.db.write_opt(batch, &how).unwrap();
            self.unlogged = !logged;
            if logged {
                self.shown.clone_from(&self.rows);
            }
        }

        fn flush(&mut self) {
            let families: Vec<_> = TABLES.map(|name| self.db.cf_handle(name).unwrap()).to_vec();
            self.db
                .flush_cfs_opt(&families, &FlushOptions::default())
                .unwrap();
            self.unlogged = false;
            self.shown.clone_from(&self.rows);
        }
    }

    fn assert_shows(instance: &Secondary, wanted: &Rows, what: &str) {
        let (mut by_walk, mut by_key) = (Rows::new(), Rows::new());
        for (table, name) in TABLES.iter().enumerate() {
            let family = instance.db().cf_handle(name).unwrap();
            let version = |bytes: &[u8]| u32::from_be_bytes(bytes.try_into().unwrap());
            for row in instance.db().iterator_cf(family, IteratorMode::Start) {
                let (key, value) = row.unwrap();
                by_walk.insert((table, key[0]), version(&value));
            }
            for key in 0..8 {
                if let Some(value) = instance.db().get_cf(family, [key]).unwrap() {
                    by_key.insert((table, key), version(&value));
                }
            }
        }
        assert_eq!(&by_walk, wanted, "by a walk {what}");
        assert_eq!(&by_key, wanted, "by look-ups {what}");
    }

    #[test]
    fn what_is_whole_is_what_the_writer_shows() {
        let seed =
            std::env::var("QUARRY_SEED").map_or_else(|_| fastrand::u64(..1 << 20), |s| s.parse().unwrap());
        let (mut spent, mut whole) = (0, 0);
        for seed in seed..seed + 40 {
            let mut rng = Rng::with_seed(seed);
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("rocksdb");
            let mut writer = Writer::new(&directory);
            let mut instances: Vec<Secondary> = Vec::new();
            for step in 0..60 {
                match rng.u8(..16) {
                    0..6 => writer.write(&mut rng, true),
                    6..9 => writer.write(&mut rng, false),
                    9 => writer.flush(),
                    10 => {
                        for name in TABLES {
                            let family = writer.db.cf_handle(name).unwrap();
                            writer.db.compact_range_cf(family, None::<&[u8]>, None::<&[u8]>);
                        }
                        // It flushes.
                        writer.unlogged = false;
                        writer.shown.clone_from(&writer.rows);
                    }
                    11 if rng.bool() => {
                        // A clean end flushes what was not logged.
                        drop(writer.db);
                        writer.db = Writer::open(&directory);
                        writer.unlogged = false;
                        writer.shown.clone_from(&writer.rows);
                    }
                    12 if instances.len() < 3 => {
                        let tables = TABLES.map(|name| (name, options())).to_vec();
                        instances.push(Secondary::open(&directory, options(), tables).unwrap());
                    }
                    _ if !instances.is_empty() => {
                        let place = rng.usize(..instances.len());
                        match instances[place].catch_up().unwrap() {
                            Caught::Whole(_) => {
                                whole += 1;
                                let what = format!("after step {step} of seed {seed}");
                                assert_shows(&instances[place], &writer.shown, &what);
                            }
                            Caught::Spent => {
                                spent += 1;
                                // Also for who could not open another one at once.
                                let again = instances[place].catch_up().unwrap();
                                assert!(matches!(again, Caught::Spent), "step {step} of seed {seed}");
                                instances.remove(place);
                            }
                            Caught::Moving => panic!("nobody writes"),
                        }
                    }
                    _ => {}
                }
            }
        }
        assert!(spent > 20 && whole > 20, "{spent} {whole}");
    }

    /// The directory that is named as its own is the writer's.
    #[test]
    fn an_instance_writes_no_file() {
        fn listed(directory: &Path) -> Vec<std::ffi::OsString> {
            let entries = std::fs::read_dir(directory).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        }
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("rocksdb");
        let mut writer = Writer::new(&directory);
        writer.write(&mut Rng::with_seed(1), true);
        let (before, beside) = (listed(&directory), listed(home.path()));
        let tables = TABLES.map(|name| (name, options())).to_vec();
        let instance = Secondary::open(&directory, options(), tables).unwrap();
        assert!(matches!(instance.catch_up().unwrap(), Caught::Whole(_)));
        assert_eq!((listed(&directory), listed(home.path())), (before, beside));
        assert_shows(&instance, &writer.shown, "");
    }

    #[test]
    fn where_nothing_was_written_nothing_is_read_and_whatever_is_written_is_seen() {
        let mut rng = Rng::with_seed(5);
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("rocksdb");
        let mut writer = Writer::new(&directory);
        writer.write(&mut rng, true);
        let tables = TABLES.map(|name| (name, options())).to_vec();
        let mut instance = Secondary::open(&directory, options(), tables.clone()).unwrap();
        let holds = |instance: &Secondary| {
            let (known, mark) = (instance.known.lock().unwrap(), Mark::of(&directory).unwrap());
            known.as_ref().unwrap().holds(&directory, &mark)
        };
        for round in 0..24 {
            assert!(matches!(instance.catch_up().unwrap(), Caught::Whole(_)));
            std::thread::sleep(TIMES_DIFFER);
            assert!(matches!(instance.catch_up().unwrap(), Caught::Whole(_)));
            assert!(holds(&instance), "round {round}");
            let sequence = instance.db().latest_sequence_number();
            assert!(matches!(instance.catch_up().unwrap(), Caught::Whole(_)));
            assert_eq!(instance.db().latest_sequence_number(), sequence);
            match round % 4 {
                0 | 2 => writer.write(&mut rng, true),
                1 => {
                    writer.write(&mut rng, false);
                    writer.flush();
                }
                // Rows in a log that was not there when files were listed.
                _ => {
                    writer.flush();
                    writer.write(&mut rng, true);
                }
            }
            assert!(!holds(&instance), "round {round}");
            if matches!(instance.catch_up().unwrap(), Caught::Spent) {
                instance = Secondary::open(&directory, options(), tables.clone()).unwrap();
                assert!(matches!(instance.catch_up().unwrap(), Caught::Whole(_)));
            }
            assert_shows(&instance, &writer.shown, &format!("in round {round}"));
        }
    }

    #[test]
    fn another_database_in_the_place_is_told_whatever_its_names() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("rocksdb");
        drop(Writer::open(&directory));
        let tables = || TABLES.map(|name| (name, options())).to_vec();
        let instance = Secondary::open(&directory, options(), tables()).unwrap();
        assert!(matches!(instance.catch_up().unwrap(), Caught::Whole(_)));
        for _ in 0..3 {
            std::fs::remove_dir_all(&directory).unwrap();
            instance.catch_up().unwrap_err();
            drop(Writer::open(&directory));
            assert_eq!(Mark::of(&directory).unwrap().manifest, instance.manifest);
            assert!(matches!(instance.catch_up().unwrap(), Caught::Spent));
        }
        // In the same directory, too.
        let instance = Secondary::open(&directory, options(), tables()).unwrap();
        assert!(matches!(instance.catch_up().unwrap(), Caught::Whole(_)));
        for file in std::fs::read_dir(&directory).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        drop(Writer::open(&directory));
        assert_eq!(Mark::of(&directory).unwrap().manifest, instance.manifest);
        assert!(matches!(instance.catch_up().unwrap(), Caught::Spent));
    }
}
