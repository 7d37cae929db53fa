//! What blocks of Ethereum mainnet take on the disk: bytes a log, a transaction and a frame by table, once merged.
//!
//! The blocks lie beside the repository (`../shared/data/mainnet-blocks`); where they are absent the bench says so. They are scattered over ten
//! years, so they are linked one to the next and not verified. Units of blocks (transactions, logs by block, frames) have what they have in a whole chain; lists,
//! hashes and ledgers of so few blocks are nearly all beginnings, and say nothing. Environment: `QUARRY_BENCH_DIR`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::path::Path;

use quarry::model::{B256, Bundle};
use quarry::node::recorded::RecordedChain;
use support::filled::{self, Memory};
use support::sizes::sizes;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// The tables of units, and what was taken out of them.
const UNITS: [&str; 5] = [
    "transactions",
    "array transaction_signatures",
    "logs_by_block",
    "logs_by_emitter",
    "frames",
];

/// The blocks that came with their receipts, as if each followed the one before.
fn linked(path: &Path, traced: bool) -> Vec<Bundle> {
    let lines = RecordedChain::open(path).expect("the blocks");
    let blocks = lines.map(|line| line.expect("a line").parse().expect("a block"));
    let mut blocks: Vec<Bundle> = blocks
        .filter(|bundle: &Bundle| {
            !bundle.block.transactions.is_empty()
                && bundle.receipts.len() == bundle.block.transactions.len()
                && (!traced || bundle.traces.is_some())
        })
        .collect();
    blocks.sort_by_key(|bundle| bundle.block.header.number);
    let mut parent = B256::ZERO;
    for (number, bundle) in (1..).zip(&mut blocks) {
        let block = &mut bundle.block;
        block.header.number = number;
        block.header.parent_hash = parent;
        block.uncles.clear();
        block.uncle_headers.clear();
        parent = block.hash;
        if !traced {
            bundle.traces = None;
        }
        bundle.openings = filled::openings(bundle);
    }
    blocks
}

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/mainnet-blocks/complete.jsonl.zst");
    if !path.exists() {
        println!("skipped: no blocks of Ethereum mainnet at {}", path.display());
        return;
    }
    println!("## blocks of Ethereum mainnet, bytes on the disk\n");
    println!(
        "| blocks | table | rows | bytes | bytes a row | bytes a transaction |\n|---|---|---|---|---|---|"
    );
    for traced in [false, true] {
        let blocks = linked(&path, traced);
        let directory = filled::named_directory(if traced { "mainnet.traced" } else { "mainnet" });
        let (store, _) = filled::fill(
            blocks.into_iter(),
            Memory::of_environment(),
            directory.clone(),
            false,
        );
        store.compact().expect("a compaction");
        let checkpoint = *store.view().checkpoint();
        let told = sizes(&store);
        for table in UNITS {
            let (_, bytes, _) = told.iter().find(|(name, ..)| name == table).expect("a table");
            let rows = match table {
                "transactions" | "array transaction_signatures" => checkpoint.transactions,
                "frames" => checkpoint.frames,
                _ => checkpoint.logs,
            };
            if rows > 0 {
                let (bytes, rows) = (*bytes as f64, rows as f64);
                println!(
                    "| {}{} | {table} | {rows} | {bytes} | {:.1} | {:.1} |",
                    checkpoint.next_block - 1,
                    if traced { " with traces" } else { "" },
                    bytes / rows,
                    bytes / checkpoint.transactions as f64
                );
            }
        }
        drop(store);
        std::fs::remove_dir_all(&directory).expect("it is made anew each time");
    }
}
