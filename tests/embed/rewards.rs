//! Rewards that a genesis file states of a store which was begun without it.

use quarry::model::{Bundle, U256};
use quarry::service::{BlockFeed, ChainConfig, Service};
use quarry::sync::{genesis, header_hash};

use crate::{MAINNET, ask, blocks, config, demo, scratch};

/// The first blocks of the demo as those of a chain that is mined.
fn mined(count: usize) -> Vec<Bundle> {
    let mut bundles = blocks(count);
    let mut parent = bundles[0].block.hash;
    for bundle in &mut bundles[1..] {
        bundle.block.header.parent_hash = parent;
        bundle.block.header.difficulty = U256::from(131_072);
        parent = header_hash(&bundle.block.header);
        bundle.block.hash = parent;
    }
    bundles
}

/// Answers go by the schedule from the block on that the ledger goes by it, and not from the next start on.
#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_that_is_stated_later_counts_at_once() {
    let (blocks, directory) = (mined(5), scratch::directory());
    let bare = || ChainConfig::new(MAINNET, 31_337, blocks[0].block.hash).trusting_the_source();
    let stated = || {
        let mut genesis = genesis::load(&demo("genesis.json")).unwrap();
        genesis.forks.constantinople = Some(0);
        bare().with_genesis(genesis)
    };
    let start = async |chain: ChainConfig, blocks: &[Bundle]| {
        let feed = BlockFeed::new(100);
        let fed = config(directory.path(), chain.fed_by(feed.clone()));
        let service = Service::start(fed).await.unwrap();
        for bundle in blocks {
            feed.push(bundle.clone()).await.unwrap();
        }
        let last = blocks[blocks.len() - 1].block.number();
        service.reached(MAINNET, last).await.unwrap();
        service
    };
    start(bare(), &blocks[..1]).await.stop().await.unwrap();
    for _ in 0..2 {
        let service = start(stated(), &blocks).await;
        let (status, body) = ask(&service, "/api/block/4/rewards?chain=mainnet").await;
        assert_eq!(
            (status, &body["staticReward"]),
            (200, &"2000000000000000000".into()),
            "{body}"
        );
        service.stop().await.unwrap();
    }
}
