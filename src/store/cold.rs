//! Making a store cold: its files leave the system's file cache.

use std::fs::File;
use std::path::Path;

use super::StoreError;

/// What was asked to leave the file cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evicted {
    /// Files.
    pub files: u64,
    /// Their lengths together.
    pub bytes: u64,
}

/// Asks the system to forget the cached pages of every file of a store's directory (`posix_fadvise` with `DONTNEED`).
/// Pages that are not written yet stay, which a store syncs within a batch; so do pages that a process has mapped and
/// touched: those of the flat arrays of whoever has the store open. A file that goes meanwhile, as compaction makes
/// files go, is passed over.
pub fn evict(directory: &Path) -> Result<Evicted, StoreError> {
    let mut evicted = Evicted::default();
    for part in ["rocksdb", "flat"] {
        let part = directory.join(part);
        let failed = StoreError::io("list", &part);
        for entry in std::fs::read_dir(&part).map_err(&failed)? {
            let entry = entry.map_err(&failed)?;
            let Ok(file) = File::open(entry.path()) else {
                continue;
            };
            let Ok(metadata) = file.metadata() else { continue };
            if metadata.is_file() && forget(&file).is_ok() {
                evicted.files += 1;
                evicted.bytes += metadata.len();
            }
        }
    }
    Ok(evicted)
}

fn forget(file: &File) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed)?;
    #[cfg(not(target_os = "linux"))]
    let _ = file;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_store_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        for (part, bytes) in [("rocksdb", 10_000), ("flat", 5_000)] {
            let part = directory.path().join(part);
            std::fs::create_dir(&part).unwrap();
            std::fs::write(part.join("file"), vec![1; bytes]).unwrap();
        }
        // What lies beside the store is not its.
        std::fs::write(directory.path().join("other"), [1]).unwrap();
        let expected = Evicted {
            files: 2,
            bytes: 15_000,
        };
        assert_eq!(evict(directory.path()).unwrap(), expected);
    }

    #[test]
    fn a_directory_without_a_store_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(evict(directory.path()).is_err());
    }
}
