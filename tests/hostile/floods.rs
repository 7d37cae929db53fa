//! Too much, too little, too slow.

use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::binary::Server;
use crate::wire::{Wire, alive, ask};

/// What memory may grow by, KiB.
const GROWTH_MAX_KIB: u64 = 64 << 10;

#[track_caller]
fn flat(server: &Server, before: u64) {
    let grown = server.resident_kib().saturating_sub(before);
    println!("memory {before} KiB + {grown} KiB");
    assert!(grown < GROWTH_MAX_KIB, "memory grew by {grown} KiB");
}

/// Sends pieces until the server has enough of it; how many bytes that took.
fn pour(wire: &mut Wire, piece: &[u8], most: usize) -> usize {
    let mut sent = 0;
    while sent < most && wire.send(piece).is_ok() {
        sent += piece.len();
    }
    sent
}

#[test]
fn floods_of_headers_and_targets_are_cut_off() {
    let server = Server::start(["demo"]);
    alive(&server.address);
    let before = server.resident_kib();
    // (what begins the request, what comes again and again)
    let floods: [(&str, String); 5] = [
        ("GET /health HTTP/1.1\r\nhost: x\r\n", "a: b\r\n".repeat(500)),
        (
            "GET /health HTTP/1.1\r\nhost: x\r\n",
            format!("{}: x\r\n", "n".repeat(4000)),
        ),
        ("GET /health HTTP/1.1\r\na: ", "x".repeat(4000)),
        ("GET /", "x".repeat(4000)),
        ("", "x".repeat(4000)),
    ];
    let mut answered = 0;
    for (begin, piece) in &floods {
        for _ in 0..20 {
            let mut wire = Wire::connect(&server.address);
            wire.send(begin.as_bytes()).unwrap();
            let sent = pour(&mut wire, piece.as_bytes(), 64 << 20);
            assert!(sent < 32 << 20, "{sent} bytes were taken of {begin:?}...");
        }
        let mut wire = Wire::connect(&server.address);
        wire.send(begin.as_bytes()).unwrap();
        // Above hyper's own bound on a head, and little enough to be read to its end before the answer.
        pour(&mut wire, piece.as_bytes(), 200 << 10);
        // Where the connection was reset first, the answer may be lost on the way.
        if let Ok(answer) = wire.answer(false) {
            answered += 1;
            assert!(
                [400, 414, 431].contains(&answer.status),
                "{} for {begin:?}",
                answer.status
            );
        }
    }
    assert!(answered > 0, "no flood was answered");
    alive(&server.address);
    flat(&server, before);
    server.stop();
}

#[test]
fn half_requests_and_sudden_ends_leave_nothing_behind() {
    let server = Server::start(["demo", "--log", "warn,quarry=info,quarry::http::request=off"]);
    let whole = "GET /api/logs/get-logs?topic0=0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef HTTP/1.1\r\nhost: x\r\n\r\n";
    for _ in 0..200 {
        ask(&server.address, "/api/proxy?action=eth_blockNumber");
    }
    let before = server.resident_kib();
    for place in 0..2_000 {
        let mut wire = Wire::connect(&server.address);
        let cut = if place % 2 == 0 {
            place % whole.len()
        } else {
            whole.len()
        };
        wire.send(&whole.as_bytes()[..cut]).unwrap();
        if place % 5 == 0 {
            // A few bytes of the answer, and gone.
            wire.stream()
                .set_read_timeout(Some(Duration::from_millis(5)))
                .unwrap();
            let _ = wire.stream().read(&mut [0; 64]);
        }
    }
    alive(&server.address);
    flat(&server, before);
    let open = || {
        let page = ask(&server.address, "/metrics").text();
        let line = page
            .lines()
            .find_map(|line| line.strip_prefix("quarry_http_requests_in_flight "));
        line.unwrap().parse::<f64>().unwrap()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    // The one that asks is one.
    while open() > 1.0 {
        assert!(Instant::now() < deadline, "requests are still in flight");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.stop();
}

#[test]
fn a_byte_now_and_then_holds_nothing_for_long() {
    let server = Server::start(["demo", "--client-timeout", "1"]);
    let text = b"GET /health HTTP/1.1\r\nhost: x\r\naccept: application/json\r\n\r\n";
    let mut slow: Vec<Wire> = (0..300).map(|_| Wire::connect(&server.address)).collect();
    let began = Instant::now();
    let mut at = 0;
    // A byte each 200 ms: whole after 11 seconds, were it waited for.
    while !slow.is_empty() && at < text.len() {
        assert!(
            began.elapsed() < Duration::from_secs(8),
            "{} are still held",
            slow.len()
        );
        slow.retain_mut(|wire| {
            let stream = wire.stream();
            stream.set_nonblocking(true).unwrap();
            let sent = stream.write(&text[at..=at]);
            let closed = matches!(stream.read(&mut [0; 512]), Ok(0)) || sent.is_err();
            !closed
        });
        at += 1;
        // Others are answered meanwhile.
        alive(&server.address);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(slow.is_empty(), "{} were never closed", slow.len());
    server.stop();
}

/// Connections that were cut off so far.
fn cut_off(server: &Server) -> f64 {
    let page = ask(&server.address, "/metrics").text();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix("quarry_http_connections_cut_off_total "));
    line.unwrap().parse().unwrap()
}

/// Reads pieces of so many bytes of a long answer, one each `pause`, as long as that is; whether it was cut off before.
fn is_cut_off(wire: &mut Wire, piece: usize, pause: Duration, long: Duration) -> bool {
    let (began, mut room) = (Instant::now(), vec![0; piece]);
    while began.elapsed() < long {
        // A piece may come in two parts: who waits for all of it would wait for the next one.
        match wire.stream().read(&mut room) {
            Ok(1..) => std::thread::sleep(pause),
            Ok(0) => return true,
            Err(error) => match error.kind() {
                // Whoever stops the tests for a while interrupts the waiting.
                ErrorKind::Interrupted => {}
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => return true,
                _ => panic!("neither more of the answer nor its end: {error}"),
            },
        }
    }
    false
}

#[test]
fn who_reads_on_slowly_is_not_cut_off() {
    // 64 KiB in two seconds; the kernel takes several times as much at once, and then nothing for as long.
    let server = Server::start(["demo", "--client-timeout", "2"]);
    let ask_much = "GET /api/logs/get-logs?topic0=0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef&offset=10000 HTTP/1.1\r\nhost: x\r\n\r\n".repeat(40);
    let ask = |room: usize| {
        let mut wire = Wire::connect(&server.address);
        socket2::SockRef::from(&*wire.stream())
            .set_recv_buffer_size(room)
            .unwrap();
        wire.send(ask_much.as_bytes()).unwrap();
        wire
    };
    let (mut steady, mut lazy) = (ask(64 << 10), ask(16 << 10));
    let long = Duration::from_secs(12);
    let is_cut = std::thread::scope(|scope| {
        let steady = scope.spawn(|| is_cut_off(&mut steady, 8 << 10, Duration::from_millis(100), long));
        // What its own kernel holds it reads on for a while.
        scope.spawn(|| is_cut_off(&mut lazy, 1 << 10, Duration::from_millis(500), long));
        steady.join().unwrap()
    });
    assert!(!is_cut, "80 KiB a second were cut off");
    assert_eq!(cut_off(&server), 1.0, "2 KiB a second were waited for");
    alive(&server.address);
    // What it still waits for would hold up the end.
    drop(steady);
    server.stop();
}

#[test]
fn who_takes_nothing_of_its_answers_is_cut_off() {
    let server = Server::start([
        "demo",
        "--client-timeout",
        "1",
        "--log",
        "warn,quarry=info,quarry::http::request=off",
    ]);
    alive(&server.address);
    let before = server.resident_kib();
    let ask_much = "GET /api/logs/get-logs?topic0=0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef&offset=10000 HTTP/1.1\r\nhost: x\r\n\r\n".repeat(40);
    let mut stalled: Vec<Wire> = (0..32)
        .map(|_| {
            let mut wire = Wire::connect(&server.address);
            wire.send(ask_much.as_bytes()).unwrap();
            wire
        })
        .collect();
    std::thread::sleep(Duration::from_millis(500));
    flat(&server, before);
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        let cut_off = cut_off(&server);
        if cut_off >= 32.0 {
            break;
        }
        assert!(
            Instant::now() < deadline,
            "stalled connections are kept: {cut_off} were cut off"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    for wire in &mut stalled {
        let _ = wire.rest();
    }
    alive(&server.address);
    server.stop();
}

#[test]
fn a_thousand_requests_in_one_write_are_answered_in_order() {
    let server = Server::start(["demo"]);
    let mut text = String::new();
    let targets = [
        "/health",
        "/api/proxy?action=eth_blockNumber",
        "/api/block/201/transaction-count",
        "/nowhere",
    ];
    for place in 0..1_000 {
        let target = targets[place % targets.len()];
        text += &format!("GET {target} HTTP/1.1\r\nhost: x\r\nx-request-id: p-{place}\r\n\r\n");
    }
    let mut wire = Wire::connect(&server.address);
    let mut writer = wire.stream().try_clone().unwrap();
    let sending = std::thread::spawn(move || writer.write_all(text.as_bytes()));
    for place in 0..1_000 {
        let answer = wire.answer(false).unwrap();
        assert_eq!(answer.header("x-request-id"), Some(format!("p-{place}").as_str()));
        assert_eq!(answer.status, if place % 4 == 3 { 404 } else { 200 });
    }
    sending.join().unwrap().unwrap();
    server.stop();
}
