//! As many requests as may be, and bodies that do not come.

use std::convert::Infallible;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::body::{Body, Frame};
use quarry::http::Limits;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::client::{Reply, read_to_end};
use crate::metrics::figures;
use crate::mined::Mined;

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
const COUNT: &str = "/api/block/1/transaction-count";

/// A body of which nothing ever comes.
struct Never;

impl Body for Never {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}

/// Requests of one connection over HTTP/2 whose bodies do not come, and the statuses of those that are answered.
struct Idler {
    answers: JoinSet<u16>,
    socket: std::net::TcpStream,
}

impl Idler {
    async fn ask(world: &Mined, method: &str, target: &str, count: usize) -> Self {
        let socket = world.server.connect().await.into_std().unwrap();
        let stream = TcpStream::from_std(socket.try_clone().unwrap()).unwrap();
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
        tokio::spawn(connection);
        let mut answers = JoinSet::new();
        for _ in 0..count {
            let request = hyper::Request::builder().method(method);
            let request = request.uri(format!("http://test{target}")).body(Never).unwrap();
            let answer = sender.send_request(request);
            answers.spawn(async move { answer.await.unwrap().status().as_u16() });
        }
        Self { answers, socket }
    }

    async fn next(&mut self) -> u16 {
        let next = tokio::time::timeout(Duration::from_secs(10), self.answers.join_next());
        next.await.expect("nobody is answered").unwrap().unwrap()
    }
}

impl Drop for Idler {
    fn drop(&mut self) {
        // Bodies that never come would keep the connection.
        drop(self.socket.shutdown(Shutdown::Both));
    }
}

/// Waits until a figure is that.
async fn becomes(world: &Mined, name: &str, value: f64) {
    let began = Instant::now();
    loop {
        let now = figures(world).await[name];
        if now == value {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{name} is {now}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn bodies_that_do_not_come_hold_no_place_of_others() {
    let limits = Limits {
        requests_max: 12,
        ..Limits::default()
    };
    let world = Mined::start(5, limits).await;
    let mut idler = Idler::ask(&world, "POST", "/rpc", 12).await;
    // Half of the places for bodies, and in the other half as many as one connection may have: eight in all.
    for _ in 0..4 {
        assert_eq!(idler.next().await, 503);
    }
    becomes(&world, "quarry_http_uploads_awaited", 8.0).await;
    for target in ["/health", "/ready", "/status", "/metrics", COUNT] {
        assert_eq!(world.get(target, &[]).await.status(), 200, "{target}");
    }
    let now = figures(&world).await;
    // The page itself.
    assert_eq!(now["quarry_http_requests_in_flight"], 1.0);
    assert_eq!(now["quarry_http_requests_refused_total"], 4.0);
    assert_eq!(world.server.post("/rpc", CALL).await.status, 200);
    // Another connection has the rest of the places.
    let mut other = Idler::ask(&world, "POST", "/api", 5).await;
    assert_eq!(other.next().await, 503);
    becomes(&world, "quarry_http_uploads_awaited", 12.0).await;
    // Whose body is there needs none of them, and one that comes in time gets the next.
    for _ in 0..20 {
        assert_eq!(world.server.post("/rpc", CALL).await.status, 200);
    }
    let head = format!(
        "POST /rpc HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        CALL.len()
    );
    let slowly = async || {
        let mut stream = world.server.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        stream.write_all(CALL.as_bytes()).await.unwrap();
        Reply::parse(&read_to_end(&mut stream).await).status
    };
    assert_eq!(slowly().await, 503);
    drop(idler);
    becomes(&world, "quarry_http_uploads_awaited", 4.0).await;
    assert_eq!(slowly().await, 200);
    drop(other);
    becomes(&world, "quarry_http_uploads_awaited", 0.0).await;
}

#[tokio::test]
async fn bodies_that_nobody_asked_for_hold_no_place_of_others() {
    let limits = Limits {
        requests_max: 12,
        ..Limits::default()
    };
    let world = Mined::start(5, limits).await;
    // Two seconds are waited for each of eight; the others are answered at once.
    let mut idler = Idler::ask(&world, "GET", COUNT, 12).await;
    for _ in 0..4 {
        assert_eq!(idler.next().await, 200);
    }
    for target in ["/health", "/ready", "/metrics", COUNT] {
        assert_eq!(world.get(target, &[]).await.status(), 200, "{target}");
    }
    for _ in 0..8 {
        assert_eq!(idler.next().await, 200);
    }
    becomes(&world, "quarry_http_uploads_awaited", 0.0).await;
}

#[tokio::test]
async fn what_holds_nothing_is_answered_however_many_requests_there_are() {
    let limits = Limits {
        requests_max: 0,
        ..Limits::default()
    };
    let world = Mined::start(5, limits).await;
    for (method, target, status) in [
        ("GET", "/health", 200),
        ("HEAD", "/health", 200),
        ("GET", "/health?a=1", 200),
        ("OPTIONS", "/rpc", 204),
        ("PUT", "/health", 405),
        ("GET", "/ready", 503),
        ("GET", COUNT, 503),
        ("GET", "/api?module=stats&action=ethsupply", 503),
        ("POST", "/rpc", 503),
        ("POST", "/api", 503),
        ("GET", "/healthy", 503),
    ] {
        let answer = world.ask(method, target, &[]).await;
        assert_eq!(answer.status(), status, "{method} {target}");
    }
}
