//! Broken requests by hand, and what each must get: bytes, statuses, and whether the connection may go on.

use crate::binary::Server;
use crate::wire::{Wire, alive};

/// What is sent, and the statuses that may come; none of them: closed without a word.
const TABLE: &[(&str, &[u16])] = &[
    ("GET /health HTTP/1.1\r\nhost: x\r\n\r\n", &[200]),
    ("GET /health HTTP/1.1\r\n\r\n", &[200, 400]),
    ("GET /health HTTP/1.0\r\n\r\n", &[200]),
    ("HEAD /health HTTP/1.0\r\n\r\n", &[200]),
    ("OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n", &[204]),
    ("OPTIONS /nowhere HTTP/1.1\r\nhost: x\r\n\r\n", &[204]),
    ("GET * HTTP/1.1\r\nhost: x\r\n\r\n", &[400, 404]),
    ("GET http://test/health HTTP/1.1\r\nhost: y\r\n\r\n", &[200]),
    ("GET https://test:443/health HTTP/1.1\r\nhost: y\r\n\r\n", &[200]),
    ("GET ftp://x/health HTTP/1.1\r\nhost: y\r\n\r\n", &[200, 400, 404]),
    ("GET file:///etc/passwd HTTP/1.1\r\nhost: y\r\n\r\n", &[400, 404]),
    ("GET //etc/passwd HTTP/1.1\r\nhost: y\r\n\r\n", &[400, 404]),
    ("GET /../../../etc/passwd HTTP/1.1\r\nhost: y\r\n\r\n", &[404]),
    (
        "GET /docs/..%2f..%2fetc%2fpasswd HTTP/1.1\r\nhost: y\r\n\r\n",
        &[404],
    ),
    (
        "GET /openapi.json/../Cargo.toml HTTP/1.1\r\nhost: y\r\n\r\n",
        &[404],
    ),
    ("CONNECT x:80 HTTP/1.1\r\nhost: x\r\n\r\n", &[405]),
    ("CONNECT /health HTTP/1.1\r\nhost: x\r\n\r\n", &[400, 405]),
    (
        "TRACE /health HTTP/1.1\r\nhost: x\r\nmax-forwards: 0\r\n\r\n",
        &[405],
    ),
    ("PRI * HTTP/1.1\r\n\r\n", &[400, 405]),
    ("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n", &[400]),
    ("GET /health HTTP/2.0\r\nhost: x\r\n\r\n", &[400]),
    ("GET /health HTTP/3\r\nhost: x\r\n\r\n", &[400]),
    ("GET /health HTTP/0.9\r\n\r\n", &[400]),
    ("GET /health\r\n\r\n", &[400]),
    ("GET  /health HTTP/1.1\r\nhost: x\r\n\r\n", &[400]),
    ("GET /health  HTTP/1.1\r\nhost: x\r\n\r\n", &[400]),
    ("GET\t/health\tHTTP/1.1\r\nhost: x\r\n\r\n", &[400]),
    (" GET /health HTTP/1.1\r\nhost: x\r\n\r\n", &[400]),
    ("\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n", &[200, 400]),
    ("GET /health HTTP/1.1\nhost: x\n\n", &[200, 400]),
    ("GET /hea\0lth HTTP/1.1\r\nhost: x\r\n\r\n", &[400]),
    ("GET /health HTTP/1.1\r\nhost: x\r\na: b\0c\r\n\r\n", &[400]),
    ("GET /health HTTP/1.1\r\nhost : x\r\n\r\n", &[400]),
    ("GET /health HTTP/1.1\r\n host: x\r\n\r\n", &[400]),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\n folded: y\r\n\r\n",
        &[200, 400],
    ),
    ("GET /health HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n", &[400]),
    ("GET /health HTTP/1.1\r\nhost: x\r\n: nameless\r\n\r\n", &[400]),
    ("GET /health HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", &[200, 400]),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        &[400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: +1\r\n\r\na",
        &[400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 1x\r\n\r\na",
        &[400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 18446744073709551616\r\n\r\n",
        &[400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 18446744073709551615\r\n\r\n",
        &[200, 400, 431],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        &[400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ncontent-length: 1, 1\r\n\r\na",
        &[200, 400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n",
        &[400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, gzip\r\n\r\n",
        &[400],
    ),
    (
        "GET /health HTTP/1.0\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        &[200, 400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        &[200, 400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        &[200, 400],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\nexpect: 200-maybe\r\n\r\n",
        &[200, 417],
    ),
    (
        "GET /health HTTP/1.1\r\nhost: x\r\nupgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABk\r\n\r\n",
        &[200],
    ),
    ("\u{16}\u{3}\u{1}\u{2}", &[400]),
    ("\0\0\0\0", &[400]),
    ("SSH-2.0-client\r\n", &[400]),
    (
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_call\"}\r\n\r\n",
        &[400],
    ),
];

#[test]
fn broken_requests_by_hand() {
    let server = Server::start(["demo", "--client-timeout", "1"]);
    for (sent, statuses) in TABLE {
        let mut wire = Wire::connect(&server.address);
        wire.send(sent.as_bytes()).unwrap();
        let first = wire.answer(sent.starts_with("HEAD"));
        match first {
            Ok(answer) => {
                assert!(
                    statuses.contains(&answer.status),
                    "{} for {sent:?}",
                    answer.status
                );
                assert!(answer.header("x-request-id").is_some(), "{sent:?}");
                assert!(!answer.text().contains("root:"), "{sent:?}");
                if answer.status >= 400 {
                    assert_eq!(
                        answer.header("content-type"),
                        Some("application/json"),
                        "{sent:?}"
                    );
                    assert!(
                        answer.text().starts_with("{\"error\":\""),
                        "{sent:?}: {}",
                        answer.text()
                    );
                }
            }
            Err(error) => assert!(statuses.is_empty(), "{error} for {sent:?}"),
        }
    }
    alive(&server.address);
    smuggled(&server);
    server.stop();
}

/// A length and chunks at once are two readings of where a request ends: whichever it is, the bytes behind it are not
/// answered as a request of their own after an answer to the first.
fn smuggled(server: &Server) {
    for framing in [
        "content-length: 4\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ncontent-length: 4",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding : chunked",
        "transfer-encoding: xchunked",
    ] {
        let mut wire = Wire::connect(&server.address);
        let inner = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
        let text = format!("GET /health HTTP/1.1\r\nhost: x\r\n{framing}\r\n\r\n0\r\n\r\n{inner}");
        wire.send(text.as_bytes()).unwrap();
        let first = wire.answer(false).map(|answer| answer.status);
        let rest = String::from_utf8_lossy(&wire.rest()).into_owned();
        // Chunks win (RFC 9112 section 6.1): then what follows is a request, and the length must not have been used.
        let chunked = matches!(first, Ok(200)) && rest.contains("HTTP/1.1 404");
        let refused = matches!(first, Ok(400)) && !rest.contains("HTTP/1.1");
        let closed = matches!(first, Ok(200)) && rest.is_empty();
        assert!(
            chunked || refused || closed,
            "{framing}: {first:?} and then {rest}"
        );
    }
}
