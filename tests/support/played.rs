//! A stand-in for the node of the demo chain: it answers `eth_call` out of `demo/state.json.zst`, and can fail,
//! stand on another branch, or let a token lie.

use super::render;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use quarry::model::{Address, Bundle, U256};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// What is told of a token, as steps (block, value).
type Steps = Vec<(u64, U256)>;

/// A token of the demo as its contract has it.
#[derive(Clone, Debug)]
pub struct TrueToken {
    pub name: String,
    pub address: Address,
    /// Raw answers of `name()`, `symbol()` and `decimals()`.
    calls: [Option<Vec<u8>>; 3],
    supply: Steps,
    pub balances: Vec<(Address, Steps)>,
}

fn at(steps: &Steps, block: u64) -> U256 {
    let last = steps.iter().rev().find(|(from, _)| *from <= block);
    last.map_or(U256::ZERO, |(_, value)| *value)
}

impl TrueToken {
    pub fn balance(&self, holder: &Address, block: u64) -> U256 {
        let found = self.balances.iter().find(|(known, _)| known == holder);
        found.map_or(U256::ZERO, |(_, steps)| at(steps, block))
    }

    pub fn supply(&self, block: u64) -> Option<U256> {
        (!self.supply.is_empty()).then(|| at(&self.supply, block))
    }
}

/// How it misbehaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood {
    /// Every request is answered with HTTP 500.
    pub fails: bool,
    /// It names other hashes of all blocks.
    pub other_branch: bool,
    /// This token's balances are one more than they are.
    pub lies: Option<Address>,
    /// Only after this block.
    pub lies_at: Option<u64>,
    /// This token returns a megabyte to everything.
    pub floods: Option<Address>,
    /// Contracts are called on another branch than its blocks are of: another node behind the same balancer. By number
    /// all balances are one more, by a hash of this branch nothing is known.
    pub split: bool,
    /// Contracts are called at a node that does not have the new ones yet: by number nothing is returned, and there is no
    /// code.
    pub lags: bool,
    /// It takes blocks by number only.
    pub no_hashes: bool,
    /// It takes hashes and calls at its newest block whatever they are.
    pub blind_to_hashes: bool,
    /// The name of this token is another one: another contract stands there.
    pub renamed: Option<Address>,
    /// This token refuses to tell balances: of one holder, or of all.
    pub mute: Option<(Address, Option<Address>)>,
    /// States before this block are gone.
    pub states_from: u64,
    /// The node has an error for the balances of this token: of one holder, or of all.
    pub refuses: Option<(Address, Option<Address>)>,
}

/// Whether one of these is asked for a balance.
fn is_asked_of(of: Option<(Address, Option<Address>)>, to: Address, data: &[u8]) -> bool {
    let Some((token, holder)) = of.filter(|_| data.starts_with(&[0x70, 0xa0, 0x82, 0x31])) else {
        return false;
    };
    token == to && holder.is_none_or(|holder| data.get(16..36) == Some(holder.as_slice()))
}

/// A contract of a price feed: its decimals, and what it stands for and stood for.
#[derive(Clone, Debug)]
pub struct PlayedFeed {
    pub address: Address,
    pub decimals: Option<u8>,
    pub aggregators: Vec<Address>,
}

impl PlayedFeed {
    fn call(&self, data: &[u8]) -> Option<U256> {
        let phases = self.aggregators.len();
        match data.first_chunk::<4>()? {
            [0x31, 0x3c, 0xe5, 0x67] => self.decimals.map(U256::from),
            [0x58, 0x30, 0x3b, 0x10] if phases > 0 => Some(U256::from(phases)),
            [0xc1, 0x59, 0x73, 0x04] => {
                let phase = usize::from(u16::from_be_bytes([*data.get(34)?, *data.get(35)?]));
                let aggregator = self.aggregators.get(phase.checked_sub(1)?)?;
                Some(aggregator.into_word().into())
            }
            [0x24, 0x5a, 0x7b, 0xfc] => self.aggregators.last().map(|one| one.into_word().into()),
            _ => None,
        }
    }
}

struct State {
    tokens: Vec<TrueToken>,
    feeds: Vec<PlayedFeed>,
    hashes: Vec<Value>,
    mood: Mood,
    calls: u64,
    /// Of these, how many were of a contract.
    calls_of: HashMap<Address, u64>,
    by_hash: u64,
}

/// The node; ends when dropped.
pub struct PlayedNode {
    state: Arc<Mutex<State>>,
    url: String,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for PlayedNode {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn unpack(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name);
    zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()
}

/// A file of the demo that is JSON.
pub fn demo_json(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The blocks of the demo.
pub fn demo_bundles() -> Vec<Bundle> {
    let text = String::from_utf8(unpack("chain.jsonl.zst")).unwrap();
    text.lines()
        .map(|line| quarry::node::recorded::parse_line(line).unwrap())
        .collect()
}

/// The tokens of the demo.
pub fn true_tokens() -> Vec<TrueToken> {
    let state: Value = serde_json::from_slice(&unpack("state.json.zst")).unwrap();
    let steps = |list: &Value| -> Steps {
        let step = |step: &Value| {
            (
                step[0].as_u64().unwrap(),
                step[1].as_str().unwrap().parse().unwrap(),
            )
        };
        list.as_array().unwrap().iter().map(step).collect()
    };
    let tokens = state["tokens"].as_object().unwrap();
    let token = |(name, token): (&String, &Value)| TrueToken {
        name: name.clone(),
        address: token["address"].as_str().unwrap().parse().unwrap(),
        calls: ["name", "symbol", "decimals"].map(|call| {
            let answer = token["calls"][call].as_str()?;
            Some(const_hex::decode(answer).unwrap())
        }),
        supply: steps(&token["supply"]),
        balances: token["balances"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(holder, list)| (holder.parse().unwrap(), steps(list)))
            .collect(),
    };
    tokens.iter().map(token).collect()
}

impl PlayedNode {
    pub fn start(bundles: &[Bundle]) -> Self {
        let state = Arc::new(Mutex::new(State {
            tokens: true_tokens(),
            feeds: Vec::new(),
            hashes: bundles.iter().map(|bundle| json!(bundle.block.hash)).collect(),
            mood: Mood::default(),
            calls: 0,
            calls_of: HashMap::new(),
            by_hash: 0,
        }));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::clone(&state);
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    let service = hyper::service::service_fn(|request| serve(request, &state));
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Self {
            state,
            url,
            runtime: Some(runtime),
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn set_mood(&self, mood: Mood) {
        self.state().mood = mood;
    }

    pub fn set_feeds(&self, feeds: Vec<PlayedFeed>) {
        self.state().feeds = feeds;
    }

    /// How often contracts were called.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// How often of these a contract was.
    pub fn calls_of(&self, contract: &Address) -> u64 {
        self.state().calls_of.get(contract).copied().unwrap_or(0)
    }

    /// How often of these by the hash of a block.
    pub fn calls_by_hash(&self) -> u64 {
        self.state().by_hash
    }

    /// Other blocks than it had, from a number on.
    pub fn reorganise(&self, bundles: &[Bundle]) {
        for bundle in bundles {
            let number = bundle.block.header.number as usize;
            self.state().hashes[number] = json!(bundle.block.hash);
        }
    }
}

async fn serve(
    request: Request<Incoming>,
    state: &Mutex<State>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let request: Value = serde_json::from_slice(&body).unwrap();
    let mut state = state.lock().unwrap();
    let status = if state.mood.fails { 500 } else { 200 };
    let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
    match state.answer(request["method"].as_str().unwrap(), &request["params"]) {
        Ok(result) => answer["result"] = result,
        Err((code, message)) => answer["error"] = json!({"code": code, "message": message}),
    }
    let response = Response::builder()
        .status(status)
        .header("content-type", "application/json");
    Ok(response.body(Full::new(Bytes::from(answer.to_string()))).unwrap())
}

impl State {
    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
        match method {
            "eth_getBlockByNumber" => {
                let number = render::number(&params[0]).unwrap();
                let Some(hash) = self.hashes.get(number as usize) else {
                    return Ok(Value::Null);
                };
                let other = json!(format!("0x{}", "ee".repeat(32)));
                let hash = if self.mood.other_branch { &other } else { hash };
                Ok(json!({"number": params[0], "hash": hash, "parentHash": other}))
            }
            "eth_getCode" => Ok(json!(if self.mood.lags { "0x" } else { "0x60" })),
            "eth_call" => {
                self.calls += 1;
                let data = const_hex::decode(params[0]["data"].as_str().unwrap()).unwrap();
                let to: Address = params[0]["to"].as_str().unwrap().parse().unwrap();
                *self.calls_of.entry(to).or_default() += 1;
                let head = self.hashes.len() as u64 - 1;
                let block = match params[1].get("blockHash") {
                    None if self.mood.lags => return Ok(json!("0x")),
                    None => render::number(&params[1]).unwrap_or(head),
                    Some(_) if self.mood.no_hashes => return Err((-32602, "invalid argument 1")),
                    Some(_) if self.mood.blind_to_hashes => head,
                    Some(hash) => {
                        let place = self.hashes.iter().position(|known| known == hash);
                        let here = place.filter(|_| !self.mood.split && !self.mood.lags);
                        self.by_hash += 1;
                        here.ok_or((-32000, "header for hash not found"))? as u64
                    }
                };
                if head < block {
                    return Err((-32000, "header not found"));
                }
                if block < self.mood.states_from {
                    return Err((-32000, "missing trie node"));
                }
                if is_asked_of(self.mood.refuses, to, &data) {
                    return Err((-32000, "execution aborted (timeout = 5s)"));
                }
                self.call(to, &data, block)
                    .map(|returned| json!(const_hex::encode_prefixed(returned)))
                    .ok_or((3, "execution reverted"))
            }
            _ => Err((-32601, "the method does not exist")),
        }
    }

    fn call(&self, to: Address, data: &[u8], block: u64) -> Option<Vec<u8>> {
        if self.mood.floods == Some(to) {
            return Some(vec![0xff; 1 << 20]);
        }
        let word = |value: U256| value.to_be_bytes::<32>().to_vec();
        if let Some(feed) = self.feeds.iter().find(|feed| feed.address == to) {
            return feed.call(data).map(word);
        }
        let token = self.tokens.iter().find(|token| token.address == to)?;
        match data.first_chunk::<4>()? {
            [0x06, 0xfd, 0xde, 0x03] if self.mood.renamed == Some(to) => {
                Some([b"Other".to_vec(), vec![0; 27]].concat())
            }
            [0x06, 0xfd, 0xde, 0x03] => token.calls[0].clone(),
            [0x95, 0xd8, 0x9b, 0x41] => token.calls[1].clone(),
            [0x31, 0x3c, 0xe5, 0x67] => token.calls[2].clone(),
            [0x18, 0x16, 0x0d, 0xdd] => token.supply(block).map(word),
            [0x70, 0xa0, 0x82, 0x31] => {
                let holder = Address::from_slice(data.get(16..36)?);
                if is_asked_of(self.mood.mute, to, data) {
                    return None;
                }
                let lies = self.mood.lies == Some(to) && self.mood.lies_at.is_none_or(|at| at == block);
                let more = U256::from(u8::from(lies || self.mood.split));
                Some(word(token.balance(&holder, block).wrapping_add(more)))
            }
            _ => None,
        }
    }
}
