//! What belongs to a bundle, what a probe may conclude, and requests that are lost.

use super::client::{config, ready};
use crate::support::fake_node::{FakeNode, Fault, Methods};
use quarry::model::Bundle;
use quarry::node::{Capabilities, ErrorClass, Node, NodeConfig, ReceiptMethod, TraceMethod};
use std::time::Duration;

/// Far longer than any machine takes for what is bounded by it.
const LONG: Duration = Duration::from_secs(120);

const TRACERS: Methods = Methods {
    block_receipts: true,
    trace_block: false,
    debug_trace: true,
    debug_by_hash: true,
    tags: true,
};

const BY_NUMBER: Methods = Methods {
    debug_by_hash: false,
    ..TRACERS
};

/// The bundle as the call tracer tells it: it states the intrinsic gas of the top call too.
fn told_by_tracer(mut bundle: Bundle) -> Bundle {
    for trace in bundle.traces.iter_mut().flatten() {
        trace.frames[0].gas += 21_000;
        trace.frames[0].gas_used += 21_000;
    }
    bundle
}

/// A block with transactions.
fn busy(fake: &FakeNode) -> Bundle {
    let mut bundles = fake.bundles().into_iter();
    let busy = bundles.find(|bundle| !bundle.block.transactions.is_empty());
    busy.expect("a block with transactions")
}

#[tokio::test]
async fn traces_by_number_of_another_branch_are_asked_for_again() {
    let fake = FakeNode::start(31);
    fake.mine(20);
    fake.set_methods(BY_NUMBER);
    let (node, capabilities) = ready(&fake).await;
    assert_eq!(capabilities.traces, TraceMethod::DebugByNumber);
    let expected = told_by_tracer(busy(&fake));
    for times in 1..=2 {
        // The node is on the branch of a twin for the trace and what is asked next.
        fake.fault(Fault::TwinTraces, times);
        fake.fault(Fault::TwinBlock, times);
        let fetched = node.bundle(expected.block.number(), &capabilities).await.unwrap();
        assert_eq!(fetched.bundle, expected);
    }
    assert_eq!(node.stats().errors(ErrorClass::Reorged), 3);
}

#[tokio::test]
async fn frames_that_were_lost_on_the_way_are_waited_for() {
    let fake = FakeNode::start(33);
    fake.mine(30);
    let (node, capabilities) = ready(&fake).await;
    let mut bundles = fake.bundles().into_iter();
    let deep = |bundle: &Bundle| bundle.traces.iter().flatten().any(|trace| trace.frames.len() > 1);
    let expected = bundles.find(deep).expect("a call below another");
    let number = expected.block.number();
    // Twice in a row, which once was enough to be believed.
    fake.fault(Fault::LostFrame, 3);
    let fetched = node.bundle(number, &capabilities).await.unwrap();
    assert_eq!(fetched.bundle, expected);
    // One that stands by it is believed in the end: some clients count what they leave out.
    fake.fault(Fault::LostFrame, u64::MAX);
    let fetched = node.bundle(number, &capabilities).await.unwrap();
    let frames = |bundle: &Bundle| {
        bundle
            .traces
            .iter()
            .flatten()
            .map(|trace| trace.frames.len())
            .sum::<usize>()
    };
    assert_eq!(frames(&fetched.bundle) + 1, frames(&expected));
}

#[tokio::test]
async fn traces_are_asked_for_by_the_hash_of_their_block() {
    let fake = FakeNode::start(32);
    fake.mine(20);
    fake.set_methods(TRACERS);
    let (node, capabilities) = ready(&fake).await;
    assert_eq!(capabilities.traces, TraceMethod::DebugByHash);
    let expected = told_by_tracer(busy(&fake));
    fake.fault(Fault::TwinTraces, 1_000);
    let fetched = node.bundle(expected.block.number(), &capabilities).await.unwrap();
    assert_eq!(fetched.bundle, expected);
    assert_eq!(fake.asked("debug_traceBlockByNumber"), 0);
    fake.clear_faults();
    // Another one behind the balancer takes no hashes.
    fake.set_methods(BY_NUMBER);
    fake.fault(Fault::TwinTraces, 1);
    fake.fault(Fault::TwinBlock, 1);
    let fetched = node.bundle(expected.block.number(), &capabilities).await.unwrap();
    assert_eq!(fetched.bundle, expected);
}

#[tokio::test]
async fn a_block_that_is_left_before_it_is_traced_is_fetched_anew() {
    let fake = FakeNode::start(33);
    fake.mine(20);
    fake.set_methods(TRACERS);
    let (node, capabilities) = ready(&fake).await;
    let mut seen = 0;
    // Empty blocks have nothing to tell them apart.
    for _ in 0..10 {
        fake.reorg_after_block(2, 2);
        let before = fake.bundles()[19].clone();
        let fetched = node.bundle(19, &capabilities).await.unwrap().bundle;
        let now = fake.bundles()[19].clone();
        assert_ne!(now.block.hash, before.block.hash);
        assert_eq!(fetched, told_by_tracer(now));
        seen += usize::from(!before.block.transactions.is_empty());
    }
    assert!(0 < seen);
}

#[tokio::test]
async fn traces_of_a_block_that_do_not_state_it_are_held_against_its_hash() {
    let fake = FakeNode::start(34);
    fake.mine(20);
    let (node, capabilities) = ready(&fake).await;
    assert_eq!(capabilities.traces, TraceMethod::TraceBlock);
    let expected = busy(&fake);
    fake.fault(Fault::BareTraces, 1);
    let fetched = node.bundle(expected.block.number(), &capabilities).await.unwrap();
    assert_eq!(fetched.bundle, expected);
    assert_eq!(fake.asked("trace_block"), 3, "the probe, and twice for the block");
    // On another branch when it is looked at: all again.
    fake.fault(Fault::BareTraces, 1);
    fake.fault(Fault::TwinBlock, 1);
    let fetched = node.bundle(expected.block.number(), &capabilities).await.unwrap();
    assert_eq!(fetched.bundle, expected);
    assert_eq!(node.stats().errors(ErrorClass::Reorged), 1);
}

#[tokio::test]
async fn a_node_that_lags_behind_its_balancer_keeps_its_methods() {
    let fake = FakeNode::start(35);
    fake.mine(40);
    for (methods, traces) in [
        (Methods::default(), TraceMethod::TraceBlock),
        (BY_NUMBER, TraceMethod::DebugByNumber),
    ] {
        fake.set_methods(methods);
        // As long as it likes: there are blocks that it has.
        fake.fault(Fault::Lacks { above: 37 }, 1_000);
        let found = ready(&fake).await.1;
        assert_eq!((found.receipts, found.traces), (ReceiptMethod::Block, traces));
        fake.clear_faults();
        // It has none at all, for a moment.
        for method in ["eth_getBlockReceipts", traces.as_str()] {
            fake.fault(Fault::Refuses(method, -32001, "Resource not found"), 3);
        }
        let found = ready(&fake).await.1;
        assert_eq!((found.receipts, found.traces), (ReceiptMethod::Block, traces));
        fake.clear_faults();
    }
}

#[tokio::test]
async fn what_a_node_refuses_for_all_blocks_is_asked_for_later() {
    let fake = FakeNode::start(36);
    fake.mine(40);
    fake.set_methods(Methods {
        trace_block: false,
        ..BY_NUMBER
    });
    let node = Node::connect(config(fake.url())).await.unwrap();
    for (method, code, message) in [
        ("eth_getBlockReceipts", -32001, "Resource not found"),
        ("eth_getBlockReceipts", -32000, "header not found"),
        ("debug_traceBlockByNumber", -32000, "unknown block"),
        (
            "debug_traceBlockByNumber",
            -32000,
            "historical state is not available",
        ),
    ] {
        fake.fault(Fault::Refuses(method, code, message), 1_000);
        // All blocks are refused: it does without, says why, and is asked again.
        let found = node.probe().await.unwrap();
        assert!(found.lacks());
        let sentence = found.sentence().unwrap();
        assert!(sentence.contains(method), "{sentence}");
        if method.starts_with("debug") {
            assert!(sentence.contains(message), "{sentence}");
        }
        fake.clear_faults();
        let again = node.probe().await.unwrap();
        let joined = found.joined(again);
        assert_eq!(
            (joined.receipts, joined.traces),
            (ReceiptMethod::Block, TraceMethod::DebugByNumber)
        );
    }
    for (code, message) in [
        (-32601, "no"),
        (-32604, "Method not enabled"),
        (-32600, "this method is not available on the free tier"),
        (-32000, "rpc method is not whitelisted"),
        (
            -32002,
            "Archive, Debug and Trace requests are not available on your current plan.",
        ),
    ] {
        fake.fault(Fault::Refuses("eth_getBlockReceipts", code, message), 1_000);
        fake.fault(Fault::Refuses("debug_traceBlockByNumber", code, message), 1_000);
        let found = node.probe().await.unwrap();
        assert_eq!(found.receipts, ReceiptMethod::Transaction, "{message}");
        assert_eq!(found.traces, TraceMethod::None, "{message}");
        assert!(found.traces_refused.contains(message), "{}", found.traces_refused);
        fake.clear_faults();
    }
}

#[test]
fn another_look_adds_and_takes_nothing_away() {
    let poor = Capabilities {
        receipts: ReceiptMethod::Transaction,
        ..Capabilities::default()
    };
    let rich = Capabilities {
        receipts: ReceiptMethod::Block,
        traces: TraceMethod::TraceBlock,
        finalized_tag: true,
        safe_tag: true,
        ..Capabilities::default()
    };
    let by_number = Capabilities {
        traces: TraceMethod::DebugByNumber,
        ..rich.clone()
    };
    assert!(poor.lacks() && by_number.lacks() && !rich.lacks());
    let no_receipts = Capabilities {
        receipts: ReceiptMethod::Transaction,
        ..rich.clone()
    };
    assert!(no_receipts.lacks());
    assert_eq!(poor.joined(rich.clone()), rich);
    assert_eq!(rich.joined(poor.clone()), rich);
    assert_eq!(by_number.joined(poor), by_number);
    assert_eq!(by_number.joined(rich.clone()), rich);
}

#[test]
fn what_is_refused_again_and_again_is_replaced() {
    let before = Capabilities {
        traces: TraceMethod::TraceBlock,
        ..Capabilities::default()
    };
    let mut known = before.clone();
    assert!(known.asks("trace_block") && known.asks("eth_getBlockReceipts"));
    assert!(!known.asks("debug_traceBlockByHash") && !known.asks("eth_getUncleByBlockNumberAndIndex"));
    // The look met a node that has it.
    assert_eq!(known.replace("trace_block", &before, true), None);
    let bare = Capabilities {
        receipts: ReceiptMethod::Transaction,
        traces_refused: "gone".to_owned(),
        ..Capabilities::default()
    };
    assert_eq!(known.replace("trace_block", &bare, false), None);
    assert_eq!(known, before);
    let said = known.replace("trace_block", &bare, true).unwrap();
    assert!(said.contains("no traces (gone)"), "{said}");
    assert_eq!(
        (known.traces, known.receipts),
        (TraceMethod::None, ReceiptMethod::Block)
    );
    assert!(known.replace("eth_getBlockReceipts", &bare, false).is_some());
    assert_eq!(known.receipts, ReceiptMethod::Transaction);
}

/// They are as many bytes as those that come at once.
#[tokio::test]
async fn receipts_that_come_one_by_one_take_room_together() {
    const MIB: usize = 1 << 20;
    let fake = FakeNode::start(38);
    fake.mine(40);
    let bundles = fake.bundles();
    let is_busy = |bundle: &&Bundle| bundle.receipts.len() > 2;
    let number = bundles.iter().find(is_busy).unwrap().block.number();
    fake.fault(Fault::Padded("eth_getTransactionReceipt", 2 * MIB), u64::MAX);
    // Each bundle is taken to have 3 MiB at first, and other bundles have most of the rest.
    let node = Node::connect(NodeConfig {
        concurrency_max: 1,
        bytes_in_flight_max: 8 * MIB,
        ..config(fake.url())
    });
    let node = node.await.unwrap();
    let capabilities = Capabilities {
        receipts: ReceiptMethod::Transaction,
        ..Capabilities::default()
    };
    let first = node.reserve().await;
    let mut bundle = std::pin::pin!(node.bundle(number, &capabilities));
    let early = tokio::time::timeout(Duration::from_secs(2), &mut bundle).await;
    assert!(early.is_err(), "there is no room for all of them");
    drop(first);
    let fetched = tokio::time::timeout(LONG, bundle).await;
    let fetched = fetched.expect("there is room by now").unwrap();
    let bytes = fetched.bundle.receipts.len() * 2 * MIB;
    assert!(bytes < fetched.bytes, "{}", fetched.bytes);
    // The next one is taken to be as long: nothing else fits beside it.
    let _first = node.reserve().await;
    let second = tokio::time::timeout(Duration::from_millis(200), node.reserve()).await;
    assert!(second.is_err(), "there is room for one");
}

#[tokio::test]
async fn a_lost_request_is_given_up_before_its_time() {
    let fake = FakeNode::start(37);
    fake.mine(20);
    let (_, capabilities) = ready(&fake).await;
    // What is not given up early is not given up within this test.
    let patient = NodeConfig {
        light_timeout: Duration::from_secs(2),
        request_timeout: LONG * 10,
        deadline: LONG * 20,
        ..config(fake.url())
    };
    let node = Node::connect(patient).await.unwrap();
    let expected = busy(&fake);
    let number = expected.block.number();
    node.bundle(number, &capabilities).await.unwrap();
    for method in ["trace_block", "eth_getBlockReceipts", "eth_getBlockByNumber"] {
        let before = node.stats().errors(ErrorClass::Timeout);
        fake.fault(Fault::Lost(method), 1);
        let fetched = tokio::time::timeout(LONG, node.bundle(number, &capabilities)).await;
        assert_eq!(fetched.expect(method).unwrap().bundle, expected);
        assert!(before < node.stats().errors(ErrorClass::Timeout), "{method}");
    }
}
