//! Sums over UTC days (S4 to S7, B4 to B7, G1 to G3), and what the protocol gave on a day.

use super::blocks::block_row;
use super::{QueryError, Reader};
pub use crate::codec::value::DayRow;
use crate::model::{Day, U256, uncle_inclusion_reward};

/// What the protocol gave for the blocks of a day, wei.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayReward {
    /// For the blocks themselves.
    pub static_reward: U256,
    /// For naming uncles.
    pub uncle_inclusion: U256,
    /// To those who sealed the uncles; `None` where the store does not know how late they came.
    pub uncles: Option<U256>,
}

impl DayReward {
    /// Adds another day, or a part of one.
    fn add(&mut self, other: Self) {
        self.static_reward = self.static_reward.saturating_add(other.static_reward);
        self.uncle_inclusion = self.uncle_inclusion.saturating_add(other.uncle_inclusion);
        let both = self.uncles.zip(other.uncles);
        self.uncles = both.map(|(one, other)| one.saturating_add(other));
    }
}

impl Reader {
    /// The first day that has blocks, and that of the last indexed block. Some chains date their block 0 after others.
    pub fn day_span(&self) -> Result<(Day, Day), QueryError> {
        let day = |block| self.view.block(block).map(|block| Day::of(block.timestamp));
        let (first, head) = (day(self.first_block())?, day(self.head().number)?);
        Ok((self.view.first_day()?.map_or(first, |day| day.min(first)), head))
    }

    /// The day of the first block without frames; `None` where all have them.
    pub fn untraced_since(&self) -> Result<Option<Day>, QueryError> {
        if self.has_traces() {
            return Ok(None);
        }
        let block = self.view.block(self.view.checkpoint().next_traced)?;
        Ok(Some(Day::of(block.timestamp)))
    }

    /// The sums of the days from `first` to `last` that have blocks, in order: a row is read for each.
    pub fn days(&self, first: Day, last: Day) -> Result<Vec<(Day, DayRow)>, QueryError> {
        Ok(self.view.days(first, last)?)
    }

    /// The sums of the last day before `day` that has blocks.
    pub fn day_before(&self, day: Day) -> Result<Option<DayRow>, QueryError> {
        Ok(self.view.day_before(day)?)
    }

    /// How many addresses first took part in the chain on each day from `first` to `last`; days without any are left
    /// out. Days of blocks without frames are not told.
    pub fn new_addresses(&self, first: Day, last: Day) -> Result<Vec<(Day, u64)>, QueryError> {
        if self.untraced_since()?.is_some_and(|untraced| untraced <= last) {
            return Err(QueryError::NeedsTraces);
        }
        Ok(self.view.new_addresses(first, last)?)
    }

    /// What the protocol gave on a day. Where the static reward changes within it, its blocks are looked at.
    pub fn day_reward(&self, day: Day, row: &DayRow) -> Result<DayReward, QueryError> {
        if row.sealed_blocks == 0 {
            return Ok(DayReward {
                uncles: Some(U256::ZERO),
                ..DayReward::default()
            });
        }
        if self.static_rewards.is_steady(row.first_block, row.last_block) {
            return Ok(self.steady_reward(row));
        }
        let mut reward = DayReward {
            uncles: Some(U256::ZERO),
            ..DayReward::default()
        };
        for number in row.first_block..=row.last_block {
            if Day::of(self.view.block(number)?.timestamp) == day {
                reward.add(self.protocol_reward(number)?);
            }
        }
        Ok(reward)
    }

    /// The reward of a day of which each block has the same rule.
    fn steady_reward(&self, row: &DayRow) -> DayReward {
        let each = self.static_rewards.of_block(row.last_block, U256::ONE);
        let times = |amount: U256, count: u64| amount.saturating_mul(U256::from(count));
        let uncles = row.uncle_eighths.iter().enumerate();
        let uncles = uncles.fold(U256::ZERO, |sum, (eighths, &count)| {
            let reward = self.static_rewards.of_late_uncle(each, row.last_block, eighths);
            sum.saturating_add(times(reward, count))
        });
        DayReward {
            static_reward: times(each, row.sealed_blocks),
            uncle_inclusion: times(uncle_inclusion_reward(each, 1), row.uncles),
            // Where nothing is given, uncles that nobody knows got nothing, too.
            uncles: (row.tells_uncles() || each.is_zero()).then_some(uncles),
        }
    }

    /// What the protocol gave for one block.
    fn protocol_reward(&self, number: u64) -> Result<DayReward, QueryError> {
        let earned = self.view.block_earnings(number)?;
        let each = self
            .static_rewards
            .of_block(number, U256::from(earned.has_difficulty));
        let mut reward = DayReward {
            static_reward: each,
            uncle_inclusion: uncle_inclusion_reward(each, usize::from(earned.uncles)),
            uncles: Some(U256::ZERO),
        };
        if earned.uncles > 0 && !each.is_zero() {
            let headers = block_row(&self.view, number)?.uncle_headers;
            let uncles = headers
                .iter()
                .map(|uncle| self.static_rewards.of_uncle(each, number, uncle.number));
            let uncles = uncles.fold(U256::ZERO, U256::saturating_add);
            reward.uncles = (headers.len() == usize::from(earned.uncles)).then_some(uncles);
        }
        Ok(reward)
    }
}
