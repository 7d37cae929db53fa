//! A byte of a table that is not what was written: a 500 and a line in the log, never a wrong answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::binary::{self, Server, demo, exchange};

/// All that the demo is asked in the reference, with what it answers when nothing is wrong.
fn questions(server: &Server) -> BTreeMap<String, (u16, Vec<u8>)> {
    let examples = std::fs::read(demo("examples.json")).unwrap();
    let examples: BTreeMap<String, Value> = serde_json::from_slice(&examples).unwrap();
    let whole = "/api/logs/get-logs?fromBlock=0&topic0=0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef&offset=10000";
    let targets = examples.into_keys().chain([whole.to_owned()]);
    targets
        .map(|target| {
            let answer = ask(server, &target).unwrap();
            (target, answer)
        })
        .collect()
}

/// Status and body; `None` where the answer broke off.
fn ask(server: &Server, target: &str) -> Option<(u16, Vec<u8>)> {
    let request = format!("GET {target} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    let reply = exchange(&server.address, &RefCell::default(), request.as_bytes()).ok()?;
    Some((reply.status, reply.body))
}

/// The line of a log that tells of damage, which must name this, and a table or the whole store with a way out.
#[track_caller]
fn line_of(log: &str, named: &str) -> String {
    let line = log.lines().find(|line| line.contains("Corruption"));
    let line = line.unwrap_or_else(|| panic!("no word of damage: {log}"));
    let whole = line.contains("is damaged") && line.contains("checkpoint restore");
    assert!(
        (line.contains("table `") || whole) && line.contains(named),
        "{line}"
    );
    line.to_owned()
}

fn tables(data: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(data.join("mainnet/rocksdb")).unwrap();
    let mut files: Vec<PathBuf> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sst"))
        .collect();
    files.sort();
    files
}

/// Of one chain a part cannot be read: that is said of it, and all else of both.
#[test]
fn a_status_says_what_it_cannot_read_and_all_else() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().display().to_string();
    binary::import_demo(&data);
    // From block 100 on, so that there is something that is withheld whatever can be read.
    let store = directory.path().join("mainnet");
    std::fs::rename(&store, directory.path().join("testnet")).unwrap();
    let recording = std::fs::File::open(demo("chain.jsonl.zst")).unwrap();
    let text = std::io::read_to_string(zstd::Decoder::new(recording).unwrap()).unwrap();
    let part: Vec<&str> = text.lines().skip(100).collect();
    let part_of = directory.path().join("part.jsonl");
    std::fs::write(&part_of, part.join("\n")).unwrap();
    let part = part_of.to_str().unwrap();
    binary::quarry(["import", "chain", part, "--data-dir", &data]).succeeded();
    let serve = ["serve", "--data-dir", &data];
    let server = Server::start(serve);
    let whole = server.json("/status")["chains"].clone();
    server.stop();

    let database = store.join("rocksdb");
    let options = rocksdb::Options::default();
    let families = rocksdb::DB::list_cf(&options, &database).unwrap();
    let db = rocksdb::DB::open_cf_for_read_only(&options, &database, families, false).unwrap();
    let files = db.live_files().unwrap();
    drop(db);
    for file in files.iter().filter(|file| file.column_family_name == "days") {
        let path = database.join(file.name.trim_start_matches('/'));
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, 0).unwrap();
        file.write_all_at(&[byte[0] ^ 1], 0).unwrap();
    }
    let server = Server::start(serve);
    let reply = server.get("/status");
    assert_eq!(reply.status, 200, "{}", reply.text());
    let mut told = reply.json()["chains"].clone();
    assert_eq!(told["testnet"], whole["testnet"]);
    let message = told["mainnet"]["message"].take();
    assert!(
        message
            .as_str()
            .unwrap()
            .starts_with("not all of what this store holds and withholds is told here"),
        "{message}"
    );
    // What does not come from there is said all the same.
    let withheld = told["mainnet"]["withheld"].take();
    let withheld = withheld.as_array().unwrap();
    let before = whole["mainnet"]["withheld"].as_array().unwrap();
    assert!(
        withheld.iter().any(|one| one["operations"] == "S5"),
        "{withheld:?}"
    );
    assert!(withheld.iter().all(|one| before.contains(one)), "{withheld:?}");
    for field in ["indexed", "verified", "nativeLedger", "storeBytes"] {
        assert_eq!(told["mainnet"][field], whole["mainnet"][field], "{field}");
    }
    let line = binary::eventually("a line in the log", Duration::from_secs(5), || {
        let log = server.log();
        let line = log.lines().find(|line| line.contains("does not tell all"));
        line.map(str::to_owned)
    });
    assert!(line.contains("Corruption"), "{line}");
    server.stop();
}

#[test]
fn flipped_bytes_are_never_served() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().display().to_string();
    binary::import_demo(&data);
    let serve = [
        "serve",
        "--data-dir",
        &data,
        "--log",
        "info,quarry::http::request=off",
    ];
    let server = Server::start(serve);
    let sound = questions(&server);
    server.stop();
    let verify = || binary::quarry(["verify", "--data-dir", &data, "--genesis", &demo("genesis.json")]);
    verify().succeeded();

    let seed = match std::env::var("QUARRY_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..1_000_000),
    };
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut refused, mut broken, mut failed, mut unseen) = (0, 0, 0, Vec::new());
    let files = tables(directory.path());
    assert!(files.len() >= 20, "{files:?}");
    // A random place of each, and its first row: what opening needs is among them.
    let places = files.iter().flat_map(|path| [(path, None), (path, Some(0))]);
    for (path, place) in places {
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        // Rows lie first in a file; index, filter and properties behind them.
        let half = file.metadata().unwrap().len() / 2;
        let place = place.unwrap_or_else(|| random.u64(..half));
        let mut byte = [0];
        file.read_exact_at(&mut byte, place).unwrap();
        let flipped = [byte[0] ^ (1 << random.u8(..8))];
        file.write_all_at(&flipped, place).unwrap();
        let what = format!("{} at {place}", path.display());

        let found = verify();
        let (mut harm, mut said) = (false, String::new());
        match Server::try_start(serve) {
            // What the store needs to open: it says so and serves nothing.
            Err(log) => {
                // RocksDB names the manifest where it is a table's own description that does not read.
                (harm, said) = (true, line_of(&log, "/rocksdb/"));
                assert!(said.contains("is damaged"), "{what}: {said}");
                assert!(!log.contains("panicked"), "{what}: {log}");
                refused += 1;
            }
            Ok(server) => {
                for (target, answer) in &sound {
                    match ask(&server, target) {
                        Some((500, _)) => failed += 1,
                        None => broken += 1,
                        Some(found) => {
                            assert!(
                                found == *answer,
                                "{what}: {target}: {} {}",
                                found.0,
                                String::from_utf8_lossy(&found.1)
                            );
                            continue;
                        }
                    }
                    harm = true;
                }
                let logged = || server.log().contains("Corruption").then_some(());
                if harm {
                    binary::eventually("a line in the log", Duration::from_secs(5), logged);
                    said = line_of(&server.log(), "key 0x");
                }
                let log = server.log();
                assert!(!log.contains("panicked"), "{what}: {log}");
            }
        }
        if found.code == Some(0) {
            unseen.push((harm, what, said));
        } else {
            assert_eq!(found.code, Some(1), "{what}: {}", found.stderr);
        }
        file.write_all_at(&byte, place).unwrap();
    }
    println!(
        "{} files: {failed} answers were 500, {broken} broke off, {refused} stores were refused",
        files.len()
    );
    println!("unseen by verify: {unseen:#?}");
    assert!(failed > 10);
    assert!(unseen.iter().all(|(harm, ..)| !harm));
    verify().succeeded();
}
