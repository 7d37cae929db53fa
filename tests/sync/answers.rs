//! Answers of every family about a chain, against what follows from its blocks without any store.

use crate::brute::{check_balances, check_block, check_logs};
use crate::checks::{Convention, check_present, check_transfers};
use crate::lists::{self, Row, Whose};
use crate::model::Ledger;
use crate::participants::{day, participants};
use crate::support::chain::{BASE_FEE, ChainSpec};
use fastrand::Rng;
use quarry::json::{UuidSpace, internal_transaction, listed_transaction, mined_block};
use quarry::model::{Address, Bundle, Day, U256};
use quarry::query::{DayRow, ListQuery, Reader, ZeroAddress};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const CHAIN_ID: u64 = 1337;

/// Asks for some of everything; `chain` begins with block 0, the store with `first_block`.
pub(crate) fn check(reader: &Reader, chain: &[Bundle], first_block: u64, spec: &ChainSpec, rng: &mut Rng) {
    let stored = &chain[usize::try_from(first_block).unwrap()..];
    assert_eq!(reader.head().hash, chain.last().unwrap().block.hash);
    // The newest blocks, which reorgs may have changed, and some others.
    let newest = chain.len().saturating_sub(12);
    for bundle in &chain[newest..] {
        check_block(reader, bundle, first_block);
    }
    for _ in 0..8 {
        check_block(reader, &chain[rng.usize(..chain.len())], first_block);
    }
    assert!(reader.block(chain.len() as u64, false).unwrap().is_none());
    check_logs(reader, stored, 12, rng);
    if rng.u8(..3) == 0 && stored.len() > 5 {
        check_balances(reader, chain, first_block);
    }
    check_days(reader, stored, first_block);
    for _ in 0..2 {
        check_lists(reader, stored, spec.account(rng.u64(..spec.accounts)));
        check_lists(reader, stored, spec.contract(rng.u64(..spec.contracts)));
    }
    // What was held before the first stored block the logs do not tell.
    if first_block == 0 {
        check_tokens(reader, chain, spec, rng);
    }
}

fn check_tokens(reader: &Reader, chain: &[Bundle], spec: &ChainSpec, rng: &mut Rng) {
    let mut ledger = Ledger::default();
    for bundle in chain {
        ledger.apply(bundle);
    }
    let accounts: BTreeSet<Address> = (0..3).map(|_| spec.account(rng.u64(..spec.accounts))).collect();
    let contracts: BTreeSet<Address> = (0..3).map(|_| spec.contract(rng.u64(..spec.contracts))).collect();
    let zero = if rng.bool() {
        ZeroAddress::Burns
    } else {
        ZeroAddress::Holds
    };
    let reader = reader.clone().with_token_facts(Arc::new(Convention(zero)));
    let asked = (accounts, contracts);
    check_present(&reader, &ledger, zero, &asked);
    check_transfers(&reader, &ledger, &asked, rng.u64(..));
}

/// The sums of every day, and who was new on it.
fn check_days(reader: &Reader, stored: &[Bundle], first_block: u64) {
    let mut days: BTreeMap<Day, DayRow> = BTreeMap::new();
    let mut known = BTreeSet::new();
    let mut new: BTreeMap<Day, u64> = BTreeMap::new();
    for bundle in stored {
        let header = &bundle.block.header;
        let row = days.entry(day(bundle)).or_insert(DayRow {
            first_block: header.number,
            first_time: header.timestamp,
            ..DayRow::default()
        });
        (row.last_block, row.last_time) = (header.number, header.timestamp);
        row.blocks += 1;
        row.transactions += bundle.receipts.len() as u64;
        row.size += bundle.block.size.unwrap();
        row.gas_used += U256::from(header.gas_used);
        row.gas_limit += U256::from(header.gas_limit);
        for receipt in &bundle.receipts {
            let (gas, price) = (
                U256::from(receipt.gas_used),
                U256::from(receipt.effective_gas_price.unwrap()),
            );
            row.gas_prices += price;
            row.tips += gas * (price - U256::from(BASE_FEE));
            row.base_fees_burnt += gas * U256::from(BASE_FEE);
        }
        let count = participants(bundle)
            .into_iter()
            .filter(|who| known.insert(*who))
            .count() as u64;
        if count > 0 {
            *new.entry(day(bundle)).or_default() += count;
        }
    }
    let span = reader.day_span().unwrap();
    assert_eq!(span, (*days.keys().next().unwrap(), *days.keys().last().unwrap()));
    assert_eq!(
        reader.days(span.0, span.1).unwrap(),
        days.into_iter().collect::<Vec<_>>()
    );
    if first_block == 0 {
        let found = reader.new_addresses(span.0, span.1).unwrap();
        assert_eq!(found, new.into_iter().collect::<Vec<_>>());
    }
}

/// What an account sent and received, its internal transactions and the blocks it was paid for.
fn check_lists(reader: &Reader, stored: &[Bundle], account: Address) {
    let head = reader.head().number;
    let query = ListQuery {
        last_block: head,
        limit: 10_000,
        ..ListQuery::default()
    };
    let mut items = Vec::new();
    let mut page = reader.account_transactions(&account, &query).unwrap();
    page.visit(&mut |transaction| {
        let mut out = Vec::new();
        listed_transaction(&mut out, transaction, head, "");
        items.push(out);
        true
    })
    .unwrap();
    same(
        &items,
        &lists::transactions(stored, account),
        account,
        "transactions",
    );
    for zero in [false, true] {
        let (ids, mut room, mut items) = (UuidSpace::new(CHAIN_ID), String::new(), Vec::new());
        let mut page = reader.account_internal(&account, zero, &query).unwrap();
        page.visit(&mut |internal| {
            let mut out = Vec::new();
            internal_transaction(&mut out, &ids, &mut room, internal);
            items.push(out);
            true
        })
        .unwrap();
        let expected = lists::internal(CHAIN_ID, stored, Whose::Of(account), zero);
        same(&items, &expected, account, "internal transactions");
    }
    let mut items = Vec::new();
    let mut page = reader.account_mined(&account, &query).unwrap();
    page.visit(&mut |mined| {
        let mut out = Vec::new();
        mined_block(&mut out, mined);
        items.push(out);
        true
    })
    .unwrap();
    // No block of this chain has a reward of the protocol.
    let tips = |number: u64| {
        let bundle = stored.iter().find(|bundle| bundle.block.number() == number);
        lists::tips(bundle.unwrap())
    };
    same(
        &items,
        &lists::mined(stored, account, tips),
        account,
        "mined blocks",
    );
}

fn same(found: &[Vec<u8>], expected: &[Row], account: Address, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what} of {account}");
    for (found, (block, expected)) in found.iter().zip(expected) {
        let found: Value = serde_json::from_slice(found).unwrap();
        assert_eq!(found, *expected, "{what} of {account} in block {block}");
    }
}
