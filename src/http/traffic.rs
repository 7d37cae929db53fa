//! What went through: requests by operation and status, connections, and what is under way.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Uri;

use crate::clock;
use crate::metrics::visits::Visits;
use crate::metrics::{Histogram, Page};

use super::lately::Lately;
use super::recent::{Counted, Rate, Recent};
use super::slow::{SLOW, SlowRequest, SlowRequests, shown_target};
use super::unsent::Unsent;

/// What a request is counted as that has no answer: its client left before there was one, or the service was stopped. No client
/// gets it; others that tell of such requests call them so, too.
pub(super) const CLIENT_LEFT: u16 = 499;

/// The statuses that are answered here; any other counts as the last one.
const STATUSES: [(u16, &str); 18] = [
    (200, "200"),
    (204, "204"),
    (304, "304"),
    (400, "400"),
    (404, "404"),
    (405, "405"),
    (408, "408"),
    (413, "413"),
    (414, "414"),
    (429, "429"),
    (431, "431"),
    (CLIENT_LEFT, "499"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
    (0, "other"),
];

/// Requests that name no operation: unknown routes, other methods, oversized heads.
const NO_OPERATION: &str = "none";

/// For so long after a list was turned away there is taken to be no room.
const CRAMPED: Duration = Duration::from_secs(5);

/// Counters of everything served. One for a process, made from the names of its operations: labels are bounded
/// by that list, whatever is asked for.
#[derive(Debug)]
pub struct Traffic {
    /// The last one is for requests that name no operation.
    operations: Vec<Operation>,
    pub(super) requests: AtomicUsize,
    /// Bodies that are waited for; their requests are not among those yet.
    pub(super) awaited: AtomicUsize,
    pub(super) connections: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
    cut_off: AtomicU64,
    overloaded: AtomicU64,
    limited: AtomicU64,
    /// Lists that were refused for want of room.
    cramped: Lately,
    recent: Recent,
    slow: SlowRequests,
    unsent: Unsent,
}

/// An answer that came to its end, or a request without one.
#[derive(Debug)]
pub(super) struct Ended<'a> {
    /// When that was.
    pub(super) now: Instant,
    /// Its operation's place in the list.
    pub(super) place: usize,
    pub(super) uri: &'a Uri,
    /// [`CLIENT_LEFT`] without an answer.
    pub(super) status: u16,
    pub(super) bytes: u64,
    /// From the request's head to the last byte.
    pub(super) whole: Duration,
    /// What of that the service took.
    pub(super) own: Duration,
    /// Whether its body was broken off, or never made.
    pub(super) aborted: bool,
}

/// What went through, in numbers, at a moment.
#[derive(Clone, Debug)]
pub struct TrafficFigures {
    /// Since when it is counted.
    pub age: Duration,
    /// Requests answered, and those whose clients left before that.
    pub answered: u64,
    /// Of these, with a status of 500 or above.
    pub failed: u64,
    /// Over the last minute.
    pub minute: Rate,
    /// Over the last five minutes.
    pub five_minutes: Rate,
    /// Requests being answered.
    pub underway: usize,
    /// Open connections.
    pub connections: usize,
    /// Operations that were asked for.
    pub operations: Vec<OperationFigures>,
    /// How many requests took [`SLOW`] or longer.
    pub slow: u64,
    /// The latest of them, newest first.
    pub slow_latest: Vec<SlowRequest>,
    /// The longest of them, longest first.
    pub slow_longest: Vec<SlowRequest>,
}

/// One operation, in numbers; times are seconds from a request's head to the last byte of its answer.
#[derive(Clone, Debug)]
pub struct OperationFigures {
    /// Its name.
    pub name: String,
    /// Requests answered, and those whose clients left before that.
    pub answered: u64,
    /// Of these, with a status of 500 or above.
    pub failed: u64,
    /// All times together.
    pub sum: f64,
    /// Half of the requests took no longer, estimated.
    pub median: f64,
    /// Ninety-nine in a hundred took no longer, estimated.
    pub p99: f64,
}

#[derive(Debug)]
struct Operation {
    name: String,
    statuses: [AtomicU64; STATUSES.len()],
    seconds: Histogram,
    slow: AtomicU64,
    bytes: AtomicU64,
    aborted: AtomicU64,
    rows: AtomicU64,
    units: AtomicU64,
    chunks: AtomicU64,
    gets: AtomicU64,
}

impl Operation {
    fn new(name: String) -> Self {
        Self {
            name,
            statuses: Default::default(),
            seconds: Histogram::default(),
            slow: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            units: AtomicU64::new(0),
            chunks: AtomicU64::new(0),
            gets: AtomicU64::new(0),
        }
    }

    fn counted(&self) -> Counted {
        let mut counted = Counted::default();
        for ((code, _), count) in STATUSES.iter().zip(&self.statuses) {
            let count = count.load(Ordering::Relaxed);
            counted.answered += count;
            counted.failed += if *code >= 500 { count } else { 0 };
        }
        counted
    }
}

impl Default for Traffic {
    fn default() -> Self {
        Self::new([])
    }
}

fn add(counter: &AtomicU64, count: u64) {
    if count > 0 {
        counter.fetch_add(count, Ordering::Relaxed);
    }
}

impl Traffic {
    /// Counters for operations with these names.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        let names = names.into_iter().chain([NO_OPERATION.to_owned()]);
        Self {
            operations: names.map(Operation::new).collect(),
            requests: AtomicUsize::new(0),
            awaited: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
            overloaded: AtomicU64::new(0),
            limited: AtomicU64::new(0),
            cramped: Lately::new(CRAMPED),
            recent: Recent::default(),
            slow: SlowRequests::default(),
            unsent: Unsent::new(usize::MAX),
        }
    }

    /// The same, with answers that are not sent yet counted there.
    #[must_use]
    pub fn with_unsent(self, unsent: &Unsent) -> Self {
        Self {
            unsent: unsent.clone(),
            ..self
        }
    }

    /// Where answers that are not sent yet are counted.
    pub(super) const fn unsent(&self) -> &Unsent {
        &self.unsent
    }

    fn operation(&self, place: usize) -> Option<&Operation> {
        self.operations.get(place).or(self.operations.last())
    }

    /// The name of an operation.
    pub(super) fn name(&self, place: usize) -> &str {
        self.operation(place)
            .map_or(NO_OPERATION, |operation| &operation.name)
    }

    /// Counts what an operation read from the store.
    pub fn visited(&self, place: usize, visits: Visits) {
        let Some(operation) = self.operation(place) else {
            return;
        };
        add(&operation.rows, visits.rows);
        add(&operation.units, visits.units);
        add(&operation.chunks, visits.chunks);
        add(&operation.gets, visits.gets);
    }

    /// Counts an answer that came to its end, or was broken off.
    pub(super) fn answered(&self, ended: &Ended<'_>) {
        let Some(operation) = self.operation(ended.place) else {
            return;
        };
        self.recent.note(ended.now, || self.counted());
        let known = STATUSES.iter().position(|(code, _)| *code == ended.status);
        if let Some(count) = operation.statuses.get(known.unwrap_or(STATUSES.len() - 1)) {
            add(count, 1);
        }
        add(&operation.bytes, ended.bytes);
        add(&operation.aborted, u64::from(ended.aborted));
        operation.seconds.observe(ended.whole);
        if ended.own >= SLOW {
            add(&operation.slow, 1);
            self.slow.remember(SlowRequest {
                operation: operation.name.clone(),
                target: shown_target(ended.uri),
                status: ended.status,
                bytes: ended.bytes,
                own: ended.own,
                whole: ended.whole,
                at: clock::wall(),
            });
        }
    }

    fn counted(&self) -> Counted {
        let mut sum = Counted::default();
        for counted in self.operations.iter().map(Operation::counted) {
            sum.answered += counted.answered;
            sum.failed += counted.failed;
        }
        sum
    }

    /// What went through so far and lately.
    #[must_use]
    pub fn figures(&self) -> TrafficFigures {
        let (now, counted) = (clock::now(), self.counted());
        let (slow_latest, slow_longest) = self.slow.show();
        let rate = |seconds| self.recent.rate(now, Duration::from_secs(seconds), counted);
        let asked = self.operations.iter().filter_map(|operation| {
            let Counted { answered, failed } = operation.counted();
            (answered > 0).then(|| OperationFigures {
                name: operation.name.clone(),
                answered,
                failed,
                sum: operation.seconds.sum(),
                median: operation.seconds.quantile(0.5).unwrap_or_default(),
                p99: operation.seconds.quantile(0.99).unwrap_or_default(),
            })
        });
        let slow = self
            .operations
            .iter()
            .map(|operation| operation.slow.load(Ordering::Relaxed));
        TrafficFigures {
            age: self.recent.age(now),
            answered: counted.answered,
            failed: counted.failed,
            minute: rate(60),
            five_minutes: rate(300),
            underway: self.requests.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            operations: asked.collect(),
            slow: slow.sum(),
            slow_latest,
            slow_longest,
        }
    }

    /// Whether so many requests are being answered.
    pub(super) fn is_crowded(&self, most: usize) -> bool {
        self.requests.load(Ordering::Relaxed) >= most
    }

    /// Counts a connection that is served.
    pub(super) fn connection_accepted(&self) {
        add(&self.accepted, 1);
    }

    /// Counts a connection turned away at the cap.
    pub(super) fn connection_refused(&self) {
        add(&self.refused, 1);
    }

    /// Counts a connection whose client took or said nothing for too long.
    pub(super) fn connection_cut_off(&self) {
        add(&self.cut_off, 1);
    }

    /// Counts a request turned away at a cap.
    pub(super) fn request_refused(&self) {
        add(&self.overloaded, 1);
    }

    /// Counts a list turned away since answers that their clients do not take fill the room, all of it or a connection's part.
    pub fn list_refused(&self) {
        self.request_refused();
        if self.unsent.is_full() {
            self.cramped.note();
        }
    }

    /// Whether a list was turned away so a moment ago, or a connection that holds so many bytes is what others would be turned away
    /// for: who takes nothing has less time then.
    pub(super) fn is_cramped_by(&self, connection: usize) -> bool {
        self.cramped.happened() || self.unsent.is_spent_by(connection)
    }

    /// Counts a request of a client that asks too often.
    pub(super) fn request_limited(&self) {
        add(&self.limited, 1);
    }

    /// Tells everything.
    pub fn measure(&self, page: &mut Page) {
        for operation in &self.operations {
            let name = [("operation", operation.name.as_str())];
            for ((_, status), count) in STATUSES.iter().zip(&operation.statuses) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let [operation] = name;
                    page.counter(
                        "quarry_http_requests",
                        "Requests answered, and with status 499 those whose client left before that.",
                        &[operation, ("status", status)],
                        count,
                    );
                }
            }
            page.histogram(
                "quarry_http_request_seconds",
                "From a request's head to the last byte of its answer.",
                &name,
                &operation.seconds,
            );
            for (family, help, count) in [
                (
                    "quarry_http_response_bytes",
                    "Bytes of bodies, as sent.",
                    &operation.bytes,
                ),
                (
                    "quarry_http_aborted",
                    "Bodies broken off, or never made as the client left.",
                    &operation.aborted,
                ),
                (
                    "quarry_http_slow_requests",
                    "Requests that took the service a quarter of a second or longer.",
                    &operation.slow,
                ),
            ] {
                page.counter(family, help, &name, count.load(Ordering::Relaxed));
            }
            for (kind, count) in [
                ("rows", &operation.rows),
                ("units", &operation.units),
                ("chunks", &operation.chunks),
                ("gets", &operation.gets),
            ] {
                let [operation] = name;
                page.counter(
                    "quarry_store_visits",
                    "Read for answers: rows decoded, units and runs unpacked, chunks of postings, rows got by key.",
                    &[operation, ("kind", kind)],
                    count.load(Ordering::Relaxed),
                );
            }
        }
        for (family, help, count) in [
            (
                "quarry_http_requests_in_flight",
                "Requests being answered.",
                &self.requests,
            ),
            (
                "quarry_http_uploads_awaited",
                "Requests whose body is waited for.",
                &self.awaited,
            ),
            ("quarry_http_connections", "Open connections.", &self.connections),
        ] {
            page.gauge(family, help, &[], count.load(Ordering::Relaxed) as f64);
        }
        for (family, help, count) in [
            (
                "quarry_http_connections_accepted",
                "Connections served.",
                &self.accepted,
            ),
            (
                "quarry_http_connections_refused",
                "Connections turned away at the cap.",
                &self.refused,
            ),
            (
                "quarry_http_connections_cut_off",
                "Connections whose client took nothing of its answer.",
                &self.cut_off,
            ),
            (
                "quarry_http_requests_refused",
                "Requests turned away at a cap.",
                &self.overloaded,
            ),
            (
                "quarry_http_requests_limited",
                "Requests of clients that ask too often.",
                &self.limited,
            ),
        ] {
            page.counter(family, help, &[], count.load(Ordering::Relaxed));
        }
    }
}
