//! Random draws: a fast generator of words, and Zipf's law in constant time.

use quarry::model::{Address, B256};

/// SplitMix64's step: a bijection that scatters neighbouring numbers.
pub(crate) const fn scatter(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// A word that depends on nothing but its arguments.
pub(crate) fn word(seed: u64, kind: u64, index: u64) -> B256 {
    let mut state = scatter(seed ^ scatter(kind ^ scatter(index)));
    let mut word = B256::ZERO;
    for eight in word.chunks_exact_mut(8) {
        eight.copy_from_slice(&state.to_le_bytes());
        state = scatter(state);
    }
    word
}

/// An address that depends on nothing but its arguments.
pub(crate) fn address(seed: u64, kind: u64, index: u64) -> Address {
    Address::from_word(word(seed, kind, index))
}

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(scatter(seed))
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let value = scatter(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        value
    }

    /// A number below `bound`.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether an event of so many in a thousand happens.
    #[inline]
    pub(crate) fn permille(&mut self, share: u64) -> bool {
        self.below(1_000) < share
    }

    #[inline]
    pub(crate) fn word(&mut self) -> B256 {
        let mut word = B256::ZERO;
        for eight in word.chunks_exact_mut(8) {
            eight.copy_from_slice(&self.next().to_le_bytes());
        }
        word
    }
}

/// Ranks from 0 with weight 1 / (rank + 1)^exponent, by Walker's alias method.
#[derive(Debug)]
pub(crate) struct Zipf {
    /// For each column: the share of 2^32 that stays, and where the rest goes.
    columns: Vec<(u32, u32)>,
    /// Sum of all weights.
    total: f64,
    exponent: f64,
}

impl Zipf {
    pub(crate) fn new(ranks: u32, exponent: f64) -> Self {
        let weight = |rank: u32| f64::from(rank + 1).powf(-exponent);
        let total: f64 = (0..ranks).map(weight).sum();
        let scale = f64::from(ranks) / total;
        let mut heights: Vec<f64> = (0..ranks).map(|rank| weight(rank) * scale).collect();
        let mut columns = vec![(u32::MAX, 0); ranks as usize];
        for (rank, column) in columns.iter_mut().enumerate() {
            column.1 = rank as u32;
        }
        let (mut low, mut high): (Vec<u32>, Vec<u32>) =
            (0..ranks).partition(|&rank| heights[rank as usize] < 1.0);
        while let (Some(short), Some(&tall)) = (low.pop(), high.last()) {
            let height = heights[short as usize];
            columns[short as usize] = ((height * f64::from(u32::MAX)) as u32, tall);
            heights[tall as usize] -= 1.0 - height;
            if heights[tall as usize] < 1.0 {
                high.pop();
                low.push(tall);
            }
        }
        Self {
            columns,
            total,
            exponent,
        }
    }

    /// A random rank.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> u32 {
        let number = random.next();
        let column = ((number >> 32) * self.columns.len() as u64) >> 32;
        let (stays, alias) = self.columns[column as usize];
        if number as u32 <= stays {
            column as u32
        } else {
            alias
        }
    }

    /// The probability of a rank.
    pub(crate) fn share(&self, rank: u32) -> f64 {
        f64::from(rank + 1).powf(-self.exponent) / self.total
    }
}
