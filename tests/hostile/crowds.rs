//! Very many connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::binary::Server;
use crate::binary::skipped::skipped;
use crate::wire::{Wire, alive};

/// What an idle connection may take, bytes.
const CONNECTION_MAX: u64 = 32 << 10;

/// What the process may take to have any, bytes.
const ALLOWANCE: u64 = 4 << 20;

/// Allows this process, and those that it starts, as many open files as may be allowed; how many those are.
fn allow_files() -> u64 {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let current = maximum;
    // Where that is refused it stays as it is.
    let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[test]
fn ten_thousand_idle_connections_are_kept() {
    // Each process needs a descriptor for each and some for itself, and the service leaves half of its own to the stores, or 9,000.
    let files = allow_files();
    let count = (files - (files / 2).min(9_000)).saturating_sub(200).min(10_000);
    if count < 1_000 {
        skipped(&format!(
            "ten thousand connections: only {files} files may be open (`ulimit -Hn`)"
        ));
        return;
    }
    let server = Server::start(["demo", "--max-connections", "12000", "--client-timeout", "600"]);
    alive(&server.address);
    let before = server.resident_kib();
    let mut idle: Vec<Wire> = (0..count).map(|_| Wire::connect(&server.address)).collect();
    alive(&server.address);
    // Each of them is served, not only held.
    let request = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n";
    for wire in &mut idle {
        wire.send(request).unwrap();
    }
    for wire in &mut idle {
        assert_eq!(wire.answer(false).unwrap().status, 200);
    }
    let grown = server.resident_kib().saturating_sub(before);
    println!("{count} connections: memory {before} KiB + {grown} KiB");
    assert!(
        grown * 1024 < ALLOWANCE + count * CONNECTION_MAX,
        "{grown} KiB for {count} connections"
    );
    drop(idle);
    alive(&server.address);
    server.stop();
}

#[test]
fn one_more_than_may_be_is_told_so() {
    let server = Server::start(["demo", "--max-connections", "64"]);
    let request = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n";
    let mut kept: Vec<Wire> = (0..64).map(|_| Wire::connect(&server.address)).collect();
    for wire in &mut kept {
        wire.send(request).unwrap();
        assert_eq!(wire.answer(false).unwrap().status, 200);
    }
    for _ in 0..10 {
        let mut over = Wire::connect(&server.address);
        let answer = over.answer(false).unwrap();
        assert_eq!((answer.status, answer.closes()), (503, true));
        assert_eq!(answer.text(), r#"{"error":"Too many connections"}"#);
        assert!(answer.header("retry-after").is_some());
        assert!(over.rest().is_empty());
    }
    // Those who were there are served on.
    for wire in &mut kept {
        wire.send(request).unwrap();
        assert_eq!(wire.answer(false).unwrap().status, 200);
    }
    drop(kept);
    let again = || {
        let mut wire = Wire::connect(&server.address);
        wire.send(request).ok()?;
        (wire.answer(false).ok()?.status == 200).then_some(())
    };
    crate::binary::eventually("a free place", std::time::Duration::from_secs(10), again);
}
