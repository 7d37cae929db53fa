//! The effective configuration: flag, then environment, then file, then default.
//!
//! clap merges flags and environment; this room reads the file, fills in the rest and checks it.

mod backfill;
mod chain;
mod file;
mod log;
mod merge;
mod prices;
mod report;
mod service;
mod size;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use backfill::BackfillMemory;
pub use chain::ChainConfig;
pub use file::{ChainFile, ConfigFile};
pub use log::LogConfig;
pub use merge::{Origin, Setting};
pub use report::Report;
pub use service::ServiceConfig;
pub use size::ByteSize;

use crate::cli::{Given, LogArgs, RunArgs, StoreArgs};
use crate::model::{Address, ChainName, StatedPrices, StaticRewards};
use merge::{Merge, as_is};

/// The address of a service that nobody gave one.
const LISTEN: &str = "127.0.0.1:8080";

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
    #[error("configuration `{}`, line {line}: {reason}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where in it, from 1.
        line: usize,
        /// Why; nothing of the line itself, which may hold a key.
        reason: String,
    },
    /// A value makes no sense.
    #[error("{name}: {reason}")]
    Value {
        /// The option.
        name: String,
        /// What is wrong with its value.
        reason: String,
    },
}

/// Less memory than this is a unit forgotten: a backfill would commit block by block.
const MEMORY_LEAST: ByteSize = ByteSize(1 << 20);
/// More is no memory: RocksDB ends the process where it is to make a cache of it.
const MEMORY_MOST: ByteSize = ByteSize(4 << 40);
/// A size that the machine decides, where there is one.
const AUTO: &str = "auto";
type Auto = Option<fn() -> ByteSize>;

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
    /// The chains, in order, whether or not they have a node.
    pub chains: Vec<ChainConfig>,
    /// Static rewards that the operator states, by chain; a chain that is well known needs none.
    pub static_rewards: Vec<(ChainName, StaticRewards)>,
    /// Genesis files, by chain.
    pub genesis: Vec<(ChainName, PathBuf)>,
    /// Accounts whose coins do not circulate, by chain, each once.
    pub excluded: Vec<(ChainName, Vec<Address>)>,
    /// What the operator states of prices, by chain.
    pub prices: Vec<(ChainName, StatedPrices)>,
}

impl Config {
    /// Merges what `quarry run` was given, or another command of it, with the file and the defaults.
    pub fn run(args: &RunArgs) -> Result<Self, ConfigError> {
        Self::merge(args, None)
    }

    /// The same for a command about one chain. What is typed beside its name is of that chain; variables are of the one that
    /// they are of with `quarry run`.
    pub fn of_chain(chain: ChainName, args: &RunArgs) -> Result<Self, ConfigError> {
        Self::merge(args, Some(chain))
    }

    /// The settings of a command that only needs a store.
    pub fn of_store(store: &StoreArgs) -> Result<Self, ConfigError> {
        Self::run(&RunArgs {
            store: store.clone(),
            ..RunArgs::default()
        })
    }

    fn merge(args: &RunArgs, named: Option<ChainName>) -> Result<Self, ConfigError> {
        let path = args.store.config.as_deref();
        let file = read_file(path)?;
        Self::merged(&mut Merge::new(&args.store.given, path), &file, args, named)
    }

    /// Where each value of `quarry run` comes from.
    pub fn report(args: &RunArgs, log: &LogArgs) -> Result<Report, ConfigError> {
        let (given, path) = (&args.store.given, args.store.config.as_deref());
        let file = read_file(path)?;
        let mut merge = Merge::new(given, path);
        LogConfig::note(&mut merge, log, &file)?;
        Self::merged(&mut merge, &file, args, None)?;
        Ok(Report::new(merge.into_settings(), given.unknown()))
    }

    /// The address that a service with this configuration listens on.
    pub fn address(
        listen: Option<&str>,
        path: Option<&Path>,
        given: &Given,
    ) -> Result<SocketAddr, ConfigError> {
        let file = read_file(path)?;
        listen_address(&mut Merge::new(given, path), listen, &file)
    }

    fn merged(
        merge: &mut Merge<'_>,
        file: &ConfigFile,
        args: &RunArgs,
        named: Option<ChainName>,
    ) -> Result<Self, ConfigError> {
        let (store, listen) = (&args.store, &args.listen);
        let data_dir = merge.value(
            "data_dir",
            ("data_dir", store.data_dir.clone()),
            file.data_dir.clone(),
            PathBuf::from("quarry-data"),
            as_is,
        )?;
        let address = listen_address(merge, listen.listen.as_deref(), file)?;
        let mut size =
            |id: &'static str, flag: &Option<String>, file: &Option<String>, default: &str, auto: Auto| {
                merge.value(
                    id,
                    (id, flag.clone()),
                    file.clone(),
                    default.to_owned(),
                    |text| match auto {
                        Some(size) if text.trim() == AUTO => Ok(size()),
                        _ => text
                            .parse::<ByteSize>()?
                            .at_least(MEMORY_LEAST)?
                            .at_most(MEMORY_MOST),
                    },
                )
            };
        let cache_size = size("cache_size", &store.cache_size, &file.cache_size, "1GiB", None)?;
        let (flag, stated) = (&store.backfill_memory, &file.backfill_memory);
        let backfill_memory = size(
            "backfill_memory",
            flag,
            stated,
            AUTO,
            Some(backfill::backfill_memory),
        )?;
        let service = ServiceConfig::merge(merge, listen, file, cache_size)?;
        let sections = [&file.mainnet, &file.testnet];
        let nodes = chain::nodes(merge, &args.node, sections);
        // Options of one chain alone speak of `mainnet`, or of the only one that has a node; flags of the one that is named beside them.
        let only = match nodes.each_ref().map(|(rpc, _)| rpc.is_some()) {
            [false, true] => ChainName::Testnet,
            _ => ChainName::Mainnet,
        };
        let given = merge.given();
        let meant = |id: &str| named.filter(|_| !given.is_environment(id)).unwrap_or(only);
        let mut config = Self {
            data_dir,
            listen: address,
            service,
            cache_size,
            backfill_memory,
            chains: Vec::new(),
            static_rewards: Vec::new(),
            genesis: Vec::new(),
            excluded: Vec::new(),
            prices: Vec::new(),
        };
        for ((name, section), rpc) in ChainName::ALL.into_iter().zip(sections).zip(nodes) {
            let stated = chain::merge(merge, name, section, rpc, &|id| meant(id) == name, args)?;
            config
                .static_rewards
                .extend(stated.static_rewards.map(|rewards| (name, rewards)));
            config.genesis.extend(stated.genesis.map(|path| (name, path)));
            config.excluded.push((name, stated.excluded));
            if stated.prices != StatedPrices::default() {
                config.prices.push((name, stated.prices));
            }
            config.chains.push(stated.chain);
        }
        Ok(config)
    }

    /// The chains that have a node, in order.
    pub fn synced(&self) -> impl Iterator<Item = &ChainConfig> {
        self.chains.iter().filter(|chain| chain.rpc.is_some())
    }

    /// The settings of a chain.
    #[must_use]
    pub fn chain(&self, name: ChainName) -> Option<&ChainConfig> {
        self.chains.iter().find(|chain| chain.name == name)
    }

    /// Whether hashes and roots of a chain are not checked.
    #[must_use]
    pub fn trusts_node(&self, chain: ChainName) -> bool {
        self.chain(chain).is_some_and(|chain| chain.trust_node)
    }

    /// The static rewards that the operator states for a chain.
    #[must_use]
    pub fn static_rewards_of(&self, chain: ChainName) -> Option<&StaticRewards> {
        let stated = self.static_rewards.iter().find(|(name, _)| *name == chain);
        stated.map(|(_, rewards)| rewards)
    }

    /// The genesis file of a chain.
    #[must_use]
    pub fn genesis_of(&self, chain: ChainName) -> Option<&Path> {
        let stated = self.genesis.iter().find(|(name, _)| *name == chain);
        stated.map(|(_, path)| path.as_path())
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
}

fn read_file(path: Option<&Path>) -> Result<ConfigFile, ConfigError> {
    Ok(path.map(ConfigFile::load).transpose()?.unwrap_or_default())
}

fn listen_address(
    merge: &mut Merge<'_>,
    listen: Option<&str>,
    file: &ConfigFile,
) -> Result<SocketAddr, ConfigError> {
    let flag = ("listen", listen.map(str::to_owned));
    merge.value("listen", flag, file.listen.clone(), LISTEN.to_owned(), |text| {
        text.parse()
            .map_err(|_| format!("`{text}` is not an address and port such as {LISTEN}"))
    })
}

/// The directory of a chain's store under a data directory.
#[must_use]
pub fn store_dir(data_dir: &Path, chain: ChainName) -> PathBuf {
    data_dir.join(chain.as_str())
}

#[cfg(test)]
mod tests;
