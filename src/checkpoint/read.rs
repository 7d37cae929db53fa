//! Reading a checkpoint that somebody else may have written: nothing of it is believed before its hash is.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::files::hash_to;
use super::manifest::{Manifest, Part, other_version};
use super::name::Name;
use super::{CheckpointError, MANIFEST, Watcher, stream};
use crate::store::schema::SCHEMA_VERSION;

/// Where a checkpoint comes from.
pub enum Source {
    /// A directory.
    Directory(PathBuf),
    /// A stream, and what errors call it.
    Stream(Box<dyn Read + Send>, String),
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Source").field(&self.shown()).finish()
    }
}

/// Takes the files of a checkpoint: reads all of one, and answers its hash and length.
pub(super) type Sink<'a> = dyn FnMut(&Name, &mut dyn Read) -> Result<(String, u64), CheckpointError> + 'a;

impl Source {
    /// A directory, or a file that holds a stream.
    pub fn open(path: &Path) -> Result<Self, CheckpointError> {
        let about = path.metadata().map_err(CheckpointError::io("read", path))?;
        if about.is_dir() {
            return Ok(Self::Directory(path.to_path_buf()));
        }
        let file = File::open(path).map_err(CheckpointError::io("read", path))?;
        Ok(Self::Stream(Box::new(file), path.display().to_string()))
    }

    /// What errors call it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Stream(_, name) => name.clone(),
        }
    }

    /// Hands every file to `sink` and answers the manifest, which all of them then agree with.
    pub(super) fn read(
        self,
        sink: &mut Sink<'_>,
        watcher: &dyn Watcher,
    ) -> Result<Manifest, CheckpointError> {
        let from = self.shown();
        match self {
            Self::Directory(path) => directory(&from, &path, sink, watcher),
            Self::Stream(stream, _) => streamed(&from, stream, sink, watcher),
        }
    }
}

/// A file as it was found against what the manifest says of it.
fn compare(from: &str, part: &Part, (sha256, bytes): &(String, u64)) -> Result<(), CheckpointError> {
    if part.bytes != *bytes {
        let reason = format!(
            "{} has {bytes} bytes where {} are promised",
            part.name, part.bytes
        );
        return Err(CheckpointError::damaged(from, reason));
    }
    if part.sha256 != *sha256 {
        let reason = format!("{} does not have the hash that is promised", part.name);
        return Err(CheckpointError::damaged(from, reason));
    }
    Ok(())
}

fn check_layout(from: &str, manifest: &Manifest) -> Result<(), CheckpointError> {
    match manifest.layout {
        SCHEMA_VERSION => Ok(()),
        found => Err(other_version(from, "layout version", found, SCHEMA_VERSION)),
    }
}

fn directory(
    from: &str,
    path: &Path,
    sink: &mut Sink<'_>,
    watcher: &dyn Watcher,
) -> Result<Manifest, CheckpointError> {
    let said = path.join(MANIFEST);
    let about = match said.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let reason = format!("it has no {MANIFEST}, which is written last");
            return Err(CheckpointError::not_whole(from, reason));
        }
        about => about.map_err(CheckpointError::io("read", &said))?,
    };
    if !about.is_file() || about.len() > stream::MANIFEST_BYTES_MAX {
        return Err(CheckpointError::damaged(
            from,
            format!("{MANIFEST} is not a plain file"),
        ));
    }
    let bytes = std::fs::read(&said).map_err(CheckpointError::io("read", &said))?;
    let manifest = Manifest::decode(from, &bytes)?;
    check_layout(from, &manifest)?;
    // What is missing or cut is said before hours of hashing.
    for part in &manifest.files {
        plain_file(from, path, part)?;
    }
    let mut done = 0;
    for part in &manifest.files {
        let name = Name::parse(from, &part.name)?;
        let file = path.join(name.as_str());
        let mut file = File::open(&file).map_err(CheckpointError::io("read", &file))?;
        compare(from, part, &sink(&name, &mut file)?)?;
        done += part.bytes;
        watcher.progress(done, Some(manifest.bytes()));
    }
    Ok(manifest)
}

/// Refuses what is not there, is no plain file or lies behind a link.
fn plain_file(from: &str, root: &Path, part: &Part) -> Result<(), CheckpointError> {
    let refused = |reason| CheckpointError::Name {
        from: from.to_owned(),
        name: part.name.escape_debug().to_string(),
        reason,
    };
    let path = root.join(&part.name);
    if let Some(above) = path.parent()
        && above.symlink_metadata().is_ok_and(|about| about.is_symlink())
    {
        return Err(refused("behind a link"));
    }
    match path.symlink_metadata() {
        Ok(about) if about.is_symlink() => Err(refused("a link")),
        Ok(about) if !about.is_file() => Err(refused("not a plain file")),
        Ok(about) if about.len() != part.bytes => {
            let reason = format!(
                "{} has {} bytes where {} are promised",
                part.name,
                about.len(),
                part.bytes
            );
            Err(CheckpointError::damaged(from, reason))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(CheckpointError::not_whole(
            from,
            format!("{} is missing", part.name),
        )),
        Err(error) => Err(CheckpointError::io("read", path)(error)),
    }
}

fn streamed(
    from: &str,
    stream: Box<dyn Read + Send>,
    sink: &mut Sink<'_>,
    watcher: &dyn Watcher,
) -> Result<Manifest, CheckpointError> {
    let mut found: BTreeMap<Name, (String, u64)> = BTreeMap::new();
    let mut done = 0;
    let bytes = stream::read(from, stream, watcher, |name, file| {
        if found.contains_key(name) {
            return Err(CheckpointError::damaged(
                from,
                format!("{} is in it twice", name.as_str()),
            ));
        }
        let sum = sink(name, file)?;
        done += sum.1;
        watcher.progress(done, None);
        found.insert(name.clone(), sum);
        Ok(())
    })?;
    let manifest = Manifest::decode(from, &bytes)?;
    check_layout(from, &manifest)?;
    for part in &manifest.files {
        let name = Name::parse(from, &part.name)?;
        let sum = found.remove(&name);
        let sum = sum.ok_or_else(|| CheckpointError::not_whole(from, format!("{} is missing", part.name)))?;
        compare(from, part, &sum)?;
    }
    match found.into_keys().next() {
        Some(name) => {
            let reason = format!("{} is in it, and its manifest does not name it", name.as_str());
            Err(CheckpointError::damaged(from, reason))
        }
        None => Ok(manifest),
    }
}

/// Reads a whole checkpoint and holds every file against the manifest.
pub fn verify(source: Source, watcher: &dyn Watcher) -> Result<Manifest, CheckpointError> {
    let from = source.shown();
    let mut sink = |name: &Name, file: &mut dyn Read| {
        let failed = |error: std::io::Error| {
            CheckpointError::not_whole(
                &from,
                format!("{} cannot be read to its end ({error})", name.as_str()),
            )
        };
        hash_to(file, |_| Ok(()), failed, watcher)
    };
    source.read(&mut sink, watcher)
}
