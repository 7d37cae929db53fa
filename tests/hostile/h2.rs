//! Attacks that are particular to HTTP/2, frame by frame.

use std::io::{Error, ErrorKind, Read as _, Result, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::binary::Server;
use crate::wire::{alive, ask};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// What memory may grow by, KiB.
const GROWTH_MAX_KIB: u64 = 64 << 10;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut out = length[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A length in HPACK's manner, in the low seven bits.
fn put_length(out: &mut Vec<u8>, length: usize) {
    if length < 127 {
        out.push(length as u8);
        return;
    }
    out.push(127);
    let mut rest = length - 127;
    while rest >= 128 {
        out.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    out.push(rest as u8);
}

/// `GET path`, and more headers as literals.
fn block(path: &str, more: &[(&str, &str)]) -> Vec<u8> {
    // :method GET, :scheme http, :path as a literal.
    let mut out = vec![0x82, 0x86, 0x04];
    put_length(&mut out, path.len());
    out.extend(path.as_bytes());
    for (name, value) in [(":authority", "x")].iter().chain(more) {
        out.push(0);
        put_length(&mut out, name.len());
        out.extend(name.as_bytes());
        put_length(&mut out, value.len());
        out.extend(value.as_bytes());
    }
    out
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &block(path, &[]))
}

/// `POST path`, and its body is still to come.
fn post(stream: u32, path: &str) -> Vec<u8> {
    let mut list = block(path, &[]);
    // :method POST.
    list[0] = 0x83;
    frame(HEADERS, END_HEADERS, stream, &list)
}

/// `:status: 431` in HPACK, its digits in Huffman's code.
const STATUS_431: &[u8] = &[0x48, 0x83, 0x69, 0x90, 0xff];

/// Whether the connection was ended, as opposed to one on which nothing comes.
fn is_end(error: &Error) -> bool {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(
        error.kind(),
        UnexpectedEof | ConnectionReset | ConnectionAborted | BrokenPipe
    )
}

struct Peer(TcpStream);

/// A frame that came.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Peer {
    fn connect(server: &Server) -> Self {
        let stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
        let mut peer = Self(stream);
        peer.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
        peer
    }

    /// Whether it was taken.
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    fn next(&mut self) -> Option<Frame> {
        self.try_next().ok()
    }

    fn try_next(&mut self) -> Result<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload)?;
        Ok(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
            payload,
        })
    }

    /// What comes with the status 431 on stream 1; nothing where the stream or the connection is ended instead.
    #[track_caller]
    fn refusal(&mut self) -> Option<Vec<u8>> {
        let mut body: Option<Vec<u8>> = None;
        loop {
            let frame = match self.try_next() {
                Ok(frame) => frame,
                Err(error) if body.is_none() && is_end(&error) => return None,
                Err(error) => panic!("neither a refusal nor an end: {error}"),
            };
            match frame.kind {
                HEADERS => {
                    assert!(frame.payload.starts_with(STATUS_431), "{:x?}", frame.payload);
                    body = Some(Vec::new());
                }
                DATA => body.as_mut().expect("a head").extend(&frame.payload),
                RST_STREAM | GOAWAY if body.is_none() => return None,
                _ => continue,
            }
            if frame.flags & END_STREAM != 0 {
                return body;
            }
        }
    }

    /// Reads until the server ends the connection; the code of its farewell, where it said one.
    fn farewell(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY {
                code = frame
                    .payload
                    .get(4..8)
                    .map(|code| u32::from_be_bytes(code.try_into().unwrap()));
            }
        }
        code
    }

    /// Keeps reading on a thread of its own, so that a flood is not held up by its own answers.
    fn drain(&self) -> std::thread::JoinHandle<()> {
        let mut reading = self.0.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut scratch = [0; 1 << 16];
            while matches!(reading.read(&mut scratch), Ok(count) if count > 0) {}
        })
    }
}

fn start() -> (Server, u64) {
    let server = Server::start(["demo", "--log", "warn,quarry=info,quarry::http::request=off"]);
    let mut peer = Peer::connect(&server);
    for stream in 0..200 {
        peer.send(&get(2 * stream + 1, "/health"));
        while peer
            .next()
            .is_some_and(|frame| frame.stream == 0 || frame.flags & END_STREAM == 0)
        {}
    }
    let before = server.resident_kib();
    (server, before)
}

#[track_caller]
fn end(server: Server, before: u64) {
    alive(&server.address);
    let grown = server.resident_kib().saturating_sub(before);
    println!("memory {before} KiB + {grown} KiB");
    assert!(grown < GROWTH_MAX_KIB, "memory grew by {grown} KiB");
    server.stop();
}

#[test]
fn streams_that_are_reset_at_once_end_the_connection() {
    let (server, before) = start();
    let mut taken = 0;
    for _ in 0..5 {
        let mut peer = Peer::connect(&server);
        let reading = peer.drain();
        for stream in (1..200_000u32).step_by(2) {
            let both = [
                get(stream, "/status"),
                frame(RST_STREAM, 0, stream, &8u32.to_be_bytes()),
            ]
            .concat();
            if !peer.send(&both) {
                break;
            }
            taken += 1;
        }
        drop(peer);
        reading.join().unwrap();
    }
    println!("{taken} streams of 500,000 were taken");
    assert!(taken < 250_000, "{taken} streams were taken");
    end(server, before);
}

#[test]
fn floods_of_small_frames_cost_no_memory() {
    let (server, before) = start();
    let settings: Vec<u8> = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]).repeat(100);
    let pings = frame(PING, 0, 0, &[7; 8]).repeat(100);
    let empty = frame(DATA, 0, 1, &[]).repeat(100);
    let windows = frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1]).repeat(100);
    let unknown = frame(0xbb, 0xff, 0, &[0; 64]).repeat(100);
    for (name, flood, read) in [
        ("settings", &settings, true),
        ("settings", &settings, false),
        ("pings", &pings, true),
        ("pings", &pings, false),
        ("empty data", &empty, true),
        ("windows", &windows, true),
        ("unknown", &unknown, true),
    ] {
        let mut peer = Peer::connect(&server);
        let reading = read.then(|| peer.drain());
        if name == "empty data" {
            // A request whose body never ends.
            peer.send(&frame(HEADERS, END_HEADERS, 1, &block("/health", &[])));
        }
        let began = Instant::now();
        let mut sent = 0;
        while sent < 20_000 && began.elapsed() < Duration::from_secs(1) && peer.send(flood) {
            sent += 1;
        }
        println!("{name}, read: {read}: {sent}00 frames in {:?}", began.elapsed());
        alive(&server.address);
        peer.0.shutdown(std::net::Shutdown::Both).ok();
        if let Some(reading) = reading {
            reading.join().unwrap();
        }
    }
    end(server, before);
}

#[test]
fn more_streams_than_may_be_are_refused_and_the_others_answered() {
    let (server, before) = start();
    let mut peer = Peer::connect(&server);
    let all: Vec<u8> = (0..300)
        .flat_map(|place| get(2 * place + 1, "/api/proxy?action=eth_blockNumber"))
        .collect();
    assert!(peer.send(&all));
    let (mut answered, mut refused) = (0, 0);
    while answered + refused < 300 {
        let Some(frame) = peer.next() else { break };
        match frame.kind {
            HEADERS => {
                // :status 200 is an entry of HPACK's static table.
                assert_eq!(frame.payload.first(), Some(&0x88));
                answered += 1;
            }
            RST_STREAM => {
                assert_eq!(frame.payload, 7u32.to_be_bytes(), "refused, and nothing else");
                refused += 1;
            }
            GOAWAY => panic!("the connection was ended"),
            _ => {}
        }
    }
    println!("{answered} answered, {refused} refused");
    assert_eq!(answered + refused, 300);
    assert!(answered >= 128);
    end(server, before);
}

/// As many as may be answered at once, by few connections.
#[test]
fn requests_whose_bodies_do_not_come_hold_up_nobody() {
    let (server, before) = start();
    let all: Vec<u8> = (0..128).flat_map(|place| post(2 * place + 1, "/rpc")).collect();
    let peers: Vec<Peer> = (0..64)
        .map(|_| {
            let mut peer = Peer::connect(&server);
            assert!(peer.send(&all));
            peer
        })
        .collect();
    let figure = |name: &str| {
        let page = ask(&server.address, "/metrics");
        assert_eq!(page.status, 200, "{}", page.text());
        let text = page.text();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().parse::<f64>().unwrap()
    };
    // Half of 8,192 places for bodies at least, and not all of them.
    let deadline = Instant::now() + Duration::from_secs(20);
    while figure("quarry_http_uploads_awaited ") < 4_096.0 {
        assert!(Instant::now() < deadline, "they are not waited for");
        std::thread::sleep(Duration::from_millis(50));
    }
    for target in [
        "/health",
        "/ready",
        "/status",
        "/api/proxy?action=eth_blockNumber",
    ] {
        assert_eq!(ask(&server.address, target).status, 200, "{target}");
    }
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}"#;
    assert_eq!(server.post("/rpc", call).status, 200);
    assert!(figure("quarry_http_uploads_awaited ") < 8_192.0);
    assert!(figure("quarry_http_requests_in_flight ") < 100.0);
    drop(peers);
    end(server, before);
}

#[test]
fn huge_lists_of_headers_are_refused() {
    let (server, before) = start();
    // 20 KiB in all: parsed, and refused by us.
    let value = "v".repeat(2_000);
    let more: Vec<(&str, &str)> = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
        .map(|name| (name, value.as_str()))
        .to_vec();
    let list = block("/health", &more);
    let mut peer = Peer::connect(&server);
    let (first, rest) = list.split_at(16_000);
    peer.send(
        &[
            frame(HEADERS, END_STREAM, 1, first),
            frame(CONTINUATION, END_HEADERS, 1, rest),
        ]
        .concat(),
    );
    let answer = peer.refusal().expect("an answer of ours");
    assert_eq!(answer, br#"{"error":"Request header fields too large"}"#);
    // Without end: the connection ends instead.
    for _ in 0..3 {
        let mut peer = Peer::connect(&server);
        peer.send(&frame(HEADERS, END_STREAM, 1, &block("/health", &[])));
        let piece = frame(CONTINUATION, 0, 1, &[0x00, 1, b'a', 1, b'b'].repeat(3_000));
        let mut sent = 0;
        while sent < 2_000 && peer.send(&piece) {
            sent += 1;
        }
        assert!(sent < 2_000, "30 MB of headers were taken");
        peer.farewell();
    }
    // One small entry of the table, named ten thousand times: small on the wire, large when unpacked.
    let mut bomb = block("/health", &[]);
    bomb.push(0x40);
    put_length(&mut bomb, 1);
    bomb.push(b'a');
    put_length(&mut bomb, 3_000);
    bomb.extend(vec![b'v'; 3_000]);
    bomb.extend(vec![0xbe; 10_000]);
    let mut peer = Peer::connect(&server);
    peer.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb));
    if let Some(body) = peer.refusal() {
        println!("the bomb is answered: {:?}", String::from_utf8_lossy(&body));
        // h2 says it without a word.
        assert!(body.is_empty() || body == br#"{"error":"Request header fields too large"}"#);
    }
    end(server, before);
}
