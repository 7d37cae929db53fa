//! A store of layout 6 kept nothing of what tokens moved by other standards than their own: a migration adds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quarry::codec::tokens::{MIXED, TokenState};
use quarry::model::TokenKind;
use quarry::store::migrate;
use rocksdb::{ColumnFamilyDescriptor, DB, IteratorMode, Options};

use crate::{backfill, chain, digests, follow, open, scratch};

/// Takes out of a store what layout 6 did not have; answers how many rows of each table.
fn to_layout_6(directory: &Path) -> BTreeMap<&'static str, usize> {
    let path = directory.join("rocksdb");
    let tables = DB::list_cf(&Options::default(), &path).unwrap();
    let tables = tables
        .into_iter()
        .map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let db = DB::open_cf_descriptors(&Options::default(), &path, tables).unwrap();
    let family = |name: &str| db.cf_handle(name).unwrap();
    let rows = |name: &str| {
        let rows = db.iterator_cf(family(name), IteratorMode::Start);
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    let states: BTreeMap<Vec<u8>, TokenState> = rows("token_states")
        .into_iter()
        .map(|(key, value)| (key.to_vec(), TokenState::decode(&value).unwrap()))
        .collect();
    let ids: BTreeMap<Vec<u8>, Vec<u8>> = rows("tokens")
        .into_iter()
        .map(|(address, id)| (address.to_vec(), id.to_vec()))
        .collect();
    let mut gone = BTreeMap::new();
    let mut take = |name: &'static str, key: &[u8]| {
        db.delete_cf(family(name), key).unwrap();
        *gone.entry(name).or_default() += 1;
    };
    for (key, _) in rows("holdings") {
        let state = &states[&ids[&key[21..]]];
        if key[20] != state.kind as u8 {
            assert_ne!(state.flags & MIXED, 0);
            take("holdings", &key);
        }
    }
    for name in ["nft_owners", "nft_ids"] {
        for (key, _) in rows(name) {
            if states[&key[..4]].kind != TokenKind::Erc721 {
                take(name, &key);
            }
        }
    }
    let mut identity = db.get_cf(family("meta"), b"identity").unwrap().unwrap();
    identity[0] = 6;
    db.put_cf(family("meta"), b"identity", identity).unwrap();
    gone
}

#[test]
fn holdings_by_other_standards_are_added_to_a_store_of_layout_6() {
    let mut kinds = BTreeSet::new();
    for seed in [20, 41] {
        let bundles = chain(seed, 80);
        let (old, fresh) = (scratch::directory(), scratch::directory());
        let store = open(old.path());
        let mut writer = store.writer().unwrap();
        backfill(&mut writer, &bundles[..60], 11);
        // Blocks that are not final are taken off: what they overwrote did not have these rows.
        follow(&mut writer, &bundles[60..]);
        drop(writer);
        drop(store);
        let gone = to_layout_6(old.path());
        kinds.extend(gone.keys().copied());
        let (from, done) = migrate(old.path()).unwrap();
        assert_eq!((from, done.len()), (6, 1));
        assert_eq!(migrate(old.path()).unwrap(), (7, Vec::new()));
        let store = open(fresh.path());
        backfill(&mut store.writer().unwrap(), &bundles[..60], 60);
        let expected = digests(&store);
        let migrated = open(old.path());
        assert_eq!(digests(&migrated), expected, "seed {seed}");
        // And it goes on.
        for store in [&store, &migrated] {
            backfill(&mut store.writer().unwrap(), &bundles[60..], 7);
        }
        assert_eq!(digests(&migrated), digests(&store), "seed {seed}");
    }
    assert_eq!(kinds, ["holdings", "nft_ids", "nft_owners"].into());
}
