//! What the protocol gives to those who seal blocks, and what a unit of blob gas costs.

use std::fmt;
use std::str::FromStr;

use alloy_primitives::U512;

use super::{B256, ForkRules, U256};

const ETHER: u128 = 1_000_000_000_000_000_000;

/// Eras of ECIP-1017 that pay something: four fifths of the last one each time, until nothing is left of 5 ether.
const PAID_ERAS: u64 = 193;

/// Stands for the wei of the only step where eras are stated: its first block says how many blocks one has.
const ERAS: u128 = u128::MAX;

/// How the eras of ECIP-1017 begin as text; the number of blocks follows.
const ERAS_TEXT: &str = "ecip1017:";

/// Update fraction of the blob base fee (EIP-4844), and the one from Prague on (EIP-7691).
const BLOB_FRACTION_CANCUN: u64 = 3_338_477;
const BLOB_FRACTION_PRAGUE: u64 = 5_007_716;

/// Static reward of a block that has difficulty, in wei, by the first block that it holds for.
///
/// Written as `BLOCK:WEI` with commas between, ascending; `WEI` alone holds from block 0 on. `ecip1017:BLOCKS` is the schedule
/// of ECIP-1017 (Ethereum Classic) with eras of so many blocks, which also says what uncles bring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticRewards {
    /// First block and wei, by block; or the blocks of an era and [`ERAS`].
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
    /// (EIP-1234), or those of ECIP-1017's eras; none where blocks are sealed by authorities.
    #[must_use]
    pub fn of_forks(forks: &ForkRules) -> Self {
        if forks.aura || forks.clique {
            return Self::default();
        }
        if let Some(blocks) = forks.ecip1017_era {
            return Self::of_eras(blocks);
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

    /// The steps, as first block and wei. Eras are a single step: of the most wei there can be, its first block the number of
    /// blocks that an era has.
    #[must_use]
    pub fn steps(&self) -> &[(u64, u128)] {
        &self.steps
    }

    /// Rewards by first block and wei, ascending; or eras, as [`Self::steps`] has them.
    #[must_use]
    pub const fn of_steps(steps: Vec<(u64, u128)>) -> Self {
        Self { steps }
    }

    /// Rewards of ECIP-1017's eras, with so many blocks each.
    #[must_use]
    pub fn of_eras(blocks: u64) -> Self {
        Self::of_steps(vec![(blocks, ERAS)])
    }

    /// How many blocks an era has, where the schedule is ECIP-1017's.
    #[must_use]
    pub fn era(&self) -> Option<u64> {
        match self.steps[..] {
            [(blocks @ 1.., ERAS)] => Some(blocks),
            _ => None,
        }
    }

    /// The blocks from which on the rule is another one.
    fn firsts(&self) -> impl Iterator<Item = u64> {
        let blocks = self.era();
        let eras = (0..=PAID_ERAS).map_while(move |era| blocks?.checked_mul(era)?.checked_add(1));
        let steps = self.steps.iter().filter(move |_| blocks.is_none());
        steps.map(|&(first, _)| first).chain(eras)
    }

    /// Whether the blocks from `first` to `last` have the same rule.
    #[must_use]
    pub fn is_steady(&self, first: u64, last: u64) -> bool {
        !self.firsts().any(|step| first < step && step <= last)
    }

    /// Whether the blocks before `end` have the same rewards by both, and so have their uncles.
    #[must_use]
    pub fn agrees_before(&self, other: &Self, end: u64) -> bool {
        let rule = |rewards: &Self, block| {
            let each = rewards.of_block(block, U256::ONE);
            (each, !each.is_zero() && rewards.is_flat(block))
        };
        let mut firsts = self.firsts().chain(other.firsts()).chain([1]);
        firsts.all(|first| end <= first || rule(self, first) == rule(other, first))
    }

    /// The reward of a block, in wei; 0 for block 0 and for a block without difficulty.
    #[must_use]
    pub fn of_block(&self, number: u64, difficulty: U256) -> U256 {
        if number == 0 || difficulty.is_zero() {
            return U256::ZERO;
        }
        if let Some(blocks) = self.era() {
            return of_era((number - 1) / blocks);
        }
        let after = self.steps.partition_point(|&(first, _)| first <= number);
        let step = after.checked_sub(1).and_then(|at| self.steps.get(at));
        step.map_or(U256::ZERO, |&(_, wei)| U256::from(wei))
    }

    /// Whether an uncle that the block names brings the same however late it came: from the second era of ECIP-1017 on.
    fn is_flat(&self, block: u64) -> bool {
        self.era().is_some_and(|blocks| block > blocks)
    }

    /// What an uncle of number `uncle` brings to its fee recipient, named by a block that itself brings `each`.
    #[must_use]
    pub fn of_uncle(&self, each: U256, block: u64, uncle: u64) -> U256 {
        self.of_late_uncle(each, block, uncle_eighths(block, uncle))
    }

    /// The same of an uncle that came so late that it has so many [eighths](uncle_eighths).
    #[must_use]
    pub fn of_late_uncle(&self, each: U256, block: u64, eighths: usize) -> U256 {
        if self.is_flat(block) {
            return uncle_inclusion_reward(each, 1);
        }
        (each * U256::from(eighths)) >> 3
    }
}

/// What a block of this era of ECIP-1017 brings, counted from 0: 5 ether, times 4/5 for each era before it, rounded down once.
fn of_era(era: u64) -> U256 {
    if era >= PAID_ERAS {
        return U256::ZERO;
    }
    let power = |of: u64| U512::from(of).pow(U512::from(era));
    U256::saturating_from(U512::from(5 * ETHER) * power(4) / power(5))
}

/// What the protocol gives a block with this static reward for naming so many uncles: a 32nd for each.
#[must_use]
pub fn uncle_inclusion_reward(static_reward: U256, uncles: usize) -> U256 {
    (static_reward >> 5) * U256::from(uncles)
}

/// How many eighths of the static reward an uncle of number `uncle` brings to its fee recipient, named by `block`,
/// where that is by how late it came: one less for each block; 0 to 8.
#[must_use]
pub const fn uncle_eighths(block: u64, uncle: u64) -> usize {
    8usize.saturating_sub(block.saturating_sub(uncle) as usize)
}

impl FromStr for StaticRewards {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(blocks) = text.trim().strip_prefix(ERAS_TEXT) {
            let blocks = blocks.parse().ok().filter(|&blocks: &u64| blocks > 0);
            let blocks = blocks
                .ok_or_else(|| format!("`{text}` is not {ERAS_TEXT}BLOCKS, such as {ERAS_TEXT}5000000"))?;
            return Ok(Self::of_eras(blocks));
        }
        let mut steps: Vec<(u64, u128)> = Vec::new();
        for item in text.split(',') {
            let item = item.trim();
            let fault = || format!("`{item}` is not WEI or BLOCK:WEI, such as 4370000:3000000000000000000");
            let (first, wei) = item.split_once(':').unwrap_or(("0", item));
            let step: (u64, u128) = (
                first.trim().parse().map_err(|_| fault())?,
                wei.trim()
                    .parse()
                    .ok()
                    .filter(|&wei| wei < ERAS)
                    .ok_or_else(fault)?,
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
        if let Some(blocks) = self.era() {
            return write!(f, "{ERAS_TEXT}{blocks}");
        }
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
        // EthereumPoW's begin with the same block, and so do Ethereum Classic's.
        assert_eq!(
            StaticRewards::well_known(10_001, genesis),
            StaticRewards::default()
        );
        assert_eq!(
            StaticRewards::well_known(61, genesis).to_string(),
            "ecip1017:5000000"
        );
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

    /// The table of ECIP-1017, and the first era whose reward is not a whole number of wei.
    #[test]
    fn eras_pay_four_fifths_of_the_last_one_and_their_uncles_a_32nd() {
        let classic: StaticRewards = "ecip1017:5000000".parse().unwrap();
        let reward = |number| classic.of_block(number, U256::ONE).to::<u128>();
        for (era, wei) in [
            (0, 5_000_000_000_000_000_000),
            (1, 4_000_000_000_000_000_000),
            (2, 3_200_000_000_000_000_000),
            (3, 2_560_000_000_000_000_000),
            (4, 2_048_000_000_000_000_000),
            (5, 1_638_400_000_000_000_000),
            (20, 57_646_075_230_342_348),
            (192, 1),
            (193, 0),
            (200, 0),
        ] {
            let rewards = [era * 5_000_000 + 1, (era + 1) * 5_000_000].map(reward);
            assert_eq!(rewards, [wei; 2], "{era}");
        }
        assert_eq!((reward(0), reward(u64::MAX)), (0, 0));
        assert_eq!(classic.of_block(7, U256::ZERO), U256::ZERO);
        // The block's, what it gets for naming one, and what uncles of the last block and the one before it bring.
        let brings = |block| {
            let each = classic.of_block(block, U256::ONE);
            let uncles = [1, 2].map(|late| classic.of_uncle(each, block, block - late).to::<u64>());
            (uncle_inclusion_reward(each, 1).to::<u64>(), uncles)
        };
        let first = [4_375_000_000_000_000_000, 3_750_000_000_000_000_000];
        assert_eq!(brings(5_000_000), (156_250_000_000_000_000, first));
        assert_eq!(
            brings(5_000_001),
            (125_000_000_000_000_000, [125_000_000_000_000_000; 2])
        );
        assert_eq!(
            brings(10_000_001),
            (100_000_000_000_000_000, [100_000_000_000_000_000; 2])
        );

        assert!(classic.is_steady(1, 5_000_000) && !classic.is_steady(5_000_000, 5_000_001));
        assert!(classic.is_steady(5_000_001, 10_000_000) && !classic.is_steady(0, u64::MAX));
        let agrees = |text: &str, end| {
            let other: StaticRewards = text.parse().unwrap();
            let agrees = classic.agrees_before(&other, end);
            assert_eq!(other.agrees_before(&classic, end), agrees);
            agrees
        };
        assert!(agrees("5000000000000000000", 5_000_001));
        assert!(!agrees("5000000000000000000", 5_000_002));
        // The same for blocks, and not for their uncles.
        let stated = "0:5000000000000000000,5000001:4000000000000000000";
        assert!(agrees(stated, 5_000_001) && !agrees(stated, 5_000_002));
        assert!(agrees("ecip1017:2000000", 2_000_001) && !agrees("ecip1017:2000000", 2_000_002));
        assert!(agrees("ecip1017:5000000", u64::MAX));

        assert_eq!(classic.to_string(), "ecip1017:5000000");
        assert_eq!(StaticRewards::of_steps(classic.steps().to_vec()), classic);
        let most = u128::MAX;
        for text in [
            "ecip1017:",
            "ecip1017:0",
            "ecip1017:-1",
            "ecip1017:5,10:3",
            "0:5,ecip1017:5",
            &format!("7:{most}"),
        ] {
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
