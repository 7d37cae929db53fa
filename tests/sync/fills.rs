//! What is said of traces that are fetched after their blocks were stored.

use crate::engine::stored_without_traces;
use crate::rig::Rig;
use crate::support::fake_node::{Fault, Methods};
use crate::support::index::until;
use std::time::Duration;

/// Runs to block 80, the last final one, and leaves no word of a fill.
async fn ends_at_80_without_a_word(rig: &mut Rig) {
    rig.options.stop_at = Some(80);
    rig.start().await;
    rig.ended().await.unwrap();
    assert_eq!((rig.next_block(), rig.store().view().has_traces()), (81, true));
    assert_eq!(rig.status().filling_to(), None);
    let message = rig.status().message();
    assert!(!message.contains("traces"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fill_that_is_over_is_not_told_of() {
    let mut rig = Rig::new(78);
    stored_without_traces(&mut rig).await;
    ends_at_80_without_a_word(&mut rig).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_fill_is_told_of_where_all_final_blocks_have_traces() {
    let mut rig = Rig::new(79);
    rig.fake.mine(80);
    rig.fake.set_finalized(80);
    rig.start().await;
    rig.check("with traces").await;
    rig.stop().await.unwrap();
    rig.fake.set_methods(Methods {
        trace_block: false,
        debug_trace: false,
        ..Methods::default()
    });
    rig.fake.mine(20);
    rig.start().await;
    rig.synced().await;
    assert_eq!(rig.store().view().checkpoint().next_traced, 81);
    rig.stop().await.unwrap();
    rig.fake.set_methods(Methods::default());
    ends_at_80_without_a_word(&mut rig).await;
}

/// A node that traces recent blocks only may never answer about an old one.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_at_the_first_traces_keeps_nobody_waiting() {
    const LONG: Duration = Duration::from_secs(3600);
    let mut rig = Rig::new(80);
    stored_without_traces(&mut rig).await;
    (rig.config.request_timeout, rig.config.deadline) = (LONG, LONG);
    rig.start_after(|fake| fake.fault(Fault::LostBlock("trace_block", 1), u64::MAX))
        .await;
    for _ in 0..5 {
        rig.fake.mine(3);
        rig.synced().await;
    }
    until("the tip is followed", || rig.status().following()).await;
    assert!(!rig.store().view().has_traces());
    rig.stop().await.unwrap();
}

/// Nor does one that refuses it, again and again; what it has later is filled in.
#[tokio::test(flavor = "multi_thread")]
async fn traces_that_are_refused_are_filled_in_once_they_are_there() {
    let mut rig = Rig::new(82);
    rig.config.probe_pause = Duration::ZERO;
    stored_without_traces(&mut rig).await;
    rig.fake.set_methods(Methods {
        debug_trace: false,
        ..Methods::default()
    });
    rig.start_after(|fake| fake.fault(Fault::FailsBlock("trace_block", 1), u64::MAX))
        .await;
    until("word of the traces", || {
        rig.status().message().contains("block 1: trace_block")
    })
    .await;
    for _ in 0..3 {
        rig.fake.mine(3);
        rig.synced().await;
    }
    assert_eq!(rig.store().view().checkpoint().next_traced, 0);
    rig.fake.clear_faults();
    until("the fill", || rig.is_synced() && rig.store().view().has_traces()).await;
    rig.check("after the fill").await;
    rig.stop().await.unwrap();
}

/// What comes before the fill comes twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_fill_goes_before_a_backfill() {
    let mut rig = Rig::new(81);
    stored_without_traces(&mut rig).await;
    rig.fake.mine(375);
    rig.fake.set_finalized(480);
    let before = rig.fake.asked("trace_block");
    rig.start_after(|fake| fake.set_latency(Duration::from_millis(2)))
        .await;
    rig.check("after both").await;
    assert!(rig.store().view().has_traces());
    let asked = rig.fake.asked("trace_block") - before;
    assert!(asked < 700, "{asked} traces of 500 blocks");
    rig.stop().await.unwrap();
}
