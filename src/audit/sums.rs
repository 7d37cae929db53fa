//! Sums of fingerprints by block.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{BlockRange, U256};

/// The largest prime below 2^64. Sums are modulo a prime, so that every bit of an amount of 256 bits counts: modulo 2^64
/// those above the lowest 64 would not.
const PRIME: u64 = u64::MAX - 58;

/// A sum for each block of a range, 8 bytes a block, modulo [`PRIME`]; what is added in one order and taken away in
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
            add(sum, fingerprint % PRIME);
        }
    }

    pub(super) fn take(&self, block: u64, fingerprint: u64) {
        if let Some(sum) = self.of(block) {
            add(sum, PRIME - fingerprint % PRIME);
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

fn add(sum: &AtomicU64, by: u64) {
    let added = |sum: u64| ((u128::from(sum) + u128::from(by)) % u128::from(PRIME)) as u64;
    let _ = sum.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |sum| Some(added(sum)));
}

/// An amount as sums count it: sums of amounts that do not wrap are the same however they are cut.
pub(super) fn residue(amount: U256) -> u64 {
    let limbs = amount.as_limbs().iter().rev();
    limbs.fold(0, |rest, &limb| {
        (((u128::from(rest) << 64) | u128::from(limb)) % u128::from(PRIME)) as u64
    })
}

/// A [`residue`] times a weight of its own, which is not zero.
pub(super) fn times(residue: u64, weight: u64) -> u64 {
    let weight = weight % (PRIME - 1) + 1;
    (u128::from(residue) * u128::from(weight) % u128::from(PRIME)) as u64
}

/// An amount as sums count it, times a weight of its own that is not zero.
pub(super) fn weighed(amount: U256, weight: u64) -> u64 {
    times(residue(amount), weight)
}

/// A fingerprint of anything; the same in every process of the same build.
pub(super) fn fingerprint(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_an_amount_counts_and_sums_do_not_depend_on_their_cut() {
        let sums = Sums::new(BlockRange::new(5, 6).unwrap());
        let random = fastrand::u64(..);
        for bit in 0..256 {
            let amount = U256::ONE << bit;
            assert_ne!(weighed(amount, random), 0, "bit {bit}");
            assert_eq!(
                U256::from(residue(amount)),
                amount % U256::from(PRIME),
                "bit {bit}"
            );
        }
        let (a, b) = (U256::MAX >> 1, U256::MAX >> 2);
        sums.add(5, weighed(a, 7));
        sums.add(5, weighed(b, 7));
        sums.add(5, u64::MAX);
        assert_eq!(sums.unbalanced(), [5]);
        sums.take(5, u64::MAX);
        sums.take(5, weighed(a + b, 7));
        assert_eq!(sums.unbalanced(), [0u64; 0]);
    }
}
