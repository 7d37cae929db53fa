//! Files of arrays that are not what was written.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use quarry::model::Bundle;
use quarry::store::{
    FlatArray, Look, OpenOptions, Replica, Store, StoreError, Summed, Table, View, from_memory,
};
use rocksdb::{DB, IteratorMode, Options, WriteBatch};

use super::{backfill, digests, follow, open, options, plain, scratch};

/// Blocks enough for several pages of most arrays.
fn chain() -> Vec<Bundle> {
    plain::chain(5, 1_200, &plain::ChainConfig::default())
}

fn reading(directory: &Path) -> OpenOptions {
    OpenOptions {
        read_only: true,
        ..options(directory)
    }
}

fn file_of(directory: &Path, array: FlatArray) -> File {
    let path = directory.join(format!("flat/{}.flat", array.name()));
    File::options().read(true).write(true).open(path).unwrap()
}

/// Changes a byte of a file; the one that was there.
fn change(file: &File, place: u64, by: u8) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, place).unwrap();
    file.write_all_at(&[byte[0] ^ by], place).unwrap();
}

/// Key and value.
type Row = (Box<[u8]>, Box<[u8]>);

/// Rows of `meta` that are of sums.
fn rows_of_sums(directory: &Path, also: impl FnOnce(&DB, &[Box<[u8]>])) -> Vec<Row> {
    let names = Table::ALL.iter().map(|table| table.name());
    let names: Vec<_> = names.chain(["default"]).collect();
    let db = DB::open_cf(&Options::default(), directory.join("rocksdb"), names).unwrap();
    let meta = db.cf_handle(Table::Meta.name()).unwrap();
    let rows = db.iterator_cf(meta, IteratorMode::Start).map(Result::unwrap);
    let rows: Vec<_> = rows.filter(|(key, _)| key.starts_with(b"sums")).collect();
    let keys: Vec<_> = rows.iter().map(|(key, _)| key.clone()).collect();
    also(&db, &keys);
    rows
}

/// Which records of an array can be read.
fn readable(view: &View, array: FlatArray) -> Vec<bool> {
    let records = 0..view.array_len(array);
    records
        .map(|number| match view.array_record(array, number) {
            Ok(_) => true,
            Err(StoreError::DamagedArray(words)) => {
                assert!(words.contains(&format!("`{}.flat`", array.name())), "{words}");
                false
            }
            Err(error) => panic!("{error}"),
        })
        .collect()
}

#[test]
fn a_page_that_is_not_what_was_written_is_not_read_and_all_others_are() {
    let directory = scratch::directory();
    let store = open(directory.path());
    let bundles = chain();
    let (last, final_ones) = bundles.split_last().unwrap();
    // By commits of all sizes, and a block that is not final.
    let (first, rest) = final_ones.split_at(1);
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, first, 1);
    backfill(&mut writer, rest, 350);
    follow(&mut writer, std::slice::from_ref(last));
    drop(writer);
    let whole = digests(&store);
    for array in FlatArray::ALL {
        assert!(readable(&store.view(), array).iter().all(|is| *is), "{array:?}");
    }
    drop(store);
    let mut random = plain::Rng(7);
    let (mut refused, mut several) = (0, 0);
    for array in FlatArray::ALL {
        let view = Store::open(&reading(directory.path())).unwrap().view();
        let sound = readable(&view, array);
        let width = array.width() as u64;
        let in_file = view.finalized().map_or(0, |_| final_records(&view, array));
        drop(view);
        assert!(sound.iter().all(|is| *is), "{array:?}");
        if in_file == 0 {
            continue;
        }
        let file = file_of(directory.path(), array);
        for record in [0, in_file - 1, random.below(in_file)] {
            let (place, by) = (record * width + random.below(width), 1 << random.below(8));
            change(&file, place, by);
            let view = Store::open(&reading(directory.path())).unwrap().view();
            let found = readable(&view, array);
            assert!(!found[record as usize], "{array:?}: record {record} of {in_file}");
            // The page around it, and nothing else: once more, too, for what was refused is not taken for compared.
            assert_eq!(found, readable(&view, array));
            let lost = found.iter().filter(|is| !**is).count();
            assert!(lost as u64 * width <= 32 << 10, "{array:?}: {lost} records");
            assert!(found[in_file as usize..].iter().all(|is| *is), "{array:?}");
            several += usize::from(lost < found.len());
            drop(view);
            // Whoever would write behind it is refused it where it is of the last page.
            match Store::open(&options(directory.path())) {
                Ok(store) => assert!(!readable(&store.view(), array)[record as usize]),
                Err(error) => {
                    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
                    assert!(error.to_string().contains("are not what was written"), "{error}");
                    refused += 1;
                }
            }
            change(&file, place, by);
        }
    }
    assert!(refused > 8 && several > 8, "{refused} {several}");
    assert_eq!(digests(&open(directory.path())), whole);
}

fn final_records(view: &View, array: FlatArray) -> u64 {
    // The last block of the chain is not in the files.
    let all = view.array_len(array);
    let head = view.head().unwrap().number;
    match array {
        FlatArray::Blocks | FlatArray::BlockFrames | FlatArray::BlockEarnings => all - 1,
        FlatArray::LogEmitters | FlatArray::LogSignatures => view.first_log(head).unwrap(),
        FlatArray::TransactionHashes | FlatArray::TransactionStatuses | FlatArray::TransactionSignatures => {
            view.block(head).unwrap().first_transaction
        }
        // Met long before.
        FlatArray::Emitters | FlatArray::Signatures | FlatArray::Tokens => all,
        FlatArray::MultiTransfers => 0,
    }
}

#[test]
fn sums_are_made_where_there_are_none() {
    let directory = scratch::directory();
    let store = open(directory.path());
    let bundles = chain();
    let (before, after) = bundles.split_at(700);
    backfill(&mut store.writer().unwrap(), before, 100);
    drop(store);
    let mut rows = Vec::new();
    let take_off = |db: &DB, keys: &[Box<[u8]>]| {
        let meta = db.cf_handle(Table::Meta.name()).unwrap();
        let mut write = WriteBatch::default();
        keys.iter().for_each(|key| write.delete_cf(meta, key));
        db.write(write).unwrap();
    };
    // As an older quarry leaves it.
    rows.push(rows_of_sums(directory.path(), take_off));
    assert!(rows[0].len() > 6);
    assert!(rows_of_sums(directory.path(), |_, _| ()).is_empty());
    let view = Store::open(&reading(directory.path())).unwrap().view();
    for array in FlatArray::ALL {
        assert!(readable(&view, array).iter().all(|is| *is));
    }
    drop(view);
    // Made where it is opened for writing, the same as if they had been there.
    drop(open(directory.path()));
    rows.push(rows_of_sums(directory.path(), |_, _| ()));
    assert_eq!(rows[0], rows[1]);
    // As one leaves it that goes on without sums: the files are longer than what is summed.
    let older = rows.pop().unwrap();
    let store = open(directory.path());
    backfill(&mut store.writer().unwrap(), after, 500);
    drop(store);
    let newest = rows_of_sums(directory.path(), |db, keys| {
        take_off(db, keys);
        let meta = db.cf_handle(Table::Meta.name()).unwrap();
        let mut write = WriteBatch::default();
        older.iter().for_each(|(key, row)| write.put_cf(meta, key, row));
        db.write(write).unwrap();
    });
    assert_ne!(newest, older);
    drop(open(directory.path()));
    assert_eq!(rows_of_sums(directory.path(), |_, _| ()), newest);
}

#[test]
fn who_must_not_wait_compares_nothing() {
    // On a disk: of what lies in memory alone the system does not say that it is there.
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    backfill(&mut store.writer().unwrap(), &chain(), 400);
    drop(store);
    let view = Store::open(&reading(directory.path())).unwrap().view();
    let read = || view.array_record(FlatArray::Blocks, 3).map(<[u8]>::to_vec);
    assert!(from_memory(read).is_none());
    let record = read().unwrap();
    // Compared now, and in memory.
    assert_eq!(from_memory(read).unwrap().unwrap(), record);
}

#[test]
fn a_replica_keeps_what_it_compared_of_whole_pages() {
    let directory = scratch::directory();
    let store = open(directory.path());
    let bundles = chain();
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..700], 100);
    writer.settle().unwrap();
    let (mut replica, first) = Replica::open(&options(directory.path())).unwrap();
    // 8,192 records a page.
    let array = FlatArray::LogEmitters;
    let sound = readable(&first.view(), array);
    assert!(sound.len() > 10_000 && sound.iter().all(|is| *is));
    let file = file_of(directory.path(), array);
    let width = array.width() as u64;
    follow(&mut writer, &bundles[700..720]);
    writer.finalize(719).unwrap();
    // Of a whole page that was compared nothing is asked again; of the last one, which has grown, it is.
    for record in [3, 9_000] {
        change(&file, record * width, 1);
    }
    let second = loop {
        match replica.look().unwrap() {
            Look::Newer(store) => break store,
            other => assert!(matches!(other, Look::Moving | Look::Same), "{other:?}"),
        }
    };
    let found = readable(&second.view(), array);
    assert!(
        sound.len() < found.len() && found.len() < 2 * 8192,
        "{}",
        found.len()
    );
    assert!(found[..8192].iter().all(|is| *is) && !found[8192..].iter().any(|is| *is));
    // Who begins anew finds both.
    let (_, anew) = Replica::open(&options(directory.path())).unwrap();
    assert!(!readable(&anew.view(), array).iter().any(|is| *is));
}

#[test]
fn sums_that_cannot_be_are_refused() {
    let directory = scratch::directory();
    let store = open(directory.path());
    // Some rows of sums of each array of logs.
    let busy = plain::ChainConfig {
        logs_per_block: 900,
        ..plain::ChainConfig::default()
    };
    let bundles = plain::chain(5, 700, &busy);
    backfill(&mut store.writer().unwrap(), &bundles[..650], 100);
    drop(store);
    let array = FlatArray::LogEmitters;
    let mut all = rows_of_sums(directory.path(), |_, _| ());
    let of_array = |(key, value): &Row| {
        let sums = Summed::of(key, value).unwrap().unwrap();
        (sums.array == array).then_some(sums)
    };
    let summed: Vec<_> = all.iter().filter_map(of_array).collect();
    assert!(summed.len() > 1 && summed[0].pages == 32, "{summed:?}");
    // A row that is not there is missed where others come behind it.
    let at = all.iter().position(|row| of_array(row).is_some()).unwrap();
    rows_of_sums(directory.path(), |db, _| {
        db.delete_cf(db.cf_handle(Table::Meta.name()).unwrap(), &all[at].0)
            .unwrap();
    });
    let view = Store::open(&reading(directory.path())).unwrap().view();
    assert!(matches!(
        view.array_record(array, 1),
        Err(StoreError::Missing { .. })
    ));
    let last = view.array_len(array) - 1;
    view.array_record(array, last).unwrap();
    drop(view);
    // Sums of more records than there are.
    let row = all.swap_remove(at);
    rows_of_sums(directory.path(), |db, _| {
        let meta = db.cf_handle(Table::Meta.name()).unwrap();
        db.put_cf(meta, &row.0, &row.1).unwrap();
    });
    let store = open(directory.path());
    backfill(&mut store.writer().unwrap(), &bundles[650..], 100);
    drop(store);
    let ahead = rows_of_sums(directory.path(), |_, _| ());
    let (last, _) = ahead
        .iter()
        .filter_map(|row| of_array(row).map(|sums| (row, sums)))
        .next_back()
        .unwrap();
    let other = scratch::directory();
    let store = open(other.path());
    backfill(&mut store.writer().unwrap(), &bundles[..650], 100);
    drop(store);
    rows_of_sums(other.path(), |db, _| {
        let meta = db.cf_handle(Table::Meta.name()).unwrap();
        db.put_cf(meta, &last.0, &last.1).unwrap();
    });
    let error = Store::open(&options(other.path())).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("and sums of"), "{error}");
}
