//! What is not taken from a node over HTTP: more bytes than a question may have, and the word that another
//! server is to be asked.

use crate::client::config;
use crate::support::fake_node::FakeNode;
use quarry::node::{Capabilities, ErrorClass, Node, NodeConfig, NodeError, ReceiptMethod};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, channel};

const MIB: usize = 1 << 20;

/// What may be on its way in buffers of sockets when a reader has had enough.
const SLACK: usize = 24 * MIB;

/// Where a flood ends, so that a reader who would take it all fails the test and not the machine.
const FLOOD: usize = 192 * MIB;

/// Serves each request by `answer`, one after the other; the URL, and what each answer gave.
fn serve(answer: impl Fn(&mut TcpStream) -> usize + Send + 'static) -> (String, Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if read_request(&stream).is_some() && sender.send(answer(&mut stream)).is_err() {
                return;
            }
        }
    });
    (url, receiver)
}

fn read_request(stream: &TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(bytes) = line.strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()
}

/// Begins an answer that has no end; how many bytes of it were taken.
fn flood(stream: &mut TcpStream, status: &str) -> usize {
    let start =
        format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n");
    let piece = format!("{:x}\r\n{}\r\n", 1 << 16, "a".repeat(1 << 16));
    let mut sent = 0;
    let first = "24\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x\r\n";
    if stream.write_all(format!("{start}{first}").as_bytes()).is_err() {
        return sent;
    }
    while sent < FLOOD && stream.write_all(piece.as_bytes()).is_ok() {
        sent += 1 << 16;
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_end_is_cut_off() {
    for (bytes_max, bound) in [(512 * MIB, 16 * MIB), (2 * MIB, 2 * MIB)] {
        let (url, taken) = serve(|stream| flood(stream, "200 OK"));
        let settings = NodeConfig {
            response_bytes_max: bytes_max,
            request_timeout: std::time::Duration::from_secs(60),
            light_timeout: std::time::Duration::from_secs(60),
            ..config(url)
        };
        let node = Node::connect(settings).await.unwrap();
        let error = node.head().await.unwrap_err();
        let NodeError::ResponseTooLarge { bytes, bytes_max, .. } = error else {
            panic!("{error}");
        };
        assert!(
            bytes_max == bound && bound < bytes && bytes < bound + SLACK,
            "{bytes}"
        );
        let taken = taken.recv().unwrap();
        assert!(
            taken < bound + SLACK,
            "{taken} bytes of an answer of at most {bound}"
        );
    }
}

/// Of several bundles whose answers are all far longer than any before, one at a time is read: the others are given up, and asked
/// for again when that one is out of memory.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_come_at_once_are_not_all_kept() {
    const BUNDLES: u64 = 12;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&open), Arc::clone(&most));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, (open, most)) = (stream.unwrap(), counts.clone());
            std::thread::spawn(move || {
                if read_request(&stream).is_none() {
                    return;
                }
                let start = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
                let piece = [b' '; 1 << 16];
                let mut sent = 0;
                let mut is_open = stream.write_all(start.as_bytes()).is_ok();
                while is_open && sent < FLOOD {
                    is_open = stream.write_all(&piece).is_ok();
                    sent += piece.len();
                    most.fetch_max(open.fetch_add(piece.len(), SeqCst) + piece.len(), SeqCst);
                }
                open.fetch_sub(sent, SeqCst);
            });
        }
    });
    let bytes_max = 64 * MIB;
    let node = Node::connect(NodeConfig {
        response_bytes_max: bytes_max,
        bytes_in_flight_max: 4 * MIB,
        attempts_max: 1,
        ..config(url)
    });
    let node = node.await.unwrap();
    let capabilities = Capabilities {
        receipts: ReceiptMethod::Block,
        ..Capabilities::default()
    };
    let ask = |number| node.bundle(number, &capabilities);
    for asked in futures_util::future::join_all((1..=BUNDLES).map(ask)).await {
        let error = asked.unwrap_err();
        assert!(matches!(error, NodeError::ResponseTooLarge { .. }), "{error}");
    }
    let most = most.load(SeqCst);
    assert!(bytes_max <= most, "{most}: nothing was read to its bound");
    assert!(most < bytes_max + 300 * MIB, "{most} bytes at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_without_end_is_cut_off_too() {
    let (url, taken) = serve(|stream| flood(stream, "500 Internal Server Error"));
    let once = NodeConfig {
        attempts_max: 1,
        request_timeout: std::time::Duration::from_secs(60),
        light_timeout: std::time::Duration::from_secs(60),
        ..config(url)
    };
    let error = Node::connect(once).await.unwrap().head().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::HttpStatus, "{error}");
    assert!(taken.recv().unwrap() < SLACK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stated_length_over_the_bound_is_refused_before_reading() {
    let (url, asked) = serve(|stream| {
        let header =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1099511627776\r\n\r\n";
        stream.write_all(header.as_bytes()).unwrap();
        // Nothing more comes, and nobody waits for it.
        stream.read(&mut [0]).unwrap_or(0)
    });
    let patient = NodeConfig {
        request_timeout: std::time::Duration::from_secs(3_600),
        light_timeout: std::time::Duration::from_secs(3_600),
        ..config(url)
    };
    let error = Node::connect(patient).await.unwrap().head().await.unwrap_err();
    assert!(
        matches!(
            error,
            NodeError::ResponseTooLarge {
                bytes: 1_099_511_627_776,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(asked.recv().unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_an_error_and_not_followed() {
    let other = FakeNode::start(20);
    let location = format!("{}/key", other.url());
    let (url, asked) = serve(move |stream| {
        let answer =
            format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(answer.as_bytes()).map_or(0, |()| 1)
    });
    let node = Node::connect(config(url)).await.unwrap();
    let error = node.head().await.unwrap_err();
    assert!(
        matches!(error, NodeError::HttpStatus { status: 307, .. }),
        "{error}"
    );
    let sentence = error.to_string();
    assert!(
        sentence.contains("a redirect to http://127.0.0.1:") && sentence.contains("not followed"),
        "{sentence}"
    );
    assert!(!sentence.contains("key"), "{sentence}");
    assert_eq!(other.asked("eth_blockNumber"), 0);
    // The server notes an answer after it has gone out.
    assert_eq!(asked.recv().unwrap(), 1);
    assert_eq!(asked.try_iter().count(), 0, "it does not pass by asking again");
}
