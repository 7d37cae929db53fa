//! Questions that call for many lists: the time is looked at while they are opened and ranked, not only while they are walked over.

use std::sync::Arc;
use std::time::Instant;

use quarry::metrics::visits;
use quarry::model::B256;
use quarry::query::{LogQuery, Operator, QueryError, Reader};
use quarry::store::Store;

use crate::plain::{self, ChainConfig, Rng, topic};
use crate::walks::check;
use crate::{Row, backfill, matches, open, rows, scratch};

const BLOCKS: u64 = 20;
/// As many as a topic may have.
const VALUES: u64 = 1_000;

fn values(count: u64) -> Vec<B256> {
    (0..count).map(topic).collect()
}

/// A store whose logs have many topics of a few logs each.
fn filled() -> ((tempfile::TempDir, Arc<Store>), Reader, Vec<Row>) {
    let config = ChainConfig {
        logs_per_block: 300,
        topics: VALUES,
        ..ChainConfig::default()
    };
    let bundles = plain::chain(71, BLOCKS, &config);
    let directory = scratch::directory();
    let store = open(directory.path());
    backfill(&mut store.writer().unwrap(), &bundles, BLOCKS as usize);
    let reader = Reader::new(store.view());
    ((directory, store), reader, rows(&bundles))
}

/// Whether there was time, when there was none from the beginning on; and what was read.
fn late(reader: &Reader, query: &LogQuery) -> (bool, visits::Visits) {
    let query = LogQuery {
        deadline: Some(Instant::now()),
        ..query.clone()
    };
    let _ = visits::take();
    let found = reader.logs(&query).map(drop);
    assert!(matches!(found, Ok(()) | Err(QueryError::TimedOut)), "{found:?}");
    (found.is_ok(), visits::take())
}

#[test]
fn time_is_looked_at_while_many_lists_are_opened_and_ranked() {
    let (_store, reader, all) = filled();
    let of = |count: u64, skip: u64, descending: bool| LogQuery {
        topics: [vec![], values(count), vec![], vec![]],
        first_block: 3,
        last_block: BLOCKS - 2,
        limit: 10,
        skip,
        descending,
        ..LogQuery::default()
    };
    let mut rng = Rng(7);
    for descending in [false, true] {
        // Opened and no more: a look comes after 256 lists.
        let (in_time, read) = late(&reader, &of(VALUES, 0, descending));
        assert!(!in_time && read.gets < 300, "{read:?}");
        // Opened in time, and then ranked: what is far is searched for.
        let (in_time, read) = late(&reader, &of(100, 0, descending));
        assert!(!in_time && read.gets < 300, "{read:?}");
        // An ordinary question is not looked at.
        let few = of(4, 20, descending);
        let matching = all.iter().filter(|row| matches(row, &few)).count();
        assert!(matching > 30, "{matching}");
        assert!(late(&reader, &few).0);
        for count in [4, 100, VALUES] {
            for _ in 0..20 {
                check(&reader, &all, &of(count, 0, descending), &mut rng);
            }
        }
    }
}

#[test]
fn time_is_looked_at_while_many_lists_of_an_expression_are_opened() {
    let (_store, reader, _) = filled();
    let or = Operator::Or;
    for operators in [vec![], vec![(0, 1, or), (1, 2, or), (2, 3, or), (0, 3, or)]] {
        let query = LogQuery {
            topics: [(); 4].map(|()| values(VALUES / 2)),
            operators,
            last_block: BLOCKS - 1,
            limit: 10,
            ..LogQuery::default()
        };
        let (in_time, read) = late(&reader, &query);
        assert!(!in_time && read.gets < 300, "{read:?}");
    }
}
