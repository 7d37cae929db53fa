//! Bodies that nobody asked for, or that are refused before they are read: the answer comes whole, whatever is still sent. And long ones, which
//! are not read by threads that own sockets.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use quarry::http::{self, Handled, Handler, Limits, Pool, PoolLimits, Request, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use crate::client::{Reply, Server, dialects, dialects_on};
use crate::skipped::skipped;

/// More than hyper reads at once, and less than is thrown away.
const UPLOAD: usize = 200 << 10;
const PIECES: usize = 10;

/// Sends a POST, the more of it after its answer may have come, and insists that all of it is taken and that the connection ends in order.
async fn post_slowly(server: &Server, target: &str, headers: &str) -> Reply {
    let mut stream = server.connect().await;
    stream.set_nodelay(true).unwrap();
    let head = format!("POST {target} HTTP/1.1\r\nhost: test\r\n{headers}content-length: {UPLOAD}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = vec![b' '; UPLOAD / PIECES];
    for _ in 0..PIECES {
        let sent = stream.write_all(&piece).await;
        sent.expect("all of the body should be taken");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes)).await;
    read.expect("the server should close the connection")
        .expect("the connection should end in order");
    let reply = Reply::parse(&String::from_utf8(bytes).unwrap());
    let length = reply.header("content-length").unwrap();
    assert_eq!(length.parse(), Ok(reply.body.len()));
    assert_eq!(reply.header("connection"), Some("close"));
    reply
}

#[tokio::test]
async fn a_long_body_where_none_is_asked_for_gets_its_answer_whole() {
    let server = Server::start(dialects(), Limits::default()).await;
    for _ in 0..20 {
        let reply = post_slowly(&server, "/api/logs/get-logs", "").await;
        reply.assert_error(405, "Method not allowed");
    }
}

#[tokio::test]
async fn a_long_body_of_who_asks_too_often_gets_its_answer_whole() {
    let limits = Limits {
        rate: NonZeroU32::new(1),
        ..Limits::default()
    };
    let server = Server::start(dialects(), limits).await;
    let began = std::time::Instant::now();
    let mut limited = 0;
    for place in 0..24 {
        let target = if place % 2 == 0 {
            "/rpc"
        } else {
            "/api/logs/get-logs"
        };
        let reply = post_slowly(&server, target, "connection: close\r\n").await;
        if reply.status == 429 {
            limited += 1;
            assert!(reply.body.contains("Rate limit exceeded"), "{}", reply.body);
        }
    }
    // Two at once, and one a second.
    let allowed = 3 + began.elapsed().as_secs();
    assert!(limited + allowed >= 24, "{limited} of 24, {allowed} allowed");
}

#[tokio::test]
async fn a_long_body_that_is_refused_for_its_head_or_for_want_of_room_gets_its_answer_whole() {
    let server = Server::start(dialects(), Limits::default()).await;
    let long = format!("a: {}\r\n", "x".repeat(17_000));
    for target in ["/rpc", "/api/logs/get-logs"] {
        let reply = post_slowly(&server, &format!("{target}?{}", "x".repeat(9_000)), "").await;
        assert_eq!(reply.status, 414, "{}", reply.body);
        let reply = post_slowly(&server, target, &long).await;
        assert_eq!(reply.status, 431, "{}", reply.body);
    }
    let limits = Limits {
        requests_max: 0,
        ..Limits::default()
    };
    let server = Server::start(dialects(), limits).await;
    for target in ["/rpc", "/api"] {
        let reply = post_slowly(&server, target, "").await;
        assert_eq!(reply.status, 503, "{}", reply.body);
    }
    // What is not spoken anywhere is refused as ever.
    let reply = post_slowly(&server, "/api/logs/get-logs", "").await;
    reply.assert_error(405, "Method not allowed");
}

#[tokio::test]
async fn a_short_body_where_none_is_asked_for_is_no_reason_to_close() {
    let server = Server::start(dialects(), Limits::default()).await;
    let last = "GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    for body in [
        "content-length: 5\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n again\r\n0\r\n\r\n",
    ] {
        let two = format!("POST /health HTTP/1.1\r\nhost: x\r\n{body}{last}");
        let text = server.exchange(two).await;
        assert!(text.starts_with("HTTP/1.1 405 "), "{text}");
        assert!(text.contains("HTTP/1.1 200 "), "{text}");
        assert_eq!(text.matches("connection: close").count(), 1, "{text}");
    }
}

/// Sends a POST over HTTP/2 piece by piece, and insists that all of it is taken before the answer comes: one that comes before resets the rest,
/// over which curl fails. The status and the body of the answer.
async fn post_over_http2(server: &Server, target: &str, length: usize, is_declared: bool) -> (u16, String) {
    let io = hyper_util::rt::TokioIo::new(server.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let is_taken = Arc::new(AtomicBool::new(false));
    let taken = Arc::clone(&is_taken);
    let pieces = stream::unfold(0, move |sent| {
        let taken = Arc::clone(&taken);
        async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            let piece = Bytes::from(vec![b' '; (length - sent).min(32 << 10)]);
            if piece.is_empty() {
                taken.store(true, Ordering::Relaxed);
                return None;
            }
            let sent = sent + piece.len();
            Some((Ok::<_, Infallible>(Frame::data(piece)), sent))
        }
    });
    let mut request = hyper::Request::post(format!("http://test{target}"));
    if is_declared {
        request = request.header("content-length", length);
    }
    let request = request.body(StreamBody::new(Box::pin(pieces))).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert!(is_taken.load(Ordering::Relaxed), "{target}, {length}");
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_body_over_http2_that_is_too_long_is_taken_before_that_is_said() {
    let server = Server::start(dialects(), Limits::default()).await;
    // One dialect says it in its envelope.
    for (target, length, told) in [("/api", 300 << 10, 200), ("/rpc", 2_000_000, 413)] {
        for is_declared in [true, false] {
            let (status, body) = post_over_http2(&server, target, length, is_declared).await;
            assert_eq!(status, told, "{body}");
            assert!(body.contains("Request body too large"), "{body}");
        }
    }
}

#[tokio::test]
async fn a_body_over_http2_of_who_asks_too_often_is_taken_before_that_is_said() {
    let limits = Limits {
        rate: NonZeroU32::new(1),
        ..Limits::default()
    };
    let server = Server::start(dialects(), limits).await;
    let mut limited = 0;
    for target in ["/rpc", "/api/logs/get-logs"].repeat(4) {
        let (status, body) = post_over_http2(&server, target, 600 << 10, true).await;
        limited += usize::from(status == 429);
        assert_eq!(status == 429, body.contains("Rate limit exceeded"), "{body}");
    }
    assert!(limited > 2, "{limited}");
}

/// Never answers a GET, and tells that there was one.
#[derive(Default)]
struct Busy(Notify);

impl Handler for Busy {
    fn handle(&self, request: Request) -> Handled {
        if request.is_post() {
            return Handled::Now(Response::new(http::Body::Empty));
        }
        self.0.notify_one();
        Handled::later(std::future::pending())
    }

    fn upload_bytes_max(&self, _: &str) -> Option<usize> {
        Some(1 << 20)
    }
}

#[tokio::test]
async fn a_body_over_http2_without_a_place_for_its_request_is_taken_before_that_is_said() {
    let limits = Limits {
        requests_max: 1,
        ..Limits::default()
    };
    let busy = Arc::new(Busy::default());
    let server = Server::start(Arc::clone(&busy), limits).await;
    assert_eq!(post_over_http2(&server, "/", 600 << 10, true).await.0, 200);
    let mut held = server.connect().await;
    held.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    busy.0.notified().await;
    let (status, body) = post_over_http2(&server, "/", 600 << 10, true).await;
    assert_eq!(status, 503, "{body}");
}

/// curl fails over a stream that is reset while it sends.
#[tokio::test]
async fn curl_hears_over_http2_why_its_body_is_refused() {
    let server = Server::start(dialects(), Limits::default()).await;
    for (target, length, told) in [("/api", 300 << 10, "200"), ("/rpc", 2_000_000, "413")] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("body");
        std::fs::write(&file, vec![b' '; length]).unwrap();
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--http2-prior-knowledge", "--max-time", "20"]);
        curl.args(["--write-out", "%{http_code}", "--data-binary"]);
        curl.arg(format!("@{}", file.display()));
        curl.arg(format!("http://{}{target}", server.address));
        let run = tokio::task::spawn_blocking(move || curl.output()).await.unwrap();
        let run = match run {
            Err(error) if error.kind() == ErrorKind::NotFound => return skipped("curl is not installed"),
            run => run.unwrap(),
        };
        if run.status.code() == Some(2) {
            return skipped("this curl does not speak HTTP/2");
        }
        let said = String::from_utf8(run.stdout).unwrap();
        assert_eq!(run.status.code(), Some(0), "{target}: {said}");
        assert!(
            said.contains("Request body too large") && said.ends_with(told),
            "{target}: {said}"
        );
    }
}

#[tokio::test]
async fn long_bodies_of_calls_are_read_by_the_pool() {
    // It takes nothing.
    let limits = PoolLimits {
        points_waiting_max: 0,
        ..PoolLimits::default()
    };
    let server = Server::start(dialects_on(Pool::new(limits).unwrap()), Limits::default()).await;
    for (count, status, text) in [(100, 200, "-32600"), (20_000, 503, "Server is busy")] {
        let body = format!("[{}1]", "1,".repeat(count));
        let reply = server.post("/rpc", &body).await;
        assert_eq!(reply.status, status, "{}", reply.body);
        assert!(reply.body.contains(text), "{}", reply.body);
    }
    // Otherwise what is said of them is the same.
    let server = Server::start(dialects(), Limits::default()).await;
    for body in ["1,".repeat(20_000), format!("[{}1]", "1,".repeat(500_000))] {
        let reply = server.post("/rpc", &body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert!(
            reply.body.contains("-32700") != body.starts_with('['),
            "{}",
            reply.body
        );
    }
}
