//! Directories whose names outlive a power cut as what is forced to disk in them does.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Makes a directory and those above it that are not there, and forces the names of all that it made to disk.
///
/// # Errors
/// When the system fails.
pub fn make_directory(directory: &Path) -> io::Result<()> {
    make(directory, &mut sync_names)
}

fn make(directory: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    let above = directory
        .ancestors()
        .take_while(|above| !above.as_os_str().is_empty());
    let missing: Vec<_> = above.take_while(|above| !above.exists()).collect();
    fs::create_dir_all(directory)?;
    // From above: a name is of use where that of what it stands in is there.
    missing.into_iter().rev().try_for_each(|made| sync(parent(made)))
}

/// The directory that a name stands in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Forces the names in a directory to disk.
///
/// # Errors
/// When the system fails.
pub fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn every_name_that_is_new_is_forced_to_disk() {
        let home = tempfile::tempdir().unwrap();
        let below = |path: &str| home.path().join(path);
        let synced = |path: &str| {
            let mut synced: Vec<PathBuf> = Vec::new();
            let noted = &mut |directory: &Path| {
                synced.push(directory.to_path_buf());
                sync_names(directory)
            };
            make(&below(path), noted).unwrap();
            assert!(below(path).is_dir());
            synced
        };
        assert_eq!(
            synced("a/b/c"),
            [home.path().to_path_buf(), below("a"), below("a/b")]
        );
        assert_eq!(synced("a/b/d/e"), [below("a/b"), below("a/b/d")]);
        assert_eq!(synced("a/b"), [] as [PathBuf; 0]);
        // A name without a directory stands in the current one.
        assert_eq!(parent(Path::new("data")), Path::new("."));
        assert_eq!(parent(Path::new("data/x")), Path::new("data"));
        fs::write(below("file"), b"").unwrap();
        make_directory(&below("file/x")).unwrap_err();
    }
}
