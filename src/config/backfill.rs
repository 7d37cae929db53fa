//! What the memory of backfill is for.

use super::ByteSize;

/// How a chain's memory is shared out: the parts of `--backfill-memory`, bytes.
#[derive(Clone, Copy, Debug)]
pub struct BackfillMemory {
    /// All memtables together.
    pub memtables: usize,
    /// A batch; its rendering takes up to as much again, and the next one is made meanwhile.
    pub batch: usize,
    /// Answers of the node in flight, as text; parsed they take about as much again.
    pub in_flight: usize,
}

impl BackfillMemory {
    /// The parts of so much.
    #[must_use]
    pub const fn of(all: ByteSize) -> Self {
        Self {
            memtables: all.0 / 8,
            // Every batch looks up and rewrites the open pieces and chunks of whatever it touches: the fewer the better
            // (docs/decisions/0057-memory-of-the-machine.md).
            batch: all.0 / 6,
            in_flight: all.0 / 10,
        }
    }

    /// Blocks that are fetched ahead of the one that is derived, where so many requests may be in flight.
    #[must_use]
    pub fn window(&self, requests_max: usize) -> usize {
        // Bundles wait parsed until their turn comes; a big one is some megabytes.
        (self.in_flight >> 21).clamp(1, requests_max.max(1))
    }
}
