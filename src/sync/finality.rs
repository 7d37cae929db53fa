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
    /// Up to which block those that are fetched now, from `next` to `last`, are final as they come. Few blocks are not, nor is one that comes
    /// alone, which has none behind it that names it.
    pub(super) fn coming_among(&self, next: u64, last: u64) -> Option<(u64, B256)> {
        self.coming
            .filter(|_| TIP_BLOCKS_MAX <= last.saturating_sub(next))
    }

    /// The last stored block, where it is final as soon as one of the few that are fetched now, from `next` to `last`, has named it: these are known
    /// to be final, and a batch of them would have taken it along.
    pub(super) fn named_by_next(&self, view: &View, next: u64, last: u64) -> Option<BlockId> {
        let is_few = self.coming.is_some() && self.coming_among(next, last).is_none();
        view.head()
            .filter(|ours| is_few && view.finalized() < Some(ours.number))
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
    let mut stored = view.head().and_then(|ours| ours.number.checked_sub(depth));
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
