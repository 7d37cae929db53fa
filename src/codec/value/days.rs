//! Rows of days: exact sums over the blocks of a UTC day, so that rows of parts of a day add up to the row of the day.

use super::super::Corrupt;
use super::super::amount::{put_sized_amount, read_sized_amount};
use super::super::bytes::{Reader, put_varint};
use crate::model::U256;

/// Eighths of the static reward that an uncle may bring: none to all.
const EIGHTHS: usize = 9;

/// Sums over the blocks of a UTC day. Amounts are wei.
///
/// ```text
/// | first block | last block | first time | last time | blocks | transactions | size | blocks without a size
/// | blocks with difficulty | uncles: varints | where there are uncles: number of each reward in eighths, 0 to 8: varints
/// | (length u8, amount)*: gas used, gas limit, effective gas prices, tips, base fees, blob fees, fees of the layer below
/// | transactions paid in a token, where there are some: varint |
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayRow {
    /// Number of its first block.
    pub first_block: u64,
    /// Number of its last block.
    pub last_block: u64,
    /// Time of its first block, Unix seconds.
    pub first_time: u64,
    /// Time of its last block, Unix seconds.
    pub last_time: u64,
    /// Blocks; a row without any is none.
    pub blocks: u64,
    /// Transactions.
    pub transactions: u64,
    /// Sizes of the blocks, bytes.
    pub size: u64,
    /// Blocks whose source does not tell their size.
    pub unsized_blocks: u64,
    /// Blocks with difficulty, but for block 0: the static reward is theirs.
    pub sealed_blocks: u64,
    /// Uncles that those name.
    pub uncles: u64,
    /// Of the uncles whose number is known, how many bring so many eighths of the static reward.
    pub uncle_eighths: [u64; EIGHTHS],
    /// Gas used.
    pub gas_used: U256,
    /// Gas limits of the blocks.
    pub gas_limit: U256,
    /// Effective gas prices of the transactions, but of those paid in a token.
    pub gas_prices: U256,
    /// Paid above the base fee.
    pub tips: U256,
    /// Base fees burnt (EIP-1559).
    pub base_fees_burnt: U256,
    /// Blob fees burnt (EIP-4844).
    pub blob_fees_burnt: U256,
    /// Paid to the layer below (L1 fee of roll-ups).
    pub fees_below: U256,
    /// Transactions whose fee was paid in a token: none of it is in the sums.
    pub in_token: u64,
}

impl DayRow {
    /// Adds what other blocks of the same day bring.
    pub fn add(&mut self, other: &Self) {
        if self.blocks == 0 {
            *self = *other;
            return;
        }
        if other.blocks == 0 {
            return;
        }
        self.first_block = self.first_block.min(other.first_block);
        self.last_block = self.last_block.max(other.last_block);
        self.first_time = self.first_time.min(other.first_time);
        self.last_time = self.last_time.max(other.last_time);
        for (sum, more) in self.counts_mut().into_iter().zip(other.counts()) {
            *sum = sum.saturating_add(more);
        }
        for (sum, more) in self.uncle_eighths.iter_mut().zip(other.uncle_eighths) {
            *sum = sum.saturating_add(more);
        }
        self.in_token = self.in_token.saturating_add(other.in_token);
        for (sum, more) in self.amounts_mut().into_iter().zip(other.amounts()) {
            *sum = sum.saturating_add(more);
        }
    }

    /// What senders paid, wei: tips, base and blob fees, and what went to the layer below.
    #[must_use]
    pub fn fees_paid(&self) -> U256 {
        self.tips
            .saturating_add(self.fees_burnt())
            .saturating_add(self.fees_below)
    }

    /// Transactions whose prices are among the sum.
    #[must_use]
    pub const fn priced(&self) -> u64 {
        self.transactions.saturating_sub(self.in_token)
    }

    /// Base and blob fees burnt, wei.
    #[must_use]
    pub fn fees_burnt(&self) -> U256 {
        self.base_fees_burnt.saturating_add(self.blob_fees_burnt)
    }

    /// Whether the numbers of all uncles are known, and so what they brought.
    #[must_use]
    pub fn tells_uncles(&self) -> bool {
        self.uncle_eighths.iter().sum::<u64>() == self.uncles
    }

    const fn counts(&self) -> [u64; 6] {
        [
            self.blocks,
            self.transactions,
            self.size,
            self.unsized_blocks,
            self.sealed_blocks,
            self.uncles,
        ]
    }

    const fn counts_mut(&mut self) -> [&mut u64; 6] {
        [
            &mut self.blocks,
            &mut self.transactions,
            &mut self.size,
            &mut self.unsized_blocks,
            &mut self.sealed_blocks,
            &mut self.uncles,
        ]
    }

    const fn amounts(&self) -> [U256; 7] {
        [
            self.gas_used,
            self.gas_limit,
            self.gas_prices,
            self.tips,
            self.base_fees_burnt,
            self.blob_fees_burnt,
            self.fees_below,
        ]
    }

    const fn amounts_mut(&mut self) -> [&mut U256; 7] {
        [
            &mut self.gas_used,
            &mut self.gas_limit,
            &mut self.gas_prices,
            &mut self.tips,
            &mut self.base_fees_burnt,
            &mut self.blob_fees_burnt,
            &mut self.fees_below,
        ]
    }

    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        for number in [self.first_block, self.last_block, self.first_time, self.last_time] {
            put_varint(&mut out, number);
        }
        for count in self.counts() {
            put_varint(&mut out, count);
        }
        if self.uncles > 0 {
            for count in self.uncle_eighths {
                put_varint(&mut out, count);
            }
        }
        for amount in self.amounts() {
            put_sized_amount(&mut out, &amount);
        }
        if self.in_token > 0 {
            put_varint(&mut out, self.in_token);
        }
        out
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let mut reader = Reader::new(bytes, "day");
        let mut row = Self {
            first_block: reader.varint()?,
            last_block: reader.varint()?,
            first_time: reader.varint()?,
            last_time: reader.varint()?,
            ..Self::default()
        };
        for count in row.counts_mut() {
            *count = reader.varint()?;
        }
        if row.uncles > 0 {
            for count in &mut row.uncle_eighths {
                *count = reader.varint()?;
            }
        }
        for amount in row.amounts_mut() {
            *amount = read_sized_amount(&mut reader)?;
        }
        if !reader.is_empty() {
            row.in_token = reader.varint()?;
        }
        reader.end()?;
        Ok(row)
    }
}

/// Reads how many addresses are new on a day: a varint.
pub fn decode_new_addresses(bytes: &[u8]) -> Result<u64, Corrupt> {
    let mut reader = Reader::new(bytes, "new addresses of a day");
    let count = reader.varint()?;
    reader.end().map(|()| count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::amount::amounts;
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = DayRow> {
        let small = || 0u64..1 << 40;
        (
            (small(), small(), small(), small()),
            (1u64..1 << 40, small(), small(), small(), small(), small()),
            proptest::option::of(proptest::array::uniform9(0u64..1 << 20)),
            proptest::array::uniform7(amounts().prop_map(|amount| amount >> 4)),
        )
            .prop_map(|(places, counts, eighths, sums)| {
                let mut row = DayRow {
                    first_block: places.0,
                    last_block: places.1,
                    first_time: places.2,
                    last_time: places.3,
                    uncle_eighths: eighths.unwrap_or_default(),
                    in_token: counts.5 >> 39,
                    ..DayRow::default()
                };
                let uncles = row.uncle_eighths.iter().sum();
                let counts = [counts.0, counts.1, counts.2, counts.3, counts.4, uncles];
                for (to, from) in row.counts_mut().into_iter().zip(counts) {
                    *to = from;
                }
                for (to, from) in row.amounts_mut().into_iter().zip(sums) {
                    *to = from;
                }
                row
            })
    }

    fn sum(rows: &[DayRow]) -> DayRow {
        rows.iter().fold(DayRow::default(), |mut sum, row| {
            sum.add(row);
            sum
        })
    }

    proptest! {
        #[test]
        fn rows_round_trip_and_add_up_in_any_parts(rows in proptest::collection::vec(rows(), 1..8), cut in 0usize..8) {
            let whole = sum(&rows);
            prop_assert_eq!(DayRow::decode(&whole.encode()).unwrap(), whole);
            let (left, right) = rows.split_at(cut.min(rows.len()));
            prop_assert_eq!(sum(&[sum(left), sum(right)]), whole);
            prop_assert_eq!(sum(&[sum(right), sum(left)]), whole);
            prop_assert_eq!(whole.blocks, rows.iter().map(|row| row.blocks).sum::<u64>());
            prop_assert!(whole.tells_uncles());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = DayRow::decode(&bytes);
        }
    }

    #[test]
    fn golden_bytes() {
        let mut row = DayRow {
            first_block: 300,
            last_block: 301,
            first_time: 86_400,
            last_time: 86_412,
            blocks: 2,
            transactions: 3,
            size: 1000,
            gas_used: U256::from(42_000),
            ..DayRow::default()
        };
        let wanted = "ac02ad0280a3058ca305 02 03 e807 00 00 00 02a410 00 00 00 00 00 00";
        assert_eq!(const_hex::encode(row.encode()), wanted.replace(' ', ""));
        row.uncles = 1;
        row.uncle_eighths[7] = 1;
        let wanted = "ac02ad0280a3058ca305 02 03 e807 00 00 01 000000000000000100 02a410 00 00 00 00 00 00";
        assert_eq!(const_hex::encode(row.encode()), wanted.replace(' ', ""));
        row.in_token = 200;
        assert_eq!(
            const_hex::encode(row.encode()),
            format!("{}c801", wanted.replace(' ', ""))
        );
        assert_eq!((row.priced(), DayRow::decode(&row.encode())), (0, Ok(row)));
    }
}
