//! How many transactions and logs a second one core verifies.
//!
//! Budget: more than 100,000 logs a second. The bundle is synthetic: 200 transactions with 400 logs, token
//! transfers of a few busy contracts between accounts that mostly occur once.

#![allow(missing_docs, reason = "criterion's macros make public items without")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a bench that cannot build its data stops"
)]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use quarry::{
    model::{Address, B256, Bloom, Bundle, Frame, Log, Receipt, Topics, Transaction, TransactionTrace, U256},
    sync::verify::{Rules, Verifier, VerifyError},
};

const TRANSACTIONS: u64 = 200;
const LOGS_PER_TRANSACTION: u64 = 2;

fn word(seed: u64) -> B256 {
    alloy_primitives::keccak256(seed.to_be_bytes())
}

fn log(seed: u64) -> Log {
    let account = |seed| B256::left_padding_from(Address::from_word(word(seed)).as_slice());
    Log {
        address: Address::from_word(word(seed % 40)),
        topics: Topics::new(&[word(1), account(seed), account(seed / 3 + 10_000)]).expect("three topics"),
        data: word(seed).to_vec().into(),
    }
}

fn transaction(seed: u64) -> Transaction {
    let mut input = vec![0xa9, 0x05, 0x9c, 0xbb];
    (0..4).for_each(|n| input.extend_from_slice(word(seed + n).as_slice()));
    Transaction {
        kind: 2,
        nonce: seed,
        from: Address::from_word(word(seed)),
        to: Some(Address::from_word(word(seed % 40))),
        value: U256::from(seed),
        gas: 200_000,
        max_fee_per_gas: Some(30_000_000_000),
        max_priority_fee_per_gas: Some(1_000_000_000),
        access_list: Some(Vec::new()),
        input: input.into(),
        chain_id: Some(1),
        v: Some(seed & 1),
        r: word(seed + 1).into(),
        s: word(seed + 2).into(),
        ..Transaction::default()
    }
}

fn receipt(seed: u64) -> Receipt {
    let logs: Vec<Log> = (0..LOGS_PER_TRANSACTION)
        .map(|n| log(100 + seed * LOGS_PER_TRANSACTION + n))
        .collect();
    let mut logs_bloom = Bloom::ZERO;
    logs.iter()
        .for_each(|log| logs_bloom.accrue_raw_log(log.address, &log.topics));
    Receipt {
        kind: 2,
        status: Some(true),
        gas_used: 50_000,
        cumulative_gas_used: 50_000 * (seed + 1),
        logs,
        logs_bloom,
        ..Receipt::default()
    }
}

/// A bundle whose hashes are right: whatever the verifier finds is put in place of what it expected.
fn bundle() -> Bundle {
    let mut bundle = Bundle::default();
    bundle.block.transactions = (0..TRANSACTIONS).map(transaction).collect();
    bundle.receipts = (0..TRANSACTIONS).map(receipt).collect();
    let top = |tx: &Transaction| Frame {
        from: tx.from,
        to: tx.to,
        ..Frame::default()
    };
    let traces = bundle.block.transactions.iter().map(|tx| TransactionTrace {
        frames: vec![top(tx)],
    });
    bundle.traces = Some(traces.collect());
    bundle.block.header.gas_used = 50_000 * TRANSACTIONS;
    bundle.block.header.base_fee_per_gas = Some(7);
    let mut verifier = Verifier::new(Rules::default());
    loop {
        let verified = verifier.verify(&bundle, None);
        let block = &mut bundle.block;
        match verified {
            Ok(()) => return bundle,
            Err(VerifyError::BlockHash { found, .. }) => block.hash = found,
            Err(VerifyError::TransactionHash {
                transaction, found, ..
            }) => {
                block.transactions[transaction].hash = found;
                bundle.receipts[transaction].transaction_hash = found;
            }
            Err(VerifyError::TransactionsRoot { found, .. }) => block.header.transactions_root = found,
            Err(VerifyError::OmmersPresence { .. }) => {
                block.header.ommers_hash = alloy_primitives::keccak256([0xc0]);
            }
            Err(VerifyError::LogsBloom { found, .. }) => block.header.logs_bloom = *found,
            Err(VerifyError::ReceiptsRoot { found, .. }) => block.header.receipts_root = found,
            Err(error) => panic!("the bundle cannot be made right: {error}"),
        }
    }
}

fn verify(criterion: &mut Criterion) {
    let bundle = bundle();
    let logs = bundle
        .receipts
        .iter()
        .map(|receipt| receipt.logs.len() as u64)
        .sum();
    let mut group = criterion.benchmark_group("verify");
    for (name, elements) in [("transactions", TRANSACTIONS), ("logs", logs)] {
        group.throughput(Throughput::Elements(elements));
        let mut verifier = Verifier::new(Rules::default());
        group.bench_function(name, |bencher| {
            bencher.iter(|| verifier.verify(black_box(&bundle), Some(bundle.block.header.parent_hash)));
        });
    }
    group.throughput(Throughput::Elements(logs));
    group.bench_function("logs, nothing remembered", |bencher| {
        bencher.iter(|| quarry::sync::verify::verify(black_box(&bundle), None, &Rules::default()));
    });
    group.finish();
}

criterion_group!(benches, verify);
criterion_main!(benches);
