//! Blocks from the process that embeds this crate.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use crate::model::{B256, Bundle};

/// An answer of a source in the making.
pub type SourceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SourceError>> + Send + 'a>>;

/// Why a source gave no answer: one sentence, shown in `/status` and in the log. It is asked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceError(String);

impl SourceError {
    /// An error that says this.
    #[must_use]
    pub fn new(sentence: impl fmt::Display) -> Self {
        Self(sentence.to_string())
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SourceError {}

/// How far a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceHead {
    /// The newest block.
    pub number: u64,
    /// The last block that can never be replaced, where the source knows it; else a number of blocks below the
    /// newest one is taken for final.
    pub finalized: Option<u64>,
}

/// Where the blocks of a chain come from.
///
/// A source has one chain at any time, which grows and may be replaced from some block on (a reorg). Nothing needs
/// to be said of a reorg: before blocks are taken, the newest stored one is compared with the source's block of that
/// number, and where they differ the store is unwound to the last common block. What a source gives for one number
/// may be of another chain than what it gave for another number a moment before; such blocks do not fit together, are not
/// stored, and are asked for again.
///
/// Questions that fail are repeated with growing waits until the service is stopped. Several are asked at the same
/// time. A future may be dropped before it is done.
pub trait BlockSource: Send + Sync + 'static {
    /// The newest block; `None` while there is none.
    fn head(&self) -> SourceFuture<'_, Option<SourceHead>>;

    /// The hash of a block; `None` for one that the source does not have (any more).
    ///
    /// Asked of block 0 before the first block is stored, of blocks that are stored and not final, of the last final one, and of final blocks that were given, before they are stored for good.
    fn hash(&self, number: u64) -> SourceFuture<'_, Option<B256>>;

    /// A block with its receipts and traces; `None` where [`Self::hash`] has none.
    ///
    /// Asked of each block once, and again after a reorg took it off the store. Traces are the call frames of each
    /// transaction; without them, what needs them is not answered. `openings` may be left `None`.
    fn bundle(&self, number: u64) -> SourceFuture<'_, Option<Bundle>>;

    /// Is done when there may be news. Without one of its own, a source is asked every second.
    fn changed(&self) -> SourceFuture<'_, ()> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok(())
        })
    }

    /// Hears that all blocks up to this one are stored and final: they are not asked for again, but for the hash of this
    /// one.
    fn settled(&self, _number: u64) {}
}

impl<S: BlockSource + ?Sized> BlockSource for std::sync::Arc<S> {
    fn head(&self) -> SourceFuture<'_, Option<SourceHead>> {
        (**self).head()
    }

    fn hash(&self, number: u64) -> SourceFuture<'_, Option<B256>> {
        (**self).hash(number)
    }

    fn bundle(&self, number: u64) -> SourceFuture<'_, Option<Bundle>> {
        (**self).bundle(number)
    }

    fn changed(&self) -> SourceFuture<'_, ()> {
        (**self).changed()
    }

    fn settled(&self, number: u64) {
        (**self).settled(number);
    }
}
