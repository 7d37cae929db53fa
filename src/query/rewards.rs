//! B3: what a block brought to its fee recipient and to those of its uncles, and what it burnt.

use super::{QueryError, Reader};
use crate::codec::transaction_row::TransactionSlice;
use crate::codec::value::{BlockFees, FeeRow};
use crate::model::{Address, Block, StaticRewards, U256, uncle_inclusion_reward};
use crate::store::{Table, Units};

/// What one uncle brought to its fee recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UncleReward {
    /// Its fee recipient.
    pub miner: Address,
    /// Its number.
    pub number: u64,
    /// Wei.
    pub reward: U256,
}

/// What a block brought and burnt, in wei, exactly (B3, A9).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockReward {
    /// Block number.
    pub number: u64,
    /// Unix time, seconds.
    pub timestamp: u64,
    /// The fee recipient; `None` for block 0, which nobody sealed.
    pub miner: Option<Address>,
    /// What the protocol gives for the block; 0 without difficulty.
    pub static_reward: U256,
    /// What the transactions paid above the base fee; all of their fees before London.
    pub transaction_fees: U256,
    /// Base fees burnt (EIP-1559).
    pub base_fees_burnt: U256,
    /// Blob fees burnt (EIP-4844).
    pub blob_fees_burnt: U256,
    /// What the protocol gives for naming the uncles: a 32nd of the static reward for each.
    pub uncle_inclusion_reward: U256,
    /// The uncles in order; `None` where the store does not know who sealed them.
    pub uncles: Option<Vec<UncleReward>>,
}

impl BlockReward {
    /// All that the fee recipient got: static reward, fees and uncle inclusion.
    #[must_use]
    pub fn total(&self) -> U256 {
        [
            self.static_reward,
            self.transaction_fees,
            self.uncle_inclusion_reward,
        ]
        .into_iter()
        .fold(U256::ZERO, U256::saturating_add)
    }

    /// All that was burnt: base and blob fees.
    #[must_use]
    pub fn burnt(&self) -> U256 {
        self.base_fees_burnt.saturating_add(self.blob_fees_burnt)
    }

    /// The rewards of a block by its header, its uncles, and the fees of its transactions.
    #[must_use]
    pub fn of(block: &Block, fees: impl IntoIterator<Item = FeeRow>, rewards: &StaticRewards) -> Self {
        let header = &block.header;
        let static_reward = rewards.of_block(header.number, header.difficulty);
        let mut reward = Self {
            number: header.number,
            timestamp: header.timestamp,
            miner: (header.number > 0).then_some(header.beneficiary),
            static_reward,
            uncle_inclusion_reward: uncle_inclusion_reward(static_reward, block.uncles.len()),
            uncles: uncle_rewards(block, static_reward, rewards),
            ..Self::default()
        };
        let mut split = BlockFees::of(header);
        for fee in fees {
            let paid = split.split(&fee);
            for (sum, more) in [
                (&mut reward.base_fees_burnt, paid.base_fee_burnt),
                (&mut reward.blob_fees_burnt, paid.blob_fee_burnt),
                (&mut reward.transaction_fees, U256::from(paid.tip)),
            ] {
                *sum = sum.saturating_add(more);
            }
        }
        reward
    }
}

fn uncle_rewards(block: &Block, static_reward: U256, rewards: &StaticRewards) -> Option<Vec<UncleReward>> {
    if block.uncle_headers.len() != block.uncles.len() {
        return None;
    }
    let uncles = block.uncle_headers.iter().map(|uncle| UncleReward {
        miner: uncle.beneficiary,
        number: uncle.number,
        reward: rewards.of_uncle(static_reward, block.number(), uncle.number),
    });
    Some(uncles.collect())
}

impl Reader {
    /// What a block brought and burnt; `None` for a block that is not indexed.
    pub fn block_reward(&self, number: u64) -> Result<Option<BlockReward>, QueryError> {
        if !self.holds(number) {
            return Ok(None);
        }
        let block = self.block_row(number)?;
        let ordinals = self.view.first_transaction(number)?..self.view.first_transaction(number + 1)?;
        let mut transactions = Units::new(&self.view, Table::Transactions);
        let mut fees = Vec::with_capacity(usize::try_from(ordinals.end - ordinals.start).unwrap_or(0));
        for ordinal in ordinals {
            let slice = TransactionSlice::decode(transactions.row(ordinal)?.bytes())
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Transactions.name()))?;
            fees.push(slice.fees);
        }
        Ok(Some(BlockReward::of(&block, fees, &self.static_rewards)))
    }

    /// All that the fee recipient of an indexed block got, as [`BlockReward::total`], without reading its rows.
    pub fn block_reward_total(&self, number: u64) -> Result<U256, QueryError> {
        let earned = self.view.block_earnings(number)?;
        let difficulty = U256::from(earned.has_difficulty);
        let static_reward = self.static_rewards.of_block(number, difficulty);
        let inclusion = uncle_inclusion_reward(static_reward, usize::from(earned.uncles));
        Ok(static_reward
            .saturating_add(U256::from(earned.tips))
            .saturating_add(inclusion))
    }
}
