//! How much memory backfill has, and what it is for.

use super::ByteSize;
use crate::machine;

/// What backfill takes unless told: this part of the memory there is, in whole steps between the least and the most.
const PART: u64 = 8;
const STEP: u64 = 64 << 20;
const LEAST: u64 = 256 << 20;
const MOST: u64 = 4 << 30;
/// Where the system does not tell how much there is.
const UNTOLD: u64 = 1 << 30;

/// Memory of backfill for each chain, unless somebody says how much. With four times as much a chain of 10 M logs is filled in two thirds of the
/// time (`docs/decisions/0057-memory-of-the-machine.md`), and a machine that holds an archive node has it.
pub(super) fn backfill_memory() -> ByteSize {
    part_of(machine::memory_allowed())
}

fn part_of(memory: Option<u64>) -> ByteSize {
    let part = memory.map_or(UNTOLD, |bytes| bytes / PART / STEP * STEP);
    let part = part.clamp(LEAST, MOST);
    ByteSize(usize::try_from(part).unwrap_or(usize::MAX))
}

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

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_part_of_the_memory_is_taken_within_bounds() {
        for (memory, part) in [
            (None, "1GiB"),
            (Some(GIB / 2), "256MiB"),
            (Some(8 * GIB), "1GiB"),
            // What a machine of 16 GiB tells of itself.
            (Some(16 * GIB - (300 << 20)), "1984MiB"),
            (Some(512 * GIB), "4GiB"),
        ] {
            assert_eq!(part_of(memory).to_string(), part, "{memory:?}");
        }
    }
}
