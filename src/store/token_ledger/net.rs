//! What a block does to an amount: what came less what went, exact however much came and went.

use std::cmp::Ordering;

use crate::model::U256;

/// A sum of what came less what went. Whether it fits is asked of the amount after the block alone: in between more may have been
/// there than 256 bits hold, or less than nothing, whatever order the movements are added in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Net {
    /// The lowest 256 bits.
    low: U256,
    /// How often they passed their end upwards, less how often downwards.
    high: i64,
}

impl Net {
    /// What came.
    #[must_use]
    pub const fn of(value: U256) -> Self {
        Self { low: value, high: 0 }
    }

    /// Takes up what came.
    pub fn come(&mut self, value: U256) {
        self.add(&Self::of(value));
    }

    /// Takes up what went.
    pub fn go(&mut self, value: U256) {
        let (low, below) = self.low.overflowing_sub(value);
        (self.low, self.high) = (low, self.high - i64::from(below));
    }

    /// Takes up another sum of the same block.
    pub fn add(&mut self, other: &Self) {
        let (low, above) = self.low.overflowing_add(other.low);
        (self.low, self.high) = (low, self.high + other.high + i64::from(above));
    }

    /// What an amount becomes by it: the nearest one that there can be, and on which side of that the true one lies.
    #[must_use]
    pub fn after(mut self, amount: U256) -> (U256, Ordering) {
        self.come(amount);
        let side = self.high.cmp(&0);
        let nearest = match side {
            Ordering::Less => U256::ZERO,
            Ordering::Equal => self.low,
            Ordering::Greater => U256::MAX,
        };
        (nearest, side)
    }
}

#[cfg(test)]
mod tests {
    use alloy_primitives::U512;
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = U256> {
        prop_oneof![
            any::<[u8; 32]>().prop_map(U256::from_be_bytes),
            (0u64..3).prop_map(|less| U256::MAX - U256::from(less)),
            (0u64..3).prop_map(U256::from),
        ]
    }

    proptest! {
        /// Against sums of 512 bits, which none of these passes; in two parts, as they may be added.
        #[test]
        fn it_is_the_sum(
            amount in value(),
            moves in prop::collection::vec((any::<bool>(), value()), 0..12),
            cut in 0usize..12,
        ) {
            let mut parts = [Net::default(); 2];
            let (mut came, mut went) = (U512::from(amount), U512::ZERO);
            for (place, (comes, value)) in moves.into_iter().enumerate() {
                let part = &mut parts[usize::from(cut <= place)];
                if comes {
                    part.come(value);
                    came += U512::from(value);
                } else {
                    part.go(value);
                    went += U512::from(value);
                }
            }
            let [mut net, rest] = parts;
            net.add(&rest);
            let expected = match came.checked_sub(went) {
                None => (U256::ZERO, Ordering::Less),
                Some(left) if left > U512::from(U256::MAX) => (U256::MAX, Ordering::Greater),
                Some(left) => (left.to::<U256>(), Ordering::Equal),
            };
            prop_assert_eq!(net.after(amount), expected);
        }
    }
}
