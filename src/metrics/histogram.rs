//! Durations by how long they were.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets, microseconds; one more takes what is longer.
const BOUNDS_US: [u64; 16] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000, 60_000_000,
];

/// Counts of durations in buckets from 100 microseconds to a minute. Cheap to add to: two atomic additions.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BOUNDS_US.len() + 1],
    sum_ns: AtomicU64,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&self, duration: Duration) {
        let us = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS_US.partition_point(|&bound| bound < us);
        if let Some(bucket) = self.buckets.get(place) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.sum_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Upper bounds in seconds and how many fell between each and the one before; the last is unbounded.
    pub(super) fn buckets(&self) -> Vec<(f64, u64)> {
        let bounds = BOUNDS_US.iter().map(|&us| us as f64 / 1e6).chain([f64::MAX]);
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed));
        bounds.zip(counts).collect()
    }

    /// The duration, seconds, below which this part of all lie (0 to 1), estimated as Prometheus does: evenly within
    /// a bucket, and at its lower bound in the last one. `None` where nothing was counted.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let buckets = self.buckets();
        let all: u64 = buckets.iter().map(|(_, count)| count).sum();
        let rank = part * all as f64;
        let (mut below, mut lower) = (0.0, 0.0);
        for (upper, count) in buckets.into_iter().filter(|_| all > 0) {
            let count = count as f64;
            if below + count >= rank && count > 0.0 {
                let share = (rank - below) / count;
                return Some(if upper == f64::MAX {
                    lower
                } else {
                    lower + share * (upper - lower)
                });
            }
            (below, lower) = (below + count, upper);
        }
        None
    }

    /// The sum of all, seconds.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sum_ns.load(Ordering::Relaxed) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_belong_to_their_bucket() {
        let histogram = Histogram::default();
        for us in [0, 100, 101, 250, 60_000_000, 60_000_001] {
            histogram.observe(Duration::from_micros(us));
        }
        let counts: Vec<u64> = histogram.buckets().iter().map(|(_, count)| *count).collect();
        assert_eq!(counts.first_chunk(), Some(&[2, 2, 0]));
        assert_eq!(counts.last_chunk(), Some(&[1, 1]));
        assert!((histogram.sum() - 120.000_452).abs() < 1e-9);
    }

    #[test]
    fn quantiles_lie_in_their_bucket() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        for _ in 0..99 {
            histogram.observe(Duration::from_micros(700));
        }
        histogram.observe(Duration::from_millis(80));
        let near = |part: f64, expected: f64| {
            let found = histogram.quantile(part).unwrap();
            assert!((found - expected).abs() < 1e-6, "{part}: {found}");
        };
        near(0.5, 0.000_752_525);
        near(0.99, 0.001);
        near(1.0, 0.1);
        histogram.observe(Duration::from_secs(3600));
        near(1.0, 60.0);
    }
}
