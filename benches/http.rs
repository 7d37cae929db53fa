//! The service over loopback against hyper alone: `wrk` asks both in turn.
//!
//! Budgets: a page of 10,000 rows at 60 % of the rate of a static body of the same size, a page of 100 rows at
//! 70 %, the status of a transaction by hash at 50 % of the rate of a static body of 200 bytes. Environment:
//! `QUARRY_BENCH_LOGS` (2,000,000), `QUARRY_BENCH_ROUNDS` (5), `QUARRY_BENCH_SECONDS` (3), `QUARRY_BENCH_ONLY`,
//! `QUARRY_BENCH_AHEAD` (threads that frames are made on ahead of their turn; 0 for never), `QUARRY_BENCH_SOCKETS` (threads
//! that own connections; 0 for the runtime's, which hyper alone is served by), `QUARRY_BENCH_DIR`; the store that is kept is filled with the memory of
//! `load`. Needs `wrk`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::sync::Arc;

use quarry::model::B256;
use quarry::store::{OpenOptions, Store};
use support::filled::{self, SEED};
use support::generator::Generator;
use support::served::{Asked, Case, compare, print_head, serve};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// So many texts of random known transactions.
fn of_transactions(store: &Arc<Store>, count: usize, text: impl Fn(B256) -> String) -> Vec<String> {
    let view = store.view();
    let known = view.checkpoint().transactions;
    let mut random = support::draw::Random::new(9);
    let text = |_| text(view.transaction_hash(random.below(known)).expect("a hash"));
    (0..count).map(text).collect()
}

/// Paths of the status of random known transactions.
fn statuses(store: &Arc<Store>) -> Vec<String> {
    of_transactions(store, 20_000, |hash| format!("/api/transaction/{hash}/status"))
}

/// A call of JSON-RPC.
fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":[{params}]}}"#)
}

/// `eth_getLogs` over so many blocks from random ones on.
fn logs_of_blocks(blocks: u64, chain: u64, topic: B256) -> Vec<String> {
    let mut random = support::draw::Random::new(10);
    let filter = |_| {
        let first = 1 + random.below(chain - blocks);
        let last = first + blocks - 1;
        let filter = format!(r#"{{"fromBlock":"0x{first:x}","toBlock":"0x{last:x}","topics":["{topic}"]}}"#);
        call("eth_getLogs", &filter)
    };
    (0..2_000).map(filter).collect()
}

fn main() {
    let length = filled::env("QUARRY_BENCH_LOGS", 2_000_000);
    let config = filled::chain(length);
    let options = OpenOptions {
        read_only: true,
        ..OpenOptions::new(filled::kept(config, length))
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
    let posted = |name, bodies, connections| Case {
        name,
        asked: Asked::Posted(bodies),
        connections,
        budget: 0.0,
    };
    let receipts = || {
        of_transactions(&store, 5_000, |hash| {
            call("eth_getTransactionReceipt", &format!("\"{hash}\""))
        })
    };
    let logs = |blocks| logs_of_blocks(blocks, config.blocks, transfer);
    let cases = cases.into_iter().chain([
        posted("eth_getTransactionReceipt", receipts(), 16),
        posted("eth_getTransactionReceipt, one client", receipts(), 1),
        posted("eth_getLogs, one block", logs(1), 16),
        posted("eth_getLogs, one block, one client", logs(1), 1),
        posted("eth_getLogs, 100 blocks", logs(100), 4),
        posted("eth_getLogs, 100 blocks, one client", logs(100), 1),
    ]);
    let only = std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    println!("## http over loopback, {length} logs: median requests/s of interleaved rounds\n");
    print_head();
    runtime.block_on(async {
        let service = serve(&store).await;
        for case in cases.filter(|case| case.name.contains(&only)) {
            compare(service, &case).await;
        }
    });
}
