//! Files as they are read and written: whole, hashed on the way, forced to disk.

use std::fs::File;
use std::io::{Read, Write as _};

use sha2::{Digest as _, Sha256};

use super::name::Name;
use super::place::Place;
use super::{CheckpointError, Watcher};

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 20;

/// Copies all of `from`; answers its SHA-256 in hex and its length.
pub(super) fn hash_to(
    from: &mut dyn Read,
    mut to: impl FnMut(&[u8]) -> Result<(), CheckpointError>,
    failed: impl Fn(std::io::Error) -> CheckpointError,
    watcher: &dyn Watcher,
) -> Result<(String, u64), CheckpointError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut hasher = Sha256::new();
    let mut length = 0;
    loop {
        if watcher.stopped() {
            return Err(CheckpointError::Stopped);
        }
        let read = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        let bytes = buffer.get(..read).unwrap_or_default();
        hasher.update(bytes);
        to(bytes)?;
        length += read as u64;
    }
    Ok((const_hex::encode(hasher.finalize()), length))
}

/// The files of a store that are written below a place.
pub(super) struct Files<'a> {
    place: &'a Place,
    /// The directories that were made.
    parts: Vec<String>,
}

impl<'a> Files<'a> {
    /// None yet.
    pub(super) fn below(place: &'a Place) -> Self {
        Self {
            place,
            parts: Vec::new(),
        }
    }

    /// Writes a file, forced to disk; answers its hash and length.
    pub(super) fn write(
        &mut self,
        name: &Name,
        from: &mut dyn Read,
        watcher: &dyn Watcher,
    ) -> Result<(String, u64), CheckpointError> {
        let (part, _) = name.as_str().split_once('/').unwrap_or_default();
        if !self.parts.iter().any(|made| made == part) {
            let path = self.place.path().join(part);
            std::fs::create_dir(&path).map_err(CheckpointError::io("make", path))?;
            self.parts.push(part.to_owned());
        }
        let path = self.place.path().join(name.as_str());
        let mut file = File::create_new(&path).map_err(CheckpointError::io("make", &path))?;
        let write = |bytes: &[u8]| file.write_all(bytes).map_err(CheckpointError::io("write", &path));
        let failed = |error| CheckpointError::io("read", name.as_str())(error);
        let written = hash_to(from, write, failed, watcher)?;
        file.sync_data().map_err(CheckpointError::io("sync", &path))?;
        Ok(written)
    }

    /// Forces the names of what was written to disk.
    pub(super) fn sync(&self) -> Result<(), CheckpointError> {
        self.parts.iter().try_for_each(|part| self.place.sync(part))
    }
}
