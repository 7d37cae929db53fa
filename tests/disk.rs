//! Disks that fail: full ones, and ones that give back other bytes than were written.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
mod support;

#[path = "disk/corruption.rs"]
mod corruption;
#[path = "disk/full.rs"]
mod full;
#[path = "disk/opening.rs"]
mod opening;
