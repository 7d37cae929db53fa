//! `/metrics`: the page can be read, and its figures move with what is asked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use quarry::http::{
    FrameSource, Handled, Handler, HttpError, Limits, Pool, Request, Traffic, json_response, stream_frames,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::client::{Server, pool};
use crate::mined::{Mined, ask, header};
use crate::pace::at_most;

/// Samples by name and labels. Fails on anything that is not OpenMetrics text.
pub(crate) fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut kinds = BTreeMap::new();
    let mut samples = BTreeMap::new();
    let text = text.strip_suffix("# EOF\n").expect("an end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(
                kinds.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{name} comes twice"
            );
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let family = name.split('{').next().unwrap();
        let suffixes = ["", "_total", "_bucket", "_sum", "_count"];
        let kind = suffixes
            .iter()
            .find_map(|suffix| kinds.get(family.strip_suffix(suffix)?))
            .unwrap_or_else(|| panic!("{line}: no type"));
        assert!(["counter", "gauge", "histogram"].contains(&kind.as_str()));
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(samples.insert(name.to_owned(), value).is_none(), "{line}: twice");
    }
    samples
}

pub(crate) async fn figures(world: &Mined) -> BTreeMap<String, f64> {
    let page = world.get("/metrics", &[]).await;
    assert_eq!(page.status(), 200);
    let kind = header(&page, "content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    parse(std::str::from_utf8(page.body()).unwrap())
}

#[tokio::test]
async fn figures_move_with_what_is_asked() {
    let mut world = Mined::start(40, Limits::default()).await;
    let before = figures(&world).await;
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    let answer = world.get(&list, &[]).await;
    let rows = world.bundles.iter().flat_map(|bundle| &bundle.receipts);
    let rows = rows.flat_map(|receipt| &receipt.logs);
    let rows = rows.filter(|log| log.address == world.busiest()).count();
    // Each once: what is asked again may be given again.
    for number in 5..8 {
        world
            .get(&format!("/api/block/{number}/transaction-count"), &[])
            .await;
    }
    world.get("/api/block/x/transaction-count", &[]).await;
    world.get("/nowhere", &[]).await;
    world.ask("PUT", "/health", &[]).await;
    world.mine(0);
    let after = figures(&world).await;
    let moved =
        |name: &str| after.get(name).copied().unwrap_or(0.0) - before.get(name).copied().unwrap_or(0.0);
    for (name, expected) in [
        (
            "quarry_http_requests_total{operation=\"L1,L2,L3\",status=\"200\"}",
            1.0,
        ),
        ("quarry_http_request_seconds_count{operation=\"L1,L2,L3\"}", 1.0),
        (
            "quarry_http_response_bytes_total{operation=\"L1,L2,L3\"}",
            answer.body().len() as f64,
        ),
        (
            "quarry_store_visits_total{operation=\"L1,L2,L3\",kind=\"rows\"}",
            rows as f64,
        ),
        ("quarry_http_requests_total{operation=\"B1\",status=\"200\"}", 3.0),
        ("quarry_http_requests_total{operation=\"B1\",status=\"400\"}", 1.0),
        ("quarry_http_request_seconds_count{operation=\"B1\"}", 4.0),
        (
            "quarry_http_requests_total{operation=\"none\",status=\"404\"}",
            1.0,
        ),
        (
            "quarry_http_requests_total{operation=\"none\",status=\"405\"}",
            1.0,
        ),
        // The page before this one is counted, this one is not yet.
        (
            "quarry_http_requests_total{operation=\"metrics\",status=\"200\"}",
            1.0,
        ),
        ("quarry_http_connections_accepted_total", 8.0),
        ("quarry_head{chain=\"mainnet\"}", 1.0),
        ("quarry_finalized{chain=\"mainnet\"}", 0.0),
        ("quarry_node_head{chain=\"mainnet\"}", 1.0),
        ("quarry_http_requests_in_flight", 0.0),
    ] {
        assert_eq!(moved(name), expected, "{name}");
    }
    for name in ["units", "chunks", "gets"] {
        let name = format!("quarry_store_visits_total{{operation=\"L1,L2,L3\",kind=\"{name}\"}}");
        assert!(moved(&name) > 0.0, "{name}");
    }
    let waited =
        ["point", "scan"].map(|lane| moved(&format!("quarry_pool_wait_seconds_count{{lane=\"{lane}\"}}")));
    assert!(waited[0] >= 4.0 && waited[1] >= 2.0, "{waited:?}");
    for name in [
        "process_resident_memory_bytes",
        "quarry_pool_threads",
        "quarry_http_connections",
        "quarry_store_bytes{chain=\"mainnet\"}",
    ] {
        assert!(after[name] > 0.0, "{name}");
    }
}

#[tokio::test]
async fn the_cap_on_requests_is_told_and_counted() {
    let limits = Limits {
        requests_max: 1,
        ..Limits::default()
    };
    let world = Mined::start(40, limits).await;
    let list = format!("/api/logs/get-logs?address={}&offset=10000", world.busiest());
    // Its answer is not taken, so it stays under way.
    let mut taker = Taker::connect(&world.server).await;
    assert_eq!(taker.ask(&list, "identity").await, 200);
    let count = "/api/block/1/transaction-count";
    let refused = world.get(count, &[]).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.body(), "{\"error\":\"Too many requests\"}");
    assert_eq!(header(&refused, "retry-after"), Some("1"));
    // Whether the process answers is told all the same.
    assert_eq!(world.get("/health", &[]).await.status(), 200);
    taker.go();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while world.get(count, &[]).await.status() != 200 {
        assert!(
            std::time::Instant::now() < deadline,
            "its place did not come back"
        );
    }
    assert!(figures(&world).await["quarry_http_requests_refused_total"] >= 1.0);
}

#[tokio::test]
async fn no_list_is_begun_while_those_that_nobody_takes_fill_the_room() {
    const ROOM: usize = 8 << 20;
    let limits = Limits {
        write_timeout: Duration::from_secs(20),
        ..Limits::default()
    };
    let world = Mined::with_room(40, limits, ROOM).await;
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    let count = async || figures(&world).await["quarry_http_unsent_bytes"];
    let first = world.get(&list, &[]).await;
    assert_eq!(first.status(), 200);
    let sent = std::time::Instant::now();
    while count().await > 0.0 {
        assert!(sent.elapsed() < Duration::from_secs(10), "it was sent");
    }
    let request = format!("GET {list}&offset=10000 HTTP/1.1\r\nhost: x\r\n\r\n").repeat(40);
    let mut held = Vec::new();
    while count().await < ROOM as f64 {
        assert!(
            held.len() < 40,
            "{} clients hold {} bytes",
            held.len(),
            count().await
        );
        let mut client = world.server.connect().await;
        client.write_all(request.as_bytes()).await.unwrap();
        client.read_exact(&mut [0; 16]).await.unwrap();
        held.push(client);
        // Until the buffers in between are full.
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    assert!(
        held.len() > 2,
        "{} clients hold {} bytes",
        held.len(),
        count().await
    );
    let refused = world.get(&list, &[]).await;
    assert_eq!(header(&refused, "retry-after"), Some("1"));
    let text = String::from_utf8_lossy(refused.body()).into_owned();
    let batch = r#"[{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"},
        {"jsonrpc":"2.0","id":2,"method":"eth_getBlockByNumber","params":["0x1",true]}]"#;
    let told = world.server.post("/rpc", batch).await;
    for (status, text) in [(refused.status().as_u16(), &text), (told.status, &told.body)] {
        assert_eq!(status, 503, "{text}");
        assert!(text.contains("Too many long answers are being sent"), "{text}");
    }
    // Who asks for little is answered.
    let block = world.get("/api/block/1/transaction-count", &[]).await;
    assert_eq!(block.status(), 200, "{block:?}");
    assert!(figures(&world).await["quarry_http_requests_refused_total"] >= 2.0);

    // Whoever goes on asking gets it: clients that take nothing have a tenth of their time now.
    let asked = std::time::Instant::now();
    let again = loop {
        let again = world.get(&list, &[]).await;
        if again.status() == 200 {
            break again;
        }
        assert!(asked.elapsed() < Duration::from_secs(15), "nobody is cut off");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(again.body(), first.body());
    // A kernel that takes a little more may have made room before anyone is cut off; they are all the same, and
    // long before the 20 s that clients have elsewhere.
    while figures(&world).await["quarry_http_connections_cut_off_total"] < 1.0 {
        assert!(asked.elapsed() < Duration::from_secs(15), "nobody is cut off");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(held);
    while count().await > 0.0 {
        assert!(asked.elapsed() < Duration::from_secs(30), "it did not come back");
    }
    assert_eq!(world.server.post("/rpc", batch).await.status, 200);
}

/// A client over HTTP/2 that takes nothing of its answers: its windows are a byte.
struct Taker {
    client: hyper::client::conn::http2::SendRequest<http_body_util::Empty<Bytes>>,
    connection: tokio::task::JoinHandle<hyper::Result<()>>,
    kept: Vec<hyper::Response<hyper::body::Incoming>>,
}

impl Taker {
    async fn connect(server: &Server) -> Self {
        let io = hyper_util::rt::TokioIo::new(server.connect().await);
        let (client, connection) =
            hyper::client::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new())
                .initial_stream_window_size(1)
                .handshake(io)
                .await
                .unwrap();
        Self {
            client,
            connection: tokio::spawn(connection),
            kept: Vec::new(),
        }
    }

    /// Asks for an answer in a coding; its status.
    async fn ask(&mut self, target: &str, coding: &str) -> u16 {
        let request = hyper::Request::get(format!("http://test{target}")).header("accept-encoding", coding);
        let request = request.body(http_body_util::Empty::new()).unwrap();
        let response = self.client.send_request(request).await.unwrap();
        let status = response.status().as_u16();
        self.kept.push(response);
        status
    }

    fn go(self) {
        drop((self.kept, self.client));
        self.connection.abort();
    }

    /// Goes, and waits until nothing is held.
    async fn leave(self, world: &Mined) {
        self.go();
        let dropped = std::time::Instant::now();
        while figures(world).await["quarry_http_unsent_bytes"] > 0.0 {
            assert!(
                dropped.elapsed() < Duration::from_secs(10),
                "it did not come back"
            );
        }
    }
}

#[tokio::test]
async fn one_connection_does_not_get_all_of_the_room() {
    let world = Mined::with_room(40, Limits::default(), 8 << 20).await;
    let list = format!("/api/logs/get-logs?address={}&offset=10000", world.busiest());
    let mut taker = Taker::connect(&world.server).await;
    let mut statuses = Vec::new();
    for _ in 0..12 {
        statuses.push(taker.ask(&list, "identity").await);
    }
    let given = statuses.iter().filter(|&&status| status == 200).count();
    assert!((1..12).contains(&given), "{statuses:?}");
    assert_eq!(statuses[11], 503, "{statuses:?}");
    // Others have theirs.
    assert_eq!(world.get(&list, &[]).await.status(), 200);
    let refused = figures(&world).await["quarry_http_requests_refused_total"];
    assert_eq!(refused, (12 - given) as f64);
    taker.leave(&world).await;
}

/// What hyper holds of streams whose window is a byte, their requests long ended.
#[tokio::test]
async fn answers_too_short_to_count_alone_count_beside_each_other() {
    let world = Mined::with_room(40, Limits::default(), 8 << 20).await;
    let list = format!("/api/logs/get-logs?address={}&offset=100", world.busiest());
    let mut taker = Taker::connect(&world.server).await;
    for coding in ["gzip", "br", "zstd", "identity"].repeat(20) {
        assert_eq!(taker.ask(&list, coding).await, 200);
    }
    let asked = std::time::Instant::now();
    let counted = async || figures(&world).await["quarry_http_unsent_bytes"];
    while counted().await < 80.0 * 1024.0 {
        assert!(
            asked.elapsed() < Duration::from_secs(10),
            "{} bytes are counted",
            counted().await
        );
    }
    taker.leave(&world).await;
}

/// Answers after as many milliseconds as the path says; under `/frames/` with three frames, each after so many.
struct Slow {
    pool: Pool,
    traffic: Arc<Traffic>,
}

struct SlowFrames(usize, Duration);

impl FrameSource for SlowFrames {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        if self.0 == 0 {
            return Ok(None);
        }
        self.0 -= 1;
        std::thread::sleep(self.1);
        Ok(Some(Bytes::from_static(b"frame")))
    }
}

impl Handler for Slow {
    fn handle(&self, request: Request) -> Handled {
        let (kind, ms) = request.path()[1..].split_once('/').unwrap();
        request.name_operation(usize::from(kind == "frames"));
        let (ms, frames) = (Duration::from_millis(ms.parse().unwrap()), kind == "frames");
        let pool = self.pool.clone();
        Handled::later(async move {
            if frames {
                let source = Box::new(SlowFrames(3, ms));
                let body = stream_frames(&pool, Bytes::from_static(b"first"), source, None);
                return json_response(hyper::StatusCode::OK, body);
            }
            tokio::time::sleep(ms).await;
            HttpError::unavailable("later").into()
        })
    }

    fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }
}

#[tokio::test]
async fn slow_requests_are_remembered_without_secrets() {
    let names = ["plain", "frames"].map(str::to_owned);
    let traffic = Arc::new(Traffic::new(names));
    let handler = Slow {
        pool: pool(),
        traffic: Arc::clone(&traffic),
    };
    let server = Server::start(Arc::new(handler), Limits::default()).await;
    for target in [
        "/plain/0",
        "/plain/2000?a=1&ApiKey=S3CRET",
        "/frames/10",
        "/frames/800?b=2",
        "/plain/300",
    ] {
        ask(&server, "GET", target, &[]).await;
    }
    let figures = traffic.figures();
    assert_eq!((figures.answered, figures.failed), (5, 3));
    let (whole, plain) = ("plain 503 /plain/2000?a=1&ApiKey=...", "plain 503 /plain/300");
    let frames = "frames 200 /frames/800?b=2";
    let show = |one: &quarry::http::SlowRequest| format!("{} {} {}", one.operation, one.status, one.target);
    // Where the machine is slow, so are the others.
    let shown = |kept: &[quarry::http::SlowRequest]| -> Vec<String> {
        assert_eq!(kept.len() as u64, figures.slow);
        let named = |one: &String| [whole, plain, frames].contains(&&**one);
        kept.iter().map(show).filter(named).collect()
    };
    assert_eq!(shown(&figures.slow_latest), [plain, frames, whole]);
    // Three frames of 800 ms that were waited for, but for what was made ahead.
    let longest = shown(&figures.slow_longest);
    assert_eq!(longest.len(), 3);
    assert!(
        longest.contains(&frames.to_owned()) && longest.last().unwrap() == plain,
        "{longest:?}"
    );
    for one in &figures.slow_latest {
        assert!(one.own >= quarry::http::SLOW && one.own <= one.whole, "{one:?}");
        assert!(one.whole < at_most(Duration::from_secs(5)), "{one:?}");
        assert!(show(one) != frames || one.bytes == 20, "{one:?}");
    }
    // Over the seconds since it began.
    let (minute, age) = (&figures.minute, figures.age.as_secs_f64());
    assert!(
        minute.answered * age > 4.5 && minute.failed * age > 2.5,
        "{minute:?} after {age} s"
    );
    let kept = format!("{figures:?}");
    assert!(!kept.contains("S3CRET") && !kept.contains("127.0.0.1"), "{kept}");
}

#[tokio::test]
async fn the_status_tells_what_was_asked() {
    let world = Mined::start(40, Limits::default()).await;
    for _ in 0..4 {
        world.get("/api/block/5/transaction-count", &[]).await;
    }
    world.get("/api/block/x/transaction-count", &[]).await;
    let status = world.get("/status", &[]).await;
    let status: serde_json::Value = serde_json::from_slice(status.body()).unwrap();
    let requests = &status["requests"];
    assert_eq!(
        (&requests["answered"], &requests["failed"]),
        (&5.into(), &0.into())
    );
    assert!(requests["perSecond1m"].as_f64() > Some(0.0) && requests["perSecond1m"].as_f64() <= Some(5.0));
    let asked = &requests["byOperation"][0];
    assert_eq!(
        (&asked["operation"], &asked["answered"]),
        (&"B1".into(), &5.into())
    );
    let [median, p99] = ["medianMs", "p99Ms"].map(|name| asked[name].as_f64().unwrap());
    assert!(0.0 < median && median <= p99, "{asked}");
    assert_eq!(status["slow"]["overMs"], 250);
    assert_eq!(status["chains"]["mainnet"]["diskFull"], false);
}
