//! Quarry inside another process: `cargo run --release --example embed [DIRECTORY]`.
//!
//! A feed takes blocks as they come: here those of the demo's recording. Shortly before the end two blocks of another
//! branch come first, and then those of the recording in their place: a reorg. The stores follow, and are asked over HTTP, by
//! requests without a socket, and in typed form.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use http_body_util::BodyExt as _;
use quarry::model::{B256, Bloom, Bundle, Bytes, ChainName};
use quarry::node::recorded::RecordedChain;
use quarry::query::{LogQuery, Reader};
use quarry::service::{BlockFeed, ChainConfig, Service, ServiceConfig};
use quarry::sync::{genesis, header_hash};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

type Failure = Box<dyn Error + Send + Sync>;

const MAINNET: ChainName = ChainName::Mainnet;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let directory = match std::env::args_os().nth(1) {
        Some(directory) => directory.into(),
        None => std::env::temp_dir().join(format!("quarry-embed-{}", std::process::id())),
    };
    run(&directory, &mut std::io::stdout()).await
}

/// The whole story, told to `out`.
pub async fn run(directory: &Path, out: &mut (dyn Write + Send)) -> Result<(), Failure> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    let mut blocks: Vec<Bundle> = Vec::new();
    for line in RecordedChain::open(demo.join("chain.jsonl.zst"))? {
        blocks.push(line?.parse()?);
    }
    // The last two blocks have another branch beside them; a third one follows later.
    let parting = blocks.len() - 3;
    let branch = branch(&blocks[parting - 1], &blocks[parting..parting + 2]);
    let height = |bundle: &Bundle| bundle.block.number();

    // A chain whose blocks are pushed. Eight blocks below the newest one are final.
    let feed = BlockFeed::new(1_000);
    let chain = ChainConfig::new(MAINNET, 31_337, blocks[0].block.hash)
        .with_genesis(genesis::load(&demo.join("genesis.json"))?)
        .with_finality_depth(8)
        .fed_by(feed.clone());
    let service = Service::start(ServiceConfig::new(directory).with_chain(chain)).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(service.serve(listener));

    // The tip grows along the other branch.
    for bundle in blocks[..parting].iter().chain(&branch) {
        feed.push(bundle.clone()).await?;
    }
    service.reached(MAINNET, height(&branch[1])).await?;
    let last = height(&branch[1]);
    writeln!(out, "block {last} is {}", ask_hash(address, last).await?)?;

    // The recording's blocks take their place.
    for bundle in &blocks[parting..] {
        feed.push(bundle.clone()).await?;
    }
    service.reached(MAINNET, height(&blocks[parting + 2])).await?;
    writeln!(out, "block {last} is {}", ask_hash(address, last).await?)?;
    let status = service.status(MAINNET).ok_or("the chain is synced")?;
    writeln!(
        out,
        "reorgs: {}, of {} blocks",
        status.reorgs(),
        status.reorged_blocks()
    )?;

    // One question, asked three ways.
    let topic = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
    let target = format!("/api/logs/get-logs?topic0={topic}&offset=1&sort=desc");
    let over_http = get(address, &target).await?;
    let answer = service.answer(http::Request::get(&target).body(())?).await;
    let total = answer.headers()["x-total-count"].to_str()?.to_owned();
    let without_socket = answer.into_body().collect().await?.to_bytes();
    let reader = service.reader(MAINNET).ok_or("blocks are stored")?;
    // The typed side may read the disk: on a thread that may block.
    let typed = tokio::task::spawn_blocking(move || last_transfer(&reader, topic.parse()?)).await??;
    writeln!(
        out,
        "transfers by HTTP: {total}, in process: {} (the last in block {})",
        typed.0, typed.1
    )?;
    if over_http != without_socket || total != typed.0.to_string() {
        return Err("the three ways differ".into());
    }

    service.stop().await?;
    writeln!(out, "stopped, {} connections cut off", server.await?)?;
    Ok(())
}

/// Empty blocks beside those of the recording.
fn branch(fork: &Bundle, beside: &[Bundle]) -> Vec<Bundle> {
    let mut parent = fork.block.hash;
    let empty = |bundle: &Bundle| {
        let mut bundle = bundle.clone();
        bundle.block.transactions.clear();
        bundle.receipts.clear();
        bundle.traces = Some(Vec::new());
        bundle.block.size = None;
        let header = &mut bundle.block.header;
        header.parent_hash = parent;
        header.transactions_root = alloy_consensus::EMPTY_ROOT_HASH;
        header.receipts_root = alloy_consensus::EMPTY_ROOT_HASH;
        header.logs_bloom = Bloom::ZERO;
        header.gas_used = 0;
        header.extra_data = Bytes::from_static(b"another branch");
        bundle.block.hash = header_hash(header);
        parent = bundle.block.hash;
        bundle
    };
    beside.iter().map(empty).collect()
}

/// How many logs have this topic, and the block of the last.
fn last_transfer(reader: &Reader, topic: B256) -> Result<(u64, u64), Failure> {
    let query = LogQuery {
        topics: [vec![topic], Vec::new(), Vec::new(), Vec::new()],
        last_block: reader.head().number,
        descending: true,
        limit: 1,
        ..LogQuery::default()
    };
    let mut page = reader.logs(&query)?;
    let total = quarry::query::Paged::page(&page).total();
    let mut block = 0;
    page.visit(&mut |log| {
        block = log.block_number;
        true
    })?;
    Ok((total.ok_or("one list is counted")?, block))
}

async fn ask_hash(address: std::net::SocketAddr, block: u64) -> Result<String, Failure> {
    let target = format!("/api/proxy?action=eth_getBlockByNumber&boolean=false&tag=0x{block:x}");
    let body: serde_json::Value = serde_json::from_slice(&get(address, &target).await?)?;
    Ok(body["result"]["hash"].as_str().ok_or("no such block")?.to_owned())
}

/// The body of a GET over a connection of its own.
async fn get(address: std::net::SocketAddr, target: &str) -> Result<Vec<u8>, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {target} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).await?;
    let end = reply.windows(4).position(|four| four == b"\r\n\r\n");
    let body = reply.split_off(end.ok_or("no end of the headers")? + 4);
    if !reply.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(&reply).into());
    }
    Ok(body)
}
