//! Lists of pairs of dense contracts and topics: what is in them, however blocks came, and pages by them.

use std::collections::BTreeMap;

use quarry::codec::keys::Term;
use quarry::query::{LogQuery, Operator, Reader};
use quarry::store::{DENSE, Direction, OpenOptions, PostingCursor, Store, Table, View, migrate};
use rocksdb::{ColumnFamilyDescriptor, DB, IteratorMode, Options};

use crate::heard::complaints;
use crate::plain::{self, ChainConfig, Rng, account, topic};
use crate::walks::check;
use crate::{Row, backfill, digests, follow, open, rows, scratch};

/// The first kind of lists of pairs.
const FIRST_KIND: u8 = 21;
/// The first block that is not on both forks.
const FORKED: u64 = 140;

/// Lists of more than [`DENSE`] logs at all positions, and some that are shorter; the next ones become dense between forks.
fn dense() -> ChainConfig {
    ChainConfig {
        logs_per_block: 1_200,
        emitters: 4,
        topics: 4,
        ..ChainConfig::default()
    }
}

fn read(view: &View, term: Term) -> Vec<u64> {
    let mut list = PostingCursor::open(view, term, Direction::Forward).unwrap();
    let mut next = list.seek(0).unwrap();
    let mut found = Vec::new();
    while let Some(at) = next {
        found.push(at);
        next = list.step().unwrap();
    }
    found
}

/// All lists of pairs, as a look at all logs has them.
fn expected(view: &View, all: &[Row]) -> BTreeMap<Term, Vec<u64>> {
    let mut lists: BTreeMap<Term, Vec<u64>> = BTreeMap::new();
    let mut terms_of = Vec::new();
    for (log, row) in all.iter().enumerate() {
        let mut terms = vec![Term::log_address(view.emitter(&row.address).unwrap().unwrap())];
        for (position, value) in row.topics.iter().enumerate() {
            terms.push(match position {
                0 => Term::topic0(view.signature(value).unwrap().unwrap()),
                _ => Term::topic(position, value).unwrap(),
            });
        }
        for &term in &terms {
            lists.entry(term).or_default().push(log as u64);
        }
        terms_of.push(terms);
    }
    let since = |term: &Term| lists[term].get(DENSE as usize - 1).copied();
    let mut pairs: BTreeMap<Term, Vec<u64>> = BTreeMap::new();
    for (log, terms) in terms_of.iter().enumerate() {
        let log = log as u64;
        let dense: Vec<(Term, u64)> = terms
            .iter()
            .filter_map(|term| Some((*term, since(term)?)))
            .filter(|&(_, since)| since <= log)
            .collect();
        for (place, &(a, a_since)) in dense.iter().enumerate() {
            for &(b, b_since) in &dense[place + 1..] {
                let (a_position, b_position) = (a.topic_position().unwrap_or(0), b.topic_position().unwrap());
                let pair = match a.number() {
                    _ if b_position == 0 => continue,
                    Some(id) if a.topic_position().is_none() => {
                        Term::dense_topic_with_emitter((b_position, b_since), id)
                    }
                    Some(id) => Term::dense_topic_with_signature((b_position, b_since), id),
                    None => Term::dense_topics((a_position, a_since), (b_position, b_since)),
                };
                pairs.entry(pair.unwrap()).or_default().push(log);
            }
        }
    }
    pairs
}

/// The lists of pairs are those that a look at all logs has, and there are no others.
fn check_lists(store: &Store, all: &[Row]) -> usize {
    let view = store.view();
    let expected = expected(&view, all);
    let mut found = Vec::new();
    let mut pieces = view.scan_all(Table::OpenPostings).unwrap();
    pieces.seek(&[FIRST_KIND]).unwrap();
    while let Some((key, _)) = pieces.item().unwrap() {
        found.push(Term::decode_piece(key).unwrap());
        pieces.step().unwrap();
    }
    assert!(found.iter().eq(expected.keys()), "{found:?}");
    for (&term, list) in &expected {
        assert_eq!(&read(&view, term), list, "{term:?}");
    }
    expected.len()
}

/// The check of an audit that looks at lists.
const LISTS: &str = "lists against bodies, ranks";

#[test]
fn lists_of_pairs_hold_what_both_have_however_blocks_came() {
    let config = dense();
    let mut stays = plain::chain(61, FORKED, &config);
    let mut goes = stays.clone();
    plain::extend(&mut stays, 61, FORKED + 20, 1, &config);
    plain::extend(&mut goes, 61, FORKED + 15, 2, &config);
    let all = rows(&stays);
    let mut first = None;
    let mut seen = 0;
    for way in 0..4 {
        let directory = scratch::directory();
        let store = open(directory.path());
        let mut writer = store.writer().unwrap();
        match way {
            0 => backfill(&mut writer, &stays, 1_000),
            1 => backfill(&mut writer, &stays, 1),
            2 => backfill(&mut writer, &stays, 23),
            _ => {
                // Terms become dense in blocks that are taken off again, and in others then.
                let early = FORKED as usize - 60;
                backfill(&mut writer, &stays[..early], 31);
                follow(&mut writer, &goes[early..]);
                assert!(check_lists(&store, &rows(&goes)) > 0);
                assert_eq!(complaints(&store, LISTS), Vec::<String>::new());
                for block in [FORKED, FORKED - 30, early as u64] {
                    writer.unwind(block).unwrap();
                    check_lists(&store, &rows(&stays[..block as usize]));
                }
                follow(&mut writer, &stays[early..]);
                writer.finalize(FORKED).unwrap();
            }
        }
        drop(writer);
        let found = digests(&store);
        let first = first.get_or_insert_with(|| {
            seen = check_lists(&store, &all);
            assert_eq!(complaints(&store, LISTS), Vec::<String>::new());
            found.clone()
        });
        assert_eq!(&found, first, "way {way}");
    }
    assert!(seen > 20, "{seen} lists");
}

/// Takes a store back to layout 9: no lists of pairs. Answers how many rows went.
fn to_layout_9(directory: &std::path::Path) -> usize {
    let path = directory.join("rocksdb");
    let tables = DB::list_cf(&Options::default(), &path).unwrap().into_iter();
    let tables = tables.map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let db = DB::open_cf_descriptors(&Options::default(), &path, tables).unwrap();
    let mut gone = 0;
    for name in ["postings", "open_postings"] {
        let table = db.cf_handle(name).unwrap();
        for row in db.iterator_cf(table, IteratorMode::Start) {
            let (key, _) = row.unwrap();
            if FIRST_KIND <= key[0] {
                db.delete_cf(table, key).unwrap();
                gone += 1;
            }
        }
    }
    let meta = db.cf_handle("meta").unwrap();
    let mut identity = db.get_cf(meta, b"identity").unwrap().unwrap();
    identity[0] = 9;
    db.put_cf(meta, b"identity", identity).unwrap();
    gone
}

#[test]
fn a_migration_adds_lists_of_pairs_to_a_store_of_layout_9() {
    let bundles = plain::chain(62, 120, &dense());
    let [old, fresh] = [(); 2].map(|()| scratch::directory());
    for directory in [&old, &fresh] {
        backfill(&mut open(directory.path()).writer().unwrap(), &bundles[..100], 40);
    }
    let gone = to_layout_9(old.path());
    assert!(gone > 50, "{gone} rows");
    let (from, done) = migrate(&OpenOptions::new(old.path())).unwrap();
    assert_eq!((from, done.len()), (9, 1));
    let stores = [open(old.path()), open(fresh.path())];
    for end in [100, 120] {
        let [migrated, filled] = stores.each_ref().map(|store| {
            backfill(&mut store.writer().unwrap(), &bundles[100..end], 7);
            digests(store)
        });
        assert_eq!(migrated, filled);
    }
}

#[test]
fn pages_by_lists_of_pairs_are_those_of_a_look_at_all_logs() {
    let config = dense();
    let mut bundles = plain::chain(63, FORKED, &config);
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..FORKED as usize - 40], 30);
    follow(&mut writer, &bundles[FORKED as usize - 40..]);
    let of = |topics: [&[u64]; 4], operators: &[(usize, usize, Operator)]| LogQuery {
        topics: topics.map(|values| values.iter().map(|&value| topic(value)).collect()),
        operators: operators.to_vec(),
        ..LogQuery::default()
    };
    let at = |emitters: &[u64], query: LogQuery| LogQuery {
        address: emitters.first().map(|&emitter| account(100 + emitter)),
        others: emitters
            .iter()
            .skip(1)
            .map(|&emitter| account(100 + emitter))
            .collect(),
        ..query
    };
    let (and, or) = (Operator::And, Operator::Or);
    let expressions = vec![
        of([&[0], &[0], &[], &[]], &[(0, 1, and)]),
        of([&[1], &[0], &[], &[]], &[(0, 1, and)]),
        of([&[0], &[], &[0], &[]], &[]),
        of([&[0], &[], &[], &[0]], &[]),
        of([&[], &[0], &[0], &[]], &[(1, 2, and)]),
        of([&[], &[0], &[], &[0]], &[]),
        of([&[], &[], &[0], &[0]], &[]),
        of([&[], &[0], &[1], &[0]], &[]),
        of([&[0], &[0], &[0], &[0]], &[]),
        of([&[0, 1], &[0, 1], &[], &[]], &[]),
        of([&[0], &[0], &[0], &[]], &[(1, 2, or), (0, 1, and)]),
        of([&[0], &[0], &[1], &[]], &[(1, 2, or)]),
        // A topic that no log has, and one that few have.
        of([&[0], &[0, 900], &[], &[]], &[]),
        of([&[0], &[0, 3], &[], &[]], &[]),
        at(&[0], of([&[], &[0], &[], &[]], &[])),
        at(&[0], of([&[], &[0], &[0], &[]], &[(1, 2, or)])),
        at(&[0, 1], of([&[], &[], &[0], &[]], &[])),
        at(&[1, 0], of([&[0], &[0], &[], &[]], &[])),
        at(&[0], of([&[0], &[0], &[0], &[]], &[])),
        at(&[0], of([&[0, 1], &[1], &[], &[0]], &[(1, 3, or)])),
        at(&[0, 77], of([&[], &[], &[], &[0]], &[])),
        // Some values are dense, some early and some late, and others are not.
        of([&[0, 1, 2], &[0, 3], &[], &[]], &[]),
        of([&[], &[0, 3], &[1, 2], &[0]], &[]),
        of([&[], &[0, 1, 2, 3], &[0, 1, 2, 3], &[]], &[]),
        of([&[0, 3], &[0, 3], &[0, 3], &[]], &[(1, 2, or)]),
        at(&[0, 1, 2, 3], of([&[], &[0, 1, 2, 3], &[], &[]], &[])),
        at(&[0, 3], of([&[], &[0], &[2, 3], &[]], &[(1, 2, or)])),
        at(&[0, 3], of([&[0, 1, 3], &[], &[1, 3], &[0]], &[(2, 3, or)])),
    ];
    let mut rng = Rng(64);
    for fork in 0..3 {
        let (all, reader) = (rows(&bundles), Reader::new(store.view()));
        let anew = reader.clone().walking_anew();
        for expression in &expressions {
            for _ in 0..12 {
                check(&reader, &all, expression, &mut rng);
                check(&anew, &all, expression, &mut rng);
            }
        }
        // Other blocks in the place of the last ones, in which other logs are the first of dense terms.
        let from = FORKED - 40 + rng.below(20);
        writer.unwind(from).unwrap();
        bundles.truncate(from as usize);
        plain::extend(&mut bundles, 63, FORKED + fork * 5, 3 + fork, &config);
        follow(&mut writer, &bundles[from as usize..]);
    }
}
