//! Expressions over long lists: what a walk over them found is kept, and pages stay what they are.

use quarry::model::Topics;
use quarry::query::{LogQuery, Operator, QueryError, Reader};
use quarry::store::OpenOptions;

use crate::plain::{self, ChainConfig, Rng, account, topic};
use crate::{Row, ask, backfill, follow, matches, open_with, options, rows, scratch};

/// The first block that is not on both forks.
const FORKED: u64 = 150;

/// Chains of long lists: many logs with few emitters and topics.
fn dense() -> ChainConfig {
    ChainConfig {
        logs_per_block: 330,
        emitters: 4,
        topics: 4,
        ..ChainConfig::default()
    }
}

/// Expressions whose lists are long: many hits, few, and none.
fn expressions() -> Vec<LogQuery> {
    let of = |topics: [&[u64]; 4], operators: &[(usize, usize, Operator)]| LogQuery {
        topics: topics.map(|values| values.iter().map(|&value| topic(value)).collect()),
        operators: operators.to_vec(),
        ..LogQuery::default()
    };
    let (and, or) = (Operator::And, Operator::Or);
    vec![
        of([&[0], &[1], &[], &[]], &[(0, 1, and)]),
        of([&[], &[0], &[0], &[]], &[(1, 2, and)]),
        of([&[], &[0], &[1], &[]], &[(1, 2, or)]),
        of([&[0, 1], &[], &[0, 1, 2], &[]], &[]),
        LogQuery {
            address: Some(account(100)),
            ..of([&[], &[0], &[], &[]], &[])
        },
        LogQuery {
            others: vec![account(100), account(101)],
            ..of([&[1], &[0], &[], &[]], &[])
        },
    ]
}

/// One page of an expression, however it is asked for, as a look at all logs has it.
pub(crate) fn check(reader: &Reader, all: &[Row], expression: &LogQuery, rng: &mut Rng) {
    let blocks = reader.head().number + 1;
    let mut query = LogQuery {
        last_block: blocks - 1,
        descending: rng.below(2) == 0,
        limit: 1 + rng.below(300) as usize,
        skip: [0, rng.below(300), rng.below(20_000)][rng.below(3) as usize],
        ..expression.clone()
    };
    if rng.below(3) == 0 {
        query.first_block = rng.below(blocks);
        query.last_block = query.first_block + rng.below(blocks - query.first_block);
    }
    let mut expected: Vec<&Row> = all.iter().filter(|row| matches(row, &query)).collect();
    if query.descending {
        expected.reverse();
    }
    let start = (query.skip as usize).min(expected.len());
    let end = (start + query.limit).min(expected.len());
    let (found, total, next) = ask(reader, &query, 64);
    assert!(found.iter().eq(expected[start..end].iter().copied()), "{query:?}");
    assert!(
        total.is_none_or(|total| total == expected.len() as u64),
        "{query:?}: {total:?}"
    );
    assert_eq!(next.is_some(), end < expected.len() && start < end, "{query:?}");
    if let Some(cursor) = next {
        (query.skip, query.cursor) = (rng.below(2) * rng.below(500), Some(cursor));
        let start = (end + query.skip as usize).min(expected.len());
        let end = (start + query.limit).min(expected.len());
        let (found, ..) = ask(reader, &query, 64);
        assert!(found.iter().eq(expected[start..end].iter().copied()), "{query:?}");
    }
}

/// A cursor of a row that lies outside of the blocks that are asked for finds nothing, whatever is known.
fn check_cursors_outside(reader: &Reader, expression: &LogQuery) {
    let blocks = reader.head().number + 1;
    for descending in [false, true] {
        let mut query = LogQuery {
            last_block: blocks - 1,
            skip: 3,
            limit: 2,
            descending,
            ..expression.clone()
        };
        let (found, _, next) = ask(reader, &query, 64);
        let (Some(cursor), Some(row)) = (next, found.last()) else {
            continue;
        };
        (query.skip, query.cursor) = (0, Some(cursor));
        match descending {
            false => query.last_block = row.block.saturating_sub(1),
            true => query.first_block = row.block + 1,
        }
        assert!(ask(reader, &query, 64).0.is_empty(), "{query:?}");
    }
}

#[test]
fn a_walk_that_runs_out_of_time_goes_on_where_it_was() {
    let config = dense();
    let bundles = plain::chain(32, FORKED, &config);
    let all = rows(&bundles);
    let directory = scratch::directory();
    let mut writer_options = options(directory.path());
    writer_options.cache_bytes = 64 << 20;
    let store = open_with(&writer_options);
    backfill(&mut store.writer().unwrap(), &bundles, 30);
    let reader = Reader::new(store.view());
    for (place, expression) in expressions().into_iter().enumerate() {
        for descending in [false, true] {
            let query = LogQuery {
                last_block: FORKED - 1,
                limit: 10_000,
                skip: 200,
                descending,
                // Another expression for each order, so that one does not know what the other found.
                topics: expression.topics.clone().map(|mut values| {
                    if descending && !values.is_empty() {
                        values.push(topic(60));
                    }
                    values
                }),
                ..expression.clone()
            };
            let mut times = 0;
            let page = loop {
                times += 1;
                // What is known is passed by counts, so that there is time for a step beyond.
                let late = LogQuery {
                    deadline: Some(std::time::Instant::now()),
                    skip: 1 << 40,
                    ..query.clone()
                };
                match reader.logs(&late) {
                    Ok(_) => break ask(&reader, &query, 64),
                    Err(QueryError::TimedOut) => assert!(times < 2_000, "{place}: it does not go on"),
                    Err(error) => panic!("{error}"),
                }
            };
            assert!(times > 1, "{place}: it was no long walk");
            let mut expected: Vec<&Row> = all.iter().filter(|row| matches(row, &query)).collect();
            if descending {
                expected.reverse();
            }
            let start = expected.len().min(200);
            let end = expected.len().min(10_200);
            assert!(
                page.0.iter().eq(expected[start..end].iter().copied()),
                "{place} {descending}"
            );
            assert!(page.1.is_none_or(|total| total == expected.len() as u64));
        }
    }
}

#[test]
fn pages_of_expressions_are_the_same_whoever_walked_before() {
    let config = dense();
    let mut stays = plain::chain(31, FORKED, &config);
    let mut goes = stays.clone();
    plain::extend(&mut stays, 31, FORKED + 60, 1, &config);
    plain::extend(&mut goes, 31, FORKED + 50, 2, &config);
    let (all, all_that_went) = (rows(&stays), rows(&goes));
    assert!(all.len() > 40_000, "{}", all.len());
    for cache_bytes in [64 << 20, 0] {
        let directory = scratch::directory();
        let store = open_with(&OpenOptions {
            cache_bytes,
            ..options(directory.path())
        });
        let mut writer = store.writer().unwrap();
        backfill(&mut writer, &stays[..FORKED as usize], 30);
        follow(&mut writer, &goes[FORKED as usize..]);
        let before = Reader::new(store.view());
        let kept = || store.figures().kept_rows;
        let at_first = kept();
        // A far page of one row each.
        for expression in expressions() {
            let far = LogQuery {
                last_block: FORKED,
                skip: 1 << 40,
                limit: 1,
                ..expression
            };
            assert!(ask(&before, &far, 1).0.is_empty());
        }
        assert_eq!(
            kept() > at_first,
            cache_bytes > 0,
            "walks are kept where there is room"
        );
        let mut rng = Rng(cache_bytes as u64);
        let mut many = |reader: &Reader, all: &[Row], times: usize| {
            for _ in 0..times {
                for expression in expressions() {
                    check(reader, all, &expression, &mut rng);
                }
            }
        };
        many(&before, &all_that_went, 25);
        for expression in expressions() {
            check_cursors_outside(&before, &expression);
        }
        // The other fork comes in its place and becomes final: what is walked over then is not of the view from before.
        writer.unwind(FORKED).unwrap();
        follow(&mut writer, &stays[FORKED as usize..]);
        writer.finalize(FORKED + 55).unwrap();
        let after = Reader::new(store.view());
        for _ in 0..10 {
            many(&after, &all, 4);
            many(&before, &all_that_went, 4);
        }
    }
}

/// What takes time is how many lists are moved, and not how many places are looked at.
#[test]
fn time_is_counted_by_lists_that_are_moved() {
    let config = ChainConfig {
        logs_per_block: 300,
        topics: 2_000,
        ..ChainConfig::default()
    };
    let mut bundles = plain::chain(33, 20, &config);
    let logs = bundles.iter_mut().flat_map(|bundle| &mut bundle.receipts);
    let logs = logs.flat_map(|receipt| &mut receipt.logs);
    let long = logs.filter(|log| log.topics.len() > 2).step_by(2);
    for log in long {
        let mut topics = log.topics.to_vec();
        (topics[0], topics[1]) = (topic(5_000), topic(5_001));
        log.topics = Topics::new(&topics).unwrap();
    }
    let all = rows(&bundles);
    // A look at the clock for so many places came too late.
    assert!((500..4_096).contains(&all.len()), "{}", all.len());
    let directory = scratch::directory();
    let store = open_with(&options(directory.path()));
    backfill(&mut store.writer().unwrap(), &bundles, 20);
    let reader = Reader::new(store.view());
    let some = || (0..2_000).map(topic).collect::<Vec<_>>();
    let or = Operator::Or;
    let unions = LogQuery {
        topics: [vec![], some(), some(), some()],
        operators: vec![(1, 2, or), (2, 3, or), (1, 3, or)],
        ..LogQuery::default()
    };
    // Two lists that are met chunk by chunk, and a thousand of which one must have each place that both have.
    let met = LogQuery {
        topics: [vec![topic(5_000)], vec![topic(5_001)], some(), vec![]],
        ..LogQuery::default()
    };
    for expression in [unions, met] {
        for descending in [false, true] {
            let query = LogQuery {
                last_block: 19,
                limit: 10_000,
                descending,
                ..expression.clone()
            };
            let late = LogQuery {
                deadline: Some(std::time::Instant::now()),
                ..query.clone()
            };
            let found = reader.logs(&late).map(|_| ());
            assert!(matches!(found, Err(QueryError::TimedOut)), "{found:?}");
            let expected = all.iter().filter(|row| matches(row, &query)).count();
            assert!(
                (100..1_000).contains(&expected) || query.operators.len() == 3,
                "{expected}"
            );
            assert_eq!(ask(&reader, &query, 64).0.len(), expected);
        }
    }
}
