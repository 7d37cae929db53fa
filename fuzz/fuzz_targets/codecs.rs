//! libFuzzer's entry to `targets/codecs.rs`.
#![no_main]

#[path = "../targets/codecs.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::run(data));
