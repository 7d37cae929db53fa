//! The sync engine over a fake node, against fresh indexes and brute force.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

mod support;

#[path = "support/token_checks.rs"]
mod checks;
#[path = "support/lists.rs"]
mod lists;
#[path = "support/token_model.rs"]
mod model;
#[path = "support/participants.rs"]
mod participants;
#[path = "support/plain.rs"]
mod plain;
#[path = "support/token_walks.rs"]
mod walks;

#[path = "sync/answers.rs"]
mod answers;

#[path = "sync/life.rs"]
mod life;

#[path = "sync/stages.rs"]
mod stages;

#[path = "sync/supplied.rs"]
mod supplied;

#[path = "sync/twin.rs"]
mod twin;

#[path = "sync/watch.rs"]
mod watch;

#[path = "sync/rig.rs"]
mod rig;

#[path = "sync/brute.rs"]
mod brute;

#[path = "sync/engine.rs"]
mod engine;

#[path = "sync/contradictions.rs"]
mod contradictions;

#[path = "sync/fills.rs"]
mod fills;

#[path = "sync/finality.rs"]
mod finality;

#[path = "sync/follower.rs"]
mod follower;

#[path = "sync/genesis.rs"]
mod genesis;

#[path = "sync/instant.rs"]
mod instant;

#[path = "sync/lacking.rs"]
mod lacking;

#[path = "sync/faults.rs"]
mod faults;

#[path = "sync/top_calls.rs"]
mod top_calls;

#[path = "sync/recorded.rs"]
mod recorded;

#[path = "sync/simulation.rs"]
mod simulation;
