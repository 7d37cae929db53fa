//! Hashes of metadata and what follows code, against a real compiler's output.
//!
//! Skipped with a word where no solc is installed (`tools/setup.sh npm`).

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::code::{Word, judge};
use super::trailer;
use crate::query::ContractCode;

const SCRIPT: &str = "const solc = require('solc'); let text = ''; process.stdin.on('data', d => text += d); \
    process.stdin.on('end', () => process.stdout.write(solc.compile(text)));";

/// What solc answers to a standard-JSON input.
fn compile(input: &Value) -> Option<Value> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools");
    if !tools.join("node_modules/solc").is_dir() {
        println!("skipped: no solc (run `tools/setup.sh npm`)");
        return None;
    }
    let mut child = Command::new("node")
        .args(["-e", SCRIPT])
        .current_dir(tools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.to_string().as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

fn code(compiled: &Value, kind: &str) -> Vec<u8> {
    const_hex::decode(compiled["evm"][kind]["object"].as_str().unwrap()).unwrap()
}

#[test]
fn metadata_hashes_are_those_of_the_compiler() {
    // Around the sizes at which blocks, chunks and trees change: 4 KiB, 256 KiB, 512 KiB.
    for (hash, sizes) in [
        (
            "ipfs",
            &[10, 3_000, 200_000, 261_000, 262_144, 300_000, 700_000][..],
        ),
        (
            "bzzr1",
            &[10, 3_000, 4_096, 9_000, 100_000, 523_900, 524_288, 700_000],
        ),
        ("none", &[10]),
    ] {
        let sources: Value = sizes
            .iter()
            .map(|size| {
                let filling = "x".repeat(*size);
                let text = format!(
                    "// SPDX-License-Identifier: MIT\npragma solidity >=0.8.0;\n// {filling}\n\
                     contract C{size} {{ uint public n; constructor(uint a, string memory) {{ n = a; }} }}"
                );
                (format!("C{size}.sol"), json!({ "content": text }))
            })
            .collect::<serde_json::Map<_, _>>()
            .into();
        let input = json!({
            "language": "Solidity",
            "sources": sources,
            "settings": {
                "metadata": {"bytecodeHash": hash, "useLiteralContent": true},
                "outputSelection": {"*": {"*": ["metadata", "evm.bytecode.object", "evm.deployedBytecode.object"]}},
            },
        });
        let Some(output) = compile(&input) else { return };
        for size in sizes {
            let compiled = &output["contracts"][format!("C{size}.sol")][format!("C{size}")];
            let metadata = compiled["metadata"].as_str().unwrap().as_bytes();
            assert!(metadata.len() > *size);
            let arguments = [7; 128];
            let (runtime, creation) = (code(compiled, "deployedBytecode"), code(compiled, "bytecode"));
            let init = [creation.as_slice(), &arguments].concat();
            let known = ContractCode {
                init: Some(init.clone().into()),
                runtime: Some(runtime.clone().into()),
            };
            let only_init = ContractCode {
                init: Some(init.into()),
                runtime: None,
            };
            let expected = (Word::Same, Some(arguments.to_vec().into()));
            if hash == "none" {
                assert_eq!(trailer::at_end(&runtime).unwrap().hash, None);
                assert_eq!(
                    judge(Some(metadata), &known, |_| true),
                    (Word::Nothing, expected.1)
                );
                continue;
            }
            assert_eq!(
                judge(Some(metadata), &known, |_| true),
                expected,
                "{hash} {}",
                metadata.len()
            );
            assert_eq!(judge(Some(metadata), &only_init, |_| true), expected);
            let mut other = metadata.to_vec();
            *other.last_mut().unwrap() = b' ';
            assert_eq!(judge(Some(&other), &known, |_| true).0, Word::Other);
        }
    }
}
