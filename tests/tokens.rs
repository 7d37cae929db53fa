//! The token ledger against a naive one over a seeded chain with hostile logs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "tokens/again.rs"]
mod again;
#[path = "tokens/bounds.rs"]
mod bounds;
#[path = "support/token_checks.rs"]
mod checks;
#[path = "tokens/edges.rs"]
mod edges;
#[path = "support/heard.rs"]
mod heard;
#[path = "tokens/known.rs"]
mod known;
#[path = "tokens/migrated.rs"]
mod migrated;
#[path = "support/token_model.rs"]
mod model;
#[path = "support/plain.rs"]
mod plain;
#[path = "support/scratch.rs"]
mod scratch;
#[path = "tokens/standards.rs"]
mod standards;
#[path = "tokens/unmoved.rs"]
mod unmoved;
#[path = "support/token_walks.rs"]
mod walks;

use std::collections::BTreeSet;
use std::sync::Arc;

use checks::{Convention, balance, check_present, check_transfers, supply};
use model::{Ledger, add_logs};
use plain::{ChainConfig, Rng};
use quarry::model::{Address, B256, Bundle, TokenKind, U256};
use quarry::query::{Exactness, Reader, ZeroAddress};
use quarry::store::{OpenOptions, Store, Writer};
use quarry::sync::derive::{NonceRules, derive};

fn open(directory: &std::path::Path) -> Arc<Store> {
    let options = OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        ..OpenOptions::new(directory)
    };
    Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(0)).unwrap()
}

fn rules() -> NonceRules {
    NonceRules {
        chain_id: 7,
        from_genesis: true,
        native: plain::native_rules(),
        ..NonceRules::default()
    }
}

fn backfill(writer: &mut Writer, bundles: &[Bundle], blocks: usize) {
    for bundles in bundles.chunks(blocks) {
        let mut batch = writer.batch();
        for bundle in bundles {
            derive(bundle, &rules(), &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
    }
}

fn follow(writer: &mut Writer, bundles: &[Bundle]) {
    for bundle in bundles {
        let mut batch = writer.batch();
        derive(bundle, &rules(), &mut batch).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }
}

fn digests(store: &Store) -> Vec<(&'static str, u64, B256)> {
    let contents = store.view().contents().unwrap().into_iter();
    contents
        .map(|table| (table.name, table.rows, table.digest))
        .filter(|(name, ..)| *name != "tail" && *name != "undo")
        .collect()
}

fn chain(seed: u64, len: u64) -> Vec<Bundle> {
    let config = ChainConfig {
        logs_per_block: 6,
        ..ChainConfig::default()
    };
    let mut bundles = plain::chain(seed, len, &config);
    add_logs(&mut bundles, 8);
    bundles
}

#[test]
fn bytes_do_not_depend_on_batches_and_reorgs() {
    let bundles = chain(3, 90);
    let mut fork = bundles[..60].to_vec();
    let config = ChainConfig::default();
    plain::extend(&mut fork, 3, 75, 1, &config);
    add_logs(&mut fork[60..], 8);
    let directories: Vec<_> = (0..5).map(|_| scratch::directory()).collect();
    let mut expected = None;
    for (case, directory) in directories.iter().enumerate() {
        let store = open(directory.path());
        let mut writer = store.writer().unwrap();
        match case {
            0 => backfill(&mut writer, &bundles, 90),
            1 => backfill(&mut writer, &bundles, 1),
            2 => backfill(&mut writer, &bundles, 7),
            3 => {
                backfill(&mut writer, &bundles[..40], 13);
                follow(&mut writer, &bundles[40..]);
            }
            _ => {
                backfill(&mut writer, &bundles[..50], 50);
                follow(&mut writer, &fork[50..]);
                writer.unwind(60).unwrap();
                let mut rng = Rng(5);
                for at in 60..90 {
                    follow(&mut writer, &bundles[at as usize..at as usize + 1]);
                    // Blocks come and go.
                    let back = rng.below(4).min(at - 59);
                    writer.unwind(at + 1 - back).unwrap();
                    follow(&mut writer, &bundles[(at + 1 - back) as usize..at as usize + 1]);
                }
            }
        }
        drop(writer);
        let found = digests(&store);
        let rows = |name| found.iter().find(|(table, ..)| *table == name).unwrap().1;
        for table in [
            "token_states",
            "token_balances",
            "token_supply",
            "holders",
            "holdings",
            "nft_owners",
            "nft_ids",
            "holder_counts",
        ] {
            assert!(rows(table) > 0, "{table} is empty");
        }
        assert_eq!(&found, expected.get_or_insert(found.clone()), "case {case}");
    }
}

#[test]
fn every_answer_is_the_naive_ledgers() {
    let mut foreign: BTreeSet<TokenKind> = BTreeSet::new();
    for seed in 20..22 {
        let bundles = chain(seed, 80);
        let directory = scratch::directory();
        let store = open(directory.path());
        let mut writer = store.writer().unwrap();
        backfill(&mut writer, &bundles[..50], 11);
        follow(&mut writer, &bundles[50..]);
        let mut ledgers: Vec<Ledger> = Vec::new();
        for bundle in &bundles {
            let mut ledger = ledgers.last().cloned().unwrap_or_default();
            ledger.apply(bundle);
            ledgers.push(ledger);
        }
        let now = ledgers.last().unwrap();
        let kinds: Vec<TokenKind> = now.tokens.values().map(|token| token.kind).collect();
        assert!(kinds.contains(&TokenKind::Erc20) && kinds.contains(&TokenKind::Erc721));
        assert!(now.tokens.values().any(|token| token.doubted));
        for zero in [ZeroAddress::Burns, ZeroAddress::Holds] {
            let reader = Reader::new(store.view()).with_token_facts(Arc::new(Convention(zero)));
            check_present(&reader, now, zero, &now.asked());
            check_past(&reader, &ledgers, zero, seed);
        }
        let reader = Reader::new(store.view());
        foreign.extend(check_transfers(&reader, now, &now.asked(), seed));
    }
    let kinds = [TokenKind::Erc20, TokenKind::Erc721, TokenKind::Erc1155];
    assert_eq!(foreign, kinds.into(), "some standard was never found by a walk");
}

fn check_past(reader: &Reader, ledgers: &[Ledger], zero: ZeroAddress, seed: u64) {
    let mut rng = Rng(seed);
    let (accounts, contracts) = ledgers[0].asked();
    for address in &contracts {
        let Some(token) = reader.token(address).unwrap() else {
            continue;
        };
        for (block, ledger) in ledgers.iter().enumerate() {
            let block = block as u64;
            let expected = ledger.tokens.get(address).cloned().unwrap_or_default();
            assert_eq!(
                reader.token_supply(&token, block).unwrap(),
                supply(&expected, zero),
                "{address} at {block}"
            );
            for who in accounts.iter().filter(|_| rng.below(3) == 0) {
                assert_eq!(
                    reader.token_balance_at(&token, who, block).unwrap(),
                    balance(&expected, who, zero),
                    "{address} {who} at {block}"
                );
            }
        }
    }
}
