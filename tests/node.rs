//! The `node` room against real chain data, a fake node, and a real development node where there is one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

mod support;

#[path = "node/client.rs"]
mod client;
#[path = "node/contract.rs"]
mod contract;

#[path = "node/data.rs"]
mod data;

#[path = "node/anvil.rs"]
mod anvil;

#[path = "node/fetch.rs"]
mod fetch;

#[path = "node/heads.rs"]
mod heads;

#[path = "node/limits.rs"]
mod limits;

#[path = "node/passing.rs"]
mod passing;

#[path = "node/patience.rs"]
mod patience;

#[path = "node/recorded.rs"]
mod recorded;

#[path = "node/reconnect.rs"]
mod reconnect;

#[path = "support/skipped.rs"]
mod skipped;

#[path = "node/untold.rs"]
mod untold;

#[path = "node/wire.rs"]
mod wire;
