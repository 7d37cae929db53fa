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
    /// The rules of a chain: by its genesis file, else by its genesis hash, else the strictest.
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
            .or_else(|| ForkRules::well_known(genesis_hash));
        let verify = forks
            .as_ref()
            .map_or_else(Rules::default, Rules::from_forks)
            .trusting_node(trust_node);
        let accounts = genesis.map_or(&[][..], |genesis| &genesis.accounts);
        let nonces = NonceRules {
            chain_id,
            // A fork schedule that names none of the early forks is that of a chain that began after them.
            spurious_dragon_block: forks.map_or(0, |forks| forks.spurious_dragon.unwrap_or(u64::MAX)),
            genesis_nonces: accounts
                .iter()
                .filter(|account| account.nonce > 0)
                .map(|account| (account.address, account.nonce))
                .collect(),
            from_genesis: first_block == 0,
            native: NativeRules {
                static_rewards: match genesis {
                    Some(genesis) => StaticRewards::of_forks(&genesis.forks),
                    None => StaticRewards::well_known(genesis_hash),
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

    /// The same with the static rewards that the operator states, where there are any.
    #[must_use]
    pub fn with_static_rewards(mut self, stated: Option<&StaticRewards>) -> Self {
        if let Some(stated) = stated {
            self.nonces.native.static_rewards = stated.clone();
        }
        self
    }
}

fn allocation(genesis: &ChainGenesis) -> Arc<[(Address, U256)]> {
    let accounts = genesis.accounts.iter();
    accounts
        .map(|account| (account.address, account.balance))
        .collect()
}
