//! Block 0: what a genesis file says of it, and whether it is of the store's chain at all.

use crate::rig::{Rig, rules_with_genesis};
use crate::support::balances;
use crate::support::chain::{Chain, ChainSpec, another};
use crate::support::fake_node::{Fault, Methods};
use crate::support::index::{self, until};
use crate::support::scratch;
use quarry::model::{B256, Bundle};
use quarry::store::Store;
use quarry::sync::{ChainRules, FinalBlocks, Pipeline, SyncError};
use std::sync::Arc;
use std::time::Duration;

/// Brings bundles into a store as final blocks, by these rules.
async fn import(store: &Arc<Store>, bundles: &[Bundle], rules: ChainRules) -> Result<(), SyncError> {
    add(store, bundles, rules, FinalBlocks::All).await
}

/// The same of which these are final.
pub(crate) async fn add(
    store: &Arc<Store>,
    bundles: &[Bundle],
    rules: ChainRules,
    final_blocks: FinalBlocks,
) -> Result<(), SyncError> {
    let pipeline = Pipeline {
        rules,
        final_blocks,
        batch_bytes_max: 1 << 20,
    };
    let (_trigger, mut shutdown) = quarry::shutdown::pair();
    let source = futures_util::stream::iter(bundles.iter().cloned().map(Ok).collect::<Vec<_>>());
    let writer = store.writer().expect("the one writer");
    pipeline.run(writer, source, &mut shutdown).await.1
}

/// The digest of a new store of a chain whose genesis file is given.
pub(crate) async fn digest_with_genesis(chain: &Chain) -> B256 {
    let directory = scratch::directory();
    let blocks = chain.bundles();
    let store = index::open(directory.path(), blocks[0].block.hash, 0).unwrap();
    import(&store, blocks, rules_with_genesis(chain)).await.unwrap();
    store.view().digest().unwrap()
}

/// A node that has forgotten what accounts held in block 0, and says so.
fn forgets(rig: &Rig) {
    let said = "required historical state unavailable";
    rig.fake
        .fault(Fault::Refuses("eth_getBalance", -32000, said), u64::MAX);
}

async fn told(rig: &Rig, what: &str) {
    until("the way out is told", || rig.status().message().contains(what)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_genesis_file_that_is_given_when_block_0_is_stored_is_taken() {
    for has_traces in [true, false] {
        let mut rig = Rig::new(411);
        rig.config.probe_pause = Duration::ZERO;
        rig.fake.mine(60);
        rig.fake.set_finalized(50);
        if !has_traces {
            rig.fake.set_methods(Methods {
                trace_block: false,
                debug_trace: false,
                ..Methods::default()
            });
            rig.start().await;
            rig.synced().await;
            rig.stop().await.unwrap();
            rig.fake.set_methods(Methods::default());
        }
        forgets(&rig);
        rig.start().await;
        told(&rig, "give the genesis file (--genesis)").await;
        let checkpoint = *rig.store().view().checkpoint();
        assert_eq!((checkpoint.next_traced, checkpoint.native.allocated), (1, false));
        assert_eq!(checkpoint.next_block, if has_traces { 1 } else { 51 });
        rig.stop().await.unwrap();

        rig.knows_genesis = true;
        rig.start().await;
        until("all blocks", || {
            rig.is_synced() && rig.store().view().has_traces()
        })
        .await;
        assert!(rig.store().view().checkpoint().native.allocated);
        let found = rig.store().view().digest().unwrap();
        assert_eq!(
            found,
            digest_with_genesis(&rig.fake.chain()).await,
            "{has_traces}"
        );
        rig.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_genesis_file_is_no_way_out_for_blocks_that_are_stored_without_it() {
    let mut rig = Rig::new(412);
    rig.fake.mine(4);
    rig.fake.set_finalized(2);
    rig.start().await;
    rig.check("before").await;
    forgets(&rig);
    // Some account is new in these.
    rig.fake.mine(60);
    told(
        &rig,
        "fill a new --data-dir, either from block 0 with the genesis file",
    )
    .await;
    assert!(rig.next_block() > 4);
    rig.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_block_of_another_chain_is_not_stored() {
    let mut own = Chain::new(ChainSpec::new(413));
    own.mine(3);
    let other = another(414, None, 3);
    let (own, other) = (own.bundles(), other.bundles());
    let genesis = own[0].block.hash;
    for first in [0, 1] {
        let directory = scratch::directory();
        let store = index::open(directory.path(), genesis, first as u64).unwrap();
        let rules = index::rules(genesis, first as u64);
        let error = import(&store, &other[first..], rules.clone()).await.unwrap_err();
        let found = other[0].block.hash;
        assert!(
            matches!(error, SyncError::OtherBeginning { found: of, expected } if of == found && expected == genesis),
            "{error}"
        );
        assert!(error.may_pass() && store.view().head().is_none());
        import(&store, &own[first..], rules).await.unwrap();
        assert_eq!(store.view().head().unwrap().hash, own[3].block.hash);
    }
    // Where nobody has said which chain it is, or the store begins later, the first block is taken as it is.
    for (genesis, first) in [(B256::ZERO, 0), (B256::ZERO, 1), (genesis, 2)] {
        let directory = scratch::directory();
        let store = index::open(directory.path(), genesis, first as u64).unwrap();
        let rules = index::rules(genesis, first as u64);
        import(&store, &other[first..], rules).await.unwrap();
    }
}

/// Whatever is named as final, or nothing is: block 0 is, where the store begins with it.
#[tokio::test(flavor = "multi_thread")]
async fn block_0_is_final_as_it_comes() {
    let mut chain = Chain::new(ChainSpec::new(417));
    chain.mine(3);
    let (genesis, next) = (chain.bundles()[0].block.hash, chain.bundles()[1].block.hash);
    let bring = async |final_blocks, first: u64| {
        let blocks = balances::told(chain.bundles(), first);
        let directory = scratch::directory();
        let store = index::open(directory.path(), genesis, first).unwrap();
        let rules = index::rules(genesis, first);
        let added = add(&store, &blocks[first as usize..], rules, final_blocks).await;
        let view = store.view();
        (added, view.head().map(|head| head.number), view.finalized())
    };
    for (final_blocks, first, finalized) in [
        (FinalBlocks::ZeroAlone, 0, Some(0)),
        (FinalBlocks::ZeroAlone, 1, None),
        (FinalBlocks::Named(0, genesis), 0, Some(0)),
        (FinalBlocks::Named(1, next), 0, Some(1)),
        (FinalBlocks::All, 0, Some(3)),
    ] {
        let (added, head, found) = bring(final_blocks, first).await;
        added.unwrap();
        assert_eq!(
            (head, found),
            (Some(3), finalized),
            "{final_blocks:?} from {first}"
        );
    }
    let other = B256::repeat_byte(9);
    let (added, head, _) = bring(FinalBlocks::Named(0, other), 0).await;
    assert!(
        matches!(added, Err(SyncError::Moved { block: 0, found, stored }) if found == other && stored == genesis),
        "{added:?}"
    );
    assert_eq!(head, None);
}

/// Behind a balancer one node is of another chain of the same id.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_0_of_another_chain_is_asked_for_again() {
    for blocks in [20, 60] {
        let mut rig = Rig::new(415);
        rig.fake.mine(blocks);
        rig.fake.set_finalized(blocks - 10);
        let foreign = another(416, None, 0).bundles()[0].clone();
        rig.start_after(|fake| fake.fault(Fault::Elsewhere(Arc::new(foreign)), 6))
            .await;
        told(&rig, "a chain that begins with").await;
        assert!(rig.store().view().head().is_none() && rig.status().node_up());
        rig.check("its own block 0").await;
        rig.stop().await.unwrap();
    }
}
