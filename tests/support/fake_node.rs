//! A node that speaks JSON-RPC over loopback HTTP (and, where asked, a Unix socket) about a seeded chain.
//!
//! It can mine, reorganise, stall and lie; it runs on a thread of its own, so that any kind of test can
//! use it, and ends when dropped.

use super::chain::{Chain, ChainSpec};
use super::render;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use quarry::model::{Address, Bundle};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// What goes wrong with a request. Each waits for a request that it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `eth_getBlockByNumber` of full blocks answers `null`.
    NullBlock,
    /// `eth_getBlockReceipts` answers `null`.
    NullReceipts,
    /// The last receipt is left out.
    MissingReceipt,
    /// The data of a log (or, without logs, the gas used) of a receipt is changed.
    WrongReceipt,
    /// A block states another parent, and still its own hash.
    WrongParent,
    /// Receipts are those of a block of the same transactions but another hash.
    OtherReceipts,
    /// The trace of the last transaction is left out.
    MissingTrace,
    /// `eth_blockNumber` states a head that lies this much lower.
    HeadBack(u64),
    /// Any answer ends in the middle.
    Truncated,
    /// Any answer is no JSON at all.
    Garbage,
    /// HTTP 429 with this `Retry-After` in seconds.
    TooManyRequests(Option<u64>),
    /// HTTP 500.
    ServerError,
    /// A JSON-RPC error to any request.
    RpcError(i64, &'static str),
    /// Any answer takes this much longer.
    Slow(Duration),
    /// The connection ends without an answer.
    Hangup,
}

impl Fault {
    fn fits(&self, method: &str, params: &Value) -> bool {
        match self {
            Self::NullBlock | Self::WrongParent => method == "eth_getBlockByNumber" && params[1] == true,
            Self::NullReceipts | Self::MissingReceipt | Self::WrongReceipt | Self::OtherReceipts => {
                method == "eth_getBlockReceipts"
            }
            Self::MissingTrace => matches!(method, "trace_block" | "debug_traceBlockByNumber"),
            Self::HeadBack(_) => method == "eth_blockNumber",
            _ => true,
        }
    }
}

/// Which of the optional methods the node offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    /// `eth_getBlockReceipts`.
    pub block_receipts: bool,
    /// `trace_block`.
    pub trace_block: bool,
    /// `debug_traceBlockByNumber`.
    pub debug_trace: bool,
    /// The tags `finalized` and `safe`.
    pub tags: bool,
}

impl Default for Methods {
    fn default() -> Self {
        Self {
            block_receipts: true,
            trace_block: true,
            debug_trace: true,
            tags: true,
        }
    }
}

struct State {
    chain: Chain,
    finalized: u64,
    stalled: bool,
    methods: Methods,
    faults: Vec<(Fault, u64)>,
    asked: BTreeMap<String, u64>,
    in_flight: u64,
    in_flight_max: u64,
    /// More requests than this at one time are answered with 429.
    in_flight_allowed: u64,
    latency: Duration,
}

/// The fake node.
pub struct FakeNode {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
    heads: tokio::sync::watch::Sender<u64>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl FakeNode {
    /// A node over block 0 of the chain of `seed`.
    pub fn start(seed: u64) -> Self {
        Self::start_with(ChainSpec::new(seed))
    }

    /// A node over block 0 of the chain of `spec`.
    pub fn start_with(spec: ChainSpec) -> Self {
        let state = State {
            chain: Chain::new(spec),
            finalized: 0,
            stalled: false,
            methods: Methods::default(),
            faults: Vec::new(),
            asked: BTreeMap::new(),
            in_flight: 0,
            in_flight_max: 0,
            in_flight_allowed: u64::MAX,
            latency: Duration::ZERO,
        };
        let state = Arc::new(Mutex::new(state));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on_thread(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let address = listener.local_addr().unwrap();
        let (heads, _) = tokio::sync::watch::channel(0);
        runtime.spawn(accept(listener, Arc::clone(&state)));
        Self {
            state,
            address,
            heads,
            runtime: Some(runtime),
        }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Appends `count` blocks.
    pub fn mine(&self, count: u64) {
        let mut state = self.state();
        state.chain.mine(count);
        self.heads.send_replace(state.chain.head());
    }

    /// Replaces the newest `depth` blocks by `count` others.
    pub fn reorg(&self, depth: u64, count: u64) {
        let mut state = self.state();
        state.chain.reorg(depth, count);
        self.heads.send_replace(state.chain.head());
    }

    /// Declares blocks up to `number` finalized (and safe).
    pub fn set_finalized(&self, number: u64) {
        self.state().finalized = number;
    }

    /// While stalled, no request is answered.
    pub fn stall(&self, stalled: bool) {
        self.state().stalled = stalled;
    }

    /// Chooses the methods it offers.
    pub fn set_methods(&self, methods: Methods) {
        self.state().methods = methods;
    }

    /// Lets the next `times` fitting requests go wrong.
    pub fn fault(&self, fault: Fault, times: u64) {
        self.state().faults.push((fault, times));
    }

    /// Forgets faults that have not happened.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Answers more than `count` requests at one time with 429.
    pub fn allow_in_flight(&self, count: u64) {
        self.state().in_flight_allowed = count;
    }

    /// Lets every answer take `latency`.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// The most requests at one time so far.
    pub fn in_flight_max(&self) -> u64 {
        self.state().in_flight_max
    }

    /// How often `method` has been asked.
    pub fn asked(&self, method: &str) -> u64 {
        self.state().asked.get(method).copied().unwrap_or(0)
    }

    /// The number of the newest block.
    pub fn head(&self) -> u64 {
        self.state().chain.head()
    }

    /// The canonical chain as it is now.
    pub fn bundles(&self) -> Vec<Bundle> {
        self.state().chain.bundles().to_vec()
    }

    /// The chain with the world after each block, as it is now.
    pub fn chain(&self) -> Chain {
        self.state().chain.clone()
    }

    /// The canonical chain as lines of a recorded chain, without block 0.
    pub fn recorded(&self) -> String {
        let state = self.state();
        let mut text = String::new();
        for bundle in state.chain.bundles().iter().skip(1) {
            text.push_str(&recorded_line(bundle));
            text.push('\n');
        }
        text
    }

    /// Serves a Unix socket too, with subscriptions to new heads.
    pub fn serve_ipc(&self, path: &Path) -> IpcServer {
        let runtime = self.runtime.as_ref().unwrap();
        let bind = path.to_owned();
        let listener = runtime
            .block_on_thread(async move { tokio::net::UnixListener::bind(bind) })
            .unwrap();
        let (state, heads) = (Arc::clone(&self.state), self.heads.clone());
        let task = runtime.spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, Arc::clone(&state), heads.subscribe()));
            }
        });
        IpcServer {
            task,
            path: path.to_owned(),
        }
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A served Unix socket; its connections end when it is dropped.
pub struct IpcServer {
    task: tokio::task::JoinHandle<()>,
    path: PathBuf,
}

impl Drop for IpcServer {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

/// `block_on` from inside or outside of another runtime.
trait BlockOnThread {
    fn block_on_thread<F: Future<Output: Send> + Send>(&self, future: F) -> F::Output;
}

impl BlockOnThread for tokio::runtime::Runtime {
    fn block_on_thread<F: Future<Output: Send> + Send>(&self, future: F) -> F::Output {
        std::thread::scope(|scope| scope.spawn(|| self.block_on(future)).join().unwrap())
    }
}

/// A line of a recorded chain.
pub fn recorded_line(bundle: &Bundle) -> String {
    json!({
        "block": render::block(&bundle.block, true),
        "receipts": render::receipts(bundle),
        "traces": render::parity(bundle),
    })
    .to_string()
}

async fn accept(listener: tokio::net::TcpListener, state: Arc<Mutex<State>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = hyper::service::service_fn(|request| serve(request, &state));
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

/// An answer of the transport: status, `Retry-After` and body.
struct Reply {
    status: u16,
    retry_after: Option<u64>,
    body: String,
}

#[derive(Debug)]
struct HungUp;

impl std::fmt::Display for HungUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hung up")
    }
}

impl std::error::Error for HungUp {}

async fn serve(request: Request<Incoming>, state: &Mutex<State>) -> Result<Response<Full<Bytes>>, HungUp> {
    let body = request
        .into_body()
        .collect()
        .await
        .map_err(|_| HungUp)?
        .to_bytes();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let busy = Busy::enter(state);
    let reply = match &request {
        Value::Array(requests) => {
            let mut bodies = Vec::new();
            for request in requests {
                bodies.push(answer(request, state, &busy).await?.body);
            }
            Reply {
                status: 200,
                retry_after: None,
                body: format!("[{}]", bodies.join(",")),
            }
        }
        request => answer(request, state, &busy).await?,
    };
    let mut response = Response::builder()
        .status(reply.status)
        .header("content-type", "application/json");
    if let Some(seconds) = reply.retry_after {
        response = response.header("retry-after", seconds);
    }
    Ok(response.body(Full::new(Bytes::from(reply.body))).unwrap())
}

/// Counts a request for as long as it is answered.
struct Busy<'a> {
    state: &'a Mutex<State>,
    too_many: bool,
}

impl<'a> Busy<'a> {
    fn enter(shared: &'a Mutex<State>) -> Self {
        let mut state = shared.lock().unwrap();
        state.in_flight += 1;
        state.in_flight_max = state.in_flight_max.max(state.in_flight);
        let too_many = state.in_flight_allowed < state.in_flight;
        Self {
            state: shared,
            too_many,
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.state.lock().unwrap().in_flight -= 1;
    }
}

async fn answer(request: &Value, state: &Mutex<State>, busy: &Busy<'_>) -> Result<Reply, HungUp> {
    while state.lock().unwrap().stalled {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let latency = state.lock().unwrap().latency;
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    if busy.too_many {
        return Ok(Reply {
            status: 429,
            retry_after: None,
            body: "too many requests".to_owned(),
        });
    }
    let (method, params) = (request["method"].as_str().unwrap_or_default(), &request["params"]);
    let (fault, result) = {
        let mut state = state.lock().unwrap();
        *state.asked.entry(method.to_owned()).or_default() += 1;
        (state.next_fault(method, params), state.result(method, params))
    };
    let mut result = result;
    let mut reply = Reply {
        status: 200,
        retry_after: None,
        body: String::new(),
    };
    match &fault {
        Some(Fault::TooManyRequests(retry_after)) => {
            reply = Reply {
                status: 429,
                retry_after: *retry_after,
                body: "slow down".to_owned(),
            };
            return Ok(reply);
        }
        Some(Fault::ServerError) => {
            reply = Reply {
                status: 500,
                retry_after: None,
                body: "internal".to_owned(),
            };
            return Ok(reply);
        }
        Some(Fault::Hangup) => return Err(HungUp),
        Some(Fault::Slow(more)) => tokio::time::sleep(*more).await,
        Some(Fault::RpcError(code, message)) => result = Err((*code, (*message).to_owned())),
        Some(fault) => {
            if let Ok(value) = &mut result {
                spoil(fault, value);
            }
        }
        None => {}
    }
    reply.body = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
        Err((code, message)) => {
            json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message}})
        }
    }
    .to_string();
    match fault {
        Some(Fault::Truncated) => reply.body.truncate(reply.body.len() * 2 / 3),
        Some(Fault::Garbage) => reply.body = "<html>\u{0} bad gateway".to_owned(),
        _ => {}
    }
    Ok(reply)
}

/// Changes a result as `fault` says.
fn spoil(fault: &Fault, value: &mut Value) {
    match fault {
        Fault::NullBlock | Fault::NullReceipts => *value = Value::Null,
        Fault::MissingReceipt => {
            value.as_array_mut().and_then(Vec::pop);
        }
        Fault::WrongReceipt => {
            for receipt in value.as_array_mut().into_iter().flatten() {
                let spot = match receipt["logs"].as_array().is_some_and(|logs| !logs.is_empty()) {
                    true => &mut receipt["logs"][0]["data"],
                    false => &mut receipt["cumulativeGasUsed"],
                };
                *spot = json!("0x1234");
            }
        }
        Fault::OtherReceipts => {
            for receipt in value.as_array_mut().into_iter().flatten() {
                receipt["blockHash"] = json!(format!("0x{}", "ab".repeat(32)));
            }
        }
        Fault::WrongParent => value["parentHash"] = json!(format!("0x{}", "cd".repeat(32))),
        Fault::MissingTrace => {
            if let Some(entries) = value.as_array_mut() {
                let last = entries
                    .iter()
                    .filter_map(|entry| entry["transactionPosition"].as_u64())
                    .max();
                match last {
                    Some(last) => entries.retain(|entry| entry["transactionPosition"] != last),
                    None => {
                        entries.pop();
                    }
                }
            }
        }
        Fault::HeadBack(by) => {
            let text = value
                .as_str()
                .unwrap_or_default()
                .trim_start_matches("0x")
                .to_owned();
            let head = u64::from_str_radix(&text, 16).unwrap_or(0);
            *value = render::quantity(head.saturating_sub(*by));
        }
        _ => {}
    }
}

impl State {
    fn next_fault(&mut self, method: &str, params: &Value) -> Option<Fault> {
        let place = self
            .faults
            .iter()
            .position(|(fault, _)| fault.fits(method, params))?;
        let (fault, times) = &mut self.faults[place];
        let fault = fault.clone();
        *times = times.saturating_sub(1);
        if *times == 0 {
            self.faults.remove(place);
        }
        Some(fault)
    }

    /// The bundle that a block parameter names.
    fn named(&self, param: &Value) -> Result<Option<&Bundle>, (i64, String)> {
        let number = match param.as_str().unwrap_or("latest") {
            "latest" | "pending" => self.chain.head(),
            "earliest" => 0,
            "finalized" | "safe" if self.methods.tags => self.finalized,
            text => match text
                .strip_prefix("0x")
                .and_then(|digits| u64::from_str_radix(digits, 16).ok())
            {
                Some(number) => number,
                None => return Err((-32602, format!("invalid block `{text}`"))),
            },
        };
        Ok(self.chain.bundle(number))
    }

    fn result(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let missing = || {
            (
                -32601,
                format!("the method {method} does not exist/is not available"),
            )
        };
        let first = &params[0];
        let account = || first.as_str().and_then(|text| text.parse::<Address>().ok());
        let world = |param: &Value| {
            let number = self.named(param)?.map_or(0, |bundle| bundle.block.number());
            Ok::<_, (i64, String)>(self.chain.world(number).unwrap())
        };
        Ok(match method {
            "eth_chainId" => render::quantity(self.chain.spec.chain_id),
            "web3_clientVersion" => json!("fake/1.0"),
            "eth_blockNumber" => render::quantity(self.chain.head()),
            "eth_getBlockByNumber" => self.named(first)?.map_or(Value::Null, |bundle| {
                render::block(&bundle.block, params[1] == true)
            }),
            "eth_getBlockByHash" => self
                .chain
                .bundles()
                .iter()
                .find(|bundle| json!(bundle.block.hash) == *first)
                .map_or(Value::Null, |bundle| {
                    render::block(&bundle.block, params[1] == true)
                }),
            "eth_getBlockReceipts" if self.methods.block_receipts => self
                .named(first)?
                .map_or(Value::Null, |bundle| render::receipts(bundle).into()),
            "eth_getTransactionReceipt" => self
                .chain
                .bundles()
                .iter()
                .flat_map(render::receipts)
                .find(|receipt| receipt["transactionHash"] == *first)
                .unwrap_or(Value::Null),
            "trace_block" if self.methods.trace_block => self
                .named(first)?
                .map_or(Value::Null, |bundle| render::parity(bundle).into()),
            "debug_traceBlockByNumber" if self.methods.debug_trace => match self.named(first)? {
                Some(bundle) if bundle.block.number() == 0 => {
                    return Err((-32000, "genesis is not traceable".to_owned()));
                }
                Some(bundle) => render::calls(bundle).into(),
                None => return Err((-32000, "block not found".to_owned())),
            },
            "eth_getTransactionCount" => {
                let account = account().ok_or((-32602, "invalid address".to_owned()))?;
                render::quantity(world(&params[1])?.nonces.get(&account).copied().unwrap_or(0))
            }
            "eth_getBalance" => {
                let account = account().ok_or((-32602, "invalid address".to_owned()))?;
                render::quantity(world(&params[1])?.balance(account))
            }
            _ => return Err(missing()),
        })
    }
}

/// Answers requests that come over a socket, one after the other, and announces new heads.
async fn converse(
    mut stream: tokio::net::UnixStream,
    state: Arc<Mutex<State>>,
    mut heads: tokio::sync::watch::Receiver<u64>,
) -> Result<(), Infallible> {
    let mut buffer = Vec::new();
    let mut subscribed = false;
    loop {
        let mut texts = Vec::new();
        tokio::select! {
            read = stream.read_buf(&mut buffer) => {
                if read.unwrap_or(0) == 0 {
                    return Ok(());
                }
                let mut requests = serde_json::Deserializer::from_slice(&buffer).into_iter::<Value>();
                let mut found = Vec::new();
                while let Some(Ok(request)) = requests.next() {
                    found.push(request);
                }
                let end = requests.byte_offset();
                buffer.drain(..end);
                for request in found {
                    if request["method"] == "eth_subscribe" {
                        subscribed = true;
                        heads.mark_changed();
                        texts.push(json!({"jsonrpc": "2.0", "id": request["id"], "result": "0x1"}).to_string());
                        continue;
                    }
                    let busy = Busy::enter(&state);
                    if let Ok(reply) = answer(&request, &state, &busy).await {
                        texts.push(reply.body);
                    }
                }
            }
            changed = heads.changed(), if subscribed => {
                if changed.is_err() {
                    return Ok(());
                }
                let number = *heads.borrow_and_update();
                let header = state.lock().unwrap().chain.bundle(number).map(|bundle| render::block(&bundle.block, false));
                texts.push(json!({
                    "jsonrpc": "2.0", "method": "eth_subscription",
                    "params": {"subscription": "0x1", "result": header},
                }).to_string());
            }
        }
        for text in texts {
            if stream.write_all(text.as_bytes()).await.is_err() {
                return Ok(());
            }
        }
    }
}
