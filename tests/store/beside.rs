//! Commits that are under way while the next batch is derived.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};

use quarry::model::{B256, Bundle};
use quarry::store::{Batch, Observer, OpenOptions, Point, Step, Store, StoreError, Writer};
use quarry::sync::derive::derive;

use crate::plain::{self, ChainConfig, Rng};
use crate::{backfill, digests, follow, open, open_with, options, rules, scratch};

/// Where commits of final blocks wait until they are let through.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn set(&self, open: bool) {
        *self.open.lock().unwrap() = open;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let open = self.open.lock().unwrap();
        drop(self.changed.wait_while(open, |open| !*open).unwrap());
    }
}

fn watched(directory: &Path, observer: Observer) -> Arc<Store> {
    let options = OpenOptions {
        observer: Some(observer),
        ..options(directory)
    };
    open_with(&options)
}

/// A store whose commits of final blocks wait at a gate.
fn gated(directory: &Path) -> (Arc<Store>, Arc<Gate>) {
    let gate = Arc::new(Gate::default());
    let theirs = Arc::clone(&gate);
    let observer = Observer::new(move |stage| {
        if (stage.step, stage.point) == (Step::Final, Point::Begun) {
            theirs.pass();
        }
    });
    (watched(directory, observer), gate)
}

/// The tables of a store that took final blocks in one batch, and the blocks after them one by one.
fn expected(finals: &[Bundle], unfinal: &[Bundle]) -> Vec<(&'static str, u64, B256)> {
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    backfill(&mut writer, finals, finals.len());
    follow(&mut writer, unfinal);
    digests(&store)
}

fn batch(writer: &mut Writer, bundles: &[Bundle]) -> Batch {
    let mut batch = writer.batch();
    for bundle in bundles {
        derive(bundle, &rules(), &mut batch).unwrap();
    }
    batch
}

#[test]
fn a_batch_goes_on_from_one_that_no_reader_sees_yet() {
    let mut rng = Rng(23);
    for seed in [3, 17, 40] {
        let config = ChainConfig {
            logs_per_block: 30,
            emitters: 6,
            ..ChainConfig::default()
        };
        let bundles = plain::chain(seed, 90, &config);
        let directory = scratch::directory();
        let (store, gate) = gated(directory.path());
        let mut writer = store.writer().unwrap();
        let mut rest = bundles.as_slice();
        let mut stored = None;
        while !rest.is_empty() {
            let (now, later) = rest.split_at((1 + rng.below(12) as usize).min(rest.len()));
            // Nothing of the commit under way is in the store while this batch is derived.
            assert_eq!(store.view().head().map(|head| head.number), stored);
            let next = batch(&mut writer, now);
            gate.set(true);
            writer.wait().unwrap();
            stored = store.view().head().map(|head| head.number);
            gate.set(false);
            writer.begin_commit(next).unwrap();
            assert_eq!(
                writer.checkpoint().next_block,
                now.last().unwrap().block.number() + 1
            );
            rest = later;
        }
        gate.set(true);
        writer.wait().unwrap();
        assert_eq!(digests(&store), expected(&bundles, &[]), "seed {seed}");
    }
}

#[test]
fn a_step_that_is_not_a_commit_waits_for_the_one_under_way() {
    let bundles = plain::chain(8, 30, &ChainConfig::default());
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    let first = batch(&mut writer, &bundles[..20]);
    writer.begin_commit(first).unwrap();
    // Derived from a commit that may be under way, and written after it.
    follow(&mut writer, &bundles[20..]);
    assert_eq!(digests(&store), expected(&bundles[..20], &bundles[20..]));
    writer.unwind(25).unwrap();
    assert_eq!(writer.checkpoint().next_block, 25);
    drop(writer);
    assert_eq!(store.writer().unwrap().checkpoint().next_block, 25);
}

#[test]
fn a_batch_that_went_on_from_elsewhere_is_refused_and_the_writer_goes_on() {
    let bundles = plain::chain(9, 24, &ChainConfig::default());
    let directory = scratch::directory();
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    let (first, twin) = (
        batch(&mut writer, &bundles[..10]),
        batch(&mut writer, &bundles[..12]),
    );
    writer.begin_commit(first).unwrap();
    writer.begin_commit(twin).unwrap();
    // Made from the twin, which is about to be refused.
    let orphan = batch(&mut writer, &bundles[12..14]);
    let refused = writer.wait().unwrap_err();
    assert!(
        matches!(refused, StoreError::OutOfOrder { found: 0, wanted: 10 }),
        "{refused}"
    );
    assert_eq!(writer.checkpoint().next_block, 10);
    let refused = writer.commit_final(orphan).unwrap_err();
    assert!(
        matches!(
            refused,
            StoreError::OutOfOrder {
                found: 12,
                wanted: 10
            }
        ),
        "{refused}"
    );
    backfill(&mut writer, &bundles[10..], 14);
    assert_eq!(digests(&store), expected(&bundles, &[]));
}

#[test]
fn a_commit_whose_thread_dies_leaves_the_batches_before_it() {
    let bundles = plain::chain(10, 20, &ChainConfig::default());
    let directory = scratch::directory();
    let store = watched(
        directory.path(),
        Observer::new(|stage| {
            // A panic that says nothing: it is meant.
            if (stage.step, stage.point, stage.next_block) == (Step::Final, Point::Begun, 15) {
                std::panic::resume_unwind(Box::new("a commit that dies"));
            }
        }),
    );
    let mut writer = store.writer().unwrap();
    let first = batch(&mut writer, &bundles[..8]);
    writer.begin_commit(first).unwrap();
    let second = batch(&mut writer, &bundles[8..15]);
    writer.begin_commit(second).unwrap();
    let third = batch(&mut writer, &bundles[15..]);
    assert!(writer.begin_commit(third).is_err());
    assert!(writer.wait().is_ok(), "it is said once");
    assert!(writer.settle().is_err());
    drop(writer);
    assert!(store.writer().is_none(), "how the store stands is not known");
    assert_eq!(store.view().checkpoint().next_block, 8);
    drop(store);
    let store = open(directory.path());
    let mut writer = store.writer().unwrap();
    let next = writer.checkpoint().next_block;
    assert!([0, 8].contains(&next), "{next}");
    backfill(&mut writer, &bundles[next as usize..], 20);
    assert_eq!(digests(&store), expected(&bundles, &[]));
}

#[test]
fn nonces_are_told_while_their_commit_is_under_way_and_after_it() {
    let bundles = plain::chain(12, 30, &ChainConfig::default());
    let directory = scratch::directory();
    let (store, gate) = gated(directory.path());
    let mut writer = store.writer().unwrap();
    let mut first = batch(&mut writer, &bundles[..10]);
    let creator = crate::account(7_000);
    first.set_nonce(&creator, 9, 41).unwrap();
    let sent = bundles[..10].iter().flat_map(|bundle| &bundle.block.transactions);
    let last = sent.last().expect("a transaction");
    let tells = |batch: &Batch| {
        let base = batch.base();
        let sent = batch.sent_nonce(&last.from, &base).unwrap();
        (batch.nonce(&creator).unwrap(), sent, base.checkpoint().next_block)
    };
    let sent = Some(last.nonce + 1);
    assert_eq!(tells(&first), (Some(41), sent, 0));
    writer.begin_commit(first).unwrap();
    let second = writer.batch();
    assert_eq!(tells(&second), (Some(41), sent, 0));
    gate.set(true);
    writer.wait().unwrap();
    // Made before the end of the commit, asked after it; and made after it.
    assert_eq!(tells(&second), (Some(41), sent, 10));
    drop(second);
    let third = writer.batch();
    assert_eq!(tells(&third), (Some(41), sent, 10));
}
