//! What compilers write about a compilation: `metadata.json`, of Solidity's and Vyper's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

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
    optimize: Option<Value>,
    libraries: Option<Value>,
    /// Remappings, the way of code generation and whatever a compiler may have.
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Optimizer {
    enabled: Option<bool>,
    runs: Option<u64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

impl Optimizer {
    fn value(&self) -> Option<Value> {
        let mut all = self.others.clone();
        insert(&mut all, "enabled", self.enabled);
        insert(&mut all, "runs", self.runs);
        (!all.is_empty()).then_some(Value::Object(all))
    }
}

fn insert(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

/// Longer settings are not kept, bytes.
const SETTINGS_MAX: usize = 1 << 20;

/// Libraries as a standard-JSON input has them, by file and name: metadata has them by `file:name`.
fn by_file(libraries: &Value) -> Value {
    let Value::Object(libraries) = libraries else {
        return libraries.clone();
    };
    let mut files = Map::new();
    for (name, place) in libraries {
        let (file, name, place) = match (place, name.rsplit_once(':')) {
            (Value::Object(of_file), _) => {
                files.insert(name.clone(), json!(of_file));
                continue;
            }
            (place, Some((file, name))) => (file, name, place),
            // Old metadata names the library alone.
            (place, None) => ("", name.as_str(), place),
        };
        let of_file = files.entry(file).or_insert_with(|| json!({}));
        if let Some(of_file) = of_file.as_object_mut() {
            of_file.insert(name.to_owned(), place.clone());
        }
    }
    Value::Object(files)
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
            Value::Bool(on) => Some(*on),
            Value::String(word) => Some(word != "none"),
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
        facts.settings = self.text();
    }

    /// What would compile the same sources in the same way: a standard-JSON input's settings.
    fn text(&self) -> Option<String> {
        let mut all = self.others.clone();
        // It tells what to put out, not what comes out.
        all.remove("outputSelection");
        insert(&mut all, "evmVersion", self.evm_version.clone());
        insert(&mut all, "optimizer", self.optimizer.value());
        insert(&mut all, "optimize", self.optimize.clone());
        insert(&mut all, "libraries", self.libraries.as_ref().map(by_file));
        let text = Value::Object(all).to_string();
        (text != "{}" && text.len() <= SETTINGS_MAX).then_some(text)
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
    fn settings_are_kept_as_an_input_has_them() {
        let of = |settings: &str| {
            let text = format!(r#"{{"compiler":{{"version":"0.8.1"}},"settings":{settings}}}"#);
            let kept = Metadata::parse(&text).unwrap().facts().settings?;
            Some(serde_json::from_str::<Value>(&kept).unwrap())
        };
        let kept = of(
            r#"{"compilationTarget":{"a.sol":"A"},"evmVersion":"paris","viaIR":true,
                "libraries":{"a.sol:L":"0x01","b/c.sol:M":"0x02","a.sol:N":"0x03","Old":"0x04"},
                "metadata":{"bytecodeHash":"none"},"remappings":["@oz/=lib/oz/"],"outputSelection":{"*":{}},
                "optimizer":{"enabled":true,"runs":1,"details":{"yul":false}}}"#,
        );
        let expected = json!({
            "evmVersion": "paris", "viaIR": true, "metadata": {"bytecodeHash": "none"},
            "libraries": {"a.sol": {"L": "0x01", "N": "0x03"}, "b/c.sol": {"M": "0x02"}, "": {"Old": "0x04"}},
            "remappings": ["@oz/=lib/oz/"],
            "optimizer": {"enabled": true, "runs": 1, "details": {"yul": false}},
        });
        assert_eq!(kept, Some(expected));
        // An input's libraries stay as they are.
        let nested = json!({"libraries": {"a.sol": {"L": "0x01"}}});
        assert_eq!(of(&nested.to_string()), Some(nested));
        assert_eq!(of(r#"{"optimize":"gas"}"#), Some(json!({"optimize": "gas"})));
        for nothing in [
            r#"{}"#,
            r#"{"compilationTarget":{"a":"A"},"optimizer":{},"evmVersion":null}"#,
        ] {
            assert_eq!(of(nothing), None, "{nothing}");
        }
        assert_eq!(of(&format!(r#"{{"x":"{}"}}"#, "x".repeat(SETTINGS_MAX))), None);
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
