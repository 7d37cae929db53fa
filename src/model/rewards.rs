//! What the protocol gives to those who seal blocks, and what a unit of blob gas costs.

use std::fmt;
use std::str::FromStr;

use super::{B256, ForkRules, U256};

const ETHER: u128 = 1_000_000_000_000_000_000;

/// Update fraction of the blob base fee (EIP-4844), and the one from Prague on (EIP-7691).
const BLOB_FRACTION_CANCUN: u64 = 3_338_477;
const BLOB_FRACTION_PRAGUE: u64 = 5_007_716;

/// Static reward of a block that has difficulty, in wei, by the first block that it holds for.
///
/// Written as `BLOCK:WEI` with commas between, ascending; `WEI` alone holds from block 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticRewards {
    /// First block and wei, by block.
    steps: Vec<(u64, u128)>,
}

impl StaticRewards {
    /// Rewards of a chain with this id and genesis hash; none where the chain is not well known.
    #[must_use]
    pub fn well_known(chain_id: u64, genesis_hash: B256) -> Self {
        ForkRules::well_known(chain_id, genesis_hash)
            .map_or_else(Self::default, |forks| Self::of_forks(&forks))
    }

    /// Rewards under a fork schedule: 5 ether, 3 from Byzantium on (EIP-649), 2 from Constantinople on
    /// (EIP-1234); none where blocks are sealed by authorities.
    #[must_use]
    pub fn of_forks(forks: &ForkRules) -> Self {
        if forks.aura || forks.clique {
            return Self::default();
        }
        let mut steps = vec![(0, 5 * ETHER)];
        for (fork, reward) in [(forks.byzantium, 3 * ETHER), (forks.constantinople, 2 * ETHER)] {
            let Some(first) = fork else { continue };
            // Of forks that begin together the last one decides.
            while steps.last().is_some_and(|&(before, _)| before >= first) {
                steps.pop();
            }
            steps.push((first, reward));
        }
        Self { steps }
    }

    /// The steps, as first block and wei.
    #[must_use]
    pub fn steps(&self) -> &[(u64, u128)] {
        &self.steps
    }

    /// Rewards by first block and wei, ascending.
    #[must_use]
    pub const fn of_steps(steps: Vec<(u64, u128)>) -> Self {
        Self { steps }
    }

    /// Whether the blocks from `first` to `last` have the same rule.
    #[must_use]
    pub fn is_steady(&self, first: u64, last: u64) -> bool {
        !self.steps.iter().any(|&(step, _)| first < step && step <= last)
    }

    /// Whether the blocks before `end` have the same rewards by both.
    #[must_use]
    pub fn agrees_before(&self, other: &Self, end: u64) -> bool {
        let steps = self.steps.iter().chain(&other.steps);
        let mut firsts = steps.map(|&(first, _)| first).chain([1]);
        firsts
            .all(|first| end <= first || self.of_block(first, U256::ONE) == other.of_block(first, U256::ONE))
    }

    /// The reward of a block, in wei; 0 for block 0 and for a block without difficulty.
    #[must_use]
    pub fn of_block(&self, number: u64, difficulty: U256) -> U256 {
        if number == 0 || difficulty.is_zero() {
            return U256::ZERO;
        }
        let after = self.steps.partition_point(|&(first, _)| first <= number);
        let step = after.checked_sub(1).and_then(|at| self.steps.get(at));
        step.map_or(U256::ZERO, |&(_, wei)| U256::from(wei))
    }
}

/// What the protocol gives a block with this static reward for naming so many uncles: a 32nd for each.
#[must_use]
pub fn uncle_inclusion_reward(static_reward: U256, uncles: usize) -> U256 {
    (static_reward >> 5) * U256::from(uncles)
}

/// How many eighths of the static reward an uncle of number `uncle` brings to its fee recipient, named by `block`:
/// one less for each block that it came late; 0 to 8.
#[must_use]
pub const fn uncle_eighths(block: u64, uncle: u64) -> usize {
    8usize.saturating_sub(block.saturating_sub(uncle) as usize)
}

/// So many eighths of a static reward.
#[must_use]
pub fn eighths_of(static_reward: U256, eighths: usize) -> U256 {
    (static_reward * U256::from(eighths)) >> 3
}

/// What an uncle of number `uncle` brings to its fee recipient, named by `block`.
#[must_use]
pub fn uncle_reward(static_reward: U256, block: u64, uncle: u64) -> U256 {
    eighths_of(static_reward, uncle_eighths(block, uncle))
}

impl FromStr for StaticRewards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut steps: Vec<(u64, u128)> = Vec::new();
        for item in text.split(',') {
            let item = item.trim();
            let fault = || format!("`{item}` is not WEI or BLOCK:WEI, such as 4370000:3000000000000000000");
            let (first, wei) = item.split_once(':').unwrap_or(("0", item));
            let step: (u64, u128) = (
                first.trim().parse().map_err(|_| fault())?,
                wei.trim().parse().map_err(|_| fault())?,
            );
            if steps.last().is_some_and(|&(before, _)| before >= step.0) {
                return Err(format!("`{item}` does not begin after the one before it"));
            }
            steps.push(step);
        }
        Ok(Self { steps })
    }
}

impl fmt::Display for StaticRewards {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, wei)) in self.steps.iter().enumerate() {
            write!(f, "{}{first}:{wei}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// Price of a unit of blob gas in wei by the header alone: `excess` is its excess blob gas, `prague` whether
/// the block follows that fork. Later forks change the fraction again; receipts that state the price know
/// better. [`U256::MAX`] for an excess that no chain reaches.
#[must_use]
pub fn blob_base_fee(excess: u64, prague: bool) -> U256 {
    let fraction = U256::from(if prague {
        BLOB_FRACTION_PRAGUE
    } else {
        BLOB_FRACTION_CANCUN
    });
    fake_exponential(U256::from(excess), fraction).unwrap_or(U256::MAX)
}

/// e to the power of `numerator / denominator`, rounded down, as EIP-4844 computes it.
fn fake_exponential(numerator: U256, denominator: U256) -> Option<U256> {
    let mut output = U256::ZERO;
    let mut term = denominator;
    let mut place = U256::ONE;
    while !term.is_zero() {
        output = output.checked_add(term)?;
        term = term
            .checked_mul(numerator)?
            .checked_div(denominator.checked_mul(place)?)?;
        place = place.checked_add(U256::ONE)?;
    }
    output.checked_div(denominator)
}

#[cfg(test)]
mod tests {
    use alloy_primitives::b256;

    use super::*;

    fn ether(tenths: u64) -> U256 {
        U256::from(tenths) * U256::from(ETHER / 10)
    }

    #[test]
    fn rewards_follow_the_forks_of_the_chain() {
        let genesis = b256!("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");
        let mainnet = StaticRewards::well_known(1, genesis);
        // Ethereum Classic's begin with the same block.
        assert_eq!(StaticRewards::well_known(61, genesis), StaticRewards::default());
        let reward = |number| mainnet.of_block(number, U256::ONE);
        assert_eq!(reward(0), U256::ZERO);
        assert_eq!(reward(1), ether(50));
        assert_eq!(reward(4_369_999), ether(50));
        assert_eq!(reward(4_370_000), ether(30));
        assert_eq!(reward(7_279_999), ether(30));
        assert_eq!(reward(7_280_000), ether(20));
        assert_eq!(mainnet.of_block(15_537_394, U256::ZERO), U256::ZERO);
        // Sepolia's forks all begin at block 0; Goerli and Gnosis are sealed by authorities.
        let of = |id, hash: &str| StaticRewards::well_known(id, hash.parse().unwrap()).of_block(7, U256::ONE);
        assert_eq!(
            of(
                11_155_111,
                "0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9"
            ),
            ether(20)
        );
        for (id, sealed) in [
            (
                5,
                "0xbf7e331f7f7c1dd2e05159666b3bf8bc7a8a3a9eb1d518969eab529dd9b88c1a",
            ),
            (
                100,
                "0x4f1dd23188aab3a76b463e4af801b52b1248ef073c648cbdc4c9333d3da79756",
            ),
        ] {
            assert_eq!(of(id, sealed), U256::ZERO);
        }
        assert_eq!(
            StaticRewards::well_known(1, B256::ZERO).of_block(7, U256::ONE),
            U256::ZERO
        );
    }

    #[test]
    fn rewards_are_read_as_they_are_written() {
        let steps: StaticRewards = "5, 10:3 ,20:0".parse().unwrap();
        assert_eq!(steps.to_string(), "0:5,10:3,20:0");
        assert_eq!(steps.to_string().parse(), Ok(steps.clone()));
        let rewards = [1, 9, 10, 19, 20].map(|number| steps.of_block(number, U256::ONE).to::<u64>());
        assert_eq!(rewards, [5, 5, 3, 3, 0]);
        let late: StaticRewards = "10:3".parse().unwrap();
        assert_eq!(late.of_block(9, U256::ONE), U256::ZERO);
        for text in ["", "x", "1:", ":1", "-1", "1:2:3", "5,", "10:3,10:4", "10:3,5"] {
            assert!(text.parse::<StaticRewards>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn blob_base_fees_are_those_of_the_eip() {
        assert_eq!(blob_base_fee(0, false), U256::ONE);
        assert_eq!(blob_base_fee(2_314_057, false), U256::ONE);
        assert_eq!(blob_base_fee(2_314_058, false), U256::from(2));
        assert_eq!(blob_base_fee(10 * 1024 * 1024, false), U256::from(23));
        assert_eq!(blob_base_fee(10 * 1024 * 1024, true), U256::from(8));
        assert_eq!(blob_base_fee(u64::MAX, true), U256::MAX);
    }
}
