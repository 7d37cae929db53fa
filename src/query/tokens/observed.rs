//! Facts about tokens out of the side store, as they stand on one snapshot of the chain.

use std::sync::Arc;
use std::time::Instant;

use super::facts::{Exactness, NativeDiffers, TokenFacts, Verdict};
use crate::model::{
    Address, BlockId, FeedFacts, TokenMetadata, TokenVerdict, ToldMetadata, U256, ZeroAddress,
};
use crate::query::QueryError;
use crate::query::limit::Limit;
use crate::store::{Observed, Refreshed, StoreError, View};

/// Holders that are passed over from one look at the time to the next: one of them takes less than a microsecond.
const HOLDERS_PER_LOOK: u32 = 256;

/// What a node told of tokens, on a snapshot.
#[derive(Debug)]
pub struct ObservedFacts {
    observed: Arc<Observed>,
    view: Arc<View>,
    /// Whether a node is configured: then what is not judged is asked of it.
    node: bool,
    /// The side store's revision before anything was read from it.
    revision: u64,
}

impl ObservedFacts {
    /// Facts on `view`; `node` says whether there is a node to ask about tokens without a verdict.
    #[must_use]
    pub fn new(observed: Arc<Observed>, view: Arc<View>, node: bool) -> Self {
        let revision = observed.revision();
        Self {
            observed,
            view,
            node,
            revision,
        }
    }

    /// The verdict on a token where it stands on the snapshot.
    fn standing(&self, token: &Address) -> Option<TokenVerdict> {
        let verdict = self.observed.verdict(token);
        verdict.filter(|verdict| stands(&self.view, verdict))
    }

    /// How far the holders of a token are told of, where they count. Until all were asked for, the ledger has the better lists: all of
    /// them go by it, or they would contradict each other. And where no verdict stands by which the contract has to be asked, what it told
    /// may be another one's, of another branch.
    fn told(&self, token: &Address) -> Option<Refreshed> {
        // The verdict first: one that falls takes away what was told before.
        self.standing(token).filter(|verdict| !verdict.exact)?;
        Some(self.observed.refreshed(token)).filter(|refreshed| refreshed.whole)
    }
}

/// Whether a block is one of the chain as `view` has it. A block that is not indexed (any more) is not.
#[must_use]
pub fn is_on(view: &View, block: BlockId) -> bool {
    view.head().is_some_and(|head| block.number <= head.number)
        && view.known_hash(block.number).is_ok_and(|hash| hash == block.hash)
}

/// Whether a verdict stands on a chain: the last comparison, or the one that it rests on, was made on it.
#[must_use]
pub fn stands(view: &View, verdict: &TokenVerdict) -> bool {
    is_on(view, verdict.checked) || verdict.anchor.is_some_and(|anchor| is_on(view, anchor))
}

/// Whether metadata was told by the contract that stands at its address on a chain: the block after which it was asked is
/// of it. Another branch may have another contract there.
#[must_use]
pub fn is_told_on(view: &View, told: &ToldMetadata) -> bool {
    told.anchor.is_none_or(|anchor| is_on(view, anchor))
}

impl TokenFacts for ObservedFacts {
    fn metadata(&self, token: &Address) -> Result<Option<TokenMetadata>, StoreError> {
        let told = self.observed.metadata(token);
        let told = told.filter(|told| is_told_on(&self.view, told));
        Ok(told.map(|told| told.metadata))
    }

    fn verdict(&self, token: &Address, flagged: bool) -> Result<Verdict, StoreError> {
        let known = self.observed.verdict(token);
        let zero = match known.as_ref().map(|verdict| verdict.zero_address) {
            // Nobody is there to tell.
            Some(ZeroAddress::Untold) if !self.node => ZeroAddress::Burns,
            Some(zero) => zero,
            None => ZeroAddress::default(),
        };
        let exactness = match known {
            _ if flagged => Exactness::Inexact,
            Some(verdict) if stands(&self.view, &verdict) => {
                if verdict.exact {
                    Exactness::Exact
                } else {
                    Exactness::Inexact
                }
            }
            _ if self.node => Exactness::Unjudged,
            _ => Exactness::Exact,
        };
        Ok(Verdict { exactness, zero })
    }

    fn native_differs(&self) -> Option<NativeDiffers> {
        let verdict = self.observed.native_verdict()?;
        // Also where its block is orphaned: what differed came before it, and is compared again at once.
        (!verdict.exact).then(|| NativeDiffers {
            block: verdict.checked.number,
            reason: verdict.reason.clone(),
        })
    }

    fn native_is_judged(&self) -> bool {
        // Without a node there is nothing to wait for.
        !self.node || self.observed.native_verdict().is_some()
    }

    fn feed(&self, feed: &Address) -> Result<Option<FeedFacts>, StoreError> {
        Ok(self.observed.feed(feed))
    }

    fn supply(&self, token: &Address) -> Result<Option<U256>, StoreError> {
        Ok(self.standing(token).and_then(|verdict| verdict.supply))
    }

    fn balance(&self, token: &Address, holder: &Address) -> Result<Option<U256>, StoreError> {
        // Of most holders nothing is told, as their tokens are exact.
        let told = self.observed.balance(token, holder).map(|(balance, _)| balance);
        Ok(told.filter(|_| self.told(token).is_some()))
    }

    fn held_by(
        &self,
        holder: &Address,
        after: Option<&Address>,
        limit: usize,
    ) -> Result<Vec<Address>, StoreError> {
        let from = after.copied().unwrap_or_default();
        // The first may be `after` itself.
        let held = self.observed.held_by(holder, &from, limit.saturating_add(1));
        let mut held = held.unwrap_or_default();
        held.retain(|token| after != Some(token));
        held.truncate(limit);
        Ok(held)
    }

    fn held_by_zero(&self) -> Result<Arc<[Address]>, StoreError> {
        Ok(self.observed.held_by_zero().unwrap_or_default())
    }

    fn holder_count(&self, token: &Address) -> Result<Option<u64>, StoreError> {
        Ok(self.told(token).map(|refreshed| refreshed.holders))
    }

    fn holders(
        &self,
        token: &Address,
        after: Option<(Address, U256)>,
        skip: u64,
        limit: usize,
        deadline: Option<Instant>,
    ) -> Result<Option<Vec<(Address, U256)>>, QueryError> {
        if self.told(token).is_none() {
            return Ok(None);
        }
        let mut time = Limit::new(deadline, HOLDERS_PER_LOOK);
        match after {
            Some(after) => Ok(self.observed.holders_after(token, &after, limit)),
            None => self.observed.holders_past(token, skip, limit, || time.spend(1)),
        }
    }

    fn revision(&self) -> u64 {
        self.revision
    }
}
