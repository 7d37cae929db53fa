//! The crate inside another process: the example runs, and what a source does is followed or said.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "../examples/embed.rs"]
#[allow(dead_code, unreachable_pub, reason = "its `main` is the example's")]
mod example;
#[path = "embed/feed.rs"]
mod feed;
#[path = "embed/pulse.rs"]
mod pulse;
#[path = "embed/rewards.rs"]
mod rewards;
#[path = "support/scratch.rs"]
mod scratch;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt as _;
use quarry::http::Handler as _;
use quarry::model::{Address, B256, Bundle, Bytes, ChainName, U256};
use quarry::node::recorded::RecordedChain;
use quarry::service::{
    BlockFeed, BlockSource, ChainConfig, Service, ServiceConfig, ServiceError, SourceError, SourceFuture,
    SourceHead, Upstream, UpstreamError, UpstreamFuture,
};
use quarry::store::{OpenOptions, Store};
use quarry::sync::{genesis, header_hash};

const MAINNET: ChainName = ChainName::Mainnet;
const PATIENCE: Duration = Duration::from_secs(60);

fn demo(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(file)
}

/// The first blocks of the demo's recording, from block 0.
fn blocks(count: usize) -> Vec<Bundle> {
    let lines = RecordedChain::open(demo("chain.jsonl.zst")).unwrap();
    lines
        .take(count)
        .map(|line| line.unwrap().parse().unwrap())
        .collect()
}

fn chain() -> ChainConfig {
    ChainConfig::new(MAINNET, 31_337, blocks(1)[0].block.hash)
        .with_genesis(genesis::load(&demo("genesis.json")).unwrap())
        .with_finality_depth(8)
}

fn config(directory: &Path, chain: ChainConfig) -> ServiceConfig {
    let mut config = ServiceConfig::new(directory).with_chain(chain);
    config.cache_bytes = 16 << 20;
    config.write_bytes = 32 << 20;
    config
}

/// The same block under another name, and so another block.
fn renamed(bundle: &Bundle, parent: B256) -> Bundle {
    let mut bundle = bundle.clone();
    bundle.block.header.parent_hash = parent;
    bundle.block.header.extra_data = Bytes::from_static(b"renamed");
    bundle.block.hash = header_hash(&bundle.block.header);
    bundle
}

async fn ask(service: &Service, target: &str) -> (u16, serde_json::Value) {
    let reply = service.answer(http::Request::get(target).body(()).unwrap()).await;
    let status = reply.status().as_u16();
    let body = reply.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap())
}

/// Waits for a condition, bounded.
async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain: {what}");
}

/// Tables and digests of a store that nobody writes. What undoes a block lists its rows in any order.
fn digests(directory: &Path) -> Vec<(&'static str, u64, B256)> {
    let mut options = OpenOptions::new(directory.join("mainnet"));
    options.read_only = true;
    let store = Store::open(&options).unwrap();
    let contents = store.view().contents().unwrap().into_iter();
    contents
        .filter(|table| table.name != "undo")
        .map(|table| (table.name, table.rows, table.digest))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_runs() {
    let directory = scratch::directory();
    let mut out = Vec::new();
    example::run(directory.path(), &mut out).await.unwrap();
    let out = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    let last: Vec<Bundle> = blocks(usize::MAX);
    let reorged = &last[last.len() - 2].block;
    assert_eq!(lines.len(), 5, "{out}");
    assert!(!lines[0].contains(&reorged.hash.to_string()), "{out}");
    assert_eq!(
        lines[1],
        format!("block {} is {}", reorged.number(), reorged.hash)
    );
    assert_eq!(lines[2], "reorgs: 1, of 2 blocks");
    assert!(lines[3].starts_with("transfers by HTTP: "), "{out}");
    assert_eq!(lines[4], "stopped, 0 connections cut off");
}

#[tokio::test(flavor = "multi_thread")]
async fn reorgs_and_restarts_leave_the_bytes_of_an_undisturbed_run() {
    let blocks = blocks(121);
    let (plain, wild) = (scratch::directory(), scratch::directory());
    let feed = BlockFeed::new(1_000);
    let service = Service::start(config(plain.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    for bundle in &blocks {
        feed.push(bundle.clone()).await.unwrap();
    }
    service.reached(MAINNET, 120).await.unwrap();
    // One more look, after which all is final that can be.
    let finalized = |service: &Service| service.reader(MAINNET).unwrap().finalized();
    eventually("finality", || finalized(&service) == Some(112)).await;
    service.stop().await.unwrap();

    // Reorgs of all depths that finality leaves, and a restart within, with a feed that begins there.
    let feed = BlockFeed::new(1_000);
    let service = Service::start(config(wild.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    let mut reorgs = 0;
    for (at, bundle) in blocks.iter().enumerate().take(71) {
        feed.push(bundle.clone()).await.unwrap();
        if at % 9 != 8 {
            continue;
        }
        service.reached(MAINNET, bundle.block.number()).await.unwrap();
        let depth = 1 + reorgs % 7;
        reorgs += 1;
        let mut parent = blocks[at - depth].block.hash;
        for other in &blocks[at - depth + 1..=at] {
            let other = renamed(other, parent);
            parent = other.block.hash;
            feed.push(other).await.unwrap();
        }
        service
            .until(MAINNET, |reader| reader.head().hash == parent)
            .await
            .unwrap();
        for bundle in &blocks[at - depth + 1..=at] {
            feed.push(bundle.clone()).await.unwrap();
        }
        let hash = bundle.block.hash;
        service
            .until(MAINNET, |reader| reader.head().hash == hash)
            .await
            .unwrap();
    }
    let status = service.status(MAINNET).unwrap();
    service.reached(MAINNET, 70).await.unwrap();
    assert_eq!(status.reorgs(), 2 * reorgs as u64);
    assert_eq!(status.reorg_depth_max(), 7);
    // What is final and on the disk need not be held any more.
    eventually("the feed to forget", || feed.len() <= 9).await;
    assert_eq!(service.next_block(MAINNET), Some(71));
    service.stop().await.unwrap();
    let feed = BlockFeed::new(1_000);
    let service = Service::start(config(wild.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    assert_eq!(service.next_block(MAINNET), Some(71));
    for bundle in &blocks[65..] {
        feed.push(bundle.clone()).await.unwrap();
    }
    service.reached(MAINNET, 120).await.unwrap();
    eventually("finality", || finalized(&service) == Some(112)).await;
    service.stop().await.unwrap();
    let found = digests(wild.path());
    assert_eq!(found, digests(plain.path()));
}

/// A source that fails, forgets and mixes branches, by the number of its answer.
struct Moody {
    branches: [Vec<Bundle>; 2],
    answers: AtomicU64,
    settled: Mutex<Vec<u64>>,
    told: tokio::sync::watch::Sender<()>,
    /// Blocks to show, and the branch.
    shown: Mutex<(usize, usize)>,
}

impl Moody {
    fn mood(&self) -> u64 {
        self.answers.fetch_add(1, Ordering::Relaxed)
    }

    fn block(&self, number: u64) -> Option<Bundle> {
        let (shown, branch) = *self.shown.lock().unwrap();
        // Now and then of the other branch.
        let branch = if self.mood().is_multiple_of(43) {
            1 - branch
        } else {
            branch
        };
        let at = usize::try_from(number).ok()?;
        self.branches[branch].get(at).filter(|_| at < shown).cloned()
    }

    fn show(&self, blocks: usize, branch: usize) {
        *self.shown.lock().unwrap() = (blocks, branch);
        self.told.send_replace(());
    }
}

impl BlockSource for Moody {
    fn head(&self) -> SourceFuture<'_, Option<SourceHead>> {
        let failed = self.mood().is_multiple_of(9);
        let (shown, _) = *self.shown.lock().unwrap();
        let head = (shown > 0).then(|| SourceHead {
            number: shown as u64 - 1,
            finalized: Some(20),
        });
        Box::pin(async move {
            if failed {
                Err(SourceError::new("the library is closed"))
            } else {
                Ok(head)
            }
        })
    }

    fn hash(&self, number: u64) -> SourceFuture<'_, Option<B256>> {
        let hash = self.block(number).map(|bundle| bundle.block.hash);
        Box::pin(async move { Ok(hash) })
    }

    fn bundle(&self, number: u64) -> SourceFuture<'_, Option<Bundle>> {
        let bundle = self.block(number).filter(|_| !self.mood().is_multiple_of(47));
        Box::pin(async move { Ok(bundle) })
    }

    fn changed(&self) -> SourceFuture<'_, ()> {
        let mut told = self.told.subscribe();
        Box::pin(async move {
            let _ = told.changed().await;
            Ok(())
        })
    }

    fn settled(&self, number: u64) {
        self.settled.lock().unwrap().push(number);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_may_fail_and_contradict_itself() {
    let first = blocks(41);
    let mut second = first.clone();
    let mut parent = first[29].block.hash;
    for bundle in &mut second[30..] {
        *bundle = renamed(bundle, parent);
        parent = bundle.block.hash;
    }
    let source = Arc::new(Moody {
        branches: [first.clone(), second.clone()],
        answers: AtomicU64::new(0),
        settled: Mutex::default(),
        told: tokio::sync::watch::Sender::new(()),
        shown: Mutex::new((0, 0)),
    });
    let directory = scratch::directory();
    let service = Service::start(config(directory.path(), chain().fed_by(Arc::clone(&source))))
        .await
        .unwrap();
    // What is not there yet is no empty list.
    let (status, body) = ask(&service, "/api/logs/get-logs?topic0=0x12").await;
    assert_eq!((status, &body["error"]), (400, &"Invalid topic format".into()));
    for (blocks, branch, hash) in [
        (25, 0, first[24].block.hash),
        (41, 0, first[40].block.hash),
        (41, 1, second[40].block.hash),
        (41, 0, first[40].block.hash),
    ] {
        source.show(blocks, branch);
        let there = service.until(MAINNET, |reader| reader.head().hash == hash);
        tokio::time::timeout(PATIENCE, there)
            .await
            .expect("it should come there")
            .unwrap();
    }
    eventually("word of what is settled", || {
        source.settled.lock().unwrap().last() == Some(&20)
    })
    .await;
    assert!(source.settled.lock().unwrap().is_sorted());
    assert!(service.status(MAINNET).unwrap().reorgs() >= 2);
    service.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_mended_is_said() {
    let blocks = blocks(41);
    let directory = scratch::directory();
    let feed = BlockFeed::new(1_000);
    let service = Service::start(config(directory.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    for bundle in &blocks[..31] {
        feed.push(bundle.clone()).await.unwrap();
    }
    service.reached(MAINNET, 30).await.unwrap();
    // Its parent is no block of the feed; and a block that does not verify is not stored.
    let error = feed.push(blocks[36].clone()).await.unwrap_err();
    assert_eq!(error.to_string(), "block 36 does not follow a block of the feed");
    let mut wrong = blocks[31].clone();
    wrong.receipts.clear();
    wrong.block.transactions.clear();
    feed.push(wrong).await.unwrap();
    let status = service.status(MAINNET).unwrap();
    eventually("a verification failure", || status.verification_failures() > 0).await;
    assert!(
        status.message().starts_with("block 31 does not verify: "),
        "{}",
        status.message()
    );
    feed.push(blocks[31].clone()).await.unwrap();
    service.reached(MAINNET, 31).await.unwrap();

    // The store is being written: here, and by whoever opens it a second time.
    let again = Service::start(config(directory.path(), chain().fed_by(BlockFeed::new(10)))).await;
    let sentence = again.unwrap_err().to_string();
    assert!(
        sentence.contains("another process") || sentence.contains("lock"),
        "{sentence}"
    );
    let twice = ServiceConfig::new(directory.path())
        .with_chain(chain())
        .with_chain(chain());
    let sentence = Service::start(twice).await.unwrap_err().to_string();
    assert!(!sentence.is_empty());
    service.stop().await.unwrap();

    // Another chain than the stored one.
    let other = ChainConfig::new(MAINNET, 5, B256::repeat_byte(5)).fed_by(BlockFeed::new(10));
    let error = Service::start(config(directory.path(), other)).await.unwrap_err();
    assert!(matches!(error, ServiceError::Store(_)), "{error}");

    // A branch that leaves ours below what is final stops the sync; what is stored is still answered.
    let feed = BlockFeed::new(1_000);
    let source = chain()
        .fed_by(feed.clone())
        .with_contradiction_wait(Duration::from_secs(1));
    let service = Service::start(config(directory.path(), source)).await.unwrap();
    let mut parent = blocks[9].block.hash;
    for bundle in &blocks[10..36] {
        let bundle = renamed(bundle, parent);
        parent = bundle.block.hash;
        feed.push(bundle).await.unwrap();
    }
    let error = service.reached(MAINNET, 35).await.unwrap_err().to_string();
    assert!(error.contains("final"), "{error}");
    let (status, body) = ask(&service, "/api/proxy?action=eth_blockNumber").await;
    assert_eq!((status, &body["result"]), (200, &"0x1f".into()));
    let stopped = service.stop().await.unwrap_err();
    assert!(
        matches!(stopped, ServiceError::Sync { chain: MAINNET, .. }),
        "{stopped}"
    );

    // Served without a source: nothing is written, and nobody waits for blocks.
    let service = Service::start(config(directory.path(), chain())).await.unwrap();
    let (status, body) = ask(&service, "/api/proxy?action=eth_blockNumber").await;
    assert_eq!((status, &body["result"]), (200, &"0x1f".into()));
    let error = service.reached(MAINNET, 1_000).await.unwrap_err();
    assert_eq!(error.to_string(), "chain mainnet is not synced");
    service.stop().await.unwrap();
}

/// Has a block and falls over it.
struct Broken;

impl BlockSource for Broken {
    fn head(&self) -> SourceFuture<'_, Option<SourceHead>> {
        let head = SourceHead {
            number: 3,
            finalized: None,
        };
        Box::pin(async move { Ok(Some(head)) })
    }

    fn hash(&self, _: u64) -> SourceFuture<'_, Option<B256>> {
        Box::pin(async { Ok(None) })
    }

    fn bundle(&self, _: u64) -> SourceFuture<'_, Option<Bundle>> {
        panic!("a bug of the source");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_panics_ends_its_sync_alone() {
    let directory = scratch::directory();
    let service = Service::start(config(directory.path(), chain().fed_by(Broken)))
        .await
        .unwrap();
    let error = service.reached(MAINNET, 1).await.unwrap_err().to_string();
    assert_eq!(error, "sync stopped: the source of blocks panicked");
    let (status, _) = ask(&service, "/health").await;
    assert_eq!(status, 200);
    assert!(service.stop().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mount_keeps_the_rules_of_every_request() {
    let directory = scratch::directory();
    let feed = BlockFeed::new(100);
    let service = Service::start(config(directory.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    for bundle in blocks(13) {
        feed.push(bundle).await.unwrap();
    }
    service.reached(MAINNET, 12).await.unwrap();
    let (mount, handler) = (service.mount(), service.handler());
    let send = |method: &str, target: String| {
        let request = http::Request::builder().method(method).uri(target);
        let (mount, request) = (mount.clone(), request.body("ignored".to_owned()).unwrap());
        async move { mount.answer(request).await }
    };
    let number = "/api/proxy?action=eth_blockNumber".to_owned();
    let get = send("GET", number.clone()).await;
    let length = http_body::Body::size_hint(get.body()).exact().unwrap();
    assert_eq!(get.headers()["x-indexed-block-number"], "12");
    assert_eq!(get.headers()["access-control-allow-origin"], "*");
    assert!(get.headers().contains_key("x-request-id"));
    let head = send("HEAD", number.clone()).await;
    assert_eq!(head.headers()["content-length"], length.to_string());
    assert!(head.into_body().collect().await.unwrap().to_bytes().is_empty());
    for (method, target, status) in [
        ("OPTIONS", number.clone(), 204),
        ("POST", number, 405),
        ("GET", "/nowhere".to_owned(), 404),
        ("GET", format!("/api/{}", "x".repeat(9_000)), 414),
    ] {
        assert_eq!(send(method, target).await.status(), status, "{method}");
    }
    // With a body, where one is asked for: through the mount, and as the handler has it from another transport.
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    let post = |target: &str, body: Vec<u8>| {
        let request = http::Request::post(target).header("content-type", "application/json");
        request.body(bytes::Bytes::from(body)).unwrap()
    };
    let told = mount.answer_upload(post("/rpc", call.into())).await;
    assert_eq!(told.status(), 200);
    let told = told.into_body().collect().await.unwrap().to_bytes();
    let number = r#"{"jsonrpc":"2.0","id":1,"result":"0xc"}"#;
    assert_eq!(told, number);
    let too_long = mount.answer_upload(post("/rpc", vec![b' '; (1 << 20) + 1])).await;
    assert_eq!(too_long.status(), 413);
    let refused = mount.answer_upload(post("/api/logs/get-logs", call.into())).await;
    assert_eq!(refused.status(), 405);
    let (parts, body) = post("/rpc", call.into()).into_parts();
    let request = quarry::http::Request::new(parts).with_upload(body);
    let told = handler.handle(request).answer().await;
    assert_eq!(told.body().whole().unwrap(), number);
    // Dropped without a word, it stops all the same; the mount answers on.
    drop(service);
    feed.push(blocks(14).remove(13)).await.unwrap();
    let get = send("GET", "/health".to_owned()).await;
    assert_eq!(get.status(), 200);
}

fn not_asked_for<T: 'static>() -> UpstreamFuture<'static, T> {
    Box::pin(async { Err(UpstreamError::Failed("not asked for".to_owned())) })
}

/// The state of a host whose way to it gives the thread up, as a runtime of many threads allows.
struct GivesUpItsThread;

impl Upstream for GivesUpItsThread {
    fn balance(&self, _: Address, block: u64) -> UpstreamFuture<'_, U256> {
        Box::pin(async move { Ok(tokio::task::block_in_place(|| U256::from(1_000 + block))) })
    }

    fn transaction_count(&self, _: Address, _: u64) -> UpstreamFuture<'_, u64> {
        not_asked_for()
    }

    fn token_supply(&self, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        not_asked_for()
    }

    fn token_balance(&self, _: Address, _: Address, _: u64) -> UpstreamFuture<'_, U256> {
        not_asked_for()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_stay_on_the_runtime_of_the_host() {
    let directory = scratch::directory();
    let feed = BlockFeed::new(100);
    // Without a genesis allocation balances are asked of the host.
    let chain = ChainConfig::new(MAINNET, 31_337, blocks(1)[0].block.hash)
        .fed_by(feed.clone())
        .with_upstream(Arc::new(GivesUpItsThread));
    let service = Service::start(config(directory.path(), chain)).await.unwrap();
    for bundle in blocks(5) {
        feed.push(bundle).await.unwrap();
    }
    service.reached(MAINNET, 4).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = tokio::spawn(service.serve(listener));
    let mut connection = quarry::http::Connection::open(&address).await.unwrap();
    let mut body = Vec::new();
    let target = "/api/account/0x00000000000000000000000000000000000000aa/balance";
    let got = connection
        .get(target, |frame| body.extend_from_slice(frame))
        .await
        .unwrap();
    assert_eq!(got.status, 200, "{}", String::from_utf8_lossy(&body));
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["balance"], "1004", "{body}");
    drop(connection);
    service.stop().await.unwrap();
    assert_eq!(serving.await.unwrap(), 0);
}
