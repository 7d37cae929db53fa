//! The real binary, killed at random moments and cut off from power: what it leaves is whole.
//!
//! `QUARRY_KILLS=N` for more kills in each phase.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

mod support;

use fastrand::Rng;
use quarry::model::{B256, Bundle};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::fake_node::FakeNode;
use support::index;

const SERVING_MAX: Duration = Duration::from_secs(3);

fn kills() -> u64 {
    let kills = std::env::var("QUARRY_KILLS").ok();
    kills.and_then(|text| text.parse().ok()).unwrap_or(7)
}

fn command(arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarry"));
    command.args(arguments).arg("--data-dir").arg(directory);
    // So little that a backfill takes many batches and flushes.
    command.args(["--backfill-memory", "4MiB", "--cache-size", "16MiB"]);
    command
}

/// A running `quarry run`.
struct Quarry {
    child: Child,
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Quarry {
    /// Starts and waits until it serves.
    fn start(fake: &FakeNode, directory: &Path) -> Self {
        let url = fake.url();
        let began = Instant::now();
        let mut child = command(
            &["run", "--mainnet-rpc", &url, "--listen", "127.0.0.1:0"],
            directory,
        )
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
        let (sender, serving) = std::sync::mpsc::channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, stderr) = (Arc::clone(&log), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("serving address=") {
                    let _ = sender.send(address.trim().to_owned());
                }
                lines.lock().unwrap().push(line);
            }
        });
        let address = serving.recv_timeout(Duration::from_secs(20)).unwrap_or_else(|_| {
            let _ = child.kill();
            panic!("not serving: {:#?}", log.lock().unwrap())
        });
        let quarry = Self { child, address, log };
        quarry.status().expect("serves");
        assert!(
            began.elapsed() < SERVING_MAX,
            "serving after {:?}: {:#?}",
            began.elapsed(),
            quarry.log.lock().unwrap()
        );
        quarry
    }

    /// What `/status` says of the chain.
    fn status(&self) -> Option<Value> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!(
            "GET /status HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let body = text.split_once("\r\n\r\n")?.1;
        let report: Value = serde_json::from_str(body).ok()?;
        Some(report["chains"]["mainnet"].clone())
    }

    fn indexed(&self) -> Option<u64> {
        self.status()?["indexed"].as_u64()
    }

    fn until(&mut self, what: &str, condition: impl Fn(&Value) -> bool) {
        let began = Instant::now();
        while !self.status().is_some_and(|status| condition(&status)) {
            assert!(
                began.elapsed() < Duration::from_secs(90) && self.child.try_wait().unwrap().is_none(),
                "in vain: {what}: {:?} {:#?}",
                self.status(),
                self.log.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn until_synced(&mut self, fake: &FakeNode) {
        let head = fake.head_hash().to_string();
        self.until("the node's head", |status| status["indexedHash"] == head.as_str());
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let log = self.log.lock().unwrap();
        assert!(!log.iter().any(|line| line.contains("panicked")), "{log:#?}");
    }

    /// Asks for the end, which must be clean and quick.
    fn stop(mut self) {
        let began = Instant::now();
        self.signal("-TERM");
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                began.elapsed() < Duration::from_secs(20),
                "does not end: {:#?}",
                self.log.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{status}: {:#?}", self.log.lock().unwrap());
        assert!(
            began.elapsed() < Duration::from_secs(3),
            "the end took {:?}",
            began.elapsed()
        );
    }
}

impl Drop for Quarry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `quarry inspect --full` says the digest is.
fn inspected(directory: &Path) -> String {
    let output = command(&["inspect", "--full"], directory).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let digest = text.lines().find_map(|line| line.strip_prefix("digest "));
    digest
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
        .trim()
        .to_owned()
}

/// The digest of an undisturbed run over the node's chain as it is now.
fn undisturbed(fake: &FakeNode) -> String {
    let directory = tempfile::tempdir().unwrap();
    let status = command(
        &["sync", "--to", "latest", "--mainnet-rpc", &fake.url()],
        directory.path(),
    )
    .stderr(Stdio::null())
    .stdout(Stdio::null())
    .status()
    .unwrap();
    assert!(status.success(), "{status}");
    inspected(directory.path())
}

fn pause(rng: &mut Rng, milliseconds: std::ops::Range<u64>) {
    std::thread::sleep(Duration::from_millis(rng.u64(milliseconds)));
}

#[test]
fn kills_at_any_moment_leave_no_trace() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    fake.mine(2500);
    fake.set_finalized(2450);
    fake.set_latency(Duration::from_millis(4));
    let directory = tempfile::tempdir().unwrap();
    let mut reached = Vec::new();
    for kill in 0..kills() {
        let mut quarry = Quarry::start(&fake, directory.path());
        if kill % 2 == 1 {
            // However slow the machine: some kills come after a commit of this process.
            let before = quarry.indexed();
            quarry.until("a commit", |status| {
                let indexed = status["indexed"].as_u64();
                indexed > before || indexed == Some(fake.head())
            });
            pause(&mut rng, 0..2500);
        } else {
            pause(&mut rng, 0..2000);
        }
        reached.push(quarry.indexed());
        quarry.kill();
    }
    println!("backfill was killed at {reached:?}");
    assert!(
        reached.iter().any(Option::is_some),
        "no kill hit a backfill under way"
    );
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until_synced(&fake);
    quarry.kill();
    fake.set_latency(Duration::ZERO);
    for _ in 0..kills() {
        let quarry = Quarry::start(&fake, directory.path());
        let until = Instant::now() + Duration::from_millis(rng.u64(200..2500));
        while Instant::now() < until {
            match rng.u8(..4) {
                0 => {
                    let depth = rng.u64(1..=20).min(fake.head() - fake.finalized());
                    fake.reorg(depth, depth + rng.u64(..3));
                }
                1 => fake.set_finalized(fake.finalized().max(fake.head() - rng.u64(10..40))),
                _ => fake.mine(rng.u64(1..3)),
            }
            pause(&mut rng, 10..200);
        }
        reached.push(quarry.indexed());
        quarry.kill();
    }
    println!("all kills: {reached:?}, head {}", fake.head());
    fake.mine(1);
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until_synced(&fake);
    quarry.stop();
    let found = inspected(directory.path());
    assert_eq!(
        found,
        undisturbed(&fake),
        "seed {seed}: not the store of an undisturbed run"
    );
    let fresh = runtime().block_on(index::fresh_digest(&fake.bundles(), 0));
    assert_eq!(
        found,
        fresh.to_string(),
        "seed {seed}: not the store of a fresh import"
    );
}

#[test]
fn a_polite_end_during_backfill_is_quick_and_resumed() {
    let fake = FakeNode::start(77);
    fake.mine(1500);
    fake.set_finalized(1450);
    fake.set_latency(Duration::from_millis(5));
    let directory = tempfile::tempdir().unwrap();
    for at in [10, 400, 900] {
        let mut quarry = Quarry::start(&fake, directory.path());
        quarry.until("some blocks", |status| {
            status["indexed"].as_u64().is_some_and(|indexed| indexed >= at)
        });
        let indexed = quarry.indexed();
        quarry.stop();
        let quarry = Quarry::start(&fake, directory.path());
        assert!(
            quarry.indexed() >= indexed,
            "{:?} after {indexed:?}",
            quarry.indexed()
        );
        quarry.stop();
    }
    fake.set_latency(Duration::ZERO);
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until_synced(&fake);
    quarry.stop();
    let fresh = runtime().block_on(index::fresh_digest(&fake.bundles(), 0));
    assert_eq!(inspected(directory.path()), fresh.to_string());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Cuts the end of the newest log of RocksDB; answers how much was cut.
fn cut_log(store: &Path, rng: &mut Rng) -> u64 {
    let logs = std::fs::read_dir(store.join("rocksdb")).unwrap();
    let newest = logs
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
        .max();
    let Some(path) = newest else { return 0 };
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    // Often inside the last records, sometimes anywhere.
    let cut = match rng.u8(..4) {
        0 => rng.u64(..=length),
        1 => rng.u64(..=length.min(64)),
        _ => rng.u64(..=length.min(100_000)),
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

#[test]
fn a_power_cut_leaves_whole_blocks() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    let mut history = History::default();
    fake.mine(300);
    fake.set_finalized(250);
    history.note(&fake);
    fake.set_latency(Duration::from_millis(3));
    let (live, images) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let store = live.path().join("mainnet");
    let quarry = Quarry::start(&fake, live.path());
    let count = 2 * kills();
    for image in 0..count {
        if image == count / 2 {
            fake.set_latency(Duration::ZERO);
        }
        match rng.u8(..5) {
            0 => {
                let depth = rng.u64(1..=20).min(fake.head() - fake.finalized());
                fake.reorg(depth, depth + rng.u64(..3));
            }
            1 => fake.set_finalized(fake.finalized().max(fake.head() - rng.u64(10..40))),
            _ => fake.mine(rng.u64(1..4)),
        }
        history.note(&fake);
        pause(&mut rng, 20..700);
        // A frozen process: the image is what a power cut would leave, less what the log lost.
        quarry.signal("-STOP");
        if store.join("rocksdb/CURRENT").exists() {
            copy(&store, &images.path().join(image.to_string()));
        }
        quarry.signal("-CONT");
    }
    quarry.kill();

    let genesis = fake.bundles()[0].block.hash;
    let mut digests: BTreeMap<B256, B256> = BTreeMap::new();
    let mut heads = Vec::new();
    let runtime = runtime();
    for image in 0..count {
        let image = images.path().join(image.to_string());
        if !image.exists() {
            continue;
        }
        for variant in 0..3 {
            let path = images.path().join("cut");
            let _ = std::fs::remove_dir_all(&path);
            copy(&image, &path);
            let cut = if variant == 0 { 0 } else { cut_log(&path, &mut rng) };
            let store = index::open(&path, genesis, 0)
                .unwrap_or_else(|error| panic!("seed {seed}: {} cut by {cut}: {error}", image.display()));
            let Some(head) = store.view().head() else {
                heads.push(None);
                continue;
            };
            heads.push(Some(head.number));
            let chain = history
                .chain_of(head.number, head.hash)
                .expect("a head the node had");
            let upto = usize::try_from(head.number).unwrap() + 1;
            let expected = *digests
                .entry(head.hash)
                .or_insert_with(|| runtime.block_on(index::fresh_digest(&chain[..upto], 0)));
            assert_eq!(
                store.view().digest().unwrap(),
                expected,
                "seed {seed}: {} cut by {cut}",
                image.display()
            );
            // It goes on as if nothing had happened.
            if variant == 1 {
                let told = support::balances::told(chain, 0);
                runtime.block_on(index::import(&store, &told[upto..], genesis));
                let whole = runtime.block_on(index::fresh_digest(chain, 0));
                assert_eq!(
                    store.view().digest().unwrap(),
                    whole,
                    "seed {seed}: going on after {}",
                    image.display()
                );
            }
        }
    }
    println!("heads after the cuts: {heads:?}");
    assert!(heads.iter().any(Option::is_some));
}
