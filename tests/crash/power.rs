//! Power cuts: images of a frozen process, less what was not forced to disk.

use crate::process::{Quarry, kills, pause, runtime};
use crate::support::fake_node::FakeNode;
use crate::support::signal::Signal;
use crate::support::{self, image, index, scratch};
use fastrand::Rng;
use quarry::model::{B256, Bundle};
use quarry::store::FlatArray;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Cuts the end of the newest log of RocksDB, but for its first record: which chain a new store is of is forced to disk when it is
/// made. Answers how much was cut.
fn cut_log(store: &Path, rng: &mut Rng) -> u64 {
    let logs = std::fs::read_dir(store.join("rocksdb")).unwrap();
    let newest = logs
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .max();
    let Some(path) = newest else { return 0 };
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut header = [0; 7];
    let first = match file.read_exact_at(&mut header, 0) {
        Ok(()) => 7 + u64::from(u16::from_le_bytes([header[4], header[5]])),
        Err(_) => 0,
    };
    let length = file.metadata().unwrap().len();
    let most = length.saturating_sub(first);
    // Often inside the last records, sometimes anywhere.
    let cut = match rng.u8(..4) {
        0 => rng.u64(..=most),
        1 => rng.u64(..=most.min(64)),
        _ => rng.u64(..=most.min(100_000)),
    };
    file.set_len(length - cut).unwrap();
    cut
}

/// Everything the node's chain has been.
#[derive(Default)]
struct History(Vec<Arc<Vec<Bundle>>>);

impl History {
    fn note(&mut self, fake: &FakeNode) {
        self.0.push(Arc::new(fake.bundles()));
    }

    /// A chain that has this block.
    fn chain_of(&self, number: u64, hash: B256) -> Option<&Arc<Vec<Bundle>>> {
        let place = usize::try_from(number).unwrap();
        let has =
            |chain: &&Arc<Vec<Bundle>>| chain.get(place).is_some_and(|bundle| bundle.block.hash == hash);
        self.0.iter().rev().find(has)
    }
}

/// Freezes the process and copies its store, if there is one: what a power cut would leave, less what was not forced
/// to disk.
fn photograph(quarry: &Quarry, store: &Path, to: &Path) -> bool {
    quarry.freeze();
    let there = store.join("rocksdb/CURRENT").exists();
    if there {
        image::copy(store, to).unwrap();
    }
    quarry.signal(Signal::CONT);
    there
}

/// Opens images after a power cut.
struct Bench {
    seed: u64,
    rng: Rng,
    history: History,
    genesis: B256,
    /// Digests of fresh indexes, by the hash of their head.
    digests: BTreeMap<B256, B256>,
    runtime: tokio::runtime::Runtime,
    heads: Vec<Option<u64>>,
}

impl Bench {
    fn new(seed: u64, fake: &FakeNode, history: History) -> Self {
        Self {
            seed,
            rng: Rng::with_seed(seed),
            history,
            genesis: fake.bundles()[0].block.hash,
            digests: BTreeMap::new(),
            runtime: runtime(),
            heads: Vec::new(),
        }
    }

    fn fresh(&mut self, chain: &[Bundle]) -> B256 {
        let runtime = &self.runtime;
        let head = chain.last().unwrap().block.hash;
        let index = || runtime.block_on(index::fresh_digest(chain, 0));
        *self.digests.entry(head).or_insert_with(index)
    }

    /// Opens an image, which must hold whole blocks, and perhaps lets it go on. Answers its head, and how many records
    /// of its arrays are final where all blocks are.
    fn open(&mut self, path: &Path, cut: &str, go_on: bool) -> Option<(u64, [u64; FlatArray::ALL.len()])> {
        let what = format!("seed {}: {} {cut}", self.seed, path.display());
        let store = index::open(path, self.genesis, 0).unwrap_or_else(|error| panic!("{what}: {error}"));
        let view = store.view();
        self.heads.push(view.head().map(|head| head.number));
        let head = view.head()?;
        let chain = self.history.chain_of(head.number, head.hash);
        let chain = Arc::clone(chain.expect("a head the node had"));
        let upto = usize::try_from(head.number).unwrap() + 1;
        assert_eq!(view.digest().unwrap(), self.fresh(&chain[..upto]), "{what}");
        if go_on {
            // As if nothing had happened.
            let told = support::balances::told(&chain, 0);
            self.runtime
                .block_on(index::import(&store, &told[upto..], self.genesis));
            assert_eq!(
                store.view().digest().unwrap(),
                self.fresh(&chain),
                "{what}: going on"
            );
        }
        let records = FlatArray::ALL.map(|array| view.array_len(array));
        Some((head.number, records))
    }

    /// Opens an image as it is, and with ends of the log cut off.
    fn try_image(&mut self, image: &Path, scratch: &Path) -> Option<(u64, [u64; FlatArray::ALL.len()])> {
        let mut found = None;
        for variant in 0..3 {
            self.fresh_copy(image, scratch);
            let cut = if variant == 0 {
                0
            } else {
                cut_log(scratch, &mut self.rng)
            };
            let opened = self.open(scratch, &format!("log cut by {cut}"), variant == 1);
            if variant == 0 {
                found = opened;
            }
        }
        found
    }

    fn fresh_copy(&self, image: &Path, scratch: &Path) {
        let _ = std::fs::remove_dir_all(scratch);
        image::copy(image, scratch).unwrap();
    }
}

#[test]
fn a_power_cut_at_the_tip_leaves_whole_blocks() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    let mut history = History::default();
    fake.mine(300);
    fake.set_finalized(230);
    history.note(&fake);
    let (live, images) = (tempfile::tempdir().unwrap(), scratch::directory());
    let store = live.path().join("mainnet");
    let mut quarry = Quarry::start(&fake, live.path());
    quarry.until_synced(&fake);
    let count = kills(8);
    for image in 0..count {
        match rng.u8(..5) {
            0 | 1 => {
                let depth = rng.u64(1..=64).min(fake.head() - fake.finalized());
                fake.reorg(depth, depth + rng.u64(..3));
            }
            2 => fake.set_finalized(fake.finalized().max(fake.head() - rng.u64(10..40))),
            _ => fake.mine(rng.u64(1..4)),
        }
        history.note(&fake);
        // About as often as a service asks for the head.
        pause(&mut rng, 5..2500);
        assert!(photograph(
            &quarry,
            &store,
            &images.path().join(image.to_string())
        ));
    }
    quarry.kill();
    let mut bench = Bench::new(seed, &fake, history);
    for image in 0..count {
        let image = images.path().join(image.to_string());
        let found = bench.try_image(&image, &images.path().join("cut"));
        assert!(
            found.is_some_and(|(head, _)| head >= 230),
            "seed {seed}: {found:?}"
        );
    }
    println!("power cuts at the tip: {count} images, heads {:?}", bench.heads);
}

#[test]
fn a_power_cut_in_backfill_leaves_whole_blocks() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    let mut history = History::default();
    let last_final = 2450;
    fake.mine(last_final + 50);
    fake.set_finalized(last_final);
    history.note(&fake);
    fake.set_latency(Duration::from_millis(4));
    let images = scratch::directory();
    let mut taken = Vec::new();
    // A store of its own for every few images, so that they lie all over a backfill.
    for _ in 0..kills(8).div_ceil(8) {
        let live = tempfile::tempdir().unwrap();
        let mut quarry = Quarry::start(&fake, live.path());
        // The second batch brings the first one to disk.
        quarry.until("two batches", |status| status["indexed"].as_u64() > Some(150));
        for _ in 0..8 {
            pause(&mut rng, 100..900);
            let image = images.path().join(taken.len().to_string());
            if quarry.indexed() >= Some(last_final) {
                break;
            }
            if photograph(&quarry, &live.path().join("mainnet"), &image) {
                taken.push(image);
            }
        }
        quarry.kill();
    }
    let mut bench = Bench::new(seed, &fake, history);
    let (mut with_data, scratch) = (0, images.path().join("cut"));
    for image in &taken {
        let Some((head, records)) = bench.try_image(image, &scratch) else {
            continue;
        };
        if head >= last_final {
            continue;
        }
        with_data += 1;
        // What the arrays have beyond is of blocks that RocksDB had only in memory.
        bench.fresh_copy(image, &scratch);
        let lost = image::cut_power(&scratch, &image::logs(&scratch), &records, &mut rng);
        assert_eq!(bench.open(&scratch, &lost, true).unwrap().0, head);
    }
    println!(
        "power cuts in backfill: {} images, {with_data} with blocks of unlogged writes, heads {:?}",
        taken.len(),
        bench.heads
    );
    assert!(
        2 * with_data >= taken.len(),
        "seed {seed}: {with_data} of {} images have blocks",
        taken.len()
    );
}
