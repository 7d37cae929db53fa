//! `quarry inspect`.

use crate::binary::{demo, import_demo, quarry};

#[test]
fn an_operator_finds_what_is_there() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let text = quarry(["inspect", "--data-dir", store]).succeeded().stdout;
    for line in [
        "layout     version ",
        "chain id   31337",
        "blocks     0 to ",
        "final to   ",
        "traces     all blocks",
        "ledger     native balances of all blocks",
        "contents   ",
        "on disk    ",
        "disk free  ",
    ] {
        assert!(
            text.lines().any(|found| found.starts_with(line)),
            "no `{line}`: {text}"
        );
    }
    // Rows of arrays are exact, and the shares of arrays and tables make a whole.
    let rows = |name: &str| {
        let line = text
            .lines()
            .find(|line| line.split_whitespace().next() == Some(name))
            .unwrap();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    let blocks = text
        .lines()
        .find_map(|line| line.strip_prefix("blocks     0 to "))
        .unwrap();
    let head: u64 = blocks.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(rows("block_frames"), (head + 1).to_string());
    let before_lists = text.split("postings by kind").next().unwrap();
    let shares = before_lists.lines().filter(|line| line.ends_with(" %"));
    let shares: f64 = shares
        .map(|line| {
            line.split_whitespace()
                .rev()
                .nth(1)
                .unwrap()
                .parse::<f64>()
                .unwrap()
        })
        .sum();
    assert!((shares - 100.0).abs() < 2.5, "{shares}: {text}");
    let whole = quarry(["inspect", "--full", "--data-dir", store])
        .succeeded()
        .stdout;
    assert!(
        whole.contains("\narray ") && whole.contains("\ntable ") && whole.contains("\ndigest "),
        "{whole}"
    );
}

#[test]
fn one_row_is_decoded() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let ask = |table: &str, key: &str| {
        quarry(["inspect", "--data-dir", store, "--key", table, key])
            .succeeded()
            .stdout
    };
    assert!(ask("meta", "identity").contains("chain id 31337, genesis 0x517d"));
    assert!(ask("meta", "checkpoint").contains("hash: 0x9708"));
    assert!(ask("blocks", "5").contains("number: 5,"));
    assert_eq!(ask("blocks", "5"), ask("blocks", "0x0000000000000005"));
    assert!(ask("days", "0/0").contains("no such row; the next one is"));
    assert!(ask("open_postings", "0/0x00000000").contains(" before, then "));
    assert!(ask("blocks", "18446744073709551615").contains("no such row, and none behind it"));
    // Rows of every table that has some are decoded: the first one, which lies behind the empty key.
    let tables = [
        "transactions",
        "logs_by_block",
        "logs_by_emitter",
        "frames",
        "postings",
        "open_postings",
        "hashes",
        "emitters",
        "signatures",
        "creations",
        "nonces",
        "accounts",
        "balances",
        "funding",
        "supply",
        "tokens",
        "token_states",
        "token_balances",
        "token_supply",
        "holdings",
        "nft_owners",
        "holder_counts",
        "days",
    ];
    for table in tables {
        let text = ask(table, "0x");
        assert!(
            text.contains("the next one is") && !text.contains("corrupt"),
            "{table}: {text}"
        );
        let decoded = text.lines().skip_while(|line| !line.starts_with("value ")).nth(2);
        assert!(
            decoded.is_some_and(|line| !line.trim().is_empty()),
            "{table}: {text}"
        );
    }
    let refused = |table: &str, key: &str| quarry(["inspect", "--data-dir", store, "--key", table, key]);
    refused("nothing", "0").refused(&["no table `nothing`: one of meta, blocks"]);
    refused("blocks", "five").refused(&["`five` is not a key of `blocks`", "| block number u64 |"]);
    refused("token_states", "4294967296").refused(&["does not fit 4 bytes"]);
}

/// What changes on the way of a recording is found out when it is read.
#[test]
fn a_recording_that_was_damaged_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let (store, file) = (data.path().join("store"), data.path().join("chain.jsonl.zst"));
    let (store, path) = (store.to_str().unwrap(), file.to_str().unwrap());
    import_demo(store);
    quarry(["export", "chain", path, "--data-dir", store, "--to", "60"]).succeeded();
    let whole = std::fs::read(&file).unwrap();
    let import = |name: &str| {
        let fresh = data.path().join(name);
        quarry([
            "import",
            "chain",
            path,
            "--data-dir",
            fresh.to_str().unwrap(),
            "--trust-node",
        ])
    };
    import("whole").succeeded();
    // One bit, here and there: text that is still text would else pass.
    for part in 1..12 {
        let mut damaged = whole.clone();
        let at = whole.len() * part / 12;
        damaged[at] ^= 1 << (part % 8);
        std::fs::write(&file, damaged).unwrap();
        assert_eq!(import(&format!("damaged-{part}")).code, Some(1), "byte {at}");
    }
    for nothing in [&[][..], &zstd::encode_all(&b"\n"[..], 1).unwrap()] {
        std::fs::write(&file, nothing).unwrap();
        assert_eq!(import("nothing").code, Some(1));
    }
    std::fs::write(&file, zstd::encode_all(&b""[..], 1).unwrap()).unwrap();
    import("nothing").refused(&["the recording holds no block"]);
}

/// Blocks before one that is out of place are kept, and another chain's genesis file is not taken.
#[test]
fn a_recording_is_one_chain_in_order() {
    let data = tempfile::tempdir().unwrap();
    let at = |name: &str| data.path().join(name).to_str().unwrap().to_owned();
    let (store, path, twice) = (at("store"), at("chain.jsonl"), at("twice.jsonl"));
    import_demo(&store);
    quarry(["export", "chain", &path, "--data-dir", &store, "--to", "40"]).succeeded();
    let lines = zstd::decode_all(&*std::fs::read(&path).unwrap()).unwrap();
    let import = |file: &str, name: &str, more: &[&str]| {
        let into = at(name);
        let given = ["import", "chain", file, "--data-dir", &into, "--trust-node"];
        quarry(given.iter().chain(more))
    };
    std::fs::write(
        &twice,
        zstd::encode_all(&*[&lines[..], &lines[..]].concat(), 1).unwrap(),
    )
    .unwrap();
    import(&twice, "again", &[]).refused(&["goes on with block 0, the store with block 41"]);
    import(&path, "again", &[]).succeeded();
    let mut genesis: serde_json::Value =
        serde_json::from_slice(&std::fs::read(demo("genesis.json")).unwrap()).unwrap();
    genesis["config"]["chainId"] = 5.into();
    let other = at("genesis.json");
    std::fs::write(&other, genesis.to_string()).unwrap();
    import(&path, "other", &["--genesis", &other]).refused(&["the genesis file is of chain id 5"]);
    assert!(!data.path().join("other").exists());
}
