//! Up to which block a chain is final. A source's word counts only as far as blocks bear it out: finality cannot be
//! taken back, and one wrong number would make the next ordinary reorg the end of the store.

use super::error::SyncError;
use crate::model::{B256, BlockId};
use crate::status::ChainStatus;
use crate::store::View;

/// So many blocks are taken one by one, each of them on the disk when it is served, and become final in the next round: a batch of final
/// blocks is not on the disk before all tables are flushed, which costs too much at the tip of a chain whose blocks are final at once.
const TIP_BLOCKS_MAX: u64 = 32;
/// Blocks taken from a source before it is looked at again, where it does not show the head that it names.
const UNSHOWN_BLOCKS_MAX: u64 = 256;

/// Which of the blocks that come to the store are final as they come: those are batched, and never unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinalBlocks {
    /// All, of a chain that does not change.
    All,
    /// Block 0, which always is, and none that comes after it.
    ZeroAlone,
    /// Those up to this one, which has this hash: only blocks of its branch may become final.
    Named(u64, B256),
}

impl FinalBlocks {
    /// Whether this block is final.
    pub(super) const fn has(self, number: u64) -> bool {
        match self {
            Self::All => true,
            Self::ZeroAlone => number == 0,
            Self::Named(last, _) => number <= last,
        }
    }

    /// The hash that this block must have, where that is known.
    pub(super) fn hash_of(self, number: u64) -> Option<B256> {
        match self {
            Self::Named(last, hash) if last == number => Some(hash),
            _ => None,
        }
    }

    /// Whether this block is final once the next one has named it as its parent: its own hash is not known.
    pub(super) const fn awaits_next(self, number: u64) -> bool {
        matches!(self, Self::Named(last, _) if number < last)
    }
}

/// Blocks that are fetched now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Which of them are final as they come.
    pub(super) final_blocks: FinalBlocks,
    /// The last stored block, where it is final as soon as one of these has named it.
    pub(super) named: Option<BlockId>,
}

/// The block that a source names as its last final one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) number: u64,
    /// Where it was said with the number.
    pub(super) hash: Option<B256>,
}

/// What is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finality {
    /// Stored blocks up to this one are.
    pub(super) stored: Option<u64>,
    /// Blocks that are not stored yet are up to this one, if it has this hash.
    pub(super) coming: Option<(u64, B256)>,
    /// Blocks up to this one may be fetched before finality is judged anew.
    pub(super) fetch_to: u64,
    /// The hash of a final block that the source names and does not have: its word is not believed.
    pub(super) unbelieved: Option<B256>,
}

impl Finality {
    /// The stored block to which finality moves, where it does.
    pub(super) fn newly(&self, view: &View) -> Option<u64> {
        self.stored.filter(|&number| view.finalized() < Some(number))
    }

    /// What is known of the blocks from `first` to `last`, which are fetched now.
    pub(super) fn piece(&self, view: &View, first: u64, last: u64) -> Piece {
        Piece {
            first,
            last,
            final_blocks: self.coming_among(first, last),
            named: self.named_by_next(view, first, last),
        }
    }

    /// Which of those that are fetched now, from `next` to `last`, are final as they come. Few blocks are not, nor is one that comes
    /// alone, which has none behind it that names it.
    fn coming_among(&self, next: u64, last: u64) -> FinalBlocks {
        match self.coming {
            Some((number, hash)) if !are_few(next, last) => FinalBlocks::Named(number, hash),
            _ => FinalBlocks::ZeroAlone,
        }
    }

    /// The last stored block, where it is final as soon as one of the few that are fetched now, from `next` to `last`, has named it: these are known
    /// to be final, and a batch of them would have taken it along.
    fn named_by_next(&self, view: &View, next: u64, last: u64) -> Option<BlockId> {
        let is_known = self.coming.is_some() && are_few(next, last);
        view.head()
            .filter(|ours| is_known && view.finalized() < Some(ours.number))
    }

    /// The blocks to fetch now, up to `stop_at`. Where there are none the status says that the tip is followed, else what
    /// is done; `source` names who has blocks.
    pub(super) fn wanted(
        &self,
        view: &View,
        stop_at: Option<u64>,
        source: &str,
        status: &ChainStatus,
    ) -> Option<(u64, u64)> {
        status.ends_filling();
        let next = view.checkpoint().next_block;
        let last = stop_at.map_or(self.fetch_to, |stop| stop.min(self.fetch_to));
        if next > last {
            match view.head() {
                Some(_) => status.follow_tip(),
                None => status.await_first(source, next),
            }
            return None;
        }
        if last - next > 64 {
            status.backfill();
        } else {
            status.fetch(next, last);
        }
        Some((next, last))
    }
}

/// Whether blocks from `next` to `last` are taken one by one.
const fn are_few(next: u64, last: u64) -> bool {
    last.saturating_sub(next) < TIP_BLOCKS_MAX
}

/// Judges what is final, for a source that has our head and says that `head` is its own. Where it names a final
/// block, that counts if it is the one that is stored, or is had under its number too; `depth` blocks below the last stored
/// one are final in any case. For blocks to come the depth counts from a head that the source has shown.
pub(super) async fn judge<F>(
    view: &View,
    head: u64,
    named: Option<Named>,
    depth: u64,
    theirs: impl Fn(u64) -> F,
) -> Result<Finality, SyncError>
where
    F: Future<Output = Result<Option<B256>, SyncError>>,
{
    let next = view.checkpoint().next_block;
    // A store may begin above it.
    let below = view.head().and_then(|ours| ours.number.checked_sub(depth));
    let mut stored = below.filter(|&number| number >= view.first_block());
    let (mut coming, mut unbelieved) = (None, None);
    match named {
        Some(Named { number, hash }) if (view.first_block()..next).contains(&number) => {
            let ours = view.block(number)?.hash;
            let found = match hash {
                Some(said) if said == ours => hash,
                _ => theirs(number).await?,
            };
            match found {
                Some(found) if found == ours => match hash {
                    // It has our block and names another: nothing is final by that, and nothing speaks against going on.
                    Some(said) if said != ours => unbelieved = hash,
                    _ => stored = stored.max(Some(number)),
                },
                // The chain may have moved since our head was compared: a block of the branch that was left must
                // not become final.
                Some(found) => {
                    return Err(SyncError::Moved {
                        block: number,
                        found,
                        stored: ours,
                    });
                }
                None => {}
            }
        }
        Some(Named { number, hash }) if (next..=head).contains(&number) => {
            let had = theirs(number).await?;
            coming = had
                .filter(|had| hash.is_none_or(|said| said == *had))
                .map(|hash| (number, hash));
        }
        // It is taken up when the source comes to it.
        _ => {}
    }
    let mut fetch_to = head;
    let floor = head.checked_sub(depth).filter(|&floor| next <= floor);
    if let Some(floor) = floor.filter(|&floor| coming.is_none_or(|(number, _)| number < floor)) {
        let shown = match theirs(head).await? {
            Some(_) => theirs(floor).await?,
            None => None,
        };
        match shown {
            Some(hash) => coming = Some((floor, hash)),
            None => {
                let few = next.saturating_add(UNSHOWN_BLOCKS_MAX - 1);
                fetch_to = head.min(coming.map_or(few, |(number, _)| number.max(few)));
            }
        }
    }
    Ok(Finality {
        stored,
        coming,
        fetch_to,
        unbelieved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_final_by_their_numbers_and_by_who_names_them() {
        let hash = B256::repeat_byte(7);
        // The block, and whether it is final, awaits the next one, and has a hash that it must have.
        let (f, t) = (false, true);
        for (blocks, expected) in [
            (
                FinalBlocks::All,
                [(0, t, f, f), (7, t, f, f), (u64::MAX, t, f, f)],
            ),
            (
                FinalBlocks::ZeroAlone,
                [(0, t, f, f), (1, f, f, f), (u64::MAX, f, f, f)],
            ),
            (
                FinalBlocks::Named(0, hash),
                [(0, t, f, t), (1, f, f, f), (2, f, f, f)],
            ),
            (
                FinalBlocks::Named(7, hash),
                [(6, t, t, f), (7, t, f, t), (8, f, f, f)],
            ),
        ] {
            for (number, is_final, awaits_next, has_hash) in expected {
                let found = (blocks.has(number), blocks.awaits_next(number));
                assert_eq!(found, (is_final, awaits_next), "{blocks:?} {number}");
                let wanted = has_hash.then_some(hash);
                assert_eq!(blocks.hash_of(number), wanted, "{blocks:?} {number}");
            }
        }
    }

    #[test]
    fn without_many_blocks_up_to_a_named_one_block_0_alone_is_final_as_it_comes() {
        let coming = Some((90, B256::repeat_byte(7)));
        let of = |coming| Finality {
            stored: None,
            coming,
            fetch_to: 100,
            unbelieved: None,
        };
        let named = FinalBlocks::Named(90, B256::repeat_byte(7));
        assert_eq!(of(coming).coming_among(0, 100), named);
        assert_eq!(of(coming).coming_among(68, 100), named);
        assert_eq!(of(coming).coming_among(69, 100), FinalBlocks::ZeroAlone);
        assert_eq!(of(None).coming_among(0, 100), FinalBlocks::ZeroAlone);
    }
}
