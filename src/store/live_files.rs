//! Whether the tables that a manifest names are there, told before RocksDB opens a database for writing.
//!
//! With a limit on open files RocksDB looks at sixteen tables when it opens a database, so that a writer would begin on one that
//! lacks others. And it deletes tables that its manifest does not name: a manifest that lost its end would cost those
//! which that end named, and one that names nothing all of them.

use std::path::Path;

use rocksdb::{ColumnFamilyDescriptor, DB, Options};

use super::beside::files_of;
use super::open::IDENTITY;
use super::schema::Table;
use super::stand::Mark;
use super::{StoreError, migrate, torn};

/// Tables that are open at once while a database is looked at.
const OPEN_TABLES: i32 = 32;

/// Whether there is a table in a database's directory.
pub(super) fn has_tables(database: &Path) -> bool {
    files_of(database, "sst").next().is_some()
}

/// What to say of a database that does not tell which chain it is of: damage where it has tables, of which the first tells it.
pub(super) fn without_identity(database: &Path, store: &Path) -> StoreError {
    let path = store.to_path_buf();
    if has_tables(database) {
        let words = format!(
            "tables are there, and the manifest in `{}` leads to none that tells the chain",
            database.display()
        );
        return StoreError::Damaged { path, words };
    }
    StoreError::Absent { path }
}

/// Which layouts a store may have that is to be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Ours,
    /// It was looked at already.
    Any,
}

/// Refuses a store whose files are not those of its manifest, and one of another layout, before anything is written.
///
/// # Errors
/// [`StoreError::Damaged`], which says what is missing; [`StoreError::Schema`].
pub(super) fn check_before_writing(database: &Path, store: &Path, layout: Layout) -> Result<(), StoreError> {
    // Of a log that RocksDB does not get past a writer takes the garbage first, and a copy does.
    if !has_tables(database) || torn::refuse(database, store).is_err() {
        return Ok(());
    }
    let before = Mark::of(database).ok();
    let looked = look(database, store, layout);
    // Another process writes it meanwhile: opening it says so.
    if before.is_none() || Mark::of(database).ok() != before {
        return Ok(());
    }
    looked
}

fn look(database: &Path, store: &Path, layout: Layout) -> Result<(), StoreError> {
    let of_opening = |source| StoreError::of_opening(source, store);
    let mut options = Options::default();
    options.set_max_open_files(OPEN_TABLES);
    let names = DB::list_cf(&options, database).map_err(of_opening)?;
    let tables = names
        .iter()
        .map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let db = DB::open_cf_descriptors_read_only(&options, database, tables, false).map_err(of_opening)?;
    check(&db, database, store)?;
    let identity = match db.cf_handle(Table::Meta.name()) {
        None => None,
        Some(meta) => db
            .get_pinned_cf(meta, IDENTITY)
            .map_err(StoreError::rocks_at(Table::Meta.name(), IDENTITY))?,
    };
    let identity = identity.ok_or_else(|| without_identity(database, store))?;
    match layout {
        Layout::Ours => migrate::check(store, migrate::version_of(&identity)),
        Layout::Any => Ok(()),
    }
}

/// Holds every table that an open database names against the directory.
pub(super) fn check(db: &DB, database: &Path, store: &Path) -> Result<(), StoreError> {
    for file in db.live_files().map_err(StoreError::rocks("database"))? {
        let path = database.join(file.name.trim_start_matches('/'));
        let lacks = match path.metadata() {
            Ok(found) if found.len() == file.size as u64 => continue,
            Ok(found) => format!("has {} of {} bytes", found.len(), file.size),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "is not there".to_owned(),
            Err(error) => return Err(StoreError::io("read", &path)(error)),
        };
        let (path, table) = (path.display(), file.column_family_name);
        return Err(StoreError::Damaged {
            path: store.to_path_buf(),
            words: format!("`{path}` of table `{table}` {lacks}"),
        });
    }
    Ok(())
}
