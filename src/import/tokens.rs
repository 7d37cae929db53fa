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

/// Tokens held at once.
const BATCH: usize = 2_000;
/// Of these, how many may wait for more before they are written: one that is told again, further on, is then written once, or
/// not at all where it is there already.
const WAITING: usize = BATCH / 2;
/// How a list is told from a token.
const NAMES: Names = Names {
    list: "tokens",
    entry: "address",
};

/// Imports a list of tokens, or a directory of them.
///
/// # Errors
/// A list that is broken as a whole: nothing is written then. In a directory a file that is broken or cannot be read is an entry
/// that is refused.
pub fn tokens(target: &Target, path: &Path, watcher: &dyn Watcher) -> Result<Report, ImportError> {
    let mut taking = Taking::new(target, watcher);
    let outcome = if path.is_dir() {
        taking.directory(path)
    } else {
        let mut file = File::open(path).map_err(ImportError::read(path))?;
        taking.file(path, &mut file, "")
    };
    taking.finish(outcome)
}

/// Imports a list of tokens out of what is open already; `path` is what messages call it.
pub fn tokens_of(
    target: &Target,
    path: &Path,
    file: &mut dyn ReadSeek,
    watcher: &dyn Watcher,
) -> Result<Report, ImportError> {
    let mut taking = Taking::new(target, watcher);
    let outcome = taking.file(path, file, "");
    taking.finish(outcome)
}

/// An import in the making.
struct Taking<'a> {
    target: &'a Target,
    watcher: &'a dyn Watcher,
    report: Report,
    batch: BTreeMap<Address, Told>,
}

/// What is told of a token, and what lies in the store.
struct Told {
    stored: Option<TokenProject>,
    now: TokenProject,
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

    /// Takes the files of a directory; one that is broken or cannot be read is an entry that is refused.
    fn directory(&mut self, path: &Path) -> Result<(), ImportError> {
        let files = self.json_files(path)?;
        let all = Some(files.len() as u64);
        for (done, path) in (1..).zip(&files) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let opened = File::open(path).map_err(ImportError::read(path));
            match opened.and_then(|mut file| self.file(path, &mut file, &name)) {
                Err(ImportError::Malformed { reason, .. }) => self.reject(&name, &reason),
                Err(ImportError::Read { source, .. }) => {
                    self.reject(&name, &format!("it cannot be read: {source}"));
                }
                outcome => outcome?,
            }
            self.watcher.progress(done, all);
        }
        Ok(())
    }

    /// The files of a directory whose names end in `.json`, by name; directories in it are counted.
    fn json_files(&mut self, path: &Path) -> Result<Vec<PathBuf>, ImportError> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(path).map_err(ImportError::read(path))? {
            let file = entry.map_err(ImportError::read(path))?.path();
            let is_json = file.extension().is_some_and(|extension| extension == "json");
            match file.metadata() {
                Ok(about) if about.is_dir() => self.report.directories += 1,
                Ok(about) if is_json && about.is_file() => files.push(file),
                // A link that leads nowhere: opening it says what is wrong.
                Err(_) if is_json => files.push(file),
                _ => {}
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
                        let stored = self.target.writer.token(&address)?;
                        let now = stored.clone().unwrap_or_default();
                        none.insert(Told { stored, now })
                    }
                };
                told.now.update(project);
            }
        }
        if self.batch.len() >= BATCH {
            self.write(WAITING)?;
            self.stop_if_asked()?;
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

    /// Writes what is not there already, where that is more than `waiting`; else it stays in the batch.
    fn write(&mut self, waiting: usize) -> Result<(), ImportError> {
        self.batch
            .retain(|_, told| told.stored.as_ref() != Some(&told.now));
        if self.batch.len() > waiting {
            let rows: Vec<_> = std::mem::take(&mut self.batch)
                .into_iter()
                .map(|(address, told)| (token_key(&address).to_vec(), Some(encode_token(&told.now))))
                .collect();
            self.report.changed += self.target.writer.put(&rows)? as u64;
        }
        Ok(())
    }

    /// Ends with the outcome; what was taken before it was stopped stays.
    fn finish(mut self, outcome: Result<(), ImportError>) -> Result<Report, ImportError> {
        if matches!(outcome, Ok(()) | Err(ImportError::Interrupted)) {
            self.write(0)?;
        }
        outcome.map(|()| self.report)
    }
}
