//! Connections that stay: how they are made anew, by a server that loses them in every way.

use crate::client::config;
use crate::support::fake_server::take_requests;
use futures_util::{SinkExt, StreamExt};
use quarry::node::{ErrorClass, Node, NodeConfig};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_tungstenite::tungstenite::Message;

const HOUR: Duration = Duration::from_secs(3_600);

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Answer,
    /// Answers the first of each connection, and closes at the second.
    AnswerOne,
    Close,
    /// Answers half, and stays.
    Half,
    /// Answers with so many bytes.
    Long(usize),
}

/// What it answers, and whether it stays; `None` closes.
fn answer(manner: Manner, request: &Value, nth: u64) -> Option<String> {
    let whole = |result: &str| json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
    match manner {
        Manner::Answer => Some(whole("0x7")),
        Manner::AnswerOne => (nth == 0).then(|| whole("0x7")),
        Manner::Close => None,
        Manner::Half => Some(whole("0x7")[..20].to_owned()),
        Manner::Long(bytes) => Some(whole(&"0".repeat(bytes))),
    }
}

/// A server on one kind of socket.
struct Server {
    url: String,
    manner: Arc<Mutex<Manner>>,
    connections: Arc<AtomicU64>,
    _directory: Option<tempfile::TempDir>,
}

impl Server {
    async fn ipc(manner: Manner) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("node.ipc");
        let listener = UnixListener::bind(&path).unwrap();
        let server = Self::new(path.to_str().unwrap().to_owned(), manner, Some(directory));
        let (manner, connections) = (Arc::clone(&server.manner), Arc::clone(&server.connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(over_ipc(stream, Arc::clone(&manner)));
            }
        });
        server
    }

    async fn ws(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let server = Self::new(url, manner, None);
        let (manner, connections) = (Arc::clone(&server.manner), Arc::clone(&server.connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(over_ws(stream, Arc::clone(&manner)));
            }
        });
        server
    }

    fn new(url: String, manner: Manner, directory: Option<tempfile::TempDir>) -> Self {
        Self {
            url,
            manner: Arc::new(Mutex::new(manner)),
            connections: Arc::default(),
            _directory: directory,
        }
    }

    fn behave(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }
}

async fn over_ipc(mut stream: UnixStream, manner: Arc<Mutex<Manner>>) {
    let mut buffer = Vec::new();
    let mut nth = 0;
    while stream.read_buf(&mut buffer).await.is_ok_and(|bytes| 0 < bytes) {
        for request in take_requests(&mut buffer) {
            let manner = *manner.lock().unwrap();
            let Some(text) = answer(manner, &request, nth) else {
                return;
            };
            nth += 1;
            if stream.write_all(text.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

async fn over_ws(stream: TcpStream, manner: Arc<Mutex<Manner>>) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
        return;
    };
    let mut nth = 0;
    while let Some(Ok(message)) = socket.next().await {
        let Ok(request) = serde_json::from_slice::<Value>(&message.into_data()) else {
            continue;
        };
        let manner = *manner.lock().unwrap();
        let Some(text) = answer(manner, &request, nth) else {
            return;
        };
        nth += 1;
        if socket.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}

/// Each question is asked once, and who failed once is not asked again for an hour.
fn unforgiving(url: &str) -> NodeConfig {
    NodeConfig {
        attempts_max: 1,
        backoff_first: HOUR,
        backoff_max: HOUR,
        ..config(url)
    }
}

#[tokio::test]
async fn a_node_that_closes_at_each_request_is_given_time() {
    for server in [
        Server::ipc(Manner::Close).await,
        Server::ws(Manner::Close).await,
        Server::ws(Manner::Half).await,
    ] {
        let node = Node::connect(unforgiving(&server.url)).await.unwrap();
        for _ in 0..50 {
            let error = node.head().await.unwrap_err();
            assert_eq!(error.class(), ErrorClass::Transport, "{error}");
        }
        assert_eq!(server.connections(), 1, "{}", server.url);
    }
}

#[tokio::test]
async fn a_connection_that_answered_is_made_anew_at_once() {
    for server in [
        Server::ipc(Manner::AnswerOne).await,
        Server::ws(Manner::AnswerOne).await,
    ] {
        let node = Node::connect(unforgiving(&server.url)).await.unwrap();
        for _ in 0..20 {
            assert_eq!(node.head().await.unwrap(), 7);
        }
        assert_eq!(server.connections(), 20);
        assert_eq!(node.stats().reconnects.load(Ordering::Relaxed), 19);
        assert_eq!(node.stats().errors(ErrorClass::Transport), 0);
        server.behave(Manner::Answer);
        assert_eq!(node.head().await.unwrap(), 7);
    }
}

#[tokio::test]
async fn waits_end_and_an_answer_ends_their_growth() {
    for server in [Server::ipc(Manner::Close).await, Server::ws(Manner::Close).await] {
        let node = Node::connect(config(&server.url)).await.unwrap();
        for _ in 0..3 {
            server.behave(Manner::Close);
            let before = server.connections();
            for _ in 0..20 {
                node.head().await.unwrap_err();
            }
            let made = server.connections() - before;
            assert!(
                made <= 80,
                "{made} connections for 20 questions, each asked four times at most"
            );
            server.behave(Manner::Answer);
            let mut answer = None;
            for _ in 0..200 {
                if let Ok(head) = node.head().await {
                    answer = Some(head);
                    break;
                }
            }
            assert_eq!(answer, Some(7));
        }
    }
}

/// Over a Unix socket the next answer would be taken for the end of the one that was broken off.
#[tokio::test]
async fn a_connection_that_says_nothing_any_more_is_given_up() {
    let server = Server::ipc(Manner::Half).await;
    let settings = NodeConfig {
        light_timeout: Duration::from_millis(100),
        ..config(&server.url)
    };
    let node = Node::connect(settings).await.unwrap();
    let error = node.head().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
    server.behave(Manner::Answer);
    let mut answers = 0;
    for _ in 0..50 {
        answers += u64::from(node.head().await.is_ok());
    }
    assert!(0 < answers);
}

#[tokio::test]
async fn a_message_over_the_bound_ends_its_connection() {
    for server in [
        Server::ipc(Manner::Long(1 << 20)).await,
        Server::ws(Manner::Long(1 << 20)).await,
    ] {
        let settings = NodeConfig {
            response_bytes_max: 1 << 16,
            ..unforgiving(&server.url)
        };
        let node = Node::connect(settings).await.unwrap();
        let error = node.head().await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Transport, "{error}");
        server.behave(Manner::Answer);
        let error = node.head().await.unwrap_err().to_string();
        assert!(error.contains("no connection"), "{error}");
    }
}
