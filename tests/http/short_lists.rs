//! Short lists are tried out of memory first. Where some of their rows are in memory and others are on disk they are
//! whole nevertheless.

use serde_json::Value;

use crate::mined::Mined;
use crate::plain::{self, ChainConfig, Rng};

/// A log of it is a good part of a frame, so that few rows take several.
const DATA_BYTES: usize = 90_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_short_list_is_whole_however_much_of_it_is_in_memory() {
    let config = ChainConfig {
        logs_per_block: 6,
        emitters: 1,
        ..ChainConfig::default()
    };
    let mut bundles = plain::chain(11, 12, &config);
    let mut rng = Rng(5);
    let receipts = bundles.iter_mut().flat_map(|bundle| &mut bundle.receipts);
    for log in receipts.flat_map(|receipt| &mut receipt.logs) {
        let words = std::iter::repeat_with(|| rng.next().to_le_bytes());
        log.data = words.flatten().take(DATA_BYTES).collect::<Vec<_>>().into();
    }
    for (before, sort) in [(1, "asc"), (1, "desc"), (2, "asc"), (5, "asc")] {
        let world = Mined::cold(bundles.clone()).await;
        let list = format!("/api/logs/get-logs?address={}&sort={sort}", world.busiest());
        let mut found = Vec::new();
        // The first request leaves in memory what begins the others.
        for offset in [before, 20, 20, 10_000] {
            let reply = world.get(&format!("{list}&offset={offset}"), &[]).await;
            assert_eq!(reply.status(), 200);
            let body: Value = serde_json::from_slice(reply.body()).unwrap();
            found.push(body["logs"].as_array().unwrap().clone());
        }
        let [few, short, again, all] = found.try_into().unwrap();
        assert!(all.len() > 20, "{} logs", all.len());
        assert_eq!(few, all[..before]);
        assert_eq!(short, all[..20], "after {before}, {sort}");
        assert_eq!(again, short);
    }
}
