//! Opening a database that another process writes: whether what was read of it is of one moment.
//!
//! RocksDB reads the manifest, then lists the logs, then reads them. Where the writer removes a log between two of
//! these, RocksDB reads on without it. And where it flushes and goes on in another log in between, what was flushed is
//! missing, for the manifest was read before, while the rows of the new log are there: rows that never went through a log
//! (backfill) are not even in the old one, should that still be there. Tables would be there as they were flushed before,
//! with the writes of the new log on top.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use super::stand::Mark;

/// The files of a database whose names end so, and how long they are; none where they cannot be listed.
pub(super) fn files_of(database: &Path, end: &str) -> impl Iterator<Item = (OsString, u64)> {
    let files = std::fs::read_dir(database).into_iter().flatten().flatten();
    files
        .filter(move |file| file.path().extension().is_some_and(|found| found == end))
        .map(|file| (file.file_name(), file.metadata().map_or(0, |about| about.len())))
}

/// How a database stands as its files tell.
#[derive(Debug)]
pub(super) struct Stand {
    /// `None` where it cannot be told.
    manifest: Option<Mark>,
    /// Logs by name, and how long they are.
    logs: BTreeMap<OsString, u64>,
}

impl Stand {
    pub(super) fn of(database: &Path) -> Self {
        Self {
            logs: files_of(database, "log").collect(),
            manifest: Mark::of(database).ok(),
        }
    }

    /// Whether whoever opened it between this stand and a later one may have read of two moments.
    pub(super) fn is_torn(&self, after: &Self) -> bool {
        let is_gone = self.logs.keys().any(|log| !after.logs.contains_key(log));
        // A manifest that is the same tells of what the logs go on from, and logs that are the same have nothing new.
        is_gone || (self.manifest != after.manifest && self.logs != after.logs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_moments_are_told_apart() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(home.path().join(name), text).unwrap();
        write("CURRENT", "MANIFEST-1\n");
        write("MANIFEST-1", "one");
        write("000004.log", "rows");
        write("000005.sst", "table");
        let first = Stand::of(home.path());
        assert!(!first.is_torn(&Stand::of(home.path())));
        // More rows, or another table: either alone is harmless.
        write("000004.log", "rows and more");
        let logged = Stand::of(home.path());
        assert!(!first.is_torn(&logged));
        write("MANIFEST-1", "one and a flush");
        let flushed = Stand::of(home.path());
        assert!(!logged.is_torn(&flushed));
        assert!(
            first.is_torn(&flushed),
            "what was flushed may be missing below the rows"
        );
        write("000006.log", "");
        assert!(!flushed.is_torn(&Stand::of(home.path())));
        std::fs::remove_file(home.path().join("000004.log")).unwrap();
        assert!(flushed.is_torn(&Stand::of(home.path())), "a log went");
    }
}
