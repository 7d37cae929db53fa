//! Checkpoints beside a service that writes: in a backfill, at a tip with reorgs, and of a writer that was stopped.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use quarry::model::{B256, Bundle};
use serde_json::Value;

use crate::binary::{Server, eventually};
use crate::support::ending::Ending;
use crate::support::fake_node::FakeNode;
use crate::support::index;
use crate::{assert_sound, create, digest, names, restore, stream, sync, verify};

fn run(fake: &FakeNode, data: &Path) -> Server {
    let url = fake.url();
    let mut arguments = vec!["run", "--mainnet-rpc", &url, "--data-dir", data.to_str().unwrap()];
    // So little that there are many flushes and compactions.
    arguments.extend(["--backfill-memory", "4MiB", "--cache-size", "16MiB"]);
    Server::start(arguments)
}

fn indexed(server: &Server) -> Option<u64> {
    server.json("/status")["chains"]["mainnet"]["indexed"].as_u64()
}

/// The block that a checkpoint ends at.
fn head(checkpoint: &Path) -> Option<(u64, B256)> {
    let text = std::fs::read(checkpoint.join("checkpoint.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&text).unwrap();
    let head = &manifest["checkpoint"]["head"];
    Some((head["number"].as_u64()?, head["hash"].as_str()?.parse().unwrap()))
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Restores a checkpoint, and insists that it is the store of exactly the blocks up to its head.
fn assert_whole(made: &Path, home: &Path, chain: &[Bundle]) {
    let back = home.join("back");
    restore(made, &back).succeeded();
    if let Some((number, hash)) = head(made) {
        assert_sound(&back);
        let blocks = &chain[..=number as usize];
        assert_eq!(blocks.last().unwrap().block.hash, hash);
        let fresh = runtime().block_on(index::fresh_digest(blocks, 0));
        assert_eq!(digest(&back), fresh.to_string(), "at block {number}");
    }
    std::fs::remove_dir_all(back).unwrap();
}

#[test]
fn in_a_backfill() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let fake = FakeNode::start(seed);
    fake.mine(1500);
    fake.set_finalized(1480);
    fake.set_latency(Duration::from_millis(3));
    let home = tempfile::tempdir().unwrap();
    let (data, made) = (home.path().join("data"), home.path().join("made"));
    let chain = fake.bundles();
    let server = run(&fake, &data);
    eventually("the first blocks", Duration::from_secs(30), || indexed(&server));
    let mut heads = Vec::new();
    while indexed(&server) < Some(1490) {
        let before = indexed(&server);
        create(&data, &made).succeeded();
        let at = head(&made).map(|(number, _)| number);
        heads.push(at);
        // What is not on disk yet is not in it: at most what a kill would lose.
        assert!(at <= indexed(&server), "{at:?} before {before:?}");
        assert_whole(&made, home.path(), &chain);
        std::fs::remove_dir_all(&made).unwrap();
    }
    println!("checkpoints at {heads:?}");
    assert!(heads.iter().any(Option::is_some), "none had blocks");
    assert_eq!(names(&data), ["mainnet"]);
    server.stop();
}

#[test]
fn at_a_tip_with_reorgs() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let fake = FakeNode::start(seed);
    fake.mine(200);
    fake.set_finalized(180);
    let home = tempfile::tempdir().unwrap();
    let (data, made) = (home.path().join("data"), home.path().join("made"));
    let server = run(&fake, &data);
    eventually("the tip", Duration::from_secs(30), || {
        (indexed(&server)? == 200).then_some(())
    });
    let ended = AtomicBool::new(false);
    // Every chain that there was, by its last block.
    let chains: Mutex<HashMap<B256, Vec<Bundle>>> = Mutex::default();
    let note = || {
        let blocks = fake.bundles();
        let hash = blocks.last().unwrap().block.hash;
        chains.lock().unwrap().insert(hash, blocks);
    };
    note();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = Rng::with_seed(seed);
            while !ended.load(Ordering::Relaxed) {
                match rng.u8(..4) {
                    0 => {
                        let depth = rng.u64(1..=9).min(fake.head() - fake.finalized());
                        fake.reorg(depth, depth + rng.u64(..3));
                    }
                    1 => fake.set_finalized(fake.finalized().max(fake.head() - rng.u64(10..40))),
                    _ => fake.mine(1),
                }
                note();
                std::thread::sleep(Duration::from_millis(rng.u64(5..60)));
            }
        });
        let _ending = Ending(&ended);
        let mut ends = Vec::new();
        let began = Instant::now();
        for round in 0..1000 {
            create(&data, &made).succeeded();
            let (number, hash) = head(&made).unwrap();
            ends.push(number);
            if round % 4 == 0 {
                // Any chain with this block has the same blocks before it.
                let known = chains.lock().unwrap();
                let with = |blocks: &&Vec<Bundle>| {
                    blocks
                        .get(number as usize)
                        .is_some_and(|bundle| bundle.block.hash == hash)
                };
                let blocks = known.values().find(with).cloned();
                drop(known);
                assert_whole(&made, home.path(), &blocks.expect("a head that there never was"));
            } else {
                verify(&made).succeeded();
            }
            std::fs::remove_dir_all(&made).unwrap();
            if began.elapsed() > Duration::from_secs(8) && round > 8 {
                break;
            }
        }
        println!("checkpoints at {ends:?}");
        assert!(ends.first() < ends.last(), "the chain stood still");
    });
    // The last one goes on where the service is.
    let packed = home.path().join("packed");
    stream(&data, &packed);
    fake.mine(3);
    let head = fake.head();
    eventually("the tip", Duration::from_secs(30), || {
        (indexed(&server)? == head).then_some(())
    });
    server.stop();
    let back = home.path().join("back");
    restore(&packed, &back).succeeded();
    sync(&fake, &back).succeeded();
    assert_eq!(digest(&back), digest(&data));
}

#[test]
fn of_a_writer_that_was_killed() {
    let fake = FakeNode::start(11);
    fake.mine(150);
    fake.set_finalized(100);
    let home = tempfile::tempdir().unwrap();
    let (data, made) = (home.path().join("data"), home.path().join("made"));
    let server = run(&fake, &data);
    eventually("the tip", Duration::from_secs(30), || {
        (indexed(&server)? == 150).then_some(())
    });
    server.kill();
    create(&data, &made).succeeded();
    // What was logged is there, though nobody has opened the store since.
    assert_eq!(head(&made).unwrap().0, 150);
    assert_whole(&made, home.path(), &fake.bundles());
}
