//! Files that operators import: prices (CSV and JSON), lists of tokens, and what tells of a contract's sources. Any
//! bytes are taken, refused by entry, or refused as a whole. The first byte chooses.

use std::cell::RefCell;
use std::io::Cursor;
use std::path::Path;

use quarry::import::{Target, Watcher, contracts, prices_of, tokens_of};
use quarry::model::Address;
use quarry::store::ImportWriter;

#[path = "scratch.rs"]
mod scratch;

/// What the first byte chooses of.
pub(crate) const KINDS: u8 = 3;

struct Silent;

impl Watcher for Silent {
    fn progress(&self, _: u64, _: Option<u64>) {}

    fn rejected(&self, entry: &str, reason: &str) {
        assert!(!reason.is_empty(), "`{entry}` is refused without a reason");
    }

    fn left_out(&self, entry: &str, field: &str, reason: &str) {
        assert!(
            !field.is_empty() && !reason.is_empty(),
            "`{entry}` lacks something without a word"
        );
    }
}

struct Importing {
    target: Target,
    directory: tempfile::TempDir,
}

impl Importing {
    fn new() -> Self {
        let (directory, store) = scratch::store();
        Self {
            target: Target {
                view: store.view(),
                writer: ImportWriter::open(store.directory(), &store.identity()).expect("the only importer"),
            },
            directory,
        }
    }
}

thread_local! {
    static IMPORTING: RefCell<Option<Importing>> = const { RefCell::new(None) };
}

/// Imports `data`.
pub(crate) fn run(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    IMPORTING.with_borrow_mut(|kept| {
        let importing = kept.get_or_insert_with(Importing::new);
        let (target, name) = (&importing.target, Path::new("file"));
        let outcome = match kind % KINDS {
            0 => prices_of(target, name, &mut Cursor::new(bytes), &Silent),
            1 => tokens_of(target, name, &mut Cursor::new(bytes), &Silent),
            _ => {
                let path = importing.directory.path().join("source.json");
                std::fs::write(&path, bytes).expect("the file");
                contracts(target, &path, Some(Address::repeat_byte(7)), &Silent)
            }
        };
        if let Ok(report) = outcome {
            assert!(report.changed <= report.taken);
        }
    });
}
