//! The files of a database that another process writes, by which it is known whether anything was written.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::StoreError;
use super::beside::files_of;
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
pub(super) struct Written {
    mark: Mark,
    /// When a file was made or removed last.
    changed: SystemTime,
    /// Since when it is known that none was since then.
    since: Instant,
    /// Logs by name, and how long they are; none where they cannot be listed.
    logs: BTreeMap<OsString, u64>,
    read: Instant,
}

fn changed_at(database: &Path) -> Result<SystemTime, StoreError> {
    let about = database.metadata().and_then(|about| about.modified());
    about.map_err(StoreError::io("read", database))
}

impl Written {
    /// As it is now; `before` is an earlier one of the same files.
    pub(super) fn of(database: &Path, mark: Mark, before: Option<&Self>) -> Result<Self, StoreError> {
        let (now, changed) = (clock::now(), changed_at(database)?);
        let same = before.filter(|before| before.changed == changed);
        Ok(Self {
            mark,
            changed,
            since: same.map_or(now, |before| before.since),
            logs: files_of(database, "log").collect(),
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
        let is_as_long = |(log, bytes): (&OsString, &u64)| {
            let about = database.join(log).metadata();
            about.is_ok_and(|about| about.len() == *bytes)
        };
        is_told
            && self.mark == *mark
            && changed_at(database).is_ok_and(|changed| changed == self.changed)
            && !self.logs.is_empty()
            && self.logs.iter().all(is_as_long)
    }
}
