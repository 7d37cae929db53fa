//! Questions of clients, passed on to the fake node as they are.

use crate::client::config;
use crate::support::fake_node::{FakeNode, Fault};
use futures_util::future::join_all;
use quarry::node::{ErrorClass, Node, NodeConfig, Passed};
use serde_json::value::RawValue;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn params(text: &str) -> Box<RawValue> {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn results_and_errors_come_back_as_they_are() {
    let fake = FakeNode::start(1);
    fake.mine(3);
    let socket = std::env::temp_dir().join(format!("quarry-passing-{}.ipc", std::process::id()));
    let _server = fake.serve_ipc(&socket);
    for url in [fake.url(), socket.display().to_string()] {
        let node = Node::connect(config(url)).await.unwrap();
        let Passed::Result(text) = node
            .pass_on("eth_getBlockByNumber", &params("[\"0x2\",false]"))
            .await
            .unwrap()
        else {
            panic!("an error");
        };
        let block: serde_json::Value = serde_json::from_str(text.get()).unwrap();
        assert_eq!(block["hash"], format!("{:?}", fake.bundles()[2].block.hash));
        // Long messages and codes of every kind are the client's to read, and nothing is asked twice.
        let long: &'static str = "reverted: ".repeat(100).leak();
        for (code, message) in [(3, long), (-32000, "busy"), (-32601, "the method is none")] {
            fake.fault(Fault::RpcError(code, message), 1);
            let before = fake.asked("eth_chainId");
            let Passed::Error {
                code: told,
                message: said,
                data,
            } = node.pass_on("eth_chainId", &params("[]")).await.unwrap()
            else {
                panic!("a result");
            };
            assert_eq!((told, said.as_str(), data.is_none()), (code, message, true));
            assert_eq!(fake.asked("eth_chainId"), before + 1);
        }
    }
}

#[tokio::test]
async fn a_failure_of_the_way_is_told_at_once() {
    let fake = FakeNode::start(2);
    let node = Node::connect(config(fake.url())).await.unwrap();
    for (fault, class) in [
        (Fault::ServerError, ErrorClass::HttpStatus),
        (Fault::Garbage, ErrorClass::Malformed),
        (Fault::Hangup, ErrorClass::Transport),
        (Fault::TooManyRequests(None), ErrorClass::RateLimited),
    ] {
        fake.fault(fault, 1);
        let error = node.pass_on("eth_chainId", &params("[]")).await.unwrap_err();
        assert_eq!(error.class(), class);
        assert_eq!(node.stats().errors(class), 1);
        node.pass_on("eth_chainId", &params("[]")).await.unwrap();
    }
    assert_eq!(node.stats().retries.load(Ordering::Relaxed), 0);
    let hasty = NodeConfig {
        light_timeout: Duration::from_millis(50),
        ..config(fake.url())
    };
    let node = Node::connect(hasty).await.unwrap();
    fake.fault(Fault::Slow(Duration::from_secs(5)), 1);
    let error = node.pass_on("eth_chainId", &params("[]")).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout);
}

#[tokio::test(flavor = "multi_thread")]
async fn few_are_in_flight_at_a_time() {
    let fake = FakeNode::start(3);
    fake.set_latency(Duration::from_millis(5));
    let eager = NodeConfig {
        concurrency_max: 64,
        ..config(fake.url())
    };
    let node = Node::connect(eager).await.unwrap();
    let none = params("[]");
    for _ in 0..3 {
        let all = join_all((0..100).map(|_| node.pass_on("eth_chainId", &none))).await;
        assert!(all.iter().all(|passed| matches!(passed, Ok(Passed::Result(_)))));
    }
    let most = fake.in_flight_max();
    assert!((2..=16).contains(&most), "{most}");
    assert_eq!(node.stats().in_flight.load(Ordering::Relaxed), 0);
}
