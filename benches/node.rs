//! A chain from a node over HTTP into a store, against fetching and parsing it alone.
//!
//! Budget: a sync (fetch, verify, derive, commit) at three quarters of the rate of fetching and parsing alone. The node is
//! a process of its own that answers from memory, as no real one could be faster; it shares the cores with who asks it.
//! Beside our own client `alloy-provider` fetches and parses the same blocks, as who writes an indexer of his own would.
//!
//! The chain is that of `backfill`, with its environment: `QUARRY_BENCH_LOGS` (500,000), `QUARRY_BENCH_ROUNDS` (3),
//! `QUARRY_BENCH_BACKFILL_MB` (1,024), `QUARRY_BENCH_CACHE_MB` (256), `QUARRY_BENCH_DIR`, `QUARRY_BENCH_PART`,
//! `QUARRY_BENCH_ONLY` (words of a row's name). The node takes `QUARRY_BENCH_NODE_MS` (0) milliseconds for each answer,
//! as one elsewhere that is busy. With `QUARRY_BENCH_NODE=anvil` it is anvil with a chain of so many logs of its own, which encodes its
//! answers as real nodes do, traces included (that of npm below `tools`, or the program `QUARRY_ANVIL`). With `QUARRY_BENCH_RPC` an existing node is asked from block 1 on, up to block `QUARRY_BENCH_TO`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use alloy_provider::{Provider as _, RootProvider};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use quarry::node::recorded::RecordedChain;
use quarry::node::{Capabilities, Node, NodeConfig};
use quarry::shutdown;
use quarry::status::ChainStatus;
use quarry::store::Store;
use quarry::sync::{ChainRules, Engine, SyncOptions};
use serde::Deserialize;
use serde_json::value::RawValue;
use support::filled::{self, Memory, median};
use support::memory::measure;
use support::part::Part;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[path = "support/anvil.rs"]
mod anvil;
#[path = "support/recording.rs"]
mod recording;
mod support;

/// The argument that makes this process a node of a recording.
const SERVE: &str = "--serve";

/// What the node has: for each block the results of two methods.
struct Served {
    chain: HashMap<String, [Bytes; 2]>,
    head: u64,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    block: &'a RawValue,
    #[serde(borrow)]
    receipts: &'a RawValue,
}

#[derive(Deserialize)]
struct Question {
    id: u64,
    method: String,
    params: Vec<serde_json::Value>,
}

/// Block 0, which the recording lacks.
fn genesis() -> [Bytes; 2] {
    let word = "0".repeat(64);
    let block = format!(
        r#"{{"hash":"0x{word}","parentHash":"0x{word}","number":"0x0","timestamp":"0x0","miner":"0x{}","gasLimit":"0x0","gasUsed":"0x0","extraData":"0x","uncles":[],"transactions":[]}}"#,
        "0".repeat(40)
    );
    [block.into(), "[]".into()]
}

impl Served {
    fn load(path: &Path) -> Self {
        let mut chain = HashMap::from([("0x0".to_owned(), genesis())]);
        let mut head = 0;
        for line in RecordedChain::open(path).expect("the recording") {
            let line = line.expect("a line");
            let parts: Line<'_> = serde_json::from_str(&line.text).expect("a block");
            head += 1;
            let texts = [parts.block, parts.receipts].map(|text| Bytes::from(text.get().to_owned()));
            chain.insert(format!("0x{head:x}"), texts);
        }
        Self { chain, head }
    }

    fn result(&self, question: &Question) -> Option<Bytes> {
        let block = question.params.first().and_then(serde_json::Value::as_str);
        let part = match question.method.as_str() {
            "eth_chainId" => return Some("\"0x1\"".into()),
            "eth_blockNumber" => return Some(format!("\"0x{:x}\"", self.head).into()),
            "web3_clientVersion" => return Some("\"memory\"".into()),
            "eth_getBlockByNumber" => 0,
            "eth_getBlockReceipts" => 1,
            _ => return None,
        };
        let last = format!("0x{:x}", self.head);
        let name = match block? {
            "latest" | "safe" | "finalized" => &last,
            number => number,
        };
        Some(
            self.chain
                .get(name)
                .map_or_else(|| "null".into(), |texts| texts[part].clone()),
        )
    }

    fn answer(&self, question: &[u8]) -> Bytes {
        let question: Question = serde_json::from_slice(question).expect("a question");
        let id = question.id;
        let Some(result) = self.result(&question) else {
            return format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"the method does not exist"}}}}"#
            )
            .into();
        };
        let mut answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#).into_bytes();
        answer.reserve(result.len() + 1);
        answer.extend_from_slice(&result);
        answer.push(b'}');
        answer.into()
    }
}

/// Serves a recording until the process is ended.
async fn serve(path: &Path) {
    let served = Arc::new(Served::load(path));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("an address");
    println!("{}", listener.local_addr().expect("an address"));
    let pause = Duration::from_millis(filled::env("QUARRY_BENCH_NODE_MS", 0));
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let served = Arc::clone(&served);
        tokio::spawn(async move {
            let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
                let served = Arc::clone(&served);
                async move {
                    if !pause.is_zero() {
                        tokio::time::sleep(pause).await;
                    }
                    let question = request
                        .into_body()
                        .collect()
                        .await
                        .expect("a question")
                        .to_bytes();
                    let mut response = hyper::Response::new(Full::new(served.answer(&question)));
                    let json = hyper::header::HeaderValue::from_static("application/json");
                    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
                    Ok::<_, Infallible>(response)
                }
            });
            let builder = hyper::server::conn::http1::Builder::new();
            drop(builder.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

/// The node as a process of its own, ended with the bench.
struct Fake {
    child: Child,
    url: String,
}

impl Fake {
    fn start(recording: &Path) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .arg(SERVE)
            .arg(recording)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a node");
        let out = child.stdout.take().expect("its words");
        let mut address = String::new();
        std::io::BufReader::new(out)
            .read_line(&mut address)
            .expect("its address");
        let url = format!("http://{}", address.trim());
        Self { child, url }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Who fetches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Alloy,
    Ours,
    Trusted,
    Verified,
}

struct Asked {
    url: String,
    to: u64,
    memory: Memory,
}

impl Asked {
    async fn node(&self) -> (Node, Capabilities, usize) {
        // Memory in flight and blocks fetched at the same time, as `quarry run` has them.
        let config = NodeConfig {
            bytes_in_flight_max: self.memory.parts().in_flight,
            ..NodeConfig::new(&self.url)
        };
        let window = self.memory.parts().window(config.concurrency_max);
        let node = Node::connect(config).await.expect("a node");
        let capabilities = node.probe().await.expect("what it offers");
        (node, capabilities, window)
    }

    /// Blocks and receipts as the types of alloy, dropped. Logs.
    async fn by_alloy(&self) -> u64 {
        let provider: RootProvider = RootProvider::new_http(self.url.parse().expect("a URL"));
        // Two requests for each block, and as many in flight as ours.
        let window = NodeConfig::new(&self.url).concurrency_max / 2;
        let fetched = futures_util::stream::iter(1..=self.to).map(|number| {
            let provider = provider.clone();
            // A task of its own: parsing is spread over the cores so.
            tokio::spawn(async move {
                let block = provider.get_block_by_number(number.into()).full();
                let receipts = provider.get_block_receipts(number.into());
                let (block, receipts) = tokio::join!(block, receipts);
                drop(block.expect("a block").expect("a block"));
                let receipts = receipts.expect("receipts").expect("receipts");
                receipts
                    .iter()
                    .map(|receipt| receipt.logs().len() as u64)
                    .sum::<u64>()
            })
        });
        let logs = fetched.buffered(window);
        logs.fold(0, |sum, logs| async move { sum + logs.expect("a block") })
            .await
    }

    /// Bundles as the sync fetches them, dropped. Logs.
    async fn by_us(&self) -> u64 {
        let (node, capabilities, window) = self.node().await;
        let capabilities = &capabilities;
        let fetched = futures_util::stream::iter(1..=self.to).map(|number| {
            let node = node.clone();
            async move {
                let bundle = node.bundle(number, capabilities).await.expect("a bundle").bundle;
                let logs = bundle
                    .receipts
                    .iter()
                    .map(|receipt| receipt.logs.len() as u64)
                    .sum::<u64>();
                tokio::task::spawn_blocking(move || drop(bundle))
                    .await
                    .expect("it is gone");
                logs
            }
        });
        let logs = fetched.buffered(window);
        logs.fold(0, |sum, logs| async move { sum + logs }).await
    }

    /// The whole sync. Logs.
    async fn sync(&self, trust_node: bool, directory: &Path) -> u64 {
        drop(std::fs::remove_dir_all(directory));
        let (node, capabilities, window) = self.node().await;
        let (id, genesis) = (capabilities.chain_id, capabilities.genesis_hash);
        let options = self.memory.options(directory.to_path_buf());
        let store = Store::open_or_create(&options, id, genesis, Some(1)).expect("a store");
        let writer = store.writer().expect("the writer");
        let options = SyncOptions {
            stop_at: Some(self.to),
            finality_depth: 0,
            contradiction_wait: Duration::ZERO,
            batch_bytes_max: self.memory.batch(),
            window,
        };
        let rules = ChainRules::new(id, genesis, None, 1, trust_node);
        let status = Arc::new(ChainStatus::default());
        let engine = Engine::new(node, capabilities, writer, status, rules, options);
        let (_trigger, shutdown) = shutdown::pair();
        Box::pin(engine.run(shutdown)).await.expect("a sync");
        store.view().checkpoint().logs
    }

    async fn ask(&self, how: How, directory: &Path) -> u64 {
        match how {
            How::Alloy => self.by_alloy().await,
            How::Ours => self.by_us().await,
            How::Trusted | How::Verified => Box::pin(self.sync(how == How::Trusted, directory)).await,
        }
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == SERVE) {
        runtime.block_on(serve(Path::new(&arguments.next().expect("a recording"))));
        return;
    }
    let memory = Memory::of_environment();
    let logs = filled::env("QUARRY_BENCH_LOGS", 500_000);
    // Kept until the end.
    let (mut fake, mut anvil) = (None, None);
    let (url, to) = match (
        std::env::var("QUARRY_BENCH_RPC"),
        std::env::var("QUARRY_BENCH_NODE"),
    ) {
        (Ok(url), _) => (url, filled::env("QUARRY_BENCH_TO", 1_000)),
        (Err(_), Ok(name)) => {
            assert_eq!(name, "anvil", "QUARRY_BENCH_NODE is anvil, or not there");
            let node = anvil.insert(runtime.block_on(anvil::Anvil::with_logs(logs)));
            (node.url.clone(), node.head)
        }
        (Err(_), Err(_)) => {
            let node = fake.insert(Fake::start(&recording::kept(logs, Part::of_environment())));
            (node.url.clone(), filled::chain(logs).blocks)
        }
    };
    let asked = Asked { url, to, memory };
    let ways = [
        (How::Alloy, "fetch and parse, `alloy-provider`"),
        (How::Ours, "fetch and parse"),
        (How::Trusted, "sync, node trusted"),
        (How::Verified, "sync, verified"),
    ];
    let directory = filled::cache_directory().join("synced");
    let only = std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default();
    let mut rates: [Vec<f64>; 4] = Default::default();
    let mut cores: [Vec<f64>; 4] = Default::default();
    let (mut peaks, mut logs) = (0, 0);
    for _ in 0..filled::env("QUARRY_BENCH_ROUNDS", 3) {
        for ((rates, cores), (how, name)) in rates.iter_mut().zip(&mut cores).zip(ways) {
            if !name.contains(&only) {
                continue;
            }
            let took;
            (logs, took) = measure(|| runtime.block_on(asked.ask(how, &directory)));
            rates.push(took.rate);
            cores.push(took.core);
            if matches!(how, How::Trusted | How::Verified) {
                peaks = peaks.max(took.peak);
            }
            drop(std::fs::remove_dir_all(&directory));
        }
    }
    println!("## a node over HTTP: {logs} logs, median of interleaved rounds\n");
    println!("| part | logs/s | of fetch and parse | of alloy's | us of a core a log, without the node's |");
    println!("|---|---|---|---|---|");
    let (rates, cores) = (rates.map(median), cores.map(median));
    for (((_, name), rate), core) in ways.into_iter().zip(rates).zip(cores) {
        println!(
            "| {name} | {rate:.0} | {:.2} | {:.2} | {core:.1} |",
            rate / rates[1],
            rate / rates[0]
        );
    }
    let cap = memory.cache + memory.backfill;
    println!(
        "\nmemory: cap {} MiB, anonymous peak of syncs {} MiB",
        cap >> 20,
        peaks >> 20
    );
}
