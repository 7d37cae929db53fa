//! libFuzzer's entry to `targets/postings.rs`.
#![no_main]

#[path = "../targets/postings.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
