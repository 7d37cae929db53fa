//! Sources and ABIs of contracts: a repository tree as Sourcify keeps it, or one file for one contract.
//!
//! Nothing is compiled. What vouches for sources are their hashes in the metadata, and the hash of the metadata behind
//! the contract's code, where the chain's store has that.

mod abi;
mod abi_check;
mod code;
mod encoding;
mod files;
mod fit;
mod hash;
mod metadata;
mod settle;
mod single;
mod trailer;
mod tree;
mod worth;

use std::collections::BTreeSet;
use std::path::Path;

use self::abi::Abi;
use self::files::ContractDirectory;
use self::fit::{Fit, OnChain};
use self::metadata::Metadata;
use self::settle::{Contradicted, Refused, Settled, settle};
use self::tree::{Claim, Step, walk};
use self::worth::{Worth, is_doubtful, is_of_same};
use super::{ImportError, Report, Target, Watcher};
use crate::model::{Address, B256, ContractFacts};
use crate::query::Reader;
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
    /// Of a file: how it fits the contract.
    fit: Fit,
    /// What the constructor was given, as the repository says.
    told_arguments: Option<Vec<u8>>,
}

impl Candidate {
    fn has_sources(&self, sources: &[(String, B256)]) -> bool {
        let ours = self.sources.iter().map(|(path, hash, _)| (path, hash));
        ours.eq(sources.iter().map(|(path, hash)| (path, hash)))
    }
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
    /// Contracts whose rows are not written yet.
    pending: BTreeSet<Address>,
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
            pending: BTreeSet::new(),
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
                    self.reject(&path.display().to_string(), &reason);
                    Ok(())
                }
                Step::Contract(directory, contract, claim) => {
                    let on_chain = OnChain::read(&self.reader, &contract)?;
                    let entry = directory.display().to_string();
                    self.take(&entry, &on_chain, read_directory(&directory, claim))
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
        let on_chain = OnChain::read(&self.reader, &contract)?;
        let text = files::read_text(path, single::FILE_MAX).map_err(malformed)?;
        let candidate = single::read(&text, &on_chain).map_err(malformed)?;
        drop(text);
        self.take(&path.display().to_string(), &on_chain, Ok(candidate))
    }

    fn reject(&mut self, entry: &str, reason: &str) {
        self.report.rejected += 1;
        self.watcher.rejected(entry, reason);
    }

    fn take(
        &mut self,
        entry: &str,
        on_chain: &OnChain,
        read: Result<Candidate, String>,
    ) -> Result<(), ImportError> {
        if self.pending.contains(&on_chain.contract) {
            self.flush()?;
        }
        let stored = self.target.writer.contract(&on_chain.contract)?;
        let unfinal = self.target.writer.unfinal_code(&on_chain.contract)?;
        // What was held against code that a reorg took away counts for nothing.
        let is_there = unfinal.is_none_or(|hash| on_chain.code.creation_hash() == Some(hash));
        let known = stored.as_ref().filter(|_| is_there);
        let settled = match read {
            Ok(mut candidate) => {
                self.lend_abi(&mut candidate, &on_chain.contract, known)?;
                settle(candidate, on_chain)
            }
            Err(reason) => Err(Refused::of(reason)),
        };
        match settled {
            Ok(settled) => self.keep(entry, on_chain, known, settled)?,
            Err(Refused { reason, contradicted }) => {
                let stored = stored.filter(|stored| contradicted.is(stored));
                // What was taken before there was code to hold it against, or while there was, or before several hashes were told
                // apart.
                let forgets = stored.and_then(|stored| match stored.checked {
                    false => Some(" before there was code"),
                    true if contradicted == Contradicted::Everything => Some(" while there was code"),
                    true => {
                        is_doubtful(&stored, on_chain).then_some(" for one of several hashes in its code")
                    }
                });
                if let Some(when) = forgets {
                    self.target
                        .writer
                        .write(&ImportWriter::forgotten(&on_chain.contract))?;
                    let also = format!("what was taken of its contract{when} is forgotten");
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

    /// Sources that come without an ABI have the one that was imported for their contract before, alone or with the same
    /// sources.
    fn lend_abi(
        &self,
        candidate: &mut Candidate,
        contract: &Address,
        known: Option<&ContractFacts>,
    ) -> Result<(), ImportError> {
        let lends =
            |known: &&ContractFacts| known.sources.is_empty() || candidate.has_sources(&known.sources);
        if candidate.abi.is_none() && !candidate.sources.is_empty() && known.filter(lends).is_some() {
            let text = self.target.writer.contract_abi(contract)?;
            candidate.abi = text.and_then(|text| Abi::parse(&text).ok());
        }
        Ok(())
    }

    fn keep(
        &mut self,
        entry: &str,
        on_chain: &OnChain,
        known: Option<&ContractFacts>,
        settled: Settled,
    ) -> Result<(), ImportError> {
        let contract = &on_chain.contract;
        let abi = settled.abi.as_ref().map(|(text, names)| (text.as_str(), names));
        let worth = Worth::of(&settled.facts);
        if let Some(known) = known {
            let counts = Worth::of_known(known, on_chain);
            // What is in doubt gives way, but not to less that says the same.
            let shown = if is_doubtful(known, on_chain) {
                Worth::of(known)
            } else {
                counts
            };
            let says_same = worth == Worth::Abi || is_of_same(known, &settled.facts);
            if shown > worth
                && says_same
                && self.target.writer.contract_abi(contract)?.as_deref() == abi.map(|(text, _)| text)
            {
                self.report.taken += 1;
                return Ok(());
            }
            if counts > worth {
                self.reject(entry, "what is there of its contract already is worth more");
                return Ok(());
            }
        }
        let rows = ImportWriter::contract_rows(contract, &settled.facts, abi, settled.texts);
        let mut changed = false;
        for (key, value) in &rows {
            changed |= self.target.writer.get(key)? != *value;
        }
        self.report.taken += 1;
        self.report.changed += u64::from(changed);
        // Whether the code is final by now is nothing new of the contract.
        let unfinal = ImportWriter::unfinal_row(contract, on_chain.unfinal_code());
        if changed || self.target.writer.get(&unfinal.0)? != unfinal.1 {
            self.rows.push(unfinal);
            self.pending.insert(*contract);
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

impl Contradicted {
    /// Whether it is what was taken before.
    fn is(&self, known: &ContractFacts) -> bool {
        match self {
            Self::Nothing => false,
            Self::Sources(name, sources) => {
                (name.is_none() || known.name == *name) && known.sources == *sources
            }
            Self::Everything => true,
        }
    }
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
        fit: Fit::Unknown,
        told_arguments: files.constructor_arguments(),
    })
}

#[cfg(test)]
mod solc_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod worth_tests;
