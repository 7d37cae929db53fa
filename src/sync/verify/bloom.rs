//! Bloom filters over logs, with the bits of addresses and topics remembered.
//!
//! A block names the same contracts and topics over and over: each is hashed once and its three bits are kept
//! in a small direct-mapped table. A clash only costs a second hash.

use alloy_primitives::keccak256;

use crate::model::{Bloom, Log};

/// Entries of a table: with about 40 bytes each, both tables stay in a second-level cache.
const SLOTS: usize = 1 << SLOT_BITS;
const SLOT_BITS: u32 = 12;

/// The three bits of a value, as positions 0 to 2047.
type Bits = [u16; 3];

/// Remembered bits of addresses and of topics.
#[derive(Debug, Default)]
pub(super) struct BloomCache {
    addresses: Table<20>,
    topics: Table<32>,
}

impl BloomCache {
    /// Sets the bits of a log in `bloom`.
    pub(super) fn accrue(&mut self, bloom: &mut Bloom, log: &Log) {
        set(bloom, self.addresses.bits(&log.address.0.0));
        for topic in log.topics.as_slice() {
            set(bloom, self.topics.bits(&topic.0));
        }
    }
}

/// A direct-mapped table from values of `N` bytes to their bits.
#[derive(Debug)]
struct Table<const N: usize> {
    slots: Vec<Option<([u8; N], Bits)>>,
}

impl<const N: usize> Default for Table<N> {
    fn default() -> Self {
        Self {
            slots: vec![None; SLOTS],
        }
    }
}

impl<const N: usize> Table<N> {
    fn bits(&mut self, value: &[u8; N]) -> Bits {
        match self.slots.get_mut(slot(value)) {
            Some(Some((held, bits))) if held == value => *bits,
            Some(entry) => entry.insert((*value, hashed_bits(value))).1,
            None => hashed_bits(value),
        }
    }
}

/// The place of a value. Both ends of it count: small numbers differ in their last bytes only, token ids and
/// shifted words in their first.
fn slot(value: &[u8]) -> usize {
    let first = value.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let last = value.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mixed = (first ^ last.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - SLOT_BITS)) as usize
}

/// Yellow Paper 4.3.1: the low eleven bits of each of the first three pairs of bytes of the hash.
fn hashed_bits(value: &[u8]) -> Bits {
    let [a, b, c, d, e, f, ..] = keccak256(value).0;
    [[a, b], [c, d], [e, f]].map(|pair| u16::from_be_bytes(pair) & 0x7ff)
}

fn set(bloom: &mut Bloom, bits: Bits) {
    let bytes = &mut bloom.0.0;
    for bit in bits {
        // Bit 0 is the lowest bit of the last byte.
        if let Some(byte) = bytes.get_mut(255 - usize::from(bit >> 3)) {
            *byte |= 1 << (bit & 7);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Address, B256, Topics};

    proptest! {
        #[test]
        fn blooms_are_those_of_alloy_also_when_values_clash(
            seeds in proptest::collection::vec((any::<u8>(), any::<u8>()), 0..200),
        ) {
            let (mut cache, mut ours, mut theirs) = (BloomCache::default(), Bloom::ZERO, Bloom::ZERO);
            for (seed, variant) in seeds {
                // The middle bytes take no part in the slot, so that variants of a seed clash.
                let mut address = Address::repeat_byte(seed);
                address.0[10] = variant;
                let mut topic = B256::repeat_byte(seed);
                topic.0[16] = variant;
                let topics = Topics::new(&[topic, B256::with_last_byte(variant)]).unwrap();
                cache.accrue(&mut ours, &Log { address, topics, ..Log::default() });
                theirs.accrue_raw_log(address, topics.as_slice());
            }
            prop_assert_eq!(ours, theirs);
        }
    }
}
