//! Making a checkpoint: a copy of the store beside it, then its hashes, then its name.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use super::files::{Files, hash_to};
use super::manifest::{Manifest, Part};
use super::name::{self, Name};
use super::place::Place;
use super::stream::Out;
use super::{CheckpointError, MANIFEST, Watcher};
use crate::model::ChainName;
use crate::store::{StoreError, copy_store};

/// A copy of a store under a temporary name, on the file system of the store.
struct Stage {
    place: Place,
    manifest: Manifest,
    files: Vec<(Name, u64)>,
}

impl Stage {
    fn take(
        data_dir: &Path,
        store: &Path,
        chain: ChainName,
        watcher: &dyn Watcher,
    ) -> Result<Self, CheckpointError> {
        // One that may not be looked at is refused with that reason when it is opened.
        let is_hidden =
            std::fs::metadata(store).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
        if !store.is_dir() && !is_hidden {
            return Err(StoreError::Absent {
                path: store.to_path_buf(),
            }
            .into());
        }
        let place = Place::begin(data_dir, &format!(".checkpoint-{chain}-"))?;
        let copied = match copy_store(store, place.path(), &|| watcher.stopped()) {
            Err(StoreError::Stopped) => return Err(CheckpointError::Stopped),
            copied => copied?,
        };
        let manifest = Manifest::of(&copied.store.view(), chain);
        tracing::info!(
            head = manifest.head.as_ref().map(|head| head.number),
            finalized = manifest.finalized,
            imports = copied.imports,
            observed = copied.observed,
            "the store is copied, hashing it"
        );
        // So that the databases are closed.
        drop(copied);
        name::tidy(place.path())?;
        let files = name::list(place.path())?;
        Ok(Self {
            place,
            manifest,
            files,
        })
    }

    /// Reads every file once, hands it to `each`, and notes its hash.
    fn hash(
        &mut self,
        watcher: &dyn Watcher,
        mut each: impl FnMut(&Name, u64, &mut dyn Read) -> Result<(String, u64), CheckpointError>,
    ) -> Result<(), CheckpointError> {
        let all = self.files.iter().map(|(_, length)| length).sum();
        let mut done = 0;
        for (name, length) in &self.files {
            let path = self.place.path().join(name.as_str());
            let mut file = File::open(&path).map_err(CheckpointError::io("read", &path))?;
            let (sha256, read) = each(name, *length, &mut file)?;
            done += read;
            watcher.progress(done, Some(all));
            self.manifest.files.push(Part {
                name: name.as_str().to_owned(),
                bytes: read,
                sha256,
            });
        }
        Ok(())
    }
}

/// Makes a checkpoint of the store in `store` (below `data_dir`) as the new directory `target`.
pub fn create(
    data_dir: &Path,
    store: &Path,
    chain: ChainName,
    target: &Path,
    watcher: &dyn Watcher,
) -> Result<Manifest, CheckpointError> {
    if target.symlink_metadata().is_ok() {
        return Err(CheckpointError::Exists {
            path: target.to_path_buf(),
        });
    }
    // What cannot be made there is said before the work.
    let beside = target_place(target)?;
    let mut stage = Stage::take(data_dir, store, chain, watcher)?;
    // On another file system, or another mount of this one, the copy is hashed while it is copied there.
    if stage.place.reaches(&beside) {
        drop(beside);
        stage.hash(watcher, |name, _, from| {
            let failed = |error| CheckpointError::io("read", name.as_str())(error);
            hash_to(from, |_| Ok(()), failed, watcher)
        })?;
        write_manifest(&stage.place, &stage.manifest)?;
        stage.place.rename(target)?;
        return Ok(stage.manifest);
    }
    let mut files = Files::below(&beside);
    stage.hash(watcher, |name, _, from| files.write(name, from, watcher))?;
    files.sync()?;
    write_manifest(&beside, &stage.manifest)?;
    beside.rename(target)?;
    Ok(stage.manifest)
}

/// Writes a checkpoint of the store as a stream.
pub fn stream(
    data_dir: &Path,
    store: &Path,
    chain: ChainName,
    to: impl Write,
    watcher: &dyn Watcher,
) -> Result<Manifest, CheckpointError> {
    let mut stage = Stage::take(data_dir, store, chain, watcher)?;
    let mut out = Out::begin(to)?;
    stage.hash(watcher, |name, length, from| {
        out.file(name, length, from, watcher)
    })?;
    out.finish(&stage.manifest.encode()?)?;
    Ok(stage.manifest)
}

fn target_place(target: &Path) -> Result<Place, CheckpointError> {
    let name = target.file_name().ok_or_else(|| CheckpointError::Exists {
        path: target.to_path_buf(),
    })?;
    let parent = target.parent().unwrap_or(Path::new(""));
    Place::begin(parent, &format!(".{}.partial-", name.to_string_lossy()))
}

/// The last file of a checkpoint.
fn write_manifest(place: &Place, manifest: &Manifest) -> Result<(), CheckpointError> {
    let path = place.path().join(MANIFEST);
    let bytes = manifest.encode()?;
    File::create_new(&path)
        .and_then(|mut file| file.write_all(&bytes).and_then(|()| file.sync_all()))
        .map_err(CheckpointError::io("write", &path))
}
