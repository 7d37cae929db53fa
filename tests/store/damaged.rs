//! Stores that lack a part.

use quarry::store::{OpenOptions, Store, StoreError};

use super::{backfill, open, options, plain, scratch};

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
