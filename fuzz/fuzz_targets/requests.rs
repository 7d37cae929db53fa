//! libFuzzer's entry to `targets/requests.rs`.
#![no_main]

#[path = "../targets/requests.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
