//! The client against the fake node.

use crate::support::chain::ChainSpec;
use crate::support::fake_node::{FakeNode, Fault, Methods};
use quarry::node::{
    BlockId, Capabilities, ErrorClass, Node, NodeConfig, NodeError, ReceiptMethod, TraceMethod,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Settings with short waits.
pub(crate) fn config(url: impl Into<String>) -> NodeConfig {
    NodeConfig {
        request_timeout: Duration::from_secs(5),
        deadline: Duration::from_secs(20),
        attempts_max: 4,
        backoff_first: Duration::from_millis(2),
        backoff_max: Duration::from_millis(10),
        poll_interval: Duration::from_millis(20),
        ..NodeConfig::new(url)
    }
}

pub(crate) async fn ready(fake: &FakeNode) -> (Node, Capabilities) {
    let node = Node::connect(config(fake.url())).await.unwrap();
    let capabilities = node.probe().await.unwrap();
    (node, capabilities)
}

/// A sync task drives many of these from any thread.
#[test]
fn futures_are_send() {
    fn is_send<T: Send>(_: &T) {}
    fn check(node: &Node, capabilities: &Capabilities) {
        is_send(&node.probe());
        is_send(&node.bundle(1, capabilities));
        is_send(&node.block_id(1));
        is_send(&node.finalized());
        is_send(&node.heads());
    }
    let _ = check;
}

/// A number of a block with at least two transactions and a log.
fn busy_block(fake: &FakeNode) -> u64 {
    let bundles = fake.bundles();
    let busy = bundles.iter().find(|bundle| {
        bundle.block.transactions.len() > 1 && bundle.receipts.iter().any(|receipt| !receipt.logs.is_empty())
    });
    busy.expect("a busy block").block.number()
}

#[tokio::test]
async fn the_probe_names_what_the_node_can_do() {
    let fake = FakeNode::start(1);
    fake.mine(5);
    fake.set_finalized(3);
    let (node, capabilities) = ready(&fake).await;
    assert_eq!(capabilities.chain_id, 1337);
    assert_eq!(capabilities.head, 5);
    assert_eq!(capabilities.genesis_hash, fake.bundles()[0].block.hash);
    assert_eq!(capabilities.client_version, "fake/1.0");
    assert!(capabilities.finalized_tag && capabilities.safe_tag);
    assert_eq!(capabilities.traces, TraceMethod::TraceBlock);
    assert_eq!(capabilities.receipts, ReceiptMethod::Block);
    assert_eq!(capabilities.sentence(), None);
    assert_eq!(node.finalized().await.unwrap().unwrap().number, 3);

    fake.set_methods(Methods {
        trace_block: false,
        ..Methods::default()
    });
    assert_eq!(node.probe().await.unwrap().traces, TraceMethod::DebugByHash);
    fake.set_methods(Methods {
        trace_block: false,
        debug_by_hash: false,
        ..Methods::default()
    });
    assert_eq!(node.probe().await.unwrap().traces, TraceMethod::DebugByNumber);

    fake.set_methods(Methods {
        block_receipts: false,
        trace_block: false,
        debug_trace: false,
        debug_by_hash: false,
        tags: false,
    });
    let poor = node.probe().await.unwrap();
    assert_eq!(
        (poor.traces, poor.receipts),
        (TraceMethod::None, ReceiptMethod::Transaction)
    );
    assert!(!poor.finalized_tag && !poor.safe_tag);
    assert_eq!(node.safe().await.unwrap(), None);
    let sentence = poor.sentence().unwrap();
    for word in [
        "trace_block",
        "internal transactions",
        "Byzantium",
        "eth_getBlockReceipts",
        "finalized",
    ] {
        assert!(sentence.contains(word), "{sentence}");
    }
}

/// As nodes of Cosmos chains do, which begin with block 1.
#[tokio::test]
async fn a_chain_without_block_0_is_named_as_one() {
    let fake = FakeNode::start(3);
    fake.mine(2);
    let (node, capabilities) = ready(&fake).await;
    fake.fault(Fault::BlockOneForZero, 1_000);
    let said = "eth_getBlockByNumber: malformed response: asked for block 0, got block 1; a chain without a block 0 cannot be \
                indexed";
    assert_eq!(node.probe().await.unwrap_err().to_string(), said);
    let error = node.bundle(0, &capabilities).await.unwrap_err();
    assert!(error.is_retryable() && error.to_string() == said, "{error}");
}

#[tokio::test]
async fn an_empty_chain_does_not_mislead_the_probe() {
    let fake = FakeNode::start(2);
    assert_eq!(ready(&fake).await.1.traces, TraceMethod::TraceBlock);
    fake.set_methods(Methods {
        trace_block: false,
        ..Methods::default()
    });
    assert_eq!(ready(&fake).await.1.traces, TraceMethod::DebugByHash);
    fake.set_methods(Methods {
        trace_block: false,
        debug_by_hash: false,
        ..Methods::default()
    });
    assert_eq!(ready(&fake).await.1.traces, TraceMethod::DebugByNumber);
    // A bad moment is an error, not a missing method.
    fake.fault(Fault::ServerError, 1_000);
    let node = Node::connect(config(fake.url())).await.unwrap();
    assert_eq!(node.probe().await.unwrap_err().class(), ErrorClass::HttpStatus);
}

#[tokio::test(flavor = "multi_thread")]
async fn bundles_equal_the_model_by_every_way_of_asking() {
    let fake = FakeNode::start(3);
    fake.mine(60);
    let expected = fake.bundles();
    assert!(
        expected.iter().any(|bundle| bundle.block.transactions.is_empty()),
        "an empty block"
    );
    for methods in [
        Methods::default(),
        Methods {
            trace_block: false,
            ..Methods::default()
        },
        Methods {
            trace_block: false,
            debug_by_hash: false,
            ..Methods::default()
        },
        Methods {
            block_receipts: false,
            ..Methods::default()
        },
        Methods {
            trace_block: false,
            debug_trace: false,
            ..Methods::default()
        },
    ] {
        fake.set_methods(methods);
        let (node, capabilities) = ready(&fake).await;
        let fetch = expected
            .iter()
            .map(|bundle| node.bundle(bundle.block.number(), &capabilities));
        let fetched = futures_util::future::try_join_all(fetch).await.unwrap();
        for (fetched, expected) in fetched.into_iter().zip(&expected) {
            let mut expected = expected.clone();
            if !methods.trace_block && methods.debug_trace {
                // The call tracer states the intrinsic gas of the top call too.
                for trace in expected.traces.iter_mut().flatten() {
                    trace.frames[0].gas += 21_000;
                    trace.frames[0].gas_used += 21_000;
                }
            }
            if !methods.trace_block && !methods.debug_trace {
                expected.traces = None;
            }
            assert_eq!(fetched.bundle, expected, "{methods:?}");
            assert!(500 < fetched.bytes);
        }
    }
}

#[tokio::test]
async fn uncles_are_fetched_with_their_block() {
    let fake = FakeNode::start(13);
    fake.mine(4);
    let (node, capabilities) = ready(&fake).await;
    fake.set_uncles(true);
    let block = node.bundle(3, &capabilities).await.unwrap().bundle.block;
    let uncle = fake.bundles()[1].block.clone();
    assert_eq!(block.uncles, [uncle.hash]);
    assert_eq!(block.uncle_headers, [uncle.header]);
    assert_eq!(fake.asked("eth_getUncleByBlockNumberAndIndex"), 1);
}

#[tokio::test]
async fn what_a_gateway_refuses_by_its_status_is_not_waited_for() {
    const LOOK: &str = "eth_getBlockByNumber";
    for status in [400, 403, 404, 405] {
        let fake = FakeNode::start(15);
        fake.mine(5);
        fake.fault(Fault::Status("web3_clientVersion", status), 1);
        fake.fault(Fault::TagStatus(status), 2);
        let (node, capabilities) = ready(&fake).await;
        assert_eq!(capabilities.client_version, "", "{status}");
        assert!(!capabilities.finalized_tag && !capabilities.safe_tag, "{status}");
        fake.fault(Fault::Status(LOOK, status), 1);
        assert_eq!(node.finalized().await, Ok(None), "{status}");
        // Of a block by its number this is a failure.
        fake.fault(Fault::Status(LOOK, status), 1);
        node.block_id(3).await.unwrap_err();
    }
    let fake = FakeNode::start(15);
    fake.mine(5);
    let (node, _) = ready(&fake).await;
    fake.fault(Fault::NoIdentity, 2);
    assert_eq!(node.finalized().await, Ok(None));
    assert_eq!(node.block_id(3).await, Ok(None));
}

#[tokio::test]
async fn a_chain_id_of_more_than_64_bits_is_not_waited_for() {
    let fake = FakeNode::start(16);
    let node = Node::connect(config(fake.url())).await.unwrap();
    fake.fault(Fault::WideChain, 1_000);
    let error = node.chain().await.unwrap_err();
    assert!(matches!(error, NodeError::ChainId { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("18446744073709551616 has more than 64 bits"),
        "{error}"
    );
    assert_eq!(fake.asked("eth_chainId"), 1);
}

#[tokio::test]
async fn uncles_that_are_refused_now_and_then_are_asked_for_again() {
    const UNCLE: &str = "eth_getUncleByBlockNumberAndIndex";
    let refusals = [
        Fault::Refuses(UNCLE, -32601, "method not found"),
        Fault::Status(UNCLE, 403),
    ];
    for refusal in refusals {
        let fake = FakeNode::start(14);
        fake.mine(6);
        let (node, capabilities) = ready(&fake).await;
        fake.set_uncles(true);
        let headers = async |number| {
            let fetched = node.bundle(number, &capabilities).await;
            fetched.map(|fetched| fetched.bundle.block.uncle_headers.len())
        };
        // One of several nodes behind a balancer.
        fake.fault(refusal.clone(), 3);
        assert_eq!(headers(3).await, Ok(1), "{refusal:?}");
        assert_eq!(fake.asked(UNCLE), 4);
        // It told some: it does not lack them.
        fake.fault(refusal.clone(), 1_000);
        headers(4).await.unwrap_err();
        fake.clear_faults();
        assert_eq!(headers(4).await, Ok(1));

        // One that never told any is believed, and asked once a block from then on.
        let (node, capabilities) = ready(&fake).await;
        let asked = fake.asked(UNCLE);
        fake.fault(refusal.clone(), 1_000);
        for number in 2..=5 {
            let fetched = node.bundle(number, &capabilities).await.unwrap();
            assert_eq!(fetched.bundle.block.uncles.len(), 1);
            assert_eq!(fetched.bundle.block.uncle_headers.len(), 0);
        }
        assert_eq!(fake.asked(UNCLE), asked + 7, "{refusal:?}");
    }
}

#[tokio::test]
async fn small_questions_are_answered() {
    let fake = FakeNode::start_with(ChainSpec {
        block_seconds: 3_600,
        ..ChainSpec::new(4)
    });
    fake.mine(30);
    let (node, _) = ready(&fake).await;
    let chain = fake.chain();
    let bundle = chain.bundle(7).unwrap();
    let id = BlockId {
        number: 7,
        hash: bundle.block.hash,
        parent_hash: bundle.block.header.parent_hash,
    };
    assert_eq!(node.block_id(7).await.unwrap(), Some(id));
    assert_eq!(node.block_id(31).await.unwrap(), None);
    assert_eq!(node.head().await.unwrap(), 30);
    let account = chain.spec.account(0);
    let world = chain.world(20).unwrap();
    assert!(0 < world.nonces[&account]);
    assert_eq!(
        node.transaction_count(account, 20).await.unwrap(),
        world.nonces[&account]
    );
    assert_eq!(node.balance(account, 20).await.unwrap(), world.balance(account));
    assert_eq!(node.raw("eth_chainId", "[]").await.unwrap().get(), "\"0x539\"");
    fake.fault(Fault::HeadBack(3), 1);
    assert_eq!(node.head().await.unwrap(), 27);
    assert_eq!(node.head().await.unwrap(), 30);
}

/// Waits for requests that were given up: those that still arrive would take the next fault to themselves.
async fn given_up_are_over(fake: &FakeNode, node: &Node) {
    // Comes after what is on its way.
    node.head().await.unwrap();
    let began = Instant::now();
    while fake.in_flight() > 0 {
        assert!(began.elapsed() < Duration::from_secs(20), "they are not over");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn every_fault_has_its_name_and_passes_when_repeated() {
    let fake = FakeNode::start(5);
    fake.mine(20);
    let number = busy_block(&fake);
    let (node, capabilities) = ready(&fake).await;
    let expected = fake.bundles()[usize::try_from(number).unwrap()].clone();
    for (fault, class) in [
        (Fault::NullBlock, ErrorClass::NullResult),
        (Fault::NullReceipts, ErrorClass::NullResult),
        (Fault::MissingReceipt, ErrorClass::Incomplete),
        (Fault::OtherReceipts, ErrorClass::Reorged),
        (Fault::MissingTrace, ErrorClass::Incomplete),
        (Fault::Truncated, ErrorClass::Malformed),
        (Fault::Garbage, ErrorClass::Malformed),
        (Fault::OtherId, ErrorClass::Malformed),
        (Fault::NoId, ErrorClass::Malformed),
        (Fault::TooManyRequests(None), ErrorClass::RateLimited),
        (Fault::RpcError(-32005, "limit exceeded"), ErrorClass::RateLimited),
        (Fault::RpcError(-32000, "header not found"), ErrorClass::Rpc),
        (Fault::ServerError, ErrorClass::HttpStatus),
        (Fault::Hangup, ErrorClass::Transport),
    ] {
        let before = node.stats().errors(class);
        fake.fault(fault.clone(), 2);
        let fetched = node.bundle(number, &capabilities).await;
        assert_eq!(
            fetched.as_ref().map(|fetched| &fetched.bundle),
            Ok(&expected),
            "{fault:?}"
        );
        assert!(before < node.stats().errors(class), "{fault:?}");

        fake.fault(fault.clone(), 1_000);
        let error = node.bundle(number, &capabilities).await.unwrap_err();
        assert_eq!(error.class(), class, "{fault:?}: {error}");
        assert!(error.is_retryable());
        assert!(!error.to_string().contains(&fake.url()), "{error}");
        fake.clear_faults();
        given_up_are_over(&fake, &node).await;
    }
    assert!(0 < node.stats().retries.load(Ordering::Relaxed));
    // JSON, and no answer to what was asked.
    let before = node.stats().errors(ErrorClass::Malformed);
    fake.fault(Fault::NullHead, 1);
    let error = node.head().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Malformed, "{error}");
    assert_eq!(node.stats().errors(ErrorClass::Malformed), before + 1);
}

#[tokio::test]
async fn what_cannot_pass_is_not_repeated() {
    let fake = FakeNode::start(6);
    fake.mine(3);
    let (node, _) = ready(&fake).await;
    let error = node.raw("eth_nonsense", "[]").await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::MethodNotFound);
    assert_eq!(fake.asked("eth_nonsense"), 1);
    let error = node
        .raw("eth_getBlockByNumber", "[\"seven\",false]")
        .await
        .unwrap_err();
    assert!(matches!(error, NodeError::Rpc { code: -32602, .. }), "{error}");
    let small = NodeConfig {
        response_bytes_max: 100,
        ..config(fake.url())
    };
    let error = Node::connect(small).await.unwrap().block_id(1).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::ResponseTooLarge);
    let error = Node::connect(config("ftp://127.0.0.1")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Url);
}

/// Wrong contents that only hashes can show are handed on for verification, as the node states them.
#[tokio::test]
async fn lies_that_are_well_formed_are_left_to_verification() {
    let fake = FakeNode::start(5);
    fake.mine(20);
    let number = busy_block(&fake);
    let (node, capabilities) = ready(&fake).await;
    let expected = fake.bundles()[usize::try_from(number).unwrap()].clone();
    fake.fault(Fault::WrongParent, 1);
    let told = node.bundle(number, &capabilities).await.unwrap().bundle;
    assert_ne!(told.block.header.parent_hash, expected.block.header.parent_hash);
    fake.fault(Fault::WrongReceipt, 1);
    let told = node.bundle(number, &capabilities).await.unwrap().bundle;
    assert_eq!(told.block, expected.block);
    assert_ne!(told.receipts, expected.receipts);
}

#[tokio::test]
async fn a_slow_answer_is_a_timeout_and_a_stalled_node_recovers() {
    let fake = FakeNode::start(7);
    fake.mine(3);
    let (_, capabilities) = ready(&fake).await;
    let impatient = NodeConfig {
        request_timeout: Duration::from_millis(500),
        ..config(fake.url())
    };
    let node = Node::connect(impatient).await.unwrap();
    let before = node.stats().errors(ErrorClass::Timeout);
    fake.fault(Fault::Slow(Duration::from_secs(5)), 1);
    assert_eq!(node.head().await.unwrap(), 3);
    assert!(node.stats().errors(ErrorClass::Timeout) > before);
    fake.stall(true);
    let error = node.bundle(2, &capabilities).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout);
    fake.stall(false);
    node.bundle(2, &capabilities).await.unwrap();
}

#[tokio::test]
async fn retry_after_is_obeyed() {
    let fake = FakeNode::start(8);
    let (node, _) = ready(&fake).await;
    fake.fault(Fault::TooManyRequests(Some(1)), 1);
    let started = std::time::Instant::now();
    assert_eq!(node.head().await.unwrap(), 0);
    assert!(Duration::from_millis(990) < started.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limits_reduce_concurrency_and_quiet_raises_it() {
    let fake = FakeNode::start(9);
    fake.mine(300);
    let eager = NodeConfig {
        concurrency_max: 64,
        attempts_max: 50,
        ..config(fake.url())
    };
    let node = Node::connect(eager).await.unwrap();
    let capabilities = node.probe().await.unwrap();
    fake.set_latency(Duration::from_millis(3));
    let ask = |from: u64| {
        futures_util::future::try_join_all((from..from + 50).map(|n| node.bundle(n, &capabilities)))
    };
    // Where the machine has other work answers take longer, and it climbs later.
    let above = async |least: u64| {
        for round in 0..40 {
            ask(1 + 50 * (round % 4)).await.unwrap();
            if least <= node.concurrency() {
                break;
            }
        }
        node.concurrency()
    };
    let before = above(9).await;
    fake.allow_in_flight(4);
    ask(101).await.unwrap();
    assert!(0 < node.stats().errors(ErrorClass::RateLimited));
    assert!(0 < node.stats().cuts.load(Ordering::Relaxed));
    let limited = node.concurrency();
    assert!(
        9 <= before && limited <= 8 && limited < before,
        "{limited} after {before}"
    );
    fake.allow_in_flight(u64::MAX);
    let quiet = above(limited + 1).await;
    assert!(limited < quiet, "{quiet} after {limited}");
    assert!(fake.in_flight_max() <= 64);
    assert_eq!(node.stats().in_flight.load(Ordering::Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_in_flight_are_bounded_without_deadlock() {
    let fake = FakeNode::start(10);
    fake.mine(60);
    let tight = NodeConfig {
        bytes_in_flight_max: 4 << 10,
        ..config(fake.url())
    };
    let node = Node::connect(tight).await.unwrap();
    let capabilities = node.probe().await.unwrap();
    for _ in 0..3 {
        let all = (1..=60).map(|number| node.bundle(number, &capabilities));
        let all = futures_util::future::try_join_all(all);
        tokio::time::timeout(Duration::from_secs(30), all)
            .await
            .unwrap()
            .unwrap();
    }
    // One bundle at a time once sizes are known: a block, its receipts and its traces.
    assert!(fake.in_flight_max() < 60);
}
