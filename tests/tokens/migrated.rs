//! A store of layout 6 kept nothing of what tokens moved by other standards than their own: a migration adds it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quarry::codec::tokens::{self, MIXED, TokenState};
use quarry::codec::value::Undo;
use quarry::model::{Address, Bundle, TokenKind, U256};
use quarry::store::schema::SCHEMA_VERSION;
use quarry::store::{OpenOptions, Store, Table, migrate};
use rocksdb::{ColumnFamilyDescriptor, DB, IteratorMode, Options};

use crate::heard::complaints;
use crate::{backfill, chain, digests, follow, open, scratch};

/// A row of a table: key and value.
pub(super) type Row = (&'static str, Box<[u8]>, Box<[u8]>);
/// Key and value.
pub(super) type Pair = (Box<[u8]>, Box<[u8]>);

/// The tables of a store as they lie on disk.
pub(super) struct Raw(pub(super) DB);

impl Raw {
    pub(super) fn open(directory: &Path) -> Self {
        let path = directory.join("rocksdb");
        let tables = DB::list_cf(&Options::default(), &path).unwrap();
        let tables = tables
            .into_iter()
            .map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
        Self(DB::open_cf_descriptors(&Options::default(), &path, tables).unwrap())
    }

    pub(super) fn rows(&self, name: &str) -> Vec<Pair> {
        let rows = self
            .0
            .iterator_cf(self.0.cf_handle(name).unwrap(), IteratorMode::Start);
        rows.map(Result::unwrap).collect()
    }

    pub(super) fn put(&self, (name, key, value): &Row) {
        self.0
            .put_cf(self.0.cf_handle(name).unwrap(), key, value)
            .unwrap();
    }

    /// Whether a row is of a token by another standard than the token's own.
    fn is_other(&self) -> impl Fn(&str, &[u8]) -> bool {
        let states = self.rows("token_states").into_iter();
        let states: BTreeMap<Box<[u8]>, TokenState> = states
            .map(|(key, value)| (key, TokenState::decode(&value).unwrap()))
            .collect();
        let ids: BTreeMap<_, _> = self.rows("tokens").into_iter().collect();
        move |table, key| match table {
            "holdings" => {
                let state = &states[&ids[&key[21..]]];
                let other = key[20] != state.kind as u8;
                assert!(!other || state.flags & MIXED != 0);
                other
            }
            "nft_owners" | "nft_ids" => states[&key[..4]].kind != TokenKind::Erc721,
            _ => false,
        }
    }

    fn others(&self) -> Vec<Row> {
        let is_other = self.is_other();
        let tables = ["holdings", "nft_owners", "nft_ids"].into_iter();
        let rows = tables.flat_map(|name| {
            self.rows(name)
                .into_iter()
                .map(move |(key, value)| (name, key, value))
        });
        rows.filter(|(name, key, _)| is_other(name, key)).collect()
    }

    /// Takes out what layout 6 did not have, of undo records too; answers the rows.
    fn to_layout_6(&self) -> Vec<Row> {
        let is_other = self.is_other();
        for (key, undo) in self.rows("undo") {
            let mut undo = Undo::decode(&undo).unwrap();
            undo.rows
                .retain(|(code, key, _)| !is_other(Table::from_code(*code).unwrap().name(), key));
            self.put(&("undo", key, undo.encode().into()));
        }
        // Its transactions lie as they do now: what the last step does is done.
        self.put(&("meta", (*b"migrated").into(), u64::MAX.to_be_bytes().into()));
        let gone = self.others();
        for (name, key, _) in &gone {
            self.0.delete_cf(self.0.cf_handle(name).unwrap(), key).unwrap();
        }
        let meta = self.0.cf_handle("meta").unwrap();
        let mut identity = self.0.get_cf(meta, b"identity").unwrap().unwrap();
        identity[0] = 6;
        self.0.put_cf(meta, b"identity", identity).unwrap();
        gone
    }
}

/// A chain whose frames are not told: a later step of a migration reads them with their transactions, which are not of an old layout here.
fn untraced(seed: u64) -> Vec<Bundle> {
    let mut bundles = chain(seed, 80);
    for bundle in &mut bundles {
        bundle.traces = None;
    }
    bundles
}

/// A store that has the first blocks of a chain as final ones, and others on top.
fn filled(directory: &Path, seed: u64, last_final: usize, len: usize) {
    let bundles = untraced(seed);
    let store = open(directory);
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..last_final], 11);
    follow(&mut writer, &bundles[last_final..len]);
}

/// Rows of other standards that are not so, of accounts that ever took part and of ids.
fn stale(store: &Store) -> Vec<Row> {
    let view = store.view();
    let mut rows: Vec<Row> = Vec::new();
    for token in 0..view.checkpoint().tokens {
        let state = view.token_state(token).unwrap();
        for kind in [TokenKind::Erc20, TokenKind::Erc721, TokenKind::Erc1155] {
            if state.flags & MIXED == 0 || kind == state.kind {
                continue;
            }
            let mut participants = view.participants(token, kind).unwrap();
            let mut next = Address::with_last_byte(1);
            while let Some(holder) = participants.at_or_after(&next).unwrap() {
                let address = view.token_address(token).unwrap();
                let key = tokens::holding(&holder, kind, &address);
                // An account of ERC-721 may have been named without ever owning an id.
                if kind != TokenKind::Erc721 || view.holding(&holder, kind, &address).unwrap() > U256::ZERO {
                    rows.push(("holdings", Box::new(key), Box::new([0x77, 0x77])));
                }
                next = Address::from_word((U256::from_be_bytes(holder.into_word().0) + U256::ONE).into());
                if kind == TokenKind::Erc721 {
                    // Owner and id in both tables, and in one of them.
                    let [both, one, none] = [1, 2, 500].map(U256::from);
                    let owner = Box::from(holder.as_slice());
                    rows.push(("nft_owners", Box::new(tokens::nft_owner(token, &both)), owner));
                    for id in [both, one, none] {
                        rows.push((
                            "nft_ids",
                            Box::new(tokens::nft_id(token, &holder, &id)),
                            Box::new([]),
                        ));
                    }
                }
            }
        }
    }
    rows
}

#[test]
fn holdings_by_other_standards_are_added_to_a_store_of_layout_6() {
    let (mut tables, mut stale_rows) = (BTreeSet::new(), 0);
    for seed in [20, 41, 42] {
        let bundles = untraced(seed);
        let [old, fresh] = [(); 2].map(|()| scratch::directory());
        filled(old.path(), seed, 60, 80);
        filled(fresh.path(), seed, 60, 60);
        let store = open(fresh.path());
        let stale = stale(&store);
        let raw = Raw::open(old.path());
        let gone = raw.to_layout_6();
        tables.extend(gone.iter().map(|(name, ..)| *name));
        // A migration that was interrupted left them, and the quarry of layout 6 went on.
        stale.iter().for_each(|row| raw.put(row));
        stale_rows += stale.len();
        drop(raw);
        let (from, done) = migrate(&OpenOptions::new(old.path())).unwrap();
        assert_eq!((from, done.len()), (6, SCHEMA_VERSION as usize - 6));
        assert_eq!(
            migrate(&OpenOptions::new(old.path())).unwrap(),
            (SCHEMA_VERSION, Vec::new())
        );
        let migrated = open(old.path());
        assert_eq!(digests(&migrated), digests(&store), "seed {seed}");
        // And it goes on.
        for store in [&store, &migrated] {
            backfill(&mut store.writer().unwrap(), &bundles[60..], 7);
        }
        assert_eq!(digests(&migrated), digests(&store), "seed {seed}");
    }
    assert_eq!(tables, ["holdings", "nft_ids", "nft_owners"].into());
    assert!(stale_rows > 50, "{stale_rows} rows that are not so");
}

/// The check of an audit that looks at the present of tokens.
pub(super) const PRESENT: &str = "holders, holdings, ids and sums of tokens";

#[test]
fn an_audit_sees_each_such_row() {
    let directory = scratch::directory();
    filled(directory.path(), 20, 60, 80);
    assert_eq!(complaints(&open(directory.path()), PRESENT), [""; 0]);
    let others = Raw::open(directory.path()).others();
    let mut seen = BTreeMap::new();
    for (name, key, value) in others {
        let seen = seen.entry(name).or_insert(0);
        if *seen == 4 {
            continue;
        }
        *seen += 1;
        for altered in [None, Some([&value[..], &[1]].concat())] {
            let raw = Raw::open(directory.path());
            let family = raw.0.cf_handle(name).unwrap();
            match &altered {
                Some(altered) if name == "holdings" => raw.0.put_cf(family, &key, altered).unwrap(),
                Some(_) => continue,
                None => raw.0.delete_cf(family, &key).unwrap(),
            }
            drop(raw);
            let said = complaints(&open(directory.path()), PRESENT);
            assert!(
                !said.is_empty(),
                "{name} 0x{} {altered:?}",
                const_hex::encode(&key)
            );
            Raw::open(directory.path()).put(&(name, key.clone(), value.clone()));
        }
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(complaints(&open(directory.path()), PRESENT), [""; 0]);
}
