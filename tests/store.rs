//! The store and the queries over it, against naive models over a seeded chain.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/heard.rs"]
mod heard;
#[path = "support/image.rs"]
mod image;
#[path = "support/plain.rs"]
mod plain;
#[path = "support/scratch.rs"]
mod scratch;

#[path = "store/ahead.rs"]
mod ahead;
#[path = "store/beside.rs"]
mod beside;
#[path = "store/damaged.rs"]
mod damaged;
#[path = "store/kept_rows.rs"]
mod kept_rows;
#[path = "store/many_lists.rs"]
mod many_lists;
#[path = "store/pairs.rs"]
mod pairs;
#[path = "store/small_memory.rs"]
mod small_memory;
#[path = "store/sums.rs"]
mod sums;
#[path = "store/walks.rs"]
mod walks;

use std::sync::Arc;

use plain::{ChainConfig, Rng, account, topic};
use quarry::codec::keys::Term;
use quarry::model::{Address, B256, Bundle, LogEntry};
use quarry::query::{Closest, LogQuery, Operator, Paged as _, Reader, RowCursor, TransactionStatus};
use quarry::store::{BlockEarnings, Direction, OpenOptions, PostingCursor, Store, StoreError, Writer};
use quarry::sync::derive::{NonceRules, derive};

fn options(directory: &std::path::Path) -> OpenOptions {
    OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        ..OpenOptions::new(directory)
    }
}

fn open_with(options: &OpenOptions) -> Arc<Store> {
    Store::open_or_create(options, 7, B256::repeat_byte(1), Some(0)).unwrap()
}

fn open(directory: &std::path::Path) -> Arc<Store> {
    open_with(&options(directory))
}

fn rules() -> NonceRules {
    NonceRules {
        chain_id: 7,
        from_genesis: true,
        native: plain::native_rules(),
        ..NonceRules::default()
    }
}

/// Commits bundles as final, `blocks` to a batch.
fn backfill(writer: &mut Writer, bundles: &[Bundle], blocks: usize) {
    for bundles in bundles.chunks(blocks) {
        let mut batch = writer.batch();
        for bundle in bundles {
            derive(bundle, &rules(), &mut batch).unwrap();
        }
        writer.commit_final(batch).unwrap();
    }
}

/// Commits bundles one by one as blocks that may be unwound.
fn follow(writer: &mut Writer, bundles: &[Bundle]) {
    for bundle in bundles {
        let mut batch = writer.batch();
        derive(bundle, &rules(), &mut batch).unwrap();
        writer.commit_unfinal(batch).unwrap();
    }
}

/// Blocks with so many lists that another thread helps to render them, at the tip too.
fn large_blocks() -> ChainConfig {
    ChainConfig {
        logs_per_block: 900,
        topics: 3_000,
        ..ChainConfig::default()
    }
}

fn digests(store: &Store) -> Vec<(&'static str, u64, B256)> {
    let mut all: Vec<_> = store
        .view()
        .contents()
        .unwrap()
        .into_iter()
        .map(|c| (c.name, c.rows, c.digest))
        .collect();
    all.retain(|(name, ..)| *name != "tail" && *name != "undo");
    all
}

#[test]
fn bytes_do_not_depend_on_how_blocks_came() {
    let config = ChainConfig {
        logs_per_block: 60,
        emitters: 5,
        ..ChainConfig::default()
    };
    let bundles = plain::chain(11, 120, &config);
    let directories: Vec<_> = (0..4).map(|_| scratch::directory()).collect();
    let mut expected = None;
    for (way, directory) in directories.iter().enumerate() {
        let store = open(directory.path());
        let mut writer = store.writer().unwrap();
        match way {
            0 => backfill(&mut writer, &bundles, 1000),
            1 => backfill(&mut writer, &bundles, 7),
            2 => follow(&mut writer, &bundles),
            _ => {
                backfill(&mut writer, &bundles[..50], 13);
                follow(&mut writer, &bundles[50..90]);
                writer.finalize(70).unwrap();
                drop(writer);
                drop(store);
                // A new process goes on.
                let store = open(directory.path());
                assert_eq!(store.view().finalized(), Some(70));
                let mut writer = store.writer().unwrap();
                assert_eq!(writer.checkpoint().next_block, 90);
                backfill(&mut writer, &bundles[90..], 4);
                drop(writer);
                let found = digests(&store);
                assert_eq!(Some(&found), expected.as_ref());
                continue;
            }
        }
        let found = digests(&store);
        assert_eq!(Reader::new(store.view()).native_fault(), None);
        assert!(
            found
                .iter()
                .any(|(name, rows, _)| *name == "postings" && *rows > 60)
        );
        assert_eq!(&found, expected.get_or_insert(found.clone()), "way {way}");
        drop(writer);
    }
}

#[test]
fn large_blocks_leave_the_same_bytes_at_the_tip_and_can_be_unwound() {
    let bundles = plain::chain(12, 8, &large_blocks());
    let directories = [scratch::directory(), scratch::directory()];
    let stores = directories.each_ref().map(|directory| open(directory.path()));
    let [mut at_once, mut followed] = stores.each_ref().map(|store| store.writer().unwrap());
    backfill(&mut at_once, &bundles, 8);
    follow(&mut followed, &bundles[..5]);
    let at_5 = stores[1].view().contents().unwrap();
    follow(&mut followed, &bundles[5..]);
    let lists = at_5.iter().find(|table| table.name == "open_postings").unwrap();
    assert!(lists.rows > 3_000, "{} lists: blocks are small", lists.rows);
    assert_eq!(digests(&stores[1]), digests(&stores[0]));
    followed.unwind(5).unwrap();
    assert_eq!(stores[1].view().contents().unwrap(), at_5);
    follow(&mut followed, &bundles[5..]);
    followed.finalize(7).unwrap();
    assert_eq!(digests(&stores[1]), digests(&stores[0]));
}

#[test]
fn unwinding_leaves_the_bytes_of_never_having_seen_the_blocks() {
    let config = ChainConfig::default();
    let bundles = plain::chain(5, 60, &config);
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..20], 100);
    follow(&mut writer, &bundles[20..30]);
    let at_30 = store.view().contents().unwrap();
    for depth in [1usize, 2, 10, 30] {
        let mut fork = bundles[..30].to_vec();
        plain::extend(&mut fork, 5, 30 + depth as u64, depth as u64, &config);
        let before = store.view();
        follow(&mut writer, &fork[30..]);
        let on_fork = store.view();
        assert_ne!(on_fork.digest().unwrap(), before.digest().unwrap());
        writer.unwind(30).unwrap();
        assert_eq!(store.view().contents().unwrap(), at_30, "depth {depth}");
        // Readers of the fork's snapshot still see the fork, whole.
        let reader = Reader::new(on_fork);
        let last = fork.last().unwrap();
        assert_eq!(
            reader
                .block(last.block.number(), true)
                .unwrap()
                .unwrap()
                .block
                .hash,
            last.block.hash
        );
        assert_eq!(
            reader
                .bundle(last.block.number())
                .unwrap()
                .unwrap()
                .receipts
                .len(),
            last.receipts.len()
        );
    }
    follow(&mut writer, &bundles[30..]);
    let error = writer.unwind(19).unwrap_err();
    assert!(
        matches!(
            error,
            StoreError::Final {
                block: 19,
                finalized: 19
            }
        ),
        "{error}"
    );
    writer.unwind(20).unwrap();
    assert_eq!(writer.checkpoint().next_block, 20);
}

#[test]
fn a_store_of_another_chain_is_refused_with_a_way_out() {
    let directory = scratch::directory();
    let store = open(directory.path());
    let bundles = plain::chain(3, 2, &ChainConfig::default());
    backfill(&mut store.writer().unwrap(), &bundles, 2);
    drop(store);
    let options = OpenOptions::new(directory.path());
    let other = Store::open_or_create(&options, 8, B256::repeat_byte(1), None).unwrap_err();
    assert!(
        other.to_string().contains("chain id 7") && other.to_string().contains("--data-dir"),
        "{other}"
    );
    let other = Store::open_or_create(&options, 7, B256::repeat_byte(2), None).unwrap_err();
    assert!(other.to_string().contains("genesis"), "{other}");
    let other = Store::open_or_create(&options, 7, B256::repeat_byte(1), Some(5)).unwrap_err();
    assert!(other.to_string().contains("--start-block"), "{other}");
    let store = Store::open_or_create(&options, 7, B256::repeat_byte(1), None).unwrap();
    let busy = Store::open(&options).unwrap_err();
    assert!(matches!(busy, StoreError::Busy { .. }), "{busy}");
    drop(store);
    let nowhere = Store::open(&OpenOptions::new(directory.path().join("no"))).unwrap_err();
    assert!(matches!(nowhere, StoreError::Absent { .. }), "{nowhere}");
}

/// Whoever got it wrong before anything was stored says it again, and gets what a new directory would give.
#[test]
fn a_store_that_nothing_was_written_to_is_made_anew() {
    let directory = scratch::directory();
    let begun = |chain: u64, hash: u8, first: u64, rewards: Option<&str>| {
        let options = OpenOptions {
            static_rewards: rewards.map(|text| text.parse().unwrap()),
            ..options(directory.path())
        };
        let store = Store::open_or_create(&options, chain, B256::repeat_byte(hash), Some(first)).unwrap();
        let identity = store.identity();
        assert_eq!((identity.chain_id, identity.first_block), (chain, first));
        assert_eq!(identity.genesis_hash, [hash; 32]);
        assert_eq!(store.static_rewards(), options.static_rewards);
        assert_eq!(store.view().checkpoint().next_block, first);
        assert!(store.is_blank().unwrap());
        store
    };
    drop(begun(8, 2, 1, None));
    drop(begun(8, 2, 5, Some("3")));
    let store = begun(7, 1, 0, Some("2"));
    let bundles = plain::chain(3, 2, &ChainConfig::default());
    backfill(&mut store.writer().unwrap(), &bundles, 2);
    assert!(!store.is_blank().unwrap());
    drop(store);
    // A store with blocks stays what it is.
    let store = Store::open_or_create(&options(directory.path()), 7, B256::repeat_byte(1), None).unwrap();
    assert_eq!(store.static_rewards(), Some("2".parse().unwrap()));
    assert_eq!(store.view().checkpoint().next_block, 2);
}

/// What a log entry says, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    block: u64,
    block_hash: B256,
    timestamp: u64,
    transaction: B256,
    transaction_index: u32,
    log_index: u32,
    address: Address,
    topics: Vec<B256>,
    data: Vec<u8>,
}

impl Row {
    fn of(log: &LogEntry<'_>) -> Self {
        Self {
            block: log.block_number,
            block_hash: log.block_hash,
            timestamp: log.timestamp,
            transaction: log.transaction_hash,
            transaction_index: log.transaction_index,
            log_index: log.log_index,
            address: log.address,
            topics: log.topics.to_vec(),
            data: log.data.to_vec(),
        }
    }
}

fn rows(bundles: &[Bundle]) -> Vec<Row> {
    let mut all = Vec::new();
    for bundle in bundles {
        let mut log_index = 0;
        for (index, (transaction, receipt)) in
            bundle.block.transactions.iter().zip(&bundle.receipts).enumerate()
        {
            for log in &receipt.logs {
                all.push(Row {
                    block: bundle.block.number(),
                    block_hash: bundle.block.hash,
                    timestamp: bundle.block.header.timestamp,
                    transaction: transaction.hash,
                    transaction_index: index as u32,
                    log_index,
                    address: log.address,
                    topics: log.topics.to_vec(),
                    data: log.data.to_vec(),
                });
                log_index += 1;
            }
        }
    }
    all
}

/// The rule of answers.md section 5, as plainly as it can be put.
fn matches(row: &Row, query: &LogQuery) -> bool {
    let topic = |position: usize| {
        row.topics
            .get(position)
            .is_some_and(|topic| query.topics[position].contains(topic))
    };
    let named = |position: usize| {
        query
            .operators
            .iter()
            .any(|&(a, b, _)| a == position || b == position)
    };
    let mut addresses = query.address.iter().chain(&query.others).peekable();
    (addresses.peek().is_none() || addresses.any(|address| *address == row.address))
        && (query.first_block..=query.last_block).contains(&row.block)
        && query.operators.iter().all(|&(a, b, operator)| match operator {
            Operator::And => topic(a) && topic(b),
            Operator::Or => topic(a) || topic(b),
        })
        && (0..4).all(|position| query.topics[position].is_empty() || named(position) || topic(position))
}

fn ask(reader: &Reader, query: &LogQuery, frame: usize) -> (Vec<Row>, Option<u64>, Option<RowCursor>) {
    let mut page = reader.logs(query).unwrap();
    let mut found = Vec::new();
    loop {
        let mut room = frame;
        let more = page
            .visit(&mut |log| {
                found.push(Row::of(log));
                room -= 1;
                room > 0
            })
            .unwrap();
        if !more {
            break;
        }
    }
    let page = page.page();
    assert_eq!(found.len(), page.len());
    (found, page.total(), page.next_cursor())
}

#[test]
fn logs_equal_brute_force() {
    let config = ChainConfig {
        logs_per_block: 80,
        emitters: 6,
        topics: 8,
        ..ChainConfig::default()
    };
    let bundles = plain::chain(3, 150, &config);
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..100], 30);
    follow(&mut writer, &bundles[100..]);
    let reader = Reader::new(store.view());
    let all = rows(&bundles);
    assert!(all.len() > 4 * 1024, "several chunks a list: {}", all.len());
    let mut rng = Rng(99);
    let pairs = [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3)];
    let mut hits = 0usize;
    for case in 0..3000u64 {
        let mut query = LogQuery {
            limit: 10_000,
            last_block: 149,
            ..LogQuery::default()
        };
        if rng.below(2) == 0 {
            query.address = Some(account(100 + rng.below(7)));
        }
        if rng.below(3) == 0 {
            query.others = (0..1 + rng.below(3))
                .map(|_| account(100 + rng.below(7)))
                .collect();
        }
        for position in 0..4 {
            if rng.below(3) == 0 {
                query.topics[position] = (0..1 + rng.below(5) / 4).map(|_| topic(rng.below(9))).collect();
            }
        }
        // All 64 settings of six operators, where the topics are given.
        let setting = case % 729;
        let mut digits = setting;
        for &(a, b) in &pairs {
            let digit = digits % 3;
            digits /= 3;
            if digit > 0 && !query.topics[a].is_empty() && !query.topics[b].is_empty() {
                query
                    .operators
                    .push((a, b, if digit == 1 { Operator::And } else { Operator::Or }));
            }
        }
        if rng.below(2) == 0 {
            query.first_block = rng.below(150);
            query.last_block = query.first_block + rng.below(160 - query.first_block);
        }
        query.descending = rng.below(2) == 0;
        let mut expected: Vec<Row> = all.iter().filter(|row| matches(row, &query)).cloned().collect();
        if query.descending {
            expected.reverse();
        }
        hits += expected.len();
        let (found, total, next) = ask(&reader, &query, 1 + rng.below(500) as usize);
        assert_eq!(found, expected, "case {case}: {query:?}");
        assert!(
            total.is_none_or(|total| total == expected.len() as u64),
            "case {case}: {query:?}"
        );
        assert_eq!(next, None);
        // Pages, by number and by cursor.
        query.limit = 1 + rng.below(200) as usize;
        let page = rng.below(6);
        query.skip = page * query.limit as u64;
        let start = (query.skip as usize).min(expected.len());
        let end = (start + query.limit).min(expected.len());
        let (found, _, next) = ask(&reader, &query, 64);
        assert_eq!(found, expected[start..end], "case {case} page {page}: {query:?}");
        assert_eq!(next.is_some(), end < expected.len() && start < end);
        if let Some(cursor) = next {
            query.skip = 0;
            query.cursor = Some(cursor.to_string().parse().unwrap());
            let (found, ..) = ask(&reader, &query, 64);
            assert_eq!(
                found,
                expected[end..(end + query.limit).min(expected.len())],
                "case {case} cursor"
            );
        }
    }
    assert!(hits > 100_000, "the cases hit: {hits}");
}

#[test]
fn a_cursor_into_a_replaced_block_says_so() {
    let config = ChainConfig::default();
    let bundles = plain::chain(8, 40, &config);
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    follow(&mut writer, &bundles);
    let query = LogQuery {
        address: Some(account(100)),
        limit: 20,
        last_block: 39,
        descending: true,
        ..LogQuery::default()
    };
    let (_, _, next) = ask(&Reader::new(store.view()), &query, 64);
    let mut fork = bundles[..20].to_vec();
    plain::extend(&mut fork, 8, 45, 1, &config);
    writer.unwind(20).unwrap();
    follow(&mut writer, &fork[20..]);
    let query = LogQuery {
        cursor: next,
        ..query
    };
    let error = Reader::new(store.view()).logs(&query).unwrap_err();
    assert!(
        matches!(error, quarry::query::QueryError::CursorOrphaned),
        "{error}"
    );
}

#[test]
fn blocks_and_transactions_come_back_as_they_were() {
    let config = ChainConfig::default();
    let bundles = plain::chain(21, 80, &config);
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..40], 100);
    follow(&mut writer, &bundles[40..]);
    let reader = Reader::new(store.view());
    for bundle in &bundles {
        let number = bundle.block.number();
        let mut found = reader.bundle(number).unwrap().unwrap();
        for receipt in &mut found.receipts {
            // The chain of this test states no blooms; the store recomputes them.
            receipt.logs_bloom = Default::default();
        }
        assert_eq!(&found, bundle);
        let counts = reader.block_counts(number).unwrap().unwrap();
        let internal = bundle
            .traces
            .iter()
            .flatten()
            .flat_map(|t| &t.frames)
            .filter(|f| f.is_internal_transaction());
        assert_eq!(counts.transactions, bundle.block.transactions.len() as u64);
        assert_eq!(counts.internal_transactions, Some(internal.count() as u64));
        for (index, (transaction, receipt)) in
            bundle.block.transactions.iter().zip(&bundle.receipts).enumerate()
        {
            let entry = reader.receipt(&transaction.hash).unwrap().unwrap();
            assert_eq!(&entry.transaction, transaction);
            assert_eq!(entry.receipt.logs, receipt.logs);
            assert_eq!(entry.transaction_index as usize, index);
            assert_eq!(entry.block.hash, bundle.block.hash);
            let by_place = reader.transaction_at(number, index as u64).unwrap().unwrap();
            assert_eq!(by_place.transaction.hash, transaction.hash);
            let status = reader.transaction_status(&transaction.hash).unwrap();
            assert_eq!(status, TransactionStatus::from(receipt.status.unwrap()));
        }
        assert!(
            reader
                .transaction_at(number, bundle.block.transactions.len() as u64)
                .unwrap()
                .is_none()
        );
    }
    assert_eq!(
        reader.transaction_status(&B256::repeat_byte(9)).unwrap(),
        TransactionStatus::Unknown
    );
    assert!(reader.block(80, true).unwrap().is_none());
    let times: Vec<u64> = bundles
        .iter()
        .map(|bundle| bundle.block.header.timestamp)
        .collect();
    for unix in (999_990..1_001_100).step_by(3) {
        let before = times.iter().rposition(|&time| time <= unix).map(|n| n as u64);
        let after = times.iter().position(|&time| time >= unix).map(|n| n as u64);
        assert_eq!(
            reader
                .block_by_time(unix, Closest::Before)
                .unwrap()
                .map(|b| b.number),
            before
        );
        assert_eq!(
            reader
                .block_by_time(unix, Closest::After)
                .unwrap()
                .map(|b| b.number),
            after
        );
    }
}

/// Fills one list through several commits and hands out its postings.
fn fill_list(writer: &mut Writer, term: Term, rng: &mut Rng, gap: u64, count: usize) -> Vec<u64> {
    let mut postings = Vec::with_capacity(count);
    let mut next = rng.below(gap.max(1) * 10);
    while postings.len() < count {
        let mut batch = writer.batch();
        let number = batch.checkpoint().next_block;
        batch
            .begin_block(number, rng.hash(), number, &BlockEarnings::default())
            .unwrap();
        for _ in 0..1 + rng.below(5000) {
            // Dense stretches and holes in one list.
            next += if rng.below(1000) == 0 {
                1 + rng.below(gap * 5000)
            } else {
                1 + rng.below(gap)
            };
            postings.push(next);
            batch.posting(term, next);
        }
        writer.commit_final(batch).unwrap();
    }
    postings
}

#[test]
fn cursors_equal_a_plain_list() {
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    let mut rng = Rng(4);
    // The last one has bursts with long silences between: a guess of where a rank lies misses by far.
    let shapes = [
        (1u64, 30_000usize),
        (2, 9_000),
        (40, 20_000),
        (100_000, 3_000),
        (5, 700),
        (1 << 30, 5_000),
        (1, 1),
    ];
    let lists: Vec<(Term, Vec<u64>)> = shapes
        .iter()
        .enumerate()
        .map(|(place, &(gap, count))| {
            let term = Term::topic(1 + place % 3, &topic(place as u64)).unwrap();
            (term, fill_list(&mut writer, term, &mut rng, gap, count))
        })
        .collect();
    let view = store.view();
    for (term, list) in &lists {
        let first = list[0];
        let last = *list.last().unwrap();
        let mut forward = PostingCursor::open(&view, *term, Direction::Forward).unwrap();
        let mut backward = PostingCursor::open(&view, *term, Direction::Backward).unwrap();
        assert_eq!(forward.count(), list.len() as u64);
        assert_eq!(forward.current(), None);
        for case in 0..4000u64 {
            let here = forward.current().or(backward.current()).unwrap_or(first);
            let near = rng.below(2 * (last - first) / (list.len() as u64 / 1024 + 1) + 2);
            let target = match case % 6 {
                // In the chunk beside the last one, and a little farther.
                4 => here.saturating_add(near),
                5 => here.saturating_sub(near),
                0 => list[rng.below(list.len() as u64) as usize],
                1 => list[rng.below(list.len() as u64) as usize] + 1,
                2 => rng.below(last + 10),
                _ => [0, first, first.saturating_sub(1), last, last + 1, u64::MAX][rng.below(6) as usize],
            };
            let at = list.partition_point(|&posting| posting < target);
            assert_eq!(
                forward.seek(target).unwrap(),
                list.get(at).copied(),
                "{term:?} seek {target}"
            );
            assert_eq!(forward.rank(), at as u64);
            // A few steps on, over chunk ends.
            for step in 1..=rng.below(4) as usize {
                assert_eq!(
                    forward.step().unwrap(),
                    list.get(at + step).copied(),
                    "{term:?} step from {target}"
                );
            }
            let before = list.partition_point(|&posting| posting <= target);
            assert_eq!(
                backward.seek(target).unwrap(),
                before.checked_sub(1).map(|at| list[at]),
                "{term:?} back {target}"
            );
            for step in 2..=1 + rng.below(4) as usize {
                assert_eq!(
                    backward.step().unwrap(),
                    before.checked_sub(step).map(|at| list[at])
                );
            }
            let rank = rng.below(list.len() as u64 + 2);
            let mut cursor = PostingCursor::open(&view, *term, Direction::Forward).unwrap();
            let expected = list.get(rank as usize).copied();
            let read = cursor.chunks_read();
            assert_eq!(forward.select(rank).unwrap(), expected, "{term:?} select {rank}");
            assert_eq!(cursor.select(rank).unwrap(), expected);
            assert!(
                cursor.chunks_read() - read <= 24,
                "select reads few chunks: {}",
                cursor.chunks_read() - read
            );
            assert_eq!(cursor.rank_of(target).unwrap(), at as u64);
        }
        // From end to end, both ways.
        let mut seen = Vec::new();
        let mut at = forward.seek(0).unwrap();
        while let Some(posting) = at {
            seen.push(posting);
            at = forward.step().unwrap();
        }
        assert_eq!(&seen, list);
        let mut at = backward.seek(u64::MAX).unwrap();
        while let Some(posting) = at {
            assert_eq!(seen.pop(), Some(posting));
            at = backward.step().unwrap();
        }
        assert!(seen.is_empty());
    }
    let none = Term::topic(3, &B256::repeat_byte(0x77)).unwrap();
    let mut cursor = PostingCursor::open(&view, none, Direction::Forward).unwrap();
    assert_eq!(
        (cursor.count(), cursor.seek(0).unwrap(), cursor.select(0).unwrap()),
        (0, None, None)
    );
}

#[test]
fn a_rank_is_found_in_lists_with_long_silences() {
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    let term = Term::topic(1, &topic(1)).unwrap();
    // A guess by proportion, or by halves, falls into the silence and finds the next burst.
    let list: Vec<u64> = [0u64, 1_000_000, 2_000_000, 1 << 40]
        .iter()
        .flat_map(|&start| start..start + 1500)
        .collect();
    let mut batch = writer.batch();
    batch
        .begin_block(0, B256::repeat_byte(2), 0, &BlockEarnings::default())
        .unwrap();
    for &posting in &list {
        batch.posting(term, posting);
    }
    writer.commit_final(batch).unwrap();
    let view = store.view();
    let mut cursor = PostingCursor::open(&view, term, Direction::Forward).unwrap();
    for rank in (0..list.len()).rev() {
        let before = cursor.chunks_read();
        assert_eq!(
            cursor.select(rank as u64).unwrap(),
            Some(list[rank]),
            "rank {rank}"
        );
        assert!(
            cursor.chunks_read() - before < 60,
            "rank {rank}: {} chunks",
            cursor.chunks_read() - before
        );
    }
    assert_eq!(cursor.select(list.len() as u64).unwrap(), None);
}
