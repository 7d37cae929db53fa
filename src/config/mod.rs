//! The effective configuration: flag, then environment, then file, then default.
//!
//! clap merges flags and environment; this room reads the file, fills in the rest and checks it.

mod file;
mod prices;
mod service;
mod size;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use file::{ChainFile, ConfigFile};
pub use service::ServiceConfig;
pub use size::ByteSize;

use crate::cli::{ListenArgs, NodeArgs, RunArgs, StoreArgs};
use crate::model::{Address, ChainName, StatedPrices, StaticRewards, written_address};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read configuration `{}`: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// The file is not what is expected.
    #[error("configuration `{}`: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<toml::de::Error>,
    },
    /// A value makes no sense.
    #[error("{name}: {reason}")]
    Value {
        /// The option.
        name: &'static str,
        /// What is wrong with its value.
        reason: String,
    },
}

/// Settings of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainConfig {
    /// Which of the two.
    pub name: ChainName,
    /// Node; `None` serves what is stored.
    pub rpc: Option<String>,
    /// First block; `None` takes the store's, or 0.
    pub start_block: Option<u64>,
    /// Genesis file.
    pub genesis: Option<PathBuf>,
    /// Most requests in flight.
    pub rpc_concurrency: usize,
    /// Questions a second about tokens; 0 asks none but those of clients.
    pub token_checks: u32,
    /// Depth that counts as final without a `finalized` tag.
    pub finality_depth: u64,
    /// Skip hashes and roots.
    pub trust_node: bool,
}

/// All settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Directory of the stores.
    pub data_dir: PathBuf,
    /// Address to serve on.
    pub listen: SocketAddr,
    /// Bounds on clients.
    pub service: ServiceConfig,
    /// Memory for cached blocks, all chains together.
    pub cache_size: ByteSize,
    /// Memory of backfill, for each chain.
    pub backfill_memory: ByteSize,
    /// The chains that have a node, in order.
    pub chains: Vec<ChainConfig>,
    /// Static rewards that the operator states, by chain; a chain that is well known needs none.
    pub static_rewards: Vec<(ChainName, StaticRewards)>,
    /// Accounts whose coins do not circulate, by chain, each once.
    pub excluded: Vec<(ChainName, Vec<Address>)>,
    /// What the operator states of prices, by chain.
    pub prices: Vec<(ChainName, StatedPrices)>,
}

impl Config {
    /// Merges what `quarry run` was given.
    pub fn run(args: &RunArgs) -> Result<Self, ConfigError> {
        Self::merge(&args.store, &args.node, &args.listen)
    }

    /// The settings of a command that only needs a store.
    pub fn of_store(store: &StoreArgs) -> Result<Self, ConfigError> {
        Self::merge(store, &NodeArgs::default(), &ListenArgs::default())
    }

    /// Merges flags and environment with the file and the defaults.
    pub fn merge(store: &StoreArgs, node: &NodeArgs, listen: &ListenArgs) -> Result<Self, ConfigError> {
        let file = store
            .config
            .as_deref()
            .map(ConfigFile::load)
            .transpose()?
            .unwrap_or_default();
        let address = listen
            .listen
            .clone()
            .or(file.listen.clone())
            .unwrap_or_else(|| "127.0.0.1:8080".to_owned());
        let size = |name, flag: &Option<String>, file: &Option<String>, default: &str| {
            let text = flag
                .clone()
                .or(file.clone())
                .unwrap_or_else(|| default.to_owned());
            text.parse::<ByteSize>()
                .map_err(|reason| ConfigError::Value { name, reason })
        };
        let rpcs = [node.mainnet_rpc.clone(), node.testnet_rpc.clone()];
        let mut chains = Vec::new();
        for ((name, rpc), section) in ChainName::ALL
            .into_iter()
            .zip(rpcs)
            .zip([&file.mainnet, &file.testnet])
        {
            let rpc = rpc.or(section.rpc.clone()).filter(|url| !url.trim().is_empty());
            chains.push((name, rpc, section));
        }
        let nodes = chains.iter().filter(|(_, rpc, _)| rpc.is_some()).count();
        let chains = chains
            .into_iter()
            .filter(|(_, rpc, _)| rpc.is_some())
            .map(|(name, rpc, section)| {
                // The flags speak of the chain `mainnet`, or of the only one.
                let mine = nodes == 1 || name == ChainName::Mainnet;
                let concurrency = node.rpc_concurrency.or(section.rpc_concurrency).unwrap_or(32);
                if concurrency == 0 {
                    let reason = "at least one request must be allowed".to_owned();
                    return Err(ConfigError::Value {
                        name: "rpc-concurrency",
                        reason,
                    });
                }
                Ok(ChainConfig {
                    name,
                    rpc,
                    start_block: node.start_block.filter(|_| mine).or(section.start_block),
                    genesis: node.genesis.clone().filter(|_| mine).or(section.genesis.clone()),
                    rpc_concurrency: concurrency,
                    token_checks: node.token_checks.or(section.token_checks).unwrap_or(100),
                    finality_depth: node.finality_depth.or(section.finality_depth).unwrap_or(64),
                    trust_node: node.trust_node || section.trust_node.unwrap_or(false),
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let service = ServiceConfig::merge(listen, &file)?;
        let static_rewards = static_rewards(listen, &file, &chains)?;
        let excluded = excluded(&file)?;
        let prices = prices::stated(&file)?;
        Ok(Self {
            data_dir: store
                .data_dir
                .clone()
                .or(file.data_dir.clone())
                .unwrap_or_else(|| PathBuf::from("quarry-data")),
            listen: address.parse().map_err(|_| ConfigError::Value {
                name: "listen",
                reason: format!("`{address}` is not an address and port such as 127.0.0.1:8080"),
            })?,
            cache_size: size("cache-size", &store.cache_size, &file.cache_size, "1GiB")?,
            backfill_memory: size(
                "backfill-memory",
                &store.backfill_memory,
                &file.backfill_memory,
                "1GiB",
            )?,
            chains,
            service,
            static_rewards,
            excluded,
            prices,
        })
    }

    /// The static rewards that the operator states for a chain.
    #[must_use]
    pub fn static_rewards_of(&self, chain: ChainName) -> Option<&StaticRewards> {
        let stated = self.static_rewards.iter().find(|(name, _)| *name == chain);
        stated.map(|(_, rewards)| rewards)
    }

    /// The accounts whose coins do not circulate.
    #[must_use]
    pub fn excluded_of(&self, chain: ChainName) -> &[Address] {
        let stated = self.excluded.iter().find(|(name, _)| *name == chain);
        stated.map_or(&[], |(_, accounts)| accounts)
    }

    /// What the operator states of a chain's prices.
    #[must_use]
    pub fn prices_of(&self, chain: ChainName) -> StatedPrices {
        let stated = self.prices.iter().find(|(name, _)| *name == chain);
        stated.map(|(_, prices)| prices.clone()).unwrap_or_default()
    }

    /// The directory of a chain's store.
    #[must_use]
    pub fn store_dir(&self, chain: ChainName) -> PathBuf {
        store_dir(&self.data_dir, chain)
    }

    /// The configuration as a file would say it.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let path = |path: &Path| quoted(&path.to_string_lossy());
        let _ = writeln!(out, "data_dir = {}", path(&self.data_dir));
        let _ = writeln!(out, "listen = {}", quoted(&self.listen.to_string()));
        let _ = writeln!(out, "cache_size = {}", quoted(&self.cache_size.to_string()));
        let _ = writeln!(
            out,
            "backfill_memory = {}",
            quoted(&self.backfill_memory.to_string())
        );
        self.service.write(&mut out);
        for name in ChainName::ALL {
            let prices = self.prices_of(name);
            let Some(chain) = self.chains.iter().find(|chain| chain.name == name) else {
                if prices != StatedPrices::default() {
                    let _ = writeln!(out, "\n[{name}]");
                    prices::write(&mut out, name, &prices);
                }
                continue;
            };
            let _ = writeln!(out, "\n[{}]", chain.name);
            if let Some(rpc) = &chain.rpc {
                let _ = writeln!(out, "rpc = {}", quoted(rpc));
            }
            if let Some(start) = chain.start_block {
                let _ = writeln!(out, "start_block = {start}");
            }
            if let Some(genesis) = &chain.genesis {
                let _ = writeln!(out, "genesis = {}", path(genesis));
            }
            let _ = writeln!(out, "rpc_concurrency = {}", chain.rpc_concurrency);
            let _ = writeln!(out, "token_checks = {}", chain.token_checks);
            let _ = writeln!(out, "finality_depth = {}", chain.finality_depth);
            let _ = writeln!(out, "trust_node = {}", chain.trust_node);
            if let Some(rewards) = self.static_rewards_of(chain.name) {
                let _ = writeln!(out, "static_reward = {}", quoted(&rewards.to_string()));
            }
            prices::write(&mut out, name, &prices);
            let accounts = self.excluded_of(chain.name).iter();
            let accounts: Vec<String> = accounts.map(|account| format!("\"{account:#x}\"")).collect();
            if !accounts.is_empty() {
                let _ = writeln!(
                    out,
                    "\n[{}.supply]\nexcluded = [{}]",
                    chain.name,
                    accounts.join(", ")
                );
            }
        }
        out
    }
}

/// Static rewards by chain. Flag and environment speak of the chain `mainnet`, or of the only one with a node.
fn static_rewards(
    listen: &ListenArgs,
    file: &ConfigFile,
    chains: &[ChainConfig],
) -> Result<Vec<(ChainName, StaticRewards)>, ConfigError> {
    let meant = match chains {
        [only] => only.name,
        _ => ChainName::Mainnet,
    };
    ChainName::ALL
        .into_iter()
        .zip([&file.mainnet, &file.testnet])
        .map(|(chain, section)| {
            let flag = listen.static_reward.as_ref().filter(|_| chain == meant);
            (chain, flag.or(section.static_reward.as_ref()))
        })
        .filter_map(|(chain, text)| Some((chain, text.filter(|text| !text.trim().is_empty())?)))
        .map(|(chain, text)| {
            let rewards = text.parse().map_err(|reason| ConfigError::Value {
                name: "static-reward",
                reason,
            })?;
            Ok((chain, rewards))
        })
        .collect()
}

/// The accounts that the file leaves out of what circulates, by chain.
fn excluded(file: &ConfigFile) -> Result<Vec<(ChainName, Vec<Address>)>, ConfigError> {
    let sections = ChainName::ALL.into_iter().zip([&file.mainnet, &file.testnet]);
    sections
        .map(|(chain, section)| {
            let mut accounts: Vec<Address> = Vec::with_capacity(section.supply.excluded.len());
            for text in &section.supply.excluded {
                let account = written_address(text.trim()).map_err(|fault| ConfigError::Value {
                    name: "supply.excluded",
                    reason: format!("`{}` {fault}", text.escape_debug()),
                })?;
                if !accounts.contains(&account) {
                    accounts.push(account);
                }
            }
            Ok((chain, accounts))
        })
        .collect()
}

/// The directory of a chain's store under a data directory.
#[must_use]
pub fn store_dir(data_dir: &Path, chain: ChainName) -> PathBuf {
    data_dir.join(chain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_the_file_over_defaults() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("quarry.toml");
        std::fs::write(
            &path,
            "cache_size = \"2GiB\"\nlisten = \"127.0.0.1:9\"\n[mainnet]\nrpc = \"http://a\"\nstart_block = 7\n[testnet]\nrpc = \"http://b\"\nstart_block = 9\ntrust_node = true\nstatic_reward = \"2\"\n[testnet.supply]\nexcluded = [\"0X00000000000000000000000000000000000000AA\", \"0x00000000000000000000000000000000000000aa\"]\n",
        )
        .unwrap();
        let args = RunArgs {
            store: StoreArgs {
                config: Some(path),
                ..StoreArgs::default()
            },
            node: NodeArgs {
                start_block: Some(3),
                ..NodeArgs::default()
            },
            listen: ListenArgs {
                listen: Some("127.0.0.1:1".to_owned()),
                static_reward: Some("7:3".to_owned()),
                ..ListenArgs::default()
            },
        };
        let config = Config::run(&args).unwrap();
        assert_eq!(config.listen.port(), 1);
        assert_eq!(config.cache_size.0, 2 << 30);
        assert_eq!(config.chains.len(), 2);
        assert_eq!(config.chains[0].start_block, Some(3));
        assert_eq!(config.chains[1].start_block, Some(9));
        assert!(config.chains[1].trust_node && !config.chains[0].trust_node);
        let rewards = ChainName::ALL.map(|chain| config.static_rewards_of(chain).unwrap().to_string());
        assert_eq!(rewards, ["7:3", "0:2"]);
        let again: ConfigFile = toml::from_str(&config.to_toml()).unwrap();
        assert_eq!(again.testnet.start_block, Some(9));
        assert_eq!(again.testnet.static_reward.as_deref(), Some("0:2"));
        let excluded = "0x00000000000000000000000000000000000000aa";
        assert_eq!(again.testnet.supply.excluded, [excluded]);
        assert_eq!(config.excluded_of(ChainName::Mainnet), [] as [Address; 0]);
    }

    #[test]
    fn nonsense_is_named() {
        let args = |listen: &str, size: &str| RunArgs {
            store: StoreArgs {
                cache_size: Some(size.to_owned()),
                ..StoreArgs::default()
            },
            listen: ListenArgs {
                listen: Some(listen.to_owned()),
                ..ListenArgs::default()
            },
            ..RunArgs::default()
        };
        let error = |args| Config::run(&args).unwrap_err().to_string();
        assert!(error(args("nowhere", "1GiB")).starts_with("listen: `nowhere`"));
        assert!(error(args("127.0.0.1:1", "much")).starts_with("cache-size: `much`"));
        let mut reward = args("127.0.0.1:1", "1GiB");
        reward.listen.static_reward = Some("5 ether".to_owned());
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("quarry.toml");
        for account in ["", "00000000000000000000000000000000000000aa", "0x00aa", "0x0x00"] {
            std::fs::write(&path, format!("[mainnet.supply]\nexcluded = [\"{account}\"]\n")).unwrap();
            let mut args = args("127.0.0.1:1", "1GiB");
            args.store.config = Some(path.clone());
            assert!(error(args).starts_with(&format!("supply.excluded: `{account}` is not an address")));
        }
        assert!(error(reward).starts_with("static-reward: `5 ether` is not WEI or BLOCK:WEI"));
    }
}
