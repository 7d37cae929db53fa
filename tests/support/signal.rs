//! Signals to processes that tests started. The program `kill` is not everywhere.

#![allow(unreachable_pub, reason = "each test binary has it at a place of its own")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by ending")]

use std::process::Child;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

/// Sends a signal to a process, which may have ended and not been waited for yet.
#[track_caller]
pub fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}
