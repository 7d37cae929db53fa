//! Sources and ABIs of contracts: a repository tree as Sourcify keeps it, or one file for one contract.
//!
//! Nothing is compiled. What vouches for sources are their hashes in the metadata, and the hash of the metadata behind
//! the contract's code, where the chain's store has that.

mod abi;
mod code;
mod files;
mod hash;
mod metadata;
mod single;
mod trailer;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use self::abi::Abi;
use self::code::{Word, judge};
use self::files::ContractDirectory;
use self::metadata::{Metadata, license};
use self::tree::{Claim, Step, walk};
use super::{ImportError, Report, Target, Watcher};
use crate::model::{Address, B256, Bytes, ContractFacts, ContractNames, MatchKind};
use crate::query::{ContractCode, Reader};
use crate::store::{ImportRow, ImportWriter};

/// Contracts are written when they have this many bytes together.
const BATCH_BYTES: usize = 4 << 20;
/// Or when there are this many.
const BATCH_CONTRACTS: usize = 256;

/// What was read of one contract, before anything of it is believed.
#[derive(Debug, Default)]
struct Candidate {
    facts: ContractFacts,
    abi: Option<Abi>,
    /// The metadata, byte for byte as the compiler wrote it.
    metadata: Option<Vec<u8>>,
    sources: Vec<(String, B256, String)>,
    claim: Claim,
    /// What the constructor was given, as the repository says.
    told_arguments: Option<Vec<u8>>,
}

/// Imports what `path` holds; `given` is the contract of a path that does not tell it.
///
/// # Errors
/// Where `path` itself cannot be read or is not what it should be, a store fails, or the watcher stops it. What is wrong
/// with one contract is told to the watcher.
pub fn contracts(
    target: &Target,
    path: &Path,
    given: Option<Address>,
    watcher: &dyn Watcher,
) -> Result<Report, ImportError> {
    let mut import = Import::new(target, watcher);
    let outcome = import.all(path, given);
    // What was taken before it was stopped stays: the same import again goes over it quickly.
    import.flush()?;
    outcome.map(|()| import.report)
}

struct Import<'a> {
    target: &'a Target,
    watcher: &'a dyn Watcher,
    reader: Reader,
    report: Report,
    rows: Vec<ImportRow>,
    bytes: usize,
    /// Contracts whose rows are not written yet, and how much each has.
    pending: BTreeMap<Address, Worth>,
}

/// How much is known of a contract; less never takes the place of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Worth {
    Abi,
    Sources(MatchKind),
}

impl Worth {
    fn of(facts: &ContractFacts) -> Self {
        if facts.sources.is_empty() {
            Self::Abi
        } else {
            Self::Sources(facts.match_kind)
        }
    }
}

impl<'a> Import<'a> {
    fn new(target: &'a Target, watcher: &'a dyn Watcher) -> Self {
        Self {
            target,
            watcher,
            reader: Reader::new(target.view.clone()),
            report: Report::default(),
            rows: Vec::new(),
            bytes: 0,
            pending: BTreeMap::new(),
        }
    }

    fn all(&mut self, path: &Path, given: Option<Address>) -> Result<(), ImportError> {
        let facts = std::fs::metadata(path).map_err(ImportError::read(path))?;
        if !facts.is_dir() {
            return self.file(path, given);
        }
        let chain_id = self.target.chain_id();
        walk(path, chain_id, given, &mut |step| {
            if self.watcher.stopped() {
                return Err(ImportError::Interrupted);
            }
            match step {
                Step::OtherChain(contracts) => {
                    self.report.skipped += contracts;
                    Ok(())
                }
                Step::Rejected(path, reason) => {
                    self.reject(&path.display().to_string(), reason);
                    Ok(())
                }
                Step::Contract(directory, contract, claim) => {
                    let code = self.reader.contract_code(&contract)?;
                    let entry = directory.display().to_string();
                    let read = read_directory(&directory, claim);
                    let settled = read.and_then(|candidate| settle(candidate, &code));
                    self.take(&entry, &contract, is_known(&code), settled)
                }
            }
        })
    }

    /// One file: what is wrong with it is wrong with the whole import.
    fn file(&mut self, path: &Path, given: Option<Address>) -> Result<(), ImportError> {
        let malformed = |reason: String| ImportError::Malformed {
            path: path.to_path_buf(),
            reason,
        };
        let contract =
            given.ok_or_else(|| malformed("a file does not tell its contract: pass --address".to_owned()))?;
        let code = self.reader.contract_code(&contract)?;
        let text = files::read_text(path, single::FILE_MAX).map_err(malformed)?;
        let candidate = single::read(&text, &code).map_err(malformed)?;
        let settled = settle(candidate, &code);
        self.take(&path.display().to_string(), &contract, is_known(&code), settled)
    }

    fn reject(&mut self, entry: &str, reason: &str) {
        self.report.rejected += 1;
        self.watcher.rejected(entry, reason);
    }

    fn take(
        &mut self,
        entry: &str,
        contract: &Address,
        has_code: bool,
        settled: Result<Settled, String>,
    ) -> Result<(), ImportError> {
        // What was taken before there was code to hold it against is worth nothing once there is.
        let known = self.target.writer.contract(contract)?;
        let is_stale = has_code && known.as_ref().is_some_and(|known| !known.checked);
        let known = known.filter(|_| !is_stale);
        match settled {
            Ok(settled) => self.keep(entry, contract, known.as_ref(), settled)?,
            Err(reason) => {
                let forgets = is_stale && !self.pending.contains_key(contract);
                if forgets {
                    self.rows.extend(ImportWriter::forgotten(contract));
                    let also = "what was taken of its contract before there was code is forgotten";
                    self.reject(entry, &format!("{reason}; {also}"));
                } else {
                    self.reject(entry, &reason);
                }
            }
        }
        let done = self.report.taken + self.report.rejected;
        self.watcher.progress(done, None);
        if self.bytes >= BATCH_BYTES || self.pending.len() >= BATCH_CONTRACTS {
            self.flush()?;
        }
        Ok(())
    }

    fn keep(
        &mut self,
        entry: &str,
        contract: &Address,
        known: Option<&ContractFacts>,
        settled: Settled,
    ) -> Result<(), ImportError> {
        let worth = Worth::of(&settled.facts);
        let pending = self.pending.get(contract).copied();
        let known = pending.or_else(|| known.map(Worth::of));
        if known.is_some_and(|known| known > worth) {
            self.reject(entry, "what is there of its contract already is worth more");
            return Ok(());
        }
        let abi = settled.abi.as_ref().map(|(text, names)| (text.as_str(), names));
        let rows = ImportWriter::contract_rows(contract, &settled.facts, abi, settled.texts);
        let mut changed = false;
        for (key, value) in &rows {
            changed |= self.target.writer.get(key)? != *value;
        }
        self.report.taken += 1;
        self.report.changed += u64::from(changed);
        if changed {
            self.pending.insert(*contract, worth);
            self.bytes += rows
                .iter()
                .map(|(_, value)| value.as_ref().map_or(0, Vec::len))
                .sum::<usize>();
            self.rows.extend(rows);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ImportError> {
        self.target.writer.write(&self.rows)?;
        self.rows.clear();
        self.pending.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Whether the store has code of the contract.
fn is_known(code: &ContractCode) -> bool {
    code.init.is_some() || code.runtime.is_some()
}

fn read_directory(directory: &Path, claim: Claim) -> Result<Candidate, String> {
    let files = ContractDirectory::open(directory)?;
    let text = files.metadata()?;
    let metadata = Metadata::parse(&text)?;
    Ok(Candidate {
        facts: metadata.facts(),
        abi: metadata.abi()?,
        sources: files.sources(&metadata)?,
        metadata: Some(text.into_bytes()),
        claim,
        told_arguments: files.constructor_arguments(),
    })
}

/// What is kept of a contract.
struct Settled {
    facts: ContractFacts,
    abi: Option<(String, ContractNames)>,
    texts: Vec<(B256, String)>,
}

/// Holds what was read against the code of its contract.
fn settle(candidate: Candidate, code: &ContractCode) -> Result<Settled, String> {
    let mut facts = candidate.facts;
    let takes = |arguments: &[u8]| match &candidate.abi {
        Some(abi) => abi.takes(arguments),
        // Words, and no other contract's code.
        None => arguments.len().is_multiple_of(32) && trailer::within(arguments).next().is_none(),
    };
    let (word, arguments) = judge(candidate.metadata.as_deref(), code, takes);
    // A full match is one of the hash of metadata: code without such a hash has none.
    let names_none = word == Word::Nothing && code.runtime.as_ref().is_some_and(|code| !code.is_empty());
    facts.match_kind = match (candidate.claim, word) {
        (Claim::Full, _) if names_none => MatchKind::Partial,
        (Claim::Full, Word::Other) => {
            return Err("it says to match fully, and the contract's code names other metadata".to_owned());
        }
        (Claim::Full, _) | (Claim::None, Word::Same) => MatchKind::Full,
        (Claim::Partial | Claim::None, _) => MatchKind::Partial,
    };
    facts.checked = is_known(code);
    // What the repository says counts where the creating input ends with it.
    let told = || {
        let told = candidate.told_arguments.filter(|told| takes(told))?;
        let init = code.init.as_ref()?;
        init.ends_with(&told).then(|| Bytes::from(told))
    };
    facts.constructor_arguments = arguments.or_else(told);
    let only = |sources: &[(String, B256, String)]| match sources {
        [(path, ..)] => Some(path.clone()),
        _ => None,
    };
    let main = facts.main.take().or_else(|| only(&candidate.sources));
    facts.main = main.filter(|main| candidate.sources.iter().any(|(path, ..)| path == main));
    if facts.license.is_none() {
        let main = facts.main.as_ref();
        let text = candidate.sources.iter().find(|(path, ..)| Some(path) == main);
        facts.license = text.and_then(|(_, _, text)| license(text));
    }
    if candidate.sources.is_empty() && candidate.abi.is_none() {
        return Err("it has neither sources nor an ABI".to_owned());
    }
    let mut texts = Vec::with_capacity(candidate.sources.len());
    for (path, hash, text) in candidate.sources {
        facts.sources.push((path, hash));
        texts.push((hash, text));
    }
    Ok(Settled {
        facts,
        abi: candidate.abi.map(|abi| (abi.text, abi.names)),
        texts,
    })
}

#[cfg(test)]
mod solc_tests;
#[cfg(test)]
mod tests;
