//! Requests out of the document: good ones, nearly good ones and wild ones, with headers and methods of all sorts.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::binary::Server;
use crate::document::{Document, Operation, Parameter};
use crate::wire::{Answer, Wire, alive};

/// What memory may grow by, KiB, from the first tenth of the requests to the last.
const GROWTH_MAX_KIB: u64 = 48 << 10;

const WILD: &[&str] = &[
    "",
    "%00",
    "1%00",
    "-1",
    "+1",
    "%2B1",
    "1.5",
    "1e3",
    "0x",
    "0xg",
    "NaN",
    "null",
    "true",
    "[]",
    "{}",
    "'",
    "%22",
    "%3C",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999",
    "115792089237316195423570985008687907853269984665640564039457584007913129639935",
    "115792089237316195423570985008687907853269984665640564039457584007913129639936",
    "0xffffffffffffffff",
    "0x10000000000000000",
    "%D9%A3",
    "%EF%BC%91",
    "%F0%9F%92%A9",
    "%ff",
    "%c3%28",
    "%ed%a0%80",
    "%",
    "%4",
    "%zz",
    "%2500",
    "%252e%252e%252f",
    "..%2f..%2fetc",
    "../..",
    "1;2",
    ";x=1",
    "1,2",
    ",",
    ",,",
    "latest",
    "LATEST",
    "pending",
    "earliest",
    "finalized",
    "mainnet",
    "testnet",
    "Mainnet",
    "mainnet%20",
    "0",
    "1",
    "2",
    "7",
    "10000",
    "10001",
    "2024-02-30",
    "2024-03-08",
    "1969-12-31",
    "10000-01-01",
    "0000-00-00",
    "asc",
    "DESC",
    "and",
    "or",
    "xor",
    "eth_blockNumber",
    "eth_call",
    "%0d%0aX-Injected:%201",
    "%09",
    "+",
    "++",
    "%20",
    "%25",
    "a=b",
    "a%26b",
    "a%3Db",
    "\u{2a}",
];

const METHODS: &[&str] = &[
    "HEAD",
    "HEAD",
    "OPTIONS",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "TRACE",
    "CONNECTED",
    "PROPFIND",
    "get",
    "G",
];

const HEADERS: &[&str] = &[
    "accept-encoding: gzip",
    "accept-encoding: br;q=1.0, gzip;q=0.8, *;q=0.1",
    "accept-encoding: zstd",
    "accept-encoding: identity;q=0",
    "accept-encoding: *;q=0",
    "accept-encoding: ,,;;==",
    "range: bytes=0-0",
    "range: bytes=-1,5-",
    "range: lines=1-2",
    "if-none-match: *",
    "if-none-match: \"\"",
    "if-none-match: W/\"x\", \"y\"",
    "if-none-match: \"unended",
    "if-match: *",
    "if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT",
    "if-unmodified-since: never",
    "expect: 100-continue",
    "accept: application/x-ndjson",
    "accept: application/x-ndjson;q=0.000, */*",
    "accept: text/html",
    "accept: ;;;,",
    "x-request-id: a-b_c.1",
    "x-request-id: <script>",
    "x-forwarded-for: 127.0.0.1, nobody",
    "forwarded: for=[::1]",
    "cookie: a=b; c",
    "authorization: Basic Og==",
    "te: trailers",
    "upgrade: h2c",
    "upgrade: websocket",
    "content-type: application/json",
    "x-http-method-override: DELETE",
    "origin: null",
    "host: other",
    "access-control-request-method: PUT",
    "sec-fetch-mode: cors",
    "user-agent: ",
    "referer: //",
    "pragma: no-cache",
    "max-forwards: 0",
];

/// How a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Manner {
    Good,
    NearlyGood,
    Wild,
    PathTrick,
}

struct Request {
    manner: Manner,
    method: &'static str,
    text: Vec<u8>,
    /// Whether the path is still the operation's.
    on_route: bool,
    /// Whether `testnet` is asked for, which the demo does not have.
    testnet: bool,
}

struct Maker<'a> {
    rng: fastrand::Rng,
    document: &'a Document,
    /// Entity tags seen.
    tags: Vec<String>,
}

impl Maker<'_> {
    fn pick<'v, T: ?Sized>(&mut self, all: &[&'v T]) -> &'v T {
        all[self.rng.usize(..all.len())]
    }

    fn known(&mut self, digits: usize) -> String {
        let known = if digits == 40 {
            &self.document.addresses
        } else {
            &self.document.hashes
        };
        let text = known[self.rng.usize(..known.len())].clone();
        match self.rng.u8(..8) {
            0 => text.to_uppercase().replacen("0X", "0x", 1),
            1 => text.replacen("0x", "0X", 1),
            // Well formed, of nothing.
            2 => format!(
                "0x{}",
                (0..digits).map(|_| self.rng.digit(16)).collect::<String>()
            ),
            _ => text,
        }
    }

    /// A value that the schema allows.
    fn good(&mut self, parameter: &Parameter) -> String {
        let schema = &parameter.schema;
        if let Some(words) = schema["enum"].as_array() {
            return words[self.rng.usize(..words.len())]
                .to_string()
                .trim_matches('"')
                .to_owned();
        }
        let pattern = schema["pattern"].as_str().unwrap_or_default();
        if schema["type"] == "integer" {
            let least = schema["minimum"].as_u64().unwrap_or(0);
            let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
            return match self.rng.u8(..6) {
                0 => least.to_string(),
                1 => most.to_string(),
                2 => self.rng.u64(least..=most).to_string(),
                _ => self.rng.u64(least..=most.min(least + 400)).to_string(),
            };
        }
        if schema["format"] == "date" {
            return format!("2024-0{}-{:02}", self.rng.u8(1..=4), self.rng.u8(1..=30).min(29));
        }
        let digits = if pattern.contains("{64}") { 64 } else { 40 };
        match pattern {
            "^(latest|[0-9]+)$" if self.rng.bool() => "latest".to_owned(),
            "^(latest|[0-9]+)$" => self.rng.u64(..400).to_string(),
            pattern if pattern.starts_with("^(latest|earliest") => {
                ["latest", "earliest", "safe", "finalized", "0x0", "0x10", "0xffff"][self.rng.usize(..7)]
                    .to_owned()
            }
            pattern if pattern.contains(&format!("{{{digits}}}")) => {
                let several = if pattern.contains(',') {
                    self.rng.usize(1..4)
                } else {
                    1
                };
                (0..several)
                    .map(|_| self.known(digits))
                    .collect::<Vec<_>>()
                    .join(",")
            }
            pattern if pattern.starts_with("^0[xX]") => format!("{:#x}", self.rng.u64(..5)),
            _ => String::new(),
        }
    }

    /// A good value with one thing wrong, or written in another way.
    fn nearly(&mut self, parameter: &Parameter) -> String {
        let good = self.good(parameter);
        if good.is_empty() {
            return self.pick(WILD).to_owned();
        }
        let at = self.rng.usize(..good.len());
        let byte = good.as_bytes()[at];
        let encoded = |text: &str, how: &str| format!("{}{how}{}", &text[..at], &text[at + 1..]);
        match self.rng.u8(..9) {
            0 => encoded(&good, ""),
            1 => encoded(&good, &format!("{0}{0}", byte as char)),
            2 => encoded(&good, &format!("%{byte:02x}")),
            3 => encoded(&good, &format!("%25{byte:02X}")),
            4 => format!("%20{good}"),
            5 => format!("{good}+"),
            6 => format!("{good}%00"),
            7 => good.to_uppercase(),
            _ => format!("{good},{good}"),
        }
    }

    fn value(&mut self, manner: Manner, parameter: &Parameter) -> String {
        match manner {
            Manner::Good | Manner::PathTrick => self.good(parameter),
            Manner::NearlyGood if self.rng.u8(..3) == 0 => self.nearly(parameter),
            Manner::NearlyGood => self.good(parameter),
            Manner::Wild => match self.rng.u8(..12) {
                0 => "x".repeat(self.rng.usize(1_000..7_000)),
                1..=3 => self.nearly(parameter),
                4 | 5 => self.good(parameter),
                _ => self.pick(WILD).to_owned(),
            },
        }
    }

    /// The same path, written to mislead.
    fn trick(&mut self, path: &str) -> String {
        let cut = path[1..].find('/').map_or(path.len(), |at| at + 1);
        let (head, tail) = path.split_at(cut);
        match self.rng.u8(..14) {
            0 => format!("{path}/"),
            1 => format!("/{path}"),
            2 => format!("{head}//{}", tail.trim_start_matches('/')),
            3 => format!("{head}/.{tail}"),
            4 => format!("{head}/x/..{tail}"),
            5 => format!("{head}/%2e%2e{path}"),
            6 => format!("/..{path}"),
            7 => format!("{head};v=1{tail}"),
            8 => format!("{path};jsessionid=1"),
            9 => path.replacen('/', "%2F", 2),
            10 => format!("{path}%00"),
            11 => path.to_uppercase(),
            12 => format!("{path}/../../../../etc/passwd"),
            _ => format!("{path}%252f.."),
        }
    }

    fn request(&mut self, operation: &Operation) -> Request {
        let manner = match self.rng.u8(..20) {
            0..6 => Manner::Good,
            6..11 => Manner::NearlyGood,
            11..18 => Manner::Wild,
            _ => Manner::PathTrick,
        };
        let mut path = operation.path.clone();
        let mut pairs = Vec::new();
        let mut on_route = true;
        for parameter in &operation.parameters {
            let value = self.value(manner, parameter);
            if parameter.in_path {
                // These end or split a path.
                on_route &= !value.is_empty() && !value.contains(['/', '?', '#']);
                path = path.replace(&format!("{{{}}}", parameter.name), &value);
            } else if (parameter.required && self.rng.u8(..12) > 0) || self.rng.u8(..3) == 0 {
                pairs.push((parameter.name.clone(), value));
                if manner == Manner::Wild && self.rng.u8(..8) == 0 {
                    let again = self.value(manner, parameter);
                    pairs.push((parameter.name.clone(), again));
                }
            }
        }
        if manner == Manner::PathTrick {
            path = self.trick(&path);
            on_route = false;
        }
        if self.rng.u8(..4) == 0 {
            let name =
                ["zz", "CHAIN", "Page", "%00", "a[b]", "\u{5f}", "chain%20", "%ff"][self.rng.usize(..8)];
            pairs.push((name.to_owned(), self.pick(WILD).to_owned()));
        }
        self.rng.shuffle(&mut pairs);
        let named = |value: &str| quarry::http::percent_decode(value).as_deref() == Some(b"testnet");
        let testnet = pairs.iter().any(|(name, value)| name == "chain" && named(value));
        let mut target = path;
        for (place, (name, value)) in pairs.iter().enumerate() {
            target.push_str(if place == 0 { "?" } else { "&" });
            target.push_str(&format!("{name}={value}"));
        }
        if manner == Manner::Wild && self.rng.u8(..10) == 0 {
            target.push_str(["#fragment", "&", "&&=", "?again=1", ";a=1"][self.rng.usize(..5)]);
        }
        // Without a query the path goes on.
        on_route &= target.contains('?') || !target.contains([';', '&']);
        let (method, text) = self.written(manner, &target);
        Request {
            manner,
            method,
            text,
            on_route,
            testnet,
        }
    }

    /// The request in bytes, with a method, a version, headers and sometimes a body.
    fn written(&mut self, manner: Manner, target: &str) -> (&'static str, Vec<u8>) {
        let method = if manner != Manner::Good && self.rng.u8(..8) == 0 {
            self.pick(METHODS)
        } else {
            "GET"
        };
        let absolute = self.rng.u8(..12) == 0;
        let version = if self.rng.u8(..16) == 0 { "1.0" } else { "1.1" };
        let authority = if absolute {
            "http://elsewhere.example:81"
        } else {
            ""
        };
        let mut head = format!("{method} {authority}{target} HTTP/{version}\r\nhost: test\r\n");
        for _ in 0..self.rng.u8(..4) {
            let line = self.pick(HEADERS);
            // A second host is a malformed request, and an unanswered expectation waits for a body.
            if !line.starts_with("host") && !line.starts_with("upgrade: h2c") {
                head.push_str(line);
                head.push_str("\r\n");
            }
        }
        if !self.tags.is_empty() && self.rng.u8(..8) == 0 {
            let tag = &self.tags[self.rng.usize(..self.tags.len())];
            head.push_str(&format!("if-none-match: {tag}\r\n"));
        }
        let body: &[u8] = match self.rng.u8(..24) {
            0 => {
                head.push_str("content-length: 11\r\n");
                b"hello world"
            }
            1 if version == "1.1" => {
                head.push_str("transfer-encoding: chunked\r\n");
                b"5\r\nhello\r\n0\r\n\r\n"
            }
            _ => b"",
        };
        head.push_str("\r\n");
        (method, [head.as_bytes(), body].concat())
    }
}

/// What is wrong with the headers and the envelope of an answer; `None` where all is well.
fn envelope_fault(answer: &Answer, head_only: bool) -> Option<String> {
    for name in ["x-request-id", "date", "access-control-allow-origin"] {
        if answer.header(name).is_none() {
            return Some(format!("no {name}"));
        }
    }
    if answer.header("x-injected").is_some() {
        return Some("a header was injected".to_owned());
    }
    let wanted = |name: &str, there: bool| {
        (answer.header(name).is_some() != there)
            .then(|| format!("{name} where it should not be, or not where it should"))
    };
    if let Some(fault) = wanted("allow", matches!(answer.status, 204 | 405))
        .or_else(|| wanted("retry-after", matches!(answer.status, 429 | 503)))
    {
        return Some(fault);
    }
    match answer.status {
        200 | 304 => wanted("etag", true).or_else(|| wanted("cache-control", true)),
        204 => None,
        _ => {
            let no_store = answer.header("cache-control") == Some("no-store");
            let body: Value = serde_json::from_slice(&answer.decoded()).unwrap_or_default();
            let said = body["error"].as_str().unwrap_or_default();
            let shape = body.as_object().is_some_and(|fields| fields.len() == 1) && !said.is_empty();
            if head_only {
                (!no_store).then(|| "an error that may be stored".to_owned())
            } else {
                (!no_store || !shape).then(|| format!("no envelope of an error: {}", answer.text()))
            }
        }
    }
}

/// What the contract says of this answer; `Err` where it says nothing good.
fn judge(
    document: &Document,
    operation: &Operation,
    request: &Request,
    answer: &Answer,
) -> Result<(), String> {
    let head_only = request.method == "HEAD";
    let said = || answer.text();
    if let Some(fault) = envelope_fault(answer, head_only) {
        return Err(fault);
    }
    // What is no target at all (a brace, say) is refused before it is anybody's.
    let no_target = matches!(
        request.manner,
        Manner::Wild | Manner::PathTrick | Manner::NearlyGood
    );
    if no_target && answer.status == 400 && (head_only || said() == r#"{"error":"Bad request"}"#) {
        return Ok(());
    }
    match (request.method, answer.status) {
        // Which comes first, the method or the route, is not told apart: neither is anything's fault.
        ("GET" | "HEAD", 405) => return Err("GET is allowed".to_owned()),
        ("GET" | "HEAD", _) => {}
        ("OPTIONS", 204) => return Ok(()),
        (_, 405 | 414 | 431) => return Ok(()),
        (method, status) => return Err(format!("{status} for {method}")),
    }
    match answer.status {
        503 if head_only && request.testnet => Ok(()),
        503 if request.testnet && said() == r#"{"error":"Chain testnet is not configured"}"# => Ok(()),
        // The stand-in for a node that ships with the demo does not know everything; the document lists it.
        502 if head_only || said() == r#"{"error":"Upstream node error"}"# => {
            document.fault(operation, answer, head_only).map_or(Ok(()), Err)
        }
        500.. => Err("a fault of the server".to_owned()),
        _ if !request.on_route => Ok(()),
        _ => document.fault(operation, answer, head_only).map_or(Ok(()), Err),
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

#[test]
fn generated_requests_get_answers_of_the_contract() {
    let seed = number("QUARRY_SEED").unwrap_or_else(|| fastrand::u64(..));
    let requests = number("QUARRY_HOSTILE_REQUESTS").unwrap_or(10_000);
    let server = Server::start(["demo", "--log", "warn,quarry=info,quarry::http::request=off"]);
    let document = Document::new(server.json("/openapi.json"));
    assert!(document.operations.len() > 40 && document.addresses.len() > 20 && document.hashes.len() > 20);
    let mut maker = Maker {
        rng: fastrand::Rng::with_seed(seed),
        document: &document,
        tags: Vec::new(),
    };
    let mut wire = Wire::connect(&server.address);
    let mut statuses: BTreeMap<u16, u64> = BTreeMap::new();
    let mut manners: BTreeMap<Manner, u64> = BTreeMap::new();
    let mut memory = 0;
    for place in 0..requests {
        let operation = &document.operations[place as usize % document.operations.len()];
        let request = maker.request(operation);
        let head_only = request.method == "HEAD";
        let sent = wire.send(&request.text).and_then(|()| wire.answer(head_only));
        let answer = sent.or_else(|_| {
            // The connection may have ended with the last answer; a fresh one must not.
            wire = Wire::connect(&server.address);
            wire.send(&request.text)?;
            wire.answer(head_only)
        });
        let shown = || {
            String::from_utf8_lossy(&request.text)
                .chars()
                .take(1_500)
                .collect::<String>()
        };
        let answer = answer.unwrap_or_else(|error| panic!("QUARRY_SEED={seed}: {error} for\n{}", shown()));
        if answer.closes()
            || request.method == "OPTIONS"
            || answer.status >= 400 && request.text.ends_with(b"\n\r\n")
        {
            wire = Wire::connect(&server.address);
        }
        if let Err(fault) = judge(&document, operation, &request, &answer) {
            panic!(
                "QUARRY_SEED={seed}, {:?}: {fault}: {} {}\nfor\n{}",
                request.manner,
                answer.status,
                answer.text().chars().take(1_500).collect::<String>(),
                shown()
            );
        }
        if maker.tags.len() < 500 {
            maker.tags.extend(answer.header("etag").map(str::to_owned));
        }
        *statuses.entry(answer.status).or_default() += 1;
        *manners.entry(request.manner).or_default() += 1;
        if place == requests / 10 {
            memory = server.resident_kib();
        }
    }
    alive(&server.address);
    let grown = server.resident_kib().saturating_sub(memory);
    println!(
        "{requests} requests, QUARRY_SEED={seed}: {statuses:?} {manners:?}, memory {memory} KiB + {grown} KiB"
    );
    assert!(grown < GROWTH_MAX_KIB, "memory grew by {grown} KiB from {memory}");
    assert!(statuses[&200] > requests / 10 && statuses[&400] > requests / 10);
    for status in [304, 404, 405] {
        assert!(statuses.contains_key(&status), "{status} never came");
    }
    let log = server.log();
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
    server.stop();
}
