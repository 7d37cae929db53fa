//! Damage that hides behind other rows, each kind by itself: what a random bit does not do.

use std::collections::BTreeMap;
use std::path::Path;

use quarry::codec::amount::{put_amount, read_amount};
use quarry::codec::keys;
use quarry::codec::posting;
use quarry::codec::tokens::{self, DOUBTS, MIXED, TokenState, WRAPPED};
use quarry::codec::value::{AccountRow, Undo};
use quarry::model::{Address, TokenKind, U256};
use quarry::store::{Store, Table};
use rocksdb::{DB, IteratorMode, Options};

use crate::right::{audited, unfinal};
use crate::{audit, copy, fill, options};

/// The tables of a store that nobody has open.
struct Raw(DB);

impl Raw {
    fn open(directory: &Path) -> Self {
        let names = Table::ALL.iter().map(|table| table.name()).chain(["default"]);
        Self(DB::open_cf(&Options::default(), directory.join("rocksdb"), names).unwrap())
    }

    fn family(&self, table: Table) -> &rocksdb::ColumnFamily {
        self.0.cf_handle(table.name()).unwrap()
    }

    fn rows(&self, table: Table) -> Vec<(Vec<u8>, Vec<u8>)> {
        let rows = self.0.iterator_cf(self.family(table), IteratorMode::Start);
        rows.map(|row| row.unwrap())
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    }

    fn get(&self, table: Table, key: &[u8]) -> Vec<u8> {
        self.0.get_cf(self.family(table), key).unwrap().unwrap()
    }

    fn put(&self, table: Table, key: &[u8], value: &[u8]) {
        self.0.put_cf(self.family(table), key, value).unwrap();
    }

    fn delete(&self, table: Table, key: &[u8]) {
        self.0.delete_cf(self.family(table), key).unwrap();
    }
}

/// Something done to the tables of a store.
type Edit<'a> = &'a dyn Fn(&Raw);

/// What an audit says of a store of which blocks 5 and on are not final, after something was done to its tables.
fn unfinal_after(edit: Edit<'_>) -> Vec<String> {
    let made = unfinal(5);
    let last = made.store.view().head().unwrap().number;
    let home = made.home;
    drop(made.store);
    edit(&Raw::open(home.path()));
    let store = Store::open(&options(home.path())).unwrap();
    let (_, mismatches) = audited(&store, 0, last);
    mismatches.into_iter().map(|mismatch| mismatch.text).collect()
}

fn edit_undo(raw: &Raw, block: u64, edit: impl FnOnce(&mut Undo)) {
    let key = keys::number(block);
    let mut undo = Undo::decode(&raw.get(Table::Undo, &key)).unwrap();
    edit(&mut undo);
    raw.put(Table::Undo, &key, &undo.encode());
}

#[test]
fn a_block_that_could_not_be_taken_off_is_told() {
    assert_eq!(unfinal_after(&|_| {}), [""; 0]);
    let key = keys::number;
    let undo_of = |raw: &Raw, block| raw.get(Table::Undo, &key(block));
    let told = |text: &str, edit: Edit<'_>| {
        let found = unfinal_after(edit);
        assert!(
            found.iter().any(|found| found.contains(text)),
            "{text}: {found:?}"
        );
    };
    told("not final and has no row in undo", &|raw| {
        raw.delete(Table::Undo, &key(9));
    });
    told("undo: corrupt undo record", &|raw| {
        let undo = undo_of(raw, 9);
        raw.put(Table::Undo, &key(9), &undo[..undo.len() - 1]);
    });
    told("does not lead back to the block before", &|raw| {
        raw.put(Table::Undo, &key(9), &undo_of(raw, 10));
    });
    told("not as they are written", &|raw| {
        edit_undo(raw, 9, |undo| undo.rows.swap(0, 1));
    });
    for (block, table) in [
        (9, Table::Blocks),
        (9, Table::Supply),
        (9, Table::Balances),
        (9, Table::Funding),
        (6, Table::Nonces),
        (5, Table::Creations),
    ] {
        let text = format!("{} would keep the row", table.name());
        told(&text, &|raw| {
            edit_undo(raw, block, |undo| {
                let of_table = |row: &(u8, _, _)| row.0 == table as u8;
                let place = undo.rows.iter().position(of_table).unwrap();
                undo.rows.remove(place);
            });
        });
    }
    for (table, name) in [(Table::Undo, "undo"), (Table::Tail, "tail")] {
        told(&format!("{name} has a row 0x"), &|raw| {
            raw.put(table, &key(3), &raw.get(table, &key(9)));
        });
    }
}

#[test]
fn rows_of_what_is_not_stored_are_told() {
    let behind = keys::number(77_000);
    for table in [
        Table::Blocks,
        Table::Transactions,
        Table::LogsByBlock,
        Table::Frames,
        Table::Supply,
    ] {
        let found = unfinal_after(&|raw| {
            let (_, value) = raw.rows(table).pop().unwrap();
            raw.put(table, &behind, &value);
        });
        let text = format!("{} has rows of what is not stored", table.name());
        assert_eq!(found, [text]);
    }
    for table in [Table::Creations, Table::Nonces] {
        let found = unfinal_after(&|raw| {
            let (mut key, value) = raw.rows(table).pop().unwrap();
            key[20..].copy_from_slice(&behind);
            raw.put(table, &key, &value);
        });
        assert!(found.len() == 1 && found[0].contains("not stored"), "{found:?}");
    }
    // A list that names one more.
    let found = unfinal_after(&|raw| {
        let mut postings = Vec::new();
        let rows = raw.rows(Table::OpenPostings).into_iter();
        let mut short = rows.filter_map(|(key, value)| {
            let header = posting::decode(&value, &mut postings).unwrap();
            (header.rank == 0 && postings.len() < 9).then(|| (key, postings.clone()))
        });
        let (key, mut longer) = short.next().unwrap();
        longer.push(77_000);
        let mut value = Vec::new();
        posting::encode(0, &longer, &mut value);
        raw.put(Table::OpenPostings, &key, &value);
    });
    assert!(found.len() == 1 && found[0].contains("77000"), "{found:?}");
}

/// What an audit says of the demo's store after something was done to its tables.
struct Demo(tempfile::TempDir);

impl Demo {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fill(home.path());
        Self(home)
    }

    #[track_caller]
    fn told(&self, text: &str, edit: Edit<'_>) {
        let home = tempfile::tempdir().unwrap();
        copy(&self.0.path().join("mainnet"), home.path());
        edit(&Raw::open(home.path()));
        let (_, mismatches) = audit(home.path(), None);
        let found = mismatches.iter().any(|found| found.text.contains(text));
        assert!(found, "{text}: {mismatches:?}");
    }
}

fn ends_with(balance: U256) -> Vec<u8> {
    let mut value = Vec::new();
    put_amount(&mut value, &balance);
    value
}

#[test]
fn what_two_tables_say_alike_and_no_block_does_is_told() {
    let demo = Demo::new();
    // Ids that changed owners in both tables, by which as many are owned as before.
    let swap = |raw: &Raw, both: bool| {
        let states = raw.rows(Table::TokenStates).into_iter();
        let states: BTreeMap<Vec<u8>, TokenState> = states
            .map(|(key, value)| (key, TokenState::decode(&value).unwrap()))
            .collect();
        let rows = raw.rows(Table::NftOwners).into_iter();
        let own = |key: &[u8]| states[&key[..4]].kind == TokenKind::Erc721;
        let mut rows: Vec<_> = rows.filter(|(key, _)| own(key)).collect();
        let first = rows.remove(0);
        let other = |row: &&(Vec<u8>, Vec<u8>)| row.0[..4] == first.0[..4] && row.1 != first.1;
        let second = rows.iter().find(other).expect("two owners").clone();
        let give = |(key, owner): &(Vec<u8>, Vec<u8>), to: &[u8]| {
            let id = |owner: &[u8]| [&key[..4], owner, &key[4..]].concat();
            raw.put(Table::NftOwners, key, to);
            raw.delete(Table::NftIds, &id(owner));
            raw.put(Table::NftIds, &id(to), &[]);
        };
        give(&first, &second.1);
        if both {
            give(&second, &first.1);
        }
    };
    demo.told("own other numbers of ids", &|raw| swap(raw, false));
    demo.told("owners of its ids are not those", &|raw| swap(raw, true));
    // Balances that are one more here and one less there, in history and now.
    demo.told(
        "balances did not change as its transactions and frames say",
        &|raw| {
            let mut last: BTreeMap<Vec<u8>, (u64, U256)> = BTreeMap::new();
            for (key, value) in raw.rows(Table::Balances) {
                let (account, block) = keys::decode_account_at(&key).unwrap();
                last.insert(account.to_vec(), (block, read_amount(&value).unwrap()));
            }
            let mut by_block: BTreeMap<u64, Vec<(Vec<u8>, U256)>> = BTreeMap::new();
            for (account, (block, balance)) in last {
                if block > 0 && balance > U256::from(5) {
                    by_block.entry(block).or_default().push((account, balance));
                }
            }
            let (block, pair) = by_block.iter().find(|(_, some)| some.len() > 1).unwrap();
            for ((account, balance), more) in pair.iter().zip([true, false]).take(2) {
                let one = U256::ONE;
                let balance = if more { balance + one } else { balance - one };
                let key = keys::account_at(&Address::from_slice(account), *block);
                raw.put(Table::Balances, &key, &ends_with(balance));
                let row = AccountRow::decode(&raw.get(Table::Accounts, account)).unwrap();
                raw.put(Table::Accounts, account, &AccountRow { balance, ..row }.encode());
            }
        },
    );
    demo.told("says again what the one before says", &|raw| {
        let (mut key, value) = raw.rows(Table::Balances).pop().unwrap();
        *key.last_mut().unwrap() += 1;
        raw.put(Table::Balances, &key, &value);
    });
}

#[test]
fn what_the_row_of_a_token_says_is_held_against_its_logs() {
    let demo = Demo::new();
    let altered = |raw: &Raw, kind: TokenKind, alter: &dyn Fn(&mut TokenState)| {
        let states = raw.rows(Table::TokenStates).into_iter();
        let mut states = states.map(|(key, value)| (key, TokenState::decode(&value).unwrap()));
        let plain = |state: &TokenState| state.kind == kind && state.flags & (DOUBTS | WRAPPED) == 0;
        let (key, mut state) = states.find(|(_, state)| plain(state)).unwrap();
        alter(&mut state);
        raw.put(Table::TokenStates, &key, &state.encode());
    };
    let standards = "its standard, its first transfer or what else moved";
    let kinds = [TokenKind::Erc20, TokenKind::Erc721];
    for kind in kinds {
        demo.told("the number of its holders is another", &|raw| {
            altered(raw, kind, &|state| state.holders += 1);
        });
        demo.told(standards, &|raw| {
            altered(raw, kind, &|state| {
                state.first_transfer = state.first_transfer.map(|log| log + 1);
            });
        });
        for flag in [MIXED, WRAPPED] {
            demo.told(standards, &|raw| {
                altered(raw, kind, &|state| state.flags |= flag);
            });
        }
    }
    demo.told(standards, &|raw| {
        altered(raw, TokenKind::Erc20, &|state| state.kind = TokenKind::Erc1155);
    });
    demo.told("cannot be read to the end", &|raw| {
        let none = tokens::token(u32::MAX - 1);
        raw.put(Table::TokenStates, &none, &TokenState::default().encode());
    });
}
