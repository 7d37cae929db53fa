//! A source of blocks in the same process that is of several minds: what it gives for a moment never becomes final.

use crate::genesis::{add, digest_with_genesis};
use crate::rig::rules_with_genesis;
use crate::support::chain::{Chain, ChainSpec, another};
use crate::support::index::{self, until};
use crate::support::scratch;
use quarry::model::{B256, Bundle};
use quarry::shutdown::pair;
use quarry::status::ChainStatus;
use quarry::sync::{BlockSource, FollowOptions, Follower, SourceFuture, SourceHead};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const FINAL: u64 = 60;

struct Source {
    chain: Vec<Bundle>,
    /// What it gives once in the place of a block.
    instead: Mutex<BTreeMap<u64, Bundle>>,
    /// What it says so many times in the place of a block's hash.
    said: Mutex<Option<(u64, B256, u32)>>,
}

impl BlockSource for Source {
    fn head(&self) -> SourceFuture<'_, Option<SourceHead>> {
        let head = SourceHead {
            number: self.chain.len() as u64 - 1,
            finalized: Some(FINAL),
        };
        Box::pin(async move { Ok(Some(head)) })
    }

    fn hash(&self, number: u64) -> SourceFuture<'_, Option<B256>> {
        let said = match &mut *self.said.lock().unwrap() {
            Some((of, hash, times)) if *of == number && *times > 0 => {
                *times -= 1;
                Some(*hash)
            }
            _ => None,
        };
        let bundle = self.chain.get(number as usize);
        let hash = said.or(bundle.map(|bundle| bundle.block.hash));
        Box::pin(async move { Ok(hash) })
    }

    fn bundle(&self, number: u64) -> SourceFuture<'_, Option<Bundle>> {
        let instead = self.instead.lock().unwrap().remove(&number);
        let bundle = instead.or_else(|| self.chain.get(number as usize).cloned());
        Box::pin(async move { Ok(bundle) })
    }
}

/// Follows a chain of 80 blocks in the place of some of which it gets these first. The store has some that are not final, the last of which the
/// source seems to have when it is asked the first times.
async fn follow(
    chain: &Chain,
    (stored, times): (&[Bundle], u32),
    instead: &[Bundle],
    batch_bytes_max: usize,
) {
    let directory = scratch::directory();
    let blocks = chain.bundles();
    let store = index::open(directory.path(), blocks[0].block.hash, 0).unwrap();
    let final_blocks = index::final_up_to(stored, 20);
    add(&store, stored, rules_with_genesis(chain), final_blocks)
        .await
        .unwrap();
    let last = stored
        .last()
        .map(|bundle| (bundle.block.number(), bundle.block.hash, times));
    let source = Arc::new(Source {
        chain: blocks.to_vec(),
        instead: Mutex::new(
            instead
                .iter()
                .map(|bundle| (bundle.block.number(), bundle.clone()))
                .collect(),
        ),
        said: Mutex::new(last),
    });
    let options = FollowOptions {
        finality_depth: 64,
        batch_bytes_max,
        contradiction_wait: Duration::from_secs(1 << 20),
        window: 16,
    };
    let follower = Follower::new(
        Arc::clone(&source) as Arc<dyn BlockSource>,
        store.writer().expect("the one writer"),
        Arc::new(ChainStatus::default()),
        rules_with_genesis(chain),
        options,
    );
    let (trigger, shutdown) = pair();
    let task = tokio::spawn(follower.run(shutdown));
    let head = blocks.last().unwrap().block.hash;
    until("the source's head", || {
        store.view().head().is_some_and(|ours| ours.hash == head)
    })
    .await;
    until("finality", || store.view().finalized() == Some(FINAL)).await;
    assert!(
        source.instead.lock().unwrap().is_empty(),
        "all of them were given"
    );
    assert_eq!(
        store.view().digest().unwrap(),
        digest_with_genesis(chain).await,
        "{batch_bytes_max}"
    );
    trigger.fire();
    task.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_source_gives_of_another_branch_never_becomes_final() {
    let mut chain = Chain::new(ChainSpec::new(431));
    chain.mine(80);
    let mut dead = chain.clone();
    dead.reorg(50, 30);
    let (dead, foreign) = (dead.bundles(), another(432, None, 0));
    for batch_bytes_max in [1 << 20, 1] {
        let nothing = (&[][..], 0);
        follow(&chain, nothing, &[], batch_bytes_max).await;
        for count in [1, 2, 5, 29, 30] {
            follow(&chain, nothing, &dead[31..31 + count], batch_bytes_max).await;
        }
        follow(&chain, nothing, foreign.bundles(), batch_bytes_max).await;
        for branch in [dead, chain.bundles()] {
            for times in 1..4 {
                follow(&chain, (&branch[..=40], times), &[], batch_bytes_max).await;
            }
        }
    }
}

/// Waiting does not mend it.
#[tokio::test(flavor = "multi_thread")]
async fn a_source_of_another_chain_ends_the_sync() {
    let mut chain = Chain::new(ChainSpec::new(433));
    chain.mine(80);
    for first in [0, 1] {
        let directory = scratch::directory();
        let store = index::open(directory.path(), B256::repeat_byte(9), first).unwrap();
        let source = Arc::new(Source {
            chain: chain.bundles().to_vec(),
            instead: Mutex::default(),
            said: Mutex::default(),
        });
        let options = FollowOptions {
            finality_depth: 64,
            batch_bytes_max: 1 << 20,
            contradiction_wait: Duration::ZERO,
            window: 16,
        };
        let follower = Follower::new(
            source,
            store.writer().expect("the one writer"),
            Arc::new(ChainStatus::default()),
            index::rules(B256::repeat_byte(9), first),
            options,
        );
        let (_trigger, shutdown) = pair();
        let ended = tokio::time::timeout(Duration::from_secs(20), follower.run(shutdown)).await;
        let error = ended.expect("it ends").unwrap_err();
        assert!(error.contradicts(), "{error}");
        assert_eq!(store.view().head(), None);
    }
}
