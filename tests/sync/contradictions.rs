//! A node that is of another chain, or contradicts what is final: waited out, never followed.

use crate::rig::Rig;
use crate::support::chain::{Chain, another};
use crate::support::fault::Fault;
use crate::support::index::until;
use quarry::sync::SyncError;
use std::sync::Arc;
use std::time::Duration;

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);

/// Swaps the node's chain until the status says `what`, then back; the store is as it was and goes on.
async fn swapped_for_a_while(rig: &Rig, other: Chain, what: &str) {
    let next = rig.next_block();
    let digest = rig.store().view().digest().unwrap();
    let own = rig.fake.swap_chain(other);
    until("word of the other chain", || {
        let message = rig.status().message();
        message.starts_with("the node contradicts what is final") && message.contains(what)
    })
    .await;
    assert!(rig.status().contradicted() && rig.status().node_up());
    assert!(!rig.status().following() && !rig.status().stopped());
    assert_eq!(rig.next_block(), next);
    assert_eq!(rig.store().view().digest().unwrap(), digest);
    rig.fake.swap_chain(own);
    rig.fake.mine(2);
    rig.check("its own chain again").await;
    until("the tip is followed", || {
        rig.status().following() && !rig.status().contradicted()
    })
    .await;
    assert_eq!(
        (rig.status().reorgs(), rig.status().finality_broken()),
        (0, false)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_swapped_for_one_of_another_chain_is_not_followed() {
    // Nothing is final: all could be unwound.
    let mut rig = Rig::new(401);
    rig.first_block = 40;
    rig.options.contradiction_wait = FOR_EVER;
    rig.fake.mine(60);
    rig.start().await;
    rig.check("before").await;
    assert_eq!(rig.store().view().finalized(), None);
    swapped_for_a_while(
        &rig,
        another(402, Some(2002), 70),
        "chain id 1337, the node has 2002",
    )
    .await;
    swapped_for_a_while(&rig, another(402, None, 70), "genesis hash").await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_store_takes_nothing_of_another_chain() {
    let mut rig = Rig::new(403);
    rig.first_block = 40;
    rig.options.contradiction_wait = FOR_EVER;
    rig.fake.mine(30);
    rig.start().await;
    until("the node is asked", || rig.status().node_head() == Some(30)).await;
    let own = rig.fake.swap_chain(another(404, Some(2002), 70));
    until("word of the other chain", || {
        rig.status().message().contains("chain id 1337")
    })
    .await;
    assert!(rig.store().view().head().is_none());
    rig.fake.swap_chain(own);
    rig.fake.mine(20);
    rig.check("its own chain").await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn another_chain_that_stays_ends_the_sync_and_leaves_the_store() {
    let mut rig = Rig::new(405);
    rig.first_block = 40;
    rig.fake.mine(60);
    rig.start().await;
    rig.check("before").await;
    let own = rig.fake.swap_chain(another(406, Some(2002), 70));
    let error = rig.ended().await.unwrap_err();
    assert!(
        matches!(error, SyncError::Store(_)) && error.contradicts(),
        "{error}"
    );
    assert!(rig.status().message().contains(&error.to_string()));
    assert!(rig.status().stopped() && !rig.status().finality_broken());
    rig.equals(own.bundles(), "after the end").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contradiction_below_finality_that_passes_is_waited_out() {
    let mut rig = Rig::new(407);
    rig.options.contradiction_wait = FOR_EVER;
    rig.fake.mine(80);
    rig.fake.set_finalized(60);
    rig.start().await;
    rig.check("before").await;
    until("finality", || rig.store().view().finalized() == Some(60)).await;
    for _ in 0..2 {
        let mut other = rig.fake.chain();
        other.reorg(30, 40);
        swapped_for_a_while(&rig, other, "which is final").await;
    }
    rig.stop().await.unwrap();
}

/// Behind a balancer one node is on a branch that the others left below the final block, and gives a whole block of it: what comes next shows it,
/// however soon blocks are committed, and where that fails to come at first.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_a_dead_branch_never_becomes_final() {
    for (batch_bytes_max, fails) in [(None, 0), (Some(1), 0), (Some(1), 4), (Some(1), 8)] {
        let mut rig = Rig::new(409);
        rig.options.contradiction_wait = FOR_EVER;
        rig.options.batch_bytes_max = batch_bytes_max.unwrap_or(rig.options.batch_bytes_max);
        rig.fake.mine(80);
        rig.fake.set_finalized(60);
        let mut other = rig.fake.chain();
        other.reorg(50, 1);
        let differs = |bundle: &&quarry::model::Bundle| {
            !bundle.receipts.is_empty() && bundle.traces.as_ref().is_some_and(|traces| !traces.is_empty())
        };
        let dead = other
            .bundle(31)
            .filter(differs)
            .expect("a block with transactions")
            .clone();
        assert_eq!(dead.block.header.parent_hash, rig.fake.bundles()[30].block.hash);
        let elsewhere = Fault::Elsewhere(Arc::new(dead));
        rig.start_after(|fake| {
            // As often as it is asked for until what is behind it comes.
            fake.fault(elsewhere, 3 * (1 + fails / 4));
            if fails > 0 {
                fake.fault(Fault::FailsBlock("eth_getBlockReceipts", 32), fails);
            }
        })
        .await;
        rig.check("beyond the block").await;
        until("finality", || rig.store().view().finalized() == Some(60)).await;
        assert_eq!(rig.fake.swap_faults(Vec::new()), []);
        rig.stop().await.unwrap();
    }
}
