//! When the forks of a chain begin.

use alloy_primitives::b256;

use super::{B256, U256};

const MAINNET_GENESIS_HASH: B256 =
    b256!("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");
const SEPOLIA_GENESIS_HASH: B256 =
    b256!("0x25a5cc106eea7138acab33231d7160d69cb777ee0c2c553fcddf5138993e6dd9");
const HOLESKY_GENESIS_HASH: B256 =
    b256!("0xb5f7f912443c940f21fd611f12828d75b534364ed9e95ca4e307729a4661bde4");
const HOODI_GENESIS_HASH: B256 = b256!("0xbbe312868b376a3001692a646dd2d7d1e4406380dfd86b98aa8a34d1557c971b");
const GOERLI_GENESIS_HASH: B256 = b256!("0xbf7e331f7f7c1dd2e05159666b3bf8bc7a8a3a9eb1d518969eab529dd9b88c1a");
const MORDOR_GENESIS_HASH: B256 = b256!("0xa68ebde7932eccb177d38d55dcc6461a019dd795a681e59b5a3e4f3a7259a3f1");
const GNOSIS_GENESIS_HASH: B256 = b256!("0x4f1dd23188aab3a76b463e4af801b52b1248ef073c648cbdc4c9333d3da79756");

/// Chain ids of development nodes (geth's and Ganache's, Hardhat's and Anvil's). A fork of a well-known chain that such a node
/// makes goes on from that chain's blocks under its rules, so the rules are meant for it too.
const DEVELOPMENT: [u64; 2] = [1337, 31_337];

/// What the genesis block of a well-known chain allocates in all, wei. Chains that share the block share this, whatever their
/// chain ids.
///
/// Ethereum mainnet's is the sum over the 8,893 accounts of its genesis file; the test chains' have no use.
#[must_use]
pub fn genesis_allocation(genesis_hash: B256) -> Option<U256> {
    (genesis_hash == MAINNET_GENESIS_HASH).then(|| U256::from(72_009_990_499_480_000_000_000_000_u128))
}

/// The fork schedule of a chain: first block or, where the name says so, first time of each fork.
///
/// `None` is a fork that the chain never reaches, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForkRules {
    /// Chain id (EIP-155).
    pub chain_id: u64,
    /// Homestead (EIP-2: a creation that cannot pay for its code fails).
    pub homestead: Option<u64>,
    /// The irregular state change after the DAO, where the chain took it.
    pub dao: Option<u64>,
    /// Tangerine Whistle (EIP-150).
    pub tangerine_whistle: Option<u64>,
    /// Spurious Dragon (EIP-155; EIP-161: empty accounts are removed, contracts start at nonce 1).
    pub spurious_dragon: Option<u64>,
    /// Byzantium (EIP-658: receipts carry a status; EIP-649: block reward of 3 ether).
    pub byzantium: Option<u64>,
    /// Constantinople (EIP-1234: block reward of 2 ether).
    pub constantinople: Option<u64>,
    /// Istanbul.
    pub istanbul: Option<u64>,
    /// Berlin (EIP-2718, EIP-2930).
    pub berlin: Option<u64>,
    /// London (EIP-1559: base fee, burnt).
    pub london: Option<u64>,
    /// First block without proof of work, where its number is known beforehand. A header says it for itself:
    /// its difficulty is 0.
    pub paris: Option<u64>,
    /// Shanghai (EIP-4895: withdrawals).
    pub shanghai_time: Option<u64>,
    /// Cancun (EIP-4844: blobs; EIP-6780: self-destruct only in the creating transaction).
    pub cancun_time: Option<u64>,
    /// Prague (EIP-7702: set code; EIP-7685: requests).
    pub prague_time: Option<u64>,
    /// Osaka.
    pub osaka_time: Option<u64>,
    /// Blocks of an era, where what blocks with difficulty bring follows ECIP-1017 and not the forks (Ethereum Classic).
    pub ecip1017_era: Option<u64>,
    /// Whether the blocks with difficulty are sealed by AuRa, not by proof of work: they bring no reward of
    /// the protocol, and their headers hold a step and a signature that the JSON of the header does not.
    pub aura: bool,
    /// Whether the blocks with difficulty are sealed by authorities (clique, EIP-225): they bring no reward.
    pub clique: bool,
}

impl ForkRules {
    /// What is known of the chain with this id and genesis hash: Ethereum mainnet, Ethereum Classic, Sepolia, Holesky, Hoodi,
    /// Goerli, Mordor, Gnosis.
    ///
    /// A chain that parted from one of them later (EthereumPoW from mainnet) shares its block 0 and neither its
    /// forks nor its rewards: the id must be that chain's, or that of a development node.
    #[must_use]
    pub fn well_known(chain_id: u64, genesis_hash: B256) -> Option<Self> {
        let own = Self::with_genesis(genesis_hash).find(|forks| forks.chain_id == chain_id);
        own.or_else(|| {
            let is_fork = DEVELOPMENT.contains(&chain_id);
            Self::with_genesis(genesis_hash).next().filter(|_| is_fork)
        })
    }

    /// The id of the well-known chain that has this genesis hash where the chain with this id is not it.
    #[must_use]
    pub fn namesake(chain_id: u64, genesis_hash: B256) -> Option<u64> {
        let with_genesis = Self::with_genesis(genesis_hash).next()?.chain_id;
        let is_known = Self::well_known(chain_id, genesis_hash).is_some();
        (!is_known).then_some(with_genesis)
    }

    /// The well-known chains that begin with this block, the one first that development nodes fork.
    fn with_genesis(genesis_hash: B256) -> impl Iterator<Item = Self> {
        let all = [
            (MAINNET_GENESIS_HASH, MAINNET),
            (MAINNET_GENESIS_HASH, CLASSIC),
            (SEPOLIA_GENESIS_HASH, SEPOLIA),
            (HOLESKY_GENESIS_HASH, HOLESKY),
            (HOODI_GENESIS_HASH, HOODI),
            (GOERLI_GENESIS_HASH, GOERLI),
            (MORDOR_GENESIS_HASH, MORDOR),
            (GNOSIS_GENESIS_HASH, GNOSIS),
        ];
        let with_it = all.into_iter().filter(move |&(hash, _)| hash == genesis_hash);
        with_it.map(|(_, forks)| forks)
    }
}

/// Every fork by number at block 0.
const ALL_AT_START: ForkRules = ForkRules {
    chain_id: 0,
    homestead: Some(0),
    dao: None,
    tangerine_whistle: Some(0),
    spurious_dragon: Some(0),
    byzantium: Some(0),
    constantinople: Some(0),
    istanbul: Some(0),
    berlin: Some(0),
    london: Some(0),
    paris: Some(0),
    shanghai_time: None,
    cancun_time: None,
    prague_time: None,
    osaka_time: None,
    ecip1017_era: None,
    aura: false,
    clique: false,
};

const MAINNET: ForkRules = ForkRules {
    chain_id: 1,
    homestead: Some(1_150_000),
    dao: Some(1_920_000),
    tangerine_whistle: Some(2_463_000),
    spurious_dragon: Some(2_675_000),
    byzantium: Some(4_370_000),
    constantinople: Some(7_280_000),
    istanbul: Some(9_069_000),
    berlin: Some(12_244_000),
    london: Some(12_965_000),
    paris: Some(15_537_394),
    shanghai_time: Some(1_681_338_455),
    cancun_time: Some(1_710_338_135),
    prague_time: Some(1_746_612_311),
    osaka_time: Some(1_764_798_551),
    ecip1017_era: None,
    aura: false,
    clique: false,
};

/// Its forks have names of their own: Atlantis (Byzantium, with EIP-161), Agharta, Phoenix, Magneto; London's base fee is not among
/// what it took.
const CLASSIC: ForkRules = ForkRules {
    chain_id: 61,
    homestead: Some(1_150_000),
    tangerine_whistle: Some(2_500_000),
    spurious_dragon: Some(8_772_000),
    byzantium: Some(8_772_000),
    constantinople: Some(9_573_000),
    istanbul: Some(10_500_839),
    berlin: Some(13_189_133),
    london: None,
    paris: None,
    ecip1017_era: Some(5_000_000),
    ..ALL_AT_START
};

const MORDOR: ForkRules = ForkRules {
    chain_id: 63,
    constantinople: Some(301_243),
    istanbul: Some(999_983),
    berlin: Some(3_985_893),
    london: None,
    paris: None,
    ecip1017_era: Some(2_000_000),
    ..ALL_AT_START
};

const SEPOLIA: ForkRules = ForkRules {
    chain_id: 11_155_111,
    paris: Some(1_450_409),
    shanghai_time: Some(1_677_557_088),
    cancun_time: Some(1_706_655_072),
    prague_time: Some(1_741_159_776),
    osaka_time: Some(1_760_427_360),
    ..ALL_AT_START
};

const HOLESKY: ForkRules = ForkRules {
    chain_id: 17_000,
    shanghai_time: Some(1_696_000_704),
    cancun_time: Some(1_707_305_664),
    prague_time: Some(1_740_434_112),
    osaka_time: Some(1_759_308_480),
    ..ALL_AT_START
};

const HOODI: ForkRules = ForkRules {
    chain_id: 560_048,
    shanghai_time: Some(0),
    cancun_time: Some(0),
    prague_time: Some(1_742_999_832),
    osaka_time: Some(1_761_677_592),
    ..ALL_AT_START
};

const GOERLI: ForkRules = ForkRules {
    chain_id: 5,
    istanbul: Some(1_561_651),
    berlin: Some(4_460_644),
    london: Some(5_062_605),
    paris: None,
    shanghai_time: Some(1_678_832_736),
    cancun_time: Some(1_705_473_120),
    clique: true,
    ..ALL_AT_START
};

const GNOSIS: ForkRules = ForkRules {
    chain_id: 100,
    constantinople: Some(1_604_400),
    istanbul: Some(7_298_030),
    berlin: Some(16_101_500),
    london: Some(19_040_000),
    paris: None,
    shanghai_time: Some(1_690_889_660),
    cancun_time: Some(1_710_181_820),
    prague_time: Some(1_746_021_820),
    aura: true,
    ..ALL_AT_START
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_shares_a_block_0_does_not_follow_the_same_forks() {
        let of = |id| ForkRules::well_known(id, MAINNET_GENESIS_HASH);
        assert_eq!(of(1), Some(MAINNET));
        assert_eq!(of(61), Some(CLASSIC));
        assert_eq!(ForkRules::namesake(61, MAINNET_GENESIS_HASH), None);
        // EthereumPoW, and the id of Classic's test chain.
        for id in [10_001, 63] {
            assert_eq!(of(id), None);
            assert_eq!(ForkRules::namesake(id, MAINNET_GENESIS_HASH), Some(1));
        }
        // Forks that development nodes make.
        for id in [1337, 31_337] {
            assert_eq!(of(id), Some(MAINNET));
            assert_eq!(ForkRules::namesake(id, MAINNET_GENESIS_HASH), None);
        }
        assert_eq!(ForkRules::well_known(1, B256::ZERO), None);
        for (id, hash) in [(1, MAINNET_GENESIS_HASH), (1, B256::ZERO), (61, B256::ZERO)] {
            assert_eq!(ForkRules::namesake(id, hash), None);
        }
    }
}
