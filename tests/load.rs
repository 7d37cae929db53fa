//! Clients of all sorts beside a real `quarry run` that fills its store from a node, and then follows a tip with
//! reorgs: no request fails, and memory comes to rest.
//!
//! A few seconds of it in every run of the tests; `make soak MINUTES=30` for as long as one likes. `make load` measures
//! what expensive requests do to cheap ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
#[path = "load/clients.rs"]
mod clients;
#[path = "load/guest.rs"]
mod guest;
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binary::{Server, eventually};
use clients::{Class, Crowd, Known};
use quarry::model::{Address, U256};
use support::chain::{Chain, ChainSpec};
use support::fake_node::FakeNode;

/// Resident memory may grow by this after the warm-up, KiB: page tables and mapped arrays of a chain that grows included.
const GROWTH_MAX_KIB: u64 = 160 << 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn seed() -> u64 {
    let seed = number("QUARRY_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("QUARRY_SEED={seed}");
    seed
}

/// A busy chain on a fake node, so many blocks high.
fn node(seed: u64, blocks: u64) -> FakeNode {
    let node = FakeNode::start_with(ChainSpec {
        transactions_max: 30,
        ..ChainSpec::new(seed)
    });
    node.mine(blocks);
    node.set_finalized(blocks.saturating_sub(20));
    let chain = node.chain();
    node.set_contracts(move |contract, input, block| told(&chain, contract, input, block));
    node
}

/// What a contract tells of its balances: true up to the blocks that are mined first, and later what held then, so that
/// some tokens are found not to be exact.
fn told(chain: &Chain, contract: Address, input: &[u8], block: u64) -> Result<Vec<u8>, (i64, String)> {
    let refused = || (3, "execution reverted".to_owned());
    let world = chain.world(block.min(chain.head())).ok_or_else(refused)?;
    let of_token = || world.tokens.iter().filter(|((token, _), _)| *token == contract);
    let ids_of = |holder: Option<Address>| {
        let ids = world.owners.iter().filter(|((token, _), _)| *token == contract);
        U256::from(
            ids.filter(|(_, owner)| holder.is_none_or(|holder| holder == **owner))
                .count(),
        )
    };
    let answer = match input {
        [0x70, 0xa0, 0x82, 0x31, .., _] if input.len() == 36 => {
            let holder = Address::from_slice(&input[16..]);
            let balance = world.tokens.get(&(contract, holder)).copied().unwrap_or_default();
            balance + ids_of(Some(holder))
        }
        [0x18, 0x16, 0x0d, 0xdd] => of_token().map(|(_, balance)| *balance).sum::<U256>() + ids_of(None),
        _ => return Err(refused()),
    };
    Ok(answer.to_be_bytes::<32>().to_vec())
}

fn run(node: &FakeNode, directory: &std::path::Path) -> Server {
    run_with(node, directory, "32MiB")
}

/// The same, with so much memory for a backfill.
fn run_with(node: &FakeNode, directory: &std::path::Path, memory: &str) -> Server {
    let url = node.url();
    let directory = directory.to_str().unwrap();
    let log = "warn,quarry=info,quarry::http::request=off";
    Server::start([
        "run",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        directory,
        "--cache-size",
        "32MiB",
        "--backfill-memory",
        memory,
        "--log",
        log,
    ])
}

fn indexed(server: &Server) -> u64 {
    server.json("/status")["chains"]["mainnet"]["indexed"]
        .as_u64()
        .unwrap_or(0)
}

fn until_indexed(server: &Server, block: u64) {
    eventually("the node's head", Duration::from_secs(120), || {
        (indexed(server) >= block).then_some(())
    });
}

/// Mines, and now and then replaces the newest blocks, until told to stop.
fn live(node: &FakeNode, seed: u64, pause: Duration, stop: &AtomicBool) -> u64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut reorgs = 0;
    for step in 1u64.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if step % 5 == 0 {
            let depth = rng.u64(1..=6);
            node.reorg(depth, depth + 1);
            reorgs += 1;
        } else {
            node.mine(1);
        }
        node.set_finalized(node.head().saturating_sub(20));
        std::thread::sleep(pause);
    }
    reorgs
}

#[test]
fn clients_are_served_while_a_chain_is_filled_and_followed() {
    let seed = seed();
    let minutes = number("QUARRY_SOAK_MINUTES");
    let directory = tempfile::tempdir().unwrap();
    let blocks = if minutes.is_some() { 1_500 } else { 800 };
    let node = Arc::new(node(seed, blocks));
    let server = run(&node, directory.path());
    let known = Arc::new(Known::of(&node));
    until_indexed(&server, 1);
    // While it fills.
    let filling = Crowd::start(&server.address, &known, seed, 4, &Class::ALL);
    until_indexed(&server, blocks);
    println!("beside a backfill:\n{}", filling.stop().table());
    // While it follows.
    let stop = Arc::new(AtomicBool::new(false));
    let living = {
        let (node, stop) = (Arc::clone(&node), Arc::clone(&stop));
        // The fake node keeps a copy of the world after every block: 3 MB each in the end.
        let pause = Duration::from_millis(if minutes.is_some() { 600 } else { 150 });
        std::thread::spawn(move || live(&node, seed, pause, &stop))
    };
    let crowd = Crowd::start(&server.address, &known, seed ^ 1, 6, &Class::ALL);
    let began = Instant::now();
    match minutes {
        None => std::thread::sleep(Duration::from_secs(6)),
        Some(minutes) => {
            // A third of the time, at most five minutes, to warm up.
            let warm = (minutes / 3).clamp(1, 5);
            let mut base = 0;
            for minute in 1..=minutes {
                std::thread::sleep(Duration::from_secs(60 * minute).saturating_sub(began.elapsed()));
                let now = server.resident_kib();
                println!(
                    "minute {minute}: resident {now} KiB, {} requests, block {}",
                    crowd.count(),
                    indexed(&server)
                );
                if minute <= warm {
                    base = now;
                }
                let grown = now.saturating_sub(base);
                assert!(grown < GROWTH_MAX_KIB, "grew by {grown} KiB since minute {warm}");
            }
        }
    }
    let figures = crowd.stop();
    stop.store(true, Ordering::Relaxed);
    let reorgs = living.join().unwrap();
    println!(
        "beside a tip with {reorgs} reorgs, {:?}:\n{}",
        began.elapsed(),
        figures.table()
    );
    assert!(reorgs > 0);
    let head = node.head();
    until_indexed(&server, head);
    assert_eq!(
        server.json("/status")["chains"]["mainnet"]["indexedHash"],
        node.head_hash().to_string()
    );
    assert!(!server.log().contains("panicked"), "{}", server.log());
    server.stop();
}

/// p99 of point look-ups of `count` clients for `time`, alone or beside what else runs.
fn points(server: &Server, known: &Arc<Known>, seed: u64, time: Duration) -> clients::Figures {
    let crowd = Crowd::start(&server.address, known, seed, 2, &[Class::Point]);
    std::thread::sleep(time);
    crowd.stop()
}

#[test]
#[ignore = "a measurement: make load"]
fn points_beside_expensive_requests() {
    let seed = seed();
    let directory = tempfile::tempdir().unwrap();
    let node = Arc::new(node(seed, 3_000));
    let server = run(&node, directory.path());
    let known = Arc::new(Known::of(&node));
    until_indexed(&server, 3_000);
    let time = Duration::from_secs(8);
    points(&server, &known, seed, Duration::from_secs(2));
    let alone = points(&server, &known, seed, time);
    println!("2 clients with point look-ups alone:\n{}", alone.table());
    for (clients, name, classes) in [
        // So few that frames are made where they are sent (decision 0041), and too many.
        (4, "pages of 10,000", &[Class::Long][..]),
        (64, "pages of 10,000", &[Class::Long]),
        (64, "dense expressions without a hit", &[Class::Dense]),
        (64, "both", &[Class::Long, Class::Dense]),
    ] {
        let crowd = Crowd::start(&server.address, &known, seed ^ 2, clients, classes);
        let beside = points(&server, &known, seed ^ 3, time);
        let expensive = crowd.stop();
        println!(
            "the same beside {clients} clients with {name}:\n{}{}",
            beside.table(),
            expensive.table()
        );
        let ratio = |at: f64| beside.quantile(Class::Point, at) / alone.quantile(Class::Point, at);
        println!("ratio: p50 {:.1}, p99 {:.1}\n", ratio(0.5), ratio(0.99));
        // 64 clients on a queue of their own must not become a queue of 64 before a look-up. The tails are shown and
        // not judged: the clients take the cores that the service needs.
        assert!(
            beside.quantile(Class::Point, 0.5) < expensive.quantile(classes[0], 0.5),
            "a look-up waits as long as an expensive request"
        );
    }
    server.stop();
}
