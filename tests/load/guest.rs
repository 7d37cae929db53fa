//! How far a node falls behind while a store on its own machine is filled from it.
//!
//! The node's cores are shared by its answers and by its work on new blocks, first come, first served: a block waits
//! behind every request that is in flight.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::support::ending::Ending;
use super::support::fake_node::FakeNode;
use super::{eventually, indexed, number, run_with};

/// What an answer about a block takes of a core.
const SERVICE: Duration = Duration::from_millis(5);
/// What a new block takes of a core.
const IMPORT: Duration = Duration::from_millis(20);
const BETWEEN_BLOCKS: Duration = Duration::from_millis(150);

struct Seen {
    /// How long each new block waited for a core, sorted.
    waits: Vec<Duration>,
    /// Requests in flight at the end of the backfill, as the gate allowed.
    concurrency: u64,
    /// What share of the cores' time was made use of.
    used: f64,
}

fn backfill_beside(cores: usize, blocks: u64) -> Seen {
    let node = FakeNode::start(number("QUARRY_SEED").unwrap_or(7));
    node.mine(blocks);
    node.share_machine(cores, SERVICE);
    let directory = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let server = run_with(&node, directory.path(), "512MiB");
    let stop = AtomicBool::new(false);
    let mut waits = Vec::new();
    let (mut concurrency, mut took) = (0, Duration::ZERO);
    std::thread::scope(|scope| {
        let imports = scope.spawn(|| {
            let mut waits = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                waits.push(node.import(IMPORT).saturating_sub(IMPORT));
                std::thread::sleep(BETWEEN_BLOCKS);
            }
            waits
        });
        let ending = Ending(&stop);
        eventually("the end of the backfill", Duration::from_secs(120), || {
            let gauge = server.gauge("quarry_node_concurrency");
            concurrency = gauge.map_or(0, |figure| figure.parse::<f64>().unwrap() as u64);
            (indexed(&server) >= blocks).then_some(())
        });
        took = began.elapsed();
        drop(ending);
        waits = imports.join().unwrap();
    });
    server.stop();
    waits.sort();
    // A block, its receipts and its traces.
    let work = SERVICE * 3 * blocks as u32 + IMPORT * waits.len() as u32;
    Seen {
        waits,
        concurrency,
        used: work.as_secs_f64() / (took.as_secs_f64() * cores as f64),
    }
}

#[test]
#[ignore = "a measurement: make load"]
fn a_node_on_the_same_machine_keeps_up() {
    for (cores, blocks) in [(1, 400), (4, 1600)] {
        let blocks = number("QUARRY_GUEST_BLOCKS").map_or(blocks, |blocks| blocks * cores as u64);
        let seen = backfill_beside(cores, blocks);
        let at = |share: f64| seen.waits[((seen.waits.len() - 1) as f64 * share) as usize];
        println!(
            "{cores} cores: {} new blocks waited p50 {:?}, p90 {:?}, max {:?} for a core (answers take {SERVICE:?}); \
             {} requests in flight at last, {:.0} % of the cores used",
            seen.waits.len(),
            at(0.5),
            at(0.9),
            at(1.0),
            seen.concurrency,
            seen.used * 100.0
        );
        assert!(at(0.5) < SERVICE * 31 && seen.concurrency > 0, "{:?}", at(0.5));
    }
}
