//! Imports into a store of no blocks, and what is left of one that is stopped.

use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::{ImportError, Target, Watcher, prices_of, tokens, tokens_of};
use crate::model::B256;
use crate::store::{ImportWriter, OpenOptions, Store};

/// A store of a chain without blocks, and what is imported beside it.
pub(super) struct Bed {
    pub(super) target: Target,
    _store: Arc<Store>,
    root: tempfile::TempDir,
}

impl Bed {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let options = OpenOptions {
            cache_bytes: 1 << 20,
            memtable_bytes: 8 << 20,
            ..OpenOptions::new(root.path().join("store"))
        };
        let store = Store::open_or_create(&options, 1, B256::ZERO, None).unwrap();
        Self {
            target: Target {
                view: store.view(),
                writer: ImportWriter::open(store.directory(), &store.identity()).unwrap(),
            },
            _store: store,
            root,
        }
    }
}

/// Keeps reasons, and may stop the import when it was asked some times.
#[derive(Default)]
pub(super) struct Watch {
    reasons: Mutex<Vec<String>>,
    asked: AtomicU64,
    stops_after: Option<u64>,
}

impl Watch {
    fn stopping_after(asked: u64) -> Self {
        Self {
            stops_after: Some(asked),
            ..Self::default()
        }
    }

    pub(super) fn reasons(&self) -> Vec<String> {
        self.reasons.lock().unwrap().clone()
    }
}

impl Watcher for Watch {
    fn progress(&self, _done: u64, _of: Option<u64>) {}

    fn rejected(&self, _entry: &str, reason: &str) {
        self.reasons.lock().unwrap().push(reason.to_owned());
    }

    fn left_out(&self, _entry: &str, _field: &str, _reason: &str) {}

    fn stopped(&self) -> bool {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.stops_after.is_some_and(|after| asked >= after)
    }
}

/// Of these, the ones that are there already leave so few others in a batch that they wait.
#[test]
fn prices_that_wait_are_kept_when_an_import_is_stopped() {
    let bed = Bed::new();
    let import = |until: u64, watch: &Watch| {
        let mut text = "time,asset,usd\n".to_owned();
        for time in 0..until {
            text += &format!("{time},native,3\n");
        }
        let done = prices_of(&bed.target, Path::new("x"), &mut Cursor::new(text), watch);
        done.map(|report| (report.taken, report.changed))
    };
    assert_eq!(import(15_000, &Watch::default()).unwrap(), (15_000, 15_000));
    // The first reading asks at each entry, the second one at each batch of 20,000.
    let stopped = import(25_000, &Watch::stopping_after(25_000)).unwrap_err();
    assert!(matches!(stopped, ImportError::Interrupted), "{stopped}");
    assert_eq!(import(25_000, &Watch::default()).unwrap(), (25_000, 5_000));
}

#[test]
fn tokens_that_wait_are_kept_when_an_import_is_stopped() {
    let bed = Bed::new();
    let list = |of: std::ops::Range<u64>| {
        let entries = of.map(|of| format!("{{\"address\":\"0x{of:040x}\",\"symbol\":\"T{of}\"}}"));
        format!("[{}]", entries.collect::<Vec<_>>().join(","))
    };
    let import = |until: u64, watch: &Watch| {
        let mut text = Cursor::new(list(0..until));
        let done = tokens_of(&bed.target, Path::new("x"), &mut text, watch);
        done.map(|report| (report.taken, report.changed))
    };
    assert_eq!(import(1_500, &Watch::default()).unwrap(), (1_500, 1_500));
    let stopped = import(2_500, &Watch::stopping_after(2_500)).unwrap_err();
    assert!(matches!(stopped, ImportError::Interrupted), "{stopped}");
    assert_eq!(import(2_500, &Watch::default()).unwrap(), (2_500, 500));

    // What one file of a directory told waits while the next one is read.
    let lists = bed.root.path().join("lists");
    std::fs::create_dir(&lists).unwrap();
    std::fs::write(lists.join("a.json"), list(5_000..5_003)).unwrap();
    std::fs::write(lists.join("b.json"), list(6_000..6_002)).unwrap();
    let stopped = tokens(&bed.target, &lists, &Watch::stopping_after(3)).unwrap_err();
    assert!(matches!(stopped, ImportError::Interrupted), "{stopped}");
    let report = tokens(&bed.target, &lists, &Watch::default()).unwrap();
    assert_eq!((report.taken, report.changed), (5, 2));
}
