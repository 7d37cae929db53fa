//! The service over loopback beside hyper alone, both asked in turn by `wrk`.
#![allow(clippy::print_stdout, reason = "a row of a table is what comes out")]

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
use quarry::api::{Chains, Settings, Upstream};
use quarry::app::front::front;
use quarry::bench::figures::duration;
use quarry::http::{Limits, Pool, PoolLimits};
use quarry::model::ChainName;
use quarry::query::Reader;
use quarry::status::ChainStatus;
use quarry::store::Store;
use tokio::net::{TcpListener, TcpStream};

use super::filled::{self, median};

/// One chain, without a node.
pub(crate) struct One(pub(crate) Arc<Store>);

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

/// What is asked for in a row of the table.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) asked: Asked,
    pub(crate) connections: u64,
    pub(crate) budget: f64,
}

/// The paths of a case.
pub(crate) enum Asked {
    /// The same one again and again, made anew each time; the static body is its answer.
    One(String),
    /// The same one again and again, as a client asks that says nothing of caches.
    Again(String),
    /// These in turn; the static body has the length given, else the mean length of their answers.
    Many(Vec<String>, Option<usize>),
    /// These bodies in turn, posted to `/rpc`; the static body has the mean length of their answers.
    Posted(Vec<String>),
}

/// Starts the service in the background; answers where it listens.
pub(crate) async fn serve(store: &Arc<Store>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let address = listener.local_addr().expect("an address");
    let mut limits = PoolLimits::default();
    limits.ahead_below = filled::env("QUARRY_BENCH_AHEAD", limits.ahead_below as u64) as usize;
    let pool = Pool::new(limits).expect("threads");
    let chains = Arc::new(One(Arc::clone(store)));
    let front = Arc::new(front(chains, pool, Settings::default()));
    let never = std::future::pending();
    let mut limits = Limits::default();
    limits.socket_threads = filled::env("QUARRY_BENCH_SOCKETS", limits.socket_threads as u64) as usize;
    tokio::spawn(quarry::http::serve(listener, front, limits, never));
    address
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
    ask(address, hyper::Request::get(path), Bytes::new()).await
}

async fn post(address: SocketAddr, body: &str) -> Bytes {
    ask(
        address,
        hyper::Request::post("/rpc"),
        Bytes::from(body.to_owned()),
    )
    .await
}

async fn ask(address: SocketAddr, request: hyper::http::request::Builder, body: Bytes) -> Bytes {
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("a handshake");
    tokio::spawn(connection);
    let request = request
        .header("host", "localhost")
        .body(Full::new(body))
        .expect("a request");
    let uri = request.uri().clone();
    let response = sender.send_request(request).await.expect("an answer");
    assert!(response.status().is_success(), "{uri}: {}", response.status());
    response.into_body().collect().await.expect("a body").to_bytes()
}

/// Requests a second, and the median and 99th percentile of latency in milliseconds, as `wrk` says them.
fn wrk(
    address: SocketAddr,
    path: &str,
    connections: u64,
    script: Option<&PathBuf>,
    seconds: u64,
    anew: bool,
) -> (f64, [f64; 2]) {
    let mut command = Command::new("wrk");
    if anew {
        command.args(["-H", "Cache-Control: no-cache"]);
    }
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
    (rate, ["50%", "99%"].map(|name| milliseconds(&after(name))))
}

/// A time as `wrk` says it.
fn milliseconds(told: &str) -> f64 {
    let unit = told.find(|letter: char| letter.is_ascii_alphabetic());
    let (figure, unit) = told.split_at(unit.unwrap_or(told.len()));
    let figure: f64 = figure.parse().expect("a time");
    match unit {
        "us" => figure / 1e3,
        "ms" => figure,
        "s" => figure * 1e3,
        _ => figure * 60e3,
    }
}

/// The medians of percentiles over all rounds, in words.
fn percentiles(rounds: &[[f64; 2]]) -> String {
    let of = |place: usize| duration(median(rounds.iter().map(|round| round[place]).collect()));
    format!("{} / {}", of(0), of(1))
}

/// A script for `wrk` that asks for paths in turn.
fn script(paths: &[String]) -> PathBuf {
    let mut script = "local paths = {".to_owned();
    for path in paths {
        let _ = writeln!(script, "\"{path}\",");
    }
    script.push_str(
        "}\nlocal at = 0\nrequest = function() at = at % #paths + 1; return wrk.format(nil, paths[at]) end\n",
    );
    written(&script)
}

/// The same that posts bodies.
fn posting_script(bodies: &[String]) -> PathBuf {
    let mut script = "local bodies = {".to_owned();
    for body in bodies {
        let _ = writeln!(script, "'{body}',");
    }
    script.push_str(
        "}\nlocal at = 0\nlocal headers = {[\"Content-Type\"] = \"application/json\"}\nrequest = function() at = at % #bodies + 1; \
         return wrk.format(\"POST\", \"/rpc\", headers, bodies[at]) end\n",
    );
    written(&script)
}

fn written(script: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("quarry-bench-{}.lua", std::process::id()));
    std::fs::write(&path, script).expect("a script");
    path
}

/// Prints the head of the table.
pub(crate) fn print_head() {
    println!(
        "| answer | bytes | service | p50 / p99 | static | p50 / p99 | ratio | budget |\n|---|---|---|---|---|---|---|---|"
    );
}

fn mean_of(lengths: &[usize]) -> usize {
    lengths.iter().sum::<usize>() / lengths.len().max(1)
}

/// Asks the service and hyper alone in turn, and prints a row.
pub(crate) async fn compare(service: SocketAddr, case: &Case) {
    let connections = case.connections;
    let (path, body, script) = match &case.asked {
        Asked::One(path) | Asked::Again(path) => (path.clone(), get(service, path).await, None),
        Asked::Many(paths, length) => {
            let mut lengths = Vec::new();
            for path in paths.iter().take(100) {
                lengths.push(get(service, path).await.len());
            }
            let body = Bytes::from(vec![b'x'; length.unwrap_or(mean_of(&lengths))]);
            (paths.first().expect("a path").clone(), body, Some(script(paths)))
        }
        Asked::Posted(bodies) => {
            let mut lengths = Vec::new();
            for body in bodies.iter().take(100) {
                lengths.push(post(service, body).await.len());
            }
            let body = Bytes::from(vec![b'x'; mean_of(&lengths)]);
            ("/rpc".to_owned(), body, Some(posting_script(bodies)))
        }
    };
    let bytes = body.len();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let plain = listener.local_addr().expect("an address");
    let server = tokio::spawn(serve_static(listener, body));
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let (mut late, mut late_plain) = (Vec::new(), Vec::new());
    let seconds = filled::env("QUARRY_BENCH_SECONDS", 3);
    for round in 0..=filled::env("QUARRY_BENCH_ROUNDS", 5) {
        let (path, script) = (path.clone(), script.clone());
        let anew = matches!(case.asked, Asked::One(_));
        let asked = tokio::task::spawn_blocking(move || {
            let ask = |address, seconds| wrk(address, &path, connections, script.as_ref(), seconds, anew);
            // The first round warms caches.
            if round == 0 {
                ask(service, 1);
                return None;
            }
            Some((ask(service, seconds), ask(plain, seconds)))
        });
        let Some(((rate, latency), (plain_rate, plain_latency))) = asked.await.expect("a round") else {
            continue;
        };
        ours.push(rate);
        theirs.push(plain_rate);
        late.push(latency);
        late_plain.push(plain_latency);
    }
    server.abort();
    if let Some(script) = script {
        drop(std::fs::remove_file(&script));
    }
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs);
    let ratio = median(ratios.collect());
    println!(
        "| {} | {bytes} | {:.0} | {} | {:.0} | {} | {ratio:.2} | {} |",
        case.name,
        median(ours),
        percentiles(&late),
        median(theirs),
        percentiles(&late_plain),
        case.budget
    );
}
