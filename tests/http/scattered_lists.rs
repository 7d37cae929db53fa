//! Pages whose rows lie far apart, each in a unit of its own: the same as page by page, and counted whole.

use quarry::model::{B256, Topics};
use serde_json::Value;

use crate::metrics::figures;
use crate::mined::Mined;
use crate::plain::{self, ChainConfig};

/// Logs from one that is asked for to the next.
const APART: usize = 90;

/// A chain where so many logs have `topic` at position 1, far from each other, with so much data each.
fn chain(topic: B256, hits: usize, data: usize) -> Vec<quarry::model::Bundle> {
    let config = ChainConfig {
        logs_per_block: 180,
        emitters: 5,
        traces: false,
        ..ChainConfig::default()
    };
    let mut bundles = plain::chain(21, (hits * APART / 60) as u64, &config);
    let receipts = bundles.iter_mut().flat_map(|bundle| &mut bundle.receipts);
    let logs = receipts.flat_map(|receipt| &mut receipt.logs);
    let mut marked = 0;
    for log in logs.step_by(APART).take(hits) {
        log.topics = Topics::new(&[B256::repeat_byte(7), topic]).unwrap();
        log.data = vec![marked as u8; data].into();
        marked += 1;
    }
    assert_eq!(marked, hits, "the chain is too short");
    bundles
}

fn logs(body: &[u8]) -> Vec<Value> {
    let value: Value = serde_json::from_slice(body).unwrap();
    value["logs"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn long_pages_are_what_short_ones_are() {
    let topic = B256::repeat_byte(0x5a);
    // Short rows, rows of which half a page is longer than a frame, and some of which the whole page is one.
    for (hits, data) in [(64, 40), (301, 64), (130, 5_000), (390, 500)] {
        let world = Mined::cold(chain(topic, hits, data)).await;
        for sort in ["asc", "desc"] {
            let path = format!("/api/logs/get-logs?topic1={topic}&sort={sort}");
            let mut expected = Vec::new();
            for page in 1..=hits.div_ceil(10) {
                let reply = world.get(&format!("{path}&offset=10&page={page}"), &[]).await;
                expected.extend(logs(reply.body()));
            }
            assert_eq!(expected.len(), hits);
            let rows = "quarry_store_visits_total{operation=\"L1,L2,L3\",kind=\"rows\"}";
            // From the disk, from memory, and given again.
            for round in 0..4 {
                let before = figures(&world).await[rows];
                let reply = world.get(&path, &[]).await;
                assert_eq!(
                    logs(reply.body()),
                    expected,
                    "{hits} of {data} bytes, {sort}, {round}"
                );
                let read = figures(&world).await[rows] - before;
                assert!(
                    read == 0.0 || read >= hits as f64,
                    "{read} of {hits} rows are counted"
                );
                let lines = world.get(&path, &[("accept", "application/x-ndjson")]).await;
                let lines = lines
                    .body()
                    .split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty());
                let lines: Vec<Value> = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
                assert_eq!(lines, expected);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_get_whole_pages() {
    let topic = B256::repeat_byte(0x5a);
    let world = std::sync::Arc::new(Mined::cold(chain(topic, 200, 64)).await);
    let path = format!("/api/logs/get-logs?topic1={topic}");
    let expected = world.get(&path, &[]).await.into_body();
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..24 {
        let (world, path, expected) = (std::sync::Arc::clone(&world), path.clone(), expected.clone());
        clients.spawn(async move {
            for _ in 0..20 {
                let reply = world.get(&path, &[("cache-control", "no-cache")]).await;
                assert_eq!(*reply.body(), expected);
            }
        });
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
}
