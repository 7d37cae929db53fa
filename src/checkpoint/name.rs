//! Names of files in a checkpoint: a part of a store and a file in it, and nothing else.

use super::CheckpointError;
use crate::store::{PARTS, is_part_of_copy};

/// The name of a file in a checkpoint, `rocksdb/000012.sst`. It cannot lead anywhere else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name(String);

impl Name {
    /// Reads a name that somebody else wrote.
    pub(super) fn parse(from: &str, text: &str) -> Result<Self, CheckpointError> {
        let refused = |reason| CheckpointError::Name {
            from: from.to_owned(),
            name: text.escape_debug().to_string(),
            reason,
        };
        if text.starts_with('/') {
            return Err(refused("an absolute path"));
        }
        if text.split('/').any(|step| step == "..") {
            return Err(refused("a path that leads out of it"));
        }
        match text.split_once('/') {
            Some((part, file)) if is_part_of_copy(part, file) => Ok(Self(text.to_owned())),
            _ => Err(refused("no file of a store")),
        }
    }

    /// As text.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The files of a copy below `directory`, in order.
pub(super) fn list(directory: &std::path::Path) -> Result<Vec<(Name, u64)>, CheckpointError> {
    let mut names = Vec::new();
    for part in PARTS {
        let path = directory.join(part);
        if !path.exists() {
            continue;
        }
        let failed = || CheckpointError::io("list", &path);
        for entry in std::fs::read_dir(&path).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            if let Some(file) = entry
                .file_name()
                .to_str()
                .filter(|file| is_part_of_copy(part, file))
            {
                let length = entry.metadata().map_err(failed())?.len();
                names.push((Name(format!("{part}/{file}")), length));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Removes what opening a copy leaves in it and is no part of it: locks and diaries.
pub(super) fn tidy(directory: &std::path::Path) -> Result<(), CheckpointError> {
    for part in PARTS {
        let path = directory.join(part);
        for entry in std::fs::read_dir(&path).into_iter().flatten() {
            let entry = entry.map_err(CheckpointError::io("list", &path))?;
            let known = entry
                .file_name()
                .to_str()
                .is_some_and(|file| is_part_of_copy(part, file));
            if !known && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                std::fs::remove_file(entry.path()).map_err(CheckpointError::io("remove", entry.path()))?;
            }
        }
    }
    Ok(())
}
