//! The `quarry` command.

use clap::Parser as _;

/// Requests and batches are many small allocations on several threads; measured faster than the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    quarry::app::main(quarry::cli::Cli::parse())
}
