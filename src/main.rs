//! The `quarry` command.

/// Requests and batches are many small allocations on several threads; measured faster than the system's.
/// It serves RocksDB too (feature `override`), which takes writes and memtables from what was just given back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    quarry::app::main(quarry::cli::Cli::read())
}
