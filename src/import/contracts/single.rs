//! One file for one contract: a standard-JSON input with or without its output, an artifact, or an ABI alone.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Candidate;
use super::abi::Abi;
use super::code::{Word, judge};
use super::files::{collect, inline_checked};
use super::metadata::{Metadata, Settings, SourceEntry};
use crate::model::ContractFacts;
use crate::query::ContractCode;

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
}

fn unreadable(what: &'static str) -> impl Fn(serde_json::Error) -> String {
    move |error| format!("{what} cannot be read: {error}")
}

/// Reads a file's text. `code` tells which contract of several is meant.
pub(super) fn read(text: &str, code: &ContractCode) -> Result<Candidate, String> {
    if text.trim_start().starts_with('[') {
        return Ok(Candidate {
            abi: Some(Abi::parse(text)?),
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
        return of_metadata(text);
    }
    match (&file.abi, &file.sources) {
        (Some(_), _) => artifact(&file),
        (None, Some(_)) => standard(&file, code),
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

fn artifact(file: &File) -> Result<Candidate, String> {
    let abi = file.abi.as_ref().map(|abi| Abi::parse(abi.get())).transpose()?;
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
    Ok(candidate)
}

fn standard(file: &File, code: &ContractCode) -> Result<Candidate, String> {
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
    if let Some((path, name, compiled)) = meant(&output, &candidate.facts, code) {
        candidate.abi = compiled
            .abi
            .as_ref()
            .map(|abi| Abi::parse(abi.get()))
            .transpose()?;
        if let Some(text) = compiled.metadata.as_deref().filter(|text| !text.is_empty()) {
            let told = Metadata::parse(text)?.facts();
            let own = std::mem::take(&mut candidate.facts);
            candidate.facts = ContractFacts {
                compiler_version: told.compiler_version.or(own.compiler_version),
                evm_version: told.evm_version.or(own.evm_version),
                optimizer: told.optimizer.or(own.optimizer),
                runs: told.runs.or(own.runs),
                license: told.license,
                ..own
            };
            candidate.metadata = Some(text.as_bytes().to_vec());
        }
        candidate.facts.main = Some(path.to_owned());
        candidate.facts.name = Some(name.to_owned());
    }
    Ok(candidate)
}

/// The contract that is meant: the one whose metadata the code names, else the one that is named, else the only one.
fn meant<'a>(
    output: &'a Output,
    facts: &ContractFacts,
    code: &ContractCode,
) -> Option<(&'a str, &'a str, &'a Compiled)> {
    let all = || {
        output.contracts.iter().flat_map(|(path, contracts)| {
            let one = move |(name, compiled)| (path.as_str(), String::as_str(name), compiled);
            contracts.iter().map(one)
        })
    };
    let of_code = all().find(|(_, _, compiled)| {
        let metadata = compiled.metadata.as_ref().map(|text| text.as_bytes());
        metadata.is_some() && judge(metadata, code, |_| false).0 == Word::Same
    });
    let named = || {
        let name = facts.name.as_deref()?;
        let mut of_name = all().filter(|(path, found, _)| {
            *found == name && facts.main.as_deref().is_none_or(|main| main == *path)
        });
        of_name.next().filter(|_| of_name.next().is_none())
    };
    let only = || {
        let mut all = all();
        all.next().filter(|_| all.next().is_none())
    };
    of_code.or_else(named).or_else(only)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_alone(text: &str) -> Result<Candidate, String> {
        read(text, &ContractCode::default())
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
        let unsure = read_alone(&format!("{{{input},{two}}}")).unwrap();
        assert!(unsure.abi.is_none() && unsure.facts.name.is_none());
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
