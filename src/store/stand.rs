//! The files of a database that another process writes, by which it is known whether anything was written.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::StoreError;
use crate::clock;

/// A database in its directory, whatever the name of that is by now. The directory is kept open, so that no later one gets its number.
#[derive(Debug)]
pub(super) struct Home {
    _open: File,
    place: (u64, u64),
    /// What RocksDB drew for the database: another one may have been copied into the same directory.
    identity: Option<String>,
}

fn identity_at(directory: &Path) -> Option<String> {
    std::fs::read_to_string(directory.join("IDENTITY")).ok()
}

impl Home {
    pub(super) fn of(directory: &Path) -> Result<Self, StoreError> {
        let failed = StoreError::io("read", directory);
        let open = File::open(directory).and_then(|open| Ok((open.metadata()?, open)));
        let (about, open) = open.map_err(failed)?;
        Ok(Self {
            _open: open,
            place: (about.dev(), about.ino()),
            identity: identity_at(directory),
        })
    }

    /// Whether it still lies there.
    pub(super) fn is_at(&self, directory: &Path) -> Result<bool, StoreError> {
        let about = directory.metadata().map_err(StoreError::io("read", directory))?;
        Ok((about.dev(), about.ino()) == self.place && identity_at(directory) == self.identity)
    }
}

/// How the writer's manifest stands: as long as it is the same, no log and no table was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) manifest: String,
    bytes: u64,
}

impl Mark {
    pub(super) fn of(database: &Path) -> Result<Self, StoreError> {
        let current = database.join("CURRENT");
        let manifest = std::fs::read_to_string(&current).map_err(StoreError::io("read", &current))?;
        let path = database.join(manifest.trim_end());
        let bytes = path.metadata().map_err(StoreError::io("read", &path))?.len();
        Ok(Self { manifest, bytes })
    }
}

/// From so long on after a directory's time was seen first, whatever is made in it has a later one.
pub(super) const TIMES_DIFFER: Duration = Duration::from_millis(100);
/// The same where times seem to be whole seconds, or every second one of them.
const COARSE_TIMES_DIFFER: Duration = Duration::from_secs(3);
/// The writer's files are read anew this often whatever their sizes and times say.
const READ_EVERY: Duration = Duration::from_secs(10);

/// The files that a writer writes to, before they were read.
#[derive(Clone, Debug)]
pub(super) struct Stand {
    mark: Mark,
    /// When a file was made or removed last.
    changed: SystemTime,
    /// Since when it is known that none was since then.
    since: Instant,
    /// The newest log and its bytes. RocksDB writes to that one alone, unless it makes logs before it needs them or uses them again
    /// (`async_wal_precreate`, `recycle_log_file_num`), which is not asked of it.
    log: Option<(PathBuf, u64)>,
    read: Instant,
}

fn changed_at(database: &Path) -> Result<SystemTime, StoreError> {
    let about = database.metadata().and_then(|about| about.modified());
    about.map_err(StoreError::io("read", database))
}

fn bytes_of(log: &Path) -> Option<u64> {
    log.metadata().ok().map(|about| about.len())
}

impl Stand {
    /// As it is now; `before` is an earlier one of the same files.
    pub(super) fn of(database: &Path, mark: Mark, before: Option<&Self>) -> Result<Self, StoreError> {
        let (now, changed) = (clock::now(), changed_at(database)?);
        let mut newest = None;
        for file in database.read_dir().map_err(StoreError::io("read", database))? {
            let path = file.map_err(StoreError::io("read", database))?.path();
            if path.extension().is_some_and(|form| form == "log") {
                let number = path
                    .file_stem()
                    .and_then(|name| name.to_str()?.parse::<u64>().ok());
                newest = newest.max(number.map(|number| (number, path)));
            }
        }
        let same = before.filter(|before| before.changed == changed);
        Ok(Self {
            mark,
            changed,
            since: same.map_or(now, |before| before.since),
            log: newest.and_then(|(_, path)| bytes_of(&path).map(|bytes| (path, bytes))),
            read: now,
        })
    }

    /// Whether nothing was written since it was taken, at this mark: a log that came later is a file that was made.
    pub(super) fn holds(&self, database: &Path, mark: &Mark) -> bool {
        let differ = match clock::unix_seconds(self.changed).fract() > 0.0 {
            true => TIMES_DIFFER,
            false => COARSE_TIMES_DIFFER,
        };
        let is_told = self.read - self.since >= differ && clock::now() - self.read < READ_EVERY;
        is_told
            && self.mark == *mark
            && changed_at(database).is_ok_and(|changed| changed == self.changed)
            && self
                .log
                .as_ref()
                .is_none_or(|(path, bytes)| bytes_of(path) == Some(*bytes))
    }
}
