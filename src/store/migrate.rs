//! Layout versions: which store is ours, which can be brought up to ours step by step, and which is refused.
//!
//! A step goes from one version to the next. It is run again from its beginning when it was interrupted, so it must not
//! mind what it has done already; the version is raised when all of it is on disk, and not before.

use std::path::Path;
use std::sync::Arc;

use rocksdb::{ColumnFamilyDescriptor, DB, FlushOptions, Options, WriteBatch, WriteOptions};

use super::open::{IDENTITY, OpenOptions, memtable_of_table};
use super::presence::holds_database;
use super::schema::{SCHEMA_VERSION, Table};
use super::{
    StoreError, live_files, open_pieces, options, pair_lists, second_standards, top_calls, torn,
    transaction_rows,
};

/// From one layout version to the next.
pub(super) struct Step {
    /// The version that it begins with; it ends with the next one.
    pub(super) from: u32,
    /// What it does, for the operator.
    pub(super) about: &'static str,
    /// Does it, over and over if need be, as the store was opened. Answers what is to be written together with the new version.
    pub(super) apply: fn(&Arc<DB>, &OpenOptions) -> Result<WriteBatch, StoreError>,
}

/// The steps that there are, by version. None leads from versions 1 to 4: their rows lack what only blocks tell, so
/// that such stores are filled again.
const STEPS: &[Step] = &[
    Step {
        from: 5,
        about: "blocks that are not final taken off (the sync fetches them again), and the ends of the lists of postings moved into a table of their own",
        apply: open_pieces::apply,
    },
    Step {
        from: 6,
        about: "blocks that are not final taken off (the sync fetches them again), and holdings of tokens by other standards than their own added",
        apply: second_standards::apply,
    },
    Step {
        from: 7,
        about: "blocks that are not final taken off (the sync fetches them again), and what top calls repeat of their transactions left out of their rows",
        apply: top_calls::apply,
    },
    Step {
        from: 8,
        about: "blocks that are not final taken off (the sync fetches them again), rows of transactions written in a shorter form, and their signatures moved into an array",
        apply: transaction_rows::apply,
    },
    Step {
        from: 9,
        about: "blocks that are not final taken off (the sync fetches them again), and lists of the logs that pairs of dense contracts and topics share added",
        apply: pair_lists::apply,
    },
];

/// The steps from `found` to `wanted`; `None` where one is missing.
fn way(steps: &[Step], found: u32, wanted: u32) -> Option<Vec<&Step>> {
    (found..wanted)
        .map(|version| steps.iter().find(|step| step.from == version))
        .collect()
}

/// The sentence for a layout that is not ours.
fn other(directory: &Path, found: u32, steps: &[Step], wanted: u32) -> StoreError {
    let way_out = if found > wanted {
        "use the newer quarry that wrote it"
    } else if way(steps, found, wanted).is_some() {
        "run `quarry migrate`, after `quarry checkpoint create` by the quarry that wrote it if you may want to go back"
    } else {
        "fill a new --data-dir with this quarry, the old one can be served meanwhile by the quarry that wrote it"
    };
    StoreError::Schema {
        path: directory.to_path_buf(),
        found,
        wanted,
        way_out,
    }
}

/// Refuses a version that is not ours.
pub(super) fn check(directory: &Path, found: u32) -> Result<(), StoreError> {
    match found {
        SCHEMA_VERSION => Ok(()),
        found => Err(other(directory, found, STEPS, SCHEMA_VERSION)),
    }
}

/// The version of stored identity bytes: it comes first, so that it can be read whatever follows.
pub(super) fn version_of(identity: &[u8]) -> u32 {
    identity.first().copied().map_or(0, u32::from)
}

fn of_opening(database: &Path) -> impl Fn(rocksdb::Error) -> StoreError {
    move |source| StoreError::of_opening(source, database.parent().unwrap_or(database))
}

fn tables(database: &Path) -> Result<Vec<String>, StoreError> {
    DB::list_cf(&Options::default(), database).map_err(of_opening(database))
}

/// The layout version of the store in a directory, read without changing anything; `None` in one that was never begun.
fn peek(database: &Path) -> Result<Option<u32>, StoreError> {
    if !tables(database)?.iter().any(|name| name == Table::Meta.name()) {
        return Ok(None);
    }
    let meta = [Table::Meta.name()].map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let db = DB::open_cf_descriptors_read_only(&Options::default(), database, meta, false)
        .map_err(of_opening(database))?;
    let meta = super::view::family(&db, Table::Meta)?;
    let identity = db
        .get_cf(meta, IDENTITY)
        .map_err(StoreError::rocks_at(Table::Meta.name(), IDENTITY))?;
    Ok(identity.as_deref().map(version_of))
}

/// Refuses the store of another layout before it is opened: opening it for writing would add the tables that it does
/// not have, and the quarry that wrote it would refuse it then.
pub(super) fn check_before_opening(directory: &Path, database: &Path) -> Result<(), StoreError> {
    let found = match tables(database) {
        Ok(found) => found,
        // The opening says it better.
        Err(_) => return Ok(()),
    };
    let is_ours = |name: &String| name == "default" || Table::from_name(name).is_some();
    if found.len() == Table::ALL.len() + 1 && found.iter().all(is_ours) {
        return Ok(());
    }
    match peek(database)? {
        Some(version) => check(directory, version),
        None => Ok(()),
    }
}

/// Brings a store up to this quarry's layout, with the memory that the options give. Answers from which version, and what was done.
///
/// # Errors
/// [`StoreError::Absent`] without a store, [`StoreError::Schema`] where no steps lead here, [`StoreError::Busy`]
/// while another process writes it.
pub fn migrate(options: &OpenOptions) -> Result<(u32, Vec<&'static str>), StoreError> {
    run(options, STEPS, SCHEMA_VERSION)
}

pub(super) fn run(
    options: &OpenOptions,
    steps: &[Step],
    wanted: u32,
) -> Result<(u32, Vec<&'static str>), StoreError> {
    let directory = options.directory.as_path();
    let database = directory.join("rocksdb");
    if !holds_database(&database, directory)? {
        return Err(StoreError::Absent {
            path: directory.to_path_buf(),
        });
    }
    torn::mend(&database)?;
    let found = peek(&database)?.ok_or_else(|| live_files::without_identity(&database, directory))?;
    if found == wanted {
        return Ok((found, Vec::new()));
    }
    let way = way(steps, found, wanted).filter(|_| found < wanted);
    let way = way.ok_or_else(|| other(directory, found, steps, wanted))?;
    live_files::check_before_writing(&database, directory, live_files::Layout::Any)?;
    // All tables that are there, those of the old layout too, and those that are to be.
    let cache = options::cache(options.cache_bytes);
    let old = tables(&database)?.into_iter();
    let old = old.filter(|name| Table::from_name(name).is_none());
    let old = old.map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let per_table = memtable_of_table(options.memtable_bytes);
    let new = options::tables(&cache, per_table, options::Filters::InParts)
        .map(|(name, options)| ColumnFamilyDescriptor::new(name, options));
    let opening = options::database(options.memtable_bytes, options.open_tables_max);
    let db = DB::open_cf_descriptors(&opening, &database, old.chain(new))
        .map_err(|source| StoreError::of_opening(source, directory))?;
    let db = Arc::new(db);
    let mut done = Vec::new();
    for step in way {
        tracing::info!(from = step.from, to = step.from + 1, "{}", step.about);
        let last = (step.apply)(&db, options)?;
        raise(&db, step.from + 1, last)?;
        done.push(step.about);
    }
    Ok((found, done))
}

/// Raises the version and writes what comes with it, once everything before it is on disk.
fn raise(db: &DB, version: u32, mut last: WriteBatch) -> Result<(), StoreError> {
    let failed = || StoreError::rocks("database");
    let families = Table::ALL.iter().filter_map(|table| db.cf_handle(table.name()));
    let mut flush = FlushOptions::default();
    flush.set_wait(true);
    db.flush_cfs_opt(&families.collect::<Vec<_>>(), &flush)
        .map_err(failed())?;
    let meta = super::view::family(db, Table::Meta)?;
    let mut identity = db.get_cf(meta, IDENTITY).map_err(failed())?.unwrap_or_default();
    if let (Some(first), Ok(version)) = (identity.first_mut(), u8::try_from(version)) {
        *first = version;
    }
    let mut synced = WriteOptions::default();
    synced.set_sync(true);
    last.put_cf(meta, IDENTITY, identity);
    db.write_opt(last, &synced).map_err(failed())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::model::B256;
    use crate::store::Store;
    use crate::store::options::written_in;

    thread_local! {
        /// The first step stops so often before its end.
        static STOPS: Cell<u32> = const { Cell::new(0) };
        /// How often steps were begun.
        static BEGUN: Cell<u32> = const { Cell::new(0) };
    }

    const ROWS: u32 = 20;

    /// Writes rows, and stops in the middle where it is told to.
    fn first(db: &Arc<DB>, _: &OpenOptions) -> Result<WriteBatch, StoreError> {
        BEGUN.set(BEGUN.get() + 1);
        let failed = || StoreError::rocks("database");
        let days = super::super::view::family(db, Table::Days)?;
        for row in 0..ROWS {
            if row == ROWS / 2 && STOPS.get() > 0 {
                STOPS.set(STOPS.get() - 1);
                return Err(StoreError::Stopped);
            }
            db.put_cf(days, row.to_be_bytes(), b"first").map_err(failed())?;
        }
        Ok(WriteBatch::default())
    }

    /// Builds on the rows of the first.
    fn second(db: &Arc<DB>, _: &OpenOptions) -> Result<WriteBatch, StoreError> {
        BEGUN.set(BEGUN.get() + 1);
        let failed = || StoreError::rocks("database");
        let days = super::super::view::family(db, Table::Days)?;
        for row in 0..ROWS {
            let found = db.get_cf(days, row.to_be_bytes()).map_err(failed())?;
            assert!(found.is_some(), "row {row} of the first step is missing");
            db.put_cf(days, row.to_be_bytes(), b"second").map_err(failed())?;
        }
        let mut last = WriteBatch::default();
        last.put_cf(days, b"last", b"of the second");
        Ok(last)
    }

    const NEXT: &[Step] = &[
        Step {
            from: SCHEMA_VERSION,
            about: "the first",
            apply: first,
        },
        Step {
            from: SCHEMA_VERSION + 1,
            about: "the second",
            apply: second,
        },
    ];

    fn make(directory: &Path) -> Result<(), StoreError> {
        Store::open_or_create(&OpenOptions::new(directory), 1, B256::repeat_byte(7), None).map(drop)
    }

    #[test]
    fn steps_are_gone_in_order_and_an_interrupted_one_again() {
        let home = tempfile::tempdir().unwrap();
        make(home.path()).unwrap();
        let database = home.path().join("rocksdb");
        let wanted = SCHEMA_VERSION + 2;
        for stops in [2, 1] {
            STOPS.set(1);
            let error = run(&OpenOptions::new(home.path()), NEXT, wanted).unwrap_err();
            assert!(matches!(error, StoreError::Stopped), "{error}");
            assert_eq!(peek(&database).unwrap(), Some(SCHEMA_VERSION), "{stops}");
        }
        // Still ours: a step that did not end has changed no version.
        make(home.path()).unwrap();
        let done = run(&OpenOptions::new(home.path()), NEXT, wanted).unwrap();
        assert_eq!(done, (SCHEMA_VERSION, vec!["the first", "the second"]));
        assert_eq!(peek(&database).unwrap(), Some(wanted));
        let db =
            DB::open_cf_for_read_only(&Options::default(), &database, [Table::Days.name()], false).unwrap();
        let last = db
            .get_cf(db.cf_handle(Table::Days.name()).unwrap(), b"last")
            .unwrap();
        assert_eq!(last.as_deref(), Some(&b"of the second"[..]));
        assert_eq!(BEGUN.get(), 4);
        assert_eq!(
            run(&OpenOptions::new(home.path()), NEXT, wanted).unwrap(),
            (wanted, Vec::new())
        );
        // Ours no more.
        let refused = make(home.path()).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("has layout version {wanted}")),
            "{refused}"
        );
        assert!(refused.contains("use the newer quarry"), "{refused}");
    }

    #[test]
    fn a_migration_goes_on_from_the_step_that_it_reached() {
        let home = tempfile::tempdir().unwrap();
        make(home.path()).unwrap();
        run(&OpenOptions::new(home.path()), NEXT, SCHEMA_VERSION + 1).unwrap();
        let done = run(&OpenOptions::new(home.path()), NEXT, SCHEMA_VERSION + 2).unwrap();
        assert_eq!(done, (SCHEMA_VERSION + 1, vec!["the second"]));
    }

    #[test]
    fn a_migration_takes_the_memory_that_it_is_given() {
        let home = tempfile::tempdir().unwrap();
        make(home.path()).unwrap();
        let options = OpenOptions {
            cache_bytes: 24 << 20,
            memtable_bytes: 48 << 20,
            open_tables_max: 77,
            ..OpenOptions::new(home.path())
        };
        run(&options, NEXT, SCHEMA_VERSION + 1).unwrap();
        let having = |line: &str| written_in(&home.path().join("rocksdb"), line);
        assert_eq!(having(&format!("db_write_buffer_size={}", 48 << 20)), 1);
        assert_eq!(
            having(&format!("write_buffer_size={}", 24 << 20)),
            Table::ALL.len()
        );
        assert_eq!(having("max_open_files=77"), 1);
    }

    #[test]
    fn who_can_be_migrated_is_told_how() {
        let path = Path::new("x");
        let told = |found| other(path, found, NEXT, SCHEMA_VERSION + 2).to_string();
        assert!(told(SCHEMA_VERSION).contains("run `quarry migrate`"));
        assert!(told(SCHEMA_VERSION - 1).contains("fill a new --data-dir"));
        assert!(told(SCHEMA_VERSION + 3).contains("use the newer quarry"));
    }

    #[test]
    fn one_writer_at_a_time() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open_or_create(&OpenOptions::new(home.path()), 1, B256::ZERO, None).unwrap();
        let refused = run(&OpenOptions::new(home.path()), NEXT, SCHEMA_VERSION + 2).unwrap_err();
        assert!(matches!(refused, StoreError::Busy { .. }), "{refused}");
        drop(store);
    }
}
