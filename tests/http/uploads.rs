//! Bodies that nobody asked for, or that are refused before they are read: the answer comes whole, whatever is still sent.

use std::num::NonZeroU32;
use std::time::Duration;

use quarry::http::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::client::{Reply, Server, dialects};

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
