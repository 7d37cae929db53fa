//! What the node has done for us, in numbers.

use super::error::ErrorClass;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::metrics::Histogram;

/// Counters since start, and two gauges; read them at any time.
#[derive(Debug, Default)]
pub struct NodeStats {
    /// Requests sent, repeated ones included.
    pub requests: AtomicU64,
    /// Requests that were sent again after a failure.
    pub retries: AtomicU64,
    /// Answers received.
    pub answers: AtomicU64,
    /// Bytes of JSON received.
    pub bytes: AtomicU64,
    /// Sum of the times to an answer, in microseconds.
    pub latency_us: AtomicU64,
    /// The times to an answer.
    pub latencies: Histogram,
    /// The longest time to an answer, in microseconds.
    pub latency_us_max: AtomicU64,
    /// How often the concurrency limit was cut.
    pub cuts: AtomicU64,
    /// Connections made anew (WebSocket and IPC).
    pub reconnects: AtomicU64,
    /// Gauge: requests in flight.
    pub in_flight: AtomicU64,
    /// Gauge: requests that may be in flight.
    pub concurrency: AtomicU64,
    errors: [AtomicU64; ErrorClass::ALL.len()],
}

impl NodeStats {
    /// How many failures of this class there were.
    #[must_use]
    pub fn errors(&self, class: ErrorClass) -> u64 {
        self.errors
            .get(class as usize)
            .map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Mean time to an answer.
    #[must_use]
    pub fn latency_mean(&self) -> Duration {
        let answers = self.answers.load(Ordering::Relaxed).max(1);
        Duration::from_micros(self.latency_us.load(Ordering::Relaxed) / answers)
    }

    pub(super) fn failed(&self, class: ErrorClass) {
        if let Some(count) = self.errors.get(class as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn answered(&self, latency: Duration, bytes: usize) {
        self.latencies.observe(latency);
        let latency = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.latency_us.fetch_add(latency, Ordering::Relaxed);
        self.latency_us_max.fetch_max(latency, Ordering::Relaxed);
    }
}
