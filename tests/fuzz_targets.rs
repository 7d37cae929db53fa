//! The targets of `fuzz/`, without a fuzzer: each runs over its seeds, over the inputs that once broke it
//! (`fuzz/regressions`), and over mutations of both.
//!
//! `QUARRY_FUZZ_SECONDS` (2) for each target, `QUARRY_SEED` to draw the same again (as far as the time goes),
//! `QUARRY_FUZZ_CORPUS=DIR` to write the seeds to `DIR/<target>/` for libFuzzer, `QUARRY_FUZZ_TRACE=DIR` to write each
//! input to `DIR/<target>` before it runs, for what ends the process.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]
#![allow(
    clippy::duplicate_mod,
    reason = "each target is a program of its own elsewhere"
)]

#[path = "../fuzz/targets/codecs.rs"]
mod codecs;
#[path = "../fuzz/targets/imports.rs"]
mod imports;
#[path = "fuzz_targets/mutate.rs"]
mod mutate;
#[path = "../fuzz/targets/node_json.rs"]
mod node_json;
#[path = "../fuzz/targets/postings.rs"]
mod postings;
#[path = "../fuzz/targets/recorded.rs"]
mod recorded;
#[path = "../fuzz/targets/requests.rs"]
mod requests;
#[path = "fuzz_targets/seeds.rs"]
mod seeds;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use mutate::Mutator;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Inputs that once broke a target, by name.
fn regressions(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/regressions")
        .join(target);
    let Ok(files) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    files
        .map(|file| std::fs::read(file.unwrap().path()).unwrap())
        .collect()
}

fn keep(target: &str, seeds: &[Vec<u8>]) {
    let Some(directory) = std::env::var_os("QUARRY_FUZZ_CORPUS") else {
        return;
    };
    let directory = Path::new(&directory).join(target);
    std::fs::create_dir_all(&directory).unwrap();
    for (place, seed) in seeds.iter().enumerate() {
        std::fs::write(directory.join(format!("seed-{place:04}")), seed).unwrap();
    }
}

/// Runs a target over seeds and their mutations.
fn exercise(target: &str, seeds: &[Vec<u8>], run: fn(&[u8])) {
    keep(target, seeds);
    let seed = number("QUARRY_SEED").unwrap_or_else(|| fastrand::u64(..));
    let patience = Duration::from_secs(number("QUARRY_FUZZ_SECONDS").unwrap_or(2));
    let mut corpus = seeds.to_vec();
    corpus.extend(regressions(target));
    assert!(!corpus.is_empty());
    let traced = std::env::var_os("QUARRY_FUZZ_TRACE");
    let checked = |input: &[u8]| {
        if let Some(directory) = &traced {
            std::fs::write(Path::new(directory).join(target), input).unwrap();
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
            println!(
                "{target}, QUARRY_SEED={seed}, input in hex: {}",
                const_hex::encode(input)
            );
            resume_unwind(panic);
        }
    };
    for input in &corpus {
        checked(input);
    }
    let mut mutator = Mutator::new(seed);
    let (began, mut runs) = (Instant::now(), 0u64);
    while began.elapsed() < patience {
        checked(&mutator.draw(&corpus));
        runs += 1;
    }
    println!(
        "{target}: {} inputs, {runs} mutations, QUARRY_SEED={seed}",
        corpus.len()
    );
    assert!(runs >= 100, "{target} is too slow: {runs} runs");
}

#[test]
fn codecs_take_any_bytes() {
    exercise("codecs", &seeds::codecs(), codecs::run);
}

#[test]
fn postings_take_any_bytes() {
    exercise("postings", &seeds::postings(), postings::run);
}

#[test]
fn the_json_of_nodes_may_be_anything() {
    exercise("node_json", &seeds::node_json(), node_json::run);
}

#[test]
fn requests_may_be_anything() {
    exercise("requests", &seeds::requests(), requests::run);
}

#[test]
fn recorded_chains_may_be_anything() {
    exercise("recorded", &seeds::recorded(), recorded::run);
}

#[test]
fn imported_files_may_be_anything() {
    exercise("imports", &seeds::imports(), imports::run);
}
