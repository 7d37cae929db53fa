//! Stores that lack a part, or end in garbage.

use std::fs::OpenOptions as Files;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use quarry::model::{B256, ImportKind, ImportRecord};
use quarry::store::{ImportWriter, Imported, OpenOptions, Replica, Store, StoreError, copy_store};

use super::image;
use super::{backfill, digests, follow, open, options, plain, scratch};

/// Readers and writers are told which part is not whole and what to do, and leave what they found as it was.
#[test]
fn a_store_that_lacks_arrays_is_refused_with_a_way_out() {
    let directory = scratch::directory();
    let store = open(directory.path());
    let bundles = plain::chain(3, 12, &plain::ChainConfig::default());
    backfill(&mut store.writer().unwrap(), &bundles, 12);
    drop(store);
    let whole = options(directory.path());
    let ways = [
        whole.clone(),
        OpenOptions {
            read_only: true,
            ..whole.clone()
        },
    ];
    let flats = directory.path().join("flat");
    let mut refused = 0;
    for file in std::fs::read_dir(&flats).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in [true, false] {
            if cut {
                std::fs::write(&path, []).unwrap();
            } else {
                std::fs::remove_file(&path).unwrap();
            }
            for way in &ways {
                // An array without a record lacks nothing.
                let Err(error) = Store::open(way) else { continue };
                assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
                let words = error.to_string();
                let found = if cut { "has 0 of" } else { "is not there" };
                assert!(
                    words.contains(&format!("`{name}` {found}"))
                        && words.contains("quarry checkpoint restore"),
                    "{words}"
                );
                assert_eq!(path.exists(), cut, "{name} after {way:?}");
                refused += 1;
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
    // Blocks, transactions and logs at the least, in both ways and twice.
    assert!(refused >= 12, "{refused}");
    drop(Store::open(&whole).unwrap());
}

/// RocksDB takes a directory without `CURRENT` for a new one and deletes the tables in it.
#[test]
fn a_store_that_lacks_the_file_which_leads_to_its_tables_is_left_as_it_is() {
    let home = scratch::directory();
    let live = home.path().join("live");
    let whole = filled(&live);
    let database = live.join("rocksdb");
    let names = || {
        let entries = std::fs::read_dir(&database).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let current = database.join("CURRENT");
    let kept = std::fs::read(&current).unwrap();
    std::fs::remove_file(&current).unwrap();
    let before = names();
    let writing = options(&live);
    let reading = OpenOptions {
        read_only: true,
        ..writing.clone()
    };
    // Each twice: what RocksDB makes of the directory shows the second time.
    for _ in 0..2 {
        for error in [
            Store::open_or_create(&writing, 7, B256::repeat_byte(1), Some(0)).unwrap_err(),
            Store::open(&writing).unwrap_err(),
            Store::open(&reading).unwrap_err(),
            Replica::open(&reading).unwrap_err(),
            copy_store(&live, &home.path().join("copy"), &|| false).unwrap_err(),
        ] {
            let words = error.to_string();
            assert!(
                matches!(error, StoreError::Damaged { .. })
                    && words.contains("CURRENT` is missing")
                    && words.contains("quarry checkpoint restore"),
                "{words}"
            );
        }
        assert_eq!(names(), before);
    }
    std::fs::write(&current, kept).unwrap();
    assert_eq!(shown(&Store::open(&writing).unwrap()), whole);

    // What a process leaves that was killed while it made a store is none.
    let begun = home.path().join("begun");
    std::fs::create_dir_all(begun.join("rocksdb")).unwrap();
    std::fs::write(begun.join("rocksdb/MANIFEST-000001"), []).unwrap();
    let absent = Store::open(&options(&begun)).unwrap_err();
    assert!(matches!(absent, StoreError::Absent { .. }), "{absent}");
    drop(open(&begun));
}

/// The newest log of writes in a database's directory.
fn last_log(database: &Path) -> PathBuf {
    let names = std::fs::read_dir(database)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let logs = names.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
    logs.max().unwrap()
}

/// What a power cut may leave behind the last synced record: a header of each type, and bytes of no meaning. RocksDB reads a record
/// of a type that only reused logs have for ever.
#[test]
fn garbage_of_any_type_behind_the_log_is_left_out() {
    let home = scratch::directory();
    let live = home.path().join("live");
    let store = open(&live);
    let bundles = plain::chain(3, 24, &plain::ChainConfig::default());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, &bundles[..12], 12);
    follow(&mut writer, &bundles[12..]);
    let whole = digests(&store);
    let torn = home.path().join("torn");
    for kind in (0..=14).chain([127, 128, 130, 131, 132, 255]) {
        // As it is while the writer lives: killed, and the end of the last write is not what was written.
        let _ = std::fs::remove_dir_all(&torn);
        image::take(&live, &torn);
        let log = last_log(&torn.join("rocksdb"));
        let garbage: Vec<u8> = (0..50).flat_map(|at: u8| [at, 77, 3, 9, 40, 0, kind]).collect();
        let mut file = Files::new().append(true).open(&log).unwrap();
        file.write_all(&garbage).unwrap();
        drop(file);
        let reading = OpenOptions {
            read_only: true,
            ..options(&torn)
        };
        let endless = matches!(kind, 5..=8 | 11 | 131);
        if endless {
            // Readers change nothing.
            let before = std::fs::read(&log).unwrap();
            for error in [
                Store::open(&reading).unwrap_err(),
                Replica::open(&reading).unwrap_err(),
            ] {
                let words = error.to_string();
                assert!(
                    matches!(error, StoreError::Torn { .. }) && words.contains("quarry sync"),
                    "{words}"
                );
            }
            assert_eq!(std::fs::read(&log).unwrap(), before);
        } else {
            assert_eq!(digests(&Store::open(&reading).unwrap()), whole, "{kind}");
        }
        // A copy is settled as a writer would settle it, and what it was made of stays as it was.
        let copy = home.path().join(format!("copy-{kind}"));
        copy_store(&torn, &copy, &|| false).unwrap();
        assert_eq!(digests(&Store::open(&options(&copy)).unwrap()), whole, "{kind}");
        // A writer goes on.
        let opened = Store::open(&options(&torn)).unwrap();
        assert_eq!(digests(&opened), whole, "{kind}");
        assert_eq!(opened.writer().unwrap().checkpoint().next_block, 24);
    }
}

/// The tables of a database by name, and how long they are.
fn tables(database: &Path) -> Vec<(PathBuf, u64)> {
    let files = std::fs::read_dir(database)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let tables = files.filter(|path| path.extension().is_some_and(|ending| ending == "sst"));
    let mut tables: Vec<_> = tables
        .map(|path| (path.clone(), path.metadata().unwrap().len()))
        .collect();
    tables.sort();
    tables
}

/// A store that was filled in one session and closed, and its digests.
fn filled(directory: &Path) -> Vec<String> {
    let store = open(directory);
    let bundles = plain::chain(3, 40, &plain::ChainConfig::default());
    backfill(&mut store.writer().unwrap(), &bundles, 20);
    shown(&store)
}

/// Its digests, in words.
fn shown(store: &Store) -> Vec<String> {
    digests(store)
        .iter()
        .map(|digest| format!("{digest:?}"))
        .collect()
}

#[track_caller]
fn assert_damaged(error: &StoreError, words: &[&str]) {
    let said = error.to_string();
    assert!(matches!(error, StoreError::Damaged { .. }), "{said}");
    for word in words.iter().chain(&["is damaged", "quarry checkpoint restore"]) {
        assert!(said.contains(word), "`{word}` is not in: {said}");
    }
}

/// With a limit on open files RocksDB looks at some tables when it opens a database, and at the others when they are read.
#[test]
fn a_writer_does_not_begin_on_a_store_that_lacks_tables() {
    let home = scratch::directory();
    let live = home.path().join("live");
    let whole = filled(&live);
    let writing = options(&live);
    let all = tables(&live.join("rocksdb"));
    assert!(all.len() > 16, "{all:?}");
    for (path, bytes) in &all {
        let name = path.file_name().unwrap().to_str().unwrap();
        let kept = std::fs::read(path).unwrap();
        for cut in [None, Some(bytes - 1), Some(0)] {
            match cut {
                None => std::fs::remove_file(path).unwrap(),
                Some(cut) => Files::new().write(true).open(path).unwrap().set_len(cut).unwrap(),
            }
            let before = tables(&live.join("rocksdb"));
            for error in [
                Store::open(&writing).unwrap_err(),
                Store::open_or_create(&writing, 7, B256::repeat_byte(1), Some(0)).unwrap_err(),
                copy_store(&live, &home.path().join("copy"), &|| false).unwrap_err(),
            ] {
                assert_damaged(&error, &[name]);
            }
            assert_eq!(tables(&live.join("rocksdb")), before);
            std::fs::write(path, &kept).unwrap();
        }
    }
    let opened = Store::open(&writing).unwrap();
    assert_eq!(shown(&opened), whole);
}

/// RocksDB takes a manifest that lost its end for what it was before, which may be a new one: it would delete all tables.
#[test]
fn a_store_whose_manifest_lost_its_end_is_left_as_it_is() {
    let home = scratch::directory();
    let live = home.path().join("live");
    let whole = filled(&live);
    let database = live.join("rocksdb");
    let current = std::fs::read_to_string(database.join("CURRENT")).unwrap();
    let manifest = database.join(current.trim_end());
    let kept = std::fs::read(&manifest).unwrap();
    let all = tables(&database);
    let writing = options(&live);
    let reading = OpenOptions {
        read_only: true,
        ..writing.clone()
    };
    let ends = (0..12).map(|part| kept.len() * part / 12);
    for end in ends.chain([kept.len() - 1, kept.len() - 40]) {
        std::fs::write(&manifest, &kept[..end]).unwrap();
        for error in [
            Store::open(&writing).unwrap_err(),
            Store::open_or_create(&writing, 7, B256::repeat_byte(1), Some(0)).unwrap_err(),
            // Another chain's node, which a blank store would be filled from.
            Store::open_or_create(&writing, 8, B256::repeat_byte(2), Some(0)).unwrap_err(),
            Store::open(&reading).unwrap_err(),
            Replica::open(&reading).unwrap_err(),
            copy_store(&live, &home.path().join("copy"), &|| false).unwrap_err(),
            quarry::store::migrate(&writing).unwrap_err(),
        ] {
            assert_damaged(&error, &[]);
        }
        assert_eq!(tables(&database), all, "{end} of {}", kept.len());
        assert_eq!(std::fs::read(&manifest).unwrap(), &kept[..end]);
    }
    std::fs::write(&manifest, &kept).unwrap();
    let opened = Store::open(&writing).unwrap();
    assert_eq!(shown(&opened), whole);
    drop(opened);

    // One that nothing was ever written to is anybody's.
    let blank = home.path().join("blank");
    drop(open(&blank));
    drop(Store::open_or_create(&options(&blank), 8, B256::repeat_byte(2), Some(5)).unwrap());
    assert_eq!(Store::open(&options(&blank)).unwrap().identity().chain_id, 8);
}

/// Imports are told of in their own words, and no service or writer of the chain is kept from its work by them.
#[test]
fn damaged_imports_are_told_and_left_as_they_are() {
    let home = scratch::directory();
    let live = home.path().join("live");
    drop(filled(&live));
    let writing = options(&live);
    let store = Store::open(&writing).unwrap();
    let writer = ImportWriter::open(&live, &store.identity()).unwrap();
    writer.write(&[(vec![2, 7, 7], Some(b"a row".to_vec()))]).unwrap();
    let record = ImportRecord {
        kind: ImportKind::Prices,
        source: "prices.csv".to_owned(),
        time: 1,
        taken: 1,
        rejected: 0,
    };
    writer.finish(&record).unwrap();
    drop(writer);
    let identity = store.identity();
    drop(store);
    let imports = live.join("imports");
    let kept = home.path().join("kept");
    image::copy(&imports, &kept).unwrap();
    let current = std::fs::read_to_string(imports.join("CURRENT")).unwrap();
    let told = |what: &str| {
        let before = image_of(&imports);
        let copy = home.path().join("copy");
        let mut errors = vec![copy_store(&live, &copy, &|| false).unwrap_err()];
        errors.push(ImportWriter::open(&live, &identity).unwrap_err());
        for error in errors {
            let said = error.to_string();
            assert!(
                matches!(error, StoreError::DamagedImports { .. })
                    && said.contains("remove the directory and import again"),
                "{what}: {said}"
            );
        }
        let _ = std::fs::remove_dir_all(copy);
        assert!(Imported::follow(&live, &identity).records().unwrap().is_empty());
        // The chain itself is written and read.
        drop(Store::open(&writing).unwrap());
        assert_eq!(image_of(&imports), before, "{what}");
    };
    let again = || {
        if imports.is_dir() {
            std::fs::remove_dir_all(&imports).unwrap();
        } else {
            std::fs::remove_file(&imports).unwrap();
        }
        image::copy(&kept, &imports).unwrap();
    };
    std::fs::remove_file(imports.join("CURRENT")).unwrap();
    told("CURRENT is gone");
    again();
    let manifest = imports.join(current.trim_end());
    let whole = std::fs::read(&manifest).unwrap();
    // Within the words on the table, which name its last key.
    let table = whole.windows(3).position(|bytes| bytes == [2, 7, 7]).unwrap();
    std::fs::write(&manifest, &whole[..table]).unwrap();
    // A log that is still there would tell all that the manifest tells no more.
    for entry in std::fs::read_dir(&imports).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "log") {
            std::fs::remove_file(path).unwrap();
        }
    }
    told("the manifest lost its end");
    again();
    for (table, _) in tables(&imports) {
        std::fs::remove_file(table).unwrap();
    }
    told("tables are gone");
    std::fs::remove_dir_all(&imports).unwrap();
    std::fs::write(&imports, b"a file").unwrap();
    told("a file");
    again();
    assert_eq!(Imported::follow(&live, &identity).records().unwrap(), [record]);
    drop(ImportWriter::open(&live, &identity).unwrap());
}

/// The files of a directory but for diaries, with what is in them.
fn image_of(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<_> = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with("LO"))
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// What a replica says has nothing to do with a node, which it does not have.
#[test]
fn a_replica_does_not_follow_the_store_of_another_chain() {
    let home = scratch::directory();
    let live = home.path().join("live");
    drop(filled(&live));
    let (mut replica, _) = Replica::open(&options(&live)).unwrap();
    std::fs::rename(&live, home.path().join("away")).unwrap();
    drop(Store::open_or_create(&options(&live), 8, B256::repeat_byte(2), Some(0)).unwrap());
    let error = replica.look().unwrap_err();
    let said = error.to_string();
    assert!(
        matches!(error, StoreError::Exchanged { .. })
            && said.contains("of chain id 8")
            && said.contains("serves that of chain id 7")
            && !said.contains("node"),
        "{said}"
    );
}

/// A file that may not be read is no reason to mount anything for writing.
#[test]
fn a_store_that_may_not_be_read_says_so() {
    let home = scratch::directory();
    let live = home.path().join("live");
    drop(filled(&live));
    let (table, _) = tables(&live.join("rocksdb")).remove(0);
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o0);
    std::fs::set_permissions(&table, closed).unwrap();
    // Root may read everything.
    if std::fs::read(&table).is_err() {
        let reading = OpenOptions {
            read_only: true,
            ..options(&live)
        };
        let error = Store::open(&reading).unwrap_err();
        assert!(matches!(error, StoreError::NotReadable { .. }), "{error}");
    }
}
