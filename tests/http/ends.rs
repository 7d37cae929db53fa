//! How requests end, as the log and the figures tell it: answered, broken off, or left by their clients before there was an answer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quarry::http::{
    FrameSource, Handled, Handler, HttpError, Limits, Pool, Request, StatusCode, Traffic, json_response,
    stream_frames,
};
use quarry::metrics::Page;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tracing::Level;
use tracing::subscriber::DefaultGuard;

use crate::client::{Server, pool};
use crate::log::Log;
use crate::metrics::parse;

/// Answers in all the ways there are; a POST at once.
struct Ends {
    pool: Pool,
    traffic: Arc<Traffic>,
    reached: Arc<Notify>,
}

/// So many frames, and a failure in place of an end.
struct Frames(usize, bool);

impl FrameSource for Frames {
    fn next_frame(&mut self) -> Result<Option<Bytes>, HttpError> {
        match self.0.checked_sub(1) {
            Some(left) => self.0 = left,
            None if self.1 => return Err(HttpError::internal("on purpose")),
            None => return Ok(None),
        }
        Ok(Some(Bytes::from(vec![b'x'; 64 << 10])))
    }
}

impl Handler for Ends {
    fn handle(&self, request: Request) -> Handled {
        request.name_operation(0);
        let (frames, fails) = match request.path() {
            "/whole" => (3, false),
            "/broken" => (3, true),
            "/endless" => (usize::MAX, false),
            "/wait" => {
                let reached = Arc::clone(&self.reached);
                return Handled::later(async move {
                    reached.notify_one();
                    std::future::pending().await
                });
            }
            _ => return json_response(StatusCode::OK, Bytes::from_static(b"{}")).into(),
        };
        let source = Box::new(Frames(frames, fails));
        let body = stream_frames(&self.pool, Bytes::from_static(b"first"), source, None);
        json_response(StatusCode::OK, body).into()
    }

    fn upload_bytes_max(&self, path: &str) -> Option<usize> {
        (path == "/upload").then_some(1000)
    }

    fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }
}

/// A service on this thread, whose log is read.
struct World {
    server: Server,
    traffic: Arc<Traffic>,
    reached: Arc<Notify>,
    log: Log,
    _guard: DefaultGuard,
}

impl World {
    async fn start(limits: Limits) -> Self {
        let (log, guard) = Log::of_this_thread(Level::INFO);
        let (traffic, reached) = (
            Arc::new(Traffic::new(["ends".to_owned()])),
            Arc::new(Notify::new()),
        );
        let handler = Ends {
            pool: pool(),
            traffic: Arc::clone(&traffic),
            reached: Arc::clone(&reached),
        };
        let limits = Limits {
            socket_threads: 0,
            ..limits
        };
        Self {
            server: Server::start(Arc::new(handler), limits).await,
            traffic,
            reached,
            log,
            _guard: guard,
        }
    }

    /// The fields of the log's lines with this message.
    fn lines(&self, message: &str) -> Vec<Value> {
        let mut lines = self.log.lines(message);
        lines.iter_mut().map(|line| line["fields"].take()).collect()
    }

    /// The line of a request, once it is there.
    async fn line(&self, id: &str) -> Value {
        let began = Instant::now();
        loop {
            let mut lines = self.lines("request");
            lines.retain(|line| line["request_id"] == id);
            if let [line] = lines.as_slice() {
                return line.clone();
            }
            assert!(lines.is_empty(), "{lines:?}");
            assert!(began.elapsed() < Duration::from_secs(10), "{id} has no line");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn send(&self, method: &str, path: &str, id: &str, rest: &str) -> TcpStream {
        let mut stream = self.server.connect().await;
        let head = format!("{method} {path} HTTP/1.1\r\nhost: x\r\nx-request-id: {id}\r\n{rest}");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Asks, and takes all there is.
    async fn get(&self, path: &str, id: &str) -> Value {
        let mut stream = self.send("GET", path, id, "connection: close\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
        self.line(id).await
    }

    fn figures(&self) -> BTreeMap<String, f64> {
        let mut page = Page::default();
        self.traffic.measure(&mut page);
        parse(&page.render().unwrap())
    }

    fn aborted(&self) -> f64 {
        self.figures()["quarry_http_aborted_total{operation=\"ends\"}"]
    }

    /// How many were counted with a status.
    fn with_status(&self, status: u16) -> f64 {
        let name = format!("quarry_http_requests_total{{operation=\"ends\",status=\"{status}\"}}");
        self.figures().get(&name).copied().unwrap_or_default()
    }
}

fn told(line: &Value) -> (u64, bool) {
    (
        line["status"].as_u64().unwrap(),
        line["aborted"].as_bool().unwrap(),
    )
}

#[tokio::test]
async fn a_body_that_the_service_breaks_off_is_told_and_counted() {
    let limits = Limits {
        body_timeout: Duration::from_millis(200),
        ..Limits::default()
    };
    let world = World::start(limits).await;
    assert_eq!(told(&world.get("/", "plain").await), (200, false));
    assert_eq!(told(&world.get("/whole", "whole").await), (200, false));
    assert_eq!(world.aborted(), 0.0);
    assert_eq!(world.lines("body aborted"), Vec::<Value>::new());
    for (path, id, error) in [
        ("/broken", "broken", "500 Internal server error: on purpose"),
        ("/endless", "late", "the body took too long"),
    ] {
        assert_eq!(told(&world.get(path, id).await), (200, true), "{path}");
        let mut lines = world.lines("body aborted");
        lines.retain(|line| line["request_id"] == id);
        let said = lines.first().and_then(|line| line["error"].as_str());
        assert!(said.is_some_and(|said| said.contains(error)), "{lines:?}");
    }
    assert_eq!((world.aborted(), world.with_status(200)), (2.0, 4.0));
}

#[tokio::test]
async fn a_request_that_is_left_before_its_answer_is_told_and_counted() {
    let world = World::start(Limits::default()).await;
    let waits = world.send("GET", "/wait?apikey=S3CRET", "left", "\r\n").await;
    world.reached.notified().await;
    let asked = Instant::now();
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(waits);
    let line = world.line("left").await;
    assert_eq!(told(&line), (499, true));
    assert_eq!((&line["path"], &line["bytes"]), (&"/wait".into(), &0.into()));
    assert!(line["ms"].as_f64().unwrap() >= 300.0, "{line}");
    assert_eq!((world.aborted(), world.with_status(499)), (1.0, 1.0));
    // It kept the service busy for as long.
    let figures = world.traffic.figures();
    let slow = figures.slow_latest.first().unwrap();
    assert_eq!((slow.status, slow.target.as_str()), (499, "/wait?apikey=..."));
    assert!(slow.own >= Duration::from_millis(300) && slow.own <= asked.elapsed() + Duration::from_secs(1));
    assert_eq!((figures.answered, figures.failed, figures.slow), (1, 0, 1));

    // One that never sent its body kept nobody busy.
    let half = world
        .send("POST", "/upload", "half", "content-length: 9\r\n\r\nhalf")
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    drop(half);
    let line = world.line("half").await;
    assert!(line["ms"].as_f64().unwrap() >= 300.0, "{line}");
    let (answered, slow) = (world.traffic.figures().answered, world.traffic.figures().slow);
    assert_eq!((answered, slow), (2, 1));
    // Others are told once, as ever.
    assert_eq!(told(&world.get("/", "plain").await), (200, false));
}

#[tokio::test]
async fn what_a_client_takes_to_send_its_body_is_not_the_time_of_the_service() {
    let world = World::start(Limits::default()).await;
    let mut slow = world
        .send(
            "POST",
            "/upload",
            "slow",
            "connection: close\r\ncontent-length: 8\r\n\r\nhalf",
        )
        .await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    slow.write_all(b"half").await.unwrap();
    let _ = slow.read_to_end(&mut Vec::new()).await;
    let line = world.line("slow").await;
    assert_eq!(told(&line), (200, false));
    assert!(line["ms"].as_f64().unwrap() >= 400.0, "{line}");
    assert_eq!(world.traffic.figures().slow, 0);
}
