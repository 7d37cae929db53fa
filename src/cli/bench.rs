//! `quarry bench`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use super::StoreArgs;
use crate::model::ChainName;

/// What scripts read off the end of a run.
const EXIT_CODES: &str = "\
Exit codes:
  0    measured, also where Ctrl-C or the limit ended it early and where nothing could be compared
  1    answers differ from those of another, nothing could be measured, or it failed: one sentence on standard error
  2    the command line was not understood
  130  a second Ctrl-C";

/// More clients at a time measure the machine that both share.
const CLIENTS_MAX: u64 = 1_024;
/// A day.
const SECONDS_MAX: f64 = 86_400.0;

fn seconds(text: &str) -> Result<f64, String> {
    let found = text.parse().ok();
    found
        .filter(|seconds| *seconds > 0.0 && *seconds <= SECONDS_MAX)
        .ok_or_else(|| format!("expected seconds above 0 and up to {SECONDS_MAX}"))
}

/// `quarry bench`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct BenchArgs {
    /// Which chain's store.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    /// Measure over the demo chain, in a temporary directory.
    #[arg(long, conflicts_with_all = ["data_dir", "chain"])]
    pub demo: bool,
    /// A running service of the same store to ask over HTTP, in place of one of our own in this process.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Clients at a time over HTTP, each in a measurement of its own.
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        default_value = "1,4",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=CLIENTS_MAX)
    )]
    pub clients: Vec<usize>,
    /// Seconds of each measurement; less where the limit would not hold all of them.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    pub seconds: f64,
    /// Seconds that all questions together may take. Picking them, which takes a fifth of that (2 to 30 seconds) at most, and loading a database are
    /// not counted.
    #[arg(long, value_name = "S", default_value_t = 600.0, value_parser = seconds)]
    pub limit: f64,
    /// Only questions of one of these names, parts of names or groups (`logs`, `lists`, `points`, `days`).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Print the questions with the parameters picked for this chain, and ask nothing.
    #[arg(long)]
    pub list: bool,
    /// Leave out what is measured with a cold store.
    #[arg(long)]
    pub no_cold: bool,
    /// Measure with a cold store also while another process writes that, which has to read its own pages from the disk again then.
    #[arg(long, conflicts_with = "no_cold")]
    pub cold: bool,
    /// Write every figure to this file; `-` is standard output, the table goes to standard error then.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with plots to this file; it needs no other file and no network.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Pick parameters out of the sample of this seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Ask this node for the same logs by `eth_getLogs`, compare every row, and the times.
    #[arg(long, value_name = "URL")]
    pub against_node: Option<String>,
    /// Load the logs into this PostgreSQL (schema `quarry_bench_<chain>`), ask it the same, compare every row, and the times. One
    /// run at a time.
    #[arg(long, value_name = "URL")]
    pub against_postgres: Option<String>,
    /// Load at most so many logs, those of the first blocks, and compare these.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5_000_000,
        requires = "against_postgres"
    )]
    pub postgres_logs: u64,
    /// Drop the schema however the run ends, in place of leaving it for the next one.
    #[arg(long, requires = "against_postgres")]
    pub postgres_drop: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
}
