//! A recorded chain into a store, against reading and parsing it alone.
//!
//! Budgets: the import (verify, derive, commit) at half the rate of fetching and parsing at least; memory at most
//! a fifth above `--cache-size` and `--backfill-memory`. The chain is synthetic and sealed: its hashes, roots and
//! blooms are valid. Environment: `QUARRY_BENCH_LOGS` (1,000,000), `QUARRY_BENCH_ROUNDS` (3),
//! `QUARRY_BENCH_BACKFILL_MB` (1,024), `QUARRY_BENCH_CACHE_MB` (256), `QUARRY_BENCH_DIR`;
//! `QUARRY_BENCH_PART=logs` imports a chain without transfers that the token ledger would know.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::path::Path;

use futures_util::StreamExt as _;
use quarry::machine;
use quarry::model::B256;
use quarry::node::recorded::{RecordedChain, RecordedLine};
use quarry::shutdown;
use quarry::store::Store;
use quarry::sync::{ChainRules, FinalBlocks, Pipeline, recorded};
use support::filled::{self, Memory, median};
use support::memory::measure;
use support::part::Part;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "support/recording.rs"]
mod recording;
mod support;

/// Reads and parses on as many threads as the import does, and drops what comes out. Logs.
async fn parse_only(path: &Path, threads: usize) -> u64 {
    let chain = RecordedChain::open(path).expect("the recording");
    let lines = futures_util::stream::unfold(chain, |mut chain| async move {
        let read = tokio::task::spawn_blocking(move || {
            let (mut lines, mut bytes): (Vec<RecordedLine>, usize) = (Vec::new(), 0);
            while bytes < 1 << 20 {
                let Some(line) = chain.next() else { break };
                let line = line.expect("a line");
                bytes += line.text.len();
                lines.push(line);
            }
            (lines, chain)
        });
        let (lines, chain) = read.await.expect("lines");
        (!lines.is_empty()).then_some((lines, chain))
    });
    let parsed = lines.map(|lines| {
        tokio::task::spawn_blocking(move || {
            let logs = lines.iter().map(|line| {
                let bundle = line.parse().expect("a block");
                bundle
                    .receipts
                    .iter()
                    .map(|receipt| receipt.logs.len() as u64)
                    .sum::<u64>()
            });
            logs.sum::<u64>()
        })
    });
    parsed
        .buffered(threads)
        .fold(0, |sum, logs| async move { sum + logs.expect("logs") })
        .await
}

/// The whole import.
async fn import(path: &Path, directory: &Path, memory: Memory, trust_node: bool, threads: usize) -> u64 {
    drop(std::fs::remove_dir_all(directory));
    let store = Store::open_or_create(&memory.options(directory.to_path_buf()), 1, B256::ZERO, Some(1))
        .expect("a store");
    let writer = store.writer().expect("the writer");
    let rules = ChainRules::new(1, B256::ZERO, None, 1, trust_node);
    let pipeline = Pipeline {
        rules: rules.clone(),
        final_blocks: FinalBlocks::All,
        batch_bytes_max: memory.batch(),
    };
    let (_trigger, mut shutdown) = shutdown::pair();
    let chain = RecordedChain::open(path).expect("the recording");
    let source = recorded(chain, rules, 1, |_| Ok(None), threads, memory.batch());
    let (writer, result) = pipeline.run(writer, source, &mut shutdown).await;
    result.expect("an import");
    tokio::task::spawn_blocking(move || drop(writer))
        .await
        .expect("a flush");
    store.view().checkpoint().logs
}

fn main() {
    let logs = filled::env("QUARRY_BENCH_LOGS", 1_000_000);
    let memory = Memory::of_environment();
    let path = recording::kept(logs, Part::of_environment());
    let directory = filled::cache_directory().join("import");
    let threads = machine::cores();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut rates: [Vec<f64>; 3] = Default::default();
    let mut cores: [Vec<f64>; 3] = Default::default();
    let mut peaks = Vec::new();
    for _ in 0..filled::env("QUARRY_BENCH_ROUNDS", 3) {
        for (place, (rates, cores)) in rates.iter_mut().zip(&mut cores).enumerate() {
            let (_, took) = measure(|| {
                runtime.block_on(async {
                    match place {
                        0 => parse_only(&path, threads).await,
                        _ => import(&path, &directory, memory, place == 1, threads).await,
                    }
                })
            });
            rates.push(took.rate);
            cores.push(took.core);
            if place > 0 {
                peaks.push(took.peak);
            }
        }
    }
    drop(std::fs::remove_dir_all(&directory));
    let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
    println!(
        "## backfill: {logs} logs, recording of {} MB compressed, median of interleaved rounds\n",
        bytes / 1_000_000
    );
    println!("| part | logs/s | of fetch and parse | us of a core a log |\n|---|---|---|---|");
    let (rates, cores) = (rates.map(median), cores.map(median));
    let names = [
        "read, decompress, parse, drop",
        "import, node trusted",
        "import, verified",
    ];
    for ((name, rate), core) in names.into_iter().zip(rates).zip(cores) {
        println!("| {name} | {rate:.0} | {:.2} | {core:.1} |", rate / rates[0]);
    }
    let cap = (memory.cache + memory.backfill) as f64;
    let peak = peaks.into_iter().max().unwrap_or(0) as f64;
    println!(
        "\nmemory: cap {:.0} MiB, anonymous peak of imports {:.0} MiB, {:.2} of the cap",
        cap / f64::from(1 << 20),
        peak / f64::from(1 << 20),
        peak / cap
    );
}
