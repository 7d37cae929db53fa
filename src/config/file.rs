//! `quarry.toml`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::ConfigError;

/// The file as a whole. Unknown keys are refused, so that a typing error is not silently a default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    /// Directory of the stores.
    pub data_dir: Option<PathBuf>,
    /// Address to serve on.
    pub listen: Option<String>,
    /// Memory for cached blocks.
    pub cache_size: Option<String>,
    /// Memory of backfill.
    pub backfill_memory: Option<String>,
    /// Connections served at once.
    pub max_connections: Option<usize>,
    /// Patience with clients, seconds.
    pub client_timeout: Option<u64>,
    /// Requests a second of one client; 0 for no limit.
    pub rate_limit: Option<u32>,
    /// Whether `X-Forwarded-For` names the client.
    pub trust_proxy: Option<bool>,
    /// The chain `mainnet`.
    #[serde(default)]
    pub mainnet: ChainFile,
    /// The chain `testnet`.
    #[serde(default)]
    pub testnet: ChainFile,
}

/// The section of a chain.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChainFile {
    /// Node.
    pub rpc: Option<String>,
    /// First block.
    pub start_block: Option<u64>,
    /// Genesis file.
    pub genesis: Option<PathBuf>,
    /// Most requests in flight.
    pub rpc_concurrency: Option<usize>,
    /// Questions a second about tokens.
    pub token_checks: Option<u32>,
    /// Depth that counts as final.
    pub finality_depth: Option<u64>,
    /// Skip hashes and roots.
    pub trust_node: Option<bool>,
    /// Static reward of blocks with difficulty.
    pub static_reward: Option<String>,
    /// What is said of its supply.
    #[serde(default)]
    pub supply: SupplyFile,
    /// Symbol of the native coin.
    pub symbol: Option<String>,
    /// Price feeds.
    #[serde(default)]
    pub prices: PricesFile,
}

/// The section of a chain's supply.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SupplyFile {
    /// Accounts whose coins do not circulate.
    #[serde(default)]
    pub excluded: Vec<String>,
}

/// The feeds of a chain's prices; one that is absent is what is known of the chain.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PricesFile {
    /// Of the native coin.
    pub native: Option<OneOrMany>,
    /// Of the stable coin.
    pub stable: Option<OneOrMany>,
}

/// A text or a list of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Some; none at all switches the feed off.
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl ConfigFile {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
            path: path.to_path_buf(),
            source,
        })?;
        toml::from_str(&text).map_err(|source| ConfigError::Parse {
            path: path.to_path_buf(),
            source: Box::new(source),
        })
    }
}
