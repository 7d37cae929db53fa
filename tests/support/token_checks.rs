//! Answers about tokens against a naive ledger of them.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};

use quarry::model::{Address, TokenKind, TokenMetadata, U256};
use quarry::query::{
    Exactness, KeyPart, ListQuery, Paged as _, Reader, Standard, TokenFacts, TransferPage, Verdict,
    ZeroAddress,
};
use quarry::store::StoreError;

use crate::model::{self, Ledger, Transfer};
use crate::plain::Rng;
use crate::walks;

/// Accounts and contracts that are asked for.
pub type Asked = (BTreeSet<Address>, BTreeSet<Address>);

/// Says of all tokens that they are exact, under one convention.
#[derive(Debug)]
pub struct Convention(pub ZeroAddress);

impl TokenFacts for Convention {
    fn metadata(&self, _: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        Ok(Some(TokenMetadata::default()))
    }

    fn verdict(&self, _: &Address, _: bool) -> Result<Verdict, StoreError> {
        Ok(Verdict {
            exactness: Exactness::Exact,
            zero: self.0,
        })
    }
}

pub fn balance(token: &model::Token, who: &Address, zero: ZeroAddress) -> U256 {
    if who.is_zero() {
        return match zero {
            ZeroAddress::Burns | ZeroAddress::Untold => U256::ZERO,
            ZeroAddress::Holds => token.burnt,
        };
    }
    token.balances.get(who).copied().unwrap_or_default()
}

pub fn supply(token: &model::Token, zero: ZeroAddress) -> U256 {
    match zero {
        ZeroAddress::Burns | ZeroAddress::Untold => token.minted.saturating_sub(token.burnt),
        ZeroAddress::Holds => token.minted,
    }
}

/// What is held and how much there is of it now.
pub fn check_present(reader: &Reader, now: &Ledger, zero: ZeroAddress, (accounts, contracts): &Asked) {
    for address in contracts {
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
        for who in accounts {
            assert_eq!(
                reader.token_balance(&token, who).unwrap(),
                balance(expected, who, zero),
                "{address} {who}"
            );
            let owned = expected.owners.iter().filter(|(_, owner)| *owner == who);
            let mut ids: Vec<U256> = owned.map(|(id, _)| *id).collect();
            if who.is_zero() && zero == ZeroAddress::Holds && expected.kind == TokenKind::Erc721 {
                let left = |id: &&U256| !expected.owners.contains_key(*id);
                ids.extend(expected.buried.iter().filter(left));
            }
            for (skip, limit) in [(0, 100), (1, 2), (2, 1), (3, 9), (40, 2)] {
                let part = KeyPart::skipping(skip, limit);
                let page = reader.nft_ids(&token, who, &part, None).unwrap();
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
                let page = reader.holders(&token, &part, None).unwrap();
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
                .filter_map(|(address, token)| {
                    let held = match token.kind == kind {
                        true => token.balances.get(who),
                        false => token.others.get(&(kind, *who)),
                    };
                    Some((*address, *held?))
                })
                .collect();
            for (skip, limit) in [(0, 100), (1, 1), (9, 3)] {
                let part = KeyPart::skipping(skip, limit);
                let page = reader.holdings(who, kind, &part, None).unwrap();
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
        check_units(reader, now, who, contracts);
    }
}

/// What an account holds of ids of ERC-1155, of all tokens and of each.
fn check_units(reader: &Reader, now: &Ledger, who: &Address, contracts: &BTreeSet<Address>) {
    for only in contracts.iter().map(Some).chain([None]) {
        // Whatever all ids come to together.
        let tokens = now
            .tokens
            .iter()
            .filter(|(address, _)| only.is_none_or(|only| only == *address));
        let held: Vec<(Address, U256, U256)> = tokens
            .flat_map(|(address, token)| token.units.iter().map(move |(key, units)| (address, key, units)))
            .filter(|(_, (holder, _), units)| holder == who && !units.is_zero())
            .map(|(address, (_, id), units)| (*address, *id, *units))
            .collect();
        for (skip, limit) in [(0, 100), (1, 2), (3, 9), (40, 2)] {
            let part = KeyPart::skipping(skip, limit);
            let page = reader.multi_holdings(who, only, &part, None).unwrap();
            let rows: Vec<_> = page
                .ids
                .iter()
                .map(|held| (held.token, held.id, held.balance))
                .collect();
            let wanted: Vec<_> = held.iter().copied().skip(skip as usize).take(limit).collect();
            assert_eq!(
                (rows, page.total),
                (wanted, Some(held.len() as u64)),
                "{who} {only:?}"
            );
        }
        walks::multi_holdings(reader, who, only, &held);
    }
}

/// Which lists of transfers a test asks for: those of an account, of one token where it is named, or of a token.
#[derive(Clone, Copy, Debug)]
enum List<'a> {
    Account(&'a Address, Option<&'a Address>),
    Token(&'a Address),
}

impl List<'_> {
    fn has(self, row: &Transfer) -> bool {
        match self {
            Self::Account(who, token) => {
                (row.from == *who || row.to == *who) && token.is_none_or(|token| row.token == *token)
            }
            Self::Token(token) => row.token == *token,
        }
    }

    fn page(self, reader: &Reader, standard: Standard, query: &ListQuery) -> TransferPage {
        let page = match self {
            Self::Account(who, token) => reader.account_transfers(who, standard, token, query),
            Self::Token(token) => reader.token_transfers(token, standard, query, None),
        };
        page.unwrap()
    }
}

/// Who took part in which transfers, and which ones each contract emitted.
///
/// Answers by which standards contracts of another one emitted some.
pub fn check_transfers(
    reader: &Reader,
    now: &Ledger,
    (accounts, contracts): &Asked,
    seed: u64,
) -> BTreeSet<TokenKind> {
    let mut rng = Rng(seed);
    let standards = BTreeMap::from([
        (TokenKind::Erc20, Standard::Erc20),
        (TokenKind::Erc721, Standard::Erc721),
        (TokenKind::Erc1155, Standard::Erc1155),
    ]);
    let head = reader.head().number;
    for who in accounts {
        let part = now.transfers.iter().any(|row| row.from == *who || row.to == *who);
        assert_eq!(reader.took_part_in_transfers(who).unwrap(), part);
    }
    let of_accounts = accounts.iter().flat_map(|who| {
        let filters = contracts.iter().map(Some).chain([None]);
        filters.map(move |filter| List::Account(who, filter))
    });
    // Several times, as each draws its range and its order.
    let of_tokens = (0..6).flat_map(|_| contracts.iter().map(List::Token));
    let lists: Vec<List<'_>> = of_accounts.chain(of_tokens).collect();
    let mut foreign = BTreeSet::new();
    for list in lists {
        for (&kind, &standard) in &standards {
            let (a, b) = (rng.below(head + 1), rng.below(head + 1));
            let (first, last) = if rng.below(2) == 0 {
                (0, head)
            } else {
                (a.min(b), a.max(b))
            };
            let mut wanted: Vec<&Transfer> = now
                .transfers
                .iter()
                .filter(|row| row.kind == kind && list.has(row))
                .filter(|row| (first..=last).contains(&row.block))
                .collect();
            let descending = rng.below(2) == 0;
            if descending {
                wanted.reverse();
            }
            // Of another standard than the contract's own, where only a walk tells how many there are.
            let is_foreign = matches!(list, List::Token(token)
                if now.tokens.get(token).is_some_and(|token| token.kind != kind && token.kind != TokenKind::Unknown));
            if is_foreign && !wanted.is_empty() {
                foreign.insert(kind);
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
                let mut page = list.page(reader, standard, &query);
                let total = page.page().total();
                let is_last = page.page().next_cursor().is_none();
                if is_foreign && (!is_last || query.cursor.is_some()) {
                    assert!(total.is_none() || wanted.is_empty(), "{list:?} {kind:?}");
                } else {
                    assert_eq!(total, Some(wanted.len() as u64), "{list:?} {kind:?}");
                }
                found.extend(rows(&mut page));
                let Some(cursor) = page.page().next_cursor() else {
                    break;
                };
                query.cursor = Some(cursor);
            }
            let all: Vec<Transfer> = wanted.iter().map(|row| (*row).clone()).collect();
            assert_eq!(found, all, "{list:?} {kind:?} {first}..={last}");
            query.cursor = None;
            query.skip = rng.below(wanted.len() as u64 + 3);
            let mut page = list.page(reader, standard, &query);
            let wanted: Vec<Transfer> = all
                .into_iter()
                .skip(query.skip as usize)
                .take(query.limit)
                .collect();
            assert_eq!(rows(&mut page), wanted);
        }
    }
    foreign
}

fn rows(page: &mut TransferPage) -> Vec<Transfer> {
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
            kind: row.kind,
        });
        true
    };
    assert!(!page.visit(&mut visit).unwrap());
    rows
}
