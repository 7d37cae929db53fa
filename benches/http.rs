//! The service over loopback against hyper alone: `wrk` asks both in turn.
//!
//! Budgets: a page of 10,000 rows at 60 % of the rate of a static body of the same size, a page of 100 rows at
//! 70 %, the status of a transaction by hash at 50 % of the rate of a static body of 200 bytes. Environment:
//! `QUARRY_BENCH_LOGS` (2,000,000), `QUARRY_BENCH_ROUNDS` (5), `QUARRY_BENCH_SECONDS` (3), `QUARRY_BENCH_ONLY`,
//! `QUARRY_BENCH_AHEAD` (threads that frames are made on ahead of their turn; 0 for never), `QUARRY_BENCH_SOCKETS` (threads
//! that own connections; 0 for the runtime's, which hyper alone is served by).
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::sync::Arc;

use quarry::store::{OpenOptions, Store};
use support::filled::{self, SEED};
use support::generator::Generator;
use support::served::{Asked, Case, compare, print_head, serve};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// Paths of the status of random known transactions.
fn statuses(store: &Arc<Store>) -> Vec<String> {
    let view = store.view();
    let count = view.checkpoint().transactions;
    let mut random = support::draw::Random::new(9);
    let path = |_| {
        let hash = view.transaction_hash(random.below(count)).expect("a hash");
        format!("/api/transaction/{hash}/status")
    };
    (0..20_000).map(path).collect()
}

fn main() {
    let logs = filled::env("QUARRY_BENCH_LOGS", 2_000_000);
    let config = filled::chain(logs);
    let options = OpenOptions {
        read_only: true,
        ..OpenOptions::new(filled::kept(config, logs))
    };
    let store = Store::open(&options).expect("the store");
    let named = *Generator::new(SEED, config).named();
    let list = |name, query: String, connections, budget| Case {
        name,
        asked: Asked::One(format!("/api/logs/get-logs?{query}")),
        connections,
        budget,
    };
    let transfer = named.signatures.transfer;
    let by = |emitter, rows| format!("address={emitter}&offset={rows}");
    let again = |name, query: String, connections, budget| Case {
        asked: Asked::Again(format!("/api/logs/get-logs?{query}")),
        ..list(name, String::new(), connections, budget)
    };
    let cases = [
        list("medium, 10,000 rows", by(named.medium, 10_000), 4, 0.6),
        list("hot, 10,000 rows", by(named.hot, 10_000), 4, 0.6),
        list(
            "Transfer, 10,000 rows",
            format!("topic0={transfer}&offset=10000"),
            4,
            0.6,
        ),
        list("medium, 100 rows", by(named.medium, 100), 16, 0.7),
        again("medium, 100 rows, again", by(named.medium, 100), 16, 0.8),
        list(
            "wallet topic1, 300 rows",
            format!("topic1={}", named.wallet),
            16,
            0.0,
        ),
        list(
            "wallet topic1, 300 rows, one client",
            format!("topic1={}", named.wallet),
            1,
            0.0,
        ),
        again(
            "wallet topic1, 300 rows, again",
            format!("topic1={}", named.wallet),
            16,
            0.0,
        ),
        Case {
            name: "status by random hash",
            asked: Asked::Many(statuses(&store), Some(200)),
            connections: 16,
            budget: 0.5,
        },
    ];
    let only = std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    println!("## http over loopback, {logs} logs: median requests/s of interleaved rounds\n");
    print_head();
    runtime.block_on(async {
        let service = serve(&store).await;
        for case in cases.iter().filter(|case| case.name.contains(&only)) {
            compare(service, case).await;
        }
    });
}
