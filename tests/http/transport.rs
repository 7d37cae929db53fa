//! Sockets: limits, methods, pipelining, aborted bodies, stalled clients, caps and the drain.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2::SendRequest;
use quarry::http::{
    Body, FrameSource, Handled, Handler, HttpError, Lane, Limits, Pool, Request, json_response, stream_frames,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::client::{Reply, Server, api, pool, read_to_end};
use crate::pace::at_most;

/// Paths that misbehave in ways no operation should.
struct Odd {
    pool: Pool,
    frames: Arc<AtomicUsize>,
    reached: Arc<Notify>,
    gate: Arc<Notify>,
}

impl Odd {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            pool: pool(),
            frames: Arc::default(),
            reached: Arc::default(),
            gate: Arc::default(),
        })
    }

    fn stream(&self, length: usize, fails: bool) -> Body {
        let source = Numbered {
            left: length,
            fails,
            frames: Arc::clone(&self.frames),
        };
        stream_frames(&self.pool, Bytes::from_static(b"first"), Box::new(source), None)
    }
}

struct Numbered {
    left: usize,
    fails: bool,
    frames: Arc<AtomicUsize>,
}

impl FrameSource for Numbered {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        if self.left == 0 {
            return if self.fails {
                Err(HttpError::internal("on purpose"))
            } else {
                Ok(None)
            };
        }
        self.left -= 1;
        self.frames.fetch_add(1, Ordering::SeqCst);
        Ok(Some(Bytes::from(vec![b'x'; 256 * 1024])))
    }
}

impl Handler for Odd {
    fn handle(&self, request: Request) -> Handled {
        let body = match request.path() {
            "/whole" => self.stream(3, false),
            "/broken" => self.stream(3, true),
            "/endless" => self.stream(100_000, false),
            "/panic" => panic!("on purpose"),
            "/panic-later" => return Handled::later(async { panic!("on purpose") }),
            "/panic-pool" => {
                let pool = self.pool.clone();
                return Handled::later(async move {
                    match pool.run(Lane::Point, || -> Body { panic!("on purpose") }).await {
                        Ok(body) => json_response(hyper::StatusCode::OK, body),
                        Err(error) => HttpError::from(error).into(),
                    }
                });
            }
            "/wait" => {
                let (reached, gate) = (Arc::clone(&self.reached), Arc::clone(&self.gate));
                return Handled::later(async move {
                    reached.notify_one();
                    gate.notified().await;
                    json_response(hyper::StatusCode::OK, b"{\"waited\":true}".to_vec())
                });
            }
            path => Body::from(format!("{{\"path\":\"{path}\"}}").into_bytes()),
        };
        json_response(hyper::StatusCode::OK, body).into()
    }
}

#[tokio::test]
async fn long_uris_are_refused() {
    let server = Server::start(api(), Limits::default()).await;
    for length in [8 * 1024, 20_000, 70_000, 130_000, 400_000] {
        let target = format!("/health?{}", "x".repeat(length));
        server.get(&target).await.assert_error(414, "URI too long");
        // Also behind another request on the same connection.
        let two = format!(
            "GET /health HTTP/1.1\r\nhost: x\r\n\r\nGET {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
        );
        let both = server.exchange(two).await;
        let second = both.rfind("HTTP/1.1").unwrap();
        Reply::parse(&both[second..]).assert_error(414, "URI too long");
    }
    assert_eq!(
        server
            .get(&format!("/health?{}", "x".repeat(8 * 1024 - 8)))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn large_headers_are_refused() {
    let server = Server::start(api(), Limits::default()).await;
    let request =
        |value: String| format!("GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{value}\r\n");
    let text = "Request header fields too large";
    for length in [17_000, 100_000, 300_000] {
        let one = request(format!("a: {}\r\n", "x".repeat(length)));
        Reply::parse(&server.exchange(one).await).assert_error(431, text);
    }
    let many: String = (0..500)
        .map(|at| format!("a{at}: {}\r\n", "x".repeat(40)))
        .collect();
    Reply::parse(&server.exchange(request(many)).await).assert_error(431, text);
    let fits = request(format!("a: {}\r\n", "x".repeat(16_000)));
    assert_eq!(Reply::parse(&server.exchange(fits).await).status, 200);
}

/// A connection over HTTP/2 without TLS.
async fn over_http2(server: &Server) -> SendRequest<Empty<Bytes>> {
    let io = hyper_util::rt::TokioIo::new(server.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    sender
}

/// Whoever there is no place for reads so in the protocol that they speak, and a HEAD gets no body.
async fn assert_no_place(server: &Server, because: &str) {
    let refused = server.get("/health").await;
    refused.assert_error(503, because);
    assert_eq!(refused.header("retry-after"), Some("1"));
    let head = server.exchange("HEAD /health HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = Reply::parse(&head);
    assert_eq!((head.status, head.whole_body().as_str()), (503, ""));
    let mut sender = over_http2(server).await;
    let request = hyper::Request::get("http://test/health")
        .body(Empty::new())
        .unwrap();
    let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
    assert_eq!(
        (parts.status.as_u16(), &parts.headers["retry-after"]),
        (503, &"1".parse().unwrap())
    );
    let body = body.collect().await.unwrap().to_bytes();
    assert_eq!(body, format!("{{\"error\":\"{because}\"}}"));
}

/// Header lines of so many bytes in all, each line's end counted: the last one takes what others of `each` bytes leave.
fn header_lines(bytes: usize, each: usize) -> String {
    let mut lines = "host: x\r\nconnection: close\r\n".to_owned();
    let line = |length: usize| format!("a: {}\r\n", "x".repeat(length - 5));
    while bytes - lines.len() > 2 * each {
        lines.push_str(&line(each));
    }
    lines.push_str(&line(bytes - lines.len()));
    lines
}

#[tokio::test]
async fn headers_may_have_16_kib_and_not_a_byte_more() {
    const MOST: usize = 16_384;
    let server = Server::start(api(), Limits::default()).await;
    let text = "Request header fields too large";
    for each in [MOST, 1_000, 41] {
        let ask = async |bytes: usize| {
            let lines = header_lines(bytes, each);
            assert_eq!(lines.len(), bytes);
            let request = format!("GET /health HTTP/1.1\r\n{lines}\r\n");
            Reply::parse(&server.exchange(request).await)
        };
        assert_eq!(ask(MOST).await.status, 200, "{each}");
        ask(MOST + 1).await.assert_error(431, text);
    }
    // Over HTTP/2 as if each were such a line.
    for (bytes, status) in [(MOST, 200), (MOST + 1, 431)] {
        let mut sender = over_http2(&server).await;
        let value = "x".repeat(bytes - 5);
        let request = hyper::Request::get("http://explorer.example/health").header("a", value);
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), status, "{bytes}");
    }
}

#[tokio::test]
async fn what_is_not_http_is_told_so() {
    let server = Server::start(api(), Limits::default()).await;
    for text in [
        "GARBAGE\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nbad header\r\n\r\n",
    ] {
        let reply = Reply::parse(&server.exchange(text).await);
        reply.assert_error(400, "Bad request");
        let date = reply.header("date").unwrap();
        assert!(date.len() == 29 && date.ends_with(" gmt"), "{date}");
    }
    let after = "GET /health HTTP/1.1\r\nhost: x\r\n\r\nGARBAGE\r\n\r\n";
    let text = server.exchange(after).await;
    assert_eq!(text.matches("HTTP/1.1 ").count(), 2, "{text}");
    assert!(
        text.contains(r#"{"status":"ok"}"#) && text.ends_with(r#"{"error":"Bad request"}"#),
        "{text}"
    );
}

#[tokio::test]
async fn methods() {
    let server = Server::start(api(), Limits::default()).await;
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW"] {
        let reply = server.request(method, "/health").await;
        reply.assert_error(405, "Method not allowed");
        assert_eq!(reply.header("allow"), Some("get, head, options"));
    }
    let options = server.request("OPTIONS", "/api/proxy").await;
    assert_eq!((options.status, options.body.as_str()), (204, ""));
    assert_eq!(options.header("allow"), Some("get, head, options"));
    assert_eq!(
        options.header("access-control-allow-methods"),
        Some("get, head, options")
    );
    assert_eq!(options.header("access-control-allow-origin"), Some("*"));
    let exposed = options.header("access-control-expose-headers").unwrap();
    assert!(exposed.contains("x-total-count") && exposed.contains("link"));
}

#[tokio::test]
async fn head_is_get_without_its_body() {
    let server = Server::start(api(), Limits::default()).await;
    for target in ["/health", "/api/proxy", "/nowhere"] {
        let get = server.get(target).await;
        let head = server.request("HEAD", target).await;
        assert_eq!(head.status, get.status);
        assert_eq!(head.body, "");
        for name in ["content-length", "content-type", "access-control-allow-origin"] {
            assert!(head.header(name).is_some(), "{name}");
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
    }
    let odd = Odd::new();
    let server = Server::start(Arc::clone(&odd), Limits::default()).await;
    let head = server.request("HEAD", "/endless").await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    assert_eq!(
        odd.frames.load(Ordering::SeqCst),
        0,
        "a body was computed for HEAD"
    );
}

#[tokio::test]
async fn request_ids_are_echoed_or_made() {
    let server = Server::start(api(), Limits::default()).await;
    let with = |id: &str| {
        format!("GET /health HTTP/1.1\r\nhost: x\r\nx-request-id: {id}\r\nconnection: close\r\n\r\n")
    };
    let echoed = Reply::parse(&server.exchange(with("abc-1")).await);
    assert_eq!(echoed.header("x-request-id"), Some("abc-1"));
    let made = Reply::parse(&server.exchange(with("a b <c>")).await);
    assert_eq!(made.header("x-request-id").map(str::len), Some(16));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::start(Odd::new(), Limits::default()).await;
    let request = |path: &str, end: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n{end}\r\n");
    let text = [
        request("/1", ""),
        request("/2", ""),
        request("/3", "connection: close\r\n"),
    ]
    .concat();
    let text = server.exchange(text).await;
    let places: Vec<_> = ["/1", "/2", "/3"]
        .map(|path| text.find(&format!("{{\"path\":\"{path}\"}}")))
        .into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
}

#[tokio::test]
async fn panics_are_fenced() {
    let server = Server::start(Odd::new(), Limits::default()).await;
    for path in ["/panic", "/panic-later", "/panic-pool"] {
        server.get(path).await.assert_error(500, "Internal server error");
    }
    assert_eq!(server.get("/still-there").await.status, 200);
}

#[tokio::test]
async fn a_body_that_fails_is_cut_and_never_ended() {
    let server = Server::start(Odd::new(), Limits::default()).await;
    let whole = server.get("/whole").await;
    assert!(whole.body.ends_with("\r\n0\r\n\r\n"));
    let broken = server.get("/broken").await;
    assert_eq!(broken.status, 200);
    assert!(broken.body.len() > 256 * 1024);
    assert!(
        !broken.body.ends_with("0\r\n\r\n"),
        "the body was ended as if it were whole"
    );
}

/// All that comes, and how it ended.
async fn read_and_end(stream: &mut TcpStream) -> (Vec<u8>, std::io::Result<usize>) {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut bytes)).await;
    (bytes, read.expect("the connection should end"))
}

/// Over HTTP/1.0 a body of a length that is not known has no chunks: it is over when the connection is closed, so that one which is not whole
/// must end otherwise.
#[tokio::test]
async fn a_body_that_fails_over_http_1_0_ends_in_a_reset() {
    let server = Server::start(Odd::new(), Limits::default()).await;
    let ask = async |server: &Server, path: &str| {
        let mut stream = server.connect().await;
        let text = format!("GET {path} HTTP/1.0\r\nhost: x\r\n\r\n");
        stream.write_all(text.as_bytes()).await.unwrap();
        read_and_end(&mut stream).await
    };
    let (whole, end) = ask(&server, "/whole").await;
    let head = whole.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
    assert_eq!(whole.len() - head - 4, 5 + 3 * 256 * 1024);
    assert!(end.is_ok(), "{end:?}");
    let (_, end) = ask(&server, "/broken").await;
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let limits = Limits {
        body_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start(Odd::new(), limits).await;
    let (_, end) = ask(&server, "/endless").await;
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn an_answer_over_http_1_0_that_the_drain_cuts_off_ends_in_a_reset() {
    let limits = Limits {
        drain_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let mut server = Server::start(Odd::new(), limits).await;
    let mut open = server.connect().await;
    open.write_all(b"GET /endless HTTP/1.0\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 16];
    open.read_exact(&mut first).await.unwrap();
    server.signal();
    assert_eq!(server.ended().await, 1);
    let (_, end) = read_and_end(&mut open).await;
    assert_eq!(end.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

/// Whether a client has gone or only says no more cannot be told: its end is its end, so that nobody works for one that has gone.
#[tokio::test]
async fn who_closes_the_sending_side_counts_as_gone() {
    let odd = Odd::new();
    let mut server = Server::start(Arc::clone(&odd), Limits::default()).await;
    let mut half = server.connect().await;
    half.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    odd.reached.notified().await;
    half.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut half).await, "");
    server.signal();
    assert_eq!(server.ended().await, 0);
}

#[tokio::test]
async fn a_slow_client_is_waited_for_without_computing_and_then_cut_off() {
    let odd = Odd::new();
    let limits = Limits {
        write_timeout: Duration::from_millis(400),
        ..Limits::default()
    };
    let server = Server::start(Arc::clone(&odd), limits).await;
    let mut stream = server.connect().await;
    stream
        .write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut first = [0; 16];
    stream.read_exact(&mut first).await.unwrap();
    // Nothing more is read. The socket's buffers fill, computing stops, and the server gives up: then nobody is left to compute more.
    let began = Instant::now();
    while Arc::strong_count(&odd.frames) > 1 {
        assert!(
            began.elapsed() < at_most(Duration::from_secs(10)),
            "it is not cut off"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let seen = odd.frames.load(Ordering::SeqCst);
    assert!(
        seen < 200,
        "{seen} frames were computed for a client that takes none"
    );
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest))
        .await
        .unwrap();
    assert!(read.is_err() || !rest.ends_with(b"0\r\n\r\n"));
}

#[tokio::test]
async fn silent_connections_are_closed() {
    let limits = Limits {
        header_read_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = Server::start(api(), limits).await;
    for beginning in [
        "",
        "GET /hea",
        "GET /health HTTP/1.1\r\nhost: x\r\n",
        "PRI * HTTP/2.0\r\n",
    ] {
        let text = server.exchange(beginning).await;
        assert!(!text.contains(" 200 "), "{text}");
    }
    // Kept alive after an answer, and then silent.
    let text = server.exchange("GET /health HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert_eq!(Reply::parse(&text).status, 200);
}

#[tokio::test]
async fn over_the_cap_a_connection_is_told_so() {
    let limits = Limits {
        connections_max: 1,
        ..Limits::default()
    };
    let server = Server::start(api(), limits).await;
    let mut first = server.connect().await;
    first
        .write_all(b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let mut begin = [0; 12];
    first.read_exact(&mut begin).await.unwrap();
    assert_eq!(&begin, b"HTTP/1.1 200");
    assert_no_place(&server, "Too many connections").await;
    drop(first);
    let deadline = Instant::now() + Duration::from_secs(5);
    while server.get("/health").await.status != 200 {
        assert!(Instant::now() < deadline, "the permit did not come back");
    }
}

#[tokio::test]
async fn the_drain_lets_open_requests_finish_and_closes_idle_ones() {
    let odd = Odd::new();
    let mut server = Server::start(Arc::clone(&odd), Limits::default()).await;
    let mut idle = server.connect().await;
    let mut open = server.connect().await;
    open.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    odd.reached.notified().await;
    server.signal();
    assert_eq!(read_to_end(&mut idle).await, "");
    assert_no_place(&server, "Shutting down").await;
    odd.gate.notify_one();
    let text = read_to_end(&mut open).await;
    assert!(text.ends_with("{\"waited\":true}"), "{text}");
    assert_eq!(server.ended().await, 0);
}

#[tokio::test]
async fn the_drain_has_an_end() {
    let odd = Odd::new();
    let limits = Limits {
        drain_timeout: Duration::from_millis(100),
        ..Limits::default()
    };
    let mut server = Server::start(Arc::clone(&odd), limits).await;
    let mut open = server.connect().await;
    open.write_all(b"GET /wait HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    odd.reached.notified().await;
    server.signal();
    assert_eq!(server.ended().await, 1);
    assert_eq!(read_to_end(&mut open).await, "");
}

#[tokio::test]
async fn http2_without_tls() {
    let server = Server::start(api(), Limits::default()).await;
    let mut sender = over_http2(&server).await;
    for (target, status) in [
        ("/health".to_owned(), 200),
        (format!("/health?{}", "x".repeat(9000)), 414),
    ] {
        let request = hyper::Request::builder()
            .uri(format!("http://test{target}"))
            .body(Empty::<Bytes>::new())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status().as_u16(), status);
    }
}

/// Up to h2's own bound our words are spoken; above it h2 refuses by itself, of which docs/OPERATIONS.md tells.
#[tokio::test]
async fn large_headers_over_http2_are_refused() {
    let server = Server::start(api(), Limits::default()).await;
    let mut sender = over_http2(&server).await;
    let mut ask = async |length: usize| {
        let request = hyper::Request::get("http://test/health").header("a", "x".repeat(length));
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        let (parts, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (
            parts.status.as_u16(),
            parts.headers.contains_key("x-request-id"),
            body,
        )
    };
    for length in [17_000, 60_000, 120_000] {
        let text = Bytes::from_static(b"{\"error\":\"Request header fields too large\"}");
        assert_eq!(ask(length).await, (431, true, text), "{length}");
    }
    assert_eq!(ask(140_000).await, (431, false, Bytes::new()));
    // The connection is kept.
    assert_eq!(ask(10).await.0, 200);
}

#[tokio::test]
async fn a_client_that_reads_steadily_is_not_taken_for_one_that_takes_nothing() {
    // Of 4 MB that a kernel holds a third takes longer than the second that a client has.
    const BYTES_A_SECOND: f64 = 800e3;
    let limits = Limits {
        write_timeout: Duration::from_secs(1),
        ..Limits::default()
    };
    let server = Server::start(Odd::new(), limits).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    stream
        .write_all(b"GET /endless HTTP/1.1\r\nhost: x\r\n\r\n")
        .await
        .unwrap();
    let (began, mut taken, mut buffer) = (Instant::now(), 0, vec![0; 16 << 10]);
    while taken < 7_000_000 {
        if taken as f64 > began.elapsed().as_secs_f64() * BYTES_A_SECOND {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        }
        let read = stream.read(&mut buffer).await;
        let read = read.unwrap_or_else(|error| panic!("cut off after {taken} bytes: {error}"));
        assert!(read > 0, "cut off after {taken} bytes");
        taken += read;
    }
}

#[tokio::test]
async fn an_http2_client_that_takes_nothing_is_cut_off() {
    let odd = Odd::new();
    let limits = Limits {
        write_timeout: Duration::from_millis(400),
        ..Limits::default()
    };
    let server = Server::start(Arc::clone(&odd), limits).await;
    let io = hyper_util::rt::TokioIo::new(server.connect().await);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = hyper::Request::builder()
        .uri("http://test/endless")
        .body(Empty::<Bytes>::new())
        .unwrap();
    // Pings are answered, so the connection lives; the body is not read, so it stalls.
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.status().as_u16(), 200);
    let ended = tokio::time::timeout(at_most(Duration::from_secs(5)), connection).await;
    assert!(ended.is_ok(), "the stalled connection was kept");
    assert!(odd.frames.load(Ordering::SeqCst) < 50);
}
