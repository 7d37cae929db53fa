//! Replicas of a store that a real `quarry run` writes: every answer is of one moment and is the writer's, through
//! backfill, reorgs, finality, compactions, kills and restarts of the writer.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
mod support;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use binary::{Reply, Server, demo, eventually, import_demo, quarry};
use fastrand::Rng;
use quarry::store::{Look, Replica};
use serde_json::Value;
use support::balances::told;
use support::chain::another;
use support::ending::Ending;
use support::fake_node::FakeNode;
use support::index;

const PATIENCE: Duration = Duration::from_secs(40);

fn writer(fake: &FakeNode, data: &Path) -> Server {
    let url = fake.url();
    let mut arguments = vec!["run", "--mainnet-rpc", &url, "--data-dir", data.to_str().unwrap()];
    // So little that there are many flushes and compactions.
    arguments.extend(["--backfill-memory", "4MiB", "--cache-size", "16MiB"]);
    Server::start(arguments)
}

fn replica(data: &Path) -> Server {
    let data = data.to_str().unwrap();
    Server::start([
        "serve",
        "--secondary",
        "--cache-size",
        "16MiB",
        "--data-dir",
        data,
    ])
}

fn report(server: &Server) -> Value {
    server.json("/status")["chains"]["mainnet"].take()
}

/// Waits until a server shows the node's newest block.
#[track_caller]
fn until_at(server: &Server, fake: &FakeNode) {
    let head = fake.head_hash().to_string();
    eventually("the node's head", PATIENCE, || {
        (report(server)["indexedHash"] == head.as_str()).then_some(())
    });
}

/// Which moment an answer says that it is of.
fn moment(reply: &Reply) -> Option<(u64, String, Option<String>)> {
    Some((
        reply.header("x-indexed-block-number")?.parse().ok()?,
        reply.header("x-indexed-block-hash")?.to_owned(),
        reply.header("x-finalized-block-number").map(str::to_owned),
    ))
}

/// Requests whose answers change with nearly every block, over many tables and arrays.
fn asked(fake: &FakeNode) -> Vec<String> {
    let chain = fake.chain();
    let mut asked: Vec<String> = ["latest", "0x5"]
        .iter()
        .map(|tag| format!("/api/proxy?action=eth_getBlockByNumber&tag={tag}&boolean=true"))
        .collect();
    asked.push("/api/proxy?action=eth_blockNumber".to_owned());
    asked.push(
        "/api/logs/get-logs?topic0=0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef&sort=desc&offset=300"
            .to_owned(),
    );
    for account in 0..4 {
        let account = chain.spec_account(account);
        asked.push(format!("/api/account/{account}/tx-list?sort=desc&offset=200"));
        asked.push(format!("/api/account/{account}/balance"));
        asked.push(format!("/api/account/{account}/token-tx?sort=desc&offset=100"));
    }
    asked
}

trait Accounts {
    fn spec_account(&self, index: u64) -> String;
}

impl Accounts for support::chain::Chain {
    fn spec_account(&self, index: u64) -> String {
        let from = self
            .bundles()
            .iter()
            .rev()
            .flat_map(|bundle| &bundle.block.transactions);
        let mut senders: Vec<String> = from.map(|transaction| transaction.from.to_string()).collect();
        senders.dedup();
        senders.get(index as usize).cloned().unwrap_or_default()
    }
}

/// The answers of a fixed block, as anybody gives them: by request and moment.
type Answers = HashMap<(String, u64, String), Vec<u8>>;

/// Notes an answer; one that is another than an earlier one of the same moment is a mixture of two.
#[track_caller]
fn note(answers: &Mutex<Answers>, who: &str, target: &str, reply: &Reply, differing: &AtomicU64) {
    let Some((number, hash, _)) = moment(reply) else {
        return;
    };
    if reply.status != 200 {
        return;
    }
    let mut answers = answers.lock().unwrap();
    let key = (target.to_owned(), number, hash);
    if let Some(before) = answers.get(&key) {
        if *before != reply.body {
            differing.fetch_add(1, Ordering::Relaxed);
            println!(
                "{who}: GET {target} at block {number}:\n  {}\n  {}",
                String::from_utf8_lossy(before)
                    .chars()
                    .take(600)
                    .collect::<String>(),
                reply.text().chars().take(600).collect::<String>()
            );
        }
    } else {
        answers.insert(key, reply.body.clone());
    }
}

/// Lets the node go on for a while, with reorgs and finality.
fn step(fake: &FakeNode, rng: &mut Rng) {
    match rng.u8(..5) {
        0 => {
            let depth = rng.u64(1..=9).min(fake.head() - fake.finalized());
            fake.reorg(depth, depth + rng.u64(..3));
        }
        1 => fake.set_finalized(fake.finalized().max(fake.head() - rng.u64(10..40))),
        _ => fake.mine(1),
    }
}

#[test]
fn every_answer_is_of_one_moment_and_the_writers() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    fake.mine(150);
    fake.set_finalized(120);
    let home = tempfile::tempdir().unwrap();
    let mut service = Some(writer(&fake, home.path()));
    until_at(service.as_ref().unwrap(), &fake);
    let replicas = [replica(home.path()), replica(home.path())];
    let asked = asked(&fake);
    let (answers, differing, of_replicas) =
        (Mutex::new(Answers::new()), AtomicU64::new(0), AtomicU64::new(0));
    let ended = AtomicBool::new(false);
    // Every block that there was, and every one that a replica named: it may name one before this test has noted it.
    let mut blocks = HashMap::<String, u64>::new();
    let mut known = |bundles: Vec<_>| {
        let named = |bundle: &quarry::model::Bundle| (bundle.block.hash.to_string(), bundle.block.number());
        blocks.extend(bundles.iter().map(named));
    };
    let named = Mutex::new(HashMap::<String, u64>::new());
    known(fake.bundles());
    std::thread::scope(|scope| {
        for address in replicas.each_ref().map(|replica| replica.address.clone()) {
            let (answers, differing, of_replicas, ended, asked, named) =
                (&answers, &differing, &of_replicas, &ended, &asked, &named);
            scope.spawn(move || {
                let kept = std::cell::RefCell::default();
                let mut rng = Rng::new();
                while !ended.load(Ordering::Relaxed) {
                    let target = &asked[rng.usize(..asked.len())];
                    let text = format!("GET {target} HTTP/1.1\r\nhost: test\r\n\r\n");
                    let reply = binary::exchange(&address, &kept, text.as_bytes()).unwrap();
                    assert!(
                        reply.status < 500 || reply.status == 503,
                        "GET {target}: {}",
                        reply.text()
                    );
                    if let Some((number, hash, _)) = moment(&reply) {
                        let before = named.lock().unwrap().insert(hash, number);
                        assert!(before.is_none_or(|before| before == number), "GET {target}");
                        of_replicas.fetch_add(1, Ordering::Relaxed);
                    }
                    note(answers, "replica", target, &reply, differing);
                }
            });
        }
        let _ending = Ending(&ended);
        let mut slowest = Duration::ZERO;
        for round in 0..6 {
            let until = Instant::now() + Duration::from_secs(2);
            while Instant::now() < until {
                step(&fake, &mut rng);
                known(fake.newest(60));
                for _ in 0..4 {
                    let target = &asked[rng.usize(..asked.len())];
                    let reply = service.as_ref().unwrap().get(target);
                    note(&answers, "writer", target, &reply, &differing);
                }
                std::thread::sleep(Duration::from_millis(rng.u64(5..50)));
            }
            fake.mine(1);
            known(fake.newest(60));
            until_at(service.as_ref().unwrap(), &fake);
            let began = Instant::now();
            for replica in &replicas {
                until_at(replica, &fake);
            }
            slowest = slowest.max(began.elapsed());
            for target in &asked {
                // The head is there; that more is final now may still be on its way.
                let (reply, theirs) = eventually("the writer's moment", PATIENCE, || {
                    let reply = service.as_ref().unwrap().get(target);
                    let theirs = replicas[0].get(target);
                    (moment(&reply) == moment(&theirs)).then_some((reply, theirs))
                });
                note(&answers, "writer", target, &reply, &differing);
                assert_eq!(
                    (reply.status, reply.text()),
                    (theirs.status, theirs.text()),
                    "GET {target}"
                );
            }
            // The writer is killed, or stopped, and comes back; the replicas stay.
            let old = service.take().unwrap();
            if round % 2 == 0 {
                old.kill();
            } else {
                old.stop();
            }
            for replica in &replicas {
                assert_eq!(
                    report(replica)["indexedHash"],
                    fake.head_hash().to_string().as_str()
                );
            }
            service = Some(writer(&fake, home.path()));
        }
        println!("slowest to catch up {slowest:?}");
    });
    for (hash, number) in named.into_inner().unwrap() {
        assert_eq!(
            blocks.get(&hash),
            Some(&number),
            "a replica named block {number} {hash}"
        );
    }
    let moments = answers.lock().unwrap().len();
    println!(
        "{} answers of replicas, {moments} different",
        of_replicas.into_inner()
    );
    assert_eq!(differing.into_inner(), 0, "answers that are mixtures");
    for replica in replicas {
        assert!(
            !replica.log().contains("WARN") || !replica.log().contains("Corruption"),
            "{}",
            replica.log()
        );
        replica.stop();
    }
}

#[test]
fn views_that_are_held_stay_as_they_are_and_hold_nobody_up_but_at_last() {
    let fake = FakeNode::start(17);
    fake.mine(40);
    let home = tempfile::tempdir().unwrap();
    let genesis = fake.bundles()[0].block.hash;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = index::open(home.path(), genesis, 0).unwrap();
    let bring = |from: usize| {
        let chain = told(&fake.bundles(), 0);
        runtime.block_on(index::add(&store, &chain[from..], genesis, 10));
    };
    bring(0);
    let (mut replica, first) = Replica::open(&index::options(home.path())).unwrap();
    let mut held = vec![(first.view(), store.view().digest().unwrap())];
    drop(first);
    let mut refused = false;
    for _ in 0..12 {
        let next = fake.bundles().len();
        fake.mine(1);
        bring(next);
        match replica.look().unwrap() {
            Look::Newer(shown) => {
                assert!(!refused);
                held.push((shown.view(), store.view().digest().unwrap()));
            }
            Look::Held => refused = true,
            other => panic!("{other:?}"),
        }
        for (view, digest) in &held {
            assert_eq!(
                view.digest().unwrap(),
                *digest,
                "a view that was held has changed"
            );
        }
    }
    assert!(refused && held.len() == 6, "{} views", held.len());
    assert_eq!(replica.instances(), 6);
    // Blocks are taken off and others come; nobody reads what was held any more.
    drop(held);
    let depth = 5;
    let mut writer = store.writer().unwrap();
    writer.unwind(fake.head() + 1 - depth).unwrap();
    drop(writer);
    fake.reorg(depth, depth + 2);
    bring(fake.bundles().len() - (depth as usize + 2));
    let Look::Newer(shown) = replica.look().unwrap() else {
        panic!("not shown")
    };
    assert_eq!(shown.view().digest().unwrap(), store.view().digest().unwrap());
    assert_eq!(replica.instances(), 2, "instances that nobody needs are kept");
    assert!(matches!(replica.look().unwrap(), Look::Same));
}

/// A node that was away for long: what it has by then is final, and is written without the log over a tip that was logged.
#[test]
fn blocks_that_are_logged_and_blocks_that_are_not_are_followed() {
    let seed =
        std::env::var("QUARRY_SEED").map_or_else(|_| fastrand::u64(..1 << 20), |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    fake.mine(20);
    let home = tempfile::tempdir().unwrap();
    let genesis = fake.bundles()[0].block.hash;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = index::open(home.path(), genesis, 0).unwrap();
    let bring = |from: u64, finalized: u64| {
        let chain = told(&fake.bundles(), 0);
        runtime.block_on(index::add(&store, &chain[from as usize..], genesis, finalized));
    };
    bring(0, 15);
    // Every state that there was: the head as it is looked up, and all rows as they are walked.
    let state = |view: &quarry::store::View| (view.head(), view.digest().unwrap());
    let mut states = vec![state(&store.view())];
    let (mut replica, first) = Replica::open(&index::options(home.path())).unwrap();
    assert_eq!(state(&first.view()), states[0]);
    drop(first);
    let (mut newer, mut held) = (0, None);
    // As many steps as show something, whatever is drawn: a look that finds nothing new is no test of what it shows.
    for step in 0..600 {
        if step >= 60 && newer > 5 {
            break;
        }
        let head = fake.head();
        match rng.u8(..8) {
            0..3 => {
                fake.mine(rng.u64(1..3));
                bring(head + 1, 0);
            }
            3 => {
                store.writer().unwrap().finalize(head).unwrap();
                states.push(state(&store.view()));
                fake.mine(rng.u64(1..4));
                bring(head + 1, fake.head());
            }
            4 => store.writer().unwrap().settle().unwrap(),
            5 => {
                let depth = rng.u64(1..4);
                let first_unfinal = store.view().finalized().map_or(0, |number| number + 1);
                if head + 1 - depth >= first_unfinal {
                    store.writer().unwrap().unwind(head + 1 - depth).unwrap();
                    states.push(state(&store.view()));
                    fake.reorg(depth, depth + 1);
                    bring(head + 1 - depth, 0);
                }
            }
            _ => match replica.look().unwrap() {
                Look::Newer(shown) => {
                    newer += 1;
                    let found = state(&shown.view());
                    assert!(
                        states.contains(&found),
                        "no state there was: {:?} in step {step}",
                        found.0
                    );
                    held = rng.bool().then(|| (shown.view(), found));
                }
                Look::Same => {}
                other => panic!("{other:?}"),
            },
        }
        states.push(state(&store.view()));
        if let Some((view, found)) = &held {
            assert_eq!(state(view), *found, "what is held has changed");
        }
    }
    assert!(newer > 5, "{newer} states were shown");
    store.writer().unwrap().settle().unwrap();
    drop(store);
    if let Look::Newer(shown) = replica.look().unwrap() {
        assert_eq!(Some(&state(&shown.view())), states.last());
    }
}

#[test]
fn a_backfill_is_followed() {
    let fake = FakeNode::start(31);
    fake.mine(1500);
    fake.set_finalized(1480);
    fake.set_latency(Duration::from_millis(3));
    let home = tempfile::tempdir().unwrap();
    let service = writer(&fake, home.path());
    eventually("some blocks", PATIENCE, || report(&service)["indexed"].as_u64());
    let replica = replica(home.path());
    let mut seen = Vec::new();
    loop {
        let indexed = report(&replica)["indexed"].as_u64();
        if seen.last() != Some(&indexed) {
            seen.push(indexed);
        }
        if let Some(indexed) = indexed {
            // What it says it has, it has.
            let block = replica.proxy(&format!(
                "action=eth_getBlockByNumber&tag=0x{indexed:x}&boolean=true"
            ));
            let hash = fake.bundles()[indexed as usize].block.hash.to_string();
            assert_eq!(block["hash"], hash.as_str());
        }
        if indexed == Some(1500) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("seen {seen:?}");
    assert!(seen.len() > 3, "it did not follow: {seen:?}");
    let told = report(&replica);
    assert_eq!(told["replica"]["behind"], 0, "{told}");
    assert_eq!(told["nodeHead"], 1500);
    service.stop();
    replica.stop();
}

#[test]
fn it_says_how_far_behind_it_is_and_writes_nothing_there() {
    let fake = FakeNode::start(8);
    fake.mine(60);
    fake.set_finalized(40);
    fake.set_safe(50);
    let home = tempfile::tempdir().unwrap();
    // Without a store there is nothing to follow.
    let text = home.path().to_str().unwrap();
    quarry([
        "serve",
        "--secondary",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        text,
    ])
    .refused(&["there is no store in"]);
    let service = writer(&fake, home.path());
    until_at(&service, &fake);
    assert_eq!(report(&service)["replica"], Value::Null);
    let replica = replica(home.path());
    until_at(&replica, &fake);
    // The writer gives its signs of life on a beat of its own: the last one may be from a block before.
    let told = eventually("the writer's word on its head", PATIENCE, || {
        let told = report(&replica);
        (told["replica"]["writerIndexed"] == 60).then_some(told)
    });
    assert_eq!(
        (&told["lag"], &told["replica"]["behind"]),
        (&0.into(), &0.into()),
        "{told}"
    );
    assert!(
        told["replica"]["seenSecondsAgo"].as_f64().unwrap() < 5.0,
        "{told}"
    );
    assert!(
        told["replica"]["writerSecondsAgo"].as_f64().unwrap() < 5.0,
        "{told}"
    );
    assert_eq!(told["message"], "replica: following the writer");
    assert_eq!((&told["nodeUp"], &told["tokens"]), (&true.into(), &Value::Null));
    assert_eq!(replica.get("/ready").status, 200);
    let figures = |server: &Server| {
        [
            "quarry_node_up",
            "quarry_replica_seen_seconds",
            "quarry_replica_writer_seconds",
        ]
        .map(|name| server.gauge(name).map(|text| text.parse::<f64>().unwrap()))
    };
    let [up, seen, heard] = figures(&replica);
    assert!(
        up == Some(1.0) && seen < Some(5.0) && heard < Some(5.0) && heard.is_some(),
        "{seen:?} {heard:?}"
    );
    assert_eq!(figures(&service), [Some(1.0), None, None]);
    // A node that does not answer any more is its writer's word, and none on the writer.
    fake.stall(true);
    let told = eventually("a word on the node", PATIENCE, || {
        let told = report(&replica);
        (told["nodeUp"] == false).then_some(told)
    });
    assert_eq!(told["message"], "replica: following the writer");
    assert_eq!(figures(&replica)[0], Some(0.0));
    fake.stall(false);
    eventually("a word on the node", PATIENCE, || {
        (report(&replica)["nodeUp"] == true).then_some(())
    });
    // What the node calls safe only the writer hears.
    let safe = |server: &Server| {
        let reply = server.get("/api/proxy?action=eth_getBlockByNumber&tag=safe&boolean=false");
        serde_json::from_str::<Value>(&reply.text()).unwrap()["result"]["number"].clone()
    };
    for server in [&service, &replica] {
        eventually("the safe block", PATIENCE, || {
            (safe(server) == "0x32").then_some(())
        });
    }
    // A writer that is gone: what it wrote is served, and that nobody writes is said.
    service.stop();
    let status = std::process::Command::new("chmod")
        .args(["-R", "a-w"])
        .arg(home.path())
        .status();
    assert!(status.unwrap().success());
    let listed = || {
        let mut names = Vec::new();
        for part in ["mainnet", "mainnet/rocksdb", "mainnet/flat", "mainnet/observed"] {
            for entry in std::fs::read_dir(home.path().join(part)).unwrap() {
                let entry = entry.unwrap();
                let about = entry.metadata().unwrap();
                names.push((entry.path(), about.len(), about.modified().unwrap()));
            }
        }
        names.sort();
        names
    };
    let before = listed();
    let said = eventually("a word that nobody writes", PATIENCE, || {
        let told = report(&replica);
        (told["nodeUp"] == false).then_some(told)
    });
    assert_eq!(said["message"], "replica: nobody writes the store at the moment");
    eventually("a word that nothing is followed", PATIENCE, || {
        (replica.gauge("quarry_sync_following")? == "0.0").then_some(())
    });
    // Nobody asks the node.
    let [up, _, heard] = figures(&replica);
    assert!(up.is_none() && heard > Some(5.0), "{heard:?}");
    assert_eq!(replica.get("/ready").status, 200);
    let second = self::replica(home.path());
    until_at(&second, &fake);
    assert_eq!(safe(&second), "0x32");
    second.stop();
    let alone = Server::start(["serve", "--data-dir", text]);
    assert_eq!(safe(&alone), "0x32");
    alone.stop();
    assert_eq!(listed(), before, "a replica wrote where the store lies");
    replica.stop();
    let _ = std::process::Command::new("chmod")
        .args(["-R", "u+w"])
        .arg(home.path())
        .status();
}

/// However near the head it is: nobody brings it anything any more. A node that was started anew with another block 0, while the writer runs and
/// before it does, is one that left finality.
#[test]
fn a_writers_sync_that_stopped_is_told() {
    let fake = FakeNode::start(9);
    fake.mine(60);
    fake.set_finalized(40);
    let home = tempfile::tempdir().unwrap();
    let (url, data) = (fake.url(), home.path().to_str().unwrap());
    let start = || {
        Server::start([
            "run",
            "--mainnet-rpc",
            &url,
            "--data-dir",
            data,
            "--contradiction-wait",
            "1",
        ])
    };
    let figures = |server: &Server| {
        [
            "quarry_sync_stopped",
            "quarry_sync_following",
            "quarry_sync_finality_broken",
        ]
        .map(|name| server.gauge(name).unwrap())
    };
    let service = start();
    until_at(&service, &fake);
    let replica = replica(home.path());
    until_at(&replica, &fake);
    let shows = |message: &str, stopped: bool, following: bool| {
        eventually(message, PATIENCE, || {
            let told = report(&replica);
            let is_so = told["message"] == message && told["stopped"] == stopped;
            (is_so && told["following"] == following).then_some(())
        });
    };
    let goes_on = || {
        shows("replica: following the writer", false, true);
        assert_eq!(figures(&replica)[..2], ["0.0", "1.0"]);
        eventually("it is ready", PATIENCE, || {
            (replica.get("/ready").status == 200).then_some(())
        });
    };
    let stopped = |service: &Server| {
        eventually("the end", PATIENCE, || {
            (figures(service) == ["1.0", "0.0", "1.0"]).then_some(())
        });
        assert_eq!(service.get("/ready").status, 503);
        let word = "replica: the writer's sync stopped, its /status says why";
        shows(word, true, false);
        assert_eq!(figures(&replica)[..2], ["1.0", "0.0"]);
        assert_eq!(replica.get("/ready").status, 503);
    };
    goes_on();
    let own = fake.swap_chain(another(10, None, 70));
    stopped(&service);
    service.stop();
    let service = start();
    stopped(&service);
    service.stop();
    // A writer that is gone says nothing, whatever it said last.
    shows("replica: nobody writes the store at the moment", false, false);
    fake.swap_chain(own);
    let service = start();
    until_at(&service, &fake);
    goes_on();
    replica.stop();
    service.stop();
}

#[test]
fn imports_and_another_store_in_the_place_are_followed() {
    let home = tempfile::tempdir().unwrap();
    let (data, made) = (home.path().join("data"), home.path().join("made"));
    let text = data.to_str().unwrap();
    import_demo(text);
    let replica = replica(&data);
    assert_eq!(replica.get("/api/stats/token-price").status, 404);
    quarry(["import", "prices", &demo("prices.csv"), "--data-dir", text]).succeeded();
    let price = eventually("the price", PATIENCE, || {
        let reply = replica.get("/api/stats/token-price");
        (reply.status == 200).then(|| reply.text())
    });
    // The store is put away and comes back from a checkpoint, under the replica.
    quarry(["checkpoint", "create", made.to_str().unwrap(), "--data-dir", text]).succeeded();
    std::fs::remove_dir_all(data.join("mainnet")).unwrap();
    assert_eq!(
        replica.get("/api/stats/token-price").text(),
        price,
        "what is open is served on"
    );
    eventually("a word on it", PATIENCE, || {
        let told = report(&replica);
        told["message"].as_str()?.contains("not followed").then_some(())
    });
    // Before /ready is 503, after 10 seconds.
    eventually("a word on it in the log", Duration::from_secs(5), || {
        replica.log().contains("not followed at the moment").then_some(())
    });
    quarry([
        "checkpoint",
        "restore",
        made.to_str().unwrap(),
        "--data-dir",
        text,
    ])
    .succeeded();
    eventually("the restored store", PATIENCE, || {
        replica
            .log()
            .contains("another store lies there now")
            .then_some(())
    });
    assert_eq!(replica.get("/api/stats/token-price").text(), price);
    assert_eq!(report(&replica)["indexed"], 361);
    assert_eq!(replica.get("/ready").status, 200);
    replica.stop();
}

/// A container may have no directory that can be written to: a replica needs none, for its store and for imports.
#[test]
fn a_replica_needs_no_place_for_temporary_files() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data").display().to_string();
    import_demo(&data);
    let file = home.path().join("file");
    std::fs::write(&file, "no directory").unwrap();
    let mut command = binary::command(["serve", "--secondary", "--data-dir", &data]);
    command.env("TMPDIR", file.join("below"));
    let replica = Server::of(command).unwrap_or_else(|log| panic!("{log}"));
    assert_eq!(report(&replica)["indexed"], 361);
    assert_eq!(replica.get("/api/stats/token-price").status, 404);
    quarry(["import", "prices", &demo("prices.csv"), "--data-dir", &data]).succeeded();
    eventually("the price", PATIENCE, || {
        (replica.get("/api/stats/token-price").status == 200).then_some(())
    });
    let log = replica.stop_logged();
    assert!(!log.contains("followed"), "{log}");
}
