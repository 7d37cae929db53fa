//! What is asked of the blocks of a chain.

use alloy_genesis::ChainConfig;

use crate::model::{B256, ForkRules};
use crate::sync::genesis::from_config;

/// What is asked of the blocks of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Takes hashes, roots, blooms and gas from the node as they are (`--trust-node`), for chains whose
    /// encodings are their own. The parent link, the number and order of receipts and the number of traces
    /// are checked all the same.
    pub trust_node: bool,
    /// First block whose receipts carry a status; `None` when the chain never gets there. Before it, the
    /// receipts root of a block is checked where its receipts state the intermediate state roots, which most
    /// nodes no longer do.
    pub byzantium_block: Option<u64>,
    /// Whether the forks of the chain are known, by its id or its genesis file.
    pub forks_known: bool,
    /// Whether blocks with difficulty are sealed by AuRa. Their headers hold a step and a signature that the
    /// model does not, so their hash is taken as it is; all else about them is checked.
    pub aura: bool,
}

impl Default for Rules {
    /// The strictest: everything is checked from block 0 on.
    fn default() -> Self {
        Self {
            trust_node: false,
            byzantium_block: Some(0),
            forks_known: false,
            aura: false,
        }
    }
}

impl Rules {
    /// The rules of the chain with this id and genesis hash, if it is well known.
    #[must_use]
    pub fn well_known(chain_id: u64, genesis_hash: B256) -> Option<Self> {
        ForkRules::well_known(chain_id, genesis_hash)
            .as_ref()
            .map(Self::from_forks)
    }

    /// The rules of a geth-style `config`.
    ///
    /// # Errors
    ///
    /// When a fork begins with what is no number.
    pub fn from_config(config: &ChainConfig) -> Result<Self, serde_json::Error> {
        from_config(config).map(|forks| Self::from_forks(&forks))
    }

    /// The rules of a fork schedule.
    #[must_use]
    pub const fn from_forks(forks: &ForkRules) -> Self {
        Self {
            trust_node: false,
            byzantium_block: forks.byzantium,
            forks_known: true,
            aura: forks.aura,
        }
    }

    /// The same rules, with the node trusted or not.
    #[must_use]
    pub const fn trusting_node(self, trust_node: bool) -> Self {
        Self { trust_node, ..self }
    }

    /// Whether the receipts of a block carry a status.
    pub(super) fn has_status(&self, block: u64) -> bool {
        self.byzantium_block.is_some_and(|first| first <= block)
    }
}
