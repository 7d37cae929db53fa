//! Malformed requests by the thousand, made from the endpoint list: whatever is wrong is told with the status of
//! the contract, and never with a 5xx. An operation that is added to the list is covered by being in it.

use std::collections::BTreeMap;

use quarry::api::{Endpoint, Kind, Parameter, Place, endpoints};
use quarry::http::Limits;

use crate::client::Reply;
use crate::mined::Mined;

const RUNS: usize = 2_400;
/// Blocks of the store: all numbers that are made below are under it.
const BLOCKS: u64 = 40;

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Value,
    Missing,
    Twice,
    Chain,
    Method,
    LongTarget,
    LargeHeaders,
    Route,
    BadLine,
    /// Noise that may be no fault at all.
    Noise,
}

const FAULTS: [Fault; 10] = [
    Fault::Value,
    Fault::Missing,
    Fault::Twice,
    Fault::Chain,
    Fault::Method,
    Fault::LongTarget,
    Fault::LargeHeaders,
    Fault::Route,
    Fault::BadLine,
    Fault::Noise,
];

/// Days that exist, and are too far from any good one, before or after it.
const FAR_DAYS: [&str; 2] = ["0001-01-01", "9999-12-31"];

struct Maker {
    rng: fastrand::Rng,
}

impl Maker {
    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.rng.usize(..all.len())]
    }

    fn hex(&mut self, digits: usize) -> String {
        let digits: String = (0..digits).map(|_| self.rng.digit(16)).collect();
        format!("0x{digits}")
    }

    fn good(&mut self, parameter: &Parameter, action: Option<&str>) -> String {
        match (parameter.name, parameter.kind) {
            ("chain", _) => "mainnet".to_owned(),
            ("action", _) => action.unwrap_or("x").to_owned(),
            (_, Kind::Address | Kind::Contract | Kind::Addresses(_) | Kind::Contracts(_)) => self.hex(40),
            (_, Kind::Hash | Kind::Topics) => self.hex(64),
            // Any first day goes with any last one, also where 5 days are the most.
            ("startDate", _) => format!("2024-03-{:02}", self.rng.u8(8..=10)),
            (_, Kind::Date) => format!("2024-03-{:02}", self.rng.u8(10..=12)),
            (_, Kind::Integer | Kind::Block) => self.rng.u64(0..BLOCKS).to_string(),
            (_, Kind::Between(least, most)) => self.rng.u64(least..=most.min(least + 50)).to_string(),
            (_, Kind::Tag | Kind::Quantity) => format!("{:#x}", self.rng.u64(0..BLOCKS)),
            (_, Kind::OneOf(words)) => self.pick(words).to_owned(),
            // Nothing is known of its form; an empty value is an absent one.
            _ => String::new(),
        }
    }

    /// A value that this kind of parameter does not take.
    fn bad(&mut self, kind: Kind) -> String {
        let undecodable = ["%ff", "%zz", "%4", "%c3%28"];
        let not_numbers = ["-1", "%2B1", "1.5", "0x1", "abc", "1e3", "1%00", "1,2"];
        let mut all: Vec<String> = undecodable.map(str::to_owned).to_vec();
        match kind {
            Kind::Address
            | Kind::Contract
            | Kind::Addresses(_)
            | Kind::Contracts(_)
            | Kind::Hash
            | Kind::Topics => {
                let length = if !matches!(kind, Kind::Hash | Kind::Topics) {
                    40
                } else {
                    64
                };
                let good = self.hex(length);
                all.extend([
                    self.hex(length - 1),
                    self.hex(length + 1),
                    self.hex(12),
                    good[2..].to_owned(),
                    format!("{good}%20x"),
                    good.replace("0x", "0y"),
                    "0x".to_owned(),
                    "latest".to_owned(),
                ]);
            }
            Kind::Date => all.extend(
                [
                    "2023-02-29",
                    "1900-02-29",
                    "2024-04-31",
                    "2024-00-10",
                    "2024-13-01",
                    "2024-03-00",
                    "2024-3-8",
                    "24-03-08",
                    "20240308",
                    "2024/03/08",
                    "2024-03-08T00:00:00Z",
                    "%202024-03-08",
                    "0000-01-01",
                    "10000-01-01",
                    "-024-03-08",
                    "1709856000",
                    "latest",
                ]
                .into_iter()
                .chain(FAR_DAYS)
                .map(str::to_owned),
            ),
            Kind::Integer => all.extend(not_numbers.map(str::to_owned)),
            Kind::Block => {
                all.extend(not_numbers.map(str::to_owned));
                all.extend(["LATEST", "pending", "finalized"].map(str::to_owned));
            }
            Kind::Between(least, most) => {
                all.extend(not_numbers.map(str::to_owned));
                all.extend(least.checked_sub(1).map(|below| below.to_string()));
                all.extend(most.checked_add(1).map(|above| above.to_string()));
            }
            Kind::Tag => all.extend(["16", "pending", "LATEST", "0x", "0xg", "-0x1"].map(str::to_owned)),
            Kind::Quantity => all.extend(["1", "0x", "0xg", "x1"].map(str::to_owned)),
            Kind::OneOf(words) => {
                let word = self.pick(words);
                // Numbers have no capitals.
                let capitals = word.to_uppercase();
                all.extend(Some(capitals).filter(|capitals| *capitals != word));
                all.extend([format!("{word}x"), "%20".to_owned(), "7".to_owned()]);
            }
            // What does not decode is wrong for all.
            _ => {}
        }
        let at = self.rng.usize(..all.len());
        all.swap_remove(at)
    }

    fn noise(&mut self) -> String {
        let pieces = [
            "%00",
            "%ff",
            "&",
            "=",
            "a",
            "+",
            "%3D",
            "..",
            "/",
            ";",
            "[]",
            "'",
            "%F0%9F%92%A9",
            "?",
            "\\",
        ];
        (0..self.rng.usize(1..30)).map(|_| self.pick(&pieces)).collect()
    }
}

/// A request for an endpoint, before it is put into text.
struct Draft {
    path: String,
    pairs: Vec<(String, String)>,
}

impl Draft {
    /// Everything required, and some of the rest where `more` is asked for.
    fn new(maker: &mut Maker, endpoint: &Endpoint, more: bool) -> Self {
        let mut draft = Self {
            path: endpoint.path.to_owned(),
            pairs: Vec::new(),
        };
        for parameter in endpoint.parameters {
            let value = maker.good(parameter, endpoint.action);
            match parameter.place {
                Place::Path => draft.fill(parameter.name, &value),
                Place::Query if parameter.required || (more && maker.rng.bool()) => {
                    draft.pairs.push((parameter.name.to_owned(), value));
                }
                Place::Query => {}
            }
        }
        draft
    }

    fn fill(&mut self, name: &str, value: &str) {
        self.path = self.path.replace(&format!("{{{name}}}"), value);
    }

    fn set(&mut self, name: &str, value: String) {
        self.pairs.retain(|(key, _)| key != name);
        self.pairs.push((name.to_owned(), value));
    }

    fn target(&self) -> String {
        let pairs: Vec<String> = self
            .pairs
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        format!("{}?{}", self.path, pairs.join("&"))
    }
}

/// The text of a request with this fault, and the statuses that tell of it; `None` where the endpoint cannot
/// have it.
fn draw(maker: &mut Maker, endpoint: &Endpoint, fault: Fault) -> Option<(String, &'static [u16])> {
    // An optional parameter may make another one meaningless (A6's hash wins over A5's range).
    let more = !matches!(fault, Fault::Value | Fault::Twice);
    let mut draft = Draft::new(maker, endpoint, more);
    let (mut method, mut headers) = ("GET", String::new());
    let parameters: Vec<&Parameter> = endpoint.parameters.iter().collect();
    let in_query: Vec<&Parameter> = parameters
        .iter()
        .copied()
        .filter(|parameter| parameter.place == Place::Query)
        .collect();
    let statuses: &[u16] = match fault {
        Fault::Value => {
            let parameter = (!parameters.is_empty()).then(|| maker.pick(&parameters))?;
            let bad = maker.bad(parameter.kind);
            // Prices of days are the one series without a limit of days: days that exist make a long range, or one that
            // is reversed. The chain has no prices.
            let only_long = endpoint.ids[0] == "S3" && FAR_DAYS.contains(&bad.as_str());
            match parameter.place {
                Place::Query => draft.set(parameter.name, bad),
                Place::Path => {
                    draft.path = endpoint.path.to_owned();
                    draft.fill(parameter.name, &bad);
                    for other in endpoint.parameters {
                        let good = maker.good(other, None);
                        draft.fill(other.name, &good);
                    }
                }
            }
            if only_long { &[400, 404] } else { &[400] }
        }
        Fault::Missing => {
            let required: Vec<&Parameter> = in_query
                .iter()
                .copied()
                .filter(|parameter| parameter.required)
                .collect();
            let missing = (!required.is_empty()).then(|| maker.pick(&required))?;
            draft.pairs.retain(|(key, _)| key != missing.name);
            &[400]
        }
        Fault::Twice => {
            let parameter = (!in_query.is_empty()).then(|| maker.pick(&in_query))?;
            let value = match maker.good(parameter, endpoint.action) {
                value if value.is_empty() => "x".to_owned(),
                value => value,
            };
            draft.set(parameter.name, value.clone());
            draft.pairs.push((parameter.name.to_owned(), value));
            &[400]
        }
        Fault::Chain => {
            in_query.iter().find(|parameter| parameter.name == "chain")?;
            let chain = maker.pick(&[
                "Mainnet",
                "MAINNET",
                "Testnet",
                "ropsten",
                "1",
                "mainnet%20",
                "%ff",
            ]);
            draft.set("chain", chain.to_owned());
            &[400]
        }
        Fault::Method => {
            method = maker.pick(&["POST", "PUT", "DELETE", "PATCH", "TRACE", "BREW", "get"]);
            &[405]
        }
        Fault::LongTarget => {
            draft.set("zz", "x".repeat(maker.rng.usize(8_200..70_000)));
            &[414]
        }
        Fault::LargeHeaders => {
            headers = format!("a: {}\r\n", "x".repeat(maker.rng.usize(16_500..100_000)));
            &[431]
        }
        Fault::Route => {
            let path = draft.path.clone();
            draft.path = match maker.rng.u8(..4) {
                0 => format!("{path}/"),
                1 => format!("{path}/more"),
                2 => format!("/{path}"),
                // No literal of a path has capitals; the shortest one has no letters.
                _ if path.len() < 3 => "/X".to_owned(),
                _ => path.replacen(&path[1..3], &path[1..3].to_uppercase(), 1),
            };
            &[404]
        }
        Fault::BadLine => {
            headers = maker
                .pick(&["bad header\r\n", ": x\r\n", "a\0b: c\r\n", "a b: c\r\n"])
                .to_owned();
            &[400]
        }
        Fault::Noise => {
            let noise = maker.noise();
            // With an odd name it is ignored, with a known one it is a value like any other.
            if maker.rng.bool() && !in_query.is_empty() {
                let name = maker.pick(&in_query).name.to_owned();
                draft.pairs.push((name, noise));
            } else {
                draft.pairs.push(("x".to_owned(), noise));
            }
            &[200, 400, 404]
        }
    };
    let target = draft.target();
    let text = format!("{method} {target} HTTP/1.1\r\nhost: test\r\n{headers}connection: close\r\n\r\n");
    Some((text, statuses))
}

#[tokio::test]
async fn thousands_of_malformed_requests_are_told_what_is_wrong() {
    let seed = std::env::var("QUARRY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    println!("QUARRY_SEED={seed}");
    let mut maker = Maker {
        rng: fastrand::Rng::with_seed(seed),
    };
    let world = Mined::start(BLOCKS, Limits::default()).await;
    let mut seen: BTreeMap<(&str, Fault), usize> = BTreeMap::new();
    let mut runs = 0;
    // Each fault in turn: none is left to chance, only what it is made of.
    let mut faults = FAULTS.iter().copied().cycle();
    while runs < RUNS {
        let Some(fault) = faults.next() else { break };
        for endpoint in endpoints() {
            let Some((text, statuses)) = draw(&mut maker, endpoint, fault) else {
                continue;
            };
            runs += 1;
            *seen.entry((endpoint.ids[0], fault)).or_default() += 1;
            let reply = Reply::parse(&world.server.exchange(&text).await);
            let shown: String = text.chars().take(400).collect();
            assert!(
                statuses.contains(&reply.status),
                "{fault:?}, QUARRY_SEED={seed}: {} {} for\n{shown}",
                reply.status,
                reply.body
            );
            assert!(
                reply.header("x-request-id").is_some() && reply.header("date").is_some(),
                "{shown}"
            );
            if reply.status == 200 {
                continue;
            }
            assert_eq!(reply.header("content-type"), Some("application/json"), "{shown}");
            assert_eq!(reply.header("cache-control"), Some("no-store"), "{shown}");
            assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "{shown}");
            assert_eq!(reply.header("allow").is_some(), reply.status == 405, "{shown}");
            let body: serde_json::Value = serde_json::from_str(&reply.body).unwrap();
            let said = body["error"].as_str().unwrap_or_default();
            let expected = match fault {
                Fault::Missing => said.starts_with("Missing required parameter: "),
                // Whether enough is given is looked at first, and topics with their operators before the rest.
                Fault::Twice => [
                    "Duplicate parameter: ",
                    "Missing required parameter: ",
                    "At least one topic",
                    "Operator ",
                ]
                .iter()
                .any(|text| said.starts_with(text)),
                Fault::Chain => said == "Invalid chain",
                Fault::Route => said == "Route not found",
                Fault::BadLine => said == "Bad request",
                _ => !said.is_empty() && !said.contains("nternal"),
            };
            assert!(expected, "{fault:?}: {said} for\n{shown}");
        }
    }
    for endpoint in endpoints() {
        let kinds = seen.keys().filter(|(id, _)| *id == endpoint.ids[0]).count();
        assert!(kinds >= 5, "{:?} was hardly tried", endpoint.ids);
    }
    // Nothing of this broke anything.
    assert_eq!(world.server.get("/health").await.status, 200);
}
