//! The service over loopback against hyper alone: `wrk` asks both in turn.
//!
//! Budgets: a page of 10,000 rows at 60 % of the rate of a static body of the same size, a page of 100 rows at
//! 70 %, the status of a transaction by hash at 50 % of the rate of a static body of 200 bytes. Environment:
//! `QUARRY_BENCH_LOGS` (2,000,000), `QUARRY_BENCH_ROUNDS` (5), `QUARRY_BENCH_SECONDS` (3), `QUARRY_BENCH_ONLY`,
//! `QUARRY_BENCH_AHEAD` (scans below which frames are made ahead of their turn; 0 for never).
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::convert::Infallible;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use quarry::api::{Api, Chains, Settings, Upstream};
use quarry::http::{Limits, Pool, PoolLimits};
use quarry::model::ChainName;
use quarry::query::Reader;
use quarry::status::ChainStatus;
use quarry::store::{OpenOptions, Store};
use support::filled::{self, SEED, median};
use support::generator::Generator;
use tokio::net::{TcpListener, TcpStream};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

struct One(Arc<Store>);

impl Chains for One {
    fn reader(&self, _: ChainName) -> Option<Reader> {
        Some(Reader::new(self.0.view()))
    }

    fn status(&self, _: ChainName) -> Option<Arc<ChainStatus>> {
        None
    }

    fn upstream(&self, _: ChainName) -> Option<Arc<dyn Upstream>> {
        None
    }

    fn store_bytes(&self, _: ChainName) -> u64 {
        0
    }
}

/// hyper with one body for every request, served as the service's connections are.
async fn serve_static(listener: TcpListener, body: Bytes) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        drop(stream.set_nodelay(true));
        let body = body.clone();
        tokio::spawn(async move {
            let service = service_fn(|_| {
                let mut response = hyper::Response::new(Full::new(body.clone()));
                let json = hyper::header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(TokioTimer::new());
            drop(builder.serve_connection(TokioIo::new(stream), service).await);
        });
    }
}

async fn get(address: SocketAddr, path: &str) -> Bytes {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("a handshake");
    tokio::spawn(connection);
    let request = hyper::Request::get(path)
        .header("host", "localhost")
        .body(Full::<Bytes>::default())
        .expect("a request");
    let response = sender.send_request(request).await.expect("an answer");
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.into_body().collect().await.expect("a body").to_bytes()
}

/// Requests a second and the median and 99th percentile of latency, as `wrk` says them.
fn wrk(address: SocketAddr, path: &str, connections: u64, script: Option<&PathBuf>) -> (f64, String) {
    let seconds = filled::env("QUARRY_BENCH_SECONDS", 3);
    let mut command = Command::new("wrk");
    command.args([
        "-t1",
        "--latency",
        &format!("-c{connections}"),
        &format!("-d{seconds}s"),
    ]);
    if let Some(script) = script {
        command.arg("-s").arg(script);
    }
    let output = command
        .arg(format!("http://{address}{path}"))
        .output()
        .expect("wrk (apt-get install wrk)");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!text.contains("Non-2xx"), "{text}");
    let after = |name: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(name));
        line.map(|rest| rest.trim().to_owned()).unwrap_or_default()
    };
    let rate = after("Requests/sec:").parse().expect("a rate");
    (rate, format!("{} / {}", after("50%"), after("99%")))
}

/// A script for `wrk` that asks for the status of random known transactions.
fn status_script(store: &Store) -> PathBuf {
    let view = store.view();
    let count = view.checkpoint().transactions;
    let mut random = support::draw::Random::new(9);
    let mut script = "local paths = {".to_owned();
    let reader = Reader::new(store.view());
    for _ in 0..20_000 {
        let hash = view.transaction_hash(random.below(count)).expect("a hash");
        // Warm, as the lists are after their first round.
        let _ = reader.transaction_status(&hash).expect("a status");
        let _ = writeln!(script, "\"/api/transaction/{hash}/status\",");
    }
    script.push_str(
        "}\nlocal at = 0\nrequest = function() at = at % #paths + 1; return wrk.format(nil, paths[at]) end\n",
    );
    let path = std::env::temp_dir().join(format!("quarry-bench-{}.lua", std::process::id()));
    std::fs::write(&path, script).expect("a script");
    path
}

fn main() {
    let logs = filled::env("QUARRY_BENCH_LOGS", 2_000_000);
    let options = OpenOptions {
        read_only: true,
        ..OpenOptions::new(filled::kept(logs))
    };
    let store = Store::open(&options).expect("the store");
    let generator = Generator::new(SEED, filled::chain(logs));
    let named = *generator.named();
    let script = status_script(&store);
    let list = |query: String| format!("/api/logs/get-logs?{query}");
    let hash = store.view().transaction_hash(1).expect("a hash");
    let cases = [
        (
            "medium, 10,000 rows",
            list(format!("address={}&offset=10000", named.medium)),
            4,
            None,
            0.6,
        ),
        (
            "hot, 10,000 rows",
            list(format!("address={}&offset=10000", named.hot)),
            4,
            None,
            0.6,
        ),
        (
            "Transfer, 10,000 rows",
            list(format!("topic0={}&offset=10000", named.signatures.transfer)),
            4,
            None,
            0.6,
        ),
        (
            "medium, 100 rows",
            list(format!("address={}&offset=100", named.medium)),
            16,
            None,
            0.7,
        ),
        (
            "wallet topic1, 300 rows",
            list(format!("topic1={}", named.wallet)),
            16,
            None,
            0.0,
        ),
        (
            "status by random hash",
            format!("/api/transaction/{hash}/status"),
            16,
            Some(&script),
            0.5,
        ),
    ];
    let only = std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    println!("## http over loopback, {logs} logs: median requests/s of interleaved rounds\n");
    println!(
        "| answer | bytes | service | p50 / p99 | static | p50 / p99 | ratio | budget |\n|---|---|---|---|---|---|---|---|"
    );
    runtime.block_on(async {
        let bind = || TcpListener::bind("127.0.0.1:0");
        let listener = bind().await.expect("an address");
        let service = listener.local_addr().expect("an address");
        let mut limits = PoolLimits::default();
        limits.ahead_below = filled::env("QUARRY_BENCH_AHEAD", limits.ahead_below as u64) as usize;
        let pool = Pool::new(limits).expect("threads");
        let api = Arc::new(Api::new(
            Arc::new(One(Arc::clone(&store))),
            pool,
            Settings::default(),
        ));
        tokio::spawn(quarry::http::serve(
            listener,
            api,
            Limits::default(),
            std::future::pending(),
        ));
        for (name, path, connections, script, budget) in cases {
            if !name.contains(&only) {
                continue;
            }
            let mut body = get(service, &path).await;
            let bytes = body.len();
            if script.is_some() {
                body = Bytes::from(vec![b'x'; 200]);
            }
            let listener = bind().await.expect("an address");
            let plain = listener.local_addr().expect("an address");
            let server = tokio::spawn(serve_static(listener, body));
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            let (mut late, mut late_plain) = (String::new(), String::new());
            for _ in 0..filled::env("QUARRY_BENCH_ROUNDS", 5) {
                let (path, script) = (path.clone(), script.cloned());
                let round = tokio::task::spawn_blocking(move || {
                    let ask = |address| wrk(address, &path, connections, script.as_ref());
                    (ask(service), ask(plain))
                });
                let ((rate, latency), (plain_rate, plain_latency)) = round.await.expect("a round");
                ours.push(rate);
                theirs.push(plain_rate);
                (late, late_plain) = (latency, plain_latency);
            }
            server.abort();
            let ratios: Vec<f64> = ours
                .iter()
                .zip(&theirs)
                .map(|(ours, theirs)| ours / theirs)
                .collect();
            println!(
                "| {name} | {bytes} | {:.0} | {late} | {:.0} | {late_plain} | {:.2} | {budget} |",
                median(ours),
                median(theirs),
                median(ratios),
            );
        }
    });
    drop(std::fs::remove_file(&script));
}
