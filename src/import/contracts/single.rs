//! One file for one contract: a standard-JSON input with or without its output, an artifact, or an ABI alone.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::words::{json_fault, short};
use super::Candidate;
use super::abi::Abi;
use super::abi_check::check;
use super::files::{collect, inline_checked, of_metadata as sources_of_metadata};
use super::fit::{CodeText, Fit, OnChain, Outputs};
use super::metadata::{Metadata, Settings, SourceEntry};
use crate::model::ContractFacts;

/// The longest file, bytes: build information of a large project.
pub(super) const FILE_MAX: u64 = 256 << 20;

/// A file as it may be, each field of which some tool writes.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct File {
    /// Build information wraps the input.
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    /// Of a standard-JSON input.
    language: Option<String>,
    sources: Option<Box<RawValue>>,
    settings: Option<Settings>,
    /// Of an artifact.
    abi: Option<Box<RawValue>>,
    contract_name: Option<String>,
    metadata: Option<Box<RawValue>>,
    raw_metadata: Option<String>,
    bytecode: Option<CodeText>,
    deployed_bytecode: Option<CodeText>,
    /// Versions of the compiler.
    compiler_version: Option<String>,
    solc_long_version: Option<String>,
}

/// A standard-JSON output.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    contracts: BTreeMap<String, BTreeMap<String, Compiled>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Compiled {
    abi: Option<Box<RawValue>>,
    metadata: Option<String>,
    evm: Evm,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Evm {
    bytecode: Option<CodeText>,
    deployed_bytecode: Option<CodeText>,
}

impl Compiled {
    fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref().filter(|text| !text.is_empty())
    }

    fn outputs(&self) -> Outputs {
        let hex = |code: &'_ Option<CodeText>| code.as_ref().and_then(CodeText::hex).map(str::to_owned);
        let (creation, runtime) = (hex(&self.evm.bytecode), hex(&self.evm.deployed_bytecode));
        Outputs {
            metadata: self.metadata().map(|text| text.as_bytes().to_vec()),
            ..Outputs::default()
        }
        .with_code(creation.as_deref(), runtime.as_deref())
    }
}

fn unreadable(what: &'static str) -> impl Fn(serde_json::Error) -> String {
    move |error| format!("{what} cannot be read: {}", json_fault(&error))
}

/// The ABI that a file states.
fn stated_abi(text: &str) -> Result<Abi, String> {
    let abi = Abi::parse(text)?;
    check(text)?;
    Ok(abi)
}

const EMPTY_ABI: &str = "its ABI is empty and there is nothing else: there is nothing to take";

/// Reads a file's text. What is on the chain tells which contract of several is meant.
pub(super) fn read(text: &str, on_chain: &OnChain) -> Result<Candidate, String> {
    // Some editors put a byte order mark before it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let candidate = read_any(text, on_chain)?;
    // A contract may have no function; a file that tells just that is a mistake.
    let is_empty = candidate.abi.as_ref().is_some_and(|abi| abi.text == "[]");
    if is_empty && candidate.sources.is_empty() && candidate.metadata.is_none() {
        return Err(EMPTY_ABI.to_owned());
    }
    Ok(candidate)
}

fn read_any(text: &str, on_chain: &OnChain) -> Result<Candidate, String> {
    if text.trim_start().starts_with('[') {
        return Ok(Candidate {
            abi: Some(stated_abi(text)?),
            ..Candidate::default()
        });
    }
    let mut file: File = serde_json::from_str(text).map_err(unreadable("it"))?;
    if let Some(input) = file.input.take() {
        let input: File = serde_json::from_str(input.get()).map_err(unreadable("its input"))?;
        file.language = file.language.or(input.language);
        file.sources = input.sources;
        file.settings = input.settings;
    }
    // Metadata alone has an output too, which is another thing.
    let own_metadata = file.abi.is_none() && file.sources.is_some() && file.language.is_some() && {
        #[derive(Deserialize)]
        struct Compiler {
            compiler: Option<serde::de::IgnoredAny>,
        }
        serde_json::from_str::<Compiler>(text).is_ok_and(|own| own.compiler.is_some())
    };
    if own_metadata {
        let mut candidate = of_metadata(text)?;
        let outputs = Outputs {
            metadata: candidate.metadata.clone(),
            ..Outputs::default()
        };
        candidate.fit = outputs.fit("the file", on_chain);
        return Ok(candidate);
    }
    match (&file.abi, &file.sources) {
        (Some(_), _) => artifact(&file, on_chain),
        (None, Some(_)) => standard(&file, on_chain),
        (None, None) => {
            Err("it is no standard-JSON input, no artifact with an ABI, no metadata and no ABI".to_owned())
        }
    }
}

/// Metadata, and those of its sources that stand in it.
fn of_metadata(text: &str) -> Result<Candidate, String> {
    let metadata = Metadata::parse(text)?;
    let facts = metadata.facts();
    Ok(Candidate {
        abi: metadata.abi()?,
        sources: whole(&metadata.sources)?,
        facts,
        metadata: Some(text.as_bytes().to_vec()),
        ..Candidate::default()
    })
}

/// The sources, where the text of each is there; none where any is missing.
fn whole(
    sources: &BTreeMap<String, SourceEntry>,
) -> Result<Vec<(String, crate::model::B256, String)>, String> {
    if sources.values().any(|entry| entry.content.is_none()) {
        return Ok(Vec::new());
    }
    collect(sources, |_, entry| {
        inline_checked(entry)?.ok_or_else(|| "is not there".to_owned())
    })
}

fn artifact(file: &File, on_chain: &OnChain) -> Result<Candidate, String> {
    let abi = file.abi.as_ref().map(|abi| stated_abi(abi.get())).transpose()?;
    // A text is byte for byte what the compiler hashed; an object is what some tool made of it.
    let quoted = || {
        let text = file.metadata.as_ref()?.get();
        text.starts_with('"')
            .then(|| serde_json::from_str::<String>(text).ok())
            .flatten()
    };
    let exact = file
        .raw_metadata
        .clone()
        .or_else(quoted)
        .filter(|text| !text.is_empty());
    let object = file
        .metadata
        .as_ref()
        .map(|text| text.get())
        .filter(|text| text.starts_with('{'));
    let mut candidate = match exact.as_deref().or(object) {
        Some(text) => of_metadata(text)?,
        None => Candidate::default(),
    };
    if exact.is_none() {
        candidate.metadata = None;
    }
    candidate.abi = abi;
    candidate.facts.name = candidate.facts.name.or_else(|| file.contract_name.clone());
    let version = file.compiler_version.clone();
    candidate.facts.compiler_version = candidate.facts.compiler_version.or(version);
    let hex = |code: &'_ Option<CodeText>| code.as_ref().and_then(CodeText::hex).map(str::to_owned);
    let (creation, runtime) = (hex(&file.bytecode), hex(&file.deployed_bytecode));
    let outputs = Outputs {
        metadata: candidate.metadata.clone(),
        ..Outputs::default()
    }
    .with_code(creation.as_deref(), runtime.as_deref());
    let name = candidate
        .facts
        .name
        .as_deref()
        .map_or_else(|| "the file".to_owned(), |name| format!("the file's `{name}`"));
    candidate.fit = outputs.fit(&name, on_chain);
    Ok(candidate)
}

fn standard(file: &File, on_chain: &OnChain) -> Result<Candidate, String> {
    let sources = file.sources.as_ref().map_or("{}", |sources| sources.get());
    let sources: BTreeMap<String, SourceEntry> =
        serde_json::from_str(sources).map_err(unreadable("its sources"))?;
    let sources = collect(&sources, |_, entry| {
        inline_checked(entry)?.ok_or_else(|| "has no content".to_owned())
    })?;
    if sources.is_empty() {
        return Err("it has no sources".to_owned());
    }
    let mut facts = ContractFacts {
        language: file.language.clone(),
        compiler_version: file
            .compiler_version
            .clone()
            .or_else(|| file.solc_long_version.clone()),
        name: file.contract_name.clone(),
        ..ContractFacts::default()
    };
    if let Some(settings) = &file.settings {
        let named = facts.name.take();
        settings.tell(&mut facts);
        facts.name = facts.name.or(named);
    }
    let output = match &file.output {
        Some(output) => serde_json::from_str::<Output>(output.get()).map_err(unreadable("its output"))?,
        None => Output::default(),
    };
    let mut candidate = Candidate {
        facts,
        sources,
        ..Candidate::default()
    };
    let (meant, fit) = meant(&output, &candidate.facts, on_chain)?;
    candidate.fit = fit;
    if let Some((path, name, compiled)) = meant {
        let stated = compiled.abi.as_ref().map(|abi| stated_abi(abi.get()));
        candidate.abi = stated.transpose()?;
        if let Some(text) = compiled.metadata() {
            let metadata = Metadata::parse(text)?;
            candidate.sources = sources_of_metadata(&metadata, std::mem::take(&mut candidate.sources))?;
            let told = metadata.facts();
            let own = std::mem::take(&mut candidate.facts);
            candidate.facts = ContractFacts {
                compiler_version: told.compiler_version.or(own.compiler_version),
                evm_version: told.evm_version.or(own.evm_version),
                optimizer: told.optimizer.or(own.optimizer),
                runs: told.runs.or(own.runs),
                license: told.license,
                settings: own.settings.or(told.settings),
                ..own
            };
            candidate.metadata = Some(text.as_bytes().to_vec());
        }
        candidate.facts.main = Some(path.to_owned());
        candidate.facts.name = Some(name.to_owned());
    }
    Ok(candidate)
}

/// A contract of an output: its file, its name, and what the compiler made of it.
type Found<'a> = (&'a str, &'a str, &'a Compiled);

/// The contract that is meant, and how it fits: the one that the code vouches for, else the one that is named or the only
/// one, where nothing can be held against each other. None where the output has no contract at all, or none that fits.
fn meant<'a>(
    output: &'a Output,
    facts: &ContractFacts,
    on_chain: &OnChain,
) -> Result<(Option<Found<'a>>, Fit), String> {
    let all: Vec<(Found<'a>, Fit)> = output
        .contracts
        .iter()
        .flat_map(|(path, contracts)| {
            contracts
                .iter()
                .map(move |(name, compiled)| (path, name, compiled))
        })
        .map(|(path, name, compiled)| {
            let fit = compiled.outputs().fit(&format!("`{path}:{name}`"), on_chain);
            ((path.as_str(), name.as_str(), compiled), fit)
        })
        .collect();
    let is_named = |(path, name, _): &Found<'_>| {
        facts.name.as_deref() == Some(*name) && facts.main.as_deref().is_none_or(|main| main == *path)
    };
    let rank = |fit: &Fit| match fit {
        Fit::Metadata(_) => 3,
        Fit::Code(_) => 2,
        Fit::Unknown => 1,
        Fit::Other(_) => 0,
    };
    let Some(best) = all.iter().map(|(_, fit)| rank(fit)).max() else {
        return Ok((None, Fit::Unknown));
    };
    let mut of_best = all.iter().filter(|(_, fit)| rank(fit) == best);
    if best == 0 {
        let name = on_chain.contract;
        return Ok(match (of_best.next(), of_best.next()) {
            (Some((_, fit)), None) => (None, fit.clone()),
            _ => (
                None,
                Fit::Other(format!(
                    "none of its {} contracts ({}) has the code of `{name}`",
                    all.len(),
                    names(&all)
                )),
            ),
        });
    }
    let mut named = of_best.clone().filter(|(found, _)| is_named(found));
    // Of a name that is another's nothing is believed.
    let names_other = all.iter().any(|(found, fit)| is_named(found) && rank(fit) == 0);
    let chosen = match (named.next(), named.next(), of_best.next(), of_best.next()) {
        (Some(one), None, ..) => one,
        (None, None, Some(one), None) if best > 1 || !names_other => one,
        _ => {
            return Err(format!(
                "it holds {} contracts ({}), and nothing tells which of them is meant: name it as `contractName`",
                all.len(),
                names(&all)
            ));
        }
    };
    Ok((Some(chosen.0), chosen.1.clone()))
}

/// Some names of contracts, for a message.
fn names(all: &[(Found<'_>, Fit)]) -> String {
    const SHOWN: usize = 5;
    let shown = all
        .iter()
        .take(SHOWN)
        .map(|((path, name, _), _)| short(&format!("{path}:{name}")));
    let more = if all.len() > SHOWN { ", ..." } else { "" };
    shown.collect::<Vec<_>>().join(", ") + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_alone(text: &str) -> Result<Candidate, String> {
        read(text, &OnChain::default())
    }

    const ABI: &str = r#"[{"type":"function","name":"f","inputs":[],"outputs":[],"stateMutability":"view"}]"#;

    #[test]
    fn abis_and_artifacts() {
        let alone = read_alone(&format!(" {ABI}")).unwrap();
        assert_eq!(alone.abi.unwrap().text, ABI);
        assert_eq!(alone.facts, ContractFacts::default());
        let metadata = format!(
            r#"{{"compiler":{{"version":"0.8.1"}},"language":"Solidity","output":{{"abi":{ABI}}},
                "settings":{{"compilationTarget":{{"A.sol":"A"}}}},"sources":{{"A.sol":{{"content":"x"}}}}}}"#
        );
        let quoted = serde_json::to_string(&metadata).unwrap();
        for (text, exact) in [
            (format!(r#"{{"abi":{ABI},"metadata":{quoted}}}"#), true),
            (
                format!(r#"{{"abi":{ABI},"rawMetadata":{quoted},"metadata":{metadata}}}"#),
                true,
            ),
            (format!(r#"{{"abi":{ABI},"metadata":{metadata}}}"#), false),
            (metadata.clone(), true),
        ] {
            let artifact = read_alone(&text).unwrap();
            assert_eq!(artifact.facts.name.as_deref(), Some("A"), "{text}");
            assert_eq!(artifact.facts.compiler_version.as_deref(), Some("0.8.1"));
            assert_eq!(artifact.sources.len(), 1);
            assert_eq!(artifact.metadata.is_some(), exact, "{text}");
            if exact {
                assert_eq!(artifact.metadata.unwrap(), metadata.as_bytes());
            }
        }
        let hardhat = format!(r#"{{"contractName":"B","abi":{ABI},"bytecode":"0x","linkReferences":{{}}}}"#);
        let hardhat = read_alone(&hardhat).unwrap();
        assert_eq!(hardhat.facts.name.as_deref(), Some("B"));
        assert!(hardhat.sources.is_empty() && hardhat.metadata.is_none());
        // A contract without functions has an empty ABI, which its metadata says.
        let empty = metadata.replace(ABI, "[]");
        assert_eq!(read_alone(&empty).unwrap().abi.unwrap().text, "[]");
    }

    #[test]
    fn standard_json() {
        let input = r#""language":"Solidity","sources":{"A.sol":{"content":"contract A{}"},"B.sol":{"content":""}},
            "settings":{"optimizer":{"enabled":false},"evmVersion":"paris","outputSelection":{"*":{"*":["*"]}}}"#;
        let alone = read_alone(&format!("{{{input}}}")).unwrap();
        assert_eq!(alone.facts.optimizer, Some(false));
        assert_eq!(
            (alone.facts.name, alone.facts.main, alone.facts.runs),
            (None, None, None)
        );
        assert_eq!(alone.sources.len(), 2);
        let one = format!(r#""output":{{"contracts":{{"A.sol":{{"A":{{"abi":{ABI}}}}}}}}}"#);
        let with = format!(r#"{{{input},{one},"compilerVersion":"0.8.2"}}"#);
        let built = format!(r#"{{"input":{{{input}}},{one},"solcLongVersion":"0.8.2","id":"x"}}"#);
        for text in [with, built] {
            let with = read_alone(&text).unwrap();
            assert_eq!(with.facts.name.as_deref(), Some("A"));
            assert_eq!(with.facts.main.as_deref(), Some("A.sol"));
            assert_eq!(with.facts.compiler_version.as_deref(), Some("0.8.2"));
            assert_eq!(with.facts.language.as_deref(), Some("Solidity"));
            assert_eq!(with.abi.unwrap().text, ABI);
        }
        // Of two contracts nobody says which is meant, but for a name.
        let two = format!(r#""output":{{"contracts":{{"A.sol":{{"A":{{"abi":{ABI}}},"C":{{"abi":[]}}}}}}}}"#);
        let unsure = read_alone(&format!("{{{input},{two}}}")).unwrap_err();
        assert!(
            unsure.contains("2 contracts (A.sol:A, A.sol:C)") && unsure.contains("contractName"),
            "{unsure}"
        );
        let named = read_alone(&format!(r#"{{{input},{two},"contractName":"C"}}"#)).unwrap();
        assert_eq!(named.abi.unwrap().text, "[]");
    }

    #[test]
    fn what_cannot_be_taken() {
        for (text, why) in [
            ("", "cannot be read"),
            ("{}", "no standard-JSON input"),
            ("1", "cannot be read"),
            (r#"{"abi":{}}"#, "no JSON array"),
            ("[]", "its ABI is empty"),
            (r#"{"abi":[]}"#, "its ABI is empty"),
            (
                r#"{"contractName":"A","abi":[ ],"bytecode":"0x"}"#,
                "its ABI is empty",
            ),
            (
                r#"[{"type":"function","inputs":[]}]"#,
                "entry 1 of the ABI: it has no name",
            ),
            (
                r#"{"abi":[{"name":"f","inputs":[{"type":7}]}]}"#,
                "its type is not text",
            ),
            (
                r#"{"abi":5,"contractName":7}"#,
                "the number 7 stands where a text belongs",
            ),
            (r#"{"language":"Solidity","sources":{}}"#, "no sources"),
            (
                r#"{"language":"Solidity","sources":{"A":{"urls":[]}}}"#,
                "source `A` has no content",
            ),
            (
                r#"{"language":"Solidity","sources":{"A":{"content":"x","keccak256":"0x0000000000000000000000000000000000000000000000000000000000000000"}}}"#,
                "another hash",
            ),
        ] {
            let said = read_alone(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }
}
