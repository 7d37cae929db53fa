//! Wiring: opens what the configuration names, runs it, and stops it.
//!
//! The only room that knows all others. It decides nothing about answers, blocks or bytes.

mod bench;
mod chains;
mod checkpoint;
mod demo;
mod demo_node;
mod demo_sources;
mod export;
mod figures;
mod files;
pub mod front;
mod health;
mod hearing;
mod import;
mod import_facts;
mod inspect;
mod inspect_key;
mod manual;
mod notify;
mod process;
mod progress;
mod pulse;
mod replica;
mod run;
pub mod service;
mod stderr;
mod supervisor;
mod verify;
mod verify_node;

use crate::bench::figures::differing;
use crate::cli::{Cli, Command, ConfigFormat, Export, Import, LogArgs};
use crate::config::{Config, ConfigError, LogConfig};
use crate::http::REQUEST_TARGET;
use crate::model::{ChainName, ImportKind};
use crate::query::QueryError;
use crate::store::StoreError;
use crate::sync::SyncError;
use crate::sync::genesis::GenesisError;

/// Why a command failed; one sentence each.
#[derive(Debug, thiserror::Error)]
pub enum AppError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sync.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The read side.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The genesis file.
    #[error(transparent)]
    Genesis(#[from] GenesisError),
    /// A recorded chain.
    #[error(transparent)]
    Recorded(#[from] crate::node::recorded::RecordedError),
    /// A file or socket.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// An audit found something wrong.
    #[error("{0} mismatches")]
    Mismatches(u64),
    /// An audit could not ask the node all that it was to: what it found wrong, what was not compared, and why.
    #[error("{0}")]
    Uncompared(String),
    /// Answers of another than the service are others.
    #[error("{}", differing(*.0, "answer"))]
    Differing(u64),
    /// The database that is compared with.
    #[error(transparent)]
    Postgres(#[from] crate::bench::against::postgres::PostgresError),
    /// A service that is asked is not well, or does not answer.
    #[error("{0}")]
    Unwell(String),
    /// The end was asked for before the work was done.
    #[error(
        "{0}: stopped before the block that was asked for was reached; the same command goes on from here"
    )]
    Interrupted(ChainName),
    /// A service ended, and not all that it had taken in is on the disk.
    #[error("{0}: {1}; what is missing is fetched again")]
    Unwritten(ChainName, SyncError),
    /// Anything else that is the user's to mend.
    #[error("{0}")]
    Usage(String),
    /// A part of the process failed, which is quarry's fault.
    #[error("{0}")]
    Died(String),
    /// Options that were not understood: the same command fails again.
    #[error("{0}")]
    NotUnderstood(String),
    /// A checkpoint failed.
    #[error(transparent)]
    Checkpoint(#[from] crate::checkpoint::CheckpointError),
    /// An import of facts failed.
    #[error(transparent)]
    Import(#[from] crate::import::ImportError),
}

impl AppError {
    fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    fn died(error: &tokio::task::JoinError) -> Self {
        Self::Died(format!("a worker died: {error}"))
    }
}

/// The exit code of a command line that was not understood (clap's), and of values that are none: the same command fails again.
const MISCONFIGURED: u8 = 2;

/// Says so, and how to end: a file that cannot be read may be there the next time.
fn misconfigured(error: &ConfigError) -> u8 {
    let sentence = error.to_string();
    match error {
        ConfigError::Read { .. } => process::fail(&sentence),
        ConfigError::Parse { .. } | ConfigError::Value { .. } => not_understood(&sentence),
    }
}

fn not_understood(sentence: &str) -> u8 {
    process::fail(sentence);
    MISCONFIGURED
}

/// Runs a command to its end, and ends the process; the exit code is for scripts.
pub fn main(cli: Cli) -> ! {
    let code = command(cli);
    process::end(code.into(), stderr::PATIENCE)
}

fn command(cli: Cli) -> u8 {
    let log = match LogConfig::merge(&cli.log, cli.config.as_deref(), &cli.given) {
        Ok(log) => log,
        Err(error) => return misconfigured(&error),
    };
    let mut filter = log.filter;
    if matches!(cli.command, Command::Bench(_)) {
        // A line for each of its own requests would be measured with them; who names the target gets them.
        filter = format!("{REQUEST_TARGET}=warn,{filter}");
    }
    if let Err(sentence) = process::init_log(&filter, log.format) {
        return not_understood(&sentence);
    }
    warn_of_variables(&cli);
    files::raise();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return process::fail(&format!("cannot start: {error}")),
    };
    let outcome = runtime.block_on(dispatch(cli.command, &cli.log));
    // Threads that still read or flush are waited for; requests were drained before.
    runtime.shutdown_timeout(std::time::Duration::from_secs(2));
    match outcome.and_then(|()| process::check_output()) {
        Ok(()) => 0,
        Err(AppError::Config(error)) => misconfigured(&error),
        Err(AppError::NotUnderstood(sentence)) => not_understood(&sentence),
        Err(error) => process::fail(&error.to_string()),
    }
}

/// Says so where a variable is none of ours: what it was to say is not heard. The manual and completions heed none.
fn warn_of_variables(cli: &Cli) {
    if matches!(cli.command, Command::Completions(_) | Command::Man(_)) {
        return;
    }
    for sentence in cli.given.unknown() {
        tracing::warn!("{sentence}");
    }
}

async fn dispatch(command: Command, log: &LogArgs) -> Result<(), AppError> {
    if matches!(
        command,
        Command::Verify(_) | Command::Inspect(_) | Command::Migrate(_)
    ) {
        process::end_on_signals()?;
    }
    match command {
        Command::Run(args) => Box::pin(run::run(Config::run(&args)?)).await,
        Command::Demo(args) => Box::pin(demo::demo(&args)).await,
        Command::Sync(args) => Box::pin(run::sync(Config::run(&args.settings())?, args.to)).await,
        Command::Serve(args) => {
            let config = Config::run(&args.settings())?;
            if args.secondary == Some(true) {
                Box::pin(replica::serve(config)).await
            } else {
                Box::pin(run::serve(config)).await
            }
        }
        Command::Import(Import::Chain(args)) => Box::pin(import::chain(&args)).await,
        Command::Import(Import::Prices(args)) => {
            import_facts::command(args, ImportKind::Prices, crate::import::prices).await
        }
        Command::Import(Import::Tokens(args)) => {
            import_facts::command(args, ImportKind::Tokens, crate::import::tokens).await
        }
        Command::Import(Import::Contracts(args)) => Box::pin(import_facts::contracts(args)).await,
        Command::Export(Export::Chain(args)) => Box::pin(export::chain(args)).await,
        Command::Checkpoint(command) => Box::pin(checkpoint::command(command)).await,
        Command::Verify(args) => Box::pin(verify::verify(args)).await,
        Command::Bench(args) => Box::pin(bench::bench(*args)).await,
        Command::Inspect(args) => process::blocking(move || inspect::inspect(&args)).await,
        Command::Migrate(args) => process::blocking(move || inspect::migrate(&args)).await,
        Command::Config(args) => {
            let report = Config::report(&args.run, log)?;
            run::check_nodes(&Config::run(&args.run)?)?;
            let text = match args.format {
                ConfigFormat::Toml => report.to_toml(args.show_secrets),
                ConfigFormat::Json => report.to_json(args.show_secrets),
            };
            process::say(text.trim_end());
            Ok(())
        }
        Command::Openapi => {
            process::say(&crate::api::render_openapi().to_string());
            Ok(())
        }
        Command::Health(args) => health::health(&args).await,
        Command::Completions(args) => manual::completions(args),
        Command::Man(args) => manual::man(args.directory.as_deref()),
    }
}
