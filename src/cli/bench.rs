//! `quarry bench`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

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

/// `--demo`: the chain that ships in the binary, in the place of a store. A directory of stores may not be named beside it on the command line;
/// one that the environment names, as in the image that ships, is for other commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demo(pub bool);

const DEMO: &str = "demo";
/// The option that it is held against, as [`StoreArgs`] has it.
const DATA_DIR: &str = "data_dir";

impl Args for Demo {
    fn augment_args(command: Command) -> Command {
        command.arg(
            Arg::new(DEMO)
                .long(DEMO)
                .action(ArgAction::SetTrue)
                .conflicts_with("chain")
                .help("Measure over the demo chain, in a temporary directory"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Demo {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let is_asked = matches.get_flag(DEMO);
        // Clap takes a value of the environment for one that was asked for.
        if is_asked && matches.value_source(DATA_DIR) == Some(ValueSource::CommandLine) {
            let mut error: clap::Error = clap::Error::new(ErrorKind::ArgumentConflict);
            let named = |name: &str| ContextValue::String(name.to_owned());
            error.insert(ContextKind::InvalidArg, named("--demo"));
            error.insert(ContextKind::PriorArg, named("--data-dir <DIR>"));
            return Err(error);
        }
        Ok(Self(is_asked))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `quarry bench`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct BenchArgs {
    /// Which chain's store.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    // Before the store's options: what was read is no longer there for those behind it.
    #[command(flatten)]
    #[allow(missing_docs)]
    pub demo: Demo,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::Cli;
    use super::*;

    /// The demo with these options, where the environment names the directory of the stores.
    fn demo(more: &[&str]) -> Result<Demo, ErrorKind> {
        // The environment of a test's process is everybody's: a variable that it has.
        let of_path = |arg: Arg| arg.env("PATH");
        let cli = Cli::command().mut_subcommand("bench", |bench| bench.mut_arg(DATA_DIR, of_path));
        let args = [&["quarry", "bench", "--demo"][..], more].concat();
        let read = cli
            .try_get_matches_from(args)
            .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
        match read.map_err(|error| error.kind())?.command {
            super::super::Command::Bench(args) => {
                assert!(args.store.data_dir.is_some());
                Ok(args.demo)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_demo_minds_a_directory_of_the_command_line_alone() {
        assert_eq!(demo(&[]), Ok(Demo(true)));
        for more in [["--data-dir", "stores"], ["--chain", "mainnet"]] {
            assert_eq!(demo(&more), Err(ErrorKind::ArgumentConflict), "{more:?}");
        }
    }
}
