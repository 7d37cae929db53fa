//! Kills of imports: done again they end in what an undisturbed import ends in.

use crate::process::{command, inspected, kills, started, summary};
use crate::support::fake_node::FakeNode;
use crate::support::scratch;
use fastrand::Rng;
use quarry::codec::imported::record_range;
use quarry::model::B256;
use rocksdb::{DB, IteratorMode, Options};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/demo");

/// Runs a command to its end; answers how long it took.
fn run(arguments: &[&str], directory: &Path) -> Duration {
    let began = Instant::now();
    let output = command(arguments, directory).output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    began.elapsed()
}

/// Runs a command and kills it after a while, unless it ends before; answers whether it was killed.
fn run_and_kill(arguments: &[&str], directory: &Path, after: Duration) -> bool {
    let mut child = command(arguments, directory)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(after);
    match child.try_wait().unwrap() {
        Some(status) => {
            assert!(status.success(), "{arguments:?}: {status}");
            false
        }
        None => {
            child.kill().unwrap();
            child.wait().unwrap();
            true
        }
    }
}

#[test]
fn a_killed_import_of_a_chain_goes_on() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let fake = FakeNode::start(seed);
    fake.mine(1800);
    let home = scratch::directory();
    let file = home.path().join("chain.jsonl");
    std::fs::write(&file, fake.recorded()).unwrap();
    let arguments = ["import", "chain", file.to_str().unwrap()];
    let whole = home.path().join("whole");
    let took = run(&arguments, &whole);
    let expected = inspected(&whole);
    let (mut killed, mut ended, mut stores) = (0, 0, 0);
    while killed < kills(5) {
        let store = home.path().join(stores.to_string());
        stores += 1;
        // A store of its own for every few kills: an import goes on where the last one was.
        for _ in 0..6 {
            let after = took.mul_f64(rng.f64() * 0.9);
            if killed == kills(5) || !run_and_kill(&arguments, &store, after) {
                ended += 1;
                break;
            }
            killed += 1;
        }
        run(&arguments, &store);
        assert_eq!(inspected(&store), expected, "seed {seed}");
        std::fs::remove_dir_all(store).unwrap();
    }
    println!("{stores} stores, {ended} imports ended undisturbed");
    summary("import chain", killed);
}

/// All rows of the store of imports but the records of when they were made.
fn rows(directory: &Path) -> B256 {
    let imports = directory.join("mainnet/imports");
    let db = DB::open_for_read_only(&Options::default(), imports, false).unwrap();
    let (from, to) = record_range();
    let mut hasher = alloy_primitives::Keccak256::new();
    let mut count = 0;
    for row in db.iterator(IteratorMode::Start) {
        let (key, value) = row.unwrap();
        if *key >= from[..] && *key <= to[..] {
            continue;
        }
        for part in [&key, &value] {
            hasher.update((part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        count += 1;
    }
    assert!(count > 1);
    hasher.finalize()
}

/// Many prices and tokens, and the contracts of the demo.
fn files(home: &Path) -> [(&'static str, PathBuf); 3] {
    let mut prices = "time,asset,usd\n".to_owned();
    for place in 0..150_000 {
        prices += &format!(
            "{},native,{}.{:03}\n",
            1_600_000_000 + place * 60,
            place % 4000,
            place % 1000
        );
    }
    let tokens: Vec<String> = (1..4000)
        .map(|token| {
            let rest = r#""name": "A token", "symbol": "T", "decimals": 18"#;
            format!(r#"{{"chainId": 31337, "address": "0x{token:040x}", {rest}, "website": "https://a.example/{token}"}}"#)
        })
        .collect();
    let tokens = format!(r#"{{"name": "many", "tokens": [{}]}}"#, tokens.join(","));
    let named = [
        ("prices", "prices.csv", prices),
        ("tokens", "tokens.json", tokens),
    ];
    let [prices, tokens] = named.map(|(kind, name, text)| {
        std::fs::write(home.join(name), text).unwrap();
        (kind, home.join(name))
    });
    [prices, tokens, ("contracts", Path::new(DEMO).join("contracts"))]
}

#[test]
fn killed_imports_of_facts_are_made_whole_by_the_same_again() {
    let seed = fastrand::u64(..1_000_000);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let home = scratch::directory();
    let files = files(home.path());
    let made = |name: &str| {
        let store = home.path().join(name);
        let (chain, genesis) = (format!("{DEMO}/chain.jsonl.zst"), format!("{DEMO}/genesis.json"));
        run(&["import", "chain", &chain, "--genesis", &genesis], &store);
        store
    };
    let whole = made("whole");
    let import = |(kind, file): &(&'static str, PathBuf)| {
        let file = file.to_str().unwrap().to_owned();
        ["import".to_owned(), (*kind).to_owned(), file]
    };
    let mut took = Vec::new();
    for file in &files {
        let arguments = import(file);
        took.push(run(&arguments.each_ref().map(String::as_str), &whole));
    }
    let expected = rows(&whole);
    let (chain, mut killed, mut round) = (inspected(&whole), 0, 0);
    while killed < kills(5) {
        round += 1;
        let store = made(&format!("store {round}"));
        for (file, took) in files.iter().zip(&took) {
            let arguments = import(file);
            let arguments = arguments.each_ref().map(String::as_str);
            for _ in 0..2 {
                killed += u64::from(run_and_kill(&arguments, &store, took.mul_f64(rng.f64())));
            }
            run(&arguments, &store);
            let again = command(&arguments, &store).output().unwrap();
            let said = String::from_utf8(again.stdout).unwrap();
            assert!(said.contains("(0 new or changed)"), "seed {seed}: {said}");
        }
        assert_eq!(rows(&store), expected, "seed {seed}");
        // What lies beside the chain leaves the chain alone.
        let began = Instant::now();
        assert_eq!(inspected(&store), chain, "seed {seed}");
        started(began.elapsed(), &"inspect");
        std::fs::remove_dir_all(store).unwrap();
    }
    summary("import prices, tokens and contracts", killed);
}
