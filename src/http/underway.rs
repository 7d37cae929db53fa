//! What is under way, counted while it is, and which operation a request is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::traffic::Traffic;

/// How many of a kind are under way.
type Gauge = fn(&Traffic) -> &AtomicUsize;

/// One thing under way, counted until it is dropped.
#[derive(Debug)]
pub(super) struct Underway {
    traffic: Arc<Traffic>,
    /// Where it is counted; nowhere yet.
    gauge: Option<Gauge>,
}

impl Underway {
    /// Something that is not counted yet.
    pub(super) fn uncounted(traffic: &Arc<Traffic>) -> Self {
        Self {
            traffic: Arc::clone(traffic),
            gauge: None,
        }
    }

    /// A connection.
    pub(super) fn connection(traffic: &Arc<Traffic>) -> Self {
        traffic.connection_accepted();
        let gauge: Gauge = |traffic| &traffic.connections;
        gauge(traffic).fetch_add(1, Ordering::Relaxed);
        Self {
            traffic: Arc::clone(traffic),
            gauge: Some(gauge),
        }
    }

    /// Takes one of `most` places for requests that are answered at once; whether there was one. Asked once of a request.
    pub(super) fn take_place(&mut self, most: usize) -> bool {
        let gauge: Gauge = |traffic| &traffic.requests;
        let requests = gauge(&self.traffic);
        let has_place = requests.fetch_add(1, Ordering::Relaxed) < most;
        if has_place {
            self.gauge = Some(gauge);
        } else {
            requests.fetch_sub(1, Ordering::Relaxed);
        }
        has_place
    }

    /// Where it is counted.
    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(gauge) = self.gauge {
            gauge(&self.traffic).fetch_sub(1, Ordering::Relaxed);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_so_many_places_and_no_more() {
        let traffic = Arc::new(Traffic::default());
        let mut requests: Vec<Underway> = (0..3).map(|_| Underway::uncounted(&traffic)).collect();
        let taken: Vec<bool> = requests.iter_mut().map(|one| one.take_place(2)).collect();
        assert_eq!(taken, [true, true, false]);
        assert!(traffic.is_crowded(2) && !traffic.is_crowded(3));
        // One that got none gives none back.
        requests.pop();
        assert!(traffic.is_crowded(2));
        requests.pop();
        assert!(!traffic.is_crowded(2) && traffic.is_crowded(1));
    }
}
