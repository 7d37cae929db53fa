//! Ordinals of transactions that were asked for by hash, kept by hash.
//!
//! Whoever waits for a transaction asks for its status again and again, and RocksDB finds the ordinal of a hash by a filter, two
//! parts of an index and a block, each sought in its cache: a third of all that a look-up takes beside the kernel. A kept ordinal is one cache line
//! of a table of a fixed size. It is a hint and no more: whether the transaction is there has the array of hashes said in the view that
//! asks, so what reorgs leave behind leads nowhere.
//!
//! Why so: `docs/decisions/0061-kept-ordinals.md`.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::B256;

/// Places of a bucket, which is a cache line.
const PLACES: usize = 8;
/// A place holds an ordinal and one more in its low bits (0 for none), a mark of the hash above them.
const ORDINAL_BITS: u32 = 40;
const ORDINAL_MASK: u64 = (1 << ORDINAL_BITS) - 1;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket([AtomicU64; PLACES]);

/// A table of a fixed size, shared by all who look up and put in.
pub(super) struct KeptOrdinals(Box<[Bucket]>);

impl fmt::Debug for KeptOrdinals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptOrdinals").field(&self.0.len()).finish()
    }
}

/// Eight bytes of a hash from a place on, as a number.
fn word(hash: &B256, from: usize) -> u64 {
    let bytes = hash.get(from..).and_then(<[u8]>::first_chunk);
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// The mark of a hash, where a place has it.
fn mark(hash: &B256) -> u64 {
    word(hash, 16) & !ORDINAL_MASK
}

impl KeptOrdinals {
    /// A table of about so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let buckets = bytes / size_of::<Bucket>();
        Self((0..buckets).map(|_| Bucket::default()).collect())
    }

    fn bucket(&self, hash: &B256) -> Option<&Bucket> {
        self.0.get(word(hash, 8) as usize % self.0.len().max(1))
    }

    /// Ordinals that may be the transaction's: what was put in last for hashes with its mark.
    #[inline]
    pub(super) fn hints(&self, hash: &B256) -> impl Iterator<Item = u64> {
        let mark = mark(hash);
        let places = self.bucket(hash).into_iter().flat_map(|bucket| &bucket.0);
        let words = places.map(|place| place.load(Ordering::Relaxed));
        words
            .filter(move |word| word & !ORDINAL_MASK == mark)
            .filter_map(|word| (word & ORDINAL_MASK).checked_sub(1))
    }

    /// Keeps where a transaction was found, in the place of another one where its bucket is full.
    pub(super) fn keep(&self, hash: &B256, ordinal: u64) {
        let Some(bucket) = self.bucket(hash).filter(|_| ordinal < ORDINAL_MASK) else {
            return;
        };
        let mark = mark(hash);
        let has = |what: &dyn Fn(u64) -> bool| {
            let of = |place: &&AtomicU64| what(place.load(Ordering::Relaxed));
            bucket.0.iter().find(of)
        };
        let place = has(&|word| word != 0 && word & !ORDINAL_MASK == mark)
            .or_else(|| has(&|word| word == 0))
            .or_else(|| bucket.0.get(ordinal as usize % PLACES));
        if let Some(place) = place {
            place.store(mark | (ordinal + 1), Ordering::Relaxed);
        }
    }

    /// Bytes that it takes, full or not.
    pub(super) const fn bytes(&self) -> u64 {
        (self.0.len() * size_of::<Bucket>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that look like a hash's, by SplitMix64.
    fn hash(number: u64) -> B256 {
        let mut state = number;
        let mut bytes = [0; 32];
        for word in bytes.chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word.copy_from_slice(&(mixed ^ mixed >> 31).to_le_bytes());
        }
        bytes.into()
    }

    #[test]
    fn what_was_kept_is_found_and_nothing_else() {
        let kept = KeptOrdinals::new(64 << 10);
        assert_eq!(kept.bytes(), 64 << 10);
        let all = 0..4_000;
        for ordinal in all.clone() {
            kept.keep(&hash(ordinal), ordinal);
        }
        let found = all.filter(|&ordinal| kept.hints(&hash(ordinal)).any(|hint| hint == ordinal));
        // Half as many as there are places: next to none lost its own.
        assert!(found.count() > 3_900);
        let strangers = (1_000_000..1_100_000).map(|number| kept.hints(&hash(number)).count());
        assert!(strangers.sum::<usize>() < 10);
    }

    #[test]
    fn the_place_of_a_hash_is_its_own_and_the_last_word_counts() {
        let kept = KeptOrdinals::new(64);
        kept.keep(&hash(1), 0);
        assert_eq!(kept.hints(&hash(1)).collect::<Vec<_>>(), [0]);
        kept.keep(&hash(1), 7);
        assert_eq!(kept.hints(&hash(1)).collect::<Vec<_>>(), [7]);
        // Others take their places of a full bucket.
        for number in 2..100 {
            kept.keep(&hash(number), number);
            assert!(kept.hints(&hash(number)).any(|hint| hint == number));
        }
        assert!(
            (1..100)
                .filter(|&number| kept.hints(&hash(number)).count() > 0)
                .count()
                <= PLACES
        );
    }

    #[test]
    fn no_room_and_ordinals_beyond_all_are_kept_nowhere() {
        let none = KeptOrdinals::new(63);
        none.keep(&hash(1), 1);
        assert_eq!(none.hints(&hash(1)).count(), 0);
        let kept = KeptOrdinals::new(64);
        kept.keep(&hash(1), ORDINAL_MASK);
        kept.keep(&hash(1), u64::MAX);
        assert_eq!(kept.hints(&hash(1)).count(), 0);
        kept.keep(&hash(1), ORDINAL_MASK - 1);
        assert_eq!(kept.hints(&hash(1)).collect::<Vec<_>>(), [ORDINAL_MASK - 1]);
    }
}
