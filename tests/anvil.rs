//! The real binary beside a real development node: what is served is what the node says, through new
//! blocks, reorgs, the node's death and our own.
//!
//! Skipped with a word where no anvil is installed (`QUARRY_ANVIL`, or `tools/setup.sh npm`).

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
#[path = "anvil/balances.rs"]
mod balances;
#[path = "anvil/bench.rs"]
mod bench;
#[path = "support/binary.rs"]
mod binary;
#[path = "anvil/clients.rs"]
mod clients;
#[path = "anvil/contracts.rs"]
mod contracts;
#[path = "anvil/days.rs"]
mod days;
#[path = "anvil/prices.rs"]
mod prices;
#[path = "anvil/rpc.rs"]
mod rpc;
#[path = "support/solc.rs"]
mod solc;
#[path = "anvil/sources.rs"]
mod sources;
#[path = "anvil/verdicts.rs"]
mod verdicts;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use binary::signal::{Signal, send};
use binary::{
    Filter, Model, Recorded, Reply, Server, as_node, assert_like, check_all_logs, check_counts, check_proxy,
    check_times, eventually, exchange, list, number, text,
};
use serde_json::{Value, json};

/// A new block is served this soon after the node has it.
const TIP: Duration = Duration::from_secs(5);
const SOON: Duration = Duration::from_secs(30);

/// The program: `QUARRY_ANVIL`, else the one that npm installs below `tools`.
fn program() -> Option<PathBuf> {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tools/node_modules/.bin/anvil");
    let named = std::env::var_os("QUARRY_ANVIL")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let found = named.or_else(|| installed.is_file().then_some(installed));
    if found.is_none() {
        crate::binary::skipped::skipped("no anvil (set QUARRY_ANVIL or run `tools/setup.sh npm`)");
    }
    found
}

/// A client of what listens on loopback: no proxy of the environment leads there.
fn direct(command: &mut Command) -> &mut Command {
    command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1")
}

/// A development node; ends with its guard.
struct Anvil {
    child: Child,
    address: String,
    connection: RefCell<Option<BufReader<std::net::TcpStream>>>,
    chain_id: u64,
    accounts: Vec<String>,
}

impl Drop for Anvil {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Anvil {
    fn start(chain_id: u64) -> Option<Self> {
        Self::start_with(chain_id, &[])
    }

    fn start_with(chain_id: u64, more: &[&str]) -> Option<Self> {
        let mut child = Command::new(program()?)
            .args(["--host", "127.0.0.1", "--port", "0", "--accounts", "5"])
            .args([
                "--mnemonic",
                "test test test test test test test test test test test junk",
            ])
            .args(["--chain-id", &chain_id.to_string()])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.strip_prefix("Listening on ")?.trim().to_owned()));
        // Read on, or the node would stop at a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let mut anvil = Self {
            child,
            address: address.expect("anvil says where it listens"),
            connection: RefCell::default(),
            chain_id,
            accounts: Vec::new(),
        };
        let accounts = anvil.ask("eth_accounts", json!([]));
        anvil.accounts = list(&accounts)
            .iter()
            .map(|account| text(account).to_owned())
            .collect();
        Some(anvil)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends a signal: STOP leaves connections open and answers nothing.
    fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    fn http(&self) -> String {
        format!("http://{}", self.address)
    }

    #[track_caller]
    fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nhost: node\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let reply: Reply = exchange(&self.address, &self.connection, request.as_bytes()).unwrap();
        let mut answer = reply.json();
        assert!(answer.get("error").is_none(), "{method} {params}: {answer}");
        answer["result"].take()
    }

    fn head(&self) -> u64 {
        number(&self.ask("eth_blockNumber", json!([])))
    }

    fn head_hash(&self) -> String {
        text(&self.ask("eth_getBlockByNumber", json!(["latest", false]))["hash"]).to_owned()
    }

    fn mine(&self, blocks: u64) {
        self.ask("anvil_mine", json!([format!("0x{blocks:x}"), "0x3"]));
    }

    /// Sends transactions that all end up in the next block.
    fn block_of(&self, transactions: impl IntoIterator<Item = Value>) {
        self.ask("evm_setAutomine", json!([false]));
        for transaction in transactions {
            self.ask("eth_sendTransaction", json!([transaction]));
        }
        self.ask("evm_mine", json!([]));
        self.ask("evm_setAutomine", json!([true]));
    }

    /// Everything the node says of its chain.
    fn model(&self, name: &'static str) -> Model {
        let block = |at: u64| {
            let tag = format!("0x{at:x}");
            let whole = |value: Value| list(&value).to_vec();
            let mut receipts = whole(self.ask("eth_getBlockReceipts", json!([tag])));
            for receipt in &mut receipts {
                // Anvil's own additions: neither is in the specification's receipt of a transaction without blobs.
                let receipt = receipt.as_object_mut().unwrap();
                receipt.remove("blockTimestamp");
                receipt.remove("blobGasPrice");
            }
            Recorded {
                block: self.ask("eth_getBlockByNumber", json!([tag, true])),
                receipts,
                traces: Some(whole(self.ask("trace_block", json!([tag])))),
            }
        };
        Model::new(name, self.chain_id, (0..=self.head()).map(block).collect())
    }
}

fn word(number: u64) -> String {
    format!("{number:064x}")
}

/// Code that takes words as input: `topics` topics, the data, the recipient of a call and its value,
/// and whether to revert. Logs the topics, then once more without the first one.
fn emitter(topics: usize) -> String {
    let load = |place: usize| format!("60{:02x}35", 32 * place);
    let log = |first: usize| {
        let topics_last_first: String = (first..topics).rev().map(load).collect();
        format!("{topics_last_first}60206000a{:x}", topics - first)
    };
    let mut code = format!("{}600052{}", load(topics), log(0));
    if topics > 0 {
        code.push_str(&log(1));
    }
    let (to, value, revert) = (load(topics + 1), load(topics + 2), load(topics + 3));
    // call(gas, to, value, 0, 0, 0, 0), then stop or revert.
    code.push_str(&format!("6000600060006000{value}{to}5af150{revert}"));
    let target = code.len() / 2 + 5;
    code.push_str(&format!("61{target:04x}57005b60006000fd"));
    // Copies what follows its own 13 bytes and returns it.
    format!("0x61{:04x}8061000d6000396000f3{code}", code.len() / 2)
}

/// A chain with a bit of everything, the same for the same seed.
struct Scenario<'a> {
    anvil: &'a Anvil,
    random: fastrand::Rng,
    emitters: Vec<String>,
}

impl<'a> Scenario<'a> {
    fn new(anvil: &'a Anvil, seed: u64) -> Self {
        let from = &anvil.accounts[0];
        anvil.block_of(
            (0..=4).map(|topics| json!({"from": from, "data": emitter(topics), "gas": "0x100000"})),
        );
        let receipts = anvil.ask("eth_getBlockReceipts", json!(["latest"]));
        let deployed = |receipt: &Value| {
            assert_eq!(receipt["status"], "0x1", "{receipt}");
            text(&receipt["contractAddress"]).to_owned()
        };
        let emitters: Vec<String> = list(&receipts).iter().map(deployed).collect();
        assert_eq!(emitters.len(), 5);
        Self {
            anvil,
            random: fastrand::Rng::with_seed(seed),
            emitters,
        }
    }

    fn transaction(&mut self) -> Value {
        let random = &mut self.random;
        let from = self.anvil.accounts[random.usize(..4)].clone();
        let mut transaction =
            json!({"from": from, "gas": "0x60000", "value": format!("0x{:x}", random.u8(..9))});
        match random.u8(..10) {
            // Plain value.
            0 => transaction["to"] = self.anvil.accounts[random.usize(..5)].clone().into(),
            // A creation that creates, calls and destroys itself.
            1 => {
                transaction["data"] = "0x600060006000f050600060006000600060016110015af15061100eff".into();
                transaction["value"] = "0x9".into();
            }
            _ => {
                let topics = random.usize(..5);
                let mut input: String = (0..topics)
                    .map(|place| word(random.u64(..4) + place as u64))
                    .collect();
                input.push_str(&word(random.u64(..)));
                input.push_str(&word(0x1000 + random.u64(..4)));
                input.push_str(&word(random.u64(..2)));
                input.push_str(&word(u64::from(random.u8(..8) == 0)));
                transaction["to"] = self.emitters[topics].clone().into();
                transaction["data"] = format!("0x{input}").into();
                transaction["value"] = "0x5".into();
            }
        }
        match random.u8(..5) {
            0 => transaction["gasPrice"] = "0x77359400".into(),
            1 => {
                transaction["gasPrice"] = "0x77359400".into();
                transaction["accessList"] =
                    json!([{"address": self.emitters[1], "storageKeys": [format!("0x{}", word(7))]}]);
            }
            2 if transaction.get("to").is_some() => {
                // Any signature is somebody's: mostly an authority that nobody has heard of.
                let mut half =
                    || format!("0x{}{}", word(random.u64(1..)), word(random.u64(1..)))[..66].to_owned();
                transaction["maxFeePerGas"] = "0x77359400".into();
                transaction["maxPriorityFeePerGas"] = "0x1".into();
                transaction["authorizationList"] = json!([{
                    "chainId": format!("0x{:x}", self.anvil.chain_id), "address": self.emitters[0], "nonce": "0x0",
                    "yParity": "0x0", "r": half(), "s": half(),
                }]);
            }
            _ => {
                transaction["maxFeePerGas"] = "0x77359400".into();
                transaction["maxPriorityFeePerGas"] = "0x3".into();
            }
        }
        transaction
    }

    fn blocks(&mut self, count: u64) {
        for _ in 0..count {
            let transactions = match self.random.u8(..4) {
                0 => 0,
                1 => 1,
                2 => 2,
                _ => 5,
            };
            let transactions: Vec<Value> = (0..transactions).map(|_| self.transaction()).collect();
            self.anvil.block_of(transactions);
        }
    }
}

fn status(server: &Server, chain: &str) -> Value {
    server.json("/status")["chains"][chain].take()
}

/// Waits until the node's head is what is served.
#[track_caller]
fn caught_up(server: &Server, anvil: &Anvil, chain: &str, patience: Duration) -> Duration {
    let began = Instant::now();
    let hash = anvil.head_hash();
    eventually("the node's head is served", patience, || {
        (status(server, chain)["indexedHash"] == hash.as_str()).then_some(())
    });
    began.elapsed()
}

/// Every operation about every block and transaction, against the node's own words.
#[track_caller]
fn compare(server: &Server, anvil: &Anvil, chain: &'static str, expressions: usize, seed: u64) -> Model {
    let model = anvil.model(chain);
    let head = format!("0x{:x}", anvil.head());
    assert_eq!(
        server.proxy(&format!("chain={chain}&action=eth_blockNumber")),
        head.as_str()
    );
    for tag in ["latest", "earliest", "safe", "finalized"] {
        let expected = anvil.ask("eth_getBlockByNumber", json!([tag, true]));
        let found = server.proxy(&format!(
            "chain={chain}&action=eth_getBlockByNumber&boolean=true&tag={tag}"
        ));
        assert_like(tag, &expected, &found, &[]);
    }
    check_proxy(server, &model, &[]);
    check_counts(server, &model);
    check_times(server, &model);
    check_all_logs(server, &model, expressions, seed);
    compare_logs(server, anvil, &model);
    compare_nonces(server, anvil, &model);
    balances::compare(server, anvil, &model);
    account_lists::check_account_lists(server, &model, 20);
    model
}

/// get-logs and eth_getLogs, for what both can be asked.
fn compare_logs(server: &Server, anvil: &Anvil, model: &Model) {
    let addresses: BTreeSet<_> = model.logs.iter().map(|log| log.address.clone()).collect();
    let topics: BTreeSet<_> = model
        .logs
        .iter()
        .flat_map(|log| log.topics.iter().cloned().enumerate())
        .collect();
    let head = anvil.head();
    let mut filters = Vec::new();
    for address in addresses {
        filters.push(Filter {
            address: Some(address.clone()),
            ..Filter::default()
        });
        for (place, topic) in &topics {
            let mut filter = Filter {
                from: Some(head / 3),
                to: Some(head - 2),
                ..Filter::default()
            };
            filter.topics[*place].push(topic.clone());
            filters.push(filter.clone());
            filter.address = Some(address.clone());
            filters.push(filter);
        }
    }
    for filter in filters {
        let topics: Vec<Value> = filter
            .topics
            .iter()
            .map(|values| values.first().map_or(Value::Null, |topic| json!(topic)))
            .collect();
        let mut question = json!({
            "fromBlock": format!("0x{:x}", filter.from.unwrap_or(0)),
            "toBlock": format!("0x{:x}", filter.to.unwrap_or(head)),
            "topics": topics,
        });
        // Trailing `null`s would ask for logs with that many topics, to some nodes.
        let last = topics
            .iter()
            .rposition(|topic| !topic.is_null())
            .map_or(0, |place| place + 1);
        question["topics"].as_array_mut().unwrap().truncate(last);
        if let Some(address) = &filter.address {
            question["address"] = address.clone().into();
        }
        let expected = anvil.ask("eth_getLogs", json!([question]));
        let found = server.json(&filter.target(model.name));
        let found: Vec<Value> = list(&found["logs"]).iter().map(as_node).collect();
        assert_like(&format!("{filter:?}"), &expected, &found.into(), &[]);
    }
}

/// Nonces of all who sent, received or were created, now and then.
fn compare_nonces(server: &Server, anvil: &Anvil, model: &Model) {
    let mut accounts: BTreeSet<String> = anvil.accounts.iter().cloned().collect();
    for recorded in &model.blocks {
        for trace in recorded.traces.iter().flatten() {
            let places = [
                &trace["action"]["to"],
                &trace["action"]["from"],
                &trace["result"]["address"],
            ];
            accounts.extend(places.into_iter().filter_map(Value::as_str).map(str::to_owned));
        }
    }
    let head = anvil.head();
    for (turn, account) in accounts.iter().enumerate() {
        for block in [0, head / 3, head - turn as u64 % 5, head] {
            let tag = format!("0x{block:x}");
            let expected = anvil.ask("eth_getTransactionCount", json!([account, tag]));
            let query = format!(
                "chain={}&action=eth_getTransactionCount&address={account}&tag={tag}",
                model.name
            );
            assert_eq!(server.proxy(&query), expected, "{query}");
        }
    }
    for account in &anvil.accounts[..4] {
        let target = format!(
            "/api/proxy?chain={}&action=eth_getTransactionCount&address={account}",
            model.name
        );
        assert_eq!(
            server.get(&target).header("x-nonce-source"),
            Some("ledger"),
            "{target}"
        );
    }
}

fn ready(server: &Server) {
    eventually("/ready says 200", SOON, || {
        (server.get("/ready").status == 200).then_some(())
    });
}

#[test]
fn what_the_node_says_is_served_through_its_reorgs_and_its_death() {
    let Some(anvil) = Anvil::start(31_337) else { return };
    let mut scenario = Scenario::new(&anvil, 1);
    scenario.blocks(60);
    anvil.mine(70);
    scenario.blocks(60);
    let directory = tempfile::tempdir().unwrap();
    let url = anvil.http();
    let args = [
        "run",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        directory.path().to_str().unwrap(),
    ];
    let server = Server::start(args);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    let model = compare(&server, &anvil, "mainnet", 200, 1);
    let kinds: BTreeSet<_> = model
        .transactions()
        .map(|(_, transaction, _)| text(&transaction["type"]).to_owned())
        .collect();
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["0x0", "0x1", "0x2", "0x4"]
    );
    assert!(model.logs.len() > 200, "{}", model.logs.len());
    server.assert_error(
        "/api/logs/get-logs?chain=testnet&address=0x0000000000000000000000000000000000001000",
        503,
        "Chain testnet is not configured",
    );

    // The tip.
    for _ in 0..3 {
        scenario.blocks(1);
        let took = caught_up(&server, &anvil, "mainnet", TIP);
        println!("a new block was served after {took:?}");
    }
    // Reorgs, of which the last one leaves the chain shorter than it was until it grows again.
    let mut reorgs = 0;
    for depth in [1, 3, 7] {
        let left = anvil.model("mainnet");
        anvil.ask("anvil_reorg", json!([depth, []]));
        scenario.blocks(2);
        caught_up(&server, &anvil, "mainnet", SOON);
        reorgs += 1;
        assert_eq!(status(&server, "mainnet")["reorgs"], reorgs);
        let model = compare(&server, &anvil, "mainnet", 20, depth);
        check_gone(&server, &left, &model);
    }
    let snapshot = anvil.ask("evm_snapshot", json!([]));
    scenario.blocks(4);
    caught_up(&server, &anvil, "mainnet", SOON);
    let left = anvil.model("mainnet");
    assert_eq!(anvil.ask("evm_revert", json!([snapshot])), true);
    anvil.ask("evm_increaseTime", json!([77]));
    scenario.blocks(6);
    caught_up(&server, &anvil, "mainnet", SOON);
    let model = compare(&server, &anvil, "mainnet", 20, 8);
    check_gone(&server, &left, &model);

    // A stop, a stop without a word, blocks in between: it goes on where it was.
    server.stop();
    scenario.blocks(3);
    let server = Server::start(args);
    caught_up(&server, &anvil, "mainnet", SOON);
    scenario.blocks(2);
    caught_up(&server, &anvil, "mainnet", TIP);
    server.kill();
    scenario.blocks(2);
    let server = Server::start(args);
    caught_up(&server, &anvil, "mainnet", SOON);
    let model = compare(&server, &anvil, "mainnet", 20, 9);
    assert_fresh_store_is_the_same(&url, directory.path(), &server);

    // The node dies: what is stored is served, and the status says so.
    anvil.kill();
    let all_the_same = |server: &Server| {
        check_proxy(server, &model, &[]);
        check_counts(server, &model);
        check_all_logs(server, &model, 20, 10);
        assert_eq!(server.get("/health").status, 200);
    };
    eventually("/status says that the node is down", SOON, || {
        (status(&server, "mainnet")["nodeUp"] == false).then_some(())
    });
    all_the_same(&server);
    server.stop();
    let server = Server::start(args);
    all_the_same(&server);
    assert_eq!(status(&server, "mainnet")["nodeUp"], false);
    server.stop();
    let server = Server::start(["serve", "--data-dir", directory.path().to_str().unwrap()]);
    all_the_same(&server);
    check_times(&server, &model);
    server.stop();
}

/// Nothing is left of blocks and transactions that a reorg took away.
fn check_gone(server: &Server, left: &Model, now: &Model) {
    let hashes: BTreeSet<_> = now
        .transactions()
        .map(|(_, transaction, _)| text(&transaction["hash"]))
        .collect();
    let mut gone = 0;
    for (_, transaction, _) in left.transactions() {
        let hash = text(&transaction["hash"]);
        if !hashes.contains(hash) {
            gone += 1;
            server.assert_error(
                &format!("/api/transaction/{hash}/status"),
                404,
                "Transaction not found",
            );
            let query = format!("action=eth_getTransactionReceipt&txhash={hash}");
            assert_eq!(server.proxy(&query), Value::Null, "{query}");
        }
    }
    println!("{gone} transactions are gone");
}

/// A store that has seen reorgs, stops and a kill holds the bytes of one that has not.
fn assert_fresh_store_is_the_same(url: &str, directory: &Path, server: &Server) {
    let head = status(server, "mainnet")["indexed"].to_string();
    let fresh = tempfile::tempdir().unwrap();
    let path = fresh.path().to_str().unwrap();
    binary::quarry(["sync", "--to", &head, "--mainnet-rpc", url, "--data-dir", path]).succeeded();
    let digests = [directory.to_str().unwrap(), path].map(|path| {
        let inspected = binary::quarry(["inspect", "--full", "--data-dir", path]).succeeded();
        // The undo rows and the tail differ by how the blocks came, and `meta` by the finality that was seen.
        let tables = inspected
            .stdout
            .lines()
            .filter(|line| line.contains("0x") && line.split_whitespace().count() == 4);
        let kept = tables.filter(|line| !["meta", "tail", "undo"].contains(&line.split(' ').next().unwrap()));
        kept.map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(digests[0].len() > 10, "{digests:?}");
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn a_websocket_tells_of_new_blocks_at_once() {
    let Some(anvil) = Anvil::start(31_338) else { return };
    let mut scenario = Scenario::new(&anvil, 2);
    scenario.blocks(30);
    let directory = tempfile::tempdir().unwrap();
    let url = format!("ws://{}", anvil.address);
    let server = Server::start([
        "run",
        "--mainnet-rpc",
        &url,
        "--data-dir",
        directory.path().to_str().unwrap(),
    ]);
    ready(&server);
    caught_up(&server, &anvil, "mainnet", SOON);
    compare(&server, &anvil, "mainnet", 60, 2);
    for _ in 0..3 {
        scenario.blocks(1);
        let took = caught_up(&server, &anvil, "mainnet", TIP);
        println!("a new block was served after {took:?}");
    }
    anvil.ask("anvil_reorg", json!([4, []]));
    scenario.blocks(1);
    caught_up(&server, &anvil, "mainnet", SOON);
    compare(&server, &anvil, "mainnet", 20, 3);
    anvil.kill();
    eventually("/status says that the node is down", SOON, || {
        (status(&server, "mainnet")["nodeUp"] == false).then_some(())
    });
    server.stop();
}

#[test]
fn one_dead_node_does_not_stop_the_other_chain() {
    let Some(main) = Anvil::start(71) else { return };
    let Some(test) = Anvil::start(72) else { return };
    let (mut of_main, mut of_test) = (Scenario::new(&main, 3), Scenario::new(&test, 4));
    of_main.blocks(20);
    of_test.blocks(25);
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (main.http(), test.http());
    let args = [
        "run",
        "--mainnet-rpc",
        &first,
        "--testnet-rpc",
        &second,
        "--data-dir",
        directory.path().to_str().unwrap(),
    ];
    let server = Server::start(args);
    ready(&server);
    caught_up(&server, &main, "mainnet", SOON);
    caught_up(&server, &test, "testnet", SOON);
    let left = compare(&server, &main, "mainnet", 40, 3);
    compare(&server, &test, "testnet", 40, 4);
    // One that stands still is missed as well, and found again.
    main.signal(Signal::STOP);
    eventually("/status says that a node is silent", SOON, || {
        let status = status(&server, "mainnet");
        let message = status["message"].as_str()?;
        (status["nodeUp"] == false && message.contains("does not tell its head")).then_some(())
    });
    main.signal(Signal::CONT);
    eventually("/status says that it answers", SOON, || {
        let status = status(&server, "mainnet");
        (status["nodeUp"] == true && status["message"] == "following the tip").then_some(())
    });
    main.kill();
    eventually("/status says that one node is down", SOON, || {
        (status(&server, "mainnet")["nodeUp"] == false).then_some(())
    });
    for _ in 0..2 {
        of_test.blocks(1);
        caught_up(&server, &test, "testnet", TIP);
    }
    assert_eq!(status(&server, "testnet")["nodeUp"], true);
    compare(&server, &test, "testnet", 20, 5);
    // Each line of the syncs says of which chain it is.
    let log = server.log();
    let rooms = [" quarry::sync::", " quarry::app::supervisor: "];
    let is_of_sync = |line: &&str| rooms.iter().any(|room| line.contains(room));
    let of_syncs = || log.lines().filter(is_of_sync);
    for name in ["mainnet", "testnet"] {
        let named = format!(" chain{{chain={name}}}: quarry::");
        assert!(of_syncs().any(|line| line.contains(&named)), "{name}: {log}");
    }
    let unnamed: Vec<_> = of_syncs()
        .filter(|line| !line.contains(" chain{chain="))
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
    check_proxy(&server, &left, &[]);
    server.stop();
    // Also from the start.
    let server = Server::start(args);
    of_test.blocks(1);
    caught_up(&server, &test, "testnet", SOON);
    check_all_logs(&server, &left, 20, 6);
    // The stores know their chains: each other's node is refused in words, the answers go on.
    server.stop();
    let swapped = [
        "run",
        "--mainnet-rpc",
        &second,
        "--data-dir",
        directory.path().to_str().unwrap(),
    ];
    let server = Server::start(swapped);
    eventually("another chain's node is refused", SOON, || {
        server.log().contains("sync stopped").then_some(())
    });
    check_all_logs(&server, &left, 20, 7);
    server.stop();
}
