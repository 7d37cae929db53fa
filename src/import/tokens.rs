//! Facts about tokens, as lists have them.
//!
//! Three forms are taken: the Token Lists standard (an object with `tokens`, of which those with this chain's `chainId`
//! count; fields of the project under `extensions`), entries in the manner of ethereum-lists (one object a file, or an
//! array of them; they name no chain and are taken for this one), and a directory of such files.
//!
//! A list of any size takes the same memory. What an entry tells replaces what was told before; what it does not tell stays.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_json::value::RawValue;

use super::elements::{Names, Outline};
use super::reading::{ReadSeek, Source};
use super::words::json_fault_within;
use super::{ImportError, Report, Target, Watcher, token_entry};
use crate::codec::imported::tokens::{encode_token, token_key};
use crate::model::{Address, TokenProject};

/// Tokens written at once.
const BATCH: usize = 2_000;
/// How a list is told from a token.
const NAMES: Names = Names {
    list: "tokens",
    entry: "address",
};

/// Imports a list of tokens, or a directory of them.
///
/// # Errors
/// A list that is broken as a whole: nothing is written then. In a directory a broken file is an entry that is refused.
pub fn tokens(target: &Target, path: &Path, watcher: &dyn Watcher) -> Result<Report, ImportError> {
    let mut taking = Taking::new(target, watcher);
    if path.is_dir() {
        let files = taking.json_files(path)?;
        let all = Some(files.len() as u64);
        for (done, path) in (1..).zip(&files) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mut file = File::open(path).map_err(ImportError::read(path))?;
            match taking.file(path, &mut file, &name) {
                Err(ImportError::Malformed { reason, .. }) => taking.reject(&name, &reason),
                outcome => outcome?,
            }
            watcher.progress(done, all);
        }
    } else {
        let mut file = File::open(path).map_err(ImportError::read(path))?;
        taking.file(path, &mut file, "")?;
    }
    taking.finish()
}

/// Imports a list of tokens out of what is open already; `path` is what messages call it.
pub fn tokens_of(
    target: &Target,
    path: &Path,
    file: &mut dyn ReadSeek,
    watcher: &dyn Watcher,
) -> Result<Report, ImportError> {
    let mut taking = Taking::new(target, watcher);
    taking.file(path, file, "")?;
    taking.finish()
}

/// An import in the making.
struct Taking<'a> {
    target: &'a Target,
    watcher: &'a dyn Watcher,
    report: Report,
    batch: BTreeMap<Address, TokenProject>,
}

impl<'a> Taking<'a> {
    fn new(target: &'a Target, watcher: &'a dyn Watcher) -> Self {
        Self {
            target,
            watcher,
            report: Report::default(),
            batch: BTreeMap::new(),
        }
    }

    /// The files of a directory whose names end in `.json`, by name; directories in it are counted.
    fn json_files(&mut self, path: &Path) -> Result<Vec<PathBuf>, ImportError> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(ImportError::read(path))? {
            let file = entry.map_err(ImportError::read(path))?.path();
            if file.is_dir() {
                self.report.directories += 1;
            } else if file.extension().is_some_and(|extension| extension == "json") && file.is_file() {
                files.push(file);
            }
        }
        files.sort();
        Ok(files)
    }

    fn reject(&mut self, entry: &str, reason: &str) {
        self.report.rejected += 1;
        self.watcher.rejected(entry, reason);
    }

    /// Takes a file of a directory by its `name`, or the only one, whose name is left out. One that is broken as a whole
    /// is an error, before anything of it is taken.
    fn file(&mut self, path: &Path, file: &mut dyn ReadSeek, name: &str) -> Result<(), ImportError> {
        let source = Source::look(path, file)?;
        let watcher = self.watcher;
        let progress = |done| {
            if name.is_empty() {
                watcher.progress(done, Some(2 * source.size));
            }
        };
        // The first reading only shows that the file is whole, and what it is.
        let outline = source.elements(file, Some(NAMES), &progress, &mut |_, _| self.stop_if_asked())?;
        if outline == Outline::Neither {
            return Err(source.malformed("it is neither a list of tokens nor a token"));
        }
        let progress = |done| progress(source.size + done);
        let mut take = |number, entry: &RawValue| {
            let place = match (name, outline) {
                ("", _) => format!("entry {number}"),
                (name, Outline::Entry) => name.to_owned(),
                (name, _) => format!("{name} entry {number}"),
            };
            self.entry(&place, entry, outline == Outline::List)
        };
        source.elements(file, Some(NAMES), &progress, &mut take).map(drop)
    }

    fn stop_if_asked(&self) -> Result<(), ImportError> {
        if self.watcher.stopped() {
            return Err(ImportError::Interrupted);
        }
        Ok(())
    }

    fn entry(&mut self, place: &str, entry: &RawValue, chain_named: bool) -> Result<(), ImportError> {
        if !entry.get().starts_with('{') {
            self.reject(place, "it is no object");
            return Ok(());
        }
        let entry = match serde_json::from_str(entry.get()) {
            Ok(entry) => entry,
            Err(error) => {
                self.reject(place, &json_fault_within(&error));
                return Ok(());
            }
        };
        match self.is_ours(&entry, chain_named) {
            Ok(true) => {}
            Ok(false) => {
                self.report.skipped += 1;
                return Ok(());
            }
            Err(reason) => {
                self.reject(place, reason);
                return Ok(());
            }
        }
        let (watcher, count) = (self.watcher, Cell::new(0));
        let left_out = |field: &str, reason: &str| {
            count.set(count.get() + 1);
            watcher.left_out(place, field, reason);
        };
        match token_entry::project(&entry, &left_out) {
            Err(reason) => self.reject(place, &reason),
            Ok((address, project)) => {
                self.report.taken += 1;
                self.report.left_out += count.get();
                let told = match self.batch.entry(address) {
                    Entry::Occupied(told) => told.into_mut(),
                    Entry::Vacant(none) => {
                        none.insert(self.target.writer.token(&address)?.unwrap_or_default())
                    }
                };
                told.update(project);
            }
        }
        if self.batch.len() >= BATCH {
            self.write()?;
        }
        Ok(())
    }

    /// Whether an entry is of this chain.
    fn is_ours(
        &self,
        entry: &serde_json::Map<String, Value>,
        chain_named: bool,
    ) -> Result<bool, &'static str> {
        let chain = match entry.get("chainId") {
            None if chain_named => return Err("there is no chainId"),
            None => return Ok(true),
            Some(chain) => chain.as_u64().ok_or("chainId is not a whole number")?,
        };
        Ok(chain == self.target.chain_id())
    }

    fn write(&mut self) -> Result<(), ImportError> {
        let rows: Vec<_> = std::mem::take(&mut self.batch)
            .into_iter()
            .map(|(address, project)| (token_key(&address).to_vec(), Some(encode_token(&project))))
            .collect();
        self.report.changed += self.target.writer.write(&rows)? as u64;
        self.stop_if_asked()
    }

    fn finish(mut self) -> Result<Report, ImportError> {
        self.write()?;
        Ok(self.report)
    }
}
