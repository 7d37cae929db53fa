//! Checkpoints by the real program: made of idle stores and beside a writer, restored, refused, and killed in the middle.

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

#[path = "checkpoint/beside.rs"]
mod beside;
#[path = "checkpoint/forged.rs"]
mod forged;
#[path = "checkpoint/idle.rs"]
mod idle;
#[path = "checkpoint/killed.rs"]
mod killed;
#[path = "checkpoint/mounts.rs"]
mod mounts;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use binary::{Outcome, demo, import_demo, names, quarry};
use support::fake_node::FakeNode;

/// Fills a store with the demo chain and its imports.
fn demo_store(data: &Path) {
    let data = data.to_str().unwrap();
    import_demo(data);
    quarry(["import", "prices", &demo("prices.csv"), "--data-dir", data]).succeeded();
    quarry(["import", "tokens", &demo("token-list.json"), "--data-dir", data]).succeeded();
}

/// `quarry sync` of all that a node has.
fn sync(fake: &FakeNode, data: &Path) -> Outcome {
    let (url, data) = (fake.url(), data.to_str().unwrap());
    quarry([
        "sync",
        "--to",
        "latest",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        data,
    ])
}

/// `quarry checkpoint create`.
fn create(data: &Path, target: &Path) -> Outcome {
    quarry([
        "checkpoint".as_ref(),
        "create".as_ref(),
        target.as_os_str(),
        "--data-dir".as_ref(),
        data.as_os_str(),
    ])
}

/// `quarry checkpoint restore`.
fn restore(from: &Path, data: &Path) -> Outcome {
    quarry([
        "checkpoint".as_ref(),
        "restore".as_ref(),
        from.as_os_str(),
        "--data-dir".as_ref(),
        data.as_os_str(),
    ])
}

/// `quarry checkpoint verify`.
fn verify(from: &Path) -> Outcome {
    quarry(["checkpoint".as_ref(), "verify".as_ref(), from.as_os_str()])
}

/// Writes a checkpoint as a stream into a file.
fn stream(data: &Path, file: &Path) {
    let out = std::fs::File::create(file).unwrap();
    let said = binary::command(["checkpoint", "create", "-", "--data-dir"])
        .arg(data)
        .stdout(Stdio::from(out))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{}: {errors}", said.status);
}

/// What `quarry inspect --full` says of every table, array and import of a store, but for where it lies.
fn inspected(data: &Path) -> String {
    let said = quarry([
        "inspect".as_ref(),
        "--full".as_ref(),
        "--data-dir".as_ref(),
        data.as_os_str(),
    ]);
    let said = said.succeeded().stdout;
    let lines = said.lines().filter(|line| !line.starts_with("store "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The digest of the chain in a store, by `quarry inspect --full`.
fn digest(data: &Path) -> String {
    let said = inspected(data);
    let line = said.lines().find_map(|line| line.strip_prefix("digest "));
    line.unwrap().trim().to_owned()
}

/// `quarry verify` without a node finds nothing.
#[track_caller]
fn assert_sound(data: &Path) {
    quarry(["verify".as_ref(), "--data-dir".as_ref(), data.as_os_str()]).succeeded();
}

/// Every file of a checkpoint, the manifest included.
fn files(checkpoint: &Path) -> Vec<PathBuf> {
    let mut all = vec![checkpoint.join("checkpoint.json")];
    for part in ["flat", "imports", "rocksdb", "observed"] {
        for entry in std::fs::read_dir(checkpoint.join(part)).into_iter().flatten() {
            all.push(entry.unwrap().path());
        }
    }
    all
}

/// Copies a directory as it is, links as links.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(status.success());
}
