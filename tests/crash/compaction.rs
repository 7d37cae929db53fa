//! Kills in the middle of compactions: a process that does nothing but rewrite all tables.

use crate::process::{Quarry, inspected, kills, pause, summary, undisturbed};
use crate::support::fake_node::FakeNode;
use crate::support::index;
use fastrand::Rng;
use quarry::store::Store;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Names the store to the process that compacts it.
const STORE: &str = "QUARRY_COMPACTED_STORE";

/// The process: this test again, told by the environment. It compacts until it is killed.
#[test]
fn compacts_until_killed() {
    let Some(directory) = std::env::var_os(STORE).map(PathBuf::from) else {
        return;
    };
    let store = Store::open(&index::options(&directory)).unwrap();
    loop {
        println!("\ncompacting");
        store.compact().unwrap();
    }
}

#[test]
fn kills_in_compactions_lose_nothing() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    fake.mine(1500);
    fake.set_finalized(1480);
    let directory = tempfile::tempdir().unwrap();
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until_synced(&fake);
    quarry.kill();
    let (mut killed, mut rounds) = (0, 0);
    let expected = undisturbed(&fake);
    while killed < kills(4) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["compaction::compacts_until_killed", "--exact", "--nocapture"])
            .env(STORE, directory.path().join("mainnet"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        assert!(
            lines.any(|line| line == "compacting"),
            "seed {seed}: the process does not compact"
        );
        pause(&mut rng, 0..900);
        child.kill().unwrap();
        child.wait().unwrap();
        rounds += lines.filter(|line| line == "compacting").count();
        killed += 1;
        assert_eq!(inspected(directory.path()), expected, "seed {seed}");
        // A service that opens it compacts on, and is killed too.
        if killed < kills(4) {
            let quarry = Quarry::start(&fake, directory.path());
            std::thread::sleep(Duration::from_millis(rng.u64(..400)));
            quarry.kill();
            killed += 1;
        }
    }
    println!("{rounds} compactions came to their end");
    summary("compaction", killed);
    let mut quarry = Quarry::start(&fake, directory.path());
    fake.mine(1);
    quarry.until_synced(&fake);
    quarry.stop();
    assert_eq!(inspected(directory.path()), undisturbed(&fake), "seed {seed}");
}
