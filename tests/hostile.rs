//! The real binary and clients that mean no good: ten thousand generated requests against the document that it serves,
//! a table of broken ones, floods, slowness, crowds, and the known attacks on HTTP/2. Every answer is one of the
//! contract, nothing dies, and memory stays where it was.
//!
//! `QUARRY_SEED` draws the same requests again, `QUARRY_HOSTILE_REQUESTS` (10,000) draws more.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
#[path = "hostile/crowds.rs"]
mod crowds;
#[path = "hostile/document.rs"]
mod document;
#[path = "hostile/floods.rs"]
mod floods;
#[path = "hostile/generated.rs"]
mod generated;
#[path = "hostile/h2.rs"]
mod h2;
#[path = "hostile/rate.rs"]
mod rate;
#[path = "hostile/table.rs"]
mod table;
#[path = "hostile/wire.rs"]
mod wire;
