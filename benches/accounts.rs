//! How fast the lists of accounts are answered, text included, over a store that backfill filled with traces.
//!
//! Budgets: a page of 10,000 rows of a hot account at most 3 times the writing of the same text from memory, of
//! one spread over the whole chain at most 10 times; page 1,000 within twice page 1. The budgets are for what a
//! request gets: the time until the service has given the last frame of the body to the connection, which is made on
//! as many threads of its pool as there are cores (at most four), with nothing else asked meanwhile. The other
//! columns are the time on one core.
//! Environment: `QUARRY_BENCH_LOGS` (`2,000,000`), `QUARRY_BENCH_ONLY` (a part of a question's name), `QUARRY_BENCH_DIR`;
//! the store that is kept is filled with the memory of `load`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a bench says what it measures, or stops"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use quarry::api::{Api, Settings};
use quarry::http::{Pool, PoolLimits, ask};
use quarry::json::{UuidSpace, internal_transaction, listed_transaction, mined_block, transfer};
use quarry::model::{
    Address, InternalTransaction, ListedTransaction, ListedTransfer, MinedBlock, TokenMetadata,
};
use quarry::query::{ListQuery, Paged as _, Reader, Standard};
use quarry::store::{OpenOptions, Store};
use support::filled::{self, SEED, median};
use support::generator::{Generator, GeneratorConfig};
use support::memory::mean;
use support::served::One;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod support;

/// What is handed on at a time, as the service does.
const FRAME_BYTES: usize = 256 * 1024;

/// A list.
#[derive(Clone, Copy, Debug)]
enum List {
    Transactions(Address),
    Internal(Option<Address>, bool),
    Mined(Address),
    Transfers(Address, Standard),
}

/// An item.
#[derive(Clone, Copy)]
enum Row<'a> {
    Transaction(&'a ListedTransaction<'a>),
    Internal(&'a InternalTransaction<'a>),
    Mined(&'a MinedBlock),
    Transfer(&'a ListedTransfer<'a>),
}

/// An item of its own memory.
enum Owned {
    Transaction(ListedTransaction<'static>, Vec<u8>),
    Internal(
        InternalTransaction<'static>,
        Vec<u32>,
        Vec<u8>,
        Vec<u8>,
        Option<String>,
    ),
    Mined(MinedBlock),
    Transfer(ListedTransfer<'static>),
}

/// What contracts say of themselves: nothing, for no node was asked.
static UNNAMED: TokenMetadata = TokenMetadata {
    name: None,
    symbol: None,
    decimals: None,
};

impl Owned {
    fn of(row: Row<'_>) -> Self {
        match row {
            Row::Transaction(row) => {
                Self::Transaction(ListedTransaction { input: &[], ..*row }, row.input.to_vec())
            }
            Row::Mined(row) => Self::Mined(*row),
            Row::Transfer(row) => {
                let metadata = &UNNAMED;
                Self::Transfer(ListedTransfer { metadata, ..*row })
            }
            Row::Internal(row) => {
                let bare = InternalTransaction {
                    path: &[],
                    input: &[],
                    output: &[],
                    error: None,
                    ..*row
                };
                let error = row.error.map(str::to_owned);
                Self::Internal(
                    bare,
                    row.path.to_vec(),
                    row.input.to_vec(),
                    row.output.to_vec(),
                    error,
                )
            }
        }
    }

    fn show(&self, text: &mut Text) {
        match self {
            Self::Transaction(row, input) => {
                text.row(Row::Transaction(&ListedTransaction { input, ..*row }));
            }
            Self::Mined(row) => text.row(Row::Mined(row)),
            Self::Transfer(row) => text.row(Row::Transfer(row)),
            Self::Internal(row, path, input, output, error) => {
                let error = error.as_deref();
                text.row(Row::Internal(&InternalTransaction {
                    path,
                    input,
                    output,
                    error,
                    ..*row
                }));
            }
        }
    }
}

/// What writes.
struct Text {
    ids: UuidSpace,
    head: u64,
    room: String,
    out: Vec<u8>,
    bytes: usize,
}

impl Text {
    fn row(&mut self, row: Row<'_>) {
        if self.out.len() >= FRAME_BYTES {
            self.flush();
        }
        match row {
            Row::Transaction(row) => listed_transaction(&mut self.out, row, self.head, ""),
            Row::Mined(row) => mined_block(&mut self.out, row),
            Row::Transfer(row) => transfer(&mut self.out, &self.ids, row, self.head),
            Row::Internal(row) => internal_transaction(&mut self.out, &self.ids, &mut self.room, row),
        }
    }

    fn flush(&mut self) {
        black_box(&self.out);
        self.bytes += self.out.len();
        self.out.clear();
    }
}

/// The service, asked without a connection.
struct Service {
    runtime: tokio::runtime::Runtime,
    api: Api,
}

impl Service {
    fn new(store: Arc<Store>) -> Self {
        let pool = Pool::new(PoolLimits::default()).expect("threads");
        Self {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime"),
            api: Api::new(Arc::new(One(store)), pool, Settings::default()),
        }
    }

    /// Asks for an answer that is made anew, and takes the body frame by frame.
    fn ask(&self, path: &str) {
        let take = |frame: &[u8]| {
            black_box(frame);
        };
        let got = self.runtime.block_on(ask(&self.api, path, take));
        let status = got.expect("a whole answer").status;
        assert!(status.is_success(), "{path}: {status}");
    }

    /// The median time of a request in milliseconds.
    fn milliseconds(&self, path: &str) -> f64 {
        self.ask(path);
        let times = (0..25).map(|_| {
            let began = Instant::now();
            self.ask(path);
            began.elapsed().as_secs_f64() * 1e3
        });
        median(times.collect())
    }
}

impl List {
    /// What a client asks for.
    fn path(self, query: &ListQuery) -> String {
        let page = format!(
            "page={}&offset={}",
            query.skip / query.limit as u64 + 1,
            query.limit
        );
        match self {
            Self::Transactions(account) => format!("/api/account/{account}/tx-list?{page}"),
            Self::Mined(account) => format!("/api/account/{account}/mined-blocks?{page}"),
            Self::Transfers(account, Standard::Erc721) => {
                format!("/api/account/{account}/token-nft-tx?{page}")
            }
            Self::Transfers(account, _) => format!("/api/account/{account}/token-tx?{page}"),
            Self::Internal(Some(account), all) => {
                format!("/api/account/{account}/tx-list-internal?includeZeroValue={all}&{page}")
            }
            Self::Internal(None, all) => format!(
                "/api/account/tx-list-internal?startblock=0&endblock=latest&includeZeroValue={all}&{page}"
            ),
        }
    }
}

struct Bench {
    reader: Reader,
    text: Text,
}

impl Bench {
    /// Hands a page's rows to the visitor; answers how many there were.
    fn visit(reader: &Reader, list: List, query: &ListQuery, mut visitor: impl FnMut(Row<'_>)) -> usize {
        match list {
            List::Transactions(account) => {
                let mut page = reader.account_transactions(&account, query).expect("a page");
                page.visit(&mut |row| {
                    visitor(Row::Transaction(row));
                    true
                })
                .expect("rows");
                page.page().len()
            }
            List::Mined(account) => {
                let mut page = reader.account_mined(&account, query).expect("a page");
                page.visit(&mut |row| {
                    visitor(Row::Mined(row));
                    true
                })
                .expect("rows");
                page.page().len()
            }
            List::Transfers(account, standard) => {
                let page = reader.account_transfers(&account, standard, None, query);
                let mut page = page.expect("a page");
                page.visit(&mut |row| {
                    visitor(Row::Transfer(row));
                    true
                })
                .expect("rows");
                page.page().len()
            }
            List::Internal(account, all) => {
                let page = match account {
                    Some(account) => reader.account_internal(&account, all, query),
                    None => reader.internal(all, query),
                };
                let mut page = page.expect("a page");
                page.visit(&mut |row| {
                    visitor(Row::Internal(row));
                    true
                })
                .expect("rows");
                page.page().len()
            }
        }
    }

    /// Answers with text: rows and bytes.
    fn answer(&mut self, list: List, query: &ListQuery) -> (usize, usize) {
        self.text.bytes = 0;
        let rows = Self::visit(&self.reader, list, query, |row| self.text.row(row));
        self.text.flush();
        (rows, self.text.bytes)
    }

    /// The same rows in memory, and the time to write their text only.
    fn text_only(&mut self, list: List, query: &ListQuery) -> f64 {
        let mut rows = Vec::new();
        Self::visit(&self.reader, list, query, |row| rows.push(Owned::of(row)));
        mean(|| {
            rows.iter().for_each(|row| row.show(&mut self.text));
            self.text.flush();
        })
    }

    fn milliseconds(&mut self, list: List, query: &ListQuery) -> f64 {
        mean(|| {
            self.answer(list, query);
        })
    }
}

fn main() {
    let logs = filled::env("QUARRY_BENCH_LOGS", 2_000_000);
    let config = GeneratorConfig {
        traces: true,
        ..filled::chain(logs)
    };
    let directory = filled::kept(config, logs);
    let named = *Generator::new(SEED, config).named();
    let hot_wallet = Address::from_slice(named.hot_wallet.get(12..).expect("a word"));
    let last = config.first_block + config.blocks - 1;
    let page = |number: u64, limit: usize| ListQuery {
        last_block: last,
        skip: (number - 1) * limit as u64,
        limit,
        ..ListQuery::default()
    };
    let of = |account| (List::Transactions(account), List::Internal(Some(account), false));
    let ((hot, hot_internal), (medium, medium_internal)) = (of(hot_wallet), of(named.medium));
    let all_of = |account| List::Internal(Some(account), true);
    let asked = [
        ("A3 hot wallet, 10,000", hot, page(1, 10_000)),
        ("A3 hot contract, 10,000", of(named.hot).0, page(1, 10_000)),
        ("A3 medium contract, 10,000", medium, page(1, 10_000)),
        ("A3 hot wallet, page 1 x 100", hot, page(1, 100)),
        ("A3 hot wallet, page 1,000 x 100", hot, page(1_000, 100)),
        ("A4 hot wallet, 10,000", hot_internal, page(1, 10_000)),
        ("A4 hot contract, 10,000", of(named.hot).1, page(1, 10_000)),
        ("A4 medium contract, 10,000", medium_internal, page(1, 10_000)),
        ("A4 hot contract, all, 10,000", all_of(named.hot), page(1, 10_000)),
        (
            "A4 medium contract, all, 10,000",
            all_of(named.medium),
            page(1, 10_000),
        ),
        (
            "A4 hot contract, all, page 1 x 100",
            all_of(named.hot),
            page(1, 100),
        ),
        (
            "A4 hot contract, all, page 1,000 x 100",
            all_of(named.hot),
            page(1_000, 100),
        ),
        (
            "A7 hot wallet, 10,000",
            List::Transfers(hot_wallet, Standard::Erc20),
            page(1, 10_000),
        ),
        (
            "A7 hot wallet, page 1 x 100",
            List::Transfers(hot_wallet, Standard::Erc20),
            page(1, 100),
        ),
        (
            "A7 hot wallet, page 500 x 100",
            List::Transfers(hot_wallet, Standard::Erc20),
            page(500, 100),
        ),
        (
            "A8 hot wallet, 10,000",
            List::Transfers(hot_wallet, Standard::Erc721),
            page(1, 10_000),
        ),
        ("A9 hot wallet, 10,000", List::Mined(hot_wallet), page(1, 10_000)),
        ("A5 10,000", List::Internal(None, false), page(1, 10_000)),
        ("A5 all, 10,000", List::Internal(None, true), page(1, 10_000)),
        ("A5 all, page 1 x 100", List::Internal(None, true), page(1, 100)),
        (
            "A5 all, page 10,000 x 100",
            List::Internal(None, true),
            page(10_000, 100),
        ),
    ];
    let only = std::env::var("QUARRY_BENCH_ONLY").unwrap_or_default();
    let asked: Vec<_> = asked
        .into_iter()
        .filter(|(name, ..)| name.contains(&only))
        .collect();
    println!(
        "| question | rows | kB | asc | desc | asc, no cache | text only | asc/text | request | request/text |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let open = |cache_bytes| {
        let options = OpenOptions {
            cache_bytes,
            read_only: true,
            ..OpenOptions::new(directory.clone())
        };
        let store = Store::open(&options).expect("the store");
        let reader = Reader::new(store.view());
        let text = Text {
            ids: UuidSpace::new(1),
            head: reader.head().number,
            room: String::new(),
            out: Vec::with_capacity(FRAME_BYTES + 4096),
            bytes: 0,
        };
        (Bench { reader, text }, store)
    };
    let ((mut cached, store), (mut uncached, _)) = (open(1 << 30), open(1 << 10));
    let service = Service::new(store);
    for (name, list, query) in asked {
        let back = ListQuery {
            descending: true,
            ..query
        };
        let (rows, bytes) = cached.answer(list, &query);
        let times = [
            cached.milliseconds(list, &query),
            cached.milliseconds(list, &back),
            uncached.milliseconds(list, &query),
        ];
        let text = cached.text_only(list, &query);
        print!("| {name} | {rows} | {} |", bytes / 1000);
        times.iter().for_each(|time| print!(" {time:.3} |"));
        let request = service.milliseconds(&list.path(&query));
        println!(
            " {text:.3} | {:.2} | {request:.3} | {:.2} |",
            times[0] / text,
            request / text
        );
    }
}
