//! Stores that earlier versions wrote: a frozen one opens, or is migrated, and goes on; others are refused with the way
//! out, and are left as they were.
//!
//! `tests/fixtures/store-vN.tar.zst` is a store of layout N as the program left it (a checkpoint's stream), with blocks that
//! are not final; `chain-vN.jsonl.zst` its chain and some more blocks; `store-vN.txt` what was in it. They are
//! never made anew for a layout that has shipped: `cargo test --release --test upgrade -- --ignored freeze` makes those
//! of the present one where there are none.

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

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use binary::{Outcome, Server, quarry};
use quarry::model::Bundle;
use quarry::node::recorded::RecordedChain;
use quarry::store::schema::SCHEMA_VERSION;
use rocksdb::{ColumnFamilyDescriptor, DB, Options};
use support::balances::told;
use support::chain::ChainSpec;
use support::fake_node::{FakeNode, recorded_line};
use support::index;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Lays a frozen store below `data`, as it was.
fn thaw(version: u32, data: &Path) {
    let file = std::fs::File::open(fixture(&format!("store-v{version}.tar.zst"))).unwrap();
    let mut archive = tar::Archive::new(zstd::Decoder::new(file).unwrap());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().into_owned();
        let path = path.strip_prefix("quarry-checkpoint-1").unwrap();
        if path != Path::new("checkpoint.json") {
            let to = data.join("mainnet").join(path);
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            std::fs::write(to, bytes).unwrap();
        }
    }
}

/// A command over the stores in `data`.
fn over(data: &Path, words: &[&str]) -> Outcome {
    let data = data.to_str().unwrap();
    quarry(words.iter().copied().chain(["--data-dir", data]))
}

/// What is in a store, but for how it lies on disk.
fn contents(data: &Path) -> String {
    let said = over(data, &["inspect", "--full"]).succeeded().stdout;
    let told = |line: &&str| !line.starts_with("store ");
    said.lines().filter(told).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn frozen_stores_open_and_go_on() {
    let frozen =
        (1..=SCHEMA_VERSION).filter(|version| fixture(&format!("store-v{version}.tar.zst")).exists());
    let frozen: Vec<u32> = frozen.collect();
    assert_eq!(
        frozen.last(),
        Some(&SCHEMA_VERSION),
        "the present layout is not frozen"
    );
    for version in frozen {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        thaw(version, &data);
        let migrated = over(&data, &["migrate"]).succeeded().stdout;
        let again = over(&data, &["migrate"]).succeeded().stdout;
        assert!(again.contains("there is nothing to do"), "{migrated}{again}");
        let then = std::fs::read_to_string(fixture(&format!("store-v{version}.txt"))).unwrap();
        if version == SCHEMA_VERSION {
            assert_eq!(
                contents(&data),
                then,
                "version {version} is read in another way than it was"
            );
        }
        over(&data, &["verify"]).succeeded();
        let server = Server::start(["serve", "--data-dir", data.to_str().unwrap()]);
        let status = &server.json("/status")["chains"]["mainnet"];
        // Blocks that are not final are taken off by a migration: a sync fetches them again.
        let indexed = if version == SCHEMA_VERSION { 38 } else { 30 };
        assert_eq!(
            (&status["indexed"], &status["finalized"]),
            (&indexed.into(), &30.into())
        );
        let paid = server.json("/api/stats/token-price");
        assert!(paid.to_string().contains("1234.5"), "{paid}");
        server.stop();
        // More blocks: the store is then the one that this quarry fills from the first block on.
        let recorded = RecordedChain::open(fixture(&format!("chain-v{version}.jsonl.zst"))).unwrap();
        let chain: Vec<Bundle> = recorded.map(|line| line.unwrap().parse().unwrap()).collect();
        let genesis = chain[0].block.hash;
        let store = index::open(&data.join("mainnet"), genesis, 0).unwrap();
        let next = store.view().checkpoint().next_block;
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(index::import(&store, &told(&chain, 0)[next as usize..], genesis));
        let digest = store.view().digest().unwrap();
        assert_eq!(store.view().head().unwrap().number, 44);
        drop(store);
        let fresh = runtime.block_on(index::fresh_digest(&chain, 0));
        assert_eq!(digest, fresh, "version {version}");
        over(&data, &["verify"]).succeeded();
        // And it can be copied.
        let made = home.path().join("made");
        over(&data, &["checkpoint", "create", made.to_str().unwrap()]).succeeded();
    }
}

/// Makes the fixtures of the present layout.
#[test]
#[ignore = "once for each layout"]
fn freeze() {
    let names = ["store-vN.tar.zst", "chain-vN.jsonl.zst", "store-vN.txt"]
        .map(|name| fixture(&name.replace('N', &SCHEMA_VERSION.to_string())));
    let [store, chain, text] = &names;
    assert!(!store.exists(), "a frozen store is never made anew");
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    let fake = FakeNode::start_with(ChainSpec {
        transactions_max: 6,
        ..ChainSpec::new(4)
    });
    fake.mine(38);
    fake.set_finalized(30);
    over(&data, &["sync", "--to", "latest", "--mainnet-rpc", &fake.url()]).succeeded();
    let prices = home.path().join("prices.csv");
    std::fs::write(&prices, "time,asset,usd\n1600000000,native,1234.5\n").unwrap();
    // A record keeps the name that it was given.
    let imported = binary::command(["import", "prices", "prices.csv", "--data-dir", "data"])
        .current_dir(home.path())
        .status();
    assert!(imported.unwrap().success());
    std::fs::create_dir_all(fixture("")).unwrap();
    let status = binary::command(["checkpoint", "create", "-", "--data-dir", data.to_str().unwrap()])
        .stdout(Stdio::from(std::fs::File::create(store).unwrap()))
        .status();
    assert!(status.unwrap().success());
    std::fs::write(text, contents(&data)).unwrap();
    fake.mine(6);
    let lines: String = fake
        .bundles()
        .iter()
        .map(|bundle| recorded_line(bundle) + "\n")
        .collect();
    std::fs::write(chain, zstd::encode_all(lines.as_bytes(), 19).unwrap()).unwrap();
}

/// The tables of a store, the bytes of its identity, and its files but for RocksDB's diary.
fn looked_at(data: &Path) -> (Vec<String>, Vec<u8>, BTreeMap<String, u64>) {
    let path = data.join("mainnet/rocksdb");
    let files = std::fs::read_dir(&path).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, entry.metadata().unwrap().len())
    });
    let files = files.filter(|(name, _)| !name.starts_with("LOG")).collect();
    let mut tables = DB::list_cf(&Options::default(), &path).unwrap();
    tables.sort();
    let db = DB::open_cf_for_read_only(&Options::default(), &path, ["meta"], false).unwrap();
    let identity = db.get_cf(db.cf_handle("meta").unwrap(), b"identity").unwrap();
    (tables, identity.unwrap(), files)
}

/// Makes the store one of another version, with a table less or more.
fn change(data: &Path, version: u8, without: Option<&str>, with: Option<&str>) {
    let path = data.join("mainnet/rocksdb");
    let tables = DB::list_cf(&Options::default(), &path).unwrap();
    let tables = tables
        .into_iter()
        .map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let mut db = DB::open_cf_descriptors(&Options::default(), &path, tables).unwrap();
    if let Some(table) = without {
        db.drop_cf(table).unwrap();
    }
    if let Some(table) = with {
        db.create_cf(table, &Options::default()).unwrap();
    }
    let meta = db.cf_handle("meta").unwrap();
    let mut identity = db.get_cf(meta, b"identity").unwrap().unwrap();
    identity[0] = version;
    db.put_cf(meta, b"identity", identity).unwrap();
}

#[test]
fn stores_of_other_layouts_are_refused_and_left_as_they_are() {
    let older = [
        "fill a new --data-dir",
        "can be served meanwhile by the quarry that wrote it",
    ];
    let migratable = ["run `quarry migrate`, after `quarry checkpoint create` by the quarry that wrote it"];
    let newer = ["use the newer quarry that wrote it"];
    let ours = u8::try_from(SCHEMA_VERSION).unwrap();
    let cases: BTreeMap<(u8, &str), &[&str]> = [
        ((1, "days"), older.as_slice()),
        ((2, "tokens"), &older),
        ((3, "days"), &older),
        ((4, ""), &older),
        ((4, "days"), &older),
        ((5, "open_postings"), &migratable),
        ((6, ""), &migratable),
        ((7, ""), &migratable),
        ((8, ""), &migratable),
        ((9, ""), &migratable),
        ((ours + 1, ""), &newer),
        ((ours + 1, "+later"), &newer),
    ]
    .into();
    for ((version, table), words) in cases {
        let home = tempfile::tempdir().unwrap();
        let data = home.path().join("data");
        thaw(SCHEMA_VERSION, &data);
        let (less, more) = match table.strip_prefix('+') {
            Some(more) => (None, Some(more)),
            None => (Some(table).filter(|table| !table.is_empty()), None),
        };
        change(&data, version, less, more);
        let before = looked_at(&data);
        let told = format!("has layout version {version}, this quarry writes version {SCHEMA_VERSION}");
        let words: Vec<&str> = words.iter().copied().chain([told.as_str()]).collect();
        let made = home.path().join("made");
        let chain = fixture(&format!("chain-v{SCHEMA_VERSION}.jsonl.zst"));
        let commands = [
            &["inspect"] as &[&str],
            &["verify"],
            &["migrate"],
            &["serve", "--listen", "127.0.0.1:0"],
            &[
                "run",
                "--listen",
                "127.0.0.1:0",
                "--mainnet-rpc",
                "http://127.0.0.1:9",
            ],
            &["sync", "--to", "latest", "--mainnet-rpc", "http://127.0.0.1:9"],
            &["import", "chain", chain.to_str().unwrap()],
            &["checkpoint", "create", made.to_str().unwrap()],
        ];
        let can_be = |command: &&&[&str]| !(5..ours).contains(&version) || **command != ["migrate"];
        for command in commands.iter().filter(can_be) {
            over(&data, command).refused(&words);
            assert_eq!(
                looked_at(&data),
                before,
                "{command:?} changed a store of version {version}"
            );
        }
        assert!(!made.exists());
    }
}

#[test]
fn what_there_is_to_migrate() {
    let home = tempfile::tempdir().unwrap();
    let data = home.path().join("data");
    over(&data, &["migrate"]).refused(&["there is no store in"]);
    thaw(SCHEMA_VERSION, &data);
    let said = over(&data, &["migrate"]).succeeded().stdout;
    assert_eq!(
        said,
        format!(
            "mainnet: layout version {SCHEMA_VERSION} is the one of this quarry, there is nothing to do\n"
        )
    );
}
