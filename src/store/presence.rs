//! Whether a directory holds a database, told before RocksDB looks at it.
//!
//! RocksDB takes a directory without `CURRENT` for a new one: it makes a database there and deletes the tables that it
//! finds, since none of its manifests names them. A copy that missed one small file would cost the whole store.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::beside::files_of;
use super::copy::database::{Kind, list};
use super::{StoreError, live_files};
use crate::clock;

/// A database that is just being made has its first log sooner.
const BEGINNING: Duration = Duration::from_secs(5);
/// The manifest that RocksDB makes before the file that leads to it. Later ones come after that, and it is never without it again.
const FIRST_MANIFEST: &str = "MANIFEST-000001";

/// Whether there is a file; what may not be looked at is no absence.
pub(super) fn is_there(path: &Path) -> Result<bool, StoreError> {
    match path.try_exists() {
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
        told => told.map_err(StoreError::io("read", path)),
    }
}

/// Whether `database`, a part of the store in `store`, holds a database.
///
/// # Errors
/// [`StoreError::Damaged`] where there are tables, a log with records or a manifest that is not the first, and not the file that leads
/// to them. RocksDB writes that one before any of these. [`StoreError::NoDirectory`] where a file lies in the way.
pub(super) fn holds_database(database: &Path, store: &Path) -> Result<bool, StoreError> {
    if is_there(&database.join("CURRENT"))? {
        return Ok(true);
    }
    let files = match list(database) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            // A part of a store that is a file is for whoever knows the part.
            return match store
                .ancestors()
                .find(|path| path.metadata().is_ok_and(|about| !about.is_dir()))
            {
                Some(file) => Err(StoreError::NoDirectory {
                    path: file.to_path_buf(),
                }),
                None => Ok(false),
            };
        }
        files => files.map_err(StoreError::io("list", database))?,
    };
    let is_filled = |(name, kind): &(&String, &Kind)| match kind {
        Kind::Table => true,
        Kind::Log(_) => database.join(name).metadata().is_ok_and(|log| log.len() > 0),
        Kind::Manifest => *name != FIRST_MANIFEST,
        Kind::Current | Kind::About => false,
    };
    match files.iter().find(is_filled) {
        None => Ok(false),
        Some((name, _)) => Err(StoreError::Damaged {
            path: store.to_path_buf(),
            words: format!(
                "`{}` is missing, `{name}` is there",
                database.join("CURRENT").display()
            ),
        }),
    }
}

/// Whether a database was made a while ago, so that its files are there.
pub(super) fn is_begun(database: &Path) -> bool {
    let made = database
        .join("CURRENT")
        .metadata()
        .and_then(|about| about.modified());
    let age = made.map(|made| clock::wall().duration_since(made));
    matches!(age, Ok(Ok(age)) if age > BEGINNING)
}

/// Whether a database has no log at all, which one that was begun always has.
pub(super) fn lacks_logs(database: &Path) -> bool {
    is_begun(database) && files_of(database, "log").next().is_none()
}

/// Whether a database without its first row has lost that, and is not just being made: the row is in a log before it is in a table.
pub(super) fn has_lost_its_beginning(database: &Path) -> bool {
    live_files::has_tables(database) || lacks_logs(database)
}
