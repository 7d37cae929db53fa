//! `quarry checkpoint`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::StoreArgs;
use crate::model::ChainName;

/// What can be done with checkpoints.
#[derive(Debug, Subcommand)]
pub enum Checkpoint {
    /// Copy a chain's store as it is now, beside a running service too: into a new directory, or as a stream.
    Create(CheckpointCreateArgs),
    /// Make a store of a checkpoint, after every file's hash agreed. Never overwrites one.
    Restore(CheckpointRestoreArgs),
    /// Hold every file of a checkpoint against its manifest.
    Verify(CheckpointVerifyArgs),
}

/// `quarry checkpoint create`.
#[derive(Clone, Debug, Args)]
pub struct CheckpointCreateArgs {
    /// The directory to make; `-` writes a stream (tar, zstd) to standard output.
    #[arg(value_name = "DIR|-")]
    pub target: PathBuf,
    /// Which chain's store.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
}

/// `quarry checkpoint restore`.
#[derive(Clone, Debug, Args)]
pub struct CheckpointRestoreArgs {
    /// A directory, or a file that holds a stream; `-` reads a stream from standard input.
    #[arg(value_name = "FROM|-")]
    pub from: PathBuf,
    /// Which chain's store it becomes.
    #[arg(long, default_value = "mainnet")]
    pub chain: ChainName,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub store: StoreArgs,
}

/// `quarry checkpoint verify`.
#[derive(Clone, Debug, Args)]
pub struct CheckpointVerifyArgs {
    /// A directory, or a file that holds a stream; `-` reads a stream from standard input.
    #[arg(value_name = "FROM|-")]
    pub from: PathBuf,
}
