//! What a service keeps beside the stores that it writes: a sign of life for replicas, and its rate.

use std::path::Path;
use std::time::Duration;

use quarry::service::{BlockFeed, Service, ServiceError};
use quarry::store::Heartbeat;

use crate::{Broken, MAINNET, blocks, chain, config, eventually, scratch};

fn beat(directory: &Path) -> Option<Heartbeat> {
    Heartbeat::read(&directory.join("mainnet"))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_gives_a_sign_of_life_and_tells_its_rate() {
    let blocks = blocks(31);
    let directory = scratch::directory();
    let feed = BlockFeed::new(100);
    let service = Service::start(config(directory.path(), chain().fed_by(feed.clone())))
        .await
        .unwrap();
    let beats = |number| {
        beat(directory.path()).is_some_and(|beat| {
            assert!(!beat.stopped, "{beat:?}");
            (beat.indexed, beat.node_head, beat.node_up) == (Some(number), Some(number), Some(true))
        })
    };
    feed.push(blocks[0].clone()).await.unwrap();
    eventually("a sign of life at block 0", || beats(0)).await;
    for bundle in &blocks[1..] {
        feed.push(bundle.clone()).await.unwrap();
    }
    let status = service.status(MAINNET).unwrap();
    eventually("a rate", || status.blocks_per_second() > 0.0).await;
    eventually("a sign of life at block 30", || beats(30)).await;
    service.stop().await.unwrap();

    // Who only reads gives none.
    let before = beat(directory.path());
    let service = Service::start(config(directory.path(), chain())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(beat(directory.path()), before);
    service.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_stopped_is_told_to_who_follows_and_who_waits() {
    let directory = scratch::directory();
    let service = Service::start(config(directory.path(), chain().fed_by(Broken)))
        .await
        .unwrap();
    let error = service.reached(MAINNET, 1).await.unwrap_err();
    assert!(matches!(error, ServiceError::Stopped(_)), "{error}");
    eventually("the word of it", || {
        beat(directory.path()).is_some_and(|beat| beat.stopped)
    })
    .await;
    let error = service.stop().await.unwrap_err();
    assert!(!matches!(error, ServiceError::Config(_)), "{error}");
}
