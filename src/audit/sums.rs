//! Sums of fingerprints by block.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::BlockRange;

/// A sum for each block of a range, 8 bytes a block. Sums wrap; what is added in one order and taken away in
/// another leaves zero.
pub(super) struct Sums {
    range: BlockRange,
    sums: Vec<AtomicU64>,
}

impl Sums {
    pub(super) fn new(range: BlockRange) -> Self {
        let blocks = range.last() - range.first() + 1;
        Self {
            range,
            sums: (0..blocks).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn of(&self, block: u64) -> Option<&AtomicU64> {
        let place = block.checked_sub(self.range.first())?;
        self.sums.get(usize::try_from(place).ok()?)
    }

    pub(super) fn add(&self, block: u64, fingerprint: u64) {
        if let Some(sum) = self.of(block) {
            sum.fetch_add(fingerprint, Ordering::Relaxed);
        }
    }

    pub(super) fn take(&self, block: u64, fingerprint: u64) {
        if let Some(sum) = self.of(block) {
            sum.fetch_sub(fingerprint, Ordering::Relaxed);
        }
    }

    /// Blocks whose sum is not zero.
    pub(super) fn unbalanced(&self) -> Vec<u64> {
        let sums = (self.range.first()..).zip(&self.sums);
        sums.filter(|(_, sum)| sum.load(Ordering::Relaxed) != 0)
            .map(|(block, _)| block)
            .collect()
    }
}

/// A fingerprint of anything; the same in every process of the same build.
pub(super) fn fingerprint(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}
