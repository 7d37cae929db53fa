//! The token ledger against a naive one over a seeded chain with hostile logs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "tokens/known.rs"]
mod known;
#[path = "tokens/model.rs"]
mod model;
#[path = "support/plain.rs"]
mod plain;
#[path = "tokens/walks.rs"]
mod walks;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{Ledger, Transfer, add_logs};
use plain::{ChainConfig, Rng};
use quarry::model::{Address, B256, Bundle, TokenKind, TokenMetadata, U256};
use quarry::query::{
    Exactness, KeyPart, ListQuery, Paged, Reader, Standard, TokenFacts, Verdict, ZeroAddress,
};
use quarry::store::{OpenOptions, Store, StoreError, Writer};
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
    let directories: Vec<_> = (0..5).map(|_| tempfile::tempdir().unwrap()).collect();
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

/// Says of all tokens that they are exact, under one convention.
#[derive(Debug)]
struct Convention(ZeroAddress);

impl TokenFacts for Convention {
    fn metadata(&self, _: &Address) -> Result<TokenMetadata, StoreError> {
        Ok(TokenMetadata::default())
    }

    fn verdict(&self, _: &Address, _: bool) -> Result<Verdict, StoreError> {
        Ok(Verdict {
            exactness: Exactness::Exact,
            zero: self.0,
        })
    }
}

fn balance(token: &model::Token, who: &Address, zero: ZeroAddress) -> U256 {
    if who.is_zero() {
        return match zero {
            ZeroAddress::Burns => U256::ZERO,
            ZeroAddress::Holds => token.burnt,
        };
    }
    token.balances.get(who).copied().unwrap_or_default()
}

fn supply(token: &model::Token, zero: ZeroAddress) -> U256 {
    match zero {
        ZeroAddress::Burns => token.minted.saturating_sub(token.burnt),
        ZeroAddress::Holds => token.minted,
    }
}

#[test]
fn every_answer_is_the_naive_ledgers() {
    for seed in 20..22 {
        let bundles = chain(seed, 80);
        let directory = tempfile::tempdir().unwrap();
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
            check_present(&reader, now, zero);
            check_past(&reader, &ledgers, zero, seed);
        }
        check_transfers(&Reader::new(store.view()), now, seed);
    }
}

fn check_present(reader: &Reader, now: &Ledger, zero: ZeroAddress) {
    let (accounts, contracts) = now.asked();
    for address in &contracts {
        let expected = now
            .tokens
            .get(address)
            .filter(|token| token.kind != TokenKind::Unknown);
        let token = reader.token(address).unwrap();
        assert_eq!(token.is_some(), expected.is_some(), "{address}");
        let (Some(token), Some(expected)) = (token, expected) else {
            continue;
        };
        assert_eq!(token.kind(), expected.kind, "{address}");
        assert_eq!(token.is_flagged(), expected.doubted, "{address}");
        assert_eq!(token.supply(), supply(expected, zero), "{address}");
        assert_eq!(reader.token_story(&token).unwrap().transfers, expected.transfers);
        for who in &accounts {
            assert_eq!(
                reader.token_balance(&token, who).unwrap(),
                balance(expected, who, zero),
                "{address} {who}"
            );
            let ids: Vec<U256> = expected
                .owners
                .iter()
                .filter(|(_, owner)| *owner == who)
                .map(|(id, _)| *id)
                .collect();
            for (skip, limit) in [(0, 100), (1, 2), (2, 1), (3, 9), (40, 2)] {
                let part = KeyPart::skipping(skip, limit);
                let page = reader.nft_ids(&token, who, &part).unwrap();
                let wanted: Vec<U256> = ids.iter().copied().skip(skip as usize).take(limit).collect();
                assert_eq!(
                    (page.ids, page.total),
                    (wanted, ids.len() as u64),
                    "{address} {who}"
                );
            }
            walks::ids(reader, &token, who, &ids);
        }
        let mut holders: Vec<(Address, U256)> = expected
            .balances
            .iter()
            .map(|(who, amount)| (*who, *amount))
            .collect();
        let of_zero = balance(expected, &Address::ZERO, zero);
        if !of_zero.is_zero() {
            holders.push((Address::ZERO, of_zero));
        }
        holders.sort_by_key(|(who, amount)| (std::cmp::Reverse(*amount), *who));
        assert_eq!(reader.holder_count(&token).unwrap(), (holders.len() as u64, true));
        for skip in 0..=holders.len() + 2 {
            for limit in [1, 2, 5, 20] {
                let part = KeyPart::skipping(skip as u64, limit);
                let page = reader.holders(&token, &part).unwrap();
                let wanted: Vec<_> = holders.iter().copied().skip(skip).take(limit).collect();
                assert_eq!(page.holders, wanted, "{address} {skip} {limit}");
                assert_eq!(page.total, holders.len() as u64);
            }
        }
        walks::holders(reader, &token, &holders);
        walks::holders_behind_any_place(reader, &token, &holders);
    }
    for who in accounts.iter().filter(|who| !who.is_zero()) {
        for kind in [TokenKind::Erc20, TokenKind::Erc721, TokenKind::Erc1155] {
            let held: Vec<(Address, U256)> = now
                .tokens
                .iter()
                .filter(|(_, token)| token.kind == kind)
                .filter_map(|(address, token)| Some((*address, *token.balances.get(who)?)))
                .collect();
            for (skip, limit) in [(0, 100), (1, 1), (9, 3)] {
                let part = KeyPart::skipping(skip, limit);
                let page = reader.holdings(who, kind, &part).unwrap();
                let found: Vec<_> = page
                    .tokens
                    .iter()
                    .map(|held| (held.token, held.balance))
                    .collect();
                let wanted: Vec<_> = held.iter().copied().skip(skip as usize).take(limit).collect();
                assert_eq!(found, wanted, "{who} {kind:?}");
                assert_eq!(page.total, Some(held.len() as u64));
            }
            walks::holdings(reader, who, kind, &held);
        }
    }
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

fn check_transfers(reader: &Reader, now: &Ledger, seed: u64) {
    let mut rng = Rng(seed);
    let (accounts, contracts) = now.asked();
    let standards = BTreeMap::from([
        (TokenKind::Erc20, Standard::Erc20),
        (TokenKind::Erc721, Standard::Erc721),
        (TokenKind::Erc1155, Standard::Erc1155),
    ]);
    let head = reader.head().number;
    for who in &accounts {
        let part = now.transfers.iter().any(|row| row.from == *who || row.to == *who);
        assert_eq!(reader.took_part_in_transfers(who).unwrap(), part);
        for (&kind, &standard) in &standards {
            let filters = contracts.iter().map(Some).chain([None]);
            for filter in filters {
                let (a, b) = (rng.below(head + 1), rng.below(head + 1));
                let (first, last) = if rng.below(2) == 0 {
                    (0, head)
                } else {
                    (a.min(b), a.max(b))
                };
                let mut wanted: Vec<&Transfer> = now
                    .transfers
                    .iter()
                    .filter(|row| row.kind == kind && (row.from == *who || row.to == *who))
                    .filter(|row| filter.is_none_or(|token| row.token == *token))
                    .filter(|row| (first..=last).contains(&row.block))
                    .collect();
                let descending = rng.below(2) == 0;
                if descending {
                    wanted.reverse();
                }
                let mut query = ListQuery {
                    first_block: first,
                    last_block: last,
                    descending,
                    skip: 0,
                    limit: 1 + rng.below(7) as usize,
                    cursor: None,
                };
                // By cursor from the first page on, and one page by its number.
                let mut found = Vec::new();
                loop {
                    let mut page = reader.account_transfers(who, standard, filter, &query).unwrap();
                    assert_eq!(page.page().total(), Some(wanted.len() as u64));
                    found.extend(rows(&mut page, standard));
                    let Some(cursor) = page.page().next_cursor() else {
                        break;
                    };
                    query.cursor = Some(cursor);
                }
                let all: Vec<Transfer> = wanted.iter().map(|row| (*row).clone()).collect();
                assert_eq!(found, all, "{who} {kind:?} {filter:?} {first}..={last}");
                query.cursor = None;
                query.skip = rng.below(wanted.len() as u64 + 3);
                let mut page = reader.account_transfers(who, standard, filter, &query).unwrap();
                let wanted: Vec<Transfer> = all
                    .into_iter()
                    .skip(query.skip as usize)
                    .take(query.limit)
                    .collect();
                assert_eq!(rows(&mut page, standard), wanted);
            }
        }
    }
}

fn rows(page: &mut quarry::query::TransferPage, standard: Standard) -> Vec<Transfer> {
    let mut rows = Vec::new();
    let mut visit = |row: &quarry::model::ListedTransfer<'_>| {
        rows.push(Transfer {
            block: row.block.number,
            hash: row.transaction_hash,
            log_index: row.log_index,
            position: row.position,
            from: row.from,
            to: row.to,
            token: row.token,
            id: row.id,
            value: row.value,
            kind: standard.kind(),
        });
        true
    };
    assert!(!page.visit(&mut visit).unwrap());
    rows
}
