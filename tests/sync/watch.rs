//! Stands beside a writer and, at a chosen point of its work, takes what a kill or a power cut would leave.

use crate::support::image;
use crate::support::index::{self, fresh_digest};
use fastrand::Rng;
use quarry::model::{B256, Bundle};
use quarry::store::{Observer, Point, Stage, Step, Store};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// Where to cut, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Only at this step; at any without it.
    pub(crate) step: Option<Step>,
    /// Only at this point of it.
    pub(crate) point: Option<Point>,
    /// Fitting stages that pass first.
    pub(crate) after: u64,
    /// Whether what was not forced to disk is lost too.
    pub(crate) power: bool,
    pub(crate) seed: u64,
}

/// What was left.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub(crate) directory: PathBuf,
    pub(crate) step: Step,
    pub(crate) point: Point,
    pub(crate) power: bool,
    /// The block that comes next in it is one of these, or lies between them.
    pub(crate) next: (u64, u64),
    /// What the power took, for the message of a failure.
    #[expect(dead_code, reason = "shown by its Debug")]
    pub(crate) lost: String,
}

/// Blocks by their hash.
pub(crate) type History = HashMap<B256, Bundle>;

impl Left {
    /// It opens, with whole blocks up to where it must, each of which is in `history`. Answers the open store.
    pub(crate) async fn check(
        &self,
        history: &History,
        genesis: B256,
        first_block: u64,
        what: &str,
    ) -> Arc<Store> {
        let opened = index::open(&self.directory, genesis, first_block);
        let store = opened.unwrap_or_else(|error| panic!("{what}: {self:?}: {error}"));
        let view = store.view();
        let next = view.checkpoint().next_block;
        assert!(
            (self.next.0..=self.next.1).contains(&next),
            "{what}: block {next} comes next: {self:?}"
        );
        let Some(head) = view.head() else {
            assert_eq!(next, first_block, "{what}: {self:?}");
            return store;
        };
        let mut chain = Vec::new();
        let mut hash = head.hash;
        while let Some(bundle) = history.get(&hash) {
            chain.push(bundle.clone());
            hash = bundle.block.header.parent_hash;
        }
        chain.reverse();
        assert_eq!(
            chain.len() as u64,
            next,
            "{what}: a head that the node had: {self:?}"
        );
        let fresh = fresh_digest(&chain, first_block).await;
        assert_eq!(
            view.digest().unwrap(),
            fresh,
            "{what}: not whole blocks: {self:?}"
        );
        store
    }
}

struct State {
    directory: PathBuf,
    to: PathBuf,
    cut: Option<Cut>,
    left: Option<Left>,
    /// The block that comes next after what is sure to outlive a kill, and after what was written at all.
    durable: u64,
    written: u64,
    /// Lengths of RocksDB's logs when the last write was forced to disk.
    logs: BTreeMap<String, u64>,
}

/// One open store's watch.
#[derive(Clone)]
pub(crate) struct Watch(Arc<Mutex<State>>);

impl Watch {
    /// Watches the store in `directory`; what is left goes to `to`.
    pub(crate) fn new(directory: &Path, to: PathBuf, cut: Option<Cut>) -> Self {
        Self(Arc::new(Mutex::new(State {
            directory: directory.to_path_buf(),
            to,
            cut,
            left: None,
            durable: 0,
            written: 0,
            logs: BTreeMap::new(),
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn observer(&self) -> Observer {
        let watch = self.clone();
        Observer::new(move |stage| watch.state().reached(stage))
    }

    /// The store was opened, and this block comes next: all of it is on disk.
    pub(crate) fn opened(&self, next_block: u64) {
        let mut state = self.state();
        (state.durable, state.written) = (next_block, next_block);
        state.logs = image::logs(&state.directory);
    }

    /// Cuts at the next stage that fits.
    pub(crate) fn arm(&self, cut: Cut) {
        let mut state = self.state();
        if state.left.is_none() {
            state.cut = Some(cut);
        }
    }

    /// Waits for no cut any more.
    pub(crate) fn disarm(&self) {
        self.state().cut = None;
    }

    /// A cut that did not come yet.
    pub(crate) fn armed(&self) -> Option<Cut> {
        self.state().cut
    }

    pub(crate) fn left(&self) -> Option<Left> {
        self.state().left.clone()
    }
}

impl State {
    fn reached(&mut self, stage: &Stage) {
        // What is written without the log is in memory until it is settled.
        let logged = stage.point == Point::Written && stage.step != Step::Final;
        if let Some(cut) = &mut self.cut
            && cut.step.is_none_or(|step| step == stage.step)
            && cut.point.is_none_or(|point| point == stage.point)
        {
            if cut.after == 0 {
                let cut = *cut;
                self.cut = None;
                self.left = Some(self.take(cut, stage, logged));
            } else {
                cut.after -= 1;
            }
        }
        if stage.point == Point::Written {
            self.written = stage.next_block;
        }
        if logged {
            self.durable = stage.next_block;
            self.logs = image::logs(&self.directory);
        }
    }

    fn take(&self, cut: Cut, stage: &Stage, logged: bool) -> Left {
        image::take(&self.directory, &self.to);
        let mut next = (self.durable, self.written);
        if stage.point == Point::Written {
            next.1 = stage.next_block;
        }
        // A kill loses nothing that RocksDB was given with its log; a power cut may come in the middle of it. What is
        // settled lies in tables, forced to disk before they count.
        if logged && (!cut.power || stage.step == Step::Settle) {
            next.0 = stage.next_block;
        }
        let mut lost = String::new();
        if cut.power {
            let mut rng = Rng::with_seed(cut.seed);
            lost = image::cut_power(&self.to, &self.logs, &stage.synced, &mut rng);
        }
        Left {
            directory: self.to.clone(),
            step: stage.step,
            point: stage.point,
            power: cut.power,
            next: (next.0.min(next.1), next.0.max(next.1)),
            lost,
        }
    }
}
