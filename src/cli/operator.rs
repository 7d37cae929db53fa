//! What operators ask of the program itself: its log, its configuration, its health, its manual.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use super::{Given, RunArgs};

/// What is logged, and how; with every command.
#[derive(Clone, Debug, Default, Args)]
pub struct LogArgs {
    /// Which events are logged: a level (off, error, warn, info, debug, trace), or several of PART=LEVEL, such as
    /// `info,quarry::http::request=off` [default: info].
    #[arg(long, env = "QUARRY_LOG", global = true, value_name = "FILTER")]
    pub log: Option<String>,
    /// How events are logged [default: text].
    #[arg(
        long,
        env = "QUARRY_LOG_FORMAT",
        global = true,
        value_name = "FORMAT",
        value_enum
    )]
    pub log_format: Option<LogFormat>,
}

/// How events are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl LogFormat {
    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Text, Self::Json]
            .into_iter()
            .find(|format| format.as_str() == text)
            .ok_or_else(|| format!("`{text}` is neither `text` nor `json`"))
    }
}

/// `quarry config`.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArgs {
    /// Print URLs of nodes whole, with users, paths and queries, which may hold keys.
    #[arg(long)]
    pub show_secrets: bool,
    /// As a configuration file, or as one JSON object.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: ConfigFormat,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: RunArgs,
}

/// How `quarry config` prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ConfigFormat {
    /// A configuration file, with the origin of each value as a comment.
    #[default]
    Toml,
    /// An object: for each option its value and origin.
    Json,
}

/// `quarry health`.
#[derive(Clone, Debug, Default, Args)]
pub struct HealthArgs {
    /// Ask whether every chain is near its node's head (`/ready`), and not only whether the service answers
    /// (`/health`).
    #[arg(long)]
    pub ready: bool,
    /// Seconds to wait for the answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub timeout: u64,
    /// Address that the service listens on [default: 127.0.0.1:8080].
    #[arg(long, env = "QUARRY_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Configuration file (TOML).
    #[arg(long, env = "QUARRY_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What the environment gave.
    #[arg(skip)]
    pub given: Given,
}

/// `quarry completions`.
#[derive(Clone, Copy, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// `quarry man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// Write quarry.1, quarry-run.1 and so on here; it is made where it is not there.
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}
