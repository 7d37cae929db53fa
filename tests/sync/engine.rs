//! Backfill, tip, reorgs, restarts and nodes of every kind.

use crate::brute::{check_blocks, check_logs};
use crate::rig::Rig;
use crate::support::build::INTRINSIC_GAS;
use crate::support::fake_node::{Fault, Methods};
use crate::support::index::{fresh_digest, until};
use crate::support::pace::at_most;
use quarry::model::Bundle;
use quarry::query::Reader;
use quarry::sync::SyncError;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn backfill_and_tip_equal_a_fresh_import() {
    let mut rig = Rig::new(1);
    rig.fake.mine(150);
    rig.fake.set_finalized(100);
    rig.start().await;
    rig.check("after backfill").await;
    assert_eq!(rig.store().view().finalized(), Some(100));
    for step in 0..5 {
        rig.fake.mine(3);
        rig.fake.set_finalized(105 + 8 * step);
        rig.check("at the tip").await;
    }
    until("the tip is followed", || rig.status().following()).await;
    until("finality", || rig.store().view().finalized() == Some(137)).await;
    let chain = rig.fake.bundles();
    let reader = rig.reader();
    assert!(reader.has_traces());
    check_blocks(&reader, &chain, 0);
    check_logs(&reader, &chain, 500, &mut fastrand::Rng::with_seed(1));
    assert_eq!(
        (rig.status().reorgs(), rig.status().verification_failures()),
        (0, 0)
    );
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reorgs_of_every_depth_leave_the_store_of_the_new_chain() {
    let mut rig = Rig::new(2);
    rig.fake.mine(90);
    rig.fake.set_finalized(20);
    rig.start().await;
    rig.check("before").await;
    for depth in 1..=64 {
        let old = rig.fake.bundles();
        rig.fake.reorg(depth, depth + depth % 3);
        // A fresh store costs more than all the rest. What goes wrong in one reorg is still wrong after the next.
        if depth <= 8 || depth % 8 == 0 {
            rig.check(&format!("reorg of {depth}")).await;
        } else {
            rig.synced().await;
        }
        assert_eq!(rig.status().reorgs(), depth);
        let reader = rig.reader();
        let gone = &old.last().unwrap().block;
        assert!(reader.view().block_number(&gone.hash).unwrap().is_none());
        for transaction in &gone.transactions {
            let again = rig.fake.bundles().iter().any(|bundle| {
                let hashes = &mut bundle.block.transactions.iter();
                hashes.any(|other| other.hash == transaction.hash)
            });
            assert_eq!(reader.transaction(&transaction.hash).unwrap().is_some(), again);
        }
    }
    let chain = rig.fake.bundles();
    check_blocks(&rig.reader(), &chain, 0);
    check_logs(&rig.reader(), &chain, 200, &mut fastrand::Rng::with_seed(2));
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn reorgs_while_backfilling() {
    for finalized in [0, 150] {
        let mut rig = Rig::new(3);
        rig.fake.mine(220);
        rig.fake.set_finalized(finalized);
        rig.fake.set_latency(Duration::from_millis(2));
        rig.start().await;
        for at in [20, 60, 120, 170, 200, 215] {
            until("backfill goes on", || rig.next_block() > at).await;
            rig.fake.reorg(at / 4, at / 4 + 2);
        }
        rig.check(&format!("final to {finalized}")).await;
        rig.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reorg_below_finality_stops_the_sync_and_leaves_the_store() {
    let mut rig = Rig::new(4);
    rig.fake.mine(80);
    rig.fake.set_finalized(60);
    rig.start().await;
    rig.check("before").await;
    let (old, head) = (rig.fake.bundles(), rig.store().view().head());
    rig.fake.reorg(30, 40);
    let error = rig.ended().await.unwrap_err();
    let SyncError::DeepReorg { block, finalized } = &error else {
        panic!("{error}");
    };
    assert_eq!((*block, *finalized), (60, 60));
    let sentence = error.to_string();
    assert!(
        sentence.contains("final") && sentence.contains("--data-dir"),
        "{sentence}"
    );
    assert!(rig.status().message().contains(&sentence));
    assert!(rig.status().stopped() && rig.status().finality_broken());
    assert_eq!(rig.store().view().head(), head);
    rig.equals(&old, "after the refusal").await;
    check_blocks(&rig.reader(), &old, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_goes_back_is_waited_for() {
    let mut rig = Rig::new(5);
    rig.fake.mine(60);
    rig.fake.set_finalized(30);
    rig.start().await;
    rig.check("before").await;
    for (by, times) in [(5, 1), (40, 3), (1000, 2)] {
        rig.fake.fault(Fault::HeadBack(by), times);
        rig.fake.mine(1);
        let began = Instant::now();
        rig.check("after the head came back").await;
        assert!(
            began.elapsed() < at_most(Duration::from_secs(10)),
            "{:?}",
            began.elapsed()
        );
    }
    assert_eq!(rig.status().reorgs(), 0);
    // A chain that is shorter for a while, then another.
    rig.fake.reorg(6, 0);
    until("the node is behind", || rig.status().message().contains("behind")).await;
    assert_eq!(rig.next_block(), 64);
    rig.fake.mine(4);
    until("the fork is seen below our head", || rig.status().reorgs() == 1).await;
    rig.fake.mine(4);
    rig.check("the other chain").await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_node_is_waited_for_and_noticed_again() {
    for at_tip in [true, false] {
        let mut rig = Rig::new(6);
        rig.fake.mine(100);
        rig.fake.set_finalized(50);
        rig.fake
            .set_latency(Duration::from_millis(if at_tip { 0 } else { 2 }));
        rig.start().await;
        if at_tip {
            rig.synced().await;
        } else {
            until("some blocks", || rig.next_block() > 10).await;
        }
        rig.fake.stall(true);
        rig.fake.mine(3);
        until("the node is missed", || !rig.status().node_up()).await;
        let began = Instant::now();
        rig.fake.stall(false);
        rig.check("after the stall").await;
        assert!(
            began.elapsed() < at_most(Duration::from_secs(8)),
            "{:?}",
            began.elapsed()
        );
        until("the node is up", || rig.status().node_up()).await;
        rig.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_node_does_not_hold_up_the_end() {
    let mut rig = Rig::new(7);
    rig.fake.mine(50);
    rig.start().await;
    rig.fake.stall(true);
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_lack_methods() {
    let all = Methods::default();
    // Finality by depth.
    let mut rig = Rig::new(8);
    rig.options.finality_depth = 10;
    rig.fake.set_methods(Methods { tags: false, ..all });
    rig.fake.mine(60);
    rig.start().await;
    rig.check("no tags").await;
    until("finality by depth", || rig.store().view().finalized() == Some(50)).await;
    rig.fake.reorg(9, 12);
    rig.check("no tags, reorg").await;
    until("finality by depth", || rig.store().view().finalized() == Some(53)).await;
    rig.stop().await.unwrap();

    let mut rig = Rig::new(8);
    rig.fake.set_methods(Methods {
        block_receipts: false,
        ..all
    });
    rig.fake.mine(60);
    rig.fake.set_finalized(40);
    rig.start().await;
    rig.check("no receipts of a block").await;
    rig.fake.reorg(5, 6);
    rig.check("no receipts of a block, reorg").await;
    rig.stop().await.unwrap();

    // By the other trace method top calls state the intrinsic gas too.
    for debug_by_hash in [true, false] {
        let mut rig = Rig::new(8);
        rig.fake.set_methods(Methods {
            trace_block: false,
            debug_by_hash,
            ..all
        });
        rig.fake.mine(60);
        rig.fake.set_finalized(40);
        rig.start().await;
        rig.synced().await;
        rig.fake.reorg(5, 6);
        rig.synced().await;
        let mut chain = rig.fake.bundles();
        for trace in chain
            .iter_mut()
            .flat_map(|bundle| bundle.traces.iter_mut().flatten())
        {
            trace.frames[0].gas += INTRINSIC_GAS;
            trace.frames[0].gas_used += INTRINSIC_GAS;
        }
        rig.equals(&chain, "traces by the other method").await;
        check_blocks(&rig.reader(), &chain, 0);
        rig.stop().await.unwrap();
    }

    let mut rig = Rig::new(8);
    rig.fake.set_methods(Methods {
        trace_block: false,
        debug_trace: false,
        ..all
    });
    rig.fake.mine(60);
    rig.fake.set_finalized(40);
    rig.start().await;
    rig.synced().await;
    let untraced = |chain: Vec<Bundle>| -> Vec<Bundle> {
        let without = |bundle| Bundle {
            traces: None,
            ..bundle
        };
        chain.into_iter().map(without).collect()
    };
    rig.fake.reorg(7, 9);
    rig.synced().await;
    let chain = untraced(rig.fake.bundles());
    rig.equals(&chain, "no traces").await;
    let reader = rig.reader();
    assert!(!reader.has_traces());
    assert_eq!(
        reader.block_counts(50).unwrap().unwrap().internal_transactions,
        None
    );
    check_blocks(&reader, &chain, 0);
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_that_go_are_replaced_by_what_is_there() {
    let all = Methods::default();
    let mut rig = Rig::new(8);
    rig.fake.mine(40);
    rig.fake.set_finalized(20);
    rig.start().await;
    rig.check("with all methods").await;
    rig.fake.set_methods(Methods {
        block_receipts: false,
        ..all
    });
    rig.fake.mine(10);
    rig.check("without receipts by block").await;
    assert!(0 < rig.fake.asked("eth_getTransactionReceipt"));
    rig.fake.set_methods(Methods {
        trace_block: false,
        ..all
    });
    rig.fake.mine(10);
    rig.synced().await;
    assert!(0 < rig.fake.asked("debug_traceBlockByHash"));
    assert!(rig.reader().has_traces());
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_cannot_be_had_is_asked_for_alone() {
    let mut rig = Rig::new(12);
    rig.fake.mine(300);
    rig.fake.set_finalized(250);
    rig.start_after(|fake| fake.fault(Fault::Lacks { above: 30 }, u64::MAX))
        .await;
    until("the way out is told", || {
        rig.status().message().contains("(--start-block)")
    })
    .await;
    assert_eq!(rig.next_block(), 31);
    assert!(
        rig.status().message().contains("block 31: "),
        "{}",
        rig.status().message()
    );
    let asked = || rig.fake.asked("eth_getBlockReceipts");
    let before = asked();
    until("it is asked for again", || before < asked()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    // As often as one request is repeated, and not for sixteen blocks.
    assert!(asked() <= before + 4, "{} and {before}", asked());
    rig.fake.clear_faults();
    rig.check("it came").await;
    assert!(
        rig.status().message().contains("tip"),
        "{}",
        rig.status().message()
    );
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_may_begin_after_block_0() {
    let mut rig = Rig::new(9);
    rig.first_block = 40;
    rig.fake.mine(30);
    // The node is not there yet.
    rig.start().await;
    until("the node is asked", || rig.status().node_head() == Some(30)).await;
    until("what is waited for is said", || {
        rig.status().message() == "waiting for the node to reach block 40, the first one to store"
    })
    .await;
    assert!(!rig.status().following());
    rig.fake.mine(60);
    rig.fake.set_finalized(70);
    rig.check("start block").await;
    let chain = rig.fake.bundles();
    check_blocks(&rig.reader(), &chain, 40);
    check_logs(&rig.reader(), &chain[40..], 0, &mut fastrand::Rng::with_seed(9));
    rig.fake.fault(Fault::HeadBack(70), 3);
    rig.fake.reorg(10, 12);
    rig.check("a head below the start block").await;
    rig.stop().await.unwrap();

    // The fork lies before the first block: all is taken off.
    let mut rig = Rig::new(9);
    rig.first_block = 40;
    rig.fake.mine(45);
    rig.start().await;
    rig.check("before").await;
    rig.fake.reorg(10, 15);
    rig.check("a fork before the start block").await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_to_a_block_ends_there_and_waits_for_it() {
    let mut rig = Rig::new(10);
    rig.fake.mine(100);
    rig.fake.set_finalized(30);
    rig.options.stop_at = Some(70);
    rig.start().await;
    rig.ended().await.unwrap();
    assert_eq!(rig.next_block(), 71);
    rig.equals(&rig.fake.bundles()[..=70], "up to 70").await;
    // Again: nothing to do, and nothing to do though the node is behind.
    for behind in [0, 90] {
        rig.drop_engine().await;
        rig.start_after(|fake| fake.fault(Fault::HeadBack(behind), 10))
            .await;
        rig.ended().await.unwrap();
        assert_eq!(rig.next_block(), 71);
        rig.fake.clear_faults();
    }
    rig.drop_engine().await;
    rig.options.stop_at = Some(120);
    rig.start().await;
    until("the head", || rig.next_block() == 101).await;
    rig.fake.mine(10);
    until("the head", || rig.next_block() == 111).await;
    rig.fake.mine(30);
    rig.ended().await.unwrap();
    assert_eq!(rig.next_block(), 121);
    rig.equals(&rig.fake.bundles()[..=120], "up to 120").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_goes_on_where_the_store_is() {
    let mut rig = Rig::new(11);
    rig.fake.mine(200);
    rig.fake.set_finalized(150);
    rig.fake.set_latency(Duration::from_millis(1));
    for stop in [30, 90, 160, 190] {
        rig.start().await;
        until("some blocks", || rig.next_block() >= stop).await;
        let next = rig.next_block();
        rig.stop().await.unwrap();
        // A clean end loses nothing: what was committed is not asked for again.
        let asked = rig.fake.asked("trace_block");
        rig.start().await;
        assert!(rig.next_block() >= next, "{} after {next}", rig.next_block());
        let next = rig.next_block();
        rig.stop().await.unwrap();
        let asked = rig.fake.asked("trace_block") - asked;
        assert!(asked <= 201 - next + 2, "asked {asked} from {next}");
    }
    rig.start().await;
    rig.check("after restarts").await;
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_taken_at_the_word_of_a_node_is_told_apart() {
    let mut rig = Rig::new(14);
    rig.fake.mine(90);
    rig.fake.set_finalized(20);
    rig.trusts_node = true;
    rig.start().await;
    rig.synced().await;
    let told = |rig: &Rig| {
        let told = rig.reader().provenance().unwrap();
        let ends = |ranges: Vec<_>| ranges.into_iter().map(RangeInclusive::into_inner).collect();
        let ends: [Vec<(u64, u64)>; 2] = [told.verified, told.trusted].map(ends);
        ends
    };
    assert_eq!(told(&rig), [vec![], vec![(0, 90)]]);
    rig.stop().await.unwrap();
    // Blocks of the new branch are verified, also those in the place of what was not.
    rig.trusts_node = false;
    rig.start().await;
    rig.fake.reorg(10, 15);
    rig.synced().await;
    assert_eq!(told(&rig), [vec![(81, 95)], vec![(0, 80)]]);
    rig.stop().await.unwrap();
    rig.trusts_node = true;
    rig.start().await;
    assert_eq!(told(&rig), [vec![(81, 95)], vec![(0, 80)]]);
    rig.fake.mine(5);
    rig.synced().await;
    assert_eq!(told(&rig), [vec![(81, 95)], vec![(0, 80), (96, 100)]]);
    rig.fake.reorg(12, 13);
    rig.synced().await;
    assert_eq!(told(&rig), [vec![(81, 88)], vec![(0, 80), (89, 101)]]);
    rig.stop().await.unwrap();
    rig.trusts_node = false;
    rig.start().await;
    rig.fake.reorg(30, 31);
    rig.check("after all of it").await;
    assert_eq!(told(&rig), [vec![(72, 102)], vec![(0, 71)]]);
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_engine_fails_and_the_other_goes_on() {
    let (mut good, mut bad) = (Rig::new(12), Rig::new(13));
    for rig in [&good, &bad] {
        rig.fake.mine(120);
        rig.fake.set_finalized(60);
    }
    good.start().await;
    bad.start_after(|fake| fake.fault(Fault::Garbage, u64::MAX)).await;
    good.check("the good one").await;
    until("the bad one says so", || {
        bad.status().message().contains("malformed")
    })
    .await;
    assert_eq!(bad.next_block(), 0);
    good.fake.reorg(10, 20);
    good.check("the good one").await;
    bad.fake.clear_faults();
    bad.check("the bad one, mended").await;
    assert_ne!(
        fresh_digest(&good.fake.bundles(), 0).await,
        bad.store().view().digest().unwrap()
    );
    bad.fake.reorg(80, 90);
    assert!(bad.ended().await.is_err());
    good.fake.mine(3);
    good.check("the good one").await;
    good.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn receipts_that_a_node_has_later_are_asked_for_by_block() {
    let mut rig = Rig::new(78);
    rig.config.probe_pause = Duration::ZERO;
    rig.fake.set_methods(Methods {
        block_receipts: false,
        ..Methods::default()
    });
    rig.fake.mine(20);
    rig.start().await;
    rig.synced().await;
    rig.fake.set_methods(Methods::default());
    let one_by_one = || rig.fake.asked("eth_getTransactionReceipt");
    assert!(0 < one_by_one());
    // A look that began before must end first, and what it says counts from the next round on.
    for _ in 0..200 {
        let before = one_by_one();
        rig.fake.mine(10);
        rig.synced().await;
        if one_by_one() == before {
            break;
        }
    }
    let one_by_one = one_by_one();
    rig.fake.mine(12);
    rig.check("with receipts by block").await;
    assert_eq!(rig.fake.asked("eth_getTransactionReceipt"), one_by_one);
    rig.stop().await.unwrap();
}

/// The first block with transactions above `above`.
fn busy_block(rig: &Rig, above: u64) -> u64 {
    let bundles = rig.fake.bundles();
    let mut numbers = bundles.iter().filter(|bundle| !bundle.receipts.is_empty());
    let found = numbers.find(|bundle| above < bundle.block.number());
    found.unwrap().block.number()
}

/// A chain of which the node fails a block with transactions by `method`, for good; the number of that block.
async fn failing_by(rig: &mut Rig, method: &'static str) -> u64 {
    rig.fake.mine(60);
    rig.fake.set_finalized(50);
    let failing = busy_block(rig, 20);
    rig.start_after(|fake| fake.fault(Fault::FailsBlock(method, failing), u64::MAX))
        .await;
    failing
}

/// A node that fails one block by one method, for good, has it by another: that block alone is asked for so.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_one_method_fails_is_had_by_another() {
    let mut rig = Rig::new(79);
    let failing = failing_by(&mut rig, "eth_getBlockReceipts").await;
    rig.check("beyond the block").await;
    let bundles = rig.fake.bundles();
    let of_block = bundles[failing as usize].receipts.len() as u64;
    assert_eq!(rig.fake.asked("eth_getTransactionReceipt"), of_block);
    // Its traces did not fail.
    assert_eq!(rig.fake.asked("debug_traceBlockByHash"), 0);
    rig.stop().await.unwrap();
}

/// The frames of all blocks are the chain's, but that `callTracer` counts what a transaction takes before it is executed among the gas of the
/// top calls of block `by_calls`.
fn has_frames_of_all(rig: &Rig, by_calls: u64) {
    let reader = Reader::new(rig.store().view());
    let mut altered = 0;
    for bundle in rig.fake.bundles() {
        let number = bundle.block.number();
        let mut read = reader.bundle(number).unwrap().unwrap().traces.unwrap();
        let told = bundle.traces.unwrap();
        for (trace, told) in read.iter_mut().zip(&told).filter(|_| number == by_calls) {
            altered += u64::from(trace.frames[0] != told.frames[0]);
            (trace.frames[0].gas, trace.frames[0].gas_used) = (told.frames[0].gas, told.frames[0].gas_used);
        }
        assert_eq!(read, told, "block {number}");
    }
    assert!(altered > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_silent_when_it_is_looked_at_again_keeps_nobody_waiting() {
    const LONG: Duration = Duration::from_secs(3600);
    let mut rig = Rig::new(79);
    rig.config.probe_pause = Duration::ZERO;
    (rig.config.light_timeout, rig.config.deadline) = (LONG, LONG);
    rig.fake.set_methods(Methods {
        block_receipts: false,
        ..Methods::default()
    });
    rig.fake.mine(20);
    rig.start_after(|fake| fake.fault(Fault::SlowMethod("web3_clientVersion", LONG), u64::MAX))
        .await;
    rig.check("a backfill").await;
    for _ in 0..5 {
        rig.fake.mine(3);
        rig.check("at the tip").await;
    }
    // Once when it was met, and once more.
    assert!(1 < rig.fake.asked("web3_clientVersion"));
    rig.stop().await.unwrap();
}

/// A store of 120 blocks that has no traces, and was left; the node has some more blocks by now, and traces.
pub(crate) async fn stored_without_traces(rig: &mut Rig) {
    rig.fake.set_methods(Methods {
        trace_block: false,
        debug_trace: false,
        ..Methods::default()
    });
    rig.fake.mine(120);
    rig.fake.set_finalized(80);
    rig.start().await;
    rig.synced().await;
    assert!(!rig.store().view().has_traces());
    rig.stop().await.unwrap();
    rig.fake.set_methods(Methods::default());
    rig.fake.mine(5);
}

#[tokio::test(flavor = "multi_thread")]
async fn traces_are_filled_in_by_a_later_run() {
    let mut rig = Rig::new(77);
    stored_without_traces(&mut rig).await;
    // What is stored becomes what it would have been with traces all along.
    rig.start().await;
    until("the fill", || rig.is_synced() && rig.store().view().has_traces()).await;
    rig.check("after the fill").await;
    assert!(rig.store().view().has_traces());
    rig.stop().await.unwrap();
}

/// The head stands still meanwhile, and how far it is is said as it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_fill_says_how_far_it_is() {
    let mut rig = Rig::new(77);
    stored_without_traces(&mut rig).await;
    rig.options.window = 4;
    rig.start_after(|fake| fake.set_latency(Duration::from_millis(4)))
        .await;
    let mut said = std::collections::BTreeSet::new();
    until("the fill", || {
        if rig.status().filling_to().is_some() {
            assert!(!rig.status().following());
            said.insert(rig.status().message());
        }
        rig.store().view().has_traces()
    })
    .await;
    let is_told = |text: &&String| {
        let from = text.strip_prefix("fetching the traces of blocks ");
        from.is_some_and(|text| text.ends_with(" to 80, the head stands still meanwhile"))
    };
    assert!(5 < said.iter().filter(is_told).count(), "{said:?}");
    rig.check("after the fill").await;
    until("the tip is followed", || rig.status().following()).await;
    assert_eq!(rig.status().filling_to(), None);
    rig.stop().await.unwrap();
}

/// What is fetched is said from the first block on, also where that is little.
#[tokio::test(flavor = "multi_thread")]
async fn a_few_blocks_that_are_missing_are_told_of() {
    let mut rig = Rig::new(14);
    rig.fake.mine(30);
    rig.start_after(|fake| fake.fault(Fault::SlowMethod("trace_block", Duration::from_millis(200)), 1))
        .await;
    until("word of the blocks", || {
        rig.status().message() == "fetching blocks 0 to 30"
    })
    .await;
    assert!(!rig.status().following());
    rig.check("the blocks").await;
    until("the tip is followed", || {
        rig.status().message() == "following the tip"
    })
    .await;
    // One that comes later is no news.
    rig.fake
        .fault(Fault::SlowMethod("trace_block", Duration::from_millis(200)), 1);
    rig.fake.mine(1);
    until("the block", || {
        assert_eq!(rig.status().message(), "following the tip");
        rig.is_synced()
    })
    .await;
    rig.stop().await.unwrap();
}

/// A node that traces all blocks but one by `trace_block` fills a store all the same.
#[tokio::test(flavor = "multi_thread")]
async fn traces_that_one_method_fails_are_filled_in_by_another() {
    let mut rig = Rig::new(77);
    rig.config.probe_pause = Duration::ZERO;
    stored_without_traces(&mut rig).await;
    let failing = busy_block(&rig, 30);
    rig.start_after(|fake| fake.fault(Fault::FailsBlock("trace_block", failing), u64::MAX))
        .await;
    until("the fill", || rig.is_synced() && rig.store().view().has_traces()).await;
    has_frames_of_all(&rig, failing);
    assert_eq!(rig.fake.asked("eth_getTransactionReceipt"), 0);
    rig.stop().await.unwrap();
}
