//! What compilers write about a compilation: `metadata.json`, of Solidity's and Vyper's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::words::json_fault;
use super::abi::Abi;
use crate::model::ContractFacts;

/// The metadata, as far as it is of use here. Unknown fields may be any.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Metadata {
    compiler: Compiler,
    pub(super) language: Option<String>,
    output: Output,
    pub(super) settings: Settings,
    /// By path.
    pub(super) sources: BTreeMap<String, SourceEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Compiler {
    version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Output {
    abi: Option<Box<RawValue>>,
}

/// How it was compiled; those of a standard-JSON input are the same.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Settings {
    /// The main file and the contract in it.
    compilation_target: BTreeMap<String, String>,
    evm_version: Option<String>,
    optimizer: Optimizer,
    /// Vyper's: a truth value, or `none`, `gas` or `codesize`.
    optimize: Option<serde_json::Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Optimizer {
    enabled: Option<bool>,
    runs: Option<u64>,
}

/// A source of the compilation.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SourceEntry {
    pub(super) keccak256: Option<String>,
    pub(super) content: Option<String>,
    pub(super) license: Option<String>,
}

impl Settings {
    fn optimizer(&self) -> Option<bool> {
        let of_vyper = || match self.optimize.as_ref()? {
            serde_json::Value::Bool(on) => Some(*on),
            serde_json::Value::String(word) => Some(word != "none"),
            _ => None,
        };
        self.optimizer.enabled.or_else(of_vyper)
    }

    /// Puts what they say into `facts`.
    pub(super) fn tell(&self, facts: &mut ContractFacts) {
        if let Some((main, name)) = self.compilation_target.iter().next() {
            facts.main = Some(main.clone());
            facts.name = Some(name.clone());
        }
        facts.evm_version.clone_from(&self.evm_version);
        facts.optimizer = self.optimizer();
        facts.runs = self.optimizer.runs;
    }
}

impl Metadata {
    /// Reads the text of a metadata file.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let metadata: Self = serde_json::from_str(text)
            .map_err(|error| format!("the metadata cannot be read: {}", json_fault(&error)))?;
        if metadata.compiler.version.is_none() && metadata.output.abi.is_none() && metadata.sources.is_empty()
        {
            return Err("it is no compiler's metadata: no compiler, no ABI, no sources".to_owned());
        }
        Ok(metadata)
    }

    /// The ABI, where there is one.
    pub(super) fn abi(&self) -> Result<Option<Abi>, String> {
        let text = self.output.abi.as_ref().map(|abi| abi.get());
        text.filter(|text| *text != "null").map(Abi::parse).transpose()
    }

    /// What it says of the contract, without sources.
    pub(super) fn facts(&self) -> ContractFacts {
        let mut facts = ContractFacts {
            language: self.language.clone(),
            compiler_version: self.compiler.version.clone(),
            ..ContractFacts::default()
        };
        self.settings.tell(&mut facts);
        let main = facts.main.as_ref().and_then(|main| self.sources.get(main));
        facts.license = main.and_then(|main| main.license.clone());
        facts
    }
}

/// The license that a source states of itself, in an SPDX line.
pub(super) fn license(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("SPDX-License-Identifier:")?;
    let line = rest.lines().next()?;
    let line = line.split("*/").next()?.trim();
    (!line.is_empty() && line.len() <= 200).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solidity() {
        let metadata = Metadata::parse(
            r#"{"compiler":{"version":"0.8.37+commit.f401782d"},"language":"Solidity",
                "output":{"abi":[{"type":"fallback","stateMutability":"payable"}],"devdoc":{}},
                "settings":{"compilationTarget":{"a/B.sol":"B"},"evmVersion":"prague","optimizer":{"enabled":true,"runs":200},
                            "remappings":[]},
                "sources":{"a/B.sol":{"keccak256":"0x00","license":"MIT","urls":[]}},"version":1}"#,
        )
        .unwrap();
        let facts = metadata.facts();
        assert_eq!(facts.name.as_deref(), Some("B"));
        assert_eq!(facts.main.as_deref(), Some("a/B.sol"));
        assert_eq!(facts.compiler_version.as_deref(), Some("0.8.37+commit.f401782d"));
        assert_eq!((facts.optimizer, facts.runs), (Some(true), Some(200)));
        assert_eq!(facts.evm_version.as_deref(), Some("prague"));
        assert_eq!(facts.license.as_deref(), Some("MIT"));
        assert!(metadata.abi().unwrap().unwrap().text.contains("fallback"));
    }

    #[test]
    fn vyper_and_what_is_no_metadata() {
        let vyper = |optimize: &str| {
            let text = format!(
                r#"{{"compiler":{{"version":"0.3.10"}},"language":"Vyper","output":{{"abi":[]}},
                    "settings":{{"compilationTarget":{{"t.vy":"t"}},"evmVersion":null{optimize}}},
                    "sources":{{"t.vy":{{"keccak256":"0x01"}}}},"version":1}}"#
            );
            Metadata::parse(&text).unwrap().facts()
        };
        assert_eq!(vyper("").optimizer, None);
        assert_eq!(vyper(r#","optimize":"gas""#).optimizer, Some(true));
        assert_eq!(vyper(r#","optimize":"none""#).optimizer, Some(false));
        assert_eq!(vyper(r#","optimize":false"#).optimizer, Some(false));
        assert_eq!(vyper("").language.as_deref(), Some("Vyper"));
        for bad in [
            "",
            "{}",
            "[]",
            "{\"sources\":{}}",
            "{\"sources\":[]}",
            "{\"compiler\":1}",
        ] {
            assert!(Metadata::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn licenses_of_sources() {
        assert_eq!(
            license("// SPDX-License-Identifier: MIT OR Apache-2.0\npragma").as_deref(),
            Some("MIT OR Apache-2.0")
        );
        assert_eq!(
            license("/* SPDX-License-Identifier: GPL-3.0 */ contract").as_deref(),
            Some("GPL-3.0")
        );
        assert_eq!(license("contract A {}"), None);
        assert_eq!(license("// SPDX-License-Identifier:\nx"), None);
    }
}
