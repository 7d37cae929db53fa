//! Feeds: what is final is named before it comes, blocks come that are stored already, and stores begin later.

use quarry::model::Bundle;
use quarry::service::{BlockFeed, BlockSource, Service, ServiceError, SourceHead};

use crate::{MAINNET, PATIENCE, blocks, chain, config, digests, eventually, renamed, scratch};

/// Pushes blocks, and insists that the feed does not stay full.
async fn push_all(feed: &BlockFeed, blocks: &[Bundle]) {
    for bundle in blocks {
        let number = bundle.block.number();
        let pushed = tokio::time::timeout(PATIENCE, feed.push(bundle.clone())).await;
        let pushed = pushed.unwrap_or_else(|_| panic!("the feed stays full before block {number}"));
        pushed.unwrap_or_else(|error| panic!("block {number}: {error}"));
    }
}

async fn head(feed: &BlockFeed) -> (u64, Option<u64>) {
    let SourceHead { number, finalized } = feed.head().await.unwrap().unwrap();
    (number, finalized)
}

#[tokio::test]
async fn what_is_final_may_be_named_before_it_comes() {
    let blocks = blocks(31);
    let feed = BlockFeed::new(100);
    feed.finalize(25);
    assert!(feed.head().await.unwrap().is_none());
    push_all(&feed, &blocks[5..=20]).await;
    assert_eq!(head(&feed).await, (20, Some(20)));
    // What came by is final, and stays: held, the block before, and forgotten.
    let other = renamed(&blocks[20], blocks[19].block.hash);
    let refused = async |bundle: &Bundle| {
        let error = feed.push(bundle.clone()).await.unwrap_err();
        let number = bundle.block.number();
        assert_eq!(error.to_string(), format!("block {number} is final already"));
    };
    for bundle in [&other, &blocks[20], &blocks[6], &blocks[4]] {
        refused(bundle).await;
    }
    feed.rewind(10);
    assert_eq!(head(&feed).await, (20, Some(20)));
    assert_eq!(feed.hash(20).await.unwrap(), Some(blocks[20].block.hash));
    feed.settled(20);
    assert!(feed.is_empty());
    for bundle in [&other, &blocks[6]] {
        refused(bundle).await;
    }
    // What is to come comes; above what is final it is replaced, and taken back, as ever.
    push_all(&feed, &blocks[21..=28]).await;
    assert_eq!(head(&feed).await, (28, Some(25)));
    refused(&renamed(&blocks[25], blocks[24].block.hash)).await;
    let other = renamed(&blocks[26], blocks[25].block.hash);
    feed.push(other.clone()).await.unwrap();
    assert_eq!(head(&feed).await, (26, Some(25)));
    assert_eq!(feed.hash(26).await.unwrap(), Some(other.block.hash));
    feed.rewind(3);
    assert_eq!(head(&feed).await, (25, Some(25)));
    push_all(&feed, &blocks[26..]).await;
    assert_eq!(feed.hash(30).await.unwrap(), Some(blocks[30].block.hash));
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_final_as_they_come_where_that_was_said_before() {
    let blocks = blocks(46);
    let directory = scratch::directory();
    let feed = BlockFeed::new(20);
    let service = Service::start(config(directory.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    push_all(&feed, &blocks[..=10]).await;
    service.reached(MAINNET, 10).await.unwrap();
    // As after a pause: what became final meanwhile is known before the blocks are.
    feed.finalize(1_000);
    push_all(&feed, &blocks[11..]).await;
    service.reached(MAINNET, 45).await.unwrap();
    eventually("finality", || {
        service.reader(MAINNET).unwrap().finalized() == Some(45)
    })
    .await;
    service.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_feed_that_begins_far_below_the_end_of_the_store_does_not_stay_full() {
    let blocks = blocks(81);
    let (plain, fed) = (scratch::directory(), scratch::directory());
    let finalized = |service: &Service| service.reader(MAINNET).unwrap().finalized();
    for (directory, to) in [(plain.path(), 80), (fed.path(), 60)] {
        let feed = BlockFeed::new(1_000);
        let service = Service::start(config(directory, chain().fed_by(feed.clone())))
            .await
            .unwrap();
        push_all(&feed, &blocks[..=to]).await;
        service.reached(MAINNET, to as u64).await.unwrap();
        eventually("finality", || finalized(&service) == Some(to as u64 - 8)).await;
        service.stop().await.unwrap();
    }
    // Room for what is not final, and not for all that is stored.
    let feed = BlockFeed::new(16);
    let service = Service::start(config(fed.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    push_all(&feed, &blocks).await;
    service.reached(MAINNET, 80).await.unwrap();
    eventually("finality", || finalized(&service) == Some(72)).await;
    assert_eq!(service.status(MAINNET).unwrap().reorgs(), 0);
    service.stop().await.unwrap();
    assert_eq!(digests(fed.path()), digests(plain.path()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorg_that_nobody_saw_is_followed_from_the_last_final_block_on() {
    let blocks = blocks(46);
    let directory = scratch::directory();
    let feed = BlockFeed::new(1_000);
    let service = Service::start(config(directory.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    push_all(&feed, &blocks[..=38]).await;
    let mut parent = blocks[38].block.hash;
    for bundle in &blocks[39..=40] {
        let other = renamed(bundle, parent);
        parent = other.block.hash;
        feed.push(other).await.unwrap();
    }
    service.reached(MAINNET, 40).await.unwrap();
    eventually("finality", || {
        service.reader(MAINNET).unwrap().finalized() == Some(32)
    })
    .await;
    service.stop().await.unwrap();

    let feed = BlockFeed::new(1_000);
    let service = Service::start(config(directory.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    assert_eq!(service.next_block(MAINNET), Some(41));
    let finalized = service.reader(MAINNET).unwrap().finalized().unwrap();
    push_all(&feed, &blocks[finalized as usize + 1..]).await;
    let there = service.until(MAINNET, |reader| reader.head().hash == blocks[45].block.hash);
    tokio::time::timeout(PATIENCE, there)
        .await
        .expect("it should come there")
        .unwrap();
    let status = service.status(MAINNET).unwrap();
    assert_eq!((status.reorgs(), status.reorg_depth_max()), (1, 2));
    service.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_goes_on_wherever_it_began() {
    let blocks = blocks(21);
    let directory = scratch::directory();
    // Said when it is made, left out later, and said again.
    for (chain, from, to) in [
        (chain().from_block(5), 5, 12),
        (chain(), 13, 16),
        (chain().from_block(5), 17, 20),
    ] {
        let feed = BlockFeed::new(100);
        let service = Service::start(config(directory.path(), chain.fed_by(feed.clone())))
            .await
            .unwrap();
        assert_eq!(service.next_block(MAINNET), Some(from as u64));
        push_all(&feed, &blocks[from..=to]).await;
        let there = tokio::time::timeout(PATIENCE, service.reached(MAINNET, to as u64));
        there.await.expect("it should come there").unwrap();
        service.stop().await.unwrap();
    }
    let other = chain().from_block(6).fed_by(BlockFeed::new(100));
    let error = Service::start(config(directory.path(), other)).await.unwrap_err();
    assert!(matches!(error, ServiceError::Store(_)), "{error}");
}
