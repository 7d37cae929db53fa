//! Why sync stopped or pauses, each with its facts.

use std::time::Duration;

use tokio::task::JoinError;

use super::source::SourceError;
use super::verify::VerifyError;
use crate::model::B256;
use crate::node::NodeError;
use crate::node::recorded::RecordedError;
use crate::status::ChainStatus;
use crate::store::StoreError;

/// A failure of sync.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The node gave no usable answer.
    #[error("block {block}: {source}")]
    Node {
        /// The block that was asked for.
        block: u64,
        /// What the node did.
        source: NodeError,
    },
    /// The same of an old block again and again.
    #[error("block {block}: {source}; {way_out}")]
    Withheld {
        /// The block that was asked for.
        block: u64,
        /// What the node said.
        source: NodeError,
        /// What the likely reason is, and what to do.
        way_out: &'static str,
    },
    /// The node gave no usable answer to a question about the chain.
    #[error(transparent)]
    Ask(#[from] NodeError),
    /// The source of an embedding process gave no usable answer.
    #[error("the source of blocks: {0}")]
    Source(#[from] SourceError),
    /// It panicked where it was asked for a block; a bug of that process.
    #[error("the source of blocks panicked")]
    SourcePanicked,
    /// A block does not verify; it is never stored.
    #[error("block {block} does not verify: {source}")]
    Verify {
        /// Its number.
        block: u64,
        /// Why.
        source: VerifyError,
    },
    /// A block is not the child of the block before it: the chain moved, or the source is not one chain.
    #[error("block {block} has parent {found}, the block before it is {expected}")]
    Parent {
        /// Its number.
        block: u64,
        /// Hash of the block before it.
        expected: B256,
        /// What it names.
        found: B256,
    },
    /// A block that is to become final, or is, is another one at the node: the chain moved between two answers, or they came from nodes
    /// of different branches.
    #[error("the node has {found} as block {block}, which is final, ours is {stored}: asking again")]
    Moved {
        /// Its number.
        block: u64,
        /// The node's.
        found: B256,
        /// Ours.
        stored: B256,
    },
    /// The first block to store is not of the chain that the store is of.
    #[error("a block came of a chain that begins with {found}, the store's chain begins with {expected}")]
    OtherBeginning {
        /// Hash of the block 0 that it is, or that it names as its parent.
        found: B256,
        /// Hash of the store's block 0.
        expected: B256,
    },
    /// A reorg reaches below the finalized block.
    #[error(
        "the node's chain differs from ours at block {block}, which is final ({finalized} is the last final block): the node follows another chain or rewrote finality; check the node, or fill a new --data-dir"
    )]
    DeepReorg {
        /// The highest final block that was compared.
        block: u64,
        /// The last final block.
        finalized: u64,
    },
    /// The node is of another chain than the genesis file that is stated.
    #[error(
        "the genesis file is of chain id {chain_id} with the block 0 {hash}, the node has {found}: one of them is another chain's"
    )]
    OtherGenesis {
        /// The file's chain id.
        chain_id: u64,
        /// Hash of the file's block 0.
        hash: B256,
        /// What of these the node has, in words.
        found: String,
    },
    /// A recorded chain cannot be read.
    #[error(transparent)]
    Recorded(#[from] RecordedError),
    /// A recorded chain does not go on where the store is.
    #[error("the recorded chain goes on with block {found}, the store with block {wanted}: {way_out}")]
    Gap {
        /// The next block of the recording.
        found: u64,
        /// The block that comes next in the store.
        wanted: u64,
        /// What to do.
        way_out: &'static str,
    },
    /// A recorded block differs from the stored one.
    #[error(
        "block {block} of the recorded chain is {found}, the store holds {stored}: it records another chain or branch"
    )]
    OtherBranch {
        /// Its number.
        block: u64,
        /// In the recording.
        found: B256,
        /// In the store.
        stored: B256,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store could not write all that it had taken in.
    #[error("not all was written: {0}")]
    Unwritten(StoreError),
    /// A worker ended without an answer; a bug.
    #[error("a worker of the sync died: {0}")]
    Worker(String),
}

/// Work of ours that panicked where it ran beside.
impl From<JoinError> for SyncError {
    fn from(died: JoinError) -> Self {
        Self::Worker(died.to_string())
    }
}

/// What the log says of a sync that waits.
pub const SYNC_WAITS: &str = "sync waits and tries again";
/// The same of traces of stored blocks, for which nothing else waits.
pub const FILL_WAITS: &str = "the missing traces wait and are asked for again, the tip goes on";

impl SyncError {
    /// Whether waiting and asking again may help.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Node { .. }
            | Self::Withheld { .. }
            | Self::Ask(_)
            | Self::Source(_)
            | Self::Verify { .. }
            | Self::Parent { .. }
            | Self::Moved { .. }
            | Self::OtherBeginning { .. } => true,
            Self::Store(_) => self.is_disk_full(),
            _ => false,
        }
    }

    /// Whether the node contradicts what cannot change: what is final, or which chain it is. One node behind a
    /// balancer may for a moment; for good, only an operator can mend it.
    #[must_use]
    pub const fn contradicts(&self) -> bool {
        matches!(
            self,
            Self::DeepReorg { .. } | Self::OtherGenesis { .. } | Self::Store(StoreError::OtherChain { .. })
        )
    }

    /// Says in the status and in the log that the node contradicts what cannot change, and how long it may yet.
    pub(super) fn tell_contradiction(&self, status: &ChainStatus, left: Duration) {
        status.has_room();
        status.set_following(false);
        status.set_contradicted(true);
        let what = match self {
            Self::OtherGenesis { .. } => "the node contradicts the genesis file",
            _ => "the node contradicts what is final",
        };
        status.trouble(format!(
            "{what}, asking again for {:.0} s before the sync stops: {self}",
            left.as_secs_f64().ceil()
        ));
        tracing::warn!(error = %self, seconds_left = left.as_secs_f64(), "{what}, sync waits and tries again");
    }

    /// Says in the status and in the log what is waited out.
    pub(super) fn tell_wait(&self, waiting: &'static str, status: &ChainStatus) {
        match self {
            Self::Verify { .. } => status.count_verification_failure(),
            // A node that lacks one block, or tells it wrongly, was there to say so.
            Self::Node { source, .. } | Self::Withheld { source, .. } if source.is_said() => {}
            // So is one that refuses; what is no answer may come from anybody on the way.
            Self::Ask(source) => status.set_node_up(source.is_answer()),
            Self::Node { .. } | Self::Withheld { .. } | Self::Source(_) => status.set_node_up(false),
            _ => {}
        }
        if self.is_disk_full() {
            status.wait_for_room(self);
        } else {
            status.has_room();
            status.trouble(self.to_string());
        }
        tracing::warn!(error = %self, "{waiting}");
    }

    /// Whether the node names another block where ours is final, as block 0 always is. A node of another chain id does not: it
    /// is of another chain.
    fn breaks_finality(&self) -> bool {
        match self {
            Self::DeepReorg { .. } => true,
            Self::Store(error) => error.is_other_genesis(),
            _ => false,
        }
    }

    /// Says in the status what ended the sync.
    pub fn tell_end(&self, status: &ChainStatus) {
        if self.breaks_finality() {
            status.set_finality_broken();
        }
        status.stop(self);
    }

    /// Whether what the store had taken in may not have been written.
    #[must_use]
    pub const fn is_of_writing(&self) -> bool {
        matches!(self, Self::Unwritten(_) | Self::Worker(_))
    }

    /// Whether the store has no room.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_disk_full())
    }
}
