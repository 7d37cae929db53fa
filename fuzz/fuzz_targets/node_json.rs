//! libFuzzer's entry to `targets/node_json.rs`.
#![no_main]

#[path = "../targets/node_json.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
