//! libFuzzer's entry to `targets/imports.rs`.
#![no_main]

#[path = "../targets/imports.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
