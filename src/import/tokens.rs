//! Facts about tokens, as lists have them.
//!
//! Three forms are taken: the Token Lists standard (an object with `tokens`, of which those with this chain's `chainId`
//! count; fields of the project under `extensions`), entries in the manner of ethereum-lists (one object a file, or an
//! array of them; they name no chain and are taken for this one), and a directory of such files.
//!
//! What an entry tells replaces what was told before; what it does not tell stays.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{ImportError, Report, Target, Watcher, token_entry};
use crate::codec::imported::tokens::{encode_token, token_key};
use crate::model::{Address, TokenProject};

/// The longest file that is read: the longest lists have some tens of megabytes.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Tokens written at once.
const BATCH: usize = 2_000;

/// Imports a list of tokens, or a directory of them.
///
/// # Errors
/// A list that is broken as a whole: nothing is written then. In a directory a broken file is an entry that is refused.
pub fn tokens(target: &Target, path: &Path, watcher: &dyn Watcher) -> Result<Report, ImportError> {
    let mut taking = Taking::new(target, watcher);
    if path.is_dir() {
        let files = json_files(path)?;
        let all = Some(files.len() as u64);
        for (done, file) in (1..).zip(&files) {
            match read(file, &mut File::open(file).map_err(ImportError::read(file))?) {
                Ok(text) => {
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    match parse(&text) {
                        Ok(entries) => taking.take(&name, &entries)?,
                        Err(reason) => taking.reject(&name, &reason),
                    }
                }
                Err(ImportError::Malformed { reason, .. }) => {
                    taking.reject(&file.display().to_string(), &reason);
                }
                Err(error) => return Err(error),
            }
            watcher.progress(done, all);
        }
    } else {
        let mut file = File::open(path).map_err(ImportError::read(path))?;
        taking.file(path, &mut file)?;
    }
    taking.finish()
}

/// Imports a list of tokens out of what is open already; `path` is what messages call it.
pub fn tokens_of(
    target: &Target,
    path: &Path,
    file: &mut dyn Read,
    watcher: &dyn Watcher,
) -> Result<Report, ImportError> {
    let mut taking = Taking::new(target, watcher);
    taking.file(path, file)?;
    taking.finish()
}

/// The files of a directory whose names end in `.json`, by name.
fn json_files(path: &Path) -> Result<Vec<std::path::PathBuf>, ImportError> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(ImportError::read(path))? {
        let file = entry.map_err(ImportError::read(path))?.path();
        if file.extension().is_some_and(|extension| extension == "json") && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path, file: &mut dyn Read) -> Result<String, ImportError> {
    let malformed = |reason: String| ImportError::Malformed {
        path: path.to_path_buf(),
        reason,
    };
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(ImportError::read(path))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(malformed(format!("it is longer than {FILE_BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8".to_owned()))?;
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}

/// The entries of a file, and whether they are of a list that names chains.
struct Entries<'a> {
    entries: Vec<&'a RawValue>,
    chains_named: bool,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    tokens: Vec<&'a RawValue>,
}

/// The entries of a file; whatever is within them is looked at later.
fn parse(text: &str) -> Result<Entries<'_>, String> {
    let fault = |error: serde_json::Error| error.to_string();
    if text.trim_start().starts_with('[') {
        let entries = serde_json::from_str(text).map_err(fault)?;
        return Ok(Entries {
            entries,
            chains_named: false,
        });
    }
    let whole: &RawValue = serde_json::from_str(text).map_err(fault)?;
    let object: BTreeMap<String, &RawValue> =
        serde_json::from_str(text).map_err(|_| "it is neither a list of tokens nor a token".to_owned())?;
    if object.contains_key("tokens") {
        let list: List<'_> = serde_json::from_str(text).map_err(fault)?;
        return Ok(Entries {
            entries: list.tokens,
            chains_named: true,
        });
    }
    if object.contains_key("address") {
        return Ok(Entries {
            entries: vec![whole],
            chains_named: false,
        });
    }
    Err("it is neither a list of tokens nor a token".to_owned())
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

    fn reject(&mut self, entry: &str, reason: &str) {
        self.report.rejected += 1;
        self.watcher.rejected(entry, reason);
    }

    /// A file that is broken as a whole is an error.
    fn file(&mut self, path: &Path, file: &mut dyn Read) -> Result<(), ImportError> {
        let text = read(path, file)?;
        let entries = parse(&text).map_err(|reason| ImportError::Malformed {
            path: path.to_path_buf(),
            reason,
        })?;
        self.take("", &entries)
    }

    /// Takes the entries of a file; `file` stands before their numbers in messages.
    fn take(&mut self, file: &str, entries: &Entries<'_>) -> Result<(), ImportError> {
        let alone = !file.is_empty() && entries.entries.len() == 1;
        let all = Some(entries.entries.len() as u64);
        for (number, entry) in (1..).zip(&entries.entries) {
            let place = if alone {
                file.to_owned()
            } else {
                format!("{file} entry {number}").trim_start().to_owned()
            };
            self.entry(&place, entry, entries.chains_named)?;
            if file.is_empty() {
                self.watcher.progress(number, all);
            }
        }
        Ok(())
    }

    fn entry(&mut self, place: &str, entry: &RawValue, chain_named: bool) -> Result<(), ImportError> {
        let Ok(Value::Object(entry)) = serde_json::from_str(entry.get()) else {
            self.reject(place, "it is no object");
            return Ok(());
        };
        let chain = match (entry.get("chainId"), chain_named) {
            (None, false) => Some(self.target.chain_id()),
            (chain, _) => chain.and_then(Value::as_u64),
        };
        match chain {
            None => {
                self.reject(place, "chainId is not a number");
                return Ok(());
            }
            Some(chain) if chain != self.target.chain_id() => {
                self.report.skipped += 1;
                return Ok(());
            }
            Some(_) => {}
        }
        let watcher = self.watcher;
        let left_out = |field: &str, reason: &str| {
            watcher.rejected(
                &format!("{place}, {field}"),
                &format!("{reason}; the field is left out"),
            );
        };
        match token_entry::project(&entry, &left_out) {
            Err(reason) => self.reject(place, &reason),
            Ok((address, project)) => {
                self.report.taken += 1;
                let told = match self.batch.entry(address) {
                    std::collections::btree_map::Entry::Occupied(told) => told.into_mut(),
                    std::collections::btree_map::Entry::Vacant(none) => {
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

    fn write(&mut self) -> Result<(), ImportError> {
        let rows: Vec<_> = std::mem::take(&mut self.batch)
            .into_iter()
            .map(|(address, project)| (token_key(&address).to_vec(), Some(encode_token(&project))))
            .collect();
        self.report.changed += self.target.writer.write(&rows)? as u64;
        if self.watcher.stopped() {
            return Err(ImportError::Interrupted);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Report, ImportError> {
        self.write()?;
        Ok(self.report)
    }
}
