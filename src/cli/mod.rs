//! The command line: what can be asked for, in clap's terms. Values are merged in `config`.

mod bench;
mod checkpoint;
mod given;
mod manual;
mod operator;
mod settings;

use std::path::PathBuf;

pub use bench::BenchArgs;
pub use checkpoint::{Checkpoint, CheckpointCreateArgs, CheckpointRestoreArgs, CheckpointVerifyArgs};
use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand};
pub use given::Given;
pub(crate) use given::{flag, variable};
pub use manual::{completions, man_page, man_pages};
pub use operator::{CompletionsArgs, ConfigArgs, ConfigFormat, HealthArgs, LogArgs, LogFormat, ManArgs};

use crate::model::ChainName;

/// A read-only explorer API for EVM chains, beside an archive node.
#[derive(Debug, Parser)]
#[command(
    name = "quarry",
    version,
    about,
    arg_required_else_help = true,
    propagate_version = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub log: LogArgs,
    /// The configuration file that the command was given.
    #[arg(skip)]
    pub config: Option<PathBuf>,
    /// What the environment gave.
    #[arg(skip)]
    pub given: Given,
}

impl Cli {
    /// Reads the command line and the environment; ends the process where they are not understood.
    #[must_use]
    pub fn read() -> Self {
        given::read()
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sync from a node and serve, until stopped.
    Run(RunArgs),
    /// Serve a recorded chain that ships in the binary: no node needed.
    Demo(DemoArgs),
    /// Sync from a node up to a block, then exit.
    Sync(SyncArgs),
    /// Serve what is stored, without syncing.
    Serve(ServeArgs),
    /// Bring a recorded chain into the store, or beside it what a chain does not tell: prices, tokens, contracts' sources.
    #[command(subcommand)]
    Import(Import),
    /// Write what is stored to a file.
    #[command(subcommand)]
    Export(Export),
    /// Copy a chain's store, beside a running service too, and restore it elsewhere.
    #[command(subcommand)]
    Checkpoint(Checkpoint),
    /// Audit the store against itself and, with a node, against the node; exit code 1 when anything is wrong.
    Verify(VerifyArgs),
    /// Measure log and topic queries and others: latencies and throughput, in process and over HTTP, warm and cold;
    /// against a node or PostgreSQL with the same logs; exit code 1 when their answers differ.
    Bench(Box<BenchArgs>),
    /// Show what a store holds: how far it is, tables with row counts and sizes, one row decoded.
    Inspect(InspectArgs),
    /// Bring a store of an older layout up to this quarry's, where that needs no blocks.
    Migrate(MigrateArgs),
    /// Print the effective configuration and where each value came from.
    Config(ConfigArgs),
    /// Print the description of all operations for programs (OpenAPI 3.1), as `/openapi.json` has it.
    Openapi,
    /// Ask a running service whether it is well; exit code 1 when it is not.
    Health(HealthArgs),
    /// Print the completions of a shell.
    Completions(CompletionsArgs),
    /// Print the manual page, or write the pages of all commands into a directory.
    Man(ManArgs),
}

impl Command {
    /// What it was given of its store; nothing where it has none.
    fn store(&mut self) -> Option<&mut StoreArgs> {
        Some(match self {
            Self::Run(args) => &mut args.store,
            Self::Sync(args) => &mut args.store,
            Self::Serve(args) => &mut args.store,
            Self::Import(Import::Chain(args)) => &mut args.store,
            Self::Import(Import::Prices(args) | Import::Tokens(args)) => &mut args.store,
            Self::Import(Import::Contracts(args)) => &mut args.facts.store,
            Self::Export(Export::Chain(args)) => &mut args.store,
            Self::Verify(args) => &mut args.store,
            Self::Bench(args) => &mut args.store,
            Self::Inspect(args) => &mut args.store,
            Self::Migrate(args) => &mut args.store,
            Self::Checkpoint(Checkpoint::Create(args)) => &mut args.store,
            Self::Checkpoint(Checkpoint::Restore(args)) => &mut args.store,
            Self::Config(args) => &mut args.run.store,
            Self::Checkpoint(Checkpoint::Verify(_))
            | Self::Demo(_)
            | Self::Openapi
            | Self::Health(_)
            | Self::Completions(_)
            | Self::Man(_) => return None,
        })
    }
}

/// Where stores lie and how much memory they may use.
#[derive(Clone, Debug, Default, Args)]
pub struct StoreArgs {
    /// Directory of the stores [default: ./quarry-data].
    #[arg(long, env = "QUARRY_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Memory for cached blocks of the store, all chains together [default: 1GiB].
    #[arg(long, env = "QUARRY_CACHE_SIZE", value_name = "SIZE")]
    pub cache_size: Option<String>,
    /// Memory that backfill may use besides the cache: blocks in flight, batches, memtables; for each chain
    /// (`auto` unless said: an eighth of the machine's, or of what its control group has, 256MiB to 4GiB).
    #[arg(long, env = "QUARRY_BACKFILL_MEMORY", value_name = "SIZE")]
    pub backfill_memory: Option<String>,
    /// Configuration file (TOML).
    #[arg(long, env = "QUARRY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What the environment gave.
    #[arg(skip)]
    pub given: Given,
}

/// Which nodes to sync from, and how.
#[derive(Clone, Debug, Default, Args)]
pub struct NodeArgs {
    /// Node of the chain `mainnet`: http(s)://, ws(s):// or an IPC path.
    #[arg(long, env = "QUARRY_MAINNET_RPC", value_name = "URL")]
    pub mainnet_rpc: Option<String>,
    /// Node of the chain `testnet`.
    #[arg(long, env = "QUARRY_TESTNET_RPC", value_name = "URL")]
    pub testnet_rpc: Option<String>,
    /// First block to store; fixed once a store is made [default: 0].
    #[arg(long, env = "QUARRY_START_BLOCK", value_name = "N")]
    pub start_block: Option<u64>,
    /// Genesis file (geth's format): the fork schedule, and what accounts hold (balances, nonces) in block 0. Of the chain
    /// that --chain names, where the command has it, else of `mainnet` or the only one that has a node.
    #[arg(long, env = "QUARRY_GENESIS", value_name = "FILE")]
    pub genesis: Option<PathBuf>,
    /// Most requests in flight to a node [default: 32].
    #[arg(long, env = "QUARRY_RPC_CONCURRENCY", value_name = "N")]
    pub rpc_concurrency: Option<usize>,
    /// Questions a second at most about tokens: names, and whether events explain balances. 0: none, and what
    /// is not judged yet is asked of the node by every request [default: 100].
    #[arg(long, env = "QUARRY_TOKEN_CHECKS", value_name = "N")]
    pub token_checks: Option<u32>,
    /// Blocks below the last stored one that count as final where a node names no `finalized` block; more than 4096 count
    /// as 4096 [default: 64].
    #[arg(long, env = "QUARRY_FINALITY_DEPTH", value_name = "N")]
    pub finality_depth: Option<u64>,
    /// How long a node may contradict what is final, or be of another chain, before the sync stops; a day at most
    /// [default: 15].
    #[arg(long, env = "QUARRY_CONTRADICTION_WAIT", value_name = "SECONDS")]
    pub contradiction_wait: Option<u64>,
    /// Do not check hashes, roots and blooms: for chains whose encoding is not Ethereum's. It holds for every chain that is
    /// synced; for one alone set trust_node in its section of the file.
    #[arg(long, env = "QUARRY_TRUST_NODE", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub trust_node: Option<bool>,
}

/// What blocks bring, where that is not known of the chain: for every command that fills a store or serves one.
#[derive(Clone, Debug, Default, Args)]
pub struct RewardArgs {
    /// Wei that blocks with difficulty bring by the protocol, where it is not well known: WEI, or BLOCK:WEI from a block on, and
    /// several with commas between; or ecip1017:BLOCKS, eras of so many blocks as Ethereum Classic has them. Of the chain that
    /// --chain names, where the command has it, else of `mainnet` or the only one that has a node. A new store remembers it.
    #[arg(long, env = "QUARRY_STATIC_REWARD", value_name = "BLOCK:WEI")]
    pub static_reward: Option<String>,
}

/// Where to listen, and what answers depend on besides the store.
#[derive(Clone, Debug, Default, Args)]
pub struct ListenArgs {
    /// Address to serve on [default: 127.0.0.1:8080].
    #[arg(long, env = "QUARRY_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Connections served at once; one more is told 503 and closed. Each needs a file descriptor [default: 4096].
    #[arg(long, env = "QUARRY_MAX_CONNECTIONS", value_name = "N")]
    pub max_connections: Option<usize>,
    /// How long a client may take to send a request's head, keep a connection idle, or take nothing of its answer
    /// [default: 30].
    #[arg(long, env = "QUARRY_CLIENT_TIMEOUT", value_name = "SECONDS")]
    pub client_timeout: Option<u64>,
    /// Requests a second of one client, by IPv4 address or IPv6 /64, with a burst of two seconds' worth; one more is
    /// told 429. 0: no limit [default: 0].
    #[arg(long, env = "QUARRY_RATE_LIMIT", value_name = "N")]
    pub rate_limit: Option<u32>,
    /// A proxy stands before the service: the last address of `X-Forwarded-For` is the client whose rate is limited.
    /// Without a proxy clients could name any address.
    #[arg(long, env = "QUARRY_TRUST_PROXY", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub trust_proxy: Option<bool>,
    /// JSON-RPC (`/rpc`) passes methods of state that the store does not answer (eth_call, eth_getCode, eth_estimateGas and
    /// a few more) on to the chain's node. Nothing that writes or administers is ever passed on.
    #[arg(long, env = "QUARRY_RPC_PASSTHROUGH", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub rpc_passthrough: Option<bool>,
}

/// `quarry run`, and what of it other commands take.
#[derive(Clone, Debug, Default, Args)]
pub struct RunArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub node: NodeArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub reward: RewardArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub listen: ListenArgs,
}

/// `quarry demo`.
#[derive(Clone, Debug, Args)]
pub struct DemoArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub listen: ListenArgs,
    /// Keep the demo's store here instead of in a temporary directory. `QUARRY_DATA_DIR` is for other commands: there lie stores of
    /// other chains.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// What the environment gave.
    #[arg(skip)]
    pub given: Given,
}

/// `quarry sync`.
#[derive(Clone, Debug, Args)]
pub struct SyncArgs {
    /// Last block to sync, or `latest`.
    #[arg(long, value_name = "N|latest")]
    pub to: SyncTo,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub node: NodeArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub reward: RewardArgs,
}

/// How far `quarry sync` goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncTo {
    /// To this block.
    Number(u64),
    /// To the node's head at the start.
    Latest,
}

impl std::str::FromStr for SyncTo {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "latest" {
            return Ok(Self::Latest);
        }
        text.parse()
            .map(Self::Number)
            .map_err(|_| "expected a block number or `latest`".to_owned())
    }
}

/// `quarry serve`.
#[derive(Clone, Debug, Args)]
pub struct ServeArgs {
    /// Follow the process that writes the stores: a read-only replica on the same disk.
    #[arg(long, env = "QUARRY_SECONDARY", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub secondary: Option<bool>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub reward: RewardArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub listen: ListenArgs,
}

/// What can be imported.
#[derive(Debug, Subcommand)]
pub enum Import {
    /// A recorded chain: JSON lines, zstd-compressed or plain.
    Chain(ImportChainArgs),
    /// Dated prices: CSV with the header `time,asset,usd`, or JSON of such objects. Beside a running service too.
    Prices(ImportFactsArgs),
    /// Facts about tokens and their projects: a list of the Token Lists standard, or a file or directory of
    /// ethereum-lists. Beside a running service too.
    Tokens(ImportFactsArgs),
    /// Sources and ABIs of contracts: a repository tree as Sourcify keeps it, or one file for one contract.
    Contracts(ImportContractsArgs),
}

/// `quarry import contracts`.
#[derive(Clone, Debug, Args)]
pub struct ImportContractsArgs {
    /// The contract, where the path does not tell it: for a standard-JSON file, an artifact, an ABI, or the directory
    /// of one contract.
    #[arg(long, value_name = "0x...")]
    pub address: Option<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub facts: ImportFactsArgs,
}

/// What imports of facts beside the chain take.
#[derive(Clone, Debug, Args)]
pub struct ImportFactsArgs {
    /// The file or directory.
    pub path: PathBuf,
    /// Which chain's store it is for.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    /// Exit with 1 where an entry was refused; all others are taken nevertheless.
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
}

/// `quarry import chain`.
#[derive(Clone, Debug, Args)]
pub struct ImportChainArgs {
    /// The file.
    pub file: PathBuf,
    /// Which chain's store it goes to.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    /// Genesis file (geth's format): gives block 0 where the recording begins at block 1, the fork schedule, and what
    /// accounts hold (balances, nonces) in block 0.
    #[arg(long, env = "QUARRY_GENESIS", value_name = "FILE")]
    pub genesis: Option<PathBuf>,
    /// Chain id, where neither the genesis file nor the recording tells it.
    #[arg(long, value_name = "N")]
    pub chain_id: Option<u64>,
    /// Do not check hashes, roots and blooms.
    #[arg(long, env = "QUARRY_TRUST_NODE", value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", hide_possible_values = true, value_parser = BoolishValueParser::new())]
    pub trust_node: Option<bool>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub reward: RewardArgs,
}

/// What can be exported.
#[derive(Debug, Subcommand)]
pub enum Export {
    /// The stored blocks as a recorded chain: JSON lines, zstd-compressed.
    Chain(ExportChainArgs),
}

/// `quarry export chain`.
#[derive(Clone, Debug, Args)]
pub struct ExportChainArgs {
    /// The file to write, which must not exist; `-` for standard output. Either is zstd-compressed, whatever the file is called.
    pub file: PathBuf,
    /// Which chain's store.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    /// First block [default: the first stored].
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,
    /// Last block [default: the indexed head].
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
}

/// `quarry verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// Which chain's store.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    /// First block [default: the first stored].
    #[arg(long, value_name = "N")]
    pub from: Option<u64>,
    /// Last block [default: the indexed head].
    #[arg(long, value_name = "N")]
    pub to: Option<u64>,
    /// Random balances and supplies that are held against the node, where one is given; an archive node.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub samples: usize,
    /// Draw the samples by this seed again.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub node: NodeArgs,
}

/// `quarry migrate`.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// Which chain's store.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
}

/// `quarry inspect`.
#[derive(Clone, Debug, Args)]
pub struct InspectArgs {
    /// Which chain's store.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    /// Read every row: exact counts, bytes and digests. Takes as long as reading the store.
    #[arg(long)]
    pub full: bool,
    /// Show one row of a table, decoded, or the next one. Parts of the key are separated by `/`, as docs/SCHEMA.md
    /// draws them: numbers, `0x` and hex, names: `--key blocks 17`, `--key balances 0x.../17`, `--key meta checkpoint`.
    #[arg(long, num_args = 2, value_names = ["TABLE", "KEY"])]
    pub key: Option<Vec<String>>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
}
