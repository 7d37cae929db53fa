//! A node that speaks JSON-RPC over loopback HTTP (and, where asked, a Unix socket) about a seeded chain.
//!
//! It can mine, reorganise, stall and lie; it runs on a thread of its own, so that any kind of test can
//! use it, and ends when dropped.

use super::chain::{Chain, ChainSpec};
use super::fake_server::{accept, converse};
pub use super::fault::Fault;
use super::render;
use quarry::model::{Address, B256, Bundle, U256};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Which of the optional methods the node offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Methods {
    /// `eth_getBlockReceipts`.
    pub block_receipts: bool,
    /// `trace_block`.
    pub trace_block: bool,
    /// `debug_traceBlockByNumber`.
    pub debug_trace: bool,
    /// `debug_traceBlockByHash`, where the former is there too.
    pub debug_by_hash: bool,
    /// The tags `finalized` and `safe`.
    pub tags: bool,
}

impl Default for Methods {
    fn default() -> Self {
        Self {
            block_receipts: true,
            trace_block: true,
            debug_trace: true,
            debug_by_hash: true,
            tags: true,
        }
    }
}

/// All that the node knows and does.
pub struct State {
    pub(super) chain: Chain,
    finalized: u64,
    /// Its own block for the tag `safe`.
    safe: Option<u64>,
    pub(super) stalled: bool,
    methods: Methods,
    uncles: bool,
    faults: Vec<(Fault, u64)>,
    pub(super) asked: BTreeMap<String, u64>,
    pub(super) in_flight: u64,
    pub(super) in_flight_max: u64,
    /// More requests than this at one time are answered with 429.
    pub(super) in_flight_allowed: u64,
    pub(super) latency: Duration,
    pub(super) machine: Option<Arc<Machine>>,
    contracts: Option<Contracts>,
    /// Balances are told a wei too high.
    false_balances: bool,
    /// A hash in place of a block's number is taken, and the newest block looked at.
    blind_to_hashes: bool,
    /// What happens to the chain once a block with transactions was told.
    leave: Option<(u64, u64)>,
}

/// The cores that a node's answers and its own work share, first come, first served.
pub struct Machine {
    cores: tokio::sync::Semaphore,
    /// What an answer about a block takes of a core. Small questions take a twentieth.
    service: Duration,
}

impl Machine {
    /// Waits for a core and keeps it so long.
    async fn work(&self, time: Duration) {
        let core = self.cores.acquire().await;
        tokio::time::sleep(time).await;
        drop(core);
    }

    /// What an answer takes.
    pub async fn answer(&self, method: &str) {
        let of_block = ["eth_getBlock", "trace_block", "debug_traceBlock"];
        let heavy = of_block.iter().any(|name| method.starts_with(name));
        self.work(if heavy { self.service } else { self.service / 20 })
            .await;
    }
}

/// What contracts answer to `eth_call`: contract, input and block in, the result or an error (code, message) out.
pub type Contracts = Box<dyn Fn(Address, &[u8], u64) -> Result<Vec<u8>, (i64, String)> + Send>;

/// Announced headers, as JSON.
pub type Heads = tokio::sync::broadcast::Sender<Value>;

/// The fake node.
pub struct FakeNode {
    state: Arc<Mutex<State>>,
    address: SocketAddr,
    heads: Heads,
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
            safe: None,
            stalled: false,
            methods: Methods::default(),
            uncles: false,
            faults: Vec::new(),
            asked: BTreeMap::new(),
            in_flight: 0,
            in_flight_max: 0,
            in_flight_allowed: u64::MAX,
            latency: Duration::ZERO,
            machine: None,
            contracts: None,
            false_balances: false,
            blind_to_hashes: false,
            leave: None,
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
        let (heads, _) = tokio::sync::broadcast::channel(256);
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
        self.announce(&state.chain.bundles()[state.chain.bundles().len() - 1..]);
    }

    /// Replaces the newest `depth` blocks by `count` others.
    pub fn reorg(&self, depth: u64, count: u64) {
        let mut state = self.state();
        state.chain.reorg(depth, count);
        self.announce(&state.chain.bundles()[state.chain.bundles().len() - 1..]);
    }

    /// The same as soon as one more block with its transactions was told.
    pub fn reorg_after_block(&self, depth: u64, count: u64) {
        self.state().leave = Some((depth, count));
    }

    /// Puts another chain in the place of its own, which is given back.
    pub fn swap_chain(&self, chain: Chain) -> Chain {
        let mut state = self.state();
        let before = std::mem::replace(&mut state.chain, chain);
        self.announce(&state.chain.bundles()[state.chain.bundles().len() - 1..]);
        before
    }

    /// Tells subscribers of these blocks as of new heads, in this order, whatever the chain is.
    pub fn announce(&self, blocks: &[Bundle]) {
        for bundle in blocks {
            // Nobody may be listening.
            let _ = self.heads.send(render::block(&bundle.block, false));
        }
    }

    /// Declares blocks up to `number` safe, from now on whatever is finalized.
    pub fn set_safe(&self, number: u64) {
        self.state().safe = Some(number);
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

    /// Lets each block from the second on state its grandparent as an uncle; such blocks do not verify.
    pub fn set_uncles(&self, uncles: bool) {
        self.state().uncles = uncles;
    }

    /// Lets the next `times` fitting requests go wrong.
    pub fn fault(&self, fault: Fault, times: u64) {
        self.state().faults.push((fault, times));
    }

    /// Puts other faults in place of those that have not happened, and answers those.
    pub fn swap_faults(&self, faults: Vec<(Fault, u64)>) -> Vec<(Fault, u64)> {
        std::mem::replace(&mut self.state().faults, faults)
    }

    /// Forgets faults that have not happened.
    pub fn clear_faults(&self) {
        self.state().faults.clear();
    }

    /// Answers more than `count` requests at one time with 429.
    pub fn allow_in_flight(&self, count: u64) {
        self.state().in_flight_allowed = count;
    }

    /// Lets it tell balances a wei too high, or as they are again.
    pub fn set_false_balances(&self, are: bool) {
        self.state().false_balances = are;
    }

    /// Lets it look at its newest block where a hash names another.
    pub fn blind_to_hashes(&self) {
        self.state().blind_to_hashes = true;
    }

    /// Lets every answer take `latency`.
    pub fn set_latency(&self, latency: Duration) {
        self.state().latency = latency;
    }

    /// Lets answers wait for one of so many cores, and take `service` of it where they are about blocks.
    pub fn share_machine(&self, cores: usize, service: Duration) {
        let cores = tokio::sync::Semaphore::new(cores);
        self.state().machine = Some(Arc::new(Machine { cores, service }));
    }

    /// Appends a block once a core has worked on it for so long; what of it took until then.
    pub fn import(&self, work: Duration) -> Duration {
        let machine = self.state().machine.clone();
        let began = std::time::Instant::now();
        if let Some(machine) = machine {
            let runtime = self.runtime.as_ref().unwrap();
            runtime.block_on_thread(async move { machine.work(work).await });
        }
        let took = began.elapsed();
        self.mine(1);
        took
    }

    /// Lets contracts answer `eth_call` by this script.
    pub fn set_contracts(
        &self,
        script: impl Fn(Address, &[u8], u64) -> Result<Vec<u8>, (i64, String)> + Send + 'static,
    ) {
        self.state().contracts = Some(Box::new(script));
    }

    /// The requests that are being answered.
    pub fn in_flight(&self) -> u64 {
        self.state().in_flight
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

    /// The hash of the newest block.
    pub fn head_hash(&self) -> B256 {
        self.state().chain.bundles().last().unwrap().block.hash
    }

    /// The last finalized block.
    pub fn finalized(&self) -> u64 {
        self.state().finalized
    }

    /// The canonical chain as it is now.
    pub fn bundles(&self) -> Vec<Bundle> {
        self.state().chain.bundles().to_vec()
    }

    /// The newest `count` blocks of it.
    pub fn newest(&self, count: u64) -> Vec<Bundle> {
        let state = self.state();
        let all = state.chain.bundles();
        let count = usize::try_from(count).unwrap_or(all.len());
        all[all.len().saturating_sub(count)..].to_vec()
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

impl State {
    /// The fault that happens to this request.
    pub fn next_fault(&mut self, method: &str, params: &Value) -> Option<Fault> {
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

    /// The bundle that a block parameter names (EIP-1898).
    fn named(&self, param: &Value) -> Result<Option<&Bundle>, (i64, String)> {
        if let Some(hash) = param.get("blockHash").filter(|_| !self.blind_to_hashes) {
            let mut all = self.chain.bundles().iter();
            return Ok(all.find(|bundle| json!(bundle.block.hash) == *hash));
        }
        let number = match param.as_str().unwrap_or("latest") {
            "latest" | "pending" => self.chain.head(),
            "earliest" => 0,
            "safe" if self.methods.tags => self.safe.unwrap_or(self.finalized),
            "finalized" if self.methods.tags => self.finalized,
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

    fn uncle(&self, bundle: &Bundle) -> Option<&Bundle> {
        self.chain
            .bundle(bundle.block.number().checked_sub(2)?)
            .filter(|_| self.uncles)
    }

    /// Leaves the branch where that was to follow this request.
    pub fn leave_after(&mut self, method: &str, params: &Value) {
        if method == "eth_getBlockByNumber"
            && params[1] == true
            && let Some((depth, count)) = self.leave.take()
        {
            self.chain.reorg(depth, count);
        }
    }

    /// The answer to this request.
    pub fn result(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let missing = || {
            (
                -32601,
                format!("the method {method} does not exist/is not available"),
            )
        };
        let first = &params[0];
        let account = || first.as_str().and_then(|text| text.parse::<Address>().ok());
        let world = |param: &Value| {
            let bundle = self
                .named(param)?
                .ok_or((-32000, "header not found".to_owned()))?;
            Ok::<_, (i64, String)>(self.chain.world(bundle.block.number()).unwrap())
        };
        Ok(match method {
            "eth_chainId" => render::quantity(self.chain.spec.chain_id),
            "web3_clientVersion" => json!("fake/1.0"),
            "eth_blockNumber" => render::quantity(self.chain.head()),
            "eth_getBlockByNumber" => self.named(first)?.map_or(Value::Null, |bundle| {
                let mut block = render::block(&bundle.block, params[1] == true);
                if let Some(uncle) = self.uncle(bundle) {
                    block["uncles"] = json!([uncle.block.hash]);
                }
                block
            }),
            "eth_getUncleByBlockNumberAndIndex" if self.uncles => self
                .named(first)?
                .and_then(|bundle| self.uncle(bundle))
                .filter(|_| params[1] == "0x0")
                .map_or(Value::Null, |uncle| {
                    let mut header = render::block(&uncle.block, false);
                    header["transactions"] = json!([]);
                    header
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
            "debug_traceBlockByHash" if self.methods.debug_trace && self.methods.debug_by_hash => {
                let mut all = self.chain.bundles().iter();
                match all.find(|bundle| json!(bundle.block.hash) == *first) {
                    Some(bundle) => render::calls(bundle).into(),
                    None => return Err((-32000, "block not found".to_owned())),
                }
            }
            "eth_getTransactionCount" => {
                let account = account().ok_or((-32602, "invalid address".to_owned()))?;
                render::quantity(world(&params[1])?.nonces.get(&account).copied().unwrap_or(0))
            }
            "eth_call" => {
                let bytes = |text: &Value| const_hex::decode(text.as_str().unwrap_or_default()).ok();
                let (to, data) = (bytes(&first["to"]), bytes(&first["data"]));
                let (Some(to), Some(data)) = (to, data) else {
                    return Err((-32602, "invalid call".to_owned()));
                };
                let Some(bundle) = self.named(&params[1])? else {
                    return Err((-32000, "header not found".to_owned()));
                };
                let script = self.contracts.as_ref().ok_or_else(missing)?;
                let returned = script(Address::from_slice(&to), &data, bundle.block.number())?;
                json!(const_hex::encode_prefixed(returned))
            }
            "eth_getBalance" => {
                let account = account().ok_or((-32602, "invalid address".to_owned()))?;
                let balance = world(&params[1])?.balance(account);
                render::quantity(balance + U256::from(u64::from(self.false_balances)))
            }
            _ => return Err(missing()),
        })
    }
}
