//! Long lists for many clients at once, from a store that has nothing in memory at first: each gets what one alone gets.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::mined::Mined;
use crate::plain::{self, ChainConfig, Rng};

/// So long that a list of all logs has a dozen frames and more.
const DATA_BYTES: usize = 6_000;

#[tokio::test(flavor = "multi_thread")]
async fn many_clients_get_what_one_gets() {
    let config = ChainConfig {
        logs_per_block: 12,
        emitters: 2,
        ..ChainConfig::default()
    };
    let mut bundles = plain::chain(12, 60, &config);
    let mut rng = Rng(6);
    let receipts = bundles.iter_mut().flat_map(|bundle| &mut bundle.receipts);
    for log in receipts.flat_map(|receipt| &mut receipt.logs) {
        let words = std::iter::repeat_with(|| rng.next().to_le_bytes());
        log.data = words.flatten().take(DATA_BYTES).collect::<Vec<_>>().into();
    }
    let mut signatures = BTreeMap::<_, usize>::new();
    let receipts = bundles.iter().flat_map(|bundle| &bundle.receipts);
    for topic in receipts
        .flat_map(|receipt| &receipt.logs)
        .filter_map(|log| log.topics.first())
    {
        *signatures.entry(*topic).or_default() += 1;
    }
    let (topic0, _) = signatures.into_iter().max_by_key(|(_, logs)| *logs).unwrap();
    let warm = Mined::cold(bundles.clone()).await;
    let address = warm.busiest();
    let paths: Vec<String> = ["asc", "desc"]
        .into_iter()
        .flat_map(|sort| {
            [
                format!("/api/logs/get-logs?address={address}&sort={sort}&offset=10000"),
                format!("/api/logs/get-logs?topic0={topic0}&sort={sort}&offset=10000"),
            ]
        })
        .collect();
    let mut expected = Vec::new();
    for path in &paths {
        for accept in ["application/json", "application/x-ndjson"] {
            let reply = warm.get(path, &[("accept", accept)]).await;
            assert_eq!(reply.status(), 200);
            assert!(reply.body().len() > 1 << 20, "{} bytes", reply.body().len());
            expected.push((path.clone(), accept, reply.body().to_vec()));
        }
    }
    // The first time around nothing is in memory, then some, then all that fits.
    let cold = Arc::new(Mined::cold(bundles).await);
    for round in 0..3 {
        let mut clients = JoinSet::new();
        for (path, accept, body) in expected.clone() {
            let cold = Arc::clone(&cold);
            clients.spawn(async move {
                let reply = cold.get(&path, &[("accept", accept)]).await;
                assert_eq!(reply.status(), 200);
                assert!(reply.body().as_ref() == body, "{path} as {accept}, round {round}");
            });
        }
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
    }
}
