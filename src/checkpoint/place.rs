//! Directories (and files) that are there whole or not at all: made under another name, and renamed when all is done.
//!
//! Whoever works in one holds a lock on it that ends with its process. What a killed process left is removed by the next
//! one that begins at the same place.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::CheckpointError;
use crate::store::{make_directory, sync_names};

/// A directory under a temporary name; removed when dropped, unless it was given its own.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    parent: PathBuf,
    /// Held while somebody works in it.
    lock: Option<File>,
}

/// Random hex digits at the end of a temporary name.
const DIGITS: usize = 8;
/// Made to try something, and removed at once.
const PROBE: &str = "probe.tmp";

impl Place {
    /// Makes a directory in `parent` whose name begins with `prefix`, and removes those that killed processes left.
    pub fn begin(parent: &Path, prefix: &str) -> Result<Self, CheckpointError> {
        let parent = match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        };
        make_directory(parent).map_err(CheckpointError::io("make", parent))?;
        let failed = || CheckpointError::io("lock", parent);
        // Beginning and removing exclude each other, or one would remove what the other has not locked yet.
        let turn = File::open(parent).map_err(failed())?;
        turn.lock().map_err(failed())?;
        sweep(parent, prefix)?;
        let name = format!("{prefix}{:0DIGITS$x}", fastrand::u32(..));
        let path = parent.join(name);
        fs::create_dir(&path).map_err(CheckpointError::io("make", &path))?;
        let lock = File::open(&path).map_err(CheckpointError::io("lock", &path))?;
        lock.lock().map_err(CheckpointError::io("lock", &path))?;
        Ok(Self {
            path,
            parent: parent.to_path_buf(),
            lock: Some(lock),
        })
    }

    /// Where to work.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Forces the names in a directory of it to disk.
    pub(super) fn sync(&self, below: &str) -> Result<(), CheckpointError> {
        sync(&self.path.join(below))
    }

    /// Whether a directory can be renamed from here to beside `other`. Only trying tells: what is on one file system may lie on
    /// two mounts of it, or be counted for two projects.
    pub(super) fn reaches(&self, other: &Self) -> bool {
        let (here, there) = (self.path.join(PROBE), other.path.join(PROBE));
        let reached = fs::create_dir(&here).and_then(|()| fs::rename(&here, &there));
        for probe in [here, there] {
            let _ = fs::remove_dir(probe);
        }
        reached.is_ok()
    }

    /// Whether the empty directory `path`, on this file system, is a mount point, to whose place nothing can be renamed.
    pub(super) fn finds_mounted(&self, path: &Path) -> bool {
        // Where a directory is that is not empty no other one takes its place: a mount point is refused before that is seen.
        let full = self.path.join(PROBE);
        let tried = fs::create_dir_all(full.join(PROBE)).and_then(|()| fs::rename(path, &full));
        let _ = fs::remove_dir_all(full);
        tried.is_err_and(|error| error.kind() == ErrorKind::ResourceBusy)
    }

    /// Gives it its own name, to a place that it [reaches](Self::reaches): from then on it is there, whole.
    pub(super) fn rename(mut self, to: &Path) -> Result<(), CheckpointError> {
        sync(&self.path)?;
        match fs::rename(&self.path, to) {
            Ok(()) => {
                self.lock = None;
                let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty());
                sync(parent.unwrap_or(Path::new(".")))?;
                sync(&self.parent)?;
                // Nothing is left to be removed.
                self.path = PathBuf::new();
                Ok(())
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists | ErrorKind::NotADirectory
                ) =>
            {
                Err(CheckpointError::Exists {
                    path: to.to_path_buf(),
                })
            }
            Err(error) => Err(CheckpointError::io("make", to)(error)),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

fn sync(directory: &Path) -> Result<(), CheckpointError> {
    sync_names(directory).map_err(CheckpointError::io("sync", directory))
}

/// Removes directories of this prefix in which nobody works any more.
fn sweep(parent: &Path, prefix: &str) -> Result<(), CheckpointError> {
    for entry in fs::read_dir(parent).map_err(CheckpointError::io("list", parent))? {
        let entry = entry.map_err(CheckpointError::io("list", parent))?;
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let ours = rest
            .is_some_and(|rest| rest.len() == DIGITS && rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        if let Ok(lock) = File::open(&path)
            && lock.try_lock().is_ok()
        {
            tracing::info!(directory = %path.display(), "removing what an interrupted command left");
            remove(&path)?;
        }
    }
    Ok(())
}

/// Removes a directory that may be gone: whoever worked in it may have ended, or given it its name, a moment ago.
fn remove(path: &Path) -> Result<(), CheckpointError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(CheckpointError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_the_dead_left_goes_and_what_the_living_hold_stays() {
        let parent = tempfile::tempdir().unwrap();
        fs::create_dir(parent.path().join(".x-0011aaff")).unwrap();
        fs::write(parent.path().join(".x-0011aaff/half"), b"half").unwrap();
        // None of ours: another name, no directory.
        fs::create_dir(parent.path().join(".x-mine")).unwrap();
        fs::write(parent.path().join(".x-00000000"), b"a file").unwrap();
        let one = Place::begin(parent.path(), ".x-").unwrap();
        let other = Place::begin(parent.path(), ".x-").unwrap();
        assert!(one.path().exists() && other.path().exists());
        assert_eq!(names(parent.path()).len(), 4);
        drop(one);
        let whole = parent.path().join("whole");
        other.rename(&whole).unwrap();
        assert_eq!(names(parent.path()), [".x-00000000", ".x-mine", "whole"]);
        // Nothing is put in the place of something.
        fs::write(whole.join("file"), b"something").unwrap();
        let third = Place::begin(parent.path(), ".x-").unwrap();
        let refused = third.rename(&whole).unwrap_err();
        assert!(matches!(refused, CheckpointError::Exists { .. }), "{refused}");
        assert_eq!(names(parent.path()).len(), 3);
        remove(&parent.path().join(".x-0011aaff")).unwrap();
    }

    #[test]
    fn what_is_tried_leaves_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let one = Place::begin(parent.path(), ".x-").unwrap();
        let other = Place::begin(parent.path(), ".y-").unwrap();
        assert!(one.reaches(&other) && other.reaches(&one));
        let gone = Place {
            path: parent.path().join("gone"),
            parent: parent.path().to_path_buf(),
            lock: None,
        };
        assert!(!one.reaches(&gone) && !gone.reaches(&one));
        let empty = parent.path().join("empty");
        fs::create_dir(&empty).unwrap();
        assert!(!one.finds_mounted(&empty));
        assert!(!one.finds_mounted(&parent.path().join("absent")));
        assert_eq!(names(parent.path()).len(), 3);
        for place in [one.path(), other.path(), empty.as_path()] {
            assert_eq!(names(place), [""; 0]);
        }
    }
}
