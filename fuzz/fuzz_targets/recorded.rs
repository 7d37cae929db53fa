//! libFuzzer's entry to `targets/recorded.rs`.
#![no_main]

#[path = "../targets/recorded.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
