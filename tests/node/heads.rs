//! News of the head, by asking and by subscription.

use super::client::{config, ready};
use crate::support::fake_node::FakeNode;
use quarry::node::{Node, NodeConfig};
use std::time::Duration;

#[tokio::test]
async fn heads_are_polled_over_http() {
    let fake = FakeNode::start(11);
    fake.mine(2);
    let (node, _) = ready(&fake).await;
    watch_heads(&fake, &node).await;
}

#[tokio::test]
async fn heads_come_by_subscription_over_ipc_and_survive_reconnects() {
    let fake = FakeNode::start(12);
    fake.mine(2);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("node.ipc");
    let server = fake.serve_ipc(&path);
    let settings = NodeConfig {
        poll_interval: Duration::from_secs(60),
        ..config(path.to_str().unwrap())
    };
    let node = Node::connect(settings).await.unwrap();
    let capabilities = node.probe().await.unwrap();
    assert_eq!(
        node.bundle(2, &capabilities).await.unwrap().bundle,
        fake.bundles()[2]
    );
    watch_heads(&fake, &node).await;

    let mut heads = node.heads();
    heads.next().await.unwrap();
    drop(server);
    let _server = fake.serve_ipc(&path);
    fake.mine(1);
    let expected = fake.bundles().last().unwrap().block.hash;
    let found = async { while heads.next().await.unwrap().hash != expected {} };
    tokio::time::timeout(Duration::from_secs(30), found)
        .await
        .expect("news after a reconnect");
}

async fn watch_heads(fake: &FakeNode, node: &Node) {
    let mut heads = node.heads();
    let mut next = async || {
        tokio::time::timeout(Duration::from_secs(10), heads.next())
            .await
            .unwrap()
            .unwrap()
    };
    assert_eq!(next().await.number, 2);
    fake.mine(3);
    assert_eq!(next().await.number, 5);
    // The same number on another branch is news.
    let old = fake.bundles()[5].block.hash;
    fake.reorg(2, 2);
    let head = next().await;
    assert_eq!(head.number, 5);
    assert_ne!(head.hash, old);
    // So is a lower one.
    fake.reorg(3, 1);
    assert_eq!(next().await.number, 3);
    fake.reorg(1, 0);
    fake.mine(0);
    assert_eq!(next().await.number, 2);
}
