//! Connections that stay: how they are made anew, by a server that loses them in every way.

use crate::client::config;
use crate::support::fake_server::take_requests;
use futures_util::{SinkExt, StreamExt};
use quarry::node::{ErrorClass, Node, NodeConfig};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

const HOUR: Duration = Duration::from_secs(3_600);

/// What the server does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Answer,
    /// Answers the first of each connection, and closes at the second.
    AnswerOne,
    Close,
    /// Closes, and says why.
    Expired,
    /// Answers as nobody understands.
    Binary,
    /// Answers half, and stays.
    Half,
    /// Answers with so many bytes.
    Long(usize),
    /// Answers the first request of all in one frame that takes so long, and then all that came meanwhile.
    Drip(Duration),
    /// The same in fragments, with a pong so long after each of them.
    Fragments(Duration, Duration),
    /// Answers the first connection with the beginning of a frame, and no more.
    Stuck,
    /// Keeps so many requests of the first connection waiting, and says to the next one an error that names none.
    Nameless(u64, &'static str),
}

/// What says nothing.
const SILENCE: &str = "";

/// What it answers, and whether it stays; `None` closes.
fn answer(manner: Manner, request: &Value, connection: u64, nth: u64) -> Option<String> {
    let whole = |result: &str| json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
    match manner {
        Manner::Answer | Manner::Expired | Manner::Binary => Some(whole("0x7")),
        Manner::AnswerOne => (nth == 0).then(|| whole("0x7")),
        Manner::Close => None,
        Manner::Half => Some(whole("0x7")[..20].to_owned()),
        Manner::Long(bytes) => Some(whole(&"0".repeat(bytes))),
        Manner::Nameless(waiting, _) if (connection, nth < waiting) == (1, true) => Some(SILENCE.to_owned()),
        Manner::Nameless(_, error) if connection == 1 => {
            Some(format!(r#"{{"jsonrpc":"2.0","id":null,"error":{error}}}"#))
        }
        Manner::Drip(_) | Manner::Fragments(..) | Manner::Stuck | Manner::Nameless(..) => Some(whole("0x7")),
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
                let nth = connections.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::spawn(over_ipc(stream, Arc::clone(&manner), nth));
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
                let nth = connections.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::spawn(over_ws(stream, Arc::clone(&manner), nth));
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

async fn over_ipc(mut stream: UnixStream, manner: Arc<Mutex<Manner>>, connection: u64) {
    let mut buffer = Vec::new();
    let mut nth = 0;
    while stream.read_buf(&mut buffer).await.is_ok_and(|bytes| 0 < bytes) {
        for request in take_requests(&mut buffer) {
            let manner = *manner.lock().unwrap();
            let Some(text) = answer(manner, &request, connection, nth) else {
                return;
            };
            nth += 1;
            let is_sent = match manner {
                Manner::Drip(time) if (connection, nth) == (1, 1) => {
                    drip(&mut stream, long(&text).as_bytes(), time).await
                }
                _ => stream.write_all(text.as_bytes()).await,
            };
            if is_sent.is_err() {
                return;
            }
        }
    }
}

async fn over_ws(stream: TcpStream, manner: Arc<Mutex<Manner>>, connection: u64) {
    let Ok(mut socket) = tokio_tungstenite::accept_async(stream).await else {
        return;
    };
    let mut nth = 0;
    while let Some(Ok(message)) = socket.next().await {
        let Ok(request) = serde_json::from_slice::<Value>(&message.into_data()) else {
            continue;
        };
        let manner = *manner.lock().unwrap();
        let Some(text) = answer(manner, &request, connection, nth) else {
            return;
        };
        nth += 1;
        let is_first = (connection, nth) == (1, 1);
        let is_sent = match manner {
            Manner::Drip(time) if is_first => drip(socket.get_mut(), &frame(&text), time).await.is_ok(),
            Manner::Fragments(time, pong_after) if is_first => {
                fragments(socket.get_mut(), &text, time, pong_after).await.is_ok()
            }
            Manner::Stuck if is_first => {
                let frame = frame(&text);
                socket
                    .get_mut()
                    .write_all(&frame[..frame.len() / 2])
                    .await
                    .is_ok()
            }
            Manner::Stuck if connection == 1 => true,
            Manner::Expired => {
                let frame = CloseFrame {
                    code: CloseCode::Policy,
                    reason: "key expired".into(),
                };
                socket.close(Some(frame)).await.is_ok()
            }
            Manner::Binary => socket.send(Message::binary(text)).await.is_ok(),
            _ if text == SILENCE => true,
            _ => socket.send(Message::text(text)).await.is_ok(),
        };
        if !is_sent {
            return;
        }
    }
}

/// The same object with blanks in it.
fn long(text: &str) -> String {
    let blanks = " ".repeat(1_000 - text.len());
    format!("{{{blanks}{}", &text[1..])
}

/// A frame with a text and blanks, as a server writes it (RFC 6455, 5.2).
fn frame(text: &str) -> Vec<u8> {
    let text = long(text);
    let length = u16::try_from(text.len()).unwrap().to_be_bytes();
    [&[0x81, 126, length[0], length[1]], text.as_bytes()].concat()
}

/// Sends a text in 20 fragments (RFC 6455, 5.4), and an empty pong behind each of them.
async fn fragments(
    stream: &mut TcpStream,
    text: &str,
    time: Duration,
    pong_after: Duration,
) -> std::io::Result<()> {
    let text = long(text);
    let pieces = text.as_bytes().chunks(50);
    let last = pieces.len() - 1;
    let pause = time / u32::try_from(pieces.len()).unwrap() - pong_after;
    for (place, piece) in pieces.enumerate() {
        let begins = u8::from(place == 0);
        let ends = u8::from(place == last) << 7;
        let fragment = [&[begins | ends, 50], piece].concat();
        stream.write_all(&fragment).await?;
        tokio::time::sleep(pong_after).await;
        stream.write_all(&[0x8a, 0]).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(())
}

/// Sends bytes in pieces.
async fn drip(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8], time: Duration) -> std::io::Result<()> {
    let pieces = bytes.chunks(10);
    let pause = time / u32::try_from(pieces.len()).unwrap();
    for piece in pieces {
        stream.write_all(piece).await?;
        tokio::time::sleep(pause).await;
    }
    Ok(())
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

/// By who was asked over it, and by those who are told to wait for the next one.
#[tokio::test]
async fn why_a_connection_came_to_nothing_is_said() {
    for (manner, why) in [
        (Manner::Half, r#"a message that is no answer: {""#),
        (
            Manner::Binary,
            "a message in a binary frame, where text is wanted",
        ),
        (
            Manner::Expired,
            "the node closed the connection: 1008 key expired",
        ),
        (Manner::Close, "closing handshake"),
    ] {
        let server = Server::ws(manner).await;
        let node = Node::connect(unforgiving(&server.url)).await.unwrap();
        for said in [
            "transport: ",
            "no connection: 1 in a row came to nothing, and the next is made after a wait; ",
        ] {
            let error = node.head().await.unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(why), "{manner:?}: {error}");
        }
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

/// Over a Unix socket the next answer would be taken for the end of the one that was broken off, which is long in coming.
#[tokio::test]
async fn a_connection_that_says_nothing_any_more_is_given_up() {
    let server = Server::ipc(Manner::Half).await;
    let settings = NodeConfig {
        light_timeout: Duration::from_millis(100),
        request_timeout: HOUR,
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

/// No pong comes between the bytes of a frame, and the client asks for six in each `request_timeout`; between fragments pongs come.
#[tokio::test]
async fn a_long_answer_is_waited_for_by_those_behind_it() {
    let (time, soon) = (Duration::from_secs(2), Duration::from_millis(20));
    for server in [
        Server::ws(Manner::Drip(time)).await,
        Server::ws(Manner::Fragments(time, soon)).await,
        Server::ipc(Manner::Drip(time)).await,
    ] {
        let settings = NodeConfig {
            light_timeout: Duration::from_millis(150),
            request_timeout: Duration::from_secs(3),
            ..unforgiving(&server.url)
        };
        let node = Node::connect(settings).await.unwrap();
        let mut late = 0;
        let head = loop {
            match node.head().await {
                Ok(head) => break head,
                Err(error) => assert_eq!(error.class(), ErrorClass::Timeout, "{error}"),
            }
            late += 1;
        };
        assert_eq!(
            (head, server.connections()),
            (7, 1),
            "{late} were late: {}",
            server.url
        );
        assert!(5 < late, "{late}: {}", server.url);
    }
}

/// The head that the node tells at last, asked once and so many times more.
async fn head_in_the_end(settings: NodeConfig, times: usize) -> u64 {
    let node = Node::connect(settings).await.unwrap();
    let mut answer = node.head().await;
    for _ in 0..times {
        if answer.is_ok() {
            break;
        }
        answer = node.head().await;
    }
    answer.unwrap()
}

/// However often it says that it is there.
#[tokio::test]
async fn an_answer_in_fragments_that_does_not_end_is_given_up() {
    let server = Server::ws(Manner::Fragments(
        Duration::from_secs(20),
        Duration::from_millis(980),
    ))
    .await;
    let settings = NodeConfig {
        light_timeout: Duration::from_millis(1_100),
        request_timeout: Duration::from_secs(2),
        ..config(&server.url)
    };
    assert_eq!(
        (head_in_the_end(settings, 20).await, server.connections()),
        (7, 2)
    );
}

#[tokio::test]
async fn a_frame_that_does_not_go_on_is_given_up() {
    let server = Server::ws(Manner::Stuck).await;
    let settings = NodeConfig {
        light_timeout: Duration::from_millis(100),
        ..config(&server.url)
    };
    assert_eq!(head_in_the_end(settings, 50).await, 7);
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn an_error_that_names_no_request_is_of_the_one_in_flight() {
    const FEWER: &str = r#"{"code":-32005,"message":"rate limit exceeded"}"#;
    const OTHER: &str = r#"{"code":-32600,"message":"invalid request"}"#;
    for (error, class) in [(FEWER, ErrorClass::RateLimited), (OTHER, ErrorClass::Rpc)] {
        for server in [
            Server::ipc(Manner::Nameless(0, error)).await,
            Server::ws(Manner::Nameless(0, error)).await,
        ] {
            let node = Node::connect(unforgiving(&server.url)).await.unwrap();
            let said = node.head().await.unwrap_err();
            assert_eq!(said.class(), class, "{said}");
            server.behave(Manner::Answer);
            assert_eq!(node.head().await.unwrap(), 7);
            assert_eq!(server.connections(), 1, "{}", server.url);
        }
        for server in [
            Server::ipc(Manner::Nameless(1, error)).await,
            Server::ws(Manner::Nameless(1, error)).await,
        ] {
            let node = Node::connect(unforgiving(&server.url)).await.unwrap();
            let (one, other) = tokio::join!(node.head(), node.head());
            for said in [one.unwrap_err(), other.unwrap_err()] {
                match error {
                    FEWER => assert_eq!(said.class(), class, "{said}"),
                    _ => assert_eq!(said.class(), ErrorClass::Transport, "{said}"),
                }
            }
        }
    }
    // Whoever asks again is answered.
    for server in [
        Server::ipc(Manner::Nameless(1, OTHER)).await,
        Server::ws(Manner::Nameless(1, OTHER)).await,
    ] {
        let node = Node::connect(config(&server.url)).await.unwrap();
        let (one, other) = tokio::join!(node.head(), node.head());
        assert_eq!((one.unwrap(), other.unwrap()), (7, 7));
        assert_eq!(server.connections(), 2, "{}", server.url);
    }
}

/// What a contract does is of the call that was asked, and that may be another one.
#[tokio::test]
async fn a_revert_that_names_no_request_is_no_answer() {
    let revert = r#"{"code":3,"message":"execution reverted"}"#;
    for server in [
        Server::ipc(Manner::Nameless(0, revert)).await,
        Server::ws(Manner::Nameless(0, revert)).await,
    ] {
        let node = Node::connect(unforgiving(&server.url)).await.unwrap();
        let error = node.head().await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Transport, "{error}");
        assert!(
            error
                .to_string()
                .contains("1 being in flight: 3: execution reverted"),
            "{error}"
        );
    }
}

/// The roots are loaded before the other side turns out to speak no TLS.
#[tokio::test]
async fn a_node_that_speaks_no_tls_is_an_error() {
    let server = Server::ws(Manner::Answer).await;
    let error = Node::connect(unforgiving(&server.url.replace("ws://", "wss://")))
        .await
        .unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transport, "{error}");
}
