//! Kills of a service in backfill, at the tip and in reorgs.

use crate::process::{Quarry, inspected, kills, pause, runtime, summary, undisturbed};
use crate::support::fake_node::{FakeNode, Methods};
use crate::support::index;
use fastrand::Rng;
use serde_json::Value;
use std::time::{Duration, Instant};

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
    for kill in 0..kills(8) {
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
    for _ in 0..kills(8) {
        let quarry = Quarry::start(&fake, directory.path());
        let until = Instant::now() + Duration::from_millis(rng.u64(200..2500));
        while Instant::now() < until {
            match rng.u8(..4) {
                0 => {
                    let depth = rng.u64(1..=64).min(fake.head() - fake.finalized());
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
    summary("backfill and tip", 1 + reached.len() as u64);
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

/// Blocks that are final as soon as they come, and were served, are there after a kill, whether the node is or not.
#[test]
fn kills_take_nothing_off_that_is_final_at_once() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    fake.set_methods(Methods {
        tags: false,
        ..Methods::default()
    });
    fake.mine(200);
    let directory = tempfile::tempdir().unwrap();
    let flags = ["--finality-depth", "0"];
    let is_final = |status: &Value| status["finalized"] == fake.head();
    let kills = kills(4);
    // A backfill is on the disk a moment after it is served.
    let mut quarry = Quarry::start_with(&fake, directory.path(), &flags);
    quarry.until("a backfill", is_final);
    quarry.stop();
    for _ in 0..kills {
        let mut quarry = Quarry::start_with(&fake, directory.path(), &flags);
        for _ in 0..rng.u8(1..6) {
            fake.mine(rng.u64(1..4));
            quarry.until("the head to be final", is_final);
        }
        quarry.kill();
        fake.stall(true);
        let quarry = Quarry::start_with(&fake, directory.path(), &flags);
        assert_eq!(quarry.indexed(), Some(fake.head()), "seed {seed}");
        fake.stall(false);
        quarry.kill();
    }
    summary("final at once", 2 * kills);
    let fresh = runtime().block_on(index::fresh_digest(&fake.bundles(), 0));
    assert_eq!(inspected(directory.path()), fresh.to_string(), "seed {seed}");
}
