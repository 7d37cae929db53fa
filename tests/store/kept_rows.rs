//! Rows that are sought again and again are kept, and are those of the view that is asked.

use std::collections::HashMap;

use quarry::model::{B256, Bundle, Log};
use quarry::query::Reader;
use quarry::store::{OpenOptions, Store};

use crate::plain::{self, ChainConfig};
use crate::{Row, backfill, follow, open, open_with, options, rows, scratch};

/// The first block that is not on both forks.
const FORKED: u64 = 60;

/// Logs far from each other, a few units apart, of all blocks from `first` on.
fn scattered(all: &[Row], first: u64) -> Vec<u64> {
    let from = all.iter().position(|row| row.block >= first).unwrap();
    (from as u64..all.len() as u64).step_by(97).collect()
}

/// Asks for these logs one by one, as a list of theirs would have them, and holds them against the chain.
fn look(reader: &Reader, all: &[Row], ordinals: &[u64]) {
    let mut expected = ordinals.iter();
    let mut page = reader.logs_at(ordinals.to_vec()).unwrap();
    let more = page
        .visit(&mut |log| {
            assert_eq!(Row::of(log), all[*expected.next().unwrap() as usize]);
            true
        })
        .unwrap();
    assert!(!more && expected.next().is_none());
}

/// The same for transactions and frames of blocks.
fn look_at_blocks(reader: &Reader, bundles: &[Bundle], from: u64) {
    for bundle in &bundles[from as usize..] {
        let found = reader.bundle(bundle.block.number()).unwrap().unwrap();
        // Too long to be shown.
        assert!(found.block.transactions == bundle.block.transactions);
        assert!(found.traces == bundle.traces);
        let logs = |bundle: &Bundle| -> Vec<Vec<Log>> {
            let receipts = bundle.receipts.iter();
            receipts.map(|receipt| receipt.logs.clone()).collect()
        };
        assert!(logs(&found) == logs(bundle));
    }
}

/// Looks every transaction of two forks up by hash: each is where the chain that is seen has it, or nowhere.
fn look_up(reader: &Reader, seen: &[Bundle], other: &[Bundle]) {
    let hashes = |bundles: &[Bundle]| -> Vec<B256> {
        let all = bundles.iter().flat_map(|bundle| &bundle.block.transactions);
        all.map(|transaction| transaction.hash).collect()
    };
    let expected: HashMap<B256, u64> = hashes(seen).into_iter().zip(0..).collect();
    for hash in hashes(seen).into_iter().chain(hashes(other)) {
        let found = reader.transaction_ordinal(&hash).unwrap();
        assert_eq!(found, expected.get(&hash).copied(), "{hash}");
    }
}

fn kept(store: &Store) -> u64 {
    store.figures().kept_rows
}

#[test]
fn rows_of_final_blocks_are_kept_and_views_from_before_see_their_own() {
    let config = ChainConfig {
        logs_per_block: 150,
        ..ChainConfig::default()
    };
    let mut stays = plain::chain(21, FORKED, &config);
    let mut goes = stays.clone();
    plain::extend(&mut stays, 21, FORKED + 30, 1, &config);
    plain::extend(&mut goes, 21, FORKED + 20, 2, &config);
    let (all, all_that_went) = (rows(&stays), rows(&goes));

    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &stays[..FORKED as usize], 7);
    follow(&mut writer, &goes[FORKED as usize..]);
    let before = Reader::new(store.view());
    // The writer looks for transactions by their senders.
    let at_first = kept(&store);
    let unfinal = scattered(&all_that_went, FORKED);
    for _ in 0..3 {
        look(&before, &all_that_went, &unfinal);
    }
    assert_eq!(kept(&store), at_first, "what is not final may change");
    let anywhere = scattered(&all_that_went, 0);
    look(&before, &all_that_went, &anywhere);
    assert_eq!(kept(&store), at_first, "one look is no reason to keep");
    look(&before, &all_that_went, &anywhere);
    let once = kept(&store);
    assert!(once > at_first);
    look(&before, &all_that_went, &anywhere);
    for _ in 0..3 {
        look_at_blocks(&before, &goes, FORKED);
    }

    // The other fork comes in its place and becomes final: rows of the same ordinals, others than `before` has.
    writer.unwind(FORKED).unwrap();
    follow(&mut writer, &stays[FORKED as usize..]);
    writer.finalize(FORKED + 25).unwrap();
    let after = Reader::new(store.view());
    for _ in 0..3 {
        look(&after, &all, &scattered(&all, 0));
        look(&after, &all, &scattered(&all, FORKED));
        look_at_blocks(&after, &stays, 0);
    }
    assert!(kept(&store) > once, "rows of blocks that became final");
    look(&before, &all_that_went, &unfinal);
    look_at_blocks(&before, &goes, FORKED);
    look(&after, &all, &scattered(&all, 0));
}

#[test]
fn transactions_that_were_found_are_found_again_where_each_view_has_them() {
    let config = ChainConfig::default();
    let mut stays = plain::chain(23, FORKED, &config);
    let mut goes = stays.clone();
    plain::extend(&mut stays, 23, FORKED + 12, 1, &config);
    plain::extend(&mut goes, 23, FORKED + 9, 2, &config);
    // One that both forks have, in another place.
    let block = &mut stays[FORKED as usize + 3].block.transactions;
    let last = block.last_mut().unwrap();
    last.hash = goes[FORKED as usize + 1].block.transactions[0].hash;
    for cache_bytes in [0, 1 << 20, 64 << 20] {
        let directory = scratch::directory();
        let store = open_with(&OpenOptions {
            cache_bytes,
            ..options(directory.path())
        });
        let mut writer = store.writer().unwrap();
        backfill(&mut writer, &stays[..FORKED as usize], 7);
        follow(&mut writer, &goes[FORKED as usize..]);
        let before = Reader::new(store.view());
        look_up(&before, &goes, &stays);
        look_up(&before, &goes, &stays);
        writer.unwind(FORKED).unwrap();
        // Between the forks there are less transactions than were found.
        let between = Reader::new(store.view());
        look_up(&between, &stays[..FORKED as usize], &goes);
        follow(&mut writer, &stays[FORKED as usize..]);
        let after = Reader::new(store.view());
        for _ in 0..2 {
            look_up(&after, &stays, &goes);
            look_up(&before, &goes, &stays);
            look_up(&between, &stays[..FORKED as usize], &goes);
        }
    }
}

#[test]
fn nothing_is_kept_without_a_cache_and_little_in_a_small_one() {
    let bundles = plain::chain(22, 60, &ChainConfig::default());
    let all = rows(&bundles);
    let directory = scratch::directory();
    backfill(&mut open(directory.path()).writer().unwrap(), &bundles, 60);
    for (cache_bytes, most) in [(0, 0), (256 << 10, 0), (1 << 20, 128 << 10)] {
        let store = open_with(&OpenOptions {
            cache_bytes,
            ..options(directory.path())
        });
        let reader = Reader::new(store.view());
        for _ in 0..3 {
            for ordinal in 0..all.len() as u64 {
                look(&reader, &all, &[ordinal]);
            }
        }
        assert!(kept(&store) <= most, "{} of {most}", kept(&store));
        assert_eq!(kept(&store) > 0, most > 0);
    }
}
