//! The writer cut off at every stage of everything that it does, one after the other.

use crate::support::balances::told;
use crate::support::chain::{Chain, ChainSpec};
use crate::support::{index, scratch};
use crate::watch::{Cut, History, Left, Watch};
use quarry::model::Bundle;
use quarry::store::{OpenOptions, Point, Step, Writer};
use quarry::sync::derive::derive;
use std::collections::BTreeSet;

/// A chain, and the branch that replaces its end.
struct Blocks {
    old: Vec<Bundle>,
    new: Vec<Bundle>,
}

const FORK: usize = 22;

impl Blocks {
    fn new() -> Self {
        let mut chain = Chain::new(ChainSpec::new(31));
        chain.mine(25);
        let old = told(chain.bundles(), 0);
        chain.reorg(26 - FORK as u64, 14);
        Self {
            old,
            new: told(chain.bundles(), 0),
        }
    }

    /// All that a writer can do.
    fn write(&self, writer: &mut Writer) {
        let rules = index::rules(self.old[0].block.hash, 0).nonces;
        let batch = |writer: &mut Writer, bundles: &[Bundle]| {
            let mut batch = writer.batch();
            for bundle in bundles {
                derive(bundle, &rules, &mut batch).unwrap();
            }
            batch
        };
        let final_blocks = |writer: &mut Writer, bundles: &[Bundle]| {
            let batch = batch(writer, bundles);
            writer.commit_final(batch).unwrap();
        };
        final_blocks(writer, &self.old[..8]);
        final_blocks(writer, &self.old[8..16]);
        for bundle in &self.old[16..25] {
            let batch = batch(writer, std::slice::from_ref(bundle));
            writer.commit_unfinal(batch).unwrap();
        }
        writer.finalize(19).unwrap();
        writer.unwind(FORK as u64).unwrap();
        for bundle in &self.new[FORK..27] {
            let batch = batch(writer, std::slice::from_ref(bundle));
            writer.commit_unfinal(batch).unwrap();
        }
        writer.finalize(24).unwrap();
        final_blocks(writer, &self.new[27..33]);
        writer.settle().unwrap();
    }
}

/// What is left when the writer is cut off after so many stages; `None` when it does not come to so many.
fn cut(blocks: &Blocks, home: &std::path::Path, after: u64, power: bool) -> Option<Left> {
    let (directory, to) = (home.join("live"), home.join("left"));
    let _ = std::fs::remove_dir_all(&directory);
    let cut = Cut {
        step: None,
        point: None,
        after,
        power,
        seed: after,
    };
    let watch = Watch::new(&directory, to, Some(cut));
    let options = OpenOptions {
        observer: Some(watch.observer()),
        ..index::options(&directory)
    };
    let store = index::open_with(&options, blocks.old[0].block.hash, 0).unwrap();
    watch.opened(0);
    blocks.write(&mut store.writer().unwrap());
    watch.left()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stage_leaves_whole_blocks() {
    let blocks = Blocks::new();
    let history: History = [&blocks.old, &blocks.new]
        .into_iter()
        .flatten()
        .map(|bundle| (bundle.block.hash, bundle.clone()))
        .collect();
    let genesis = blocks.old[0].block.hash;
    let whole = index::fresh_digest(&blocks.new, 0).await;
    let home = scratch::directory();
    let mut seen = BTreeSet::new();
    for power in [false, true] {
        for after in 0.. {
            let Some(left) = cut(&blocks, home.path(), after, power) else {
                assert!(after > 40, "{after}");
                break;
            };
            seen.insert((left.step, left.point));
            let store = left.check(&history, genesis, 0, &format!("stage {after}")).await;
            // From there it gets to where it would have come.
            let head = store.view().head().map(|head| head.number as usize);
            let common = head.map_or(0, |head| (head + 1).min(FORK));
            let mut writer = store.writer().unwrap();
            if head.is_some_and(|head| blocks.new[head].block.hash != store.view().head().unwrap().hash) {
                writer.unwind(common as u64).unwrap();
            }
            drop(writer);
            let next = store.view().checkpoint().next_block as usize;
            index::import(&store, &blocks.new[next..], genesis).await;
            assert_eq!(store.view().digest().unwrap(), whole, "stage {after}: {left:?}");
        }
    }
    // Nothing was left out.
    let (arrays, others) = (
        [Step::Final, Step::Finalize],
        [Step::Unfinal, Step::Unwind, Step::Settle],
    );
    let of_arrays = [Point::Begun, Point::Grown, Point::Synced, Point::Written];
    let all = arrays
        .iter()
        .flat_map(|step| of_arrays.map(|point| (*step, point)))
        .chain(
            others
                .iter()
                .flat_map(|step| [Point::Begun, Point::Written].map(|point| (*step, point))),
        );
    assert_eq!(seen, all.collect());
}
