//! The sync engine over a fake node, against fresh indexes and brute force.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

mod support;

#[path = "sync/rig.rs"]
mod rig;

#[path = "sync/brute.rs"]
mod brute;

#[path = "sync/engine.rs"]
mod engine;

#[path = "sync/faults.rs"]
mod faults;

#[path = "sync/recorded.rs"]
mod recorded;

#[path = "sync/simulation.rs"]
mod simulation;
