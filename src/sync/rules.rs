//! What of a chain's rules verification and derivation depend on.

use std::sync::Arc;

use super::derive::NonceRules;
use super::derive::native::{NativeRules, Sealing};
use super::genesis::ChainGenesis;
use super::verify::Rules;
use crate::model::{Address, B256, ForkRules, StaticRewards, U256};

/// Rules of one chain.
#[derive(Clone, Debug)]
pub struct ChainRules {
    /// For verification.
    pub verify: Rules,
    /// For the derivations of nonces and of native balances.
    pub nonces: NonceRules,
}

impl ChainRules {
    /// The rules of a chain: by its genesis file, else by its id and genesis hash, else the strictest.
    #[must_use]
    pub fn new(
        chain_id: u64,
        genesis_hash: B256,
        genesis: Option<&ChainGenesis>,
        first_block: u64,
        trust_node: bool,
    ) -> Self {
        let forks = genesis
            .map(|genesis| genesis.forks)
            .or_else(|| ForkRules::well_known(chain_id, genesis_hash));
        let verify = forks
            .as_ref()
            .map_or_else(Rules::default, Rules::from_forks)
            .trusting_node(trust_node);
        let accounts = genesis.map_or(&[][..], |genesis| &genesis.accounts);
        let nonces = NonceRules {
            chain_id,
            // A schedule that names neither this fork nor a later one is that of a chain which never comes to it.
            spurious_dragon_block: forks.map(|forks| forks.spurious_dragon.unwrap_or(u64::MAX)),
            cancun_time: forks.and_then(|forks| forks.cancun_time),
            genesis_nonces: accounts
                .iter()
                .filter(|account| account.nonce > 0)
                .map(|account| (account.address, account.nonce))
                .collect(),
            from_genesis: first_block == 0,
            native: NativeRules {
                static_rewards: match genesis {
                    Some(genesis) => StaticRewards::of_forks(&genesis.forks),
                    None => StaticRewards::well_known(chain_id, genesis_hash),
                },
                allocation: genesis.filter(|_| first_block == 0).map(allocation),
                sealing: forks.map_or(Sealing::ByHeader, |forks| match (forks.aura, forks.clique) {
                    (true, _) => Sealing::Aura,
                    (_, true) => Sealing::Clique,
                    _ => Sealing::ByHeader,
                }),
                dao_block: forks.and_then(|forks| forks.dao),
            },
        };
        Self { verify, nonces }
    }

    /// What to warn of where a chain shares the block 0 of a well-known one whose rules are not its own, unless its own
    /// rules are `stated`.
    #[must_use]
    pub fn unstated(chain_id: u64, genesis_hash: B256, stated: bool) -> Option<String> {
        let namesake = ForkRules::namesake(chain_id, genesis_hash).filter(|_| !stated)?;
        Some(format!(
            "chain {chain_id} begins with the block 0 of chain {namesake}, whose forks and rewards are not taken for it: state \
             its own by --genesis FILE (all of its forks) or --static-reward BLOCK:WEI,... when the store is made; without \
             them blocks that have difficulty bring no reward, so that B3 and native balances are not the chain's"
        ))
    }

    /// The same with these static rewards.
    #[must_use]
    pub fn with_static_rewards(mut self, rewards: StaticRewards) -> Self {
        self.nonces.native.static_rewards = rewards;
        self
    }
}

fn allocation(genesis: &ChainGenesis) -> Arc<[(Address, U256)]> {
    let accounts = genesis.accounts.iter();
    accounts
        .map(|account| (account.address, account.balance))
        .collect()
}

#[cfg(test)]
mod tests {
    use alloy_primitives::b256;

    use super::*;

    #[test]
    fn the_rules_of_a_chain_are_not_those_of_another_with_its_block_0() {
        let hash = b256!("0xd4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3");
        let of = |chain_id| ChainRules::new(chain_id, hash, None, 0, false);
        let (mainnet, classic, other) = (of(1), of(61), of(10_001));
        assert_eq!(mainnet.nonces.native.dao_block, Some(1_920_000));
        assert_eq!(mainnet.nonces.cancun_time, Some(1_710_338_135));
        assert_eq!(mainnet.verify.byzantium_block, Some(4_370_000));
        assert_eq!(other.nonces.native.dao_block, None);
        assert_eq!(other.nonces.cancun_time, None);
        assert_eq!(other.nonces.native.static_rewards, StaticRewards::default());
        assert_eq!(other.verify, Rules::default());
        assert_eq!(classic.nonces.native.dao_block, None);
        assert_eq!(classic.nonces.cancun_time, None);
        assert_eq!(classic.nonces.spurious_dragon_block, Some(8_772_000));
        assert_eq!(
            classic.nonces.native.static_rewards.to_string(),
            "ecip1017:5000000"
        );
        assert_eq!(classic.verify.byzantium_block, Some(8_772_000));
        assert_eq!(of(31_337).nonces.native.dao_block, Some(1_920_000));

        let sentence = ChainRules::unstated(10_001, hash, false).unwrap();
        assert!(
            sentence.contains("chain 1,") && sentence.contains("--genesis"),
            "{sentence}"
        );
        for (chain_id, stated) in [(10_001, true), (1, false), (61, false), (31_337, false)] {
            assert_eq!(ChainRules::unstated(chain_id, hash, stated), None);
        }
    }
}
