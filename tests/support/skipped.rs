//! What is not tested here, and why.

#![allow(unreachable_pub, reason = "each test binary has it at a place of its own")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

use std::io::Write as _;

/// Says why a test, or a part of it, is not run on this machine. Nothing is shown of what a test prints that passes: the sentence goes to
/// the file that `QUARRY_SKIPPED` names, too, which `make test` shows at its end.
pub fn skipped(why: &str) {
    println!("skipped: {why}");
    let Some(path) = std::env::var_os("QUARRY_SKIPPED") else {
        return;
    };
    // A test's thread has its name.
    let thread = std::thread::current();
    let line = format!(
        "{}::{}: {why}\n",
        env!("CARGO_CRATE_NAME"),
        thread.name().unwrap_or("?")
    );
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    file.unwrap().write_all(line.as_bytes()).unwrap();
}
