//! The real binary, killed at random moments and cut off from power: what it leaves is whole.
//!
//! `QUARRY_KILLS=N` for so many kills in all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

mod support;

#[path = "crash/absence.rs"]
mod absence;
#[path = "crash/compaction.rs"]
mod compaction;
#[path = "crash/imports.rs"]
mod imports;
#[path = "crash/kills.rs"]
mod kills;
#[path = "crash/power.rs"]
mod power;
#[path = "crash/process.rs"]
mod process;
