//! `quarry sync` and `quarry run` beside a node: how they end, and what they say of a store that begins later.

use std::time::Duration;

use serde_json::Value;

use crate::binary::{Server, command, eventually, quarry, run};
use crate::support::fake_node::FakeNode;

const PATIENCE: Duration = Duration::from_secs(40);

fn node() -> FakeNode {
    let fake = FakeNode::start(4);
    fake.mine(115 - fake.head());
    fake.set_finalized(100);
    fake
}

/// Whoever waits for a block must not take the end of a command for its coming.
#[test]
fn a_sync_to_a_block_that_is_never_stored_fails() {
    let (fake, home) = (node(), tempfile::tempdir().unwrap());
    let url = fake.url();
    let sync = |name: &str, to: &str, start: &str| {
        let data = home.path().join(name).display().to_string();
        let given = ["sync", "--mainnet-rpc", &url, "--data-dir", &data];
        quarry(given.into_iter().chain(["--to", to, "--start-block", start]))
    };
    let outcome = sync("before", "5", "10");
    assert!(outcome.stdout.contains("mainnet: nothing indexed"), "{outcome:?}");
    outcome.refused(&["mainnet: block 5 is never stored: the store begins with block 10"]);
    sync("beyond", "latest", "1000000")
        .refused(&["mainnet: the node's head is block 115, and the store begins with block 1000000"]);
    // From the first block on it is stored; and one before that is not, whatever else is.
    sync("before", "10", "10").succeeded();
    sync("before", "latest", "10").succeeded();
    sync("before", "5", "10").refused(&["block 5 is never stored"]);
}

/// Blocks before the first one are neither missing nor indexed.
#[test]
fn a_store_that_begins_later_counts_from_its_first_block() {
    let (fake, home) = (node(), tempfile::tempdir().unwrap());
    let url = fake.url();
    let run = |name: &str, start: &str, more: &[&str]| {
        let data = home.path().join(name).display().to_string();
        let given = [
            "run",
            "--mainnet-rpc",
            &url,
            "--data-dir",
            &data,
            "--start-block",
            start,
        ];
        Server::start(given.into_iter().chain(more.iter().copied()))
    };
    let report = |server: &Server| server.json("/status")["chains"]["mainnet"].take();
    // Its node is not there yet.
    let beyond = run("beyond", "1000000", &[]);
    let told = eventually("the node's head", PATIENCE, || {
        let told = report(&beyond);
        (told["nodeHead"] == 115).then_some(told)
    });
    assert_eq!(
        (&told["indexed"], &told["lag"]),
        (&Value::Null, &Value::from(0)),
        "{told}"
    );
    let line = eventually("a line of progress", PATIENCE, || {
        let log = beyond.log();
        let line = log.lines().find(|line| line.contains(" node_head=115 "))?;
        Some(line.to_owned())
    });
    assert!(!line.contains("indexed="), "{line}");
    assert!(!beyond.log().contains("the node is trusted"));
    beyond.stop();
    // It is there, and tells no blocks.
    fake.set_latency(Duration::from_millis(700));
    let within = run("within", "106", &["--trust-node"]);
    let told = eventually("the node's head", PATIENCE, || {
        let told = report(&within);
        (told["nodeHead"] == 115 && told["indexed"].is_null()).then_some(told)
    });
    assert_eq!(told["lag"], 10, "{told}");
    // What is not checked is said from the start.
    let log = within.stop_logged();
    let line = log.lines().find(|line| line.contains("the node is trusted"));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains(" WARN ") && line.contains("chain=mainnet"),
        "{line}"
    );
}

/// As a minimal container is.
#[test]
fn only_https_needs_root_certificates() {
    let (fake, home) = (node(), tempfile::tempdir().unwrap());
    let data = home.path().display().to_string();
    let sync = |url: &str| {
        let mut sync = command(["sync", "--mainnet-rpc", url, "--to", "5", "--data-dir", &data]);
        sync.envs([
            ("SSL_CERT_FILE", "/nonexistent"),
            ("SSL_CERT_DIR", "/nonexistent"),
        ]);
        run(sync)
    };
    let outcome = sync("https://127.0.0.1:1");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("ca-certificates"), "{outcome:?}");
    sync(&fake.url()).succeeded();
}
