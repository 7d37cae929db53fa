//! Stores of the synthetic chain: filled as backfill fills them, and kept between runs of the benches.
#![allow(clippy::print_stderr, reason = "a store that is filled takes a while: say so")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::generator::{Generator, GeneratorConfig};
use super::memory::{process_seconds, thread_seconds};
use quarry::config::{BackfillMemory, ByteSize};
use quarry::model::{Address, B256, Bundle, U256};
use quarry::store::schema::SCHEMA_VERSION;
use quarry::store::{OpenOptions, Store};
use quarry::sync::derive::native::touched;
use quarry::sync::derive::{NonceRules, derive};

/// The seed of every chain here.
pub(crate) const SEED: u64 = 1;

/// A number from the environment.
pub(crate) fn env(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.replace('_', "").parse().expect("a number"),
        Err(_) => default,
    }
}

/// The chain of about so many logs.
pub(crate) fn chain(logs: u64) -> GeneratorConfig {
    GeneratorConfig {
        blocks: logs / 200,
        traces: env("QUARRY_BENCH_TRACES", 0) > 0,
        ..GeneratorConfig::default()
    }
}

/// Where stores and recordings are kept: `QUARRY_BENCH_DIR`, else the user's cache directory.
pub(crate) fn cache_directory() -> PathBuf {
    std::env::var_os("QUARRY_BENCH_DIR").map_or_else(
        || {
            let home = std::env::var_os("HOME").map_or_else(std::env::temp_dir, PathBuf::from);
            home.join(".cache/quarry-bench")
        },
        PathBuf::from,
    )
}

/// The directory of the store with a chain of so many logs; one with traces is another.
pub(crate) fn directory(config: &GeneratorConfig, logs: u64) -> PathBuf {
    let traced = if config.traces { ".traced" } else { "" };
    named_directory(&format!("seed{SEED}-logs{logs}{traced}"))
}

/// The directory of a store by its contents; stores of another layout have other directories.
pub(crate) fn named_directory(contents: &str) -> PathBuf {
    cache_directory().join(format!("store-v{SCHEMA_VERSION}-{contents}"))
}

/// Memory of backfill, and the block cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) cache: usize,
    pub(crate) backfill: usize,
}

impl Memory {
    pub(crate) fn of_environment() -> Self {
        Self {
            cache: (env("QUARRY_BENCH_CACHE_MB", 256) as usize) << 20,
            backfill: (env("QUARRY_BENCH_BACKFILL_MB", 1024) as usize) << 20,
        }
    }

    /// Its parts, as `quarry run` shares it out.
    pub(crate) const fn parts(&self) -> BackfillMemory {
        BackfillMemory::of(ByteSize(self.backfill))
    }

    pub(crate) const fn batch(&self) -> usize {
        self.parts().batch
    }

    pub(crate) fn options(&self, directory: PathBuf) -> OpenOptions {
        OpenOptions {
            cache_bytes: self.cache,
            memtable_bytes: self.parts().memtables,
            ..OpenOptions::new(directory)
        }
    }
}

/// Where the time of filling went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) generate: Duration,
    pub(crate) derive: Duration,
    pub(crate) commit: Duration,
    pub(crate) settle: Duration,
    pub(crate) commits: u32,
    /// Seconds on a core, without generation: of the writer's thread, and of all threads.
    pub(crate) writer_cpu: f64,
    pub(crate) all_cpu: f64,
}

impl Spent {
    /// The writer's own time.
    pub(crate) fn writing(&self) -> Duration {
        self.derive + self.commit + self.settle
    }
}

/// The rules of every chain here.
pub(crate) fn rules() -> NonceRules {
    NonceRules {
        chain_id: 1,
        ..NonceRules::default()
    }
}

/// What a node would tell of all that a traced block touches: enough for whatever the chain does.
pub(crate) fn openings(bundle: &Bundle) -> Option<Vec<(Address, U256)>> {
    let rich = U256::from(1) << 100;
    bundle.traces.is_some().then(|| {
        let accounts = touched(bundle, &rules().native).into_iter();
        accounts.map(|account| (account, rich)).collect()
    })
}

/// The synthetic chain with what a node would tell of its accounts.
pub(crate) fn opened(config: GeneratorConfig) -> impl Iterator<Item = Bundle> {
    Generator::new(SEED, config).map(|mut bundle| {
        bundle.openings = openings(&bundle);
        bundle
    })
}

/// Makes a store and fills it with blocks from 1 on; replaces what is in the directory. Making the blocks is not
/// counted. A batch is committed while the next one is derived, as the pipeline does it, where `beside` says so: that is
/// for blocks that are made already, or commits would have the time that making them takes for nothing.
pub(crate) fn fill(
    mut blocks: impl Iterator<Item = Bundle>,
    memory: Memory,
    directory: PathBuf,
    beside: bool,
) -> (Arc<Store>, Spent) {
    if directory.exists() {
        std::fs::remove_dir_all(&directory).expect("an old store goes");
    }
    let options = memory.options(directory);
    let store = Store::open_or_create(&options, 1, B256::ZERO, Some(1)).expect("a store");
    let mut writer = store.writer().expect("the writer");
    let rules = rules();
    let mut spent = Spent::default();
    let mut batch = None;
    let mut clock = Instant::now();
    let mut lap = |part: &mut Duration| {
        let now = Instant::now();
        *part += now - clock;
        clock = now;
    };
    let all_before = process_seconds();
    let thread_before = thread_seconds();
    let mut generating = 0.0;
    loop {
        let before = thread_seconds();
        let bundle = blocks.next();
        generating += thread_seconds() - before;
        lap(&mut spent.generate);
        let last = bundle.is_none();
        if let Some(bundle) = bundle {
            let open = batch.get_or_insert_with(|| writer.batch());
            derive(&bundle, &rules, open).expect("rows");
            lap(&mut spent.derive);
            drop(bundle);
            lap(&mut spent.generate);
        }
        if let Some(full) = batch.take_if(|batch| last || batch.bytes() >= memory.batch()) {
            if beside {
                writer.begin_commit(full).expect("a commit");
            } else {
                writer.commit_final(full).expect("a commit");
            }
            spent.commits += 1;
            lap(&mut spent.commit);
        }
        if last {
            break;
        }
    }
    writer.settle().expect("a flush");
    lap(&mut spent.settle);
    spent.writer_cpu = thread_seconds() - thread_before - generating;
    spent.all_cpu = process_seconds() - all_before - generating;
    drop(writer);
    (store, spent)
}

/// The store with a chain of so many logs, compacted; made when it is not kept from an earlier run.
pub(crate) fn kept(config: GeneratorConfig, logs: u64) -> PathBuf {
    kept_in(directory(&config, logs), || opened(config))
}

/// The same with other blocks.
pub(crate) fn kept_in<I: Iterator<Item = Bundle>>(directory: PathBuf, blocks: impl FnOnce() -> I) -> PathBuf {
    if !directory.join("complete").exists() {
        eprintln!("filling {} ...", directory.display());
        let (store, spent) = fill(blocks(), Memory::of_environment(), directory.clone(), false);
        store.compact().expect("a compaction");
        eprintln!(
            "filled in {:.0} s, writer {:.1} s on a core",
            spent.writing().as_secs_f64(),
            spent.writer_cpu
        );
        drop(store);
        std::fs::write(directory.join("complete"), "").expect("a mark");
    }
    directory
}

/// The median of some figures.
pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
