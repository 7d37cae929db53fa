//! What a piece of work read from the store, counted on its own thread.
//!
//! Whoever runs the work takes the counts before and after it; what lies between needs no handle to carry, so
//! every operation is counted alike and none has to remember to. A count is one addition to a thread's own cell.

use std::cell::Cell;

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    /// Rows decoded out of units and runs.
    pub rows: u64,
    /// Units and runs unpacked.
    pub units: u64,
    /// Chunks of postings decoded.
    pub chunks: u64,
    /// Rows got by key.
    pub gets: u64,
}

thread_local! {
    static ROWS: Cell<u64> = const { Cell::new(0) };
    static UNITS: Cell<u64> = const { Cell::new(0) };
    static CHUNKS: Cell<u64> = const { Cell::new(0) };
    static GETS: Cell<u64> = const { Cell::new(0) };
}

/// Counts a row.
#[inline]
pub fn row() {
    ROWS.set(ROWS.get().wrapping_add(1));
}

/// Counts a unit or a run.
#[inline]
pub fn unit() {
    UNITS.set(UNITS.get().wrapping_add(1));
}

/// Counts a chunk of postings.
#[inline]
pub fn chunk() {
    CHUNKS.set(CHUNKS.get().wrapping_add(1));
}

/// Counts a row got by key.
#[inline]
pub fn get() {
    GETS.set(GETS.get().wrapping_add(1));
}

/// What this thread read since the last call.
#[must_use]
pub fn take() -> Visits {
    Visits {
        rows: ROWS.take(),
        units: UNITS.take(),
        chunks: CHUNKS.take(),
        gets: GETS.take(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_taken_once() {
        let _ = take();
        row();
        row();
        unit();
        chunk();
        get();
        let expected = Visits {
            rows: 2,
            units: 1,
            chunks: 1,
            gets: 1,
        };
        assert_eq!(take(), expected);
        assert_eq!(take(), Visits::default());
    }
}
