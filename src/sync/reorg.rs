//! Whether the node still follows our chain, and where it left it.

use super::error::SyncError;
use super::stuck::is_old;
use crate::model::B256;
use crate::node::Node;
use crate::store::View;

/// How our chain and the node's stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The node has our head, or nothing is stored yet.
    Ahead,
    /// The node's chain is shorter, or the node does not have the head that it names.
    Behind {
        /// Whether its head was shown to be a block of ours.
        is_ours: bool,
    },
    /// The node does not tell this block, which is stored and no higher than its head: it has dropped it, or a second node
    /// answered.
    Lacks(u64),
    /// The chains part after `fork`; unwind to it. `fork` is `None` where nothing of ours that may be
    /// unwound is the node's.
    Parted {
        /// The last common block; `None` when the first stored block differs.
        fork: Option<u64>,
        /// Blocks to take off.
        depth: u64,
    },
}

impl Relation {
    /// What is waited for where the `source` neither has our head nor left our chain.
    pub(super) fn waits_for(self, source: &str) -> String {
        match self {
            Self::Lacks(block) => {
                format!("the {source} does not have block {block}, after which the store goes on")
            }
            _ => format!("the {source} is behind the store, waiting for it"),
        }
    }
}

/// Compares our head with the node's chain and looks for the fork by walking parents. `theirs` tells the hash of a
/// block of the node's chain, where it has one.
pub(super) async fn relate<F>(
    view: &View,
    node_head: u64,
    theirs: impl Fn(u64) -> F,
) -> Result<Relation, SyncError>
where
    F: Future<Output = Result<Option<B256>, SyncError>>,
{
    let Some(ours) = view.head() else {
        return Ok(Relation::Ahead);
    };
    let stored = |number: u64| -> Result<B256, SyncError> { Ok(view.block(number)?.hash) };
    let from = ours.number.min(node_head);
    let unshown = Relation::Behind { is_ours: false };
    if from < view.first_block() {
        return Ok(unshown);
    }
    match theirs(from).await? {
        Some(hash) if from == ours.number && hash == ours.hash => return Ok(Relation::Ahead),
        Some(hash) if from < ours.number && hash == stored(from)? => {
            return Ok(Relation::Behind { is_ours: true });
        }
        // The node named a head and does not have it: ask again later.
        None if from < ours.number => return Ok(unshown),
        None => return Ok(Relation::Lacks(from)),
        Some(_) => {}
    }
    let finalized = view.finalized();
    let mut number = from;
    loop {
        if finalized.is_some_and(|finalized| number <= finalized) {
            return Err(SyncError::DeepReorg {
                block: number,
                finalized: finalized.unwrap_or(0),
            });
        }
        if number == view.first_block() {
            return Ok(Relation::Parted {
                fork: None,
                depth: ours.number - number + 1,
            });
        }
        number -= 1;
        match theirs(number).await? {
            // A block that the node does not have is no other block: it says nothing of a fork.
            None => return Ok(Relation::Lacks(number)),
            Some(hash) if hash == stored(number)? => {
                return Ok(Relation::Parted {
                    fork: Some(number),
                    depth: ours.number - number,
                });
            }
            Some(_) => {}
        }
    }
}

/// The hash of the block `number` of a node with this head, if it has that. What it says in place of an old one is of that block.
pub(super) async fn theirs(node: &Node, number: u64, head: u64) -> Result<Option<B256>, SyncError> {
    match node.block_id(number).await {
        Ok(id) => Ok(id.map(|id| id.hash)),
        Err(source) if is_old(number, head) && source.is_said() => Err(SyncError::Node {
            block: number,
            source,
        }),
        Err(source) => Err(source.into()),
    }
}
