//! What went through: requests by operation and status, connections, and what is under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hyper::StatusCode;

use crate::metrics::visits::Visits;
use crate::metrics::{Histogram, Page};

/// The statuses that are answered here; any other counts as the last one.
const STATUSES: [(u16, &str); 15] = [
    (200, "200"),
    (204, "204"),
    (304, "304"),
    (400, "400"),
    (404, "404"),
    (405, "405"),
    (414, "414"),
    (429, "429"),
    (431, "431"),
    (500, "500"),
    (501, "501"),
    (502, "502"),
    (503, "503"),
    (504, "504"),
    (0, "other"),
];

/// Requests that name no operation: unknown routes, other methods, oversized heads.
const NO_OPERATION: &str = "none";

/// Counters of everything served. One for a process, made from the names of its operations: labels are bounded
/// by that list, whatever is asked for.
#[derive(Debug)]
pub struct Traffic {
    /// The last one is for requests that name no operation.
    operations: Vec<Operation>,
    requests: AtomicUsize,
    connections: AtomicUsize,
    accepted: AtomicU64,
    refused: AtomicU64,
    cut_off: AtomicU64,
    overloaded: AtomicU64,
    limited: AtomicU64,
}

#[derive(Debug)]
struct Operation {
    name: String,
    statuses: [AtomicU64; STATUSES.len()],
    seconds: Histogram,
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
            bytes: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            units: AtomicU64::new(0),
            chunks: AtomicU64::new(0),
            gets: AtomicU64::new(0),
        }
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
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            cut_off: AtomicU64::new(0),
            overloaded: AtomicU64::new(0),
            limited: AtomicU64::new(0),
        }
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

    /// Counts an answer that came to its end, or was `aborted`.
    pub(super) fn answered(
        &self,
        place: usize,
        status: StatusCode,
        bytes: u64,
        duration: Duration,
        aborted: bool,
    ) {
        let Some(operation) = self.operation(place) else {
            return;
        };
        let known = STATUSES.iter().position(|(code, _)| *code == status.as_u16());
        if let Some(count) = operation.statuses.get(known.unwrap_or(STATUSES.len() - 1)) {
            add(count, 1);
        }
        add(&operation.bytes, bytes);
        add(&operation.aborted, u64::from(aborted));
        operation.seconds.observe(duration);
    }

    /// Counts a connection turned away at the cap.
    pub(super) fn connection_refused(&self) {
        add(&self.refused, 1);
    }

    /// Counts a connection whose client took or said nothing for too long.
    pub(super) fn connection_cut_off(&self) {
        add(&self.cut_off, 1);
    }

    /// Counts a request turned away at the cap.
    pub(super) fn request_refused(&self) {
        add(&self.overloaded, 1);
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
                        "Requests answered.",
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
                ("quarry_http_aborted", "Bodies broken off.", &operation.aborted),
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
                "Requests turned away at the cap.",
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

/// One thing under way, until it is dropped.
#[derive(Debug)]
pub(super) struct Underway {
    traffic: Arc<Traffic>,
    gauge: fn(&Traffic) -> &AtomicUsize,
}

impl Underway {
    fn begin(traffic: &Arc<Traffic>, gauge: fn(&Traffic) -> &AtomicUsize) -> (Self, usize) {
        let before = gauge(traffic).fetch_add(1, Ordering::Relaxed);
        let traffic = Arc::clone(traffic);
        (Self { traffic, gauge }, before)
    }

    /// A request, and how many others there are.
    pub(super) fn request(traffic: &Arc<Traffic>) -> (Self, usize) {
        Self::begin(traffic, |traffic| &traffic.requests)
    }

    /// A connection.
    pub(super) fn connection(traffic: &Arc<Traffic>) -> Self {
        add(&traffic.accepted, 1);
        Self::begin(traffic, |traffic| &traffic.connections).0
    }

    /// Where it is counted.
    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        (self.gauge)(&self.traffic).fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where a request notes which operation it is, read when its answer has ended.
#[derive(Clone, Debug)]
pub(super) struct OperationSlot(Arc<AtomicUsize>);

impl Default for OperationSlot {
    fn default() -> Self {
        Self(Arc::new(AtomicUsize::new(usize::MAX)))
    }
}

impl OperationSlot {
    pub(super) fn set(&self, place: usize) {
        self.0.store(place, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}
