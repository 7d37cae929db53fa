//! The ledgers' answers: balances by random account and supplies of three tokens over loopback against hyper alone, and pages of holders.
//!
//! Budgets: A1, A11, T1, T2 and T9 at half the rate of a static body of their size; page 1 of a token with a million
//! holders as fast as of one with a thousand. Environment: `QUARRY_BENCH_LOGS` (1,000,000; the chain with traces that
//! A1 and A11 are asked of), `QUARRY_BENCH_HOLDERS` (1,000,000), `QUARRY_BENCH_ROUNDS` (5), `QUARRY_BENCH_SECONDS`
//! (3), `QUARRY_BENCH_ONLY` (a part of a row's name), `QUARRY_BENCH_DIR`, `QUARRY_BENCH_AHEAD` and `QUARRY_BENCH_SOCKETS` as of `http`. Needs `wrk`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;

use quarry::json::holder as write_holder;
use quarry::model::{Address, U256};
use quarry::query::{KeyPart, Reader};
use quarry::store::{OpenOptions, Store};
use support::draw::Random;
use support::filled::{self, SEED};
use support::generator::{Generator, GeneratorConfig};
use support::holders::{self, FEW, Token, holder};
use support::memory::mean;
use support::served::{Asked, Case, compare, print_head, serve};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// How many different paths are asked for.
const PATHS: usize = 20_000;
/// Rows of a page of holders, the most that may be asked for.
const PAGE: usize = 45;

fn open(directory: std::path::PathBuf) -> Arc<Store> {
    let options = OpenOptions {
        read_only: true,
        cache_bytes: 1 << 30,
        ..OpenOptions::new(directory)
    };
    Store::open(&options).expect("the store")
}

fn case(name: &'static str, paths: Vec<String>) -> Case {
    Case {
        name,
        asked: Asked::Many(paths, None),
        connections: 16,
        budget: 0.5,
    }
}

/// Native balances, by accounts that sent or received in the first blocks.
fn native_cases(config: GeneratorConfig) -> [Case; 2] {
    let mut accounts = BTreeSet::new();
    for bundle in Generator::new(SEED, config) {
        for transaction in &bundle.block.transactions {
            accounts.insert(transaction.from);
            accounts.extend(transaction.to);
        }
        if accounts.len() >= PATHS {
            break;
        }
    }
    let mut random = Random::new(3);
    let mut accounts: Vec<Address> = accounts.into_iter().collect();
    for last in (1..accounts.len()).rev() {
        accounts.swap(last, random.below(last as u64 + 1) as usize);
    }
    let now = |account| format!("/api/account/{account}/balance");
    let mut then = |account| {
        let block = 1 + random.below(config.blocks);
        format!("/api/account/{account}/balance-history?block={block}")
    };
    [
        case("A1 native balance", accounts.iter().map(now).collect()),
        case(
            "A11 native balance at a block",
            accounts.iter().map(&mut then).collect(),
        ),
    ]
}

/// Balances and supplies of tokens.
fn token_cases(many: u64, blocks: u64) -> [Case; 3] {
    let mut random = Random::new(4);
    let contract = Token::Spread.contract();
    let supply = |place: usize| {
        let token = Token::ALL[place % Token::ALL.len()].contract();
        format!("/api/token/{token}/total-supply")
    };
    let (mut now, mut then) = (Vec::new(), Vec::new());
    for _ in 0..PATHS {
        let account = holder(random.below(many));
        now.push(format!(
            "/api/token/balance?contractaddress={contract}&address={account}"
        ));
        let block = 1 + random.below(blocks);
        then.push(format!(
            "/api/token/{account}/total-balance-history?contractaddress={contract}&block={block}"
        ));
    }
    [
        case("T1 supply", (0..PATHS).map(supply).collect()),
        case("T2 token balance", now),
        case("T9 token balance at a block", then),
    ]
}

/// Time of a page of holders with its text, and of its text alone.
fn print_pages(store: &Store, many: u64) {
    let reader = Reader::new(store.view());
    println!("\n| page of {PAGE} holders | holders | ms | text only |\n|---|---|---|---|");
    let far = (many / PAGE as u64).min(20_000);
    let middle = many / PAGE as u64 / 2;
    for (name, token, page) in [
        ("amounts of all lengths, page 1", Token::Spread, 1),
        ("a thousand holders, page 1", Token::Small, 1),
        ("one amount, page 1", Token::Equal, 1),
        ("a thousand holders, page 20", Token::Small, FEW / PAGE as u64 - 2),
        ("amounts of all lengths, page 20,000", Token::Spread, far),
        ("one amount, page 20,000", Token::Equal, far),
        ("amounts of all lengths, middle", Token::Spread, middle),
        ("one amount, middle", Token::Equal, middle),
    ] {
        let skip = (page - 1) * PAGE as u64;
        let found = || {
            let token = reader
                .token(&token.contract())
                .expect("an answer")
                .expect("a token");
            let part = KeyPart::skipping(skip, PAGE);
            let page = reader.holders(&token, &part, None).expect("a page");
            let supply = page.supply.expect("a supply");
            (page.holders, page.total, supply)
        };
        let mut out = Vec::new();
        let mut write = |rows: &[(Address, U256)], supply: &U256| {
            out.clear();
            for (account, balance) in rows {
                write_holder(&mut out, account, balance, supply);
            }
            black_box(&out);
        };
        let (holders, total, supply) = found();
        assert_eq!(holders.len(), PAGE, "a whole page");
        let all = mean(|| {
            let (holders, _, supply) = found();
            write(&holders, &supply);
        });
        let text = mean(|| write(&holders, &supply));
        println!("| {name} | {total} | {all:.4} | {text:.4} |");
    }
}

fn main() {
    let logs = filled::env("QUARRY_BENCH_LOGS", 1_000_000);
    let many = filled::env("QUARRY_BENCH_HOLDERS", 1_000_000);
    let config = GeneratorConfig {
        traces: true,
        ..filled::chain(logs)
    };
    let native = open(filled::kept(config, logs));
    let directory = filled::named_directory(&format!("seed{SEED}-holders{many}.created"));
    let tokens = open(filled::kept_in(directory, || holders::chain(many)));
    let only = std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default();

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    println!("## ledgers, {logs} logs, {many} holders: median requests/s of interleaved rounds\n");
    print_head();
    let blocks = tokens.view().checkpoint().next_block - 1;
    runtime.block_on(async {
        let of_native = (serve(&native).await, Vec::from(native_cases(config)));
        let of_tokens = (serve(&tokens).await, Vec::from(token_cases(many, blocks)));
        for (service, cases) in [of_native, of_tokens] {
            for case in cases.iter().filter(|case| case.name.contains(&only)) {
                compare(service, case).await;
            }
        }
    });
    if "T3 page".contains(&only) {
        print_pages(&tokens, many);
    }
}
