//! What is believed of a contract's sources: by who claims it, and by what the chain says.

use super::Candidate;
use super::code::{Word, judge, names_several};
use super::fit::{Creation, Fit, OnChain};
use super::metadata::license;
use super::tree::Claim;
use crate::model::{B256, Bytes, ContractFacts, ContractNames, MatchKind};

/// What is kept of a contract.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) facts: ContractFacts,
    pub(super) abi: Option<(String, ContractNames)>,
    pub(super) texts: Vec<(B256, String)>,
}

/// Why nothing is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused {
    pub(super) reason: String,
    pub(super) contradicted: Contradicted,
}

/// What the chain says cannot be of the contract.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Contradicted {
    /// It says nothing.
    Nothing,
    /// The contract of this name, where one is told, of these sources, by path and hash.
    Sources(Option<String>, Vec<(String, B256)>),
    /// Whatever there is: it has no code.
    Everything,
}

impl Refused {
    /// For a reason that has nothing to do with the chain.
    pub(super) fn of(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            contradicted: Contradicted::Nothing,
        }
    }
}

impl Candidate {
    /// What a message calls it.
    fn described(&self) -> String {
        match (&self.facts.name, self.sources.is_empty()) {
            (_, true) => "an ABI".to_owned(),
            (Some(name), false) => format!("sources of `{name}`"),
            (None, false) => "sources".to_owned(),
        }
    }
}

/// Holds what was read against the chain.
pub(super) fn settle(mut candidate: Candidate, on_chain: &OnChain) -> Result<Settled, Refused> {
    if candidate.sources.is_empty() && candidate.abi.is_none() {
        return Err(Refused::of("it has neither sources nor an ABI"));
    }
    if let Some(why) = on_chain.without_code() {
        return Err(Refused {
            reason: format!("{why}, and the import is {}", candidate.described()),
            contradicted: Contradicted::Everything,
        });
    }
    // Behind the own code another contract's may stand.
    let takes = |arguments: &[u8]| candidate.abi.as_ref().is_some_and(|abi| abi.takes(arguments));
    let (word, behind) = judge(candidate.metadata.as_deref(), &on_chain.code, takes);
    // The file's code told which of several hashes is the contract's own.
    let word = match (&candidate.fit, word) {
        (Fit::Metadata(_), Word::Among) => Word::Same,
        (_, word) => word,
    };
    if let Some(reason) = contradiction(&candidate, word, on_chain) {
        let sources = candidate.sources.into_iter().map(|(path, hash, _)| (path, hash));
        return Err(Refused {
            reason,
            contradicted: Contradicted::Sources(candidate.facts.name, sources.collect()),
        });
    }
    if candidate.abi.is_none() {
        return Err(Refused::of(
            "its sources come without an ABI, and nothing is compiled here: put the compiler's output with them, or import \
             the contract's ABI before",
        ));
    }
    let fits = matches!(candidate.fit, Fit::Metadata(_) | Fit::Code(_)) || word == Word::Same;
    let vouched = fits || matches!(candidate.claim, Claim::Full | Claim::Partial);
    // What the repository says counts where the creating input ends with it.
    let told = || {
        let told = candidate.told_arguments.as_ref().filter(|told| takes(told))?;
        let init = on_chain.code.init.as_ref()?;
        init.ends_with(told).then(|| Bytes::from(told.clone()))
    };
    let arguments = match &candidate.fit {
        Fit::Metadata(Creation::Matched(rest)) | Fit::Code(Creation::Matched(rest)) => Some(rest.clone()),
        Fit::Code(Creation::Other) => None,
        // Where the contract's creation ends is of use only if it is that of these sources.
        _ if vouched => behind.or_else(told),
        _ => None,
    };
    let mut facts = std::mem::take(&mut candidate.facts);
    facts.constructor_arguments = arguments;
    // A full match is one of the hash of metadata: code without such a hash has none, and of several the own one is not known.
    facts.match_kind = match (candidate.claim, word) {
        (Claim::Full, Word::Nothing) if on_chain.has_code() => MatchKind::Partial,
        (Claim::Full, _) | (Claim::None | Claim::File, Word::Same) => MatchKind::Full,
        (Claim::Partial | Claim::None | Claim::File, _) => MatchKind::Partial,
    };
    facts.checked = on_chain.has_code();
    // The mark of a full match among several metadata: see `worth`.
    let told = facts.match_kind == MatchKind::Full && names_several(&on_chain.code);
    facts.stated = (!vouched || told) && !candidate.sources.is_empty();
    Ok(complete(facts, candidate))
}

/// Why the chain says that the sources are of another contract.
fn contradiction(candidate: &Candidate, word: Word, on_chain: &OnChain) -> Option<String> {
    if let Fit::Other(why) = &candidate.fit {
        return Some(why.clone());
    }
    if candidate.claim == Claim::Full && word == Word::Other {
        return Some("it says to match fully, and the contract's code names other metadata".to_owned());
    }
    let fits = word == Word::Same || candidate.fit != Fit::Unknown;
    let minimal = on_chain
        .code
        .minimal_proxy()
        .filter(|_| !fits && !candidate.sources.is_empty())?;
    Some(format!(
        "`{}` is a minimal proxy (EIP-1167) of `{minimal}`, and the import is {}: import them for that contract",
        on_chain.contract,
        candidate.described()
    ))
}

/// Puts the sources into the facts, and what they say of themselves.
fn complete(mut facts: ContractFacts, candidate: Candidate) -> Settled {
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
    let mut texts = Vec::with_capacity(candidate.sources.len());
    for (path, hash, text) in candidate.sources {
        facts.sources.push((path, hash));
        texts.push((hash, text));
    }
    Settled {
        facts,
        abi: candidate.abi.map(|abi| (abi.text, abi.names)),
        texts,
    }
}
