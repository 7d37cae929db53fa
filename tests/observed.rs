//! The side store: what it keeps, the order of holders, and that it never refuses to open.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

use quarry::codec::value::Identity;
use quarry::metrics::visits;
use quarry::model::{Address, B256, BlockId, TokenMetadata, TokenVerdict, ToldMetadata, U256, ZeroAddress};
use quarry::query::from_memory;
use quarry::store::{Observed, StoreError, ToldBalance};
use std::collections::BTreeMap;
use std::path::Path;

const TOKEN: Address = Address::repeat_byte(0x77);

fn identity(chain_id: u64) -> Identity {
    Identity {
        schema: 0,
        chain_id,
        genesis_hash: [3; 32],
        static_rewards: None,
        first_block: 0,
    }
}

fn metadata(name: &str) -> ToldMetadata {
    ToldMetadata {
        metadata: TokenMetadata {
            name: Some(name.to_owned()),
            symbol: None,
            decimals: Some(6),
        },
        anchor: Some(BlockId {
            number: 7,
            hash: B256::repeat_byte(7),
        }),
    }
}

fn verdict(exact: bool) -> TokenVerdict {
    TokenVerdict {
        exact,
        zero_address: ZeroAddress::Holds,
        checked: BlockId {
            number: 8,
            hash: B256::repeat_byte(8),
        },
        anchor: None,
        compared: 3,
        reason: String::new(),
        supply: None,
        differed: None,
    }
}

fn balance(holder: u8, amount: u64) -> ToldBalance {
    ToldBalance {
        holder: Address::repeat_byte(holder),
        balance: U256::from(amount),
        block: 5,
    }
}

#[test]
fn rows_outlive_the_process() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..2 {
        let observed = Observed::open(directory.path(), &identity(1), false);
        assert!(observed.is_kept());
        if round == 0 {
            assert_eq!(observed.metadata(&TOKEN), None);
            observed.put_metadata(&TOKEN, &metadata("a"));
            observed.put_verdict(&TOKEN, &verdict(true));
            observed.put_balances(&TOKEN, &[balance(1, 10)], Some((None, true)));
        }
        assert_eq!(observed.metadata(&TOKEN), Some(metadata("a")));
        assert_eq!(observed.verdict(&TOKEN), Some(verdict(true)));
        assert_eq!(
            observed.balance(&TOKEN, &Address::repeat_byte(1)),
            Some((U256::from(10), 5))
        );
        assert!(observed.refreshed(&TOKEN).whole);
    }
}

/// The revision tells caches when an answer may be another one, and only then.
#[test]
fn the_revision_moves_with_what_readers_see() {
    let observed = Observed::in_memory();
    let moved = |act: &dyn Fn()| {
        let before = observed.revision();
        act();
        observed.revision() != before
    };
    assert!(moved(&|| observed.put_metadata(&TOKEN, &metadata("a"))));
    assert!(moved(&|| observed.put_verdict(&TOKEN, &verdict(true))));
    let mut later = verdict(true);
    (later.checked.number, later.compared) = (9, 100);
    assert!(!moved(&|| observed.put_verdict(&TOKEN, &later)));
    assert!(moved(&|| observed.put_verdict(&TOKEN, &verdict(false))));
    assert!(moved(&|| observed.put_balances(&TOKEN, &[balance(1, 1)], None)));
    assert!(!moved(&|| observed.put_balances(&TOKEN, &[balance(1, 1)], None)));
}

#[test]
fn holders_are_in_order_whatever_is_told() {
    let observed = Observed::in_memory();
    let mut random = fastrand::Rng::with_seed(4);
    let mut model: BTreeMap<Address, U256> = BTreeMap::new();
    for _ in 0..400 {
        let told: Vec<ToldBalance> = (0..random.usize(1..6))
            .map(|_| {
                let amount = if random.u8(..) < 60 {
                    U256::ZERO
                } else {
                    U256::from(random.u64(..)) << random.usize(0..190)
                };
                ToldBalance {
                    holder: Address::repeat_byte(random.u8(..40)),
                    balance: amount,
                    block: 1,
                }
            })
            .collect();
        observed.put_balances(&TOKEN, &told, None);
        for one in &told {
            model.insert(one.holder, one.balance);
        }
        let mut expected: Vec<(Address, U256)> = model.iter().map(|(&a, &b)| (a, b)).collect();
        expected.retain(|(_, amount)| !amount.is_zero());
        expected.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        assert_eq!(observed.holders(&TOKEN, 0, 1_000).unwrap(), expected);
        assert_eq!(observed.refreshed(&TOKEN).holders, expected.len() as u64);
        let skip = random.usize(0..50);
        let page: Vec<_> = expected.iter().skip(skip).take(5).copied().collect();
        assert_eq!(observed.holders(&TOKEN, skip as u64, 5).unwrap(), page);
        // Behind the place of anybody, also of one who is not there any more.
        let place = (Address::repeat_byte(random.u8(..40)), told[0].balance);
        for place in expected.iter().chain([&place]) {
            let behind = |row: &&(Address, U256)| row.1 < place.1 || row.1 == place.1 && row.0 > place.0;
            let page: Vec<_> = expected.iter().filter(behind).take(5).copied().collect();
            assert_eq!(observed.holders_after(&TOKEN, place, 5).unwrap(), page);
        }
        for (holder, amount) in &model {
            let held = observed.held_by(holder, &Address::ZERO, 10).unwrap();
            assert_eq!(!amount.is_zero(), held == [TOKEN], "{holder} {amount}");
        }
    }
    // Other tokens on either side are another matter.
    for other in [0x76, 0x78] {
        assert_eq!(observed.holders(&Address::repeat_byte(other), 0, 9).unwrap(), []);
    }
}

fn table_files(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(Observed::directory_of(directory)).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn filled(directory: &Path) {
    let observed = Observed::open(directory, &identity(1), false);
    observed.put_metadata(&TOKEN, &metadata("a"));
}

/// Long after it was made: one that is just being made has no log yet.
fn without_logs(directory: &Path) {
    for path in table_files(directory) {
        if path.extension().is_some_and(|ending| ending == "log") {
            std::fs::remove_file(path).unwrap();
        }
    }
    let current = std::fs::File::options()
        .write(true)
        .open(Observed::directory_of(directory).join("CURRENT"));
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    current.unwrap().set_modified(hour_ago).unwrap();
}

#[test]
fn what_is_damaged_is_made_anew() {
    type Damage = fn(&Path);
    let cases: [(&str, Damage); 8] = [
        ("no CURRENT", |directory| {
            std::fs::remove_file(Observed::directory_of(directory).join("CURRENT")).unwrap();
        }),
        ("no CURRENT, and no log", |directory| {
            without_logs(directory);
            std::fs::remove_file(Observed::directory_of(directory).join("CURRENT")).unwrap();
        }),
        ("no log", without_logs),
        ("no manifest", |directory| {
            for path in table_files(directory) {
                if path.to_string_lossy().contains("MANIFEST") {
                    std::fs::remove_file(path).unwrap();
                }
            }
        }),
        ("nonsense in CURRENT", |directory| {
            std::fs::write(Observed::directory_of(directory).join("CURRENT"), b"nonsense").unwrap();
        }),
        ("nonsense in the manifest", |directory| {
            for path in table_files(directory) {
                if path.to_string_lossy().contains("MANIFEST") {
                    std::fs::write(path, vec![0x55; 4096]).unwrap();
                }
            }
        }),
        ("marked", |directory| {
            std::fs::write(Observed::directory_of(directory).join("DAMAGED"), b"").unwrap();
        }),
        ("gone", |directory| {
            std::fs::remove_dir_all(Observed::directory_of(directory)).unwrap();
        }),
    ];
    for (name, damage) in cases {
        let directory = tempfile::tempdir().unwrap();
        filled(directory.path());
        damage(directory.path());
        let found = Observed::follow(directory.path(), &identity(1));
        // What is gone as a whole was removed, or is still to come.
        assert_eq!(found.is_err(), name != "gone", "{name}: {found:?}");
        if name == "marked" || name.starts_with("no CURRENT") || name == "no log" {
            assert!(
                matches!(&found, Err(StoreError::DamagedObserved { .. })),
                "{name}: {found:?}"
            );
        }
        let reader = Observed::open(directory.path(), &identity(1), true);
        assert_eq!(reader.metadata(&TOKEN), None, "{name}");
        drop(reader);
        let observed = Observed::open(directory.path(), &identity(1), false);
        assert!(observed.is_kept(), "{name}");
        assert_eq!(observed.metadata(&TOKEN), None, "{name}");
        observed.put_metadata(&TOKEN, &metadata("b"));
        drop(observed);
        let observed = Observed::open(directory.path(), &identity(1), false);
        assert_eq!(observed.metadata(&TOKEN), Some(metadata("b")), "{name}");
    }
}

#[test]
fn another_chain_begins_anew_and_a_reader_does_not_take_its_words() {
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    assert_eq!(
        Observed::open(directory.path(), &identity(2), true).metadata(&TOKEN),
        None
    );
    assert_eq!(
        Observed::open(directory.path(), &identity(1), true).metadata(&TOKEN),
        Some(metadata("a"))
    );
    assert_eq!(
        Observed::open(directory.path(), &identity(2), false).metadata(&TOKEN),
        None
    );
    assert_eq!(
        Observed::open(directory.path(), &identity(1), false).metadata(&TOKEN),
        None
    );
}

#[test]
fn where_nothing_can_be_kept_memory_serves() {
    // Held by another.
    let directory = tempfile::tempdir().unwrap();
    filled(directory.path());
    let first = Observed::open(directory.path(), &identity(1), false);
    let second = Observed::open(directory.path(), &identity(1), false);
    assert!(first.is_kept() && !second.is_kept());
    assert_eq!(second.metadata(&TOKEN), None);
    second.put_metadata(&TOKEN, &metadata("b"));
    assert_eq!(second.metadata(&TOKEN), Some(metadata("b")));
    assert_eq!(first.metadata(&TOKEN), Some(metadata("a")));
    // A file where the directory should be.
    let other = tempfile::tempdir().unwrap();
    std::fs::write(Observed::directory_of(other.path()), b"").unwrap();
    for read_only in [true, false] {
        let observed = Observed::open(other.path(), &identity(1), read_only);
        assert!(!observed.is_kept());
        observed.put_metadata(&TOKEN, &metadata("c"));
        assert_eq!(observed.metadata(&TOKEN), Some(metadata("c")));
    }
}

/// The verdicts are read once for what the zero address holds, and again when one says something else of that.
#[test]
fn what_the_zero_address_holds_is_read_once() {
    let observed = Observed::in_memory();
    let token = |n: u32| Address::from_word(B256::from(U256::from(n + 1)));
    let of = |holds: bool| TokenVerdict {
        zero_address: match holds {
            true => ZeroAddress::Holds,
            false => ZeroAddress::Burns,
        },
        ..verdict(true)
    };
    for n in 0..1_000 {
        observed.put_verdict(&token(n), &of(n % 10 != 0));
    }
    let held = || {
        let _ = visits::take();
        let held = observed.held_by_zero().unwrap();
        (held.len(), visits::take().rows)
    };
    let (count, read) = held();
    assert_eq!(count, 900);
    assert!(read >= 1_000, "{read}");
    assert_eq!(held(), (900, 0));
    // Verdicts are written all the time, and mostly say the same of the zero address.
    observed.put_verdict(
        &token(0),
        &TokenVerdict {
            compared: 9,
            ..of(false)
        },
    );
    observed.put_verdict(
        &token(1),
        &TokenVerdict {
            compared: 9,
            ..of(true)
        },
    );
    assert_eq!(held(), (900, 0));
    for (n, holds, expected) in [(0, true, 901), (1, false, 900), (5_000, true, 901)] {
        observed.put_verdict(&token(n), &of(holds));
        let (count, read) = held();
        assert_eq!(count, expected);
        assert!(read >= 1_000, "{read}");
        let list = observed.held_by_zero().unwrap();
        assert_eq!(list.contains(&token(n)), holds);
        assert!(list.is_sorted());
    }
    // An attempt out of memory reads none of the rows, and leaves nothing behind.
    observed.put_verdict(&token(5_000), &of(false));
    assert_eq!(from_memory(|| observed.held_by_zero()), None);
    assert_eq!(held().0, 900);
    assert_eq!(from_memory(|| observed.held_by_zero().unwrap().len()), Some(900));
}
