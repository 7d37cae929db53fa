//! The real binary over real chains: import, serve, export, and what must not be imported.
//!
//! The chains lie beside the repository; where they are absent the tests say so and pass. What is
//! expected comes from the files alone: by brute force over their receipts and traces, and from the
//! recorded answers of a node.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/account_lists.rs"]
#[allow(unreachable_pub, reason = "other test binaries share it")]
mod account_lists;
#[path = "support/binary.rs"]
mod binary;
#[path = "support/data.rs"]
#[allow(unreachable_pub, reason = "other test binaries share it")]
mod data;
#[path = "real_data/native.rs"]
mod native;
#[path = "real_data/rewards.rs"]
mod rewards;
#[path = "real_data/rpc.rs"]
mod rpc;
#[path = "support/uncles.rs"]
mod uncles;

use std::path::{Path, PathBuf};

use account_lists::check_account_lists;
use binary::{
    Model, Outcome, Recorded, Server, as_node, assert_like, check_all_logs, check_counts, check_proxy,
    check_times, list, number, quarry, text,
};
use data::shared;
use serde_json::{Value, json};

const EXECUTION_APIS: (&str, &str) = (
    "dev-chains/execution-apis/chain-complete.jsonl.zst",
    "dev-chains/execution-apis/tests/genesis.json",
);
const ETHTEST: (&str, &str) = (
    "dev-chains/geth-ethtest/chain-complete.jsonl.zst",
    "dev-chains/geth-ethtest/genesis.json",
);
const DEV_CHAIN_ID: u64 = 3_503_995_874_084_926;

/// What the recorded transactions of the development chains leave out and every node states; the values
/// are compared with the node's own answers in the `.io` files.
const LEFT_OUT: &[&str] = &["blockTimestamp"];

/// The lines of a recording.
fn lines(path: &Path) -> Vec<String> {
    let bytes = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
    String::from_utf8(bytes)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

fn recorded(lines: &[String]) -> Vec<Recorded> {
    let read = |line: &String| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let mut take = |key: &str| serde_json::from_value::<Option<Vec<Value>>>(line[key].take()).unwrap();
        let (receipts, traces) = (take("receipts").unwrap_or_default(), take("traces"));
        Recorded {
            block: line["block"].take(),
            receipts,
            traces,
        }
    };
    lines.iter().map(read).collect()
}

/// Block 0 as the genesis file and the node's answers have it, as far as the model looks at it.
fn with_genesis(genesis: &Path, mut blocks: Vec<Recorded>) -> Vec<Recorded> {
    let file: Value = serde_json::from_slice(&std::fs::read(genesis).unwrap()).unwrap();
    let block = json!({
        "number": "0x0",
        "timestamp": file["timestamp"],
        "hash": blocks[0].block["parentHash"],
        "transactions": [],
    });
    blocks.insert(
        0,
        Recorded {
            block,
            receipts: Vec::new(),
            traces: Some(Vec::new()),
        },
    );
    blocks
}

fn write(directory: &Path, name: &str, lines: &[String]) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(
        &path,
        lines.iter().map(|line| format!("{line}\n")).collect::<String>(),
    )
    .unwrap();
    path
}

fn import(file: &Path, data_dir: &Path, more: &[&str]) -> Outcome {
    let mut args = vec![
        "import",
        "chain",
        file.to_str().unwrap(),
        "--data-dir",
        data_dir.to_str().unwrap(),
    ];
    args.extend_from_slice(more);
    quarry(args)
}

fn serve(data_dir: &Path) -> Server {
    Server::start(["serve", "--data-dir", data_dir.to_str().unwrap()])
}

/// The digest over all that is stored.
#[track_caller]
fn digest(data_dir: &Path) -> String {
    let inspected = quarry(["inspect", "--full", "--data-dir", data_dir.to_str().unwrap()]).succeeded();
    let line = inspected.stdout.lines().find(|line| line.starts_with("digest "));
    line.unwrap_or_else(|| panic!("no digest: {inspected:?}"))
        .to_owned()
}

/// The development chain imported into a fresh store.
struct Imported {
    directory: tempfile::TempDir,
    lines: Vec<String>,
    genesis: PathBuf,
}

impl Imported {
    fn new((chain, genesis): (&str, &str), summary: &str) -> Option<Self> {
        let (file, genesis) = (shared(chain)?, shared(genesis)?);
        let directory = tempfile::tempdir().unwrap();
        let lines = lines(&file);
        let done = import(&file, directory.path(), &["--genesis", genesis.to_str().unwrap()]).succeeded();
        assert!(done.stdout.contains(summary), "{done:?}");
        Some(Self {
            directory,
            lines,
            genesis,
        })
    }

    /// The same, whose model has what the recording leaves out of the receipts of blob transactions and every node
    /// states of them.
    fn with_blob_gas((chain, genesis): (&str, &str), summary: &str) -> Option<Self> {
        let (file, genesis) = (shared(chain)?, shared(genesis)?);
        let directory = tempfile::tempdir().unwrap();
        let plain = lines(&file);
        let imported = Self {
            directory,
            lines: plain.iter().map(|line| altered(line, add_blob_gas)).collect(),
            genesis,
        };
        let done = imported.import(&plain, imported.path(), &[]).succeeded();
        assert!(done.stdout.contains(summary), "{done:?}");
        Some(imported)
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn model(&self) -> Model {
        Model::new(
            "mainnet",
            DEV_CHAIN_ID,
            with_genesis(&self.genesis, recorded(&self.lines)),
        )
    }

    /// Imports these lines with the chain's genesis file.
    fn import(&self, lines: &[String], data_dir: &Path, more: &[&str]) -> Outcome {
        let scratch = tempfile::tempdir().unwrap();
        let file = write(scratch.path(), "chain.jsonl", lines);
        let mut args = vec!["--genesis", self.genesis.to_str().unwrap()];
        args.extend_from_slice(more);
        import(&file, data_dir, &args)
    }
}

fn add_blob_gas(line: &mut Value) {
    let transactions = list(&line["block"]["transactions"]).to_vec();
    let no_excess = line["block"]["excessBlobGas"] == "0x0";
    let receipts = line["receipts"].as_array_mut().unwrap();
    for (transaction, receipt) in transactions.iter().zip(receipts) {
        if let Some(blobs) = transaction["blobVersionedHashes"].as_array() {
            // EIP-4844: without excess the price is the least there is.
            assert!(no_excess, "{transaction}");
            receipt["blobGasPrice"] = "0x1".into();
            receipt["blobGasUsed"] = format!("0x{:x}", 0x20000 * blobs.len()).into();
        }
    }
}

/// A genesis file that was forgotten is given with the next try, from the flag or the file of settings.
#[test]
fn an_import_that_failed_for_want_of_a_genesis_file_leaves_nothing_behind() {
    let (Some(chain), Some(genesis)) = (shared(EXECUTION_APIS.0), shared(EXECUTION_APIS.1)) else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let [whole, again, by_file] = ["whole", "again", "by-file"].map(|name| home.path().join(name));
    let given = ["--genesis", genesis.to_str().unwrap()];
    import(&chain, &whole, &given).succeeded();
    import(&chain, &again, &[]).refused(&["block 1 does not verify"]);
    import(&chain, &again, &given).succeeded();
    let settings = home.path().join("quarry.toml");
    std::fs::write(&settings, format!("[mainnet]\ngenesis = {genesis:?}\n")).unwrap();
    import(&chain, &by_file, &["--config", settings.to_str().unwrap()]).succeeded();
    assert_eq!(digest(&again), digest(&whole));
    assert_eq!(digest(&by_file), digest(&whole));
}

/// The model without the made-up block 0, for what needs whole blocks.
fn without_genesis(mut model: Model) -> Model {
    model.blocks.remove(0);
    model
}

#[test]
fn execution_apis_chain_is_served_as_its_node_tells_it() {
    let Some(chain) = Imported::with_blob_gas(
        EXECUTION_APIS,
        "55 blocks with 249 transactions and 383 logs stored",
    ) else {
        return;
    };
    let server = serve(chain.path());
    check_answers(&server, &chain);
    rpc::check_exchanges(&server);
    rpc::check_uncles(&server, &chain);
    let model = chain.model();
    check_times(&server, &model);
    check_counts(&server, &model);
    check_all_logs(&server, &model, 200, 1);
    check_nonces(&server, &chain);
    check_proxy(&server, &without_genesis(model), LEFT_OUT);
    server.stop();
}

/// The only exceptions. These three receipts are from before Byzantium. The node states the state root
/// after the transaction (`root`); the recording was made by executing the chain anew and states the
/// outcome (`status`) instead, so that is what can be served.
const RE_EXECUTED: [(&str, &str); 3] = [
    ("eth_getTransactionReceipt", "get-legacy-contract.io"),
    ("eth_getTransactionReceipt", "get-legacy-input.io"),
    ("eth_getTransactionReceipt", "get-legacy-receipt.io"),
];

/// Takes away what stands for one another in such a receipt: the node's `root`, and our `status`.
fn take_outcomes(file: &str, expected: &mut Value, found: &mut Value) {
    let outcome = |receipt: &mut Value| {
        let fields = receipt.as_object_mut().unwrap();
        (fields.remove("root"), fields.remove("status"))
    };
    let (theirs, ours) = (outcome(expected), outcome(found));
    assert!(theirs.0.is_some() && theirs.1.is_none(), "{file}");
    assert_eq!(ours, (None, Some(json!("0x1"))), "{file}");
}

/// Each `.io` file of a proxy action, and of eth_getLogs.
fn check_answers(server: &Server, chain: &Imported) {
    const PROXY: [(&str, &[&str]); 7] = [
        ("eth_blockNumber", &[]),
        ("eth_getBlockByNumber", &["tag", "boolean"]),
        ("eth_getBlockTransactionCountByNumber", &["tag"]),
        ("eth_getTransactionByHash", &["txhash"]),
        ("eth_getTransactionByBlockNumberAndIndex", &["tag", "index"]),
        ("eth_getTransactionCount", &["address", "tag"]),
        ("eth_getTransactionReceipt", &["txhash"]),
    ];
    let mut asked = 0;
    for (method, names) in PROXY {
        for (file, request, answer) in exchanges(method) {
            let no_params = Vec::new();
            let params = request["params"].as_array().unwrap_or(&no_params);
            let mut query = format!("action={method}");
            for (name, value) in names.iter().zip(params) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                query.push_str(&format!("&{name}={value}"));
            }
            let (mut expected, mut found) = (answer["result"].clone(), server.proxy(&query));
            if RE_EXECUTED.contains(&(method, file.as_str())) {
                take_outcomes(&file, &mut expected, &mut found);
            }
            // To the last field, both ways.
            assert_like(&file, &expected, &found, &[]);
            asked += 1;
        }
    }
    assert_eq!(asked, 36, "the .io files of the seven actions");

    let model = chain.model();
    for (file, request, answer) in exchanges("eth_getLogs") {
        let filter = &request["params"][0];
        let Some(expected) = answer["result"].as_array() else {
            // Both ends given, the wrong way round: as much an error here as there. The other two are
            // about an end above the head (here that means `latest`) and about a block hash.
            if file == "filter-error-reversed-block-range.io" {
                let (from, to) = (number(&filter["fromBlock"]), number(&filter["toBlock"]));
                let address = &model.logs[0].address;
                let target = format!("/api/logs/get-logs?address={address}&fromblock={from}&toblock={to}");
                server.assert_error(&target, 400, "Invalid block range");
            }
            continue;
        };
        // get-logs knows no block hashes: the number is asked for instead.
        let range = match filter["blockHash"].as_str() {
            Some(hash) => {
                let block = model
                    .blocks
                    .iter()
                    .find(|recorded| recorded.block["hash"] == hash)
                    .unwrap();
                let at = number(&block.block["number"]);
                (at, at)
            }
            None => (number(&filter["fromBlock"]), number(&filter["toBlock"])),
        };
        let mut question = binary::Filter {
            from: Some(range.0),
            to: Some(range.1),
            ..Default::default()
        };
        question.address = filter["address"][0].as_str().map(str::to_owned);
        for (place, topic) in filter["topics"].as_array().into_iter().flatten().enumerate() {
            let values = topic
                .as_array()
                .into_iter()
                .flatten()
                .chain(topic.is_string().then_some(topic));
            question.topics[place] = values.map(|value| text(value).to_owned()).collect();
        }
        if question.address.is_none() && question.topics.iter().all(Vec::is_empty) {
            // Neither address nor topic: not a question here. The block's logs are all of one contract.
            question.address = Some(text(&expected[0]["address"]).to_owned());
        }
        let found = server.json(&question.target("mainnet"));
        let shown: Vec<Value> = list(&found["logs"]).iter().map(as_node).collect();
        assert_like(&file, &answer["result"], &shown.into(), &[]);
        assert_ne!(expected.len(), 0, "{file}");
    }
}

/// (file, request, answer) of each `.io` file of a method.
fn exchanges(method: &str) -> Vec<(String, Value, Value)> {
    let folder = shared(&format!("dev-chains/execution-apis/tests/{method}")).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let content = std::fs::read_to_string(&path).unwrap();
        let part = |mark: &str| {
            let line = content.lines().find_map(|line| line.strip_prefix(mark)).unwrap();
            serde_json::from_str(line).unwrap()
        };
        (
            path.file_name().unwrap().to_string_lossy().into_owned(),
            part(">>"),
            part("<<"),
        )
    };
    files.into_iter().map(read).collect()
}

/// eth_getTransactionCount of every account that a block touched, after that block and just before it.
fn check_nonces(server: &Server, chain: &Imported) {
    let genesis: Value = serde_json::from_slice(&std::fs::read(&chain.genesis).unwrap()).unwrap();
    let mut nonces: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for (address, account) in genesis["alloc"].as_object().unwrap() {
        let address = format!("0x{}", address.trim_start_matches("0x").to_lowercase());
        nonces.insert(address, account.get("nonce").map_or(0, number));
    }
    let ask = |address: &str, tag: &str| {
        number(&server.proxy(&format!(
            "action=eth_getTransactionCount&address={address}&tag={tag}"
        )))
    };
    for (address, nonce) in &nonces {
        assert_eq!(ask(address, "0x0"), *nonce, "{address} in block 0");
    }
    let mut asked = 0;
    for line in &chain.lines {
        let line: Value = serde_json::from_str(line).unwrap();
        let at = number(&line["number"]);
        for (address, account) in line["accountsChanged"].as_object().unwrap() {
            // `null` is an account that is no more.
            let nonce = account.get("nonce").map_or(0, number);
            let before = nonces.insert(address.clone(), nonce).unwrap_or(0);
            assert_eq!(
                ask(address, &format!("0x{at:x}")),
                nonce,
                "{address} after block {at}"
            );
            assert_eq!(
                ask(address, &format!("0x{:x}", at - 1)),
                before,
                "{address} before block {at}"
            );
            asked += 1;
        }
    }
    for (address, nonce) in &nonces {
        assert_eq!(ask(address, "latest"), *nonce, "{address}");
    }
    assert!(asked > 150, "{asked}");
}

#[test]
fn ethtest_chain_is_served_as_its_receipts_and_traces_have_it() {
    let Some(chain) =
        Imported::with_blob_gas(ETHTEST, "601 blocks with 603 transactions and 813 logs stored")
    else {
        return;
    };
    let server = serve(chain.path());
    let model = chain.model();
    let failed = model
        .transactions()
        .filter(|(_, _, receipt)| receipt["status"] == "0x0")
        .count();
    assert_eq!((model.logs.len(), failed), (813, 10));
    check_times(&server, &model);
    check_counts(&server, &model);
    check_all_logs(&server, &model, 400, 2);
    let state: Value = serde_json::from_slice(
        &std::fs::read(shared("dev-chains/geth-ethtest/head-state.json").unwrap()).unwrap(),
    )
    .unwrap();
    let mut accounts = 0;
    for (address, account) in state.get("accounts").unwrap_or(&state).as_object().unwrap() {
        if !address.starts_with("0x") || address.len() != 42 {
            continue;
        }
        let found = server.proxy(&format!("action=eth_getTransactionCount&address={address}"));
        assert_eq!(
            number(&found),
            account.get("nonce").map_or(0, number),
            "{address}"
        );
        accounts += 1;
    }
    assert!(accounts > 100, "{accounts}");
    check_proxy(&server, &without_genesis(model), LEFT_OUT);
    server.stop();
}

#[test]
fn what_is_exported_imports_to_the_same_bytes() {
    for (chain, summary) in [(EXECUTION_APIS, "55 blocks"), (ETHTEST, "601 blocks")] {
        let Some(chain) = Imported::new(chain, summary) else {
            return;
        };
        let expected = digest(chain.path());
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("export.jsonl.zst");
        let export = [
            "export",
            "chain",
            file.to_str().unwrap(),
            "--data-dir",
            chain.path().to_str().unwrap(),
        ];
        quarry(export).succeeded();
        quarry(export).refused(&["export.jsonl.zst"]);
        let genesis = chain.genesis.to_str().unwrap();
        let again = scratch.path().join("again");
        import(&file, &again, &["--genesis", genesis]).succeeded();
        assert_eq!(digest(&again), expected);
        // The export holds block 0, but neither the genesis accounts nor the fork schedule.
        assert_eq!(lines(&file).len(), chain.lines.len() + 1);

        // In parts, the second of which goes on where the first ends.
        let parts = scratch.path().join("parts");
        let split = (chain.lines.len() / 2).to_string();
        for (name, from, to) in [("a.zst", "0", split.as_str()), ("b.zst", split.as_str(), "")] {
            let file = scratch.path().join(name);
            let mut args = vec!["export", "chain", file.to_str().unwrap(), "--from", from];
            args.extend(["--data-dir", chain.path().to_str().unwrap()]);
            if !to.is_empty() {
                args.extend(["--to", to]);
            }
            quarry(args).succeeded();
            import(&file, &parts, &["--genesis", genesis]).succeeded();
        }
        assert_eq!(digest(&parts), expected);
    }
}

#[test]
fn importing_again_adds_nothing() {
    let Some(chain) = Imported::new(ETHTEST, "601 blocks added") else {
        return;
    };
    let before = digest(chain.path());
    for genesis in [true, false] {
        let mut more = Vec::new();
        if genesis {
            more = vec!["--genesis", chain.genesis.to_str().unwrap()];
        }
        let file = shared(ETHTEST.0).unwrap();
        let again = import(&file, chain.path(), &more).succeeded();
        assert!(again.stdout.contains("mainnet: 0 blocks added"), "{again:?}");
        assert_eq!(digest(chain.path()), before);
    }
}

/// A line with changes in its JSON.
fn altered(line: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(line).unwrap();
    change(&mut value);
    value.to_string()
}

/// The line as a block of another branch: another hash, and the parent given.
fn of_another_branch(line: &str, parent: &str) -> String {
    let hash = serde_json::from_str::<Value>(line).unwrap()["block"]["hash"]
        .as_str()
        .unwrap()
        .to_owned();
    altered(&line.replace(&hash, &format!("0xbad0{}", &hash[6..])), |line| {
        line["block"]["parentHash"] = parent.into();
    })
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let Some(chain) = Imported::new(ETHTEST, "601 blocks added") else {
        return;
    };
    let before = digest(chain.path());
    let store = chain.path();
    let unchanged = |outcome: Outcome, words: &[&str]| {
        outcome.refused(words);
        assert_eq!(digest(store), before);
    };

    // Another branch, within what is stored and just above it.
    let mut branch = chain.lines.clone();
    branch[299] = of_another_branch(&branch[299], "0xbad0");
    branch[299] = branch[299].replace("\"0xbad0\"", &format!("\"0x{}\"", "ab".repeat(32)));
    unchanged(
        chain.import(&branch, store, &[]),
        &["block 300", "another chain or branch"],
    );
    let next = altered(&chain.lines[599], |line| {
        line["block"]["number"] = "0x259".into();
        line["number"] = 601.into();
        let transactions = line["block"]["transactions"].as_array_mut().unwrap();
        for entry in transactions {
            entry["blockNumber"] = "0x259".into();
        }
        for receipt in line["receipts"].as_array_mut().unwrap() {
            receipt["blockNumber"] = "0x259".into();
            for log in receipt["logs"].as_array_mut().unwrap() {
                log["blockNumber"] = "0x259".into();
            }
        }
        for trace in line["traces"].as_array_mut().unwrap() {
            trace["blockNumber"] = 601.into();
        }
    });
    unchanged(
        chain.import(std::slice::from_ref(&next), store, &["--trust-node"]),
        &["block 601", "parent"],
    );

    // A gap between the store and the recording.
    let later = next.replace("0x259", "0x2bc").replace(":601", ":700");
    unchanged(
        chain.import(&[later], store, &["--trust-node"]),
        &["block 700", "block 601", "import the part between"],
    );

    // Another chain.
    if let (Some(file), Some(genesis)) = (shared(EXECUTION_APIS.0), shared(EXECUTION_APIS.1)) {
        let genesis = genesis.to_str().unwrap();
        unchanged(import(&file, store, &["--genesis", genesis]), &["genesis"]);
    }

    // Files that are not recordings.
    let scratch = tempfile::tempdir().unwrap();
    let noise = scratch.path().join("noise");
    std::fs::write(&noise, "nothing of the kind\n").unwrap();
    unchanged(import(&noise, store, &[]), &["line 1"]);
    unchanged(
        import(&scratch.path().join("absent"), store, &[]),
        &["cannot open", "absent"],
    );

    // Truncated: within what is stored it adds nothing.
    let whole = std::fs::read(shared(ETHTEST.0).unwrap()).unwrap();
    let half = scratch.path().join("half.zst");
    std::fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    unchanged(
        import(&half, store, &["--genesis", chain.genesis.to_str().unwrap()]),
        &["line"],
    );

    // And the store answers as ever.
    let server = serve(store);
    check_counts(&server, &chain.model());
}

/// Into a fresh store: all that comes before the fault is kept, byte for byte as if it had been all,
/// and a good file goes on from there.
#[test]
fn a_fault_in_a_recording_keeps_what_was_before_it() {
    let Some(chain) = Imported::new(ETHTEST, "601 blocks added") else {
        return;
    };
    let expected = digest(chain.path());
    let with_logs = |line: &String| line.contains("\"logIndex\"");
    let at = (300..600).find(|at| with_logs(&chain.lines[*at])).unwrap();
    let block = format!("block {}", at + 1);
    let flip = |value: &mut Value| {
        let digit = value.as_str().unwrap();
        let last = if digit.ends_with('0') { "1" } else { "0" };
        *value = format!("{}{last}", &digit[..digit.len() - 1]).into();
    };
    let with_log = |line: &mut Value, key: &str| {
        let receipts = line["receipts"].as_array_mut().unwrap();
        let receipt = receipts
            .iter_mut()
            .find(|receipt| receipt["logs"].get(0).is_some())
            .unwrap();
        flip(&mut receipt["logs"][0][key]);
    };
    let damaged: Vec<(&str, String, Vec<&str>)> = vec![
        (
            "log address",
            altered(&chain.lines[at], |line| with_log(line, "address")),
            vec![&block, "does not verify"],
        ),
        (
            "log data",
            altered(&chain.lines[at], |line| {
                let receipts = line["receipts"].as_array_mut().unwrap();
                let receipt = receipts
                    .iter_mut()
                    .find(|receipt| receipt["logs"].get(0).is_some())
                    .unwrap();
                let data = &mut receipt["logs"][0]["data"];
                *data = format!("{}00", data.as_str().unwrap()).into();
            }),
            vec![&block, "does not verify"],
        ),
        (
            "state root",
            altered(&chain.lines[at], |line| flip(&mut line["block"]["stateRoot"])),
            vec![&block, "does not verify"],
        ),
        (
            "value",
            altered(&chain.lines[at], |line| {
                flip(&mut line["block"]["transactions"][0]["gas"])
            }),
            vec![&block, "does not verify"],
        ),
        (
            "half a line",
            chain.lines[at][..chain.lines[at].len() / 2].to_owned(),
            vec!["line"],
        ),
        ("a block left out", String::new(), vec!["block"]),
    ];
    let mut prefix = None;
    for (what, line, words) in damaged {
        println!("{what}");
        let directory = tempfile::tempdir().unwrap();
        let mut lines = chain.lines.clone();
        lines[at] = line;
        chain.import(&lines, directory.path(), &[]).refused(&words);
        let kept = digest(directory.path());
        let prefix = prefix.get_or_insert_with(|| {
            let directory = tempfile::tempdir().unwrap();
            chain
                .import(&chain.lines[..at], directory.path(), &[])
                .succeeded();
            digest(directory.path())
        });
        assert_eq!(kept, *prefix, "{what}");
        let server = serve(directory.path());
        assert_eq!(
            server.proxy("action=eth_blockNumber"),
            format!("0x{at:x}"),
            "{what}"
        );
        drop(server);
        chain.import(&chain.lines, directory.path(), &[]).succeeded();
        assert_eq!(digest(directory.path()), expected, "{what}");
    }

    // A file that was cut off in the middle of a zstd frame.
    let whole = std::fs::read(shared(ETHTEST.0).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let half = directory.path().join("half.zst");
    std::fs::write(&half, &whole[..whole.len() * 2 / 3]).unwrap();
    let store = directory.path().join("store");
    import(&half, &store, &["--genesis", chain.genesis.to_str().unwrap()]).refused(&["recorded chain line"]);
    chain.import(&chain.lines, &store, &[]).succeeded();
    assert_eq!(digest(&store), expected);
}

#[test]
fn mainnet_ranges_import_from_their_first_block() {
    let Some(file) = shared("mainnet-blocks/complete.jsonl.zst") else {
        return;
    };
    let all = lines(&file);
    for (first, last, traced) in [(14_000_000, 14_000_021, false), (15_000_001, 15_000_015, true)] {
        let number_of =
            |line: &String| number(&serde_json::from_str::<Value>(line).unwrap()["block"]["number"]);
        let range: Vec<String> = all
            .iter()
            .filter(|line| (first..=last).contains(&number_of(line)))
            .cloned()
            .collect();
        let model = Model::new("mainnet", 1, recorded(&range));
        assert_eq!(model.blocks.len() as u64, last - first + 1);
        assert_eq!(model.blocks[0].traces.is_some(), traced);
        let directory = tempfile::tempdir().unwrap();
        let file = write(directory.path(), "range.jsonl", &range);
        let store = directory.path().join("store");
        let done = import(&file, &store, &["--chain-id", "1"]).succeeded();
        assert!(
            done.stdout.contains(&format!("{} blocks added", range.len())),
            "{done:?}"
        );
        let server = serve(&store);
        check_counts(&server, &model);
        check_all_logs(&server, &model, 150, first);
        check_account_lists(&server, &model, 40);
        check_proxy(&server, &model, &["blockTimestamp", "totalDifficulty"]);
        // The range begins in the middle: what lies before it is not known to be absent.
        server.assert_error(
            &format!("/api/block/{}/transaction-count", first - 1),
            503,
            "Data for the requested range is still being indexed",
        );
        // A nonce from the middle of a chain is known after the account's first transaction there.
        for (recorded, transaction, _) in model.transactions().step_by(7) {
            let sender = &transaction["from"];
            let sent = list(&recorded.block["transactions"])
                .iter()
                .filter(|other| other["from"] == *sender);
            let expected = sent.map(|other| number(&other["nonce"])).max().unwrap() + 1;
            let query = format!(
                "action=eth_getTransactionCount&address={}&tag=0x{:x}",
                text(sender),
                number(&recorded.block["number"])
            );
            assert_eq!(number(&server.proxy(&query)), expected, "{query}");
        }
        server.stop();
        let export = directory.path().join("export.zst");
        quarry([
            "export",
            "chain",
            export.to_str().unwrap(),
            "--data-dir",
            store.to_str().unwrap(),
        ])
        .succeeded();
        let again = directory.path().join("again");
        import(&export, &again, &["--chain-id", "1"]).succeeded();
        assert_eq!(digest(&again), digest(&store));
        // Another start for the same store is refused in words.
        import(&export, &again, &["--chain-id", "5"]).refused(&["chain"]);
    }
}

#[test]
fn every_mainnet_line_parses_and_verifies() {
    use quarry::node::recorded::{RecordedChain, parse_line};
    use quarry::sync::verify::{Rules, Verifier};
    let Some(file) = shared("mainnet-blocks/complete.jsonl.zst") else {
        return;
    };
    let genesis = "0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3";
    let mut verifier = Verifier::new(Rules::well_known(1, genesis.parse().unwrap()).unwrap());
    let (mut blocks, mut hash) = (0, None);
    for line in RecordedChain::open(file).unwrap() {
        let mut bundle = line.unwrap().parse().unwrap();
        let number = bundle.block.number();
        // Consecutive lines are checked as the child of the one before.
        let parent = hash
            .filter(|(before, _)| before + 1 == number)
            .map(|(_, hash)| hash);
        verifier
            .verify(&bundle, parent)
            .unwrap_or_else(|error| panic!("block {number}: {error}"));
        hash = Some((number, bundle.block.hash));
        blocks += 1;
        // What is exported is read as what was stored, what its node left out included.
        let mut exported = Vec::new();
        quarry::json::rpc::bundle(&mut exported, &bundle);
        let again = parse_line(&String::from_utf8(exported).unwrap()).unwrap();
        assert_eq!(again, bundle, "block {number}");
        // And what is wrong is found. Receipts are covered by their root from Byzantium on.
        if number >= 4_370_000
            && let Some(receipt) = bundle.receipts.first_mut()
        {
            receipt.status = receipt.status.map(|status| !status);
            assert!(
                verifier.verify(&bundle, parent).is_err(),
                "block {number}: a turned status passes"
            );
        }
    }
    assert_eq!(blocks, 119);
}

/// One block in a store of its own: its internal transactions and the outcomes of its transactions.
fn frames_and_statuses(bundle: &quarry::model::Bundle) -> (Vec<Value>, Vec<Value>) {
    use quarry::json::{UuidSpace, internal_transaction};
    use quarry::query::{ListQuery, Reader, TransactionStatus};
    use quarry::store::{OpenOptions, Store};
    use quarry::sync::derive::{NonceRules, derive};
    let (number, directory) = (bundle.block.number(), tempfile::tempdir().unwrap());
    let options = OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        ..OpenOptions::new(directory.path())
    };
    let store = Store::open_or_create(&options, 1, bundle.block.hash, Some(number)).unwrap();
    let mut writer = store.writer().unwrap();
    let mut batch = writer.batch();
    derive(bundle, &NonceRules::default(), &mut batch).unwrap();
    writer.commit_final(batch).unwrap();
    drop(writer);
    let reader = Reader::new(store.view());
    let query = ListQuery {
        first_block: number,
        last_block: number,
        limit: usize::MAX,
        ..ListQuery::default()
    };
    let (ids, mut room, mut frames) = (UuidSpace::new(1), String::new(), Vec::new());
    let mut page = reader.internal(true, &query).unwrap();
    page.visit(&mut |internal| {
        let mut out = Vec::new();
        internal_transaction(&mut out, &ids, &mut room, internal);
        frames.push(serde_json::from_slice(&out).unwrap());
        true
    })
    .unwrap();
    let status = |hash| match reader.transaction_status(&hash).unwrap() {
        TransactionStatus::Succeeded => json!(1),
        TransactionStatus::Failed => json!(0),
        other => panic!("{hash}: {other:?}"),
    };
    let transactions = &bundle.block.transactions;
    (
        frames,
        transactions
            .iter()
            .map(|transaction| status(transaction.hash))
            .collect(),
    )
}

/// A block without statuses says by its traces what became of its transactions, and what it lists does not depend
/// on the trace method: what is known of a frame is told by both.
#[test]
fn both_trace_methods_tell_the_same() {
    let Some(file) = shared("mainnet-blocks/complete.jsonl.zst") else {
        return;
    };
    let (mut traced, mut both, mut frames_seen, mut by_traces) = (0, 0, 0, 0);
    for line in lines(&file) {
        let mut line: Value = serde_json::from_str(&line).unwrap();
        let (has_traces, has_calls) = (!line["traces"].is_null(), !line["callTraces"].is_null());
        if !has_traces && !has_calls {
            continue;
        }
        let bundle = quarry::node::recorded::parse_line(&line.to_string()).unwrap();
        let number = bundle.block.number();
        let stated: Vec<Option<bool>> = bundle.receipts.iter().map(|receipt| receipt.status).collect();
        let mut without = bundle.clone();
        for receipt in &mut without.receipts {
            receipt.status = None;
        }
        let (frames, statuses) = frames_and_statuses(&without);
        traced += 1;
        frames_seen += frames.len();
        for (status, stated) in statuses.iter().zip(stated) {
            if let Some(stated) = stated {
                assert_eq!(*status, u8::from(stated), "block {number}");
                by_traces += 1;
            }
        }
        if has_traces && has_calls {
            line["traces"] = Value::Null;
            let by_calls = quarry::node::recorded::parse_line(&line.to_string()).unwrap();
            let mut other = without.clone();
            other.traces = by_calls.traces;
            let (calls, other_statuses) = frames_and_statuses(&other);
            assert_eq!(statuses, other_statuses, "block {number}");
            assert_eq!(frames.len(), calls.len(), "block {number}");
            for (frame, call) in frames.iter().zip(&calls) {
                assert_eq!(frame, call, "block {number}");
            }
            both += 1;
        }
    }
    println!("{traced} blocks, {both} by both methods, {frames_seen} frames, {by_traces} statuses by traces");
    assert!(traced >= 69 && frames_seen > 5_000 && by_traces > 2_000);
}

/// The first 16,383 lines hold whole headers and no transactions: they verify. The later ones lack
/// roots: without `--trust-node` they stop the import with a reason, with it they are taken.
#[test]
fn frontier_imports_as_far_as_it_can_be_trusted() {
    let Some(file) = shared("mainnet-frontier/blocks-000001-060000.jsonl.zst") else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let all = lines(&file);
    let (strict, trusting) = (directory.path().join("strict"), directory.path().join("trusting"));
    import(&file, &strict, &[]).refused(&["block 16384", "does not verify"]);
    let whole = write(directory.path(), "whole.jsonl", &all[..16_383]);
    let done = import(&whole, &trusting, &["--trust-node"]).succeeded();
    assert!(done.stdout.contains("16383 blocks added"), "{done:?}");
    assert_eq!(digest(&strict), digest(&trusting));
    let done = import(&file, &trusting, &["--trust-node"]).succeeded();
    assert!(done.stdout.contains("43617 blocks added"), "{done:?}");
    let mut model = Model::new("mainnet", 1, recorded(&all));
    let server = serve(&trusting);
    check_all_logs(&server, &model, 40, 3);
    let transactions = model.transactions().count();
    assert!(transactions > 5_000, "{transactions}");
    model
        .blocks
        .retain(|recorded| !list(&recorded.block["transactions"]).is_empty());
    check_counts(&server, &model);
    server.stop();
}
