//! Blocks that are not stored while the node cannot tell how far it is: "not indexed yet" until it is certain that there are
//! none, and never a list that is short.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::process::{Quarry, command};
use crate::support::chain::another;
use crate::support::fake_node::{FakeNode, Fault};
use crate::support::signal::{Signal, send};

const LOGS: &str = "/api/logs/get-logs?chain=mainnet&offset=1";

/// What is said of the block, of a list up to it, and of one without an end.
fn said(quarry: &Quarry, block: u64, address: &str) -> (u16, u16) {
    let single = quarry
        .get(&format!("/api/block/{block}/transaction-count?chain=mainnet"))
        .0;
    let list = quarry.get(&format!("{LOGS}&address={address}&toblock={block}")).0;
    (single, list)
}

fn an_address(fake: &FakeNode) -> String {
    let bundles = fake.bundles();
    let logs = bundles.iter().flat_map(|bundle| &bundle.receipts);
    let log = logs.flat_map(|receipt| &receipt.logs).next().unwrap();
    log.address.to_string()
}

#[test]
fn a_node_that_is_not_there_after_a_restart() {
    let fake = FakeNode::start(91);
    fake.mine(40);
    fake.set_finalized(20);
    let directory = tempfile::tempdir().unwrap();
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until_synced(&fake);
    let address = an_address(&fake);
    // The node has ten more blocks and tells none of them.
    fake.fault(Fault::NullBlock, u64::MAX);
    fake.mine(10);
    let waits = |status: &Value| {
        status["message"]
            .as_str()
            .is_some_and(|text| text.contains("block 41"))
    };
    quarry.until("the head, and what is wrong", |status| {
        status["nodeHead"] == 50 && waits(status)
    });
    // What is said does not change while nothing does.
    for _ in 0..40 {
        let status = quarry.status().unwrap();
        assert!(waits(&status) && status["nodeUp"] == true, "{status}");
        std::thread::sleep(Duration::from_millis(50));
    }
    let check = |quarry: &Quarry, beyond: u64, when: &str| {
        assert_eq!(said(quarry, 40, &address), (200, 200), "{when}");
        assert_eq!(said(quarry, 41, &address), (503, 503), "{when}");
        assert_eq!(said(quarry, 50, &address), (503, 503), "{when}");
        assert_eq!(said(quarry, beyond, &address), (404, 200), "{when}");
        assert_eq!(said(quarry, 99_999_999, &address), (404, 200), "{when}");
    };
    check(&quarry, 51, "with the node");
    // The beat is written twice a second.
    std::thread::sleep(Duration::from_millis(700));
    quarry.kill();
    fake.stall(true);
    let quarry = Quarry::start(&fake, directory.path());
    assert_eq!(quarry.status().unwrap()["nodeHead"], Value::Null);
    // It may have gone on by some blocks.
    assert_eq!(said(&quarry, 51, &address), (503, 503));
    check(&quarry, 1000, "without it");
    quarry.stop();
    // An hour later it has gone on, nobody knows how far.
    let beat = directory.path().join("mainnet/writer.beat");
    let text = std::fs::read_to_string(&beat).unwrap();
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let heard: u64 = words[3].parse().unwrap();
    std::fs::write(&beat, format!("{} 40 50 {}\n", words[0], heard - 3600)).unwrap();
    let quarry = Quarry::start(&fake, directory.path());
    assert_eq!(said(&quarry, 51, &address), (503, 503));
    assert_eq!(said(&quarry, 99_999_999, &address), (404, 200));
    fake.stall(false);
    fake.clear_faults();
    let mut quarry = quarry;
    quarry.until_synced(&fake);
    assert_eq!(said(&quarry, 51, &address), (404, 200));
    quarry.stop();
}

#[test]
fn a_sync_that_stopped_still_hears_of_the_head() {
    let fake = FakeNode::start(92);
    fake.mine(40);
    fake.set_finalized(30);
    let directory = tempfile::tempdir().unwrap();
    let mut quarry = Quarry::start_with(&fake, directory.path(), &["--contradiction-wait", "1"]);
    quarry.until_synced(&fake);
    assert_eq!(quarry.get("/ready").0, 200);
    let address = an_address(&fake);
    fake.reorg(20, 22);
    quarry.until("the end", |status| status["stopped"] == true);
    // However near the head is: nothing follows it any more.
    assert_eq!(quarry.get("/ready").0, 503);
    fake.mine(8);
    quarry.until("the head", |status| status["nodeHead"] == 50);
    assert_eq!(said(&quarry, 45, &address), (503, 503));
    assert_eq!(said(&quarry, 51, &address), (404, 200));
    assert_eq!(quarry.status().unwrap()["stopped"], true);
    quarry.stop();
}

/// But not of that of another chain, which its node may be of by then.
#[test]
fn a_sync_that_stopped_hears_of_no_other_chain() {
    let fake = FakeNode::start(98);
    fake.mine(40);
    fake.set_finalized(30);
    let directory = tempfile::tempdir().unwrap();
    let mut quarry = Quarry::start_with(&fake, directory.path(), &["--contradiction-wait", "1"]);
    quarry.until_synced(&fake);
    let mut other = fake.chain();
    other.spec.chain_id = 2002;
    other.mine(100);
    let own = fake.swap_chain(other);
    quarry.until("the end", |status| status["stopped"] == true);
    let asked = fake.asked("eth_blockNumber");
    quarry.until("the node is asked for its head", |status| {
        assert_eq!((&status["nodeHead"], &status["lag"]), (&40.into(), &0.into()));
        asked + 2 <= fake.asked("eth_blockNumber")
    });
    // Its own again.
    fake.swap_chain(own);
    fake.mine(8);
    quarry.until("the head", |status| status["nodeHead"] == 48);
    quarry.stop();
}

/// One that asks for it is not silent, and neither the log nor the status keeps it back.
#[test]
fn a_node_that_asks_for_a_rest_is_left_alone_and_told_of() {
    let fake = FakeNode::start(99);
    fake.mine(40);
    fake.set_finalized(30);
    let directory = tempfile::tempdir().unwrap();
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until("the tip", |status| status["following"] == true);
    fake.fault(Fault::TooManyRequests(Some(25)), 1);
    quarry.until("word of the rest", |status| {
        assert_eq!(status["nodeUp"], true, "{status}");
        let message = status["message"].as_str().unwrap();
        message.starts_with("the node asked to be left alone for ") && message.ends_with(" s")
    });
    fake.mine(3);
    quarry.until("the rest is over", |status| {
        let message = status["message"].as_str().unwrap();
        assert!(!message.contains("does not tell its head"), "{message}");
        message == "following the tip" && status["indexed"] == 43
    });
    assert_eq!(quarry.said("the node asks to be left alone for a while"), 1);
    quarry.stop();
}

/// A node that tells wrong balances for a moment does not end the ledger for good; what it says of the same block then is what
/// counts.
#[test]
fn a_ledger_that_a_node_slandered_answers_again() {
    slandered(&FakeNode::start(96));
}

/// By a hash such a node tells of another block than was asked for: while blocks come fast, each comparison differs so.
#[test]
fn a_ledger_slandered_by_a_node_that_looks_at_no_hashes_answers_again() {
    let fake = FakeNode::start(96);
    fake.blind_to_hashes();
    slandered(&fake);
}

/// Block 41 of the chain meets no new account: what one opened with would be told wrong for good.
fn slandered(fake: &FakeNode) {
    fake.mine(40);
    fake.set_finalized(20);
    let directory = tempfile::tempdir().unwrap();
    let mut quarry = Quarry::start(fake, directory.path());
    let ledger = |status: &Value| status["nativeLedger"].as_str().unwrap_or_default().to_owned();
    quarry.until("a ledger", |status| {
        status["indexed"] == 40 && ledger(status) == "kept"
    });
    fake.set_false_balances(true);
    fake.mine(1);
    quarry.until("the difference", |status| ledger(status).starts_with("differs: "));
    // Nothing is asked again before there are fifty more blocks.
    fake.set_false_balances(false);
    fake.mine(20);
    quarry.until_synced(fake);
    std::thread::sleep(Duration::from_secs(3));
    assert!(ledger(&quarry.status().unwrap()).starts_with("differs: "));
    fake.mine(40);
    quarry.until("the ledger again", |status| ledger(status) == "kept");
    quarry.stop();
}

/// A store is of the chain that its node says, for good: one wrong answer at the start does not decide it, nor one that the
/// genesis file contradicts.
#[test]
fn one_wrong_chain_at_the_start_makes_no_store_of_it() {
    let fake = FakeNode::start(97);
    fake.mine(30);
    fake.set_finalized(20);
    let directory = tempfile::tempdir().unwrap();
    let genesis = directory.path().join("genesis.json");
    std::fs::write(
        &genesis,
        r#"{"config":{"chainId":4711},"alloc":{},"difficulty":"0x1","gasLimit":"0x1000000"}"#,
    )
    .unwrap();
    let path = genesis.to_str().unwrap();
    let more = ["--genesis", path, "--contradiction-wait", "3600"];
    let quarry = &mut Quarry::start_with(&fake, directory.path(), &more);
    quarry.until("word of it", |status| {
        let message = status["message"].as_str().unwrap_or_default();
        message.starts_with("the node contradicts")
            && message.contains("the genesis file is of chain id 4711")
    });
    assert_eq!(quarry.status().unwrap()["stopped"], false);
    quarry.signal(Signal::TERM);
    // Without a file only the node tells, and is asked twice.
    let directory = tempfile::tempdir().unwrap();
    fake.fault(Fault::OtherChain, 1);
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until("word of it", |status| {
        let message = status["message"].as_str().unwrap_or_default();
        message.contains("the node says chain id 1338") && message.contains("then 1337")
    });
    quarry.until_synced(&fake);
    assert_eq!(quarry.status().unwrap()["chainId"], 1337);
    quarry.stop();
}

/// A balancer may name another chain for a moment, also just when the service starts.
#[test]
fn a_node_of_another_chain_at_the_start_is_waited_out() {
    let fake = FakeNode::start(94);
    fake.mine(40);
    fake.set_finalized(30);
    let directory = tempfile::tempdir().unwrap();
    let mut quarry = Quarry::start(&fake, directory.path());
    quarry.until_synced(&fake);
    quarry.stop();
    let own = fake.swap_chain(another(95, Some(2002), 60));
    let mut quarry = Quarry::start_with(&fake, directory.path(), &["--contradiction-wait", "3600"]);
    quarry.until("word of it", |status| {
        let message = status["message"].as_str().unwrap();
        message.starts_with("the node contradicts") && message.contains("chain id 1337")
    });
    let status = quarry.status().unwrap();
    assert_eq!(
        (&status["stopped"], &status["nodeUp"]),
        (&false.into(), &true.into())
    );
    assert_eq!(quarry.indexed(), Some(40));
    fake.swap_chain(own);
    fake.mine(2);
    quarry.until_synced(&fake);
    quarry.stop();
    // Who waits for a command is told at once.
    fake.swap_chain(another(95, Some(2002), 60));
    let arguments = ["sync", "--to", "50", "--contradiction-wait", "3600"];
    let refused = command(&arguments, directory.path())
        .args(["--mainnet-rpc", &fake.url()])
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
}

/// Whoever waits for a block to be there must not take an interrupted sync for a whole one.
#[test]
fn an_interrupted_sync_is_no_success() {
    let fake = FakeNode::start(93);
    fake.mine(300);
    fake.set_finalized(290);
    fake.set_latency(Duration::from_millis(20));
    let directory = tempfile::tempdir().unwrap();
    let url = fake.url();
    let arguments = ["sync", "--to", "300", "--mainnet-rpc", &url];
    let child = command(&arguments, directory.path())
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Beyond what it asks to know what the node can do; the rest of the blocks takes a while.
    let began = Instant::now();
    while fake.asked("eth_getBlockReceipts") < 20 {
        assert!(began.elapsed() < Duration::from_secs(60), "no block is asked for");
        std::thread::sleep(Duration::from_millis(5));
    }
    send(&child, Signal::INT);
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("stopped before the block that was asked for was reached"),
        "{text}"
    );
    fake.set_latency(Duration::ZERO);
    for _ in 0..2 {
        let again = command(&arguments, directory.path()).output().unwrap();
        assert!(again.status.success(), "{again:?}");
    }
}
