//! How fast a page of 10,000 log entries is written, by hand and by serde_json.
//!
//! Budget: 10,000 entries of about 700 bytes in at most 1.0 ms. It is met where nothing else runs: `queries`, which writes
//! the rows of its pages out of memory, takes 0.46 to 0.50 ms for as many (docs/PERFORMANCE.md).
#![allow(missing_docs, reason = "criterion's macros write functions without")]
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench says what it measures, or stops"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quarry::json::{LogWriter, UuidSpace, rpc};
use quarry::model::LogEntry;
use serde::{Serialize, Serializer};
use std::hint::black_box;
use support::generator::{Generator, GeneratorConfig};

mod support;

const ENTRIES: usize = 10_000;

fn page(c: &mut Criterion) {
    let config = GeneratorConfig {
        blocks: 60,
        ..GeneratorConfig::default()
    };
    let bundles: Vec<_> = Generator::new(1, config).collect();
    let logs: Vec<LogEntry<'_>> = bundles
        .iter()
        .flat_map(support::log_entries)
        .take(ENTRIES)
        .collect();
    assert_eq!(logs.len(), ENTRIES);
    let ids = UuidSpace::new(1);
    let mut out = Vec::new();
    let mut writer = LogWriter::new(ids.clone());
    let write = |writer: &mut LogWriter, out: &mut Vec<u8>| {
        out.clear();
        for log in &logs {
            writer.entry(out, log);
        }
        writer.finish(out);
    };
    write(&mut writer, &mut out);
    println!("{} bytes an entry", out.len() / ENTRIES);

    let mut group = c.benchmark_group("log_entries_10k");
    group.throughput(Throughput::Bytes(out.len() as u64));
    group.bench_function("hand", |b| {
        b.iter(|| {
            write(&mut writer, &mut out);
            black_box(&out);
        });
    });
    // As a body is made: frame after frame, in the same buffer.
    for frame in [64, 256] {
        group.bench_function(format!("hand_frames_{frame}k"), |b| {
            b.iter(|| {
                out.clear();
                for log in &logs {
                    writer.entry(&mut out, log);
                    if out.len() >= frame << 10 {
                        writer.finish(&mut out);
                        black_box(&out);
                        out.clear();
                    }
                }
                writer.finish(&mut out);
                black_box(&out);
            });
        });
    }
    group.bench_function("ids_only", |b| {
        b.iter(|| {
            logs.iter().fold(0, |sum, log| {
                sum ^ ids.log(&log.block_hash, log.log_index).as_u128()
            })
        });
    });
    group.bench_function("serde_json", |b| {
        b.iter(|| {
            out.clear();
            for log in &logs {
                serde_json::to_writer(&mut out, &Plain::new(&ids, log)).expect("writing to memory");
            }
            black_box(&out);
        });
    });
    group.finish();

    let mut group = c.benchmark_group("recorded_block");
    rpc::bundle(&mut out, &bundles[0]);
    out.clear();
    rpc::bundle(&mut out, &bundles[0]);
    group.throughput(Throughput::Bytes(out.len() as u64));
    group.bench_function("hand", |b| {
        b.iter(|| {
            out.clear();
            rpc::bundle(&mut out, black_box(&bundles[0]));
        });
    });
    group.finish();
}

/// Bytes as hex text, through the `Display` of the hex crate.
struct Hex<'a>(&'a [u8]);

impl Serialize for Hex<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("0x{}", const_hex::display(self.0)))
    }
}

/// The entry as a struct with `Serialize` derived.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Plain<'a> {
    uuid: String,
    transaction_hash: Hex<'a>,
    block_number: String,
    block_hash: Hex<'a>,
    timestamp: String,
    contract_address: Hex<'a>,
    data: Hex<'a>,
    topics: String,
    log_index: u32,
    transaction_index: u32,
}

impl<'a> Plain<'a> {
    fn new(ids: &UuidSpace, log: &'a LogEntry<'a>) -> Self {
        let topics: Vec<Hex<'_>> = log.topics.iter().map(|topic| Hex(topic.as_slice())).collect();
        Self {
            uuid: ids.log(&log.block_hash, log.log_index).to_string(),
            transaction_hash: Hex(log.transaction_hash.as_slice()),
            block_number: log.block_number.to_string(),
            block_hash: Hex(log.block_hash.as_slice()),
            timestamp: log.timestamp.to_string(),
            contract_address: Hex(log.address.as_slice()),
            data: Hex(log.data),
            topics: serde_json::to_string(&topics).expect("hex is text"),
            log_index: log.log_index,
            transaction_index: log.transaction_index,
        }
    }
}

criterion_group!(benches, page);
criterion_main!(benches);
