//! What an operator has in hand, tried on the real program: its configuration, log, manual and completions, its health,
//! what it shows on a terminal and tells systemd, how a sync ends, what `quarry inspect` shows, and the files to deploy it with.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
#[path = "operator/configuration.rs"]
mod configuration;
#[path = "operator/deploy.rs"]
mod deploy;
#[path = "operator/export.rs"]
mod export;
#[path = "operator/inspect.rs"]
mod inspect;
#[path = "operator/log.rs"]
mod log;
#[path = "operator/manual.rs"]
mod manual;
#[path = "operator/running.rs"]
mod running;
#[path = "operator/signals.rs"]
mod signals;
mod support;
#[path = "operator/syncing.rs"]
mod syncing;
#[path = "operator/terminal.rs"]
mod terminal;
#[path = "operator/upgrading.rs"]
mod upgrading;
