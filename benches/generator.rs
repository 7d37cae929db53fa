//! How fast the synthetic chain is made (goal: a million logs a second on one core), and its shares.
#![allow(missing_docs, reason = "criterion's macros write functions without")]
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a bench says what it measures, or stops"
)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use support::generator::{Generator, GeneratorConfig};

mod support;

fn generate(c: &mut Criterion) {
    let config = GeneratorConfig {
        blocks: 2_000,
        ..GeneratorConfig::default()
    };
    println!("{}", support::shares::Shares::of(Generator::new(1, config)));

    let mut group = c.benchmark_group("generator");
    group.sample_size(20);
    for (name, traces) in [("without_traces", false), ("with_traces", true)] {
        let config = GeneratorConfig {
            blocks: u64::MAX / 1_000,
            traces,
            ..GeneratorConfig::default()
        };
        let mut generator = Generator::new(1, config);
        group.throughput(Throughput::Elements(u64::from(config.logs_per_block)));
        group.bench_function(name, |b| {
            b.iter_batched(|| (), |()| black_box(generator.next()), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, generate);
criterion_main!(benches);
