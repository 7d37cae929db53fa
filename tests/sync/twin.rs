//! An undisturbed store beside the one that lives: it takes the chain by direct commits, and takes blocks off again.

use crate::support::balances::told;
use crate::support::{index, scratch};
use quarry::model::{B256, Bundle};
use quarry::store::Store;
use std::sync::Arc;

pub(crate) struct Twin {
    store: Arc<Store>,
    first_block: u64,
    _directory: tempfile::TempDir,
}

impl Twin {
    pub(crate) fn new(genesis: B256, first_block: u64) -> Self {
        let directory = scratch::directory();
        Self {
            store: index::open(directory.path(), genesis, first_block).unwrap(),
            first_block,
            _directory: directory,
        }
    }

    /// Goes to where the chain is now; blocks up to `finalized` are never taken off again.
    pub(crate) async fn follow(&self, chain: &[Bundle], finalized: u64) {
        let view = self.store.view();
        let first = self.first_block;
        let mut next = view.checkpoint().next_block;
        let is_theirs = |number: u64| {
            let theirs = chain.get(usize::try_from(number).unwrap());
            theirs.is_some_and(|bundle| bundle.block.hash == view.block(number).unwrap().hash)
        };
        while next > first && !is_theirs(next - 1) {
            next -= 1;
        }
        if next < view.checkpoint().next_block {
            self.store.writer().expect("the one writer").unwind(next).unwrap();
        }
        let new = told(chain, first).split_off(usize::try_from(next).unwrap().min(chain.len()));
        index::add(&self.store, &new, chain[0].block.hash, finalized).await;
    }

    /// Fails, naming what differs, unless `store` holds the same.
    pub(crate) fn equals(&self, store: &Store, what: &str) {
        let (ours, theirs) = (self.store.view(), store.view());
        if ours.digest().unwrap() == theirs.digest().unwrap() {
            return;
        }
        let contents = ours
            .contents()
            .unwrap()
            .into_iter()
            .zip(theirs.contents().unwrap());
        let of_chain = contents.filter(|(one, _)| !matches!(one.name, "tail" | "undo"));
        let different: Vec<_> = of_chain.filter(|(one, other)| one != other).collect();
        panic!("{what}: not the store of an undisturbed run: {different:#?}");
    }

    /// Fails unless it is what a fresh index of the chain is.
    pub(crate) async fn is_fresh(&self, chain: &[Bundle], what: &str) {
        let fresh = index::fresh_digest(chain, self.first_block).await;
        assert_eq!(
            self.store.view().digest().unwrap(),
            fresh,
            "{what}: not a fresh index"
        );
    }
}
