//! What the Solidity compiler makes of sources.

#![allow(unreachable_pub, reason = "each test binary has it at a place of its own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "skipped.rs"]
mod skipped;

const SCRIPT: &str = "const solc = require('solc'); let text = ''; process.stdin.on('data', d => text += d); \
    process.stdin.on('end', () => process.stdout.write(solc.compile(text)));";

/// What solc answers to a standard-JSON input; nothing, and a word, where it is not installed.
pub fn compile(input: &Value) -> Option<Value> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools");
    if !tools.join("node_modules/solc").is_dir() {
        skipped::skipped("no solc (run `tools/setup.sh npm`)");
        return None;
    }
    let mut node = Command::new("node")
        .args(["-e", SCRIPT])
        .current_dir(tools)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text = input.to_string();
    node.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    Some(serde_json::from_slice(&output.stdout).unwrap())
}
