//! How fast one writer fills a store, how many bytes a log takes, and how much memory that needs.
//!
//! Budgets: at least 100,000 logs a second; at most 200 bytes a log for all copies and indexes of logs; memory
//! at most a fifth above `--cache-size` and `--backfill-memory`. The chain is synthetic, neither parsed nor
//! verified. Environment: `QUARRY_BENCH_LOGS` (5,000,000), `QUARRY_BENCH_BACKFILL_MB` (1,024),
//! `QUARRY_BENCH_CACHE_MB` (256), `QUARRY_BENCH_DIR`; `QUARRY_BENCH_TRACES=1` adds frames and the ledger of native balances.
//!
//! `QUARRY_BENCH_BESIDE=1` commits each batch while the next one is derived, as the pipeline does; all blocks are made
//! before then, and count towards the memory.
//!
//! `QUARRY_BENCH_PART` leaves parts of the chain away, so that differences tell what a part costs: `transactions` has
//! no logs; `logs` has them, but no transfers that the token ledger would know; `tokens` has those, and native
//! balances still end at the first block; `all`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use quarry::model::{Bundle, TokenEvent};
use quarry::store::Table;
use support::filled::{self, Memory};
use support::memory::{Peak, stated};
use support::part::Part;
use support::sizes::{Share, sizes};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// Movements that the token ledger counts.
fn transfers(bundle: &Bundle) -> u64 {
    let logs = bundle.receipts.iter().flat_map(|receipt| &receipt.logs);
    logs.filter_map(|log| TokenEvent::of(&log.address, &log.topics, &log.data))
        .map(|event| match event {
            TokenEvent::Multi { items, .. } => items.iter().count() as u64,
            _ => 1,
        })
        .sum()
}

fn main() {
    let logs = filled::env("QUARRY_BENCH_LOGS", 5_000_000);
    let memory = Memory::of_environment();
    let (config, part) = (filled::chain(logs), Part::of_environment());
    let directory = match part {
        Part::All => filled::directory(&config, logs),
        _ => filled::named_directory("part"),
    };
    let mut counted = 0;
    let blocks = filled::opened(config).map(|bundle| {
        let bundle = part.cut(bundle);
        counted += transfers(&bundle);
        bundle
    });
    let beside = filled::env("QUARRY_BENCH_BESIDE", 0) > 0;
    let blocks: Box<dyn Iterator<Item = Bundle>> = if beside {
        Box::new(blocks.collect::<Vec<_>>().into_iter())
    } else {
        Box::new(blocks)
    };
    let watch = Peak::watch();
    let began = std::time::Instant::now();
    let (store, spent) = filled::fill(blocks, memory, directory.clone(), beside);
    let wall = began.elapsed().as_secs_f64();
    let (before, peak) = watch.end();
    let checkpoint = *store.view().checkpoint();
    let stored = checkpoint.logs.max(1) as f64;

    let fresh = sizes(&store);
    let postings: u64 = [Table::Postings, Table::OpenPostings]
        .map(|table| store.table_property(table, "rocksdb.total-sst-files-size"))
        .iter()
        .sum();
    let began = std::time::Instant::now();
    store.compact().expect("a compaction");
    let compaction = began.elapsed().as_secs_f64();
    let compacted = sizes(&store);

    println!(
        "## load: {} logs, {} transactions\n",
        checkpoint.logs, checkpoint.transactions
    );
    let writing = spent.writing().as_secs_f64();
    println!("| part | seconds | logs/s |\n|---|---|---|");
    for (name, seconds) in [
        ("generate (not counted)", spent.generate.as_secs_f64()),
        ("derive", spent.derive.as_secs_f64()),
        ("commit", spent.commit.as_secs_f64()),
        ("last flush", spent.settle.as_secs_f64()),
        ("**writer: derive, commit, flush**", writing),
        ("writer and full compaction", writing + compaction),
        ("wall clock without compaction", wall),
        ("writer's thread, on a core", spent.writer_cpu),
        ("all threads, on cores", spent.all_cpu),
    ] {
        println!("| {name} | {seconds:.1} | {:.0} |", stored / seconds);
    }
    println!(
        "\n{} commits; postings before compaction {postings} bytes\n",
        spent.commits
    );

    println!("| table or array | bytes a log, before | after compaction |\n|---|---|---|");
    let mut sums = [[0.0; 2]; 4];
    for ((name, before, share), (_, after, _)) in fresh.iter().zip(&compacted) {
        let (before, after) = (*before as f64 / stored, *after as f64 / stored);
        let place = *share as usize;
        sums[place][0] += before;
        sums[place][1] += after;
        if before >= 0.005 || after >= 0.005 {
            let mark = match share {
                Share::Logs => "",
                Share::Chain => " (chain)",
                Share::Tokens => " (tokens)",
                Share::Native => " (native balances)",
            };
            println!("| {name}{mark} | {before:.2} | {after:.2} |");
        }
    }
    for (place, name) in [
        "**logs: all copies and indexes**",
        "chain: transactions, hashes, account lists",
        "tokens: ledger and transfer lists",
        "native balances",
    ]
    .into_iter()
    .enumerate()
    {
        let [before, after] = sums[place];
        println!("| {name} | {before:.1} | {after:.1} |");
    }
    let of = |place: usize, count: u64| sums[place][1] * stored / count.max(1) as f64;
    println!(
        "\ncompacted: {:.1} bytes of the token ledger and its lists for each of {counted} transfers, {:.1} bytes of native balances a transaction",
        of(Share::Tokens as usize, counted),
        of(Share::Native as usize, checkpoint.transactions),
    );

    let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let cap = (memory.cache + memory.backfill) as u64;
    println!(
        "\nmemory: cap {:.0} MiB (cache {} + backfill {}), anonymous peak {:.0} MiB (before: {:.0}), {:.2} of the cap; high water with mapped files {:.0} MiB",
        megabytes(cap),
        memory.cache >> 20,
        memory.backfill >> 20,
        megabytes(peak),
        megabytes(before),
        peak as f64 / cap as f64,
        megabytes(stated("VmHWM")),
    );
    drop(store);
    match part {
        Part::All => std::fs::write(directory.join("complete"), "").expect("a mark"),
        _ => std::fs::remove_dir_all(&directory).expect("a part is not kept"),
    }
}
