//! A source of blocks that are handed over one by one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::model::{B256, Bundle};
use crate::sync::{BlockSource, SourceError, SourceFuture, SourceHead};

/// Blocks as they come, from a node's notifications, an iterator or a file: a [`BlockSource`] that holds in memory what is
/// not stored and final yet. Copies share the blocks, which are for one store.
///
/// A block whose number is there already takes the place of that one and of all behind it: a reorg is its new blocks, pushed
/// in order.
#[derive(Clone, Debug)]
pub struct BlockFeed {
    branch: Arc<Mutex<Branch>>,
    /// Told of every change; the number itself says nothing.
    changes: watch::Sender<u64>,
    room: usize,
}

#[derive(Debug, Default)]
struct Branch {
    /// Consecutive blocks.
    blocks: VecDeque<Bundle>,
    /// The block before them.
    before: Option<(u64, B256)>,
    /// Blocks up to this one are final, of those that came and of those to come.
    finalized: Option<u64>,
    /// Blocks up to this one are stored and final, and not held.
    settled: Option<u64>,
}

impl Branch {
    /// The newest block: all that was held may be stored and forgotten.
    fn head(&self) -> Option<u64> {
        let held = self.blocks.back().map(|bundle| bundle.block.number());
        held.or(self.before.map(|(number, _)| number))
    }

    fn at(&self, number: u64) -> Option<&Bundle> {
        let first = self.blocks.front()?.block.number();
        self.blocks.get(usize::try_from(number.checked_sub(first)?).ok()?)
    }

    fn hash(&self, number: u64) -> Option<B256> {
        let kept = self.at(number).map(|bundle| bundle.block.hash);
        let before = self.before.filter(|(at, _)| *at == number);
        kept.or(before.map(|(_, hash)| hash))
    }

    /// Appends a block, in the place of all from its number on.
    fn put(&mut self, bundle: Bundle) -> Result<(), SourceError> {
        let number = bundle.block.number();
        let parent = bundle.block.header.parent_hash;
        // What is final may be named before it comes: only what came already cannot be replaced.
        if Some(number) <= self.finalized.min(self.head()) {
            return Err(SourceError::new(format_args!("block {number} is final already")));
        }
        match number.checked_sub(1) {
            // The first one says where the feed begins.
            before if self.blocks.is_empty() && self.before.is_none() => {
                self.before = before.map(|before| (before, parent));
            }
            Some(before) if self.hash(before) == Some(parent) => self.cut(before),
            _ => {
                let text = format_args!("block {number} does not follow a block of the feed");
                return Err(SourceError::new(text));
            }
        }
        self.blocks.push_back(bundle);
        // A feed that begins far below the end of the store does not fill with what is stored.
        self.forget();
        Ok(())
    }

    /// Takes the blocks behind `number` back.
    fn cut(&mut self, number: u64) {
        while let Some(last) = self.blocks.back()
            && last.block.number() > number
        {
            self.blocks.pop_back();
        }
    }

    /// Forgets the blocks that are stored and final.
    fn forget(&mut self) {
        while let Some(first) = self.blocks.front()
            && Some(first.block.number()) <= self.settled
        {
            self.before = Some((first.block.number(), first.block.hash));
            self.blocks.pop_front();
        }
    }
}

impl BlockFeed {
    /// A feed that holds at most `room` blocks, at least one. It must be more than those that are not final
    /// ([`super::ChainConfig::with_finality_depth`], or what [`Self::finalize`] leaves), or it stays full.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self {
            branch: Arc::default(),
            changes: watch::Sender::new(0),
            room: room.max(1),
        }
    }

    /// Hands a block over; waits while there is no room.
    ///
    /// # Errors
    ///
    /// When its parent is no block of the feed, or a block of its number is there and final.
    pub async fn push(&self, bundle: Bundle) -> Result<(), SourceError> {
        let mut changes = self.changes.subscribe();
        let mut bundle = Some(bundle);
        loop {
            changes.mark_unchanged();
            {
                let mut branch = self.branch();
                // One that takes the place of others needs no room.
                let replaces = bundle.as_ref().map(|bundle| bundle.block.number()) <= branch.head();
                if replaces || branch.blocks.len() < self.room {
                    let put = bundle.take().map_or(Ok(()), |bundle| branch.put(bundle));
                    drop(branch);
                    self.tell();
                    return put;
                }
            }
            if changes.changed().await.is_err() {
                return Ok(());
            }
        }
    }

    /// Takes the blocks behind `number` back, where a chain became shorter; those that are final stay.
    pub fn rewind(&self, number: u64) {
        let mut branch = self.branch();
        let kept = branch.finalized.map_or(number, |finalized| finalized.max(number));
        branch.cut(kept);
        drop(branch);
        self.tell();
    }

    /// Says that blocks up to this one can never be replaced: those that are there, so that a reorg is pushed before, and
    /// those that are still to come. Without a word of it, those count as final that lie far enough below the newest.
    pub fn finalize(&self, number: u64) {
        let mut branch = self.branch();
        branch.finalized = branch.finalized.max(Some(number));
        drop(branch);
        self.tell();
    }

    /// Blocks that are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.branch().blocks.len()
    }

    /// Whether no block is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn branch(&self) -> MutexGuard<'_, Branch> {
        self.branch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

impl BlockSource for BlockFeed {
    fn head(&self) -> SourceFuture<'_, Option<SourceHead>> {
        let branch = self.branch();
        let head = branch.head().map(|number| SourceHead {
            number,
            finalized: branch.finalized.map(|finalized| finalized.min(number)),
        });
        Box::pin(async move { Ok(head) })
    }

    fn hash(&self, number: u64) -> SourceFuture<'_, Option<B256>> {
        let hash = self.branch().hash(number);
        Box::pin(async move { Ok(hash) })
    }

    fn bundle(&self, number: u64) -> SourceFuture<'_, Option<Bundle>> {
        let bundle = self.branch().at(number).cloned();
        Box::pin(async move { Ok(bundle) })
    }

    fn changed(&self) -> SourceFuture<'_, ()> {
        let mut changes = self.changes.subscribe();
        Box::pin(async move {
            // An error means that nobody can push any more.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }

    fn settled(&self, number: u64) {
        let mut branch = self.branch();
        branch.settled = branch.settled.max(Some(number));
        branch.forget();
        drop(branch);
        self.tell();
    }
}
