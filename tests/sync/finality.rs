//! What a node says of its head and of finality counts only as far as blocks bear it out.

use crate::rig::Rig;
use crate::support::fake_node::{Fault, Methods};
use crate::support::index::until;

fn without_tags(seed: u64, depth: u64) -> Rig {
    let mut rig = Rig::new(seed);
    rig.options.finality_depth = depth;
    rig.fake.set_methods(Methods {
        tags: false,
        ..Methods::default()
    });
    rig
}

/// Waits until the node has been asked `more` times by this method.
async fn asked(rig: &Rig, method: &str, more: u64) {
    let before = rig.fake.asked(method);
    until("the node is asked again", || {
        rig.fake.asked(method) >= before + more
    })
    .await;
}

/// Lets the node's next heads be too high, then checks that nothing became final by that.
async fn lie(rig: &Rig, by: u64, last_final: u64) {
    rig.fake.fault(Fault::HeadAhead(by), 2);
    rig.fake.mine(1);
    asked(rig, "eth_blockNumber", 4).await;
    rig.check("after a head too high").await;
    assert!(
        rig.store().view().finalized() <= Some(last_final),
        "{:?}",
        rig.store().view().finalized()
    );
    rig.fake.reorg(2, 3);
    rig.check("a reorg after a head too high").await;
    assert_eq!(rig.status().reorgs(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_too_high_makes_nothing_final_by_depth() {
    let mut rig = without_tags(301, 10);
    rig.fake.mine(60);
    rig.start().await;
    rig.check("before").await;
    until("finality by depth", || rig.store().view().finalized() == Some(50)).await;
    lie(&rig, 30, 51).await;
    until("finality by depth", || rig.store().view().finalized() == Some(52)).await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_before_the_first_one_becomes_final_for_nobody() {
    let mut rig = without_tags(305, 10);
    rig.first_block = 40;
    rig.fake.mine(45);
    rig.start().await;
    rig.check("before").await;
    asked(&rig, "eth_blockNumber", 3).await;
    assert_eq!(rig.store().view().finalized(), None);
    assert_eq!(rig.status().finalized(), None);
    rig.fake.mine(10);
    rig.check("after").await;
    until("finality by depth", || rig.status().finalized() == Some(45)).await;
    assert_eq!(rig.store().view().finalized(), Some(45));
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_too_high_makes_nothing_final_beside_tags() {
    let mut rig = Rig::new(302);
    rig.fake.mine(60);
    rig.fake.set_finalized(20);
    rig.start().await;
    rig.check("before").await;
    lie(&rig, 5000, 20).await;
    assert_eq!(rig.store().view().finalized(), Some(20));
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_too_high_makes_nothing_final_in_a_backfill() {
    for (tags, by) in [(false, 1000), (true, 5000)] {
        let mut rig = without_tags(303, 10);
        if tags {
            rig.fake.set_methods(Methods::default());
            rig.fake.set_finalized(5);
        }
        rig.fake.mine(60);
        rig.start_after(|fake| fake.fault(Fault::HeadAhead(by), 1)).await;
        rig.check("a backfill with a head too high").await;
        rig.fake.reorg(9, 12);
        rig.check("a reorg after it").await;
        assert_eq!(rig.status().reorgs(), 1);
        let last = if tags { 5 } else { 53 };
        until("finality", || rig.store().view().finalized() == Some(last)).await;
        rig.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_block_that_nobody_has_makes_nothing_final() {
    let mut rig = Rig::new(304);
    rig.fake.mine(60);
    rig.fake.set_finalized(20);
    rig.start().await;
    rig.check("before").await;
    until("finality", || rig.store().view().finalized() == Some(20)).await;
    // Above the head, and from the next blocks on below it.
    for by in [43, 45, 100] {
        rig.fake.fault(Fault::OtherFinal(by), u64::MAX);
        rig.fake.mine(1);
        asked(&rig, "eth_getBlockByNumber", 8).await;
        rig.check("at the tip").await;
        assert_eq!(rig.store().view().finalized(), Some(20));
        assert_eq!(rig.status().safe(), Some(20));
        rig.fake.clear_faults();
    }
    rig.fake.reorg(2, 3);
    rig.check("a reorg").await;
    rig.fake.set_finalized(60);
    rig.fake.mine(1);
    until("finality goes on", || rig.store().view().finalized() == Some(60)).await;
    // It never goes back.
    rig.fake.set_finalized(30);
    rig.fake.mine(1);
    rig.check("a final block that goes back").await;
    asked(&rig, "eth_blockNumber", 2).await;
    assert_eq!(rig.store().view().finalized(), Some(60));
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_block_of_another_hash_keeps_nobody_waiting() {
    let mut rig = Rig::new(308);
    rig.fake.mine(60);
    rig.fake.set_finalized(20);
    rig.start().await;
    until("finality", || rig.store().view().finalized() == Some(20)).await;
    rig.fake.set_finalized(40);
    rig.fake.fault(Fault::OtherFinal(0), u64::MAX);
    rig.fake.mine(5);
    rig.check("beside a tag that names nothing").await;
    rig.fake.reorg(10, 12);
    rig.check("a reorg above what was believed").await;
    assert_eq!(rig.store().view().finalized(), Some(20));
    assert!(rig.status().following());
    rig.fake.clear_faults();
    rig.fake.mine(1);
    until("finality goes on", || rig.store().view().finalized() == Some(40)).await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_final_block_that_nobody_has_makes_nothing_final_in_a_backfill() {
    let mut rig = Rig::new(305);
    rig.fake.mine(60);
    rig.fake.set_finalized(20);
    // All questions for tags of the first round, and no more.
    rig.start_after(|fake| fake.fault(Fault::OtherFinal(30), 2)).await;
    rig.check("a backfill").await;
    until("finality", || rig.store().view().finalized() == Some(20)).await;
    rig.fake.reorg(35, 36);
    rig.check("a reorg after it").await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_names_no_head_is_missed_and_one_that_refuses_to_is_there() {
    let mut rig = Rig::new(306);
    rig.fake.mine(20);
    rig.start().await;
    rig.check("before").await;
    for (fault, is_there) in [
        (Fault::NullHead, false),
        (Fault::Garbage, false),
        (Fault::Truncated, false),
        (Fault::OtherId, false),
        (
            Fault::Refuses("eth_blockNumber", -32602, "not to be asked for"),
            true,
        ),
    ] {
        rig.fake.fault(fault.clone(), u64::MAX);
        until("word of it", || {
            let is_said = rig.status().message().contains("eth_blockNumber");
            is_said && rig.status().node_up() == is_there
        })
        .await;
        rig.fake.clear_faults();
        rig.fake.mine(1);
        rig.check(&format!("{fault:?} is over")).await;
        assert!(rig.status().node_up(), "{fault:?}");
    }
    rig.stop().await.unwrap();
}
