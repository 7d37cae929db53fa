//! Stores over the chain of a fake node: fresh ones to compare with, and waiting for conditions.

use super::balances::told;
use super::scratch;
use quarry::model::{B256, Bundle};
use quarry::store::{OpenOptions, Store, StoreError};
use quarry::sync::{ChainRules, FinalBlocks, Pipeline, SyncError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The rules of a fake node's chain.
pub fn rules(genesis: B256, first_block: u64) -> ChainRules {
    ChainRules::new(1337, genesis, None, first_block, false)
}

/// Opens or makes a small store.
pub fn open(directory: &Path, genesis: B256, first_block: u64) -> Result<Arc<Store>, StoreError> {
    open_with(&options(directory), genesis, first_block)
}

/// The same, opened as `options` say.
pub fn open_with(options: &OpenOptions, genesis: B256, first_block: u64) -> Result<Arc<Store>, StoreError> {
    Store::open_or_create(options, 1337, genesis, Some(first_block))
}

/// How a small store is opened.
pub fn options(directory: &Path) -> OpenOptions {
    OpenOptions {
        cache_bytes: 4 << 20,
        memtable_bytes: 64 << 20,
        ..OpenOptions::new(directory)
    }
}

/// Brings bundles into a store as final blocks.
pub async fn import(store: &Arc<Store>, bundles: &[Bundle], genesis: B256) {
    bring(store, bundles, genesis, FinalBlocks::All).await;
}

/// Brings bundles into a store; those up to `finalized` are final.
pub async fn add(store: &Arc<Store>, bundles: &[Bundle], genesis: B256, finalized: u64) {
    bring(store, bundles, genesis, final_up_to(bundles, finalized)).await;
}

/// Which of these bundles are final, where those up to `finalized` are.
pub fn final_up_to(bundles: &[Bundle], finalized: u64) -> FinalBlocks {
    let mut blocks = bundles.iter().map(|bundle| &bundle.block);
    match blocks.find(|block| block.number() == finalized) {
        Some(last) => FinalBlocks::Named(finalized, last.hash),
        None if bundles.last().is_some_and(|last| last.block.number() < finalized) => FinalBlocks::All,
        None => FinalBlocks::ZeroAlone,
    }
}

async fn bring(store: &Arc<Store>, bundles: &[Bundle], genesis: B256, final_blocks: FinalBlocks) {
    let pipeline = Pipeline {
        rules: rules(genesis, store.identity().first_block),
        final_blocks,
        batch_bytes_max: 1 << 20,
    };
    let (_trigger, mut shutdown) = quarry::shutdown::pair();
    let owned: Vec<Result<Bundle, SyncError>> = bundles.iter().cloned().map(Ok).collect();
    let source = futures_util::stream::iter(owned);
    let (_, result) = pipeline
        .run(store.writer().expect("the one writer"), source, &mut shutdown)
        .await;
    result.expect("valid blocks");
}

/// The digest of a new store of a chain (block 0 first) from `first_block` on.
pub async fn fresh_digest(chain: &[Bundle], first_block: u64) -> B256 {
    let directory = scratch::directory();
    let genesis = chain[0].block.hash;
    let store = open(directory.path(), genesis, first_block).unwrap();
    import(&store, &told(chain, first_block)[first_block as usize..], genesis).await;
    store.view().digest().unwrap()
}

/// How long a condition may take to come true.
pub const DEADLINE: Duration = Duration::from_secs(40);

/// Waits for a condition; fails with `what` after the deadline.
pub async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < DEADLINE, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
