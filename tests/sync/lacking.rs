//! A node that does not tell the block that the store goes on from.

use crate::rig::Rig;
use crate::support::fake_node::Fault;
use crate::support::index::until;
use std::time::Duration;

/// A store of 60 blocks whose sync has stopped.
async fn stored(seed: u64) -> Rig {
    let mut rig = Rig::new(seed);
    rig.fake.mine(60);
    rig.fake.set_finalized(30);
    rig.start().await;
    rig.check("before").await;
    rig.stop().await.unwrap();
    rig
}

/// The node seems to have dropped block 60, and goes on from it once it has it again.
async fn is_told_of_as_dropped(mut rig: Rig) {
    until("the way out is told", || {
        let message = rig.status().message();
        message.starts_with("block 60: ") && message.contains("(--start-block)")
    })
    .await;
    assert_eq!((rig.next_block(), rig.status().node_up()), (61, true));
    rig.fake.clear_faults();
    rig.check("the block is there again").await;
    rig.stop().await.unwrap();
}

/// It may be far ahead, and have dropped the block: it is not behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_dropped_our_head_is_told_of() {
    let mut rig = stored(414).await;
    rig.fake.mine(20);
    rig.start_after(|fake| fake.fault(Fault::Dropped { to: 70 }, u64::MAX))
        .await;
    until("word of the block", || {
        rig.status().message() == "the node does not have block 60, after which the store goes on"
    })
    .await;
    rig.fake.mine(200);
    is_told_of_as_dropped(rig).await;
}

/// It may say so by an error, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_refuses_our_head_is_told_of() {
    let mut rig = stored(416).await;
    rig.fake.mine(220);
    rig.start_after(|fake| fake.fault(Fault::Expired { to: 70 }, u64::MAX))
        .await;
    is_told_of_as_dropped(rig).await;
}

/// Nothing shows that it is of the chain again.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_is_not_told_ends_no_contradiction() {
    let mut rig = Rig::new(415);
    rig.options.contradiction_wait = Duration::from_secs(1 << 20);
    rig.fake.mine(80);
    rig.fake.set_finalized(60);
    rig.start().await;
    rig.check("before").await;
    until("finality", || rig.store().view().finalized() == Some(60)).await;
    let mut other = rig.fake.chain();
    other.reorg(30, 40);
    let own = rig.fake.swap_chain(other);
    until("word of the other chain", || rig.status().contradicted()).await;
    rig.fake.fault(Fault::Dropped { to: 85 }, u64::MAX);
    until("word of the block", || {
        rig.status().message() == "the node does not have block 80, after which the store goes on"
    })
    .await;
    assert!(rig.status().contradicted());
    rig.fake.clear_faults();
    rig.fake.swap_chain(own);
    rig.fake.mine(2);
    rig.check("its own chain again").await;
    until("it agrees", || !rig.status().contradicted()).await;
    rig.stop().await.unwrap();
}
