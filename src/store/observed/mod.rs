//! The side store: what a node told outside of blocks, metadata and verdicts of tokens and the balances of
//! those whose events do not explain them.
//!
//! It lies beside the chain's store in a database of its own and is none of its truth: all of it can be
//! deleted and is asked again. So it never refuses to open. What is damaged, of another chain or of another
//! version is made anew; where nothing can be kept on disk it is kept in memory, and where that fails too
//! nothing is known. What cannot be read counts as not known.

mod balances;
mod open;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use alloy_primitives::map::HashMap;
use rocksdb::{DB, DBPinnableSlice, ReadOptions};

pub use balances::ToldBalance;
pub(super) use open::{is_there, options};

use super::memory;
use super::secondary::Secondary;
use super::view::in_tier;
pub use crate::codec::observed::Refreshed;
use crate::codec::{Corrupt, observed as codec};
use crate::metrics::visits;
use crate::model::{Address, FeedFacts, NATIVE_COIN, TokenVerdict, ToldMetadata, ZeroAddress};

/// What a node told of one chain.
pub struct Observed {
    /// `None` where not even memory could be had.
    db: Option<Arc<DB>>,
    /// Where it lies; `None` in memory.
    directory: Option<PathBuf>,
    /// The same where another process writes it.
    followed: Option<Secondary>,
    /// Raised by everything that readers can see.
    revision: AtomicU64,
    verdicts: RwLock<KnownVerdicts>,
    /// Held while rows that belong together are read and written.
    writing: Mutex<()>,
}

/// A row that could not be read; why, the log tells.
struct Unread;

/// Verdicts that are remembered; where there are more all are forgotten.
const VERDICTS_MAX: usize = 1 << 14;

/// Verdicts as they are on disk: every answer about a token asks for one.
#[derive(Debug, Default)]
struct KnownVerdicts {
    /// Raised by every verdict that is written, after it was: what was read before that is not remembered.
    writes: u64,
    by_token: HashMap<Address, Arc<TokenVerdict>>,
    /// That on the native coin, or that there is none: every answer about a native balance asks.
    native: Option<Option<Arc<TokenVerdict>>>,
    /// The tokens of which the zero address holds what it was sent, by address: every list of what it holds asks.
    held_by_zero: Option<Arc<[Address]>>,
}

impl KnownVerdicts {
    /// Forgets what a verdict that was written says otherwise. The list stays where it says the same: verdicts are written all the time.
    fn forget(&mut self, token: &Address, written: &TokenVerdict) {
        self.writes += 1;
        self.by_token.remove(token);
        self.native = None;
        let holds = written.zero_address == ZeroAddress::Holds;
        let is_listed = |held: &Arc<[Address]>| held.binary_search(token).is_ok();
        self.held_by_zero = self.held_by_zero.take().filter(|held| is_listed(held) == holds);
    }
}

impl std::fmt::Debug for Observed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observed")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Observed {
    /// A number that changes whenever an answer made from here may change. It begins anywhere.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Raises the revision: what is here counts for more, or for less, than it did.
    pub fn changed(&self) {
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether it outlives the process.
    #[must_use]
    pub const fn is_kept(&self) -> bool {
        self.directory.is_some()
    }

    /// What a token says of itself; `None` when it was not asked yet. Whoever uses it looks whether the block it was
    /// asked after is still of the chain.
    #[must_use]
    pub fn metadata(&self, token: &Address) -> Option<ToldMetadata> {
        self.row(&codec::metadata_key(token), codec::decode_metadata)
    }

    /// Keeps what a token says of itself.
    pub fn put_metadata(&self, token: &Address, told: &ToldMetadata) {
        self.put(&codec::metadata_key(token), &codec::encode_metadata(told));
        self.changed();
    }

    /// What a contract of a price feed is; `None` when it was not asked yet.
    #[must_use]
    pub fn feed(&self, feed: &Address) -> Option<FeedFacts> {
        self.row(&codec::feed_key(feed), codec::decode_feed)
    }

    /// Keeps what a contract of a price feed is.
    pub fn put_feed(&self, feed: &Address, facts: &FeedFacts) {
        if self.feed(feed).as_ref() != Some(facts) {
            self.put(&codec::feed_key(feed), &codec::encode_feed(facts));
            self.changed();
        }
    }

    /// The verdict on a token; `None` when there is none yet. Whoever uses it looks whether its blocks are
    /// still those of the chain.
    #[must_use]
    pub fn verdict(&self, token: &Address) -> Option<TokenVerdict> {
        let known = self.verdicts.read().unwrap_or_else(PoisonError::into_inner);
        let writes = known.writes;
        if let Some(verdict) = known.by_token.get(token) {
            return Some(TokenVerdict::clone(verdict));
        }
        drop(known);
        let verdict = self.row(&codec::verdict_key(token), codec::decode_verdict)?;
        let mut known = self.verdicts.write().unwrap_or_else(PoisonError::into_inner);
        if known.writes == writes {
            if known.by_token.len() >= VERDICTS_MAX {
                known.by_token.clear();
            }
            known.by_token.insert(*token, Arc::new(verdict.clone()));
        }
        Some(verdict)
    }

    /// The verdict on the ledger of native balances, which is kept under [`NATIVE_COIN`].
    #[must_use]
    pub fn native_verdict(&self) -> Option<Arc<TokenVerdict>> {
        let known = self.verdicts.read().unwrap_or_else(PoisonError::into_inner);
        let writes = known.writes;
        if let Some(verdict) = &known.native {
            return verdict.clone();
        }
        drop(known);
        let verdict = self.verdict(&NATIVE_COIN).map(Arc::new);
        let mut known = self.verdicts.write().unwrap_or_else(PoisonError::into_inner);
        // An attempt out of memory may have taken a miss for absence.
        if known.writes == writes && !memory::has_missed() {
            known.native = Some(verdict.clone());
        }
        verdict
    }

    /// Keeps the verdict on a token.
    pub fn put_verdict(&self, token: &Address, verdict: &TokenVerdict) {
        let shown = |verdict: &TokenVerdict| (verdict.exact, verdict.zero_address, verdict.supply);
        let before = self.verdict(token);
        self.put(&codec::verdict_key(token), &codec::encode_verdict(verdict));
        {
            let mut known = self.verdicts.write().unwrap_or_else(PoisonError::into_inner);
            known.forget(token, verdict);
        }
        if before.as_ref().map(shown) != Some(shown(verdict)) {
            self.changed();
        }
    }

    /// Whether another process writes it, and [`Observed::catch_up`] learns what it wrote.
    #[must_use]
    pub const fn is_followed(&self) -> bool {
        self.followed.is_some()
    }

    /// Reads verdicts anew from now on.
    fn forget_verdicts(&self) {
        let mut known = self.verdicts.write().unwrap_or_else(PoisonError::into_inner);
        known.writes += 1;
        known.by_token.clear();
        known.native = None;
        known.held_by_zero = None;
    }

    fn get(&self, key: &[u8]) -> Result<Option<DBPinnableSlice<'_>>, Unread> {
        visits::get();
        let Some(db) = &self.db else { return Ok(None) };
        db.get_pinned_opt(key, &in_tier(ReadOptions::default()))
            .map_err(|error| {
                if error.kind() == rocksdb::ErrorKind::Incomplete {
                    memory::miss();
                } else {
                    self.damaged(&error);
                }
                Unread
            })
    }

    /// A row, whose absence is told from a failure to read it, which the log tells.
    fn try_row<T>(
        &self,
        key: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, Corrupt>,
    ) -> Result<Option<T>, Unread> {
        let Some(value) = self.get(key)? else {
            return Ok(None);
        };
        decode(&value).map(Some).map_err(|error| {
            tracing::warn!(%error, key = const_hex::encode(key), "side store: a row is asked again");
            Unread
        })
    }

    /// A row; one that cannot be read is as good as none, for it is asked again.
    fn row<T>(&self, key: &[u8], decode: impl FnOnce(&[u8]) -> Result<T, Corrupt>) -> Option<T> {
        self.try_row(key, decode).ok().flatten()
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        let mut rows = rocksdb::WriteBatch::default();
        rows.put(key, value);
        self.write(rows);
    }

    /// Writes rows, all or none. What cannot be written is asked again some time.
    fn write(&self, rows: rocksdb::WriteBatch) {
        if let Some(db) = &self.db
            && let Err(error) = db.write(rows)
        {
            self.damaged(&error);
        }
    }

    /// Says what is wrong, and lets the next opening begin anew where bytes are damaged.
    fn damaged(&self, error: &rocksdb::Error) {
        tracing::warn!(%error, "side store failed; what it holds is asked again");
        if error.kind() == rocksdb::ErrorKind::Corruption
            && let Some(directory) = &self.directory
        {
            let _ = std::fs::write(directory.join(open::DAMAGED), b"");
        }
    }
}
