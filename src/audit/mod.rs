//! The store against itself and against the node: what `quarry verify` checks.
//!
//! Each check states again, in its own words, what the write side promised, and counts what it looked at. Nothing
//! is mended. Large tables are compared without joining them: of every row that a body calls for a fingerprint is
//! added to its block's sum, of every row that is there it is taken away, so that two scans in their own orders
//! find what is missing and what is too much; only blocks whose sum is not zero are looked at row by row.

mod arrays;
mod blocks;
mod coins;
mod copies;
mod days;
mod draws;
mod expected;
mod facts;
mod native;
mod nonces;
mod postings;
pub mod samples;
mod sums;
mod token_moves;
mod tokens;
mod unfinal;

pub use native::NATIVE;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::{BlockRange, StaticRewards};
use crate::query::{QueryError, Reader, TokenFacts};
use crate::store::{StoreError, View};
use crate::sync::verify::Rules;

/// What a check looked at, and what of it was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Check {
    /// What was checked, a few words.
    pub name: &'static str,
    /// What the items are (`blocks`, `postings`).
    pub unit: &'static str,
    /// Items looked at.
    pub items: u64,
    /// Of those, wrong ones.
    pub mismatches: u64,
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The check that found it.
    pub check: &'static str,
    /// The block that it belongs to, where one can be named.
    pub block: Option<u64>,
    /// One sentence.
    pub text: String,
}

/// Who is told while an audit runs; called from several threads.
pub trait Observer: Sync {
    /// A check begins, over about so many items.
    fn begins(&self, check: &'static str, items: u64);
    /// So many items more were looked at.
    fn advances(&self, items: u64);
    /// Something is wrong.
    fn mismatch(&self, mismatch: &Mismatch);
}

/// An audit of one snapshot.
pub struct Audit<'a> {
    view: Arc<View>,
    reader: Reader,
    range: BlockRange,
    rules: Rules,
    static_rewards: StaticRewards,
    observer: &'a dyn Observer,
}

impl std::fmt::Debug for Audit<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit")
            .field("range", &self.range)
            .finish_non_exhaustive()
    }
}

impl<'a> Audit<'a> {
    /// An audit of the stored blocks in `range`, which the view must hold. Blocks are verified by `rules`.
    #[must_use]
    pub fn new(view: Arc<View>, range: BlockRange, rules: Rules, observer: &'a dyn Observer) -> Self {
        let static_rewards = view.identity().rewards();
        Self {
            reader: Reader::new(Arc::clone(&view)),
            view,
            range,
            rules,
            static_rewards,
            observer,
        }
    }

    /// The same with what is known of tokens from elsewhere: samples are drawn of tokens that are exact.
    #[must_use]
    pub fn with_token_facts(mut self, facts: Arc<dyn TokenFacts>) -> Self {
        self.reader = self.reader.with_token_facts(facts);
        self
    }

    /// Runs every check of the store against itself. What cannot be read is a mismatch: of its row where a check can go on
    /// behind that, else of the check, which ends there; the other checks are run all the same.
    #[must_use]
    pub fn run(&self) -> Vec<Check> {
        let bodies = blocks::Bodies::new(self);
        let mut checks = blocks::run(self, &bodies);
        // Each is dropped as soon as it was looked at: all together take 32 bytes a block.
        let blocks::Bodies {
            lists,
            facts,
            native,
            moves,
            days,
        } = bodies;
        checks.push(postings::run(self, &lists));
        drop(lists);
        checks.push(facts.run());
        checks.push(copies::run(self));
        checks.push(copies::dictionaries(self));
        checks.push(days::run(self, days));
        checks.push(native.run());
        checks.extend(tokens::run(self, &moves));
        checks.push(unfinal::run(self));
        checks
    }

    fn tally(&self, name: &'static str, unit: &'static str, items: u64) -> Tally<'_> {
        self.observer.begins(name, items);
        Tally::new(name, unit, self.observer)
    }

    /// Blocks that the frames of are stored, of those that are audited.
    fn is_traced(&self, block: u64) -> bool {
        block < self.view.checkpoint().next_traced
    }

    /// Whether all blocks are audited that are stored.
    fn is_whole(&self) -> bool {
        self.range.first() == self.view.first_block()
            && self.range.last() + 1 == self.view.checkpoint().next_block
    }

    /// The first block that the ledger of native balances does not follow.
    fn native_end(&self) -> u64 {
        let checkpoint = self.view.checkpoint();
        let fault = checkpoint.native.fault.map(|fault| fault.block);
        fault.map_or(checkpoint.next_traced, |fault| fault.min(checkpoint.next_traced))
    }
}

/// A check under way.
struct Tally<'a> {
    name: &'static str,
    unit: &'static str,
    items: AtomicU64,
    mismatches: AtomicU64,
    observer: &'a dyn Observer,
}

impl<'a> Tally<'a> {
    const fn new(name: &'static str, unit: &'static str, observer: &'a dyn Observer) -> Self {
        Self {
            name,
            unit,
            items: AtomicU64::new(0),
            mismatches: AtomicU64::new(0),
            observer,
        }
    }

    fn items(&self, items: u64) {
        self.count(items);
        self.observer.advances(items);
    }

    /// Counts items of a check that another one tells the progress of.
    fn count(&self, items: u64) {
        self.items.fetch_add(items, Ordering::Relaxed);
    }

    fn wrong(&self, block: Option<u64>, text: impl Into<String>) {
        self.mismatches.fetch_add(1, Ordering::Relaxed);
        self.observer.mismatch(&Mismatch {
            check: self.name,
            block,
            text: text.into(),
        });
    }

    /// A row that cannot be read is wrong; the check goes on.
    fn read<T>(&self, block: u64, row: Result<T, impl Into<QueryError>>) -> Option<T> {
        row.map_err(|error| self.wrong(Some(block), error.into().to_string()))
            .ok()
    }

    /// The check, which an error ended before it was through.
    fn ended(self, walked: Result<(), impl Into<QueryError>>) -> Check {
        if let Err(error) = walked {
            self.wrong(None, format!("cannot be read to the end: {}", error.into()));
        }
        self.done()
    }

    fn done(self) -> Check {
        Check {
            name: self.name,
            unit: self.unit,
            items: self.items.into_inner(),
            mismatches: self.mismatches.into_inner(),
        }
    }
}

/// Told nothing: for a second look.
struct Nobody;

impl Observer for Nobody {
    fn begins(&self, _: &'static str, _: u64) {}
    fn advances(&self, _: u64) {}
    fn mismatch(&self, _: &Mismatch) {}
}

/// The ordinals of the audited blocks: transactions, logs, frames.
#[derive(Clone, Debug)]
struct Ordinals {
    transactions: std::ops::Range<u64>,
    logs: std::ops::Range<u64>,
    frames: std::ops::Range<u64>,
    multi_transfers: std::ops::Range<u64>,
}

impl Ordinals {
    fn of(view: &View, range: BlockRange) -> Result<Self, StoreError> {
        let (first, end) = (range.first(), range.last() + 1);
        let logs = view.first_log(first)?..view.first_log(end)?;
        Ok(Self {
            multi_transfers: view.first_multi_transfer(logs.start)?..view.first_multi_transfer(logs.end)?,
            transactions: view.first_transaction(first)?..view.first_transaction(end)?,
            logs,
            frames: view.first_frame(first)?..view.first_frame(end)?,
        })
    }
}
