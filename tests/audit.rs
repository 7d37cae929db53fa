//! `quarry verify`: a sound store passes, and no altered row goes unnoticed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "audit/damaged.rs"]
mod damaged;
#[path = "support/delegation.rs"]
mod delegation;
#[path = "support/heard.rs"]
mod heard;
#[path = "support/ledger.rs"]
mod ledger;
#[path = "audit/right.rs"]
mod right;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use heard::Heard;
use quarry::audit::{Audit, Check, Mismatch};
use quarry::codec::tokens::DOUBTS;
use quarry::model::BlockRange;
use quarry::store::{FlatArray, OpenOptions, Store, Table};
use quarry::sync::verify::Rules;
use quarry::sync::{ChainRules, genesis};

fn options(directory: &Path) -> OpenOptions {
    OpenOptions {
        cache_bytes: 8 << 20,
        memtable_bytes: 8 << 20,
        ..OpenOptions::new(directory)
    }
}

fn demo(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("demo").join(file)
}

fn rules(store: &Store) -> Rules {
    let genesis = genesis::load(&demo("genesis.json")).unwrap();
    let hash = store.identity().genesis_hash.into();
    ChainRules::new(store.identity().chain_id, hash, Some(&genesis), 0, false).verify
}

/// A store of the demo's chain, which has a bit of everything.
fn fill(data_dir: &Path) -> PathBuf {
    let import = Command::new(env!("CARGO_BIN_EXE_quarry"))
        .args(["import", "chain"])
        .arg(demo("chain.jsonl.zst"))
        .arg("--genesis")
        .arg(demo("genesis.json"))
        .arg("--data-dir")
        .arg(data_dir)
        .output()
        .unwrap();
    assert!(import.status.success(), "{import:?}");
    data_dir.join("mainnet")
}

fn audit(directory: &Path, range: Option<(u64, u64)>) -> (Vec<Check>, Vec<Mismatch>) {
    // As `quarry verify` opens it: for writing, damage to what is written behind is refused.
    let options = OpenOptions {
        read_only: true,
        ..options(directory)
    };
    let store = Store::open(&options).unwrap();
    let view = store.view();
    let (first, last) = range.unwrap_or((0, view.head().unwrap().number));
    let heard = Heard::default();
    let range = BlockRange::new(first, last).unwrap();
    let audit = Audit::new(Arc::clone(&view), range, rules(&store), &heard);
    let checks = audit.run();
    let mismatches = heard.0.into_inner().unwrap();
    (checks, mismatches)
}

#[test]
fn a_sound_store_passes_whole_and_in_parts() {
    let data_dir = tempfile::tempdir().unwrap();
    let directory = fill(data_dir.path());
    for range in [None, Some((0, 0)), Some((17, 45)), Some((300, 361))] {
        let (checks, mismatches) = audit(&directory, range);
        assert_eq!(mismatches, [], "{range:?}");
        assert!(checks.len() >= 9);
        if range.is_none() {
            for check in checks {
                assert!(check.items > 0, "{check:?}");
            }
        }
    }
}

/// Tables in which every byte is told by another table.
const COVERED: &[Table] = &[
    Table::LogsByBlock,
    Table::LogsByEmitter,
    Table::Postings,
    Table::OpenPostings,
    Table::Hashes,
    Table::Emitters,
    Table::Signatures,
    Table::Creations,
    Table::Nonces,
    Table::Accounts,
    Table::Funding,
    Table::Balances,
    Table::Supply,
    Table::Tokens,
    Table::TokenBalances,
    Table::TokenSupply,
    Table::Holders,
    Table::Holdings,
    Table::HolderCounts,
    Table::NftOwners,
    Table::NftIds,
    Table::Days,
];

/// Tokens whose ledger does not follow from their transfers one by one: only the end of their history is told by
/// other tables.
fn doubted(directory: &Path) -> Vec<u32> {
    let view = Store::open(&options(directory)).unwrap().view();
    let doubts = |token: &u32| view.token_state(*token).unwrap().flags & DOUBTS != 0;
    (0..view.checkpoint().tokens).filter(doubts).collect()
}

/// Alters or removes a random row, but no history of the tokens in `apart`; answers what it did.
fn tables(directory: &Path) -> rocksdb::DB {
    let names: Vec<_> = Table::ALL
        .iter()
        .map(|table| table.name())
        .chain(["default"])
        .collect();
    rocksdb::DB::open_cf(&rocksdb::Options::default(), directory.join("rocksdb"), names).unwrap()
}

fn alter(directory: &Path, table: Table, apart: &[u32], random: &mut fastrand::Rng) -> String {
    let rocks = tables(directory);
    let family = rocks.cf_handle(table.name()).unwrap();
    let rows: Vec<_> = rocks
        .iterator_cf(family, rocksdb::IteratorMode::Start)
        .map(|row| row.unwrap())
        .filter(|(key, _)| {
            let of_token = matches!(table, Table::TokenBalances | Table::TokenSupply);
            !(of_token && apart.contains(&u32::from_be_bytes(key[..4].try_into().unwrap())))
        })
        .collect();
    let (key, value) = rows[random.usize(..rows.len())].clone();
    let shown = const_hex::encode(&key);
    if value.is_empty() || random.u8(..4) == 0 {
        rocks.delete_cf(family, &key).unwrap();
        return format!("{}: removed {shown}", table.name());
    }
    let mut altered = value.to_vec();
    let (place, bit) = (random.usize(..altered.len()), random.u8(..8));
    altered[place] ^= 1 << bit;
    rocks.put_cf(family, &key, &altered).unwrap();
    format!(
        "{}: bit {bit} of byte {place} of {} of {shown}",
        table.name(),
        altered.len()
    )
}

fn copy(from: &Path, to: &Path) {
    for entry in walk(from) {
        let target = to.join(entry.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::copy(&entry, target).unwrap();
    }
}

fn walk(directory: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, mut files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| walk(folder)));
    files
}

#[test]
fn no_altered_row_goes_unnoticed() {
    let seed = std::env::var("QUARRY_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| fastrand::u64(..));
    let mut random = fastrand::Rng::with_seed(seed);
    let data_dir = tempfile::tempdir().unwrap();
    let sound = fill(data_dir.path());
    let apart = doubted(&sound);
    assert!(!apart.is_empty());
    for round in 0..5 * COVERED.len() {
        let directory = tempfile::tempdir().unwrap();
        copy(&sound, directory.path());
        let what = alter(
            directory.path(),
            COVERED[round % COVERED.len()],
            &apart,
            &mut random,
        );
        let (_, mismatches) = audit(directory.path(), None);
        assert!(!mismatches.is_empty(), "seed {seed}: unnoticed: {what}");
    }
}

/// What stands before the rows of a run: seven numbers, here of a byte each.
#[test]
fn no_altered_number_of_a_run_goes_unnoticed() {
    let data_dir = tempfile::tempdir().unwrap();
    let sound = fill(data_dir.path());
    for place in 0..7 {
        let directory = tempfile::tempdir().unwrap();
        copy(&sound, directory.path());
        let rocks = tables(directory.path());
        let family = rocks.cf_handle(Table::LogsByEmitter.name()).unwrap();
        let (key, value) = rocks
            .iterator_cf(family, rocksdb::IteratorMode::Start)
            .map(Result::unwrap)
            .find(|(_, value)| value[..7].iter().all(|byte| *byte < 0x80))
            .unwrap();
        let mut altered = value.to_vec();
        altered[place] ^= 1 << 4;
        rocks.put_cf(family, &key, &altered).unwrap();
        drop(rocks);
        let (_, mismatches) = audit(directory.path(), None);
        assert!(!mismatches.is_empty(), "number {place}");
    }
}

#[test]
fn no_flipped_bit_of_an_array_goes_unnoticed() {
    let seed = match std::env::var("QUARRY_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    };
    let mut random = fastrand::Rng::with_seed(seed);
    let data_dir = tempfile::tempdir().unwrap();
    let directory = fill(data_dir.path());
    let view = Store::open(&options(&directory)).unwrap().view();
    let arrays = FlatArray::ALL.map(|array| (array, view.array_len(array)));
    drop(view);
    let mut unnoticed = Vec::new();
    for (array, records) in arrays {
        assert!(records > 0, "the demo has nothing of {}", array.name());
        let path = directory.join(format!("flat/{}.flat", array.name()));
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .unwrap();
        // Bytes of all fields of a record, somewhere; the first record and the last one; more of narrow ones.
        let width = array.width() as u64;
        let step = if width > 20 { 3 } else { 1 };
        let fields = (random.u64(..step)..width).step_by(step as usize);
        let ends = [0, records - 1].map(|record| (record, random.u64(..width)));
        let mut places = ends.to_vec();
        for at in fields.chain(std::iter::repeat_n(0, 8 / array.width())) {
            places.push((random.u64(..records), at));
        }
        for (record, at) in places {
            let (place, bit) = (record * width + at, random.u8(..8));
            let mut byte = [0];
            file.read_exact_at(&mut byte, place).unwrap();
            file.write_all_at(&[byte[0] ^ (1 << bit)], place).unwrap();
            let (_, mismatches) = audit(&directory, None);
            if mismatches.is_empty() {
                unnoticed.push(format!(
                    "{}: bit {bit} of byte {at} of record {record}",
                    array.name()
                ));
            }
            file.write_all_at(&byte, place).unwrap();
        }
    }
    assert_eq!(unnoticed, [""; 0], "seed {seed}");
    assert_eq!(audit(&directory, None).1, []);
}

/// The file of a table of the demo's store, which has one.
fn file_of(directory: &Path, table: Table) -> PathBuf {
    let rocks = directory.join("rocksdb");
    let names: Vec<_> = Table::ALL.iter().map(|table| table.name()).collect();
    let names = names.into_iter().chain(["default"]);
    let db = rocksdb::DB::open_cf_for_read_only(&rocksdb::Options::default(), &rocks, names, false).unwrap();
    let files = db.live_files().unwrap();
    let file = files.iter().find(|file| file.column_family_name == table.name());
    rocks.join(file.unwrap().name.trim_start_matches('/'))
}

#[test]
fn a_table_that_cannot_be_read_ends_no_other_check() {
    let data_dir = tempfile::tempdir().unwrap();
    let directory = fill(data_dir.path());
    let (sound, mismatches) = audit(&directory, None);
    assert_eq!(mismatches, []);
    for table in [
        Table::OpenPostings,
        Table::Supply,
        Table::LogsByBlock,
        Table::LogsByEmitter,
        Table::Hashes,
        Table::Accounts,
        Table::Days,
        Table::TokenBalances,
        Table::TokenStates,
        Table::Funding,
    ] {
        let path = file_of(&directory, table);
        let bytes = std::fs::read(&path).unwrap();
        let mut damaged = bytes.clone();
        damaged[7] ^= 1;
        std::fs::write(&path, damaged).unwrap();
        let (checks, mismatches) = audit(&directory, None);
        std::fs::write(&path, bytes).unwrap();
        let names = |checks: &[Check]| checks.iter().map(|check| check.name).collect::<Vec<_>>();
        assert_eq!(names(&checks), names(&sound), "{}", table.name());
        assert!(!mismatches.is_empty(), "{}", table.name());
        let found: u64 = checks.iter().map(|check| check.mismatches).sum();
        assert_eq!(found, mismatches.len() as u64, "{}", table.name());
        let passed = checks.iter().filter(|check| check.mismatches == 0).count();
        assert!(passed > 0, "{}: {mismatches:?}", table.name());
    }
    assert_eq!(audit(&directory, None).1, []);
}
