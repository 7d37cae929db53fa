//! What integration tests share.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

pub mod balances;
pub mod build;
pub mod chain;
pub mod data;
pub mod ending;
pub mod fake_node;
pub mod fake_server;
pub mod fault;
pub mod image;
pub mod index;
pub mod pace;
pub mod played;
pub mod render;
pub mod scratch;
#[allow(
    clippy::duplicate_mod,
    reason = "test programs with and without `binary` use this file"
)]
pub mod signal;
