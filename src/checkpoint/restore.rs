//! From a checkpoint to a store: under a temporary name until every hash agreed and the store opened.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::files::Files;
use super::manifest::{Manifest, Named};
use super::name::{self, Name};
use super::place::Place;
use super::read::Source;
use super::{CheckpointError, Watcher};
use crate::model::{B256, BlockId, ChainName};
use crate::store::open_copy;

/// Restores a checkpoint as the store of `chain` in `store`, below `data_dir`, where nothing may be.
pub fn restore(
    source: Source,
    data_dir: &Path,
    store: &Path,
    chain: ChainName,
    watcher: &dyn Watcher,
) -> Result<Manifest, CheckpointError> {
    let occupied = || CheckpointError::Occupied {
        path: store.to_path_buf(),
    };
    let free = match std::fs::read_dir(store) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    if !free {
        return Err(occupied());
    }
    // What would be found out at the end, when everything was read and written.
    if let Some(error) = fixed(data_dir, store) {
        return Err(error);
    }
    let from = source.shown();
    let place = Place::begin(data_dir, &format!(".restore-{chain}-"))?;
    if place.finds_mounted(store) {
        return Err(mount_point(store));
    }
    let mut files = Files::below(&place);
    let mut sink = |name: &Name, file: &mut dyn Read| {
        let written = files.write(name, file, watcher);
        written.map_err(|error| match error {
            // A stream ends where a file should not: the file is not to blame.
            CheckpointError::Io {
                doing: "read",
                source,
                ..
            } => CheckpointError::not_whole(
                &from,
                format!("{} cannot be read to its end ({source})", name.as_str()),
            ),
            other => other,
        })
    };
    let manifest = source.read(&mut sink, watcher)?;
    files.sync()?;
    check(&from, place.path(), &manifest)?;
    name::tidy(place.path())?;
    if watcher.stopped() {
        return Err(CheckpointError::Stopped);
    }
    match place.rename(store) {
        Ok(()) => Ok(manifest),
        Err(CheckpointError::Exists { .. }) => Err(occupied()),
        // Mounted meanwhile.
        Err(CheckpointError::Io { source, .. }) if source.kind() == ErrorKind::ResourceBusy => {
            Err(mount_point(store))
        }
        Err(error) => Err(error),
    }
}

/// Whether an empty directory, or a link that leads nowhere or to one, is no place for a store: nothing is renamed to it.
fn fixed(data_dir: &Path, store: &Path) -> Option<CheckpointError> {
    let about = store.symlink_metadata().ok()?;
    if about.is_symlink() {
        return Some(CheckpointError::Fixed {
            path: store.to_path_buf(),
            what: "a link",
            way_out: "remove it, or pass another --data-dir",
        });
    }
    let parent = data_dir.metadata().ok()?;
    (about.dev() != parent.dev()).then(|| mount_point(store))
}

fn mount_point(store: &Path) -> CheckpointError {
    CheckpointError::Fixed {
        path: store.to_path_buf(),
        what: "a mount point",
        way_out: "mount the file system at --data-dir itself, or pass another --data-dir",
    }
}

/// Opens what was written: it must be the store that the manifest speaks of.
fn check(from: &str, directory: &Path, manifest: &Manifest) -> Result<(), CheckpointError> {
    let store = open_copy(directory)?;
    let view = store.view();
    let identity = view.identity();
    let found = (
        identity.chain_id,
        B256::from(identity.genesis_hash),
        identity.first_block,
        view.head().map(|BlockId { number, hash }| Named { number, hash }),
        view.finalized(),
    );
    let wanted = (
        manifest.chain_id,
        manifest.genesis_hash,
        manifest.first_block,
        manifest.head.clone(),
        manifest.finalized,
    );
    if found == wanted {
        return Ok(());
    }
    Err(CheckpointError::damaged(
        from,
        "its files hold another store than its manifest says",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_where_it_is_is_told_from_a_directory() {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join("mainnet");
        assert!(fixed(home.path(), &store).is_none());
        std::fs::create_dir(&store).unwrap();
        assert!(fixed(home.path(), &store).is_none());
        let other = home.path().join("testnet");
        std::os::unix::fs::symlink(&store, &other).unwrap();
        let told = fixed(home.path(), &other).unwrap().to_string();
        assert!(told.contains("is a link, "), "{told}");
        let told = fixed(Path::new("/"), Path::new("/proc")).unwrap().to_string();
        assert!(told.starts_with("`/proc` is a mount point, "), "{told}");
    }
}
