//! Every fault of the node: nothing wrong is stored, and sync recovers by itself.

use futures_util::StreamExt as _;

use crate::rig::Rig;
use crate::support::fake_node::Fault;
use crate::support::fault::Wrong;
use crate::support::index::until;
use crate::support::pace::at_most;
use std::time::{Duration, Instant};

/// All faults of answers about blocks, and of the way to them.
pub(crate) fn all() -> Vec<Fault> {
    vec![
        Fault::NullBlock,
        Fault::NullReceipts,
        Fault::MissingReceipt,
        Fault::WrongReceipt,
        Fault::WrongPrice,
        Fault::OtherReceipts,
        Fault::ReorderedReceipts,
        Fault::WrongParent,
        Fault::MissingTrace,
        Fault::WrongTop(Wrong::Value),
        Fault::WrongTop(Wrong::Failed),
        Fault::WrongV,
        Fault::WrongGasPrice,
        Fault::HeadBack(3),
        Fault::Truncated,
        Fault::Garbage,
        Fault::TooManyRequests(None),
        Fault::TooManyRequests(Some(1)),
        Fault::ServerError,
        Fault::RpcError(-32000, "header not found"),
        Fault::RpcError(-32602, "invalid params"),
        Fault::RpcError(-32601, "the method does not exist"),
        Fault::Slow(Duration::from_millis(50)),
        Fault::Slow(Duration::from_millis(900)),
        Fault::Hangup,
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_passes_and_nothing_wrong_is_stored() {
    // Most of the time is waiting: for a node that is slow, stalls, or asks to come again later.
    futures_util::stream::iter(all().into_iter().enumerate())
        .for_each_concurrent(6, |(place, fault)| passes(100 + place as u64, fault))
        .await;
}

async fn passes(seed: u64, fault: Fault) {
    let mut rig = Rig::new(seed);
    rig.fake.mine(40);
    rig.fake.set_finalized(20);
    rig.start_after(|fake| fake.fault(fault.clone(), 8)).await;
    rig.check(&format!("{fault:?} in backfill")).await;
    rig.fake.clear_faults();
    for _ in 0..4 {
        rig.fake.fault(fault.clone(), 2);
        rig.fake.mine(2);
        rig.check(&format!("{fault:?} at the tip")).await;
    }
    let failures = rig.status().verification_failures();
    match fault {
        Fault::WrongReceipt | Fault::WrongParent | Fault::WrongTop(_) | Fault::WrongV => {
            assert!(failures > 0, "{fault:?}");
        }
        _ => assert_eq!(failures, 0, "{fault:?}"),
    }
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_that_lasts_stores_nothing_wrong_and_does_not_spin() {
    for fault in [
        Fault::NullBlock,
        Fault::WrongReceipt,
        Fault::ReorderedReceipts,
        Fault::WrongParent,
        Fault::OtherReceipts,
        Fault::MissingTrace,
        Fault::Truncated,
    ] {
        let mut rig = Rig::new(200);
        rig.fake.mine(40);
        rig.fake.set_finalized(20);
        rig.start().await;
        rig.synced().await;
        let lasting = fault.clone();
        rig.fake.fault(lasting, u64::MAX);
        let asked = rig.fake.asked("eth_blockNumber");
        rig.fake.mine(5);
        let began = Instant::now();
        if matches!(fault, Fault::NullBlock | Fault::WrongReceipt) {
            until("trouble is said", || rig.status().message().contains("block")).await;
            assert!(rig.status().node_up(), "{fault:?}: a node that answers is there");
        }
        let bad =
            || rig.status().message().contains("block") && rig.status().message() != "following the tip";
        if matches!(fault, Fault::ReorderedReceipts) {
            // Each receipt names its place: their order is no trouble.
            rig.synced().await;
        } else {
            let said = || bad() || !rig.status().node_up();
            until(&format!("trouble is said of {fault:?}"), said).await;
        }
        // Nothing to wait for but time: two seconds of trouble are few rounds.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let rounds = rig.fake.asked("eth_blockNumber") - asked;
        let seconds = began.elapsed().as_secs_f64();
        assert!(
            (rounds as f64) < 20.0 * seconds,
            "{fault:?}: {rounds} rounds in {seconds} s"
        );
        let next = rig.next_block();
        assert!(next <= 46);
        rig.equals(&rig.fake.bundles()[..next as usize], &format!("{fault:?} lasts"))
            .await;
        rig.fake.clear_faults();
        let began = Instant::now();
        rig.check(&format!("{fault:?} is over")).await;
        assert!(
            began.elapsed() < at_most(Duration::from_secs(9)),
            "{:?}",
            began.elapsed()
        );
        rig.stop().await.unwrap();
    }
}
