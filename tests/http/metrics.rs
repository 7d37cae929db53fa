//! `/metrics`: the page can be read, and its figures move with what is asked.

use std::collections::BTreeMap;

use quarry::http::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::mined::{Mined, header};

/// Samples by name and labels. Fails on anything that is not OpenMetrics text.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut kinds = BTreeMap::new();
    let mut samples = BTreeMap::new();
    let text = text.strip_suffix("# EOF\n").expect("an end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(
                kinds.insert(name.to_owned(), kind.to_owned()).is_none(),
                "{name} comes twice"
            );
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let family = name.split('{').next().unwrap();
        let suffixes = ["", "_total", "_bucket", "_sum", "_count"];
        let kind = suffixes
            .iter()
            .find_map(|suffix| kinds.get(family.strip_suffix(suffix)?))
            .unwrap_or_else(|| panic!("{line}: no type"));
        assert!(["counter", "gauge", "histogram"].contains(&kind.as_str()));
        let value: f64 = value.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(samples.insert(name.to_owned(), value).is_none(), "{line}: twice");
    }
    samples
}

async fn figures(world: &Mined) -> BTreeMap<String, f64> {
    let page = world.get("/metrics", &[]).await;
    assert_eq!(page.status(), 200);
    let kind = header(&page, "content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    parse(std::str::from_utf8(page.body()).unwrap())
}

#[tokio::test]
async fn figures_move_with_what_is_asked() {
    let mut world = Mined::start(40, Limits::default()).await;
    let before = figures(&world).await;
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    let answer = world.get(&list, &[]).await;
    let rows = world.bundles.iter().flat_map(|bundle| &bundle.receipts);
    let rows = rows.flat_map(|receipt| &receipt.logs);
    let rows = rows.filter(|log| log.address == world.busiest()).count();
    for _ in 0..3 {
        world.get("/api/block/5/transaction-count", &[]).await;
    }
    world.get("/api/block/x/transaction-count", &[]).await;
    world.get("/nowhere", &[]).await;
    world.ask("PUT", "/health", &[]).await;
    world.mine(0);
    let after = figures(&world).await;
    let moved =
        |name: &str| after.get(name).copied().unwrap_or(0.0) - before.get(name).copied().unwrap_or(0.0);
    for (name, expected) in [
        (
            "quarry_http_requests_total{operation=\"L1,L2,L3\",status=\"200\"}",
            1.0,
        ),
        ("quarry_http_request_seconds_count{operation=\"L1,L2,L3\"}", 1.0),
        (
            "quarry_http_response_bytes_total{operation=\"L1,L2,L3\"}",
            answer.body().len() as f64,
        ),
        (
            "quarry_store_visits_total{operation=\"L1,L2,L3\",kind=\"rows\"}",
            rows as f64,
        ),
        ("quarry_http_requests_total{operation=\"B1\",status=\"200\"}", 3.0),
        ("quarry_http_requests_total{operation=\"B1\",status=\"400\"}", 1.0),
        ("quarry_http_request_seconds_count{operation=\"B1\"}", 4.0),
        (
            "quarry_http_requests_total{operation=\"none\",status=\"404\"}",
            1.0,
        ),
        (
            "quarry_http_requests_total{operation=\"none\",status=\"405\"}",
            1.0,
        ),
        // The page before this one is counted, this one is not yet.
        (
            "quarry_http_requests_total{operation=\"metrics\",status=\"200\"}",
            1.0,
        ),
        ("quarry_http_connections_accepted_total", 8.0),
        ("quarry_head{chain=\"mainnet\"}", 1.0),
        ("quarry_finalized{chain=\"mainnet\"}", 0.0),
        ("quarry_node_head{chain=\"mainnet\"}", 1.0),
        ("quarry_http_requests_in_flight", 0.0),
    ] {
        assert_eq!(moved(name), expected, "{name}");
    }
    for name in ["units", "chunks", "gets"] {
        let name = format!("quarry_store_visits_total{{operation=\"L1,L2,L3\",kind=\"{name}\"}}");
        assert!(moved(&name) > 0.0, "{name}");
    }
    let waited =
        ["point", "scan"].map(|lane| moved(&format!("quarry_pool_wait_seconds_count{{lane=\"{lane}\"}}")));
    assert!(waited[0] >= 4.0 && waited[1] >= 2.0, "{waited:?}");
    for name in [
        "process_resident_memory_bytes",
        "quarry_pool_threads",
        "quarry_http_connections",
        "quarry_store_bytes{chain=\"mainnet\"}",
    ] {
        assert!(after[name] > 0.0, "{name}");
    }
}

#[tokio::test]
async fn the_cap_on_requests_is_told_and_counted() {
    let limits = Limits {
        requests_max: 1,
        ..Limits::default()
    };
    let world = Mined::start(40, limits).await;
    let list = format!("/api/logs/get-logs?address={}", world.busiest());
    // Its answer is not taken, so it stays under way.
    let mut held = world.server.connect().await;
    let request = format!("GET {list} HTTP/1.1\r\nhost: x\r\n\r\n");
    held.write_all(request.repeat(40).as_bytes()).await.unwrap();
    held.read_exact(&mut [0; 16]).await.unwrap();
    // Until the buffers in between are full.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let refused = world.get("/health", &[]).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.body(), "{\"error\":\"Too many requests\"}");
    assert_eq!(header(&refused, "retry-after"), Some("1"));
    drop(held);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while world.get("/health", &[]).await.status() != 200 {
        assert!(
            std::time::Instant::now() < deadline,
            "its place did not come back"
        );
    }
    assert!(figures(&world).await["quarry_http_requests_refused_total"] >= 1.0);
}
