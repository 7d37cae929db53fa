//! A node that is of another chain, or contradicts what is final: waited out, never followed.

use crate::engine::stored_without_traces;
use crate::rig::Rig;
use crate::support::chain::{Chain, another};
use crate::support::fake_node::Methods;
use crate::support::fault::Fault;
use crate::support::index::until;
use futures_util::StreamExt as _;
use quarry::model::Bundle;
use quarry::sync::SyncError;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than any test.
const FOR_EVER: Duration = Duration::from_secs(1 << 20);

/// Swaps the node's chain until the status says `what`, then back; the store is as it was and goes on.
async fn swapped_for_a_while(rig: &Rig, other: Chain, what: &str) {
    let next = rig.next_block();
    let digest = rig.store().view().digest().unwrap();
    let head = rig.status().node_head();
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
    assert_eq!(rig.status().node_head(), head, "its head is none of ours");
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

/// A chain that leaves the node's by `depth` blocks below its head, has `count` of its own from there, and an id of its own.
fn forked(rig: &Rig, depth: u64, count: u64) -> Chain {
    let mut other = rig.fake.chain();
    other.spec.chain_id = 2002;
    other.reorg(depth, count);
    other
}

const OF_2002: &str = "chain id 1337, the node has 2002";

/// A chain that was forked off ours has all blocks that are stored, and only its id tells it: nothing is taken of it, and nothing becomes final by
/// its word.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_a_fork_of_our_chain_is_not_followed() {
    let mut rig = Rig::new(411);
    rig.options.contradiction_wait = FOR_EVER;
    rig.fake.mine(60);
    rig.fake.set_finalized(30);
    rig.start().await;
    rig.check("before").await;
    until("finality", || rig.store().view().finalized() == Some(30)).await;
    // Many blocks more, most of them final.
    rig.fake.set_finalized(150);
    swapped_for_a_while(&rig, forked(&rig, 0, 150), OF_2002).await;
    assert_eq!(rig.store().view().finalized(), Some(30));
    // None more, but another word of which are final: also where it was just asked which chain it is of.
    for _ in 0..3 {
        rig.fake.mine(1);
        rig.synced().await;
        let head = rig.fake.head();
        rig.fake.set_finalized(head);
        let other = forked(&rig, 0, 0);
        let own = rig.fake.swap_chain(other);
        until("word of the other chain", || {
            rig.status().message().contains(OF_2002)
        })
        .await;
        assert!(rig.store().view().finalized() < Some(head));
        rig.fake.set_finalized(head - 1);
        rig.fake.swap_chain(own);
        until("finality", || rig.store().view().finalized() == Some(head - 1)).await;
    }
    rig.check("in the end").await;
    rig.stop().await.unwrap();
}

/// A backfill is one round that may last for days: a node that becomes another one meanwhile has none of its blocks stored as final.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_becomes_a_fork_in_a_backfill_is_not_followed() {
    for batch_bytes_max in [1, 200 << 10] {
        let mut rig = Rig::new(412);
        rig.options.contradiction_wait = FOR_EVER;
        rig.options.batch_bytes_max = batch_bytes_max;
        rig.fake.mine(400);
        rig.fake.set_finalized(380);
        rig.fake.set_latency(Duration::from_millis(1));
        rig.start().await;
        until("some blocks", || rig.next_block() > 40).await;
        // Where the blocks that were asked for lie before the fork they are ours.
        let own = rig.fake.swap_chain(forked(&rig, 300, 300));
        until("word of the other chain", || {
            rig.status().message().contains(OF_2002)
        })
        .await;
        let head = rig.store().view().head().unwrap();
        let ours = own.bundle(head.number).unwrap().block.hash;
        assert_eq!(head.hash, ours, "block {} is the fork's", head.number);
        rig.fake.swap_chain(own);
        rig.check("its own chain again").await;
        assert!(!rig.status().finality_broken());
        rig.stop().await.unwrap();
    }
}

/// At the tip of a fast chain it is asked from time to time, and not for each block.
#[tokio::test(flavor = "multi_thread")]
async fn which_chain_it_is_of_is_not_asked_for_each_block() {
    let mut rig = Rig::new(413);
    rig.fake.set_methods(Methods {
        tags: false,
        ..Methods::default()
    });
    rig.fake.mine(130);
    rig.start().await;
    rig.check("before").await;
    let (began, before) = (Instant::now(), rig.fake.asked("eth_chainId"));
    for _ in 0..60 {
        rig.fake.mine(1);
        rig.synced().await;
    }
    until("finality by depth", || {
        rig.store().view().finalized() == Some(126)
    })
    .await;
    let asked = rig.fake.asked("eth_chainId") - before;
    assert!(asked <= 2 + began.elapsed().as_secs(), "asked {asked} times");
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
    for (chain_id, what) in [(Some(2002), "chain id 1337"), (None, "genesis hash")] {
        let own = rig.fake.swap_chain(another(404, chain_id, 70));
        until("word of the other chain", || {
            rig.status().message().contains(what)
        })
        .await;
        assert!(rig.store().view().head().is_none());
        assert_eq!(rig.status().node_head(), Some(30), "its head is none of ours");
        rig.fake.swap_chain(own);
    }
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

/// Another block 0 under the same chain id, as of a development node that was started anew: that block is final, too.
#[tokio::test(flavor = "multi_thread")]
async fn another_block_0_that_stays_breaks_finality() {
    let mut rig = Rig::new(414);
    rig.fake.mine(60);
    rig.start().await;
    rig.check("before").await;
    let own = rig.fake.swap_chain(another(406, None, 70));
    let error = rig.ended().await.unwrap_err();
    assert!(error.to_string().contains("genesis hash"), "{error}");
    assert!(rig.status().stopped() && rig.status().finality_broken());
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

/// So many blocks of a branch that leaves the chain above block 33, each of which has transactions on both.
fn dead_blocks(chain: &Chain, count: u64) -> Vec<Bundle> {
    let is_busy = |bundle: &Bundle| {
        !bundle.receipts.is_empty() && bundle.traces.as_ref().is_some_and(|traces| !traces.is_empty())
    };
    for first in 34..=chain.head() - count {
        let mut other = chain.clone();
        other.reorg(chain.head() - first + 1, count);
        let of_branches =
            [&other, chain].map(|chain| &chain.bundles()[first as usize..(first + count) as usize]);
        let [dead, own] = of_branches;
        if dead.iter().chain(own).all(is_busy) {
            assert_ne!(dead[0].block.hash, own[0].block.hash);
            assert_eq!(dead[0].block.header.parent_hash, own[0].block.header.parent_hash);
            return dead.to_vec();
        }
    }
    panic!("no {count} blocks with transactions in a row");
}

/// What a backfill meets of a node behind a balancer that is on another branch than the others, below the final block.
#[derive(Clone, Copy, Debug)]
struct Dead {
    /// Blocks of it that come one after the other.
    count: u64,
    /// Each of them so often.
    times: u64,
    /// How often the block behind them cannot be had.
    fails: u64,
    /// The last of them is the one that is named as final.
    is_final: bool,
    /// The last of them is the last that is wanted.
    is_last: bool,
}

const DEAD: Dead = Dead {
    count: 1,
    times: 1,
    fails: 0,
    is_final: false,
    is_last: false,
};

async fn meets(seed: u64, dead: Dead, batch_bytes_max: Option<usize>) {
    let mut rig = Rig::new(seed);
    rig.options.contradiction_wait = FOR_EVER;
    rig.options.batch_bytes_max = batch_bytes_max.unwrap_or(rig.options.batch_bytes_max);
    rig.fake.mine(120);
    let blocks = dead_blocks(&rig.fake.chain(), dead.count);
    let last = blocks.last().unwrap().block.number();
    let finalized = if dead.is_final { last } else { 110 };
    rig.fake.set_finalized(finalized);
    rig.options.stop_at = dead.is_last.then_some(last);
    rig.start_after(|fake| {
        for block in blocks {
            // The block, its receipts and its traces.
            fake.fault(Fault::Elsewhere(Arc::new(block)), 3 * dead.times);
        }
        if dead.fails > 0 {
            fake.fault(Fault::FailsBlock("eth_getBlockReceipts", last + 1), dead.fails);
        }
    })
    .await;
    let what = format!("{dead:?} {batch_bytes_max:?}");
    if dead.is_last {
        rig.ended().await.unwrap();
        rig.equals(&rig.fake.bundles()[..=last as usize], &what).await;
        assert_eq!(rig.store().view().finalized(), Some(last), "{what}");
        return;
    }
    rig.check(&what).await;
    until("finality", || rig.store().view().finalized() == Some(finalized)).await;
    assert!(!rig.status().finality_broken(), "{what}");
    rig.stop().await.unwrap();
}

/// Whatever comes next shows it: however many such blocks name each other, however soon blocks are committed, and where what is behind them fails
/// to come at first.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_of_a_dead_branch_never_becomes_final() {
    let mut all = Vec::new();
    for count in [1, 2, 3] {
        let dead = Dead { count, ..DEAD };
        let is_final = Dead {
            is_final: true,
            ..dead
        };
        let is_last = Dead {
            is_last: true,
            ..dead
        };
        all.extend([dead, is_final, is_last]);
        // As often as they are asked for until what is behind them comes.
        all.extend([4, 8].map(|fails| Dead {
            fails,
            times: 1 + fails / 4,
            ..dead
        }));
    }
    let cases = all.into_iter().flat_map(|dead| [(dead, None), (dead, Some(1))]);
    // Most of the time is waiting.
    futures_util::stream::iter(cases)
        .for_each_concurrent(6, |(dead, batch_bytes_max)| meets(409, dead, batch_bytes_max))
        .await;
}

/// Nor do its traces end the sync, of a block that is stored without them, while the node has the store's head.
#[tokio::test(flavor = "multi_thread")]
async fn traces_of_a_dead_branch_are_asked_for_again() {
    let mut rig = Rig::new(408);
    rig.options.contradiction_wait = Duration::ZERO;
    stored_without_traces(&mut rig).await;
    let dead = dead_blocks(&rig.fake.chain(), 1).remove(0);
    assert!(dead.block.number() <= rig.fake.finalized());
    rig.config.probe_pause = Duration::ZERO;
    rig.start_after(|fake| fake.fault(Fault::Elsewhere(Arc::new(dead)), 3))
        .await;
    until("the fill", || rig.is_synced() && rig.store().view().has_traces()).await;
    rig.check("after the fill").await;
    assert_eq!(rig.fake.swap_faults(Vec::new()), []);
    rig.stop().await.unwrap();
}

/// Asking whether the last block of a batch is still there waits for nothing that waits for the batch.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_asked_one_thing_at_a_time_is_enough() {
    let mut rig = Rig::new(410);
    rig.config.concurrency_max = 1;
    rig.options.batch_bytes_max = 1;
    rig.fake.mine(150);
    rig.fake.set_finalized(140);
    rig.start().await;
    rig.check("a backfill").await;
    rig.stop().await.unwrap();
}
