//! An empty store of a chain, one for each process that runs a target.

use std::sync::Arc;

use quarry::model::B256;
use quarry::store::{OpenOptions, Store};

/// The first block that it takes.
pub(crate) const FIRST_BLOCK: u64 = 1;

/// The chain.
pub(crate) const CHAIN_ID: u64 = 1;

/// A store in a directory that goes with the guard.
pub(crate) fn store() -> (tempfile::TempDir, Arc<Store>) {
    let directory = tempfile::tempdir().expect("a directory for the store");
    let options = OpenOptions {
        cache_bytes: 4 << 20,
        memtable_bytes: 4 << 20,
        ..OpenOptions::new(directory.path())
    };
    let store = Store::open_or_create(&options, CHAIN_ID, B256::repeat_byte(1), Some(FIRST_BLOCK));
    (directory, store.expect("an empty store"))
}
