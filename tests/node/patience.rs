//! How long a node is asked again, for whom, and when it is left alone.

use crate::client::config;
use crate::support::fake_node::{FakeNode, Fault};
use futures_util::FutureExt;
use quarry::model::Address;
use quarry::node::{ErrorClass, Node, NodeConfig};
use serde_json::value::RawValue;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test]
async fn clients_questions_are_repeated_little() {
    let fake = FakeNode::start(21);
    let patient = NodeConfig {
        attempts_max: 6,
        ..config(fake.url())
    };
    let node = Node::connect(patient).await.unwrap();
    let clients = node.for_clients();
    for fault in [
        Fault::Hangup,
        Fault::ServerError,
        Fault::Garbage,
        Fault::TooManyRequests(None),
    ] {
        for (asker, attempts) in [(&clients, 3), (&node, 6)] {
            fake.fault(fault.clone(), 1_000);
            let before = fake.asked("eth_getBalance");
            asker.balance(Address::ZERO, 0).await.unwrap_err();
            assert_eq!(fake.asked("eth_getBalance") - before, attempts, "{fault:?}");
            fake.clear_faults();
        }
        fake.fault(fault, 2);
        clients.balance(Address::ZERO, 0).await.unwrap();
    }
    let counted = node.stats().requests.load(Ordering::Relaxed);
    clients.head().await.unwrap();
    assert_eq!(
        node.stats().requests.load(Ordering::Relaxed),
        counted + 1,
        "both are the same node"
    );
}

#[tokio::test]
async fn a_stalled_question_of_a_client_is_not_repeated() {
    let fake = FakeNode::start(22);
    let hasty = NodeConfig {
        light_timeout: Duration::from_millis(100),
        ..config(fake.url())
    };
    let node = Node::connect(hasty).await.unwrap();
    for (asker, attempts) in [(&node.for_clients(), 1), (&node, 2)] {
        let before = node.stats().requests.load(Ordering::Relaxed);
        fake.stall(true);
        let error = asker.balance(Address::ZERO, 0).await.unwrap_err();
        fake.stall(false);
        assert_eq!(error.class(), ErrorClass::Timeout);
        assert_eq!(node.stats().requests.load(Ordering::Relaxed) - before, attempts);
    }
}

#[tokio::test]
async fn a_node_that_asks_for_a_long_rest_has_it() {
    let fake = FakeNode::start(23);
    let node = Node::connect(config(fake.url())).await.unwrap();
    // More than the deadline of a request.
    fake.fault(Fault::TooManyRequests(Some(200)), 1);
    let error = node.head().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::RateLimited);
    assert_eq!(fake.asked("eth_blockNumber"), 1);
    // The sync waits.
    for _ in 0..100 {
        let mut asked = Box::pin(node.head());
        assert!((&mut asked).now_or_never().is_none());
        tokio::task::yield_now().await;
        assert!((&mut asked).now_or_never().is_none());
    }
    // Clients are told.
    let none: Box<RawValue> = serde_json::from_str("[]").unwrap();
    for _ in 0..10 {
        let error = node.for_clients().head().await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::RateLimited);
        let error = node.pass_on("eth_blockNumber", &none).await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::RateLimited);
    }
    assert_eq!(fake.asked("eth_blockNumber"), 1);
}
