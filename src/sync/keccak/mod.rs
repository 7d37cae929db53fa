//! Keccak-256 of many byte strings at a time.
//!
//! One permutation depends on the one before, so that a single message keeps a core waiting for itself. The
//! messages of a block are independent: where the processor has wide registers, each message takes one lane of
//! them and eight (AVX-512) or four (AVX2) are permuted at once. A lane whose message is done takes the next, so
//! that lengths need not match.

#[cfg(target_arch = "x86_64")]
mod permutation;

use alloy_primitives::{B256, keccak256};

/// Fewer messages than this are hashed one by one: a permutation of all lanes costs about two of one.
const MESSAGES_MIN: usize = 3;

/// Puts the hashes of `messages` in `hashes`, in the same order; what it held before is gone.
pub(super) fn keccak256_each(messages: &[&[u8]], hashes: &mut Vec<B256>) {
    #[cfg(target_arch = "x86_64")]
    if messages.len() >= MESSAGES_MIN
        && let Some(hash) = lanes::fastest()
    {
        return hash(messages, hashes);
    }
    hashes.clear();
    hashes.extend(messages.iter().map(keccak256));
}

#[cfg(target_arch = "x86_64")]
mod lanes {
    use std::arch::is_x86_feature_detected;

    use super::permutation::{State, with_avx2, with_avx512};
    use crate::model::B256;

    /// Bytes that one permutation takes up.
    const RATE: usize = 136;

    type Hash = fn(&[&[u8]], &mut Vec<B256>);

    /// The widest way to hash that the processor has; `None` where one by one is best.
    pub(super) fn fastest() -> Option<Hash> {
        if is_x86_feature_detected!("avx512f") {
            Some(|messages, hashes| each(messages, hashes, with_avx512))
        } else if is_x86_feature_detected!("avx2") {
            Some(|messages, hashes| each(messages, hashes, with_avx2))
        } else {
            None
        }
    }

    /// What a lane works on.
    #[derive(Clone, Copy, Default)]
    struct Lane<'a> {
        /// Place of its message; `None` when there is none left.
        message: Option<usize>,
        /// Bytes that are not taken up yet.
        rest: &'a [u8],
        /// Whether the last block of the message was taken up.
        ended: bool,
    }

    /// Hashes with `N` lanes that `permute` permutes.
    pub(super) fn each<const N: usize>(
        messages: &[&[u8]],
        hashes: &mut Vec<B256>,
        permute: impl Fn(&mut State<N>),
    ) {
        hashes.clear();
        hashes.resize(messages.len(), B256::ZERO);
        let mut waiting = messages.iter().enumerate();
        let mut state: State<N> = [[0; N]; 25];
        let mut lanes = [Lane::default(); N];
        loop {
            let mut busy = false;
            for (column, lane) in lanes.iter_mut().enumerate() {
                if lane.message.is_none()
                    && let Some((place, message)) = waiting.next()
                {
                    *lane = Lane {
                        message: Some(place),
                        rest: message,
                        ended: false,
                    };
                    state.iter_mut().for_each(|row| row[column] = 0);
                }
                if lane.message.is_some() {
                    absorb(&mut state, column, lane);
                    busy = true;
                }
            }
            if !busy {
                return;
            }
            permute(&mut state);
            for (column, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.ended) {
                lane.ended = false;
                if let Some(hash) = lane.message.take().and_then(|place| hashes.get_mut(place)) {
                    for (bytes, row) in hash.0.as_chunks_mut::<8>().0.iter_mut().zip(&state) {
                        *bytes = row[column].to_le_bytes();
                    }
                }
            }
        }
    }

    /// Takes up the next block of a lane's message; the last one is padded.
    fn absorb<const N: usize>(state: &mut State<N>, column: usize, lane: &mut Lane<'_>) {
        let mut padded = [0; RATE];
        let block = if let Some((block, rest)) = lane.rest.split_first_chunk::<RATE>() {
            lane.rest = rest;
            block
        } else {
            // Shorter than a block.
            let (text, padding) = padded.split_at_mut(lane.rest.len());
            text.copy_from_slice(lane.rest);
            padding[0] = 0x01;
            padded[RATE - 1] |= 0x80;
            lane.ended = true;
            &padded
        };
        for (row, bytes) in state.iter_mut().zip(block.as_chunks::<8>().0) {
            row[column] ^= u64::from_le_bytes(*bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn hashes_are_those_of_alloy_with_any_width(
            lengths in proptest::collection::vec(prop_oneof![0..700_usize, Just(135), Just(136), Just(137)], 0..40),
        ) {
            let texts: Vec<Vec<u8>> = lengths
                .iter()
                .enumerate()
                .map(|(seed, &len)| (0..len).map(|at| (at * 31 + seed * 7) as u8).collect())
                .collect();
            let messages: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
            let expected: Vec<B256> = messages.iter().map(keccak256).collect();
            let mut found = vec![B256::repeat_byte(1); 3];
            keccak256_each(&messages, &mut found);
            prop_assert_eq!(&found, &expected);
            #[cfg(target_arch = "x86_64")]
            {
                if std::arch::is_x86_feature_detected!("avx512f") {
                    lanes::each(&messages, &mut found, permutation::with_avx512);
                    prop_assert_eq!(&found, &expected);
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    lanes::each(&messages, &mut found, permutation::with_avx2);
                    prop_assert_eq!(&found, &expected);
                }
            }
        }
    }
}
