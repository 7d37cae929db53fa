//! Clients that ask a seeded mix and look at every answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::binary::{Reply, exchange};
use crate::support::fake_node::FakeNode;

/// Sorts of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Look-ups of one thing.
    Point,
    /// Balances of old, of coins and tokens (A11, T9).
    Past,
    /// Pages of 100 rows.
    Page,
    /// Pages of 10,000 rows.
    Long,
    /// Topics that are common and never meet: a walk over two long lists for nothing.
    Dense,
}

impl Class {
    pub(crate) const ALL: [Self; 5] = [Self::Point, Self::Past, Self::Page, Self::Long, Self::Dense];

    /// How often it is asked, of 100.
    const fn share(self) -> u32 {
        match self {
            Self::Point => 55,
            Self::Past => 20,
            Self::Page => 18,
            Self::Long => 3,
            Self::Dense => 4,
        }
    }
}

/// What there is to ask for.
pub(crate) struct Known {
    hashes: Vec<String>,
    accounts: Vec<String>,
    emitters: Vec<String>,
    /// Word topics that are there often, by position.
    words: [Vec<String>; 2],
    signatures: Vec<String>,
    blocks: u64,
}

/// Texts by how often they come, the most frequent first.
fn ranked(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    texts.for_each(|text| *counts.entry(text).or_default() += 1);
    let mut all: Vec<(usize, String)> = counts.into_iter().map(|(text, count)| (count, text)).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.into_iter().map(|(_, text)| text).take(50).collect()
}

impl Known {
    pub(crate) fn of(node: &FakeNode) -> Self {
        let bundles = node.bundles();
        let transactions = || bundles.iter().flat_map(|bundle| &bundle.block.transactions);
        let logs = || {
            bundles
                .iter()
                .flat_map(|bundle| &bundle.receipts)
                .flat_map(|receipt| &receipt.logs)
        };
        let topic =
            |place: usize| logs().filter_map(move |log| Some(log.topics.as_slice().get(place)?.to_string()));
        Self {
            hashes: transactions()
                .map(|transaction| transaction.hash.to_string())
                .take(5_000)
                .collect(),
            accounts: ranked(transactions().map(|transaction| format!("{:#x}", transaction.from))),
            emitters: ranked(logs().map(|log| format!("{:#x}", log.address))),
            words: [ranked(topic(1)), ranked(topic(2))],
            signatures: ranked(topic(0)),
            blocks: bundles.len() as u64,
        }
    }
}

/// Latencies of answers, milliseconds, by class.
#[derive(Default)]
pub(crate) struct Figures {
    latencies: BTreeMap<Class, Vec<f64>>,
    statuses: BTreeMap<u16, u64>,
    bytes: u64,
}

impl Figures {
    fn add(&mut self, other: Self) {
        for (class, mut latencies) in other.latencies {
            self.latencies.entry(class).or_default().append(&mut latencies);
        }
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.bytes += other.bytes;
    }

    /// A quantile of a class; the figures are in order by then.
    pub(crate) fn quantile(&self, class: Class, at: f64) -> f64 {
        let all = self.latencies.get(&class).map_or(&[][..], Vec::as_slice);
        let place = ((all.len() as f64 * at) as usize).min(all.len().saturating_sub(1));
        all.get(place).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn table(&self) -> String {
        let mut out = "| class | requests | p50 ms | p99 ms | max ms |\n|---|---|---|---|---|\n".to_owned();
        for (class, all) in &self.latencies {
            let at = |at| self.quantile(*class, at);
            let _ = writeln!(
                out,
                "| {class:?} | {} | {:.2} | {:.2} | {:.2} |",
                all.len(),
                at(0.5),
                at(0.99),
                at(1.0)
            );
        }
        let _ = writeln!(out, "statuses {:?}, {} MB", self.statuses, self.bytes / 1_000_000);
        out
    }
}

/// Clients that ask until they are stopped.
pub(crate) struct Crowd {
    clients: Vec<JoinHandle<Figures>>,
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
}

impl Crowd {
    pub(crate) fn start(
        address: &str,
        known: &Arc<Known>,
        seed: u64,
        clients: u64,
        classes: &[Class],
    ) -> Self {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let clients = (0..clients)
            .map(|client| {
                let mut asking = Client {
                    address: address.to_owned(),
                    known: Arc::clone(known),
                    rng: fastrand::Rng::with_seed(seed.wrapping_mul(1_000_003).wrapping_add(client)),
                    connection: RefCell::default(),
                    figures: Figures::default(),
                };
                let (stop, count, classes) = (Arc::clone(&stop), Arc::clone(&count), classes.to_vec());
                std::thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        asking.once(&classes);
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    asking.figures
                })
            })
            .collect();
        Self { clients, stop, count }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Ends the clients; a request that failed fails here.
    pub(crate) fn stop(self) -> Figures {
        self.stop.store(true, Ordering::Relaxed);
        let mut figures = Figures::default();
        for client in self.clients {
            figures.add(client.join().expect("no request should fail"));
        }
        for all in figures.latencies.values_mut() {
            all.sort_by(f64::total_cmp);
        }
        figures
    }
}

struct Client {
    address: String,
    known: Arc<Known>,
    rng: fastrand::Rng,
    connection: RefCell<Option<std::io::BufReader<std::net::TcpStream>>>,
    figures: Figures,
}

impl Client {
    fn one(&mut self, all: impl Fn(&Known) -> &Vec<String>) -> String {
        let all = all(&self.known);
        assert!(!all.is_empty());
        all[self.rng.usize(..all.len())].clone()
    }

    fn target(&mut self, class: Class) -> String {
        let block = self.rng.u64(..self.known.blocks);
        let account = self.one(|known| &known.accounts);
        let emitter = self.one(|known| &known.emitters);
        match class {
            Class::Point => match self.rng.u8(..6) {
                0 | 1 => format!("/api/transaction/{}/status", self.one(|known| &known.hashes)),
                2 => format!("/api/block/{block}/transaction-count"),
                3 => format!(
                    "/api/proxy?action=eth_getTransactionByHash&txhash={}",
                    self.one(|known| &known.hashes)
                ),
                4 => format!("/api/account/{account}/balance"),
                _ => "/api/proxy?action=eth_blockNumber".to_owned(),
            },
            Class::Past if self.rng.bool() => format!("/api/account/{account}/balance-history?block={block}"),
            Class::Past => {
                format!("/api/token/{account}/total-balance-history?contractaddress={emitter}&block={block}")
            }
            Class::Page => match self.rng.u8(..3) {
                0 => format!(
                    "/api/logs/get-logs?address={emitter}&offset=100&page={}",
                    self.rng.u8(1..6)
                ),
                1 => format!("/api/account/{account}/tx-list?offset=100&sort=desc"),
                _ => format!("/api/account/{account}/token-tx?offset=100&sort=desc"),
            },
            Class::Long => {
                let signature = self.known.signatures[0].clone();
                format!(
                    "/api/logs/get-logs?topic0={signature}&offset=10000&page={}",
                    self.rng.u8(1..3)
                )
            }
            Class::Dense => {
                let signature = self.known.signatures[0].clone();
                // An account as sender and as recipient: each is common, both at once is nearly never.
                let (first, second) = (self.known.words[0][0].clone(), self.known.words[1][0].clone());
                format!(
                    "/api/logs/get-logs?topic0={signature}&topic1={first}&topic2={second}&topic3={}&topic0_1_opr=and&topic1_2_opr=and&topic2_3_opr=and&offset=10000",
                    self.one(|known| &known.words[0])
                )
            }
        }
    }

    fn once(&mut self, classes: &[Class]) {
        let all: u32 = classes.iter().map(|class| class.share()).sum();
        let mut draw = self.rng.u32(..all);
        let class = *classes
            .iter()
            .find(|class| {
                let found = draw < class.share();
                draw = draw.wrapping_sub(class.share());
                found
            })
            .unwrap();
        let target = self.target(class);
        // There are few expressions to ask for, and a kept answer takes nothing.
        let anew = if class == Class::Dense {
            "cache-control: no-cache\r\n"
        } else {
            ""
        };
        let text = format!("GET {target} HTTP/1.1\r\nhost: x\r\n{anew}\r\n");
        let began = Instant::now();
        let reply = exchange(&self.address, &self.connection, text.as_bytes())
            .unwrap_or_else(|error| panic!("{error} for {target}"));
        let took = began.elapsed().as_secs_f64() * 1000.0;
        judge(&target, &reply);
        self.figures.latencies.entry(class).or_default().push(took);
        *self.figures.statuses.entry(reply.status).or_default() += 1;
        self.figures.bytes += reply.body.len() as u64;
    }
}

/// An answer is whole and one of the contract: of what is not indexed yet 404, or 503 with the sentence that says so.
fn judge(target: &str, reply: &Reply) {
    let body = reply.text();
    let shown = || body.chars().take(300).collect::<String>();
    assert!(
        body.starts_with('{') && body.ends_with('}'),
        "{target}: {}",
        shown()
    );
    match reply.status {
        200 => assert!(reply.header("x-indexed-block-number").is_some(), "{target}"),
        404 => assert!(body.contains("not found"), "{target}: {}", shown()),
        503 => assert!(body.contains("is still being indexed"), "{target}: {}", shown()),
        other => panic!("{other} for {target}: {}", shown()),
    }
}
