//! The limit on how often one client may ask, through the real service.

use std::time::{Duration, Instant};

use crate::binary::Server;
use crate::wire::{Answer, Wire};

fn get(wire: &mut Wire, headers: &str) -> Answer {
    wire.send(format!("GET /health HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes())
        .unwrap();
    wire.answer(false).unwrap()
}

#[track_caller]
fn assert_limited(answer: &Answer) {
    assert_eq!(answer.status, 429);
    assert_eq!(answer.text(), r#"{"error":"Rate limit exceeded"}"#);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.header("x-request-id").is_some());
}

#[test]
fn a_client_that_asks_too_often_is_told_so() {
    let server = Server::start(["demo", "--rate-limit", "20"]);
    let mut wire = Wire::connect(&server.address);
    let began = Instant::now();
    let answers: Vec<Answer> = (0..100).map(|_| get(&mut wire, "")).collect();
    let served = answers.iter().filter(|answer| answer.status == 200).count();
    // The burst of two seconds, and what came in while asking.
    let most = 40 + (began.elapsed().as_secs_f64() * 20.0).ceil() as usize;
    assert!((40..=most).contains(&served), "{served} of 100, at most {most}");
    answers
        .iter()
        .filter(|answer| answer.status != 200)
        .for_each(assert_limited);
    assert!(served < 100);
    // Another connection is the same client, whatever it says of itself, and whatever is asked.
    let mut other = Wire::connect(&server.address);
    let refused = |ask: &mut dyn FnMut() -> Answer| {
        // Another one would be served forty times; what came in since then are a few.
        let answer = (0..20).map(|_| ask()).find(|answer| answer.status == 429);
        assert_limited(&answer.expect("a refusal"));
    };
    refused(&mut || get(&mut other, "x-forwarded-for: 192.0.2.1\r\n"));
    refused(&mut || {
        let request = b"DELETE /nowhere HTTP/1.1\r\nhost: x\r\n\r\n";
        other.send(request).unwrap();
        other.answer(false).unwrap()
    });
    // After the second that `Retry-After` names there is room again.
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(get(&mut wire, "").status, 200);
    server.stop();
}

#[test]
fn behind_a_proxy_the_client_is_whom_it_names_last() {
    let server = Server::start(["demo", "--rate-limit", "1", "--trust-proxy"]);
    let mut wire = Wire::connect(&server.address);
    let limited = |wire: &mut Wire, said: &str| {
        let header = format!("x-forwarded-for: {said}\r\n");
        (0..4).any(|_| get(wire, &header).status == 429)
    };
    assert!(limited(&mut wire, "192.0.2.1"));
    assert!(limited(&mut wire, "198.51.100.9, 192.0.2.1"));
    assert_eq!(
        get(&mut wire, "x-forwarded-for: 192.0.2.1, 192.0.2.2\r\n").status,
        200
    );
    assert_eq!(get(&mut wire, "x-forwarded-for: 2001:db8::1\r\n").status, 200);
    assert!(limited(&mut wire, "2001:db8::2"));
    assert_eq!(get(&mut wire, "x-forwarded-for: 2001:db8:0:1::2\r\n").status, 200);
    // Without a word of the proxy it is the peer.
    assert_eq!(get(&mut wire, "").status, 200);
}

#[test]
fn without_the_option_nobody_is_limited() {
    let server = Server::start(["demo"]);
    let mut wire = Wire::connect(&server.address);
    assert!((0..3_000).all(|_| get(&mut wire, "").status == 200));
}
