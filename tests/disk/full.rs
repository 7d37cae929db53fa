//! A file system that is full: the sync waits and says so, answers go on, and when there is room again so does the sync.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::binary::{self, Server, eventually};
use crate::support::fake_node::FakeNode;
use crate::support::{index, scratch};

pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A file system of a few megabytes in memory; gone when dropped.
pub(super) struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` where this process may not mount one.
    pub(super) fn new(megabytes: u64) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "quarry"])
            .arg(directory.path())
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            crate::binary::skipped::skipped("this user may not mount a small file system");
            return None;
        }
        Some(Self { directory })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn ballast(&self) -> PathBuf {
        self.path().join("ballast")
    }

    /// Takes all room but `bytes`, on top of what it took before.
    pub(super) fn fill(&self, bytes: u64) {
        let free = scratch::room(self.path()) << 10;
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.ballast());
        let file = file.unwrap();
        let zeros = vec![0; 1 << 16];
        let mut left = free.saturating_sub(bytes);
        while left > 0 {
            let part = left.min(1 << 16);
            let written = std::io::Write::write(&mut &file, &zeros[..part as usize]);
            match written {
                Ok(count) if count > 0 => left -= count as u64,
                _ => break,
            }
        }
    }

    pub(super) fn empty(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("QUARRY_ROCKSDB_LOG").is_some() {
            let log = std::fs::read_to_string(self.path().join("mainnet/rocksdb/LOG")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            println!("--- end of the log of RocksDB");
            println!("{}", lines[lines.len().saturating_sub(200)..].join("\n"));
        }
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

pub(super) fn start(fake: &FakeNode, disk: &SmallDisk) -> Server {
    start_with(fake, disk, "4MiB")
}

fn start_with(fake: &FakeNode, disk: &SmallDisk, backfill_memory: &str) -> Server {
    start_in(fake, disk.path(), backfill_memory)
}

pub(super) fn start_in(fake: &FakeNode, data: &Path, backfill_memory: &str) -> Server {
    let (url, data) = (fake.url(), data.display().to_string());
    let memory = [
        "--backfill-memory",
        backfill_memory,
        "--cache-size",
        "8MiB",
        "--log",
        "info,quarry::http::request=off",
    ];
    let run = ["run", "--mainnet-rpc", &url, "--data-dir", &data];
    Server::start(run.into_iter().chain(memory))
}

pub(super) fn digest(directory: &Path) -> String {
    let data = directory.display().to_string();
    let output = binary::quarry(["inspect", "--full", "--data-dir", &data]).succeeded();
    let digest = output
        .stdout
        .lines()
        .find_map(|line| line.strip_prefix("digest "));
    digest.expect("a digest").trim().to_owned()
}

pub(super) fn chain(server: &Server) -> serde_json::Value {
    server.json("/status")["chains"]["mainnet"].clone()
}

fn message(server: &Server) -> String {
    binary::text(&chain(server)["message"]).to_owned()
}

pub(super) fn says_full(server: &Server) -> bool {
    message(server).starts_with("the disk is full, waiting for room")
}

/// What is asked while the disk is full; the same answers must come before and meanwhile.
pub(super) fn ask(server: &Server, fake: &FakeNode, upto: u64) -> Vec<String> {
    let bundles = fake.bundles();
    let mut answers = Vec::new();
    for bundle in bundles.iter().take(upto as usize).step_by(7) {
        let time = bundle.block.header.timestamp;
        let target = format!("/api/block/timestamp/{time}/block-number?closest=before");
        answers.push(server.get(&target).text());
        for transaction in bundle.block.transactions.iter().take(1) {
            answers.push(
                server
                    .get(&format!("/api/transaction/{}/status", transaction.hash))
                    .text(),
            );
        }
        if let Some(log) = bundle.receipts.iter().flat_map(|receipt| &receipt.logs).next() {
            let target = format!("/api/logs/get-logs?address={}&toblock={upto}", log.address);
            answers.push(server.get(&target).text());
        }
    }
    answers
}

pub(super) fn synced(server: &Server, fake: &FakeNode) {
    let head = fake.head_hash().to_string();
    eventually("the node's head", PATIENCE, || {
        (chain(server)["indexedHash"] == head.as_str()).then_some(())
    });
}

pub(super) fn fresh(fake: &FakeNode) -> String {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime
        .block_on(index::fresh_digest(&fake.bundles(), 0))
        .to_string()
}

/// Fills the disk at the tip, where blocks are written one by one with RocksDB's log.
#[test]
fn at_the_tip() {
    let Some(disk) = SmallDisk::new(220) else { return };
    let fake = FakeNode::start(41);
    fake.mine(300);
    fake.set_finalized(250);
    let server = start(&fake, &disk);
    synced(&server, &fake);
    let mut said = std::collections::BTreeSet::new();
    for round in 0..6 {
        let before = ask(&server, &fake, 300);
        // With some room left it is another file that finds none.
        disk.fill(round * 70_000);
        let began = Instant::now();
        while !says_full(&server) {
            let stopped = server.gauge("quarry_store_write_stopped");
            assert!(
                began.elapsed() < PATIENCE,
                "never full: {} {stopped:?}",
                chain(&server)
            );
            // What compactions give back is taken, too.
            if began.elapsed() > Duration::from_secs(1) {
                disk.fill(0);
            }
            fake.mine(1);
            fake.set_finalized(fake.head() - 20);
            std::thread::sleep(Duration::from_millis(20));
        }
        said.insert(message(&server));
        assert_eq!(server.gauge("quarry_sync_disk_full").as_deref(), Some("1.0"));
        for (now, before) in ask(&server, &fake, 300).iter().zip(&before) {
            let at = now
                .bytes()
                .zip(before.bytes())
                .position(|(now, before)| now != before);
            let (now, before) = match at {
                Some(at) => (&now[at.saturating_sub(300)..], &before[at.saturating_sub(300)..]),
                None => (&now[..], &before[..]),
            };
            assert!(
                now == before,
                "round {round}: {at:?} of {}\n{now:.700}\n{before:.700}",
                before.len()
            );
        }
        // A reorg meanwhile is no harder than a block.
        fake.reorg(3, 4);
        std::thread::sleep(Duration::from_millis(300));
        assert!(!server.log().contains("panicked"), "{}", server.log());
        disk.empty();
        synced(&server, &fake);
        eventually("the sentence goes", PATIENCE, || {
            (!says_full(&server)).then_some(())
        });
        assert_eq!(server.gauge("quarry_sync_disk_full").as_deref(), Some("0.0"));
    }
    println!("{said:#?}");
    server.stop();
    assert_eq!(digest(disk.path()), fresh(&fake));
}

/// What has to be free for the sync to go on is no matter of the memory that a backfill may take.
#[test]
fn little_room_is_enough_to_go_on() {
    let Some(disk) = SmallDisk::new(220) else { return };
    let fake = FakeNode::start(48);
    fake.mine(1500);
    fake.set_finalized(1480);
    let server = start_with(&fake, &disk, "4GiB");
    synced(&server, &fake);
    // It has written so much at once that its tables may have a lot in memory.
    assert!(options(&disk).contains("write_buffer_size=268435456"));
    fill_up(&disk, 0, &server, || fake.mine(1));
    disk.empty();
    disk.fill(24 << 20);
    synced(&server, &fake);
    assert_eq!(server.gauge("quarry_sync_disk_full").as_deref(), Some("0.0"));
    server.stop();
    assert_eq!(digest(disk.path()), fresh(&fake));
}

/// The options of the tables as RocksDB wrote them last.
fn options(disk: &SmallDisk) -> String {
    let files = std::fs::read_dir(disk.path().join("mainnet/rocksdb")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let newest = files
        .filter(|path| path.to_string_lossy().contains("OPTIONS-"))
        .max();
    std::fs::read_to_string(newest.unwrap()).unwrap()
}

/// Leaves so many bytes, until the service says that they are too few; meanwhile, again and again, something may happen.
fn fill_up(disk: &SmallDisk, room: u64, server: &Server, meanwhile: impl Fn()) {
    let began = Instant::now();
    disk.fill(room);
    while !says_full(server) {
        assert!(began.elapsed() < PATIENCE, "never full: {}", message(server));
        meanwhile();
        // What compactions give back is taken, too.
        disk.fill(room);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Fills the disk in the middle of a backfill, which writes without RocksDB's log.
#[test]
fn in_backfill() {
    let Some(disk) = SmallDisk::new(220) else { return };
    let fake = FakeNode::start(42);
    fake.mine(1500);
    fake.set_finalized(1480);
    fake.set_latency(Duration::from_millis(3));
    let server = start(&fake, &disk);
    eventually("some blocks", PATIENCE, || {
        (chain(&server)["indexed"].as_u64()? > 300).then_some(())
    });
    let room = fastrand::u64(..400_000);
    fill_up(&disk, room, &server, || ());
    println!("{room} bytes left: {}", message(&server));
    let upto = chain(&server)["indexed"].as_u64().unwrap();
    let answers = ask(&server, &fake, upto.min(300));
    assert!(
        answers.iter().all(|answer| !answer.contains("\"error\"")),
        "{answers:#?}"
    );
    // It tries again and again, and goes on saying so.
    let mut told = 0;
    for _ in 0..160 {
        disk.fill(room);
        let now = chain(&server);
        if now["diskFull"] == true {
            let message = binary::text(&now["message"]);
            assert!(message.starts_with("the disk is full"), "{now}");
            told += 1;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(told > 80, "{told} of 160 times");
    // The rest of the backfill takes a while: that there is room is not told at its end only.
    fake.set_latency(Duration::from_millis(30));
    disk.empty();
    eventually("word of the room while it goes on", PATIENCE, || {
        let now = chain(&server);
        assert_eq!(now["following"], false, "{now}");
        (now["diskFull"] == false && now["message"] == "backfilling").then_some(())
    });
    assert_eq!(server.gauge("quarry_sync_disk_full").as_deref(), Some("0.0"));
    fake.set_latency(Duration::ZERO);
    synced(&server, &fake);
    server.stop();
    assert_eq!(digest(disk.path()), fresh(&fake));
}

/// A service that ends while there is no room for what it has taken in does not say that all is well; nothing is lost for good.
#[test]
fn an_end_without_room_is_no_success() {
    let Some(disk) = SmallDisk::new(220) else { return };
    let fake = FakeNode::start(47);
    fake.mine(900);
    fake.set_finalized(880);
    fake.set_latency(Duration::from_millis(3));
    let server = start(&fake, &disk);
    eventually("some blocks", PATIENCE, || {
        (chain(&server)["indexed"].as_u64()? > 200).then_some(())
    });
    fill_up(&disk, 0, &server, || ());
    let (code, log) = server.stopped();
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("not all was written"), "{log}");
    disk.empty();
    let server = start(&fake, &disk);
    synced(&server, &fake);
    server.stop();
    assert_eq!(digest(disk.path()), fresh(&fake));
}

/// What says that it has stored a chain has: with too little room it says that instead.
#[test]
fn an_import_that_ends_well_is_on_the_disk() {
    let Some(disk) = SmallDisk::new(32) else { return };
    let (mut refused, mut stored) = (0, 0);
    for room in [
        500 << 10,
        700 << 10,
        900 << 10,
        1 << 20,
        3 << 19,
        2 << 20,
        24 << 20,
    ] {
        disk.fill(room);
        let data = disk.path().join("data");
        let text = data.display().to_string();
        let (recording, genesis) = (binary::demo("chain.jsonl.zst"), binary::demo("genesis.json"));
        let arguments = [
            "import",
            "chain",
            &recording,
            "--genesis",
            &genesis,
            "--data-dir",
            &text,
        ];
        let outcome = binary::quarry(arguments);
        if outcome.code == Some(0) {
            let found = binary::quarry(["inspect", "--data-dir", &text]).succeeded();
            assert!(
                found.stdout.contains(" 0 to 361 ("),
                "{outcome:?}\n{}",
                found.stdout
            );
            stored += 1;
        } else {
            outcome.refused(&["No space left on device"]);
            refused += 1;
        }
        disk.empty();
        std::fs::remove_dir_all(data).unwrap();
    }
    assert!(refused > 0 && stored > 0, "{refused} {stored}");
}

/// An export that fails leaves no part of a recording, and nothing in the way of the next one.
#[test]
fn an_export_that_fails_leaves_nothing() {
    let Some(disk) = SmallDisk::new(4) else { return };
    let home = tempfile::tempdir().unwrap();
    let data = home.path().display().to_string();
    binary::import_demo(&data);
    let to = disk.path().join("chain.jsonl.zst").display().to_string();
    disk.fill(64 << 10);
    let export = || binary::quarry(["export", "chain", &to, "--data-dir", &data]);
    export().refused(&["No space left on device"]);
    assert!(!Path::new(&to).exists());
    disk.empty();
    export().succeeded();
    assert!(Path::new(&to).exists());
    // What is there already is not taken away.
    export().refused(&["exists"]);
    assert!(Path::new(&to).exists());
}

/// A file system that cannot be written: whoever only reads is served, all others are told.
#[test]
fn a_store_on_a_read_only_file_system() {
    let Some(disk) = SmallDisk::new(32) else { return };
    let data = disk.path().display().to_string();
    binary::import_demo(&data);
    let remount = |how: &str| {
        let done = Command::new("mount")
            .args(["-o", &format!("remount,{how}")])
            .arg(disk.path())
            .status();
        assert!(done.unwrap().success());
    };
    remount("ro");
    let prices = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(prices.path(), "day,price\n").unwrap();
    let run = [
        "run",
        "--mainnet-rpc",
        "http://127.0.0.1:9",
        "--data-dir",
        &data,
        "--listen",
        "127.0.0.1:0",
    ];
    binary::quarry(run).refused(&["cannot be written", "quarry serve"]);
    // Nor is what an operator supplies, of which nothing is there yet.
    let imports = disk.path().join("mainnet/imports");
    assert!(!imports.exists());
    let import = [
        "import",
        "prices",
        prices.path().to_str().unwrap(),
        "--data-dir",
        &data,
    ];
    binary::quarry(import).refused(&["cannot be written", "mount it for writing and own it"]);
    let server = Server::start(["serve", "--data-dir", &data]);
    assert_eq!(
        server.get("/api/block/5/transaction-count?chain=mainnet").status,
        200
    );
    server.stop();
    remount("rw");
}

/// What RocksDB says of files that are none of its own is not the last word.
#[test]
fn a_damaged_store_says_the_way_out() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().display().to_string();
    binary::import_demo(&data);
    let current = home.path().join("mainnet/rocksdb/CURRENT");
    for text in ["", "MANIFEST-999999\n", "nonsense"] {
        std::fs::write(&current, text).unwrap();
        for command in ["serve", "inspect"] {
            binary::quarry([command, "--data-dir", &data]).refused(&["is damaged", "checkpoint restore"]);
        }
    }
}
