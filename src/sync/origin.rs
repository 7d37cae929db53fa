//! Whether the node is of the store's chain still. A URL may lead to another node at any time, and a chain that was forked off ours has all blocks that
//! are stored: only its id tells it then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::error::SyncError;
use super::held::their_hash;
use super::pipeline::Word;
use super::reorg::Relation;
use crate::clock;
use crate::model::B256;
use crate::node::Node;
use crate::store::Store;

/// A node that has said which chain it is of is not asked again within this for one more block at the tip, which may be unwound. A
/// chain may have several blocks a second, and each of them is some seven questions.
const WORD_AGE_MAX: Duration = Duration::from_secs(2);
/// A reorg deeper than this is a reason to ask for the genesis block too.
const REORG_DEPTH_USUAL: u64 = 256;

/// Asks the node which chain it is of, and knows when it was asked last.
#[derive(Debug)]
pub(super) struct Origin {
    node: Node,
    store: Arc<Store>,
    /// When the node last said that it is of the store's chain, and how many blocks of it both had then.
    said: Option<(Instant, u64)>,
}

impl Origin {
    pub(super) const fn new(node: Node, store: Arc<Store>) -> Self {
        Self {
            node,
            store,
            said: None,
        }
    }

    /// Whether to ask before blocks from `next` on are taken of a node that has `head`: always for several, at times for one.
    pub(super) fn is_due(&self, next: u64, head: u64) -> bool {
        let is_old = |said: Instant| WORD_AGE_MAX <= clock::now() - said;
        next < head || self.said.is_none_or(|(said, _)| is_old(said))
    }

    /// Asks; `deep` compares block 0 too. Chains that share their first blocks share that one, and ids of chains are chosen twice.
    pub(super) async fn ask(&self, deep: bool) -> Result<(), SyncError> {
        let (chain_id, genesis) = match deep {
            true => self.node.chain().await?,
            false => (self.node.chain_id().await?, B256::ZERO),
        };
        Ok(self.store.check_chain(chain_id, genesis)?)
    }

    /// The node is of the chain, and has all blocks before `next`.
    pub(super) fn agrees(&mut self, next: u64) {
        self.said = Some((clock::now(), next));
    }

    /// Something happened after which it may be another node, or the store has other blocks.
    pub(super) const fn forget(&mut self) {
        self.said = None;
    }

    /// Whether the node had block `number` when it was asked: it is of the chain for good.
    pub(super) fn has_shown(&self, number: u64) -> bool {
        self.said.is_some_and(|(_, next)| number < next)
    }

    /// The hash of the node's block `number`, if that is one of the store's chain: what is to become final is asked about so.
    pub(super) async fn hash(&self, number: u64) -> Result<B256, SyncError> {
        let (hash, ()) = tokio::try_join!(their_hash(&self.node, number), self.ask(false))?;
        Ok(hash)
    }

    /// Who is asked so while blocks come.
    pub(super) fn word(&self) -> Word {
        let origin = Arc::new(Self::new(self.node.clone(), Arc::clone(&self.store)));
        Arc::new(move |number| {
            let origin = Arc::clone(&origin);
            Box::pin(async move { origin.hash(number).await })
        })
    }
}

/// Whether to ask which chain the node is of before what was found is believed, and whether its block 0 must tell.
pub(super) fn asks_which_chain(relation: &Result<Relation, SyncError>) -> Option<bool> {
    match relation {
        Ok(Relation::Parted { fork, depth }) => Some(fork.is_none() || *depth > REORG_DEPTH_USUAL),
        Err(SyncError::DeepReorg { .. }) => Some(true),
        _ => None,
    }
}
