//! Little memory, and readers beside a writer that flushes all the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quarry::store::{OpenOptions, Store};

use crate::plain::{self, ChainConfig};
use crate::{backfill, follow, open, options, scratch};

/// About as long as it takes to open a store: some openings fall between two flushes, most into one.
const PAUSE: Duration = Duration::from_millis(50);
/// How often the store is opened beside its writer.
const OPENINGS: usize = 30;

#[test]
fn a_block_at_the_tip_is_no_reason_to_flush() {
    let bundles = plain::chain(11, 80, &ChainConfig::default());
    let directory = scratch::directory();
    let store = open(directory.path());
    follow(&mut store.writer().unwrap(), &bundles);
    let files = std::fs::read_dir(directory.path().join("rocksdb")).unwrap();
    let tables = files
        .filter(|file| {
            file.as_ref()
                .unwrap()
                .path()
                .extension()
                .is_some_and(|end| end == "sst")
        })
        .count();
    // A flush makes one for each table that has rows, about twenty.
    assert!(tables < 60, "{tables} files for 80 small blocks");
}

#[test]
fn what_a_flush_wrote_is_not_written_again_for_its_own_sake() {
    let bundles = plain::chain(11, 60, &ChainConfig::default());
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    for part in bundles.chunks(10) {
        // The second half is committed on top of what lies in files: its snapshot lets go of the one that they saw.
        let (flushed, after) = part.split_at(5);
        backfill(&mut writer, flushed, 5);
        writer.settle().unwrap();
        backfill(&mut writer, after, 5);
    }
    drop(writer);
    drop(store);
    let log = std::fs::read_to_string(directory.path().join("rocksdb/LOG")).unwrap();
    let flushes = log.matches("\"event\": \"flush_started\"").count();
    let rewritten = log
        .lines()
        .filter(|line| line.contains("compaction_started") && line.contains("BottommostFiles"));
    assert!(flushes > 20, "{flushes} files were written");
    assert_eq!(rewritten.count(), 0);
}

#[test]
fn a_store_is_whole_for_whoever_opens_it_while_it_is_written() {
    let bundles = plain::chain(11, 121, &ChainConfig::default());
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    follow(&mut writer, &bundles[..1]);
    writer.finalize(0).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for pair in bundles[1..].chunks(2) {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                // From logged to unlogged and back: each time everything is flushed, and the log is begun anew.
                follow(&mut writer, &pair[..1]);
                writer.finalize(pair[0].block.number()).unwrap();
                backfill(&mut writer, &pair[1..], 1);
                std::thread::sleep(PAUSE);
            }
        });
        let beside = OpenOptions {
            read_only: true,
            ..options(directory.path())
        };
        // However slow the machine is, some of them fall into the writing: the first begin with it.
        for _ in 0..OPENINGS {
            let view = Store::open(&beside).unwrap().view();
            let head = view.head().unwrap().number;
            for number in 0..=head {
                let expected = &bundles[number as usize].block;
                assert_eq!(view.block(number).unwrap().hash, expected.hash);
                assert_eq!(view.block_number(&expected.hash).unwrap(), Some(number));
                for transaction in &expected.transactions {
                    assert!(view.transaction_ordinal(&transaction.hash).unwrap().is_some());
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
