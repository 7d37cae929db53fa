//! The lists of accounts over a real store, against what a seeded chain says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/delegation.rs"]
mod delegation;
#[path = "support/lists.rs"]
mod lists;
#[path = "support/plain.rs"]
mod plain;
#[path = "support/scratch.rs"]
mod scratch;

use std::sync::Arc;

use lists::{Row, Whose};
use plain::{ChainConfig, Rng, account};
use quarry::json::{UuidSpace, internal_transaction, listed_transaction, mined_block};
use quarry::metrics::visits;
use quarry::model::{
    Address, Authorization, B256, Bundle, Frame, FrameKind, Transaction, TransactionTrace, U256,
};
use quarry::query::{ListQuery, Nonce, Page, Paged as _, QueryError, Reader, RowCursor};
use quarry::store::{OpenOptions, Store, Writer};
use quarry::sync::authority::authority;
use quarry::sync::derive::{NonceRules, derive, derive_traces};
use serde_json::Value;

const CHAIN_ID: u64 = 7;

fn open(directory: &std::path::Path) -> Arc<Store> {
    let options = OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        ..OpenOptions::new(directory)
    };
    Store::open_or_create(&options, CHAIN_ID, B256::repeat_byte(1), Some(0)).unwrap()
}

fn chain(seed: u64, blocks: u64, fork_at: Option<usize>) -> Vec<Bundle> {
    let config = ChainConfig {
        logs_per_block: 2,
        ..ChainConfig::default()
    };
    let mut bundles = plain::chain(seed, fork_at.map_or(blocks, |at| at as u64), &config);
    plain::extend(&mut bundles, seed, blocks, u64::from(fork_at.is_some()), &config);
    lists::vary(&mut bundles, seed);
    bundles
}

fn nonce_rules() -> NonceRules {
    NonceRules {
        chain_id: CHAIN_ID,
        from_genesis: true,
        ..NonceRules::default()
    }
}

fn commit(writer: &mut Writer, bundles: &[Bundle], final_to: usize) {
    let rules = nonce_rules();
    let (settled, open) = bundles.split_at(final_to.min(bundles.len()));
    for bundles in settled.chunks(17) {
        let mut batch = writer.batch();
        for bundle in bundles {
            derive(bundle, &rules, &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
    }
    for bundle in open {
        let mut batch = writer.batch();
        derive(bundle, &rules, &mut batch).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }
}

/// A list of one kind.
#[derive(Clone, Copy, Debug)]
enum List {
    Transactions(Address),
    Internal(Whose, bool),
    Mined(Address),
}

/// What a page says: its items as JSON, the total, and where to go on.
type Answer = (Vec<Value>, u64, Option<RowCursor>);

/// Asks, reading `frame` items at a time.
fn ask(
    reader: &Reader,
    bundles: &[Bundle],
    list: List,
    query: &ListQuery,
    frame: usize,
) -> Result<Answer, QueryError> {
    let (ids, mut room, mut items) = (UuidSpace::new(CHAIN_ID), String::new(), Vec::new());
    let head = reader.head().number;
    let known = |page: &Page| (page.len(), page.total().unwrap(), page.next_cursor());
    let (len, total, next) = match list {
        List::Transactions(account) => {
            let mut page = reader.account_transactions(&account, query)?;
            let known = known(page.page());
            loop {
                let mut left = frame;
                let more = page.visit(&mut |transaction| {
                    let mut out = Vec::new();
                    listed_transaction(&mut out, transaction, head, "");
                    items.push(serde_json::from_slice(&out).unwrap());
                    left -= 1;
                    left > 0
                })?;
                if !more {
                    break known;
                }
            }
        }
        List::Mined(account) => {
            let mut page = reader.account_mined(&account, query)?;
            let known = known(page.page());
            loop {
                let mut left = frame;
                let more = page.visit(&mut |mined| {
                    let mut out = Vec::new();
                    mined_block(&mut out, mined);
                    items.push(serde_json::from_slice(&out).unwrap());
                    left -= 1;
                    left > 0
                })?;
                if !more {
                    break known;
                }
            }
        }
        List::Internal(whose, zero) => {
            let mut page = match whose {
                Whose::Of(account) => reader.account_internal(&account, zero, query)?,
                Whose::All => reader.internal(zero, query)?,
                Whose::In(block, index) => {
                    let hash = bundles[block as usize].block.transactions[index].hash;
                    reader.transaction_internal(&hash, zero, query)?.unwrap()
                }
            };
            let known = known(page.page());
            loop {
                let mut left = frame;
                let more = page.visit(&mut |internal| {
                    let mut out = Vec::new();
                    internal_transaction(&mut out, &ids, &mut room, internal);
                    items.push(serde_json::from_slice(&out).unwrap());
                    left -= 1;
                    left > 0
                })?;
                if !more {
                    break known;
                }
            }
        }
    };
    assert_eq!(items.len(), len);
    Ok((items, total, next))
}

fn model(reader: &Reader, bundles: &[Bundle], list: List) -> Vec<Row> {
    // What a block's reward is, its own operation is tested for.
    let reward = |number| reader.block_reward(number).unwrap().unwrap().total();
    match list {
        List::Mined(account) => lists::mined(bundles, account, reward),
        List::Transactions(account) => lists::transactions(bundles, account),
        List::Internal(whose, zero) => lists::internal(CHAIN_ID, bundles, whose, zero),
    }
}

/// The rows of the model that a query's blocks and order leave.
fn part(rows: &[Row], list: List, query: &ListQuery) -> Vec<Value> {
    let by_place = matches!(list, List::Internal(Whose::In(..), _));
    let wanted = |block: u64| by_place || (query.first_block..=query.last_block).contains(&block);
    let mut part: Vec<Value> = rows
        .iter()
        .filter(|(block, _)| wanted(*block))
        .map(|(_, item)| item.clone())
        .collect();
    if query.descending {
        part.reverse();
    }
    part
}

fn every_list(bundles: &[Bundle]) -> Vec<List> {
    let mut all = Vec::new();
    for number in 0..9 {
        all.push(List::Transactions(account(number)));
        all.push(List::Mined(account(number)));
        for zero in [false, true] {
            all.push(List::Internal(Whose::Of(account(number)), zero));
        }
    }
    for bundle in bundles.iter().step_by(7) {
        let number = bundle.block.number();
        all.push(List::Transactions(account(1000 + number)));
        for index in 0..bundle.block.transactions.len() {
            all.extend([false, true].map(|zero| List::Internal(Whose::In(number, index), zero)));
        }
    }
    all.extend([false, true].map(|zero| List::Internal(Whose::All, zero)));
    all
}

#[test]
fn lists_agree_with_the_model() {
    let bundles = chain(3, 400, None);
    let directory = scratch::directory();
    let store = open(directory.path());
    commit(&mut store.writer().unwrap(), &bundles, 390);
    let reader = Reader::new(store.view());
    let mut rng = Rng(4);
    let (mut rows_seen, mut selected_far) = (0, 0);
    for list in every_list(&bundles) {
        let rows = model(&reader, &bundles, list);
        for round in 0..12 {
            let (a, b) = (rng.below(400), rng.below(400));
            let whole = round < 4;
            let mut query = ListQuery {
                first_block: if whole { 0 } else { a.min(b) },
                last_block: if whole { 399 } else { a.max(b) },
                descending: round % 2 == 1,
                limit: [1, 7, 100, 10_000][rng.below(4) as usize],
                ..ListQuery::default()
            };
            let expected = part(&rows, list, &query);
            query.skip = rng.below(3) * rng.below(expected.len() as u64 + 2) / 2;
            let frame = 1 + rng.below(50) as usize;
            let (items, total, next) = ask(&reader, &bundles, list, &query, frame).unwrap();
            let skip = query.skip as usize;
            let page: Vec<Value> = expected.iter().skip(skip).take(query.limit).cloned().collect();
            assert!(items == page, "{list:?} {query:?}");
            assert_eq!(total, expected.len() as u64, "{list:?} {query:?}");
            assert_eq!(
                next.is_some(),
                skip + page.len() < expected.len() && !page.is_empty()
            );
            rows_seen += items.len();
            selected_far += u32::from(skip > 300 && matches!(list, List::Internal(_, true)));
            // The page after the cursor.
            if next.is_some() {
                let after = ListQuery {
                    cursor: next,
                    skip: 0,
                    ..query
                };
                let (items, again, _) = ask(&reader, &bundles, list, &after, frame).unwrap();
                let rest = expected.iter().skip(skip + page.len()).take(query.limit);
                assert!(items.iter().eq(rest), "{list:?} {after:?}");
                assert_eq!(again, total);
            }
        }
    }
    assert!(rows_seen > 20_000, "{rows_seen}");
    assert!(selected_far > 5, "{selected_far}");
    let unknown = ListQuery::default();
    assert!(
        reader
            .transaction_internal(&B256::repeat_byte(9), true, &unknown)
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_transaction_to_oneself_is_listed_once() {
    let bundles = chain(3, 100, None);
    let to_itself = bundles
        .iter()
        .flat_map(|bundle| &bundle.block.transactions)
        .find(|transaction| transaction.to == Some(transaction.from))
        .unwrap();
    let directory = scratch::directory();
    let store = open(directory.path());
    commit(&mut store.writer().unwrap(), &bundles, 100);
    let query = ListQuery {
        last_block: 99,
        limit: 10_000,
        ..ListQuery::default()
    };
    let list = List::Transactions(to_itself.from);
    let (items, ..) = ask(&Reader::new(store.view()), &bundles, list, &query, 99).unwrap();
    let hash = to_itself.hash.to_string();
    assert_eq!(
        items.iter().filter(|item| item["hash"] == hash.as_str()).count(),
        1
    );
}

#[test]
fn cursors_across_new_blocks_and_a_reorg() {
    let (bundles, fork) = (chain(6, 80, None), chain(6, 90, Some(60)));
    assert_eq!(bundles[59].block.hash, fork[59].block.hash);
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    commit(&mut writer, &bundles[..70], 50);
    const STEP: usize = 7;
    for list in [
        List::Transactions(account(1)),
        List::Mined(account(1)),
        List::Internal(Whose::Of(account(1)), false),
        List::Internal(Whose::Of(account(1)), true),
        List::Internal(Whose::All, true),
    ] {
        for descending in [false, true] {
            let reader = Reader::new(store.view());
            let head = reader.head().number;
            // Cursors after every few rows, the last row left out.
            let whole = ListQuery {
                last_block: head,
                descending,
                limit: 1,
                ..ListQuery::default()
            };
            let rows = part(&model(&reader, &bundles[..70], list), list, &whole);
            let mut cursors = Vec::new();
            for skip in (0..rows.len() as u64 - 1).step_by(STEP) {
                cursors.push(
                    ask(&reader, &bundles, list, &ListQuery { skip, ..whole }, 1)
                        .unwrap()
                        .2
                        .unwrap(),
                );
            }
            let go_on = |bundles: &[Bundle], reached: usize| -> (usize, usize) {
                let reader = Reader::new(store.view());
                let (mut resumed, mut refused) = (0, 0);
                for (cursor, row) in cursors.iter().zip(rows.iter().step_by(STEP)) {
                    let query = ListQuery {
                        last_block: reached as u64 - 1,
                        cursor: Some(cursor.to_string().parse().unwrap()),
                        limit: 10_000,
                        ..whole
                    };
                    let block: usize = row["blockNumber"].as_str().unwrap().parse().unwrap();
                    let orphaned =
                        bundles[block].block.hash.to_string() != row["blockHash"].as_str().unwrap();
                    match ask(&reader, bundles, list, &query, 1000) {
                        Err(QueryError::CursorOrphaned) => {
                            assert!(orphaned, "{list:?}: a cursor into block {block} was refused");
                            refused += 1;
                        }
                        Err(error) => panic!("{error}"),
                        Ok((items, ..)) => {
                            assert!(!orphaned, "{list:?}: block {block} was replaced");
                            let now = part(&model(&reader, &bundles[..reached], list), list, &query);
                            let same = |item: &&Value| {
                                let keys = ["hash", "uuid", "blockHash"];
                                let key = |item: &Value| keys.map(|name| item[name].clone());
                                key(item) == key(row)
                            };
                            let at = now.iter().position(|item| same(&item)).unwrap();
                            assert!(items == now[at + 1..], "{list:?} {query:?}");
                            resumed += 1;
                        }
                    }
                }
                (resumed, refused)
            };
            commit(&mut writer, &bundles[70..], 0);
            assert_eq!(go_on(&bundles, 80).1, 0);
            writer.unwind(60).unwrap();
            commit(&mut writer, &fork[60..], 0);
            let (resumed, refused) = go_on(&fork, 90);
            assert!(resumed > 0 && refused > 0, "{list:?}: {resumed} {refused}");
            writer.unwind(60).unwrap();
            commit(&mut writer, &bundles[60..70], 0);
        }
    }
}

#[test]
fn what_lies_in_traces_needs_them() {
    let mut bundles = chain(8, 40, None);
    for bundle in &mut bundles {
        bundle.traces = None;
    }
    let directory = scratch::directory();
    let store = open(directory.path());
    commit(&mut store.writer().unwrap(), &bundles, 40);
    let reader = Reader::new(store.view());
    let query = |first_block, last_block| ListQuery {
        first_block,
        last_block,
        limit: 100,
        ..ListQuery::default()
    };
    let needs = |list, query| {
        matches!(
            ask(&reader, &bundles, list, &query, 9),
            Err(QueryError::NeedsTraces)
        )
    };
    for list in [
        List::Internal(Whose::Of(account(1)), false),
        List::Internal(Whose::All, true),
    ] {
        assert!(needs(list, query(0, 39)), "{list:?}");
        assert!(needs(list, query(20, 20)), "{list:?}");
    }
    let with_transactions = bundles
        .iter()
        .position(|b| !b.block.transactions.is_empty())
        .unwrap();
    assert!(needs(
        List::Internal(Whose::In(with_transactions as u64, 0), false),
        query(0, 0)
    ));
    // Before Byzantium the status is in the traces, from then on in the receipt.
    let list = List::Transactions(account(1));
    assert!(needs(list, query(0, 39)));
    let later = query(14, 39);
    let (items, ..) = ask(&reader, &bundles, list, &later, 9).unwrap();
    let expected = part(&model(&reader, &bundles, list), list, &later);
    assert!(!items.is_empty());
    assert_eq!(items, expected);
}

/// Frames that are filled in later are what their node told, also where it says another sender than the node of the blocks did.
#[test]
fn frames_of_another_node_stay_its_word() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let mut told = chain(3, 12, None);
    let mut untraced = told.clone();
    for bundle in &mut untraced {
        bundle.traces = None;
    }
    let mut writer = store.writer().unwrap();
    commit(&mut writer, &untraced, untraced.len());
    let (view, rules) = (store.view(), NonceRules::default());
    let mut batch = writer.batch();
    let mut altered = 0;
    for bundle in &mut told {
        let traces = bundle.traces.as_mut().unwrap();
        for (transaction, trace) in bundle.block.transactions.iter_mut().zip(traces.iter_mut()) {
            transaction.from = Address::repeat_byte(0xee);
            for frame in trace.frames.iter_mut().filter(|frame| frame.path.is_empty()) {
                frame.from = transaction.from;
                altered += 1;
            }
        }
        let traces = bundle.traces.as_deref().unwrap();
        let first = view.block(bundle.block.number()).unwrap().first_transaction;
        derive_traces(bundle, traces, (&view, first), &rules, &mut batch).unwrap();
    }
    assert!(altered > 5);
    writer.commit_final(batch).unwrap();
    let reader = Reader::new(store.view());
    for bundle in &told {
        let read = reader.bundle(bundle.block.number()).unwrap().unwrap();
        assert_eq!(read.traces, bundle.traces, "block {}", bundle.block.number());
    }
}

fn delegation(key: u64, nonce: u8) -> Authorization {
    delegation::delegation(CHAIN_ID as u8, key, account(9), nonce)
}

/// Has code of an account create contracts in the first transaction of a block.
fn create(bundle: &mut Bundle, creator: Address, contracts: &[u8]) {
    let frames = &mut bundle.traces.as_mut().unwrap()[0].frames;
    let nested = frames.iter().filter(|frame| frame.path.len() == 1).count() as u32;
    for (place, &contract) in (nested..).zip(contracts) {
        frames.push(Frame {
            kind: FrameKind::Create,
            path: vec![place],
            from: creator,
            to: Some(Address::repeat_byte(contract)),
            error: None,
            reverted: false,
            ..frames[0].clone()
        });
    }
}

/// A store of these blocks whose frames come later, so many blocks a commit.
fn filled_later<'a>(
    directory: &std::path::Path,
    told: &[Bundle],
    commits: impl IntoIterator<Item = &'a [Bundle]>,
) -> Arc<Store> {
    let mut untraced = told.to_vec();
    untraced.iter_mut().for_each(|bundle| bundle.traces = None);
    let store = open(directory);
    let mut writer = store.writer().unwrap();
    commit(&mut writer, &untraced, untraced.len());
    for bundles in commits {
        let (view, mut batch) = (store.view(), writer.batch());
        for bundle in bundles {
            let traces = bundle.traces.as_deref().unwrap();
            let first = view.block(bundle.block.number()).unwrap().first_transaction;
            derive_traces(bundle, traces, (&view, first), &nonce_rules(), &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
    }
    drop(writer);
    store
}

/// A delegated account that creates, and is authorized before and after: its nonce is the same whether frames come with the blocks or later.
#[test]
fn nonces_of_delegated_accounts_count_creations_that_are_told_later() {
    let mut told = chain(3, 14, None);
    let delegated = authority(&delegation(77, 0)).unwrap();
    assert_eq!(authority(&delegation(77, 2)), Some(delegated));
    let mut busy = (2..14).filter(|&at: &usize| !told[at].block.transactions.is_empty());
    let mut next = || busy.next().unwrap();
    // Authorized, creates, authorized by what it has after that, and by what it would have without: in vain.
    let [first, creates, second, stale] = [next(), next(), next(), next()];
    for (at, nonce) in [(first, 0), (second, 2), (stale, 1)] {
        let transaction = &mut told[at].block.transactions[0];
        transaction.authorization_list = Some(vec![delegation(77, nonce)]);
    }
    create(&mut told[creates], delegated, &[0xcc]);
    let nonces = |store: &Store| {
        let reader = Reader::new(store.view());
        let at = [first - 1, first, creates, second, stale, 13];
        at.map(|block| reader.nonce(delegated, block as u64).unwrap())
    };
    let expected = [0, 1, 2, 3, 3, 3].map(|nonce| match nonce {
        0 => Nonce::Likely(0),
        told => Nonce::Exact(told),
    });
    let homes = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let with_frames = open(homes[0].path());
    commit(&mut with_frames.writer().unwrap(), &told, told.len());
    assert_eq!(nonces(&with_frames), expected);

    // Some blocks a commit, so that nonces come from the store, too.
    let filled = filled_later(homes[1].path(), &told, told.chunks(3));
    assert_eq!(nonces(&filled), expected);
}

/// What an authorization in vain was taken for without the frames counts for nothing behind it, however the filling is cut.
#[test]
fn nonces_that_are_told_later_do_not_depend_on_the_commits() {
    let mut told = chain(3, 14, None);
    let delegated = authority(&delegation(78, 0)).unwrap();
    let mut busy = (2..14).filter(|&at: &usize| !told[at].block.transactions.is_empty());
    let mut next = || busy.next().unwrap();
    // Authorized, creates two, authorized by what it would have without: in vain, and by what it has.
    let [first, creates, stale, second] = [next(), next(), next(), next()];
    for (at, nonce) in [(first, 0), (stale, 1), (second, 3)] {
        let transaction = &mut told[at].block.transactions[0];
        transaction.authorization_list = Some(vec![delegation(78, nonce)]);
    }
    create(&mut told[creates], delegated, &[0xcc, 0xcd]);
    let rows = |store: &Store| {
        let contents = store.view().contents().unwrap();
        let nonces = contents.into_iter().find(|contents| contents.name == "nonces");
        nonces.map(|nonces| (nonces.rows, nonces.digest)).unwrap()
    };
    let home = tempfile::tempdir().unwrap();
    let with_frames = open(home.path());
    commit(&mut with_frames.writer().unwrap(), &told, told.len());
    let mut digests = Vec::new();
    let cuts = [creates, stale, second];
    for chosen in 0..1 << cuts.len() {
        let (mut commits, mut from) = (Vec::new(), 0);
        for (bit, &at) in cuts.iter().enumerate() {
            if (chosen >> bit) & 1 == 1 {
                commits.push(&told[from..at]);
                from = at;
            }
        }
        commits.push(&told[from..]);
        let home = tempfile::tempdir().unwrap();
        let filled = filled_later(home.path(), &told, commits);
        for store in [&with_frames, &filled] {
            let reader = Reader::new(store.view());
            let at = [first, creates, stale, second, 13];
            let nonces = at.map(|block| reader.nonce(delegated, block as u64).unwrap());
            assert_eq!(nonces, [1, 3, 3, 4, 4].map(Nonce::Exact), "{chosen}");
        }
        assert_eq!(rows(&filled), rows(&with_frames), "{chosen}");
        digests.push(filled.view().digest().unwrap());
    }
    digests.dedup();
    assert_eq!(digests.len(), 1);
}

/// What bridges and the chain send in an account's name has numbers of another order than the account's nonces.
#[test]
fn transactions_are_found_by_nonce_among_what_a_bridge_sent_in_their_name() {
    let mut told = chain(11, 60, None);
    let sender = Address::repeat_byte(0x5e);
    let sent = [
        (0, 2),
        (1, 2),
        (2, 2),
        (1_234_567, 0xff),
        (4, 0x7e),
        (3, 2),
        (4, 2),
        (5, 2),
        (900, 0x7e),
    ];
    let mut transactions = told.iter_mut().flat_map(|bundle| &mut bundle.block.transactions);
    let hashes = sent.map(|(nonce, kind)| {
        let transaction = transactions.next().unwrap();
        transaction.from = sender;
        (transaction.nonce, transaction.kind, transaction.gas) = (nonce, kind, 90_000);
        transaction.hash
    });
    // One in whose name the chain sends, and nobody else.
    let system = Address::repeat_byte(0x5f);
    let of_chain = [7, 8, 9].map(|nonce| {
        let transaction = transactions.next().unwrap();
        transaction.from = system;
        (transaction.nonce, transaction.kind) = (nonce, 0x7e);
        transaction.hash
    });
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    commit(&mut store.writer().unwrap(), &told, told.len());
    let reader = Reader::new(store.view());
    let found = |account, nonce| reader.transaction_by_nonce(&account, nonce).unwrap();
    for (place, nonce) in [(0, 0), (1, 1), (2, 2), (5, 3), (6, 4), (7, 5)] {
        assert_eq!(found(sender, nonce), Some(hashes[place]), "nonce {nonce}");
    }
    assert_eq!(found(sender, 6), None);
    for (hash, nonce) in of_chain.into_iter().zip(7..) {
        assert_eq!(found(system, nonce), Some(hash), "nonce {nonce}");
    }
    assert_eq!(found(system, 10), None);
}

/// In a store that begins later an account may have been delegated before, and create what only frames tell.
#[test]
fn nonces_of_a_store_that_begins_later_are_exact_where_frames_are_there() {
    const FIRST: usize = 4;
    let told = chain(3, 14, None).split_off(FIRST);
    let mut untraced = told.clone();
    untraced.iter_mut().for_each(|bundle| bundle.traces = None);
    let last = |bundles: &[Bundle]| bundles.last().unwrap().block.number();
    let sent = told
        .iter()
        .flat_map(|bundle| &bundle.block.transactions)
        .find(|transaction| !transaction.is_made_by_chain())
        .unwrap();
    for (bundles, is_exact) in [(&told, true), (&untraced, false)] {
        let home = tempfile::tempdir().unwrap();
        let options = OpenOptions::new(home.path());
        let genesis = B256::repeat_byte(1);
        let store = Store::open_or_create(&options, CHAIN_ID, genesis, Some(FIRST as u64)).unwrap();
        commit(&mut store.writer().unwrap(), bundles, bundles.len());
        let nonce = Reader::new(store.view()).nonce(sent.from, last(bundles)).unwrap();
        match nonce {
            Nonce::Exact(_) => assert!(is_exact),
            Nonce::Likely(_) => assert!(!is_exact),
            Nonce::AskNode => panic!("the account has sent"),
        }
    }
}

/// The transactions in which an account took part, by a look at all of them; it is created by none.
fn involved(bundles: &[Bundle], account: &Address, range: std::ops::Range<u64>) -> Vec<u64> {
    let transactions = bundles.iter().flat_map(|bundle| {
        let traces = bundle.traces.iter().flatten();
        bundle.block.transactions.iter().zip(traces)
    });
    let took_part = |(transaction, trace): (&Transaction, &TransactionTrace)| {
        let nested = trace.frames.iter().filter(|frame| !frame.path.is_empty());
        transaction.from == *account
            || transaction.to == Some(*account)
            || nested.into_iter().any(|frame| {
                let made_nothing = frame.reverted && frame.kind.is_creation();
                frame.from == *account || frame.to == Some(*account) && !made_nothing
            })
    };
    let found = transactions.enumerate().filter(|&(_, one)| took_part(one));
    let found = found.map(|(place, _)| place as u64);
    found.filter(|place| range.contains(place)).collect()
}

/// A transaction of many calls is looked at about as long as one of two.
#[test]
fn calls_of_one_transaction_are_not_read_one_by_one() {
    const CALLS: u32 = 5_000;
    let mut bundles = chain(9, 60, None);
    let busy = Address::repeat_byte(0xbb);
    let call = |place: u32| Frame {
        kind: FrameKind::Call,
        path: vec![place],
        from: busy,
        to: Some(account(3)),
        // Of both lists of an account.
        value: U256::from(place % 2),
        ..Frame::default()
    };
    let traces = bundles.iter_mut().flat_map(|bundle| &mut bundle.traces);
    for (place, trace) in traces.flatten().enumerate() {
        if place % 7 == 3 {
            trace.frames.truncate(1);
            let calls = if place == 31 { CALLS } else { 2 };
            trace.frames.extend((0..calls).map(call));
        }
    }
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    for bundle in &bundles {
        let mut batch = writer.batch();
        derive(bundle, &nonce_rules(), &mut batch).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }
    let reader = Reader::new(store.view());
    let end = reader.transactions_of(0, 59).unwrap().end;
    let mut rng = Rng(9);
    for round in 0..200 {
        let (a, b) = (rng.below(end + 1), rng.below(end + 1));
        let range = if round < 4 { 0..end } else { a.min(b)..a.max(b) };
        let who = if round % 2 == 0 {
            busy
        } else {
            account(rng.below(8))
        };
        let limit = [usize::MAX, 1 + rng.below(9) as usize][rng.below(2) as usize];
        let mut expected = involved(&bundles, &who, range.clone());
        let descending = rng.below(2) == 0;
        if descending {
            expected.reverse();
        }
        expected.truncate(limit);
        let _ = visits::take();
        let found = reader
            .involving(&[who], range.clone(), (descending, limit), None)
            .unwrap();
        let rows = visits::take().rows;
        assert_eq!(found, expected, "{who} {range:?} {descending} {limit}");
        if who == busy {
            assert!(rows < 500, "{rows} rows for {} transactions", found.len());
        }
    }
    // Another account's lists are not begun when the time is over.
    let late = Some(std::time::Instant::now());
    let found = reader.involving(&[busy], 0..end, (false, usize::MAX), late);
    assert!(matches!(found, Err(QueryError::TimedOut)), "{found:?}");
}
