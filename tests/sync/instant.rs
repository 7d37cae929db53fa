//! Chains whose blocks are final at once: what was served as final outlives a crash.

use crate::rig::Rig;
use crate::support::fake_node::Methods;
use crate::support::index::{DEADLINE, until};
use crate::watch::Cut;
use quarry::store::Step;
use std::time::{Duration, Instant};

/// A chain of which every block is final, by the node's word or by depth.
fn instant(seed: u64, tags: bool) -> Rig {
    let mut rig = Rig::new(seed);
    rig.options.finality_depth = 0;
    rig.fake.set_methods(Methods {
        tags,
        ..Methods::default()
    });
    rig
}

fn mine(rig: &Rig, blocks: u64) {
    rig.fake.mine(blocks);
    rig.fake.set_finalized(rig.fake.head());
}

/// Waits until the head is served as final.
async fn all_final(rig: &Rig) {
    let head = rig.fake.head();
    until("the head to be final", || {
        rig.store().view().finalized() == Some(head)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_final_at_the_tip_outlives_a_crash() {
    for tags in [false, true] {
        let mut rig = instant(421, tags);
        mine(&rig, 100);
        rig.start().await;
        rig.check("a backfill").await;
        all_final(&rig).await;
        // As soon as nothing more comes, and not when so much time has gone by.
        let began = Instant::now();
        while rig.left_by_a_kill() < 101 {
            assert!(began.elapsed() < DEADLINE / 2, "a backfill is not on the disk");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // From there on at once, and without a flush of all tables for each block.
        rig.arm(Cut {
            step: Some(Step::Settle),
            point: None,
            after: 0,
            power: false,
            seed: 0,
        });
        for _ in 0..8 {
            mine(&rig, 1);
            rig.synced().await;
            assert_eq!(rig.left_by_a_kill(), rig.fake.head() + 1);
            all_final(&rig).await;
            assert_eq!(rig.left_by_a_kill(), rig.fake.head() + 1);
        }
        assert!(rig.disarm().is_none(), "all tables were flushed");
        // Several that come together, and so many that they are a backfill again.
        for blocks in [5, 50, 1] {
            mine(&rig, blocks);
            rig.check("at the tip").await;
            all_final(&rig).await;
        }
        rig.stop().await.unwrap();
    }
}

/// A node that is gone for long leaves nothing that only memory has.
#[tokio::test(flavor = "multi_thread")]
async fn a_backfill_that_is_cut_short_is_on_the_disk_before_long() {
    let mut rig = instant(422, true);
    mine(&rig, 300);
    rig.fake.set_latency(Duration::from_millis(5));
    rig.options.batch_bytes_max = 20 << 10;
    rig.start().await;
    until("some blocks", || rig.next_block() > 40).await;
    rig.fake.stall(true);
    let began = Instant::now();
    while rig.left_by_a_kill() < rig.next_block() {
        assert!(began.elapsed() < DEADLINE, "what came is not on the disk");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    rig.fake.stall(false);
    rig.check("after the stall").await;
    rig.stop().await.unwrap();
}
