//! Expressions over two lists of like length, which are merged chunk with chunk, against a plain filter.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "../benches/support/mod.rs"]
mod support;

use quarry::model::B256;
use quarry::query::{LogQuery, Reader};
use support::filled::{Memory, fill, opened};
use support::generator::{Generator, GeneratorConfig};

#[test]
fn merged_lists_give_what_a_filter_gives() {
    let config = GeneratorConfig {
        blocks: 150,
        ..GeneratorConfig::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let memory = Memory {
        cache: 8 << 20,
        backfill: 32 << 20,
    };
    let (store, _) = fill(opened(config), memory, directory.path().join("store"), false);
    let reader = Reader::new(store.view());
    let generator = Generator::new(support::filled::SEED, config);
    let named = *generator.named();
    // (block, topics) by ordinal.
    let mut all: Vec<(u64, Vec<B256>)> = Vec::new();
    for bundle in generator {
        let number = bundle.block.number();
        for log in bundle.receipts.iter().flat_map(|receipt| &receipt.logs) {
            all.push((number, log.topics.as_slice().to_vec()));
        }
    }
    let signatures = named.signatures;
    let pairs = [
        [Some(signatures.transfer), Some(named.hot_wallet), None],
        [Some(signatures.transfer), None, Some(named.hot_wallet)],
        [Some(signatures.swap_v3), Some(named.hot_wallet), None],
        [Some(signatures.approval), None, Some(named.hot_wallet)],
        [Some(signatures.sync), Some(named.hot_wallet), None],
        [None, Some(named.hot_wallet), Some(named.hot_wallet)],
    ];
    let mut seen = 0;
    for wanted in pairs {
        for (first_block, last_block) in [(0, u64::MAX - 1), (37, 110), (60, 60)] {
            for (skip, limit) in [(0, 100_000), (0, 7), (13, 50)] {
                for descending in [false, true] {
                    let [zero, one, two] = wanted;
                    let mut topics: [Vec<B256>; 4] = Default::default();
                    for (list, topic) in topics.iter_mut().zip([zero, one, two]) {
                        list.extend(topic);
                    }
                    let query = LogQuery {
                        topics,
                        first_block,
                        last_block,
                        descending,
                        skip,
                        limit,
                        ..LogQuery::default()
                    };
                    let mut found = Vec::new();
                    let mut page = reader.logs(&query).unwrap();
                    page.visit(&mut |log| {
                        found.push(log.ordinal);
                        true
                    })
                    .unwrap();
                    let matches = |(block, topics): &(u64, Vec<B256>)| {
                        (first_block..=last_block).contains(block)
                            && wanted
                                .iter()
                                .enumerate()
                                .all(|(place, topic)| topic.is_none() || topics.get(place) == topic.as_ref())
                    };
                    let mut expected: Vec<u64> = (0..)
                        .zip(&all)
                        .filter(|(_, log)| matches(log))
                        .map(|(ordinal, _)| ordinal)
                        .collect();
                    if descending {
                        expected.reverse();
                    }
                    let expected: Vec<u64> = expected.into_iter().skip(skip as usize).take(limit).collect();
                    seen += expected.len();
                    assert_eq!(found, expected, "{query:?}");
                }
            }
        }
    }
    assert!(seen > 1_000, "{seen} hits are too few to tell");
}
