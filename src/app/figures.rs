//! Figures of a chain's store and node, for `/metrics`.

use std::sync::atomic::Ordering;

use crate::metrics::{Label, Page};
use crate::node::{ErrorClass, NodeStats};
use crate::store::Store;

/// What the store holds in memory and on disk.
pub(super) fn store(page: &mut Page, chain: &'static str, store: &Store) {
    let figures = store.figures();
    for (name, help, bytes) in [
        ("quarry_store_cache_bytes", "Blocks in the cache.", figures.cache),
        (
            "quarry_store_cache_pinned_bytes",
            "Blocks in the cache that cannot be evicted now.",
            figures.cache_pinned,
        ),
        (
            "quarry_store_kept_row_bytes",
            "Rows of final blocks that were sought again and again, where transactions were found by hash, and what walks over several lists found, kept beside the cache of blocks.",
            figures.kept_rows,
        ),
        (
            "quarry_store_memtable_bytes",
            "Rows that are not in tables yet.",
            figures.memtables,
        ),
        (
            "quarry_store_table_bytes",
            "Tables on disk, without those that only open snapshots need.",
            figures.tables,
        ),
        ("quarry_store_array_bytes", "Flat arrays.", figures.arrays),
        (
            "quarry_store_pending_compaction_bytes",
            "What compaction has still to rewrite of tables that are merged by level.",
            figures.pending_compaction,
        ),
        (
            "quarry_store_merge_bytes",
            "The largest table that is merged by size: so much room merging all of it takes for a while.",
            figures.merge,
        ),
        (
            "quarry_store_table_reader_bytes",
            "Indexes and filters outside the cache.",
            figures.table_readers,
        ),
    ] {
        page.gauge(name, help, &[("chain", chain)], bytes as f64);
    }
    if let Some(free) = figures.free {
        let help = "Room that the file system of the store has left.";
        page.gauge("quarry_store_free_bytes", help, &[("chain", chain)], free as f64);
    }
    let help = "1 while writes wait, for compactions or for room.";
    let stopped = f64::from(u8::from(figures.write_stopped));
    page.gauge("quarry_store_write_stopped", help, &[("chain", chain)], stopped);
}

/// What the node has done for us.
pub(super) fn node(page: &mut Page, chain: &'static str, stats: &NodeStats) {
    let chain: Label<'_> = ("chain", chain);
    for (name, help, count) in [
        (
            "quarry_node_requests",
            "Requests sent to the node, repeated ones included.",
            &stats.requests,
        ),
        (
            "quarry_node_retries",
            "Requests sent again after a failure.",
            &stats.retries,
        ),
        (
            "quarry_node_response_bytes",
            "Bytes of JSON received.",
            &stats.bytes,
        ),
        (
            "quarry_node_cuts",
            "How often the concurrency limit was cut.",
            &stats.cuts,
        ),
        (
            "quarry_node_reconnects",
            "Connections made anew (WebSocket and IPC).",
            &stats.reconnects,
        ),
    ] {
        page.counter(name, help, &[chain], count.load(Ordering::Relaxed));
    }
    for (name, help, value) in [
        ("quarry_node_in_flight", "Requests in flight.", &stats.in_flight),
        (
            "quarry_node_concurrency",
            "Requests that may be in flight.",
            &stats.concurrency,
        ),
    ] {
        page.gauge(name, help, &[chain], value.load(Ordering::Relaxed) as f64);
    }
    page.histogram(
        "quarry_node_answer_seconds",
        "How long the node took to answer.",
        &[chain],
        &stats.latencies,
    );
    for class in ErrorClass::ALL {
        page.counter(
            "quarry_node_errors",
            "Failures of the node by class.",
            &[chain, ("class", class.as_str())],
            stats.errors(class),
        );
    }
}
