//! Bloom filters over logs, with the bits of addresses and topics remembered.
//!
//! A block names the same contracts and topics over and over: each is hashed once and its three bits are kept
//! in a small direct-mapped table. A clash only costs a second hash. What a block names for the first time is
//! hashed at once.

use crate::model::{B256, Bloom, Log, Receipt};
use crate::sync::keccak::keccak256_each;

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
    bits: Vec<Bits>,
    hashes: Vec<B256>,
}

impl BloomCache {
    /// The bloom filters of receipts, one for each in order.
    pub(super) fn blooms<'a>(&'a mut self, receipts: &'a [Receipt]) -> impl Iterator<Item = Bloom> + 'a {
        self.look_up(receipts);
        let mut bits = self.bits.iter();
        receipts.iter().map(move |receipt| {
            let values: usize = receipt.logs.iter().map(|log| 1 + log.topics.len()).sum();
            let mut bloom = Bloom::ZERO;
            bits.by_ref().take(values).for_each(|bits| set(&mut bloom, *bits));
            bloom
        })
    }

    /// Finds the bits of all addresses and topics, in order.
    fn look_up(&mut self, receipts: &[Receipt]) {
        self.bits.clear();
        let (mut missing, mut places) = (Vec::<&[u8]>::new(), Vec::new());
        let mut note = |bits: &mut Vec<Bits>, found: Option<Bits>, value| {
            if found.is_none() {
                missing.push(value);
                places.push(bits.len());
            }
            bits.push(found.unwrap_or_default());
        };
        let logs = receipts.iter().flat_map(|receipt| &receipt.logs);
        for Log { address, topics, .. } in logs {
            note(
                &mut self.bits,
                self.addresses.get(&address.0.0),
                address.as_slice(),
            );
            for topic in topics.as_slice() {
                note(&mut self.bits, self.topics.get(&topic.0), topic.as_slice());
            }
        }
        keccak256_each(&missing, &mut self.hashes);
        for ((value, place), hash) in missing.iter().zip(places).zip(&self.hashes) {
            let bits = bits_of_hash(hash);
            if let Some(unknown) = self.bits.get_mut(place) {
                *unknown = bits;
            }
            if let Ok(address) = <&[u8; 20]>::try_from(*value) {
                self.addresses.put(address, bits);
            } else if let Ok(topic) = <&[u8; 32]>::try_from(*value) {
                self.topics.put(topic, bits);
            }
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
    fn get(&self, value: &[u8; N]) -> Option<Bits> {
        let entry = self.slots.get(slot(value))?.as_ref();
        entry.filter(|(held, _)| held == value).map(|(_, bits)| *bits)
    }

    fn put(&mut self, value: &[u8; N], bits: Bits) {
        if let Some(entry) = self.slots.get_mut(slot(value)) {
            *entry = Some((*value, bits));
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
fn bits_of_hash(hash: &B256) -> Bits {
    let [a, b, c, d, e, f, ..] = hash.0;
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
    use crate::model::{Address, Topics};

    proptest! {
        #[test]
        fn blooms_are_those_of_alloy_also_when_values_clash(
            blocks in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec((any::<u8>(), any::<u8>()), 0..9), 0..20),
                1..5,
            ),
        ) {
            let mut cache = BloomCache::default();
            for block in blocks {
                let receipts: Vec<Receipt> = block.iter().map(|logs| {
                    let logs = logs.iter().map(|&(seed, variant)| {
                        // The middle bytes take no part in the slot, so that variants of a seed clash.
                        let mut address = Address::repeat_byte(seed);
                        address.0[10] = variant;
                        let mut topic = B256::repeat_byte(seed);
                        topic.0[16] = variant;
                        let topics = [topic, B256::with_last_byte(variant)];
                        let topics = Topics::new(&topics[..usize::from(variant % 3)]).unwrap();
                        Log { address, topics, ..Log::default() }
                    });
                    Receipt { logs: logs.collect(), ..Receipt::default() }
                }).collect();
                let expected: Vec<Bloom> = receipts.iter().map(|receipt| {
                    let mut bloom = Bloom::ZERO;
                    receipt.logs.iter().for_each(|log| bloom.accrue_raw_log(log.address, &log.topics));
                    bloom
                }).collect();
                prop_assert_eq!(cache.blooms(&receipts).collect::<Vec<_>>(), expected);
            }
        }
    }
}
