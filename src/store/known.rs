//! What was looked up in a snapshot before: tokens by address, ids of contracts and signatures, ends of lists and chunks of them
//! that pages begin in, and hashes of blocks that verdicts rest on.
//!
//! It belongs to one [`View`] and goes with it. What a view sees never changes, so nothing here can be out of date:
//! a commit, an unwinding or a new finality is a new view, which begins with nothing.

use std::fmt;
use std::hash::{BuildHasher as _, Hash};
use std::sync::{Arc, PoisonError, RwLock};

use alloy_primitives::map::{DefaultHashBuilder, HashMap};

use super::cursor::Chunk;
use super::schema::Table;
use super::{StoreError, View};
use crate::codec::keys::Term;
use crate::codec::tokens::TokenState;
use crate::marks::Marks;
use crate::model::{Address, B256};

/// Parts with a lock of their own, so that readers on many cores seldom meet.
const SHARDS: usize = 16;
/// Entries of a part; a full one is emptied. In all 16,384 tokens, some 3 MB, where a view lives long.
const SHARD_MAX: usize = 1024;
/// Chunks of a part, of up to 8 KB each: 8 MB in all.
const CHUNKS_MAX: usize = 64;
/// What is remembered of lists that were looked into once.
const LISTS: usize = 1024;

/// A token of the ledger, as a snapshot has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownToken {
    /// Its id.
    pub id: u32,
    /// Its row.
    pub state: TokenState,
    /// Whether the stored blocks hold all that its contract ever did.
    pub whole: bool,
}

/// A bounded map that many threads read.
#[derive(Debug)]
pub(super) struct Shards<K, V, const MAX: usize = SHARD_MAX>([RwLock<HashMap<K, V>>; SHARDS]);

impl<K, V, const MAX: usize> Default for Shards<K, V, MAX> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| RwLock::default()))
    }
}

impl<K: Eq + Hash, V: Clone, const MAX: usize> Shards<K, V, MAX> {
    fn shard(&self, place: u8) -> &RwLock<HashMap<K, V>> {
        let [first, ..] = &self.0;
        self.0.get(usize::from(place) % SHARDS).unwrap_or(first)
    }

    pub(super) fn get(&self, place: u8, key: &K) -> Option<V> {
        let shard = self.shard(place).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(key).cloned()
    }

    pub(super) fn put(&self, place: u8, key: K, value: V) {
        let mut shard = self.shard(place).write().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= MAX {
            shard.clear();
        }
        shard.insert(key, value);
    }
}

/// What is remembered of one view.
#[derive(Debug, Default)]
pub(super) struct Known {
    tokens: Shards<Address, KnownToken>,
    hashes: Shards<u64, B256>,
    emitters: Shards<Address, u32>,
    signatures: Shards<B256, u32>,
    lists: KnownLists,
}

/// Chunks of lists. Pages of the same list begin with the same look-ups: where it ends, and the chunk of a rank.
struct KnownLists {
    /// By list and place in it.
    chunks: Shards<(Term, u64), Arc<Chunk>, CHUNKS_MAX>,
    hasher: DefaultHashBuilder,
    /// What was looked up once: most lists are looked into once and not again.
    sought: Marks,
}

impl Default for KnownLists {
    fn default() -> Self {
        Self {
            chunks: Shards::default(),
            hasher: DefaultHashBuilder::default(),
            sought: Marks::new(LISTS),
        }
    }
}

impl fmt::Debug for KnownLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownLists").finish_non_exhaustive()
    }
}

/// What `known` remembers of `key`; otherwise `look_up` does, and what it finds is remembered. That there is nothing is not:
/// there are too many keys without a row.
fn remembered<K: Eq + Hash, V: Copy, E>(
    known: &Shards<K, V>,
    place: u8,
    key: K,
    look_up: impl FnOnce() -> Result<Option<V>, E>,
) -> Result<Option<V>, E> {
    if let Some(value) = known.get(place, &key) {
        return Ok(Some(value));
    }
    let found = look_up()?;
    if let Some(value) = found {
        known.put(place, key, value);
    }
    Ok(found)
}

impl View {
    /// A token that was looked up in this view before; otherwise `look_up` does, and what it finds is remembered.
    pub fn known_token<E>(
        &self,
        address: &Address,
        look_up: impl FnOnce() -> Result<Option<KnownToken>, E>,
    ) -> Result<Option<KnownToken>, E> {
        let [.., place] = address.0.0;
        remembered(&self.known.tokens, place, *address, look_up)
    }

    /// The id of an emitter; `None` when it never emitted.
    pub fn emitter(&self, address: &Address) -> Result<Option<u32>, StoreError> {
        let [.., place] = address.0.0;
        remembered(&self.known.emitters, place, *address, || {
            self.id(Table::Emitters, address.as_slice())
        })
    }

    /// The id of a signature; `None` when no log has it as topic 0.
    pub fn signature(&self, topic: &B256) -> Result<Option<u32>, StoreError> {
        let [.., place] = topic.0;
        remembered(&self.known.signatures, place, *topic, || {
            self.id(Table::Signatures, topic.as_slice())
        })
    }

    /// A chunk of a list by its place in it, if it is known.
    pub(super) fn known_chunk(&self, term: Term, place: u64) -> Option<Arc<Chunk>> {
        let lists = &self.known.lists;
        let digest = lists.hasher.hash_one((term, place));
        lists.chunks.get(digest as u8, &(term, place))
    }

    /// Remembers a chunk that was sought before.
    pub(super) fn know_chunk(&self, term: Term, place: u64, chunk: &Arc<Chunk>) {
        let lists = &self.known.lists;
        let digest = lists.hasher.hash_one((term, place));
        if lists.sought.came_before(digest) {
            lists.chunks.put(digest as u8, (term, place), Arc::clone(chunk));
        }
    }

    /// The hash of a block that is asked for again and again: once it was read, it is in memory.
    pub fn known_hash(&self, number: u64) -> Result<B256, StoreError> {
        let place = number.to_le_bytes()[0];
        if let Some(hash) = self.known.hashes.get(place, &number) {
            return Ok(hash);
        }
        let hash = self.block(number)?.hash;
        self.known.hashes.put(place, number, hash);
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_part_is_emptied() {
        let shards = Shards::<u64, u64>::default();
        for key in 0..=SHARD_MAX as u64 {
            shards.put(1, key, key);
        }
        assert_eq!(shards.get(1, &0), None);
        assert_eq!(shards.get(1, &(SHARD_MAX as u64)), Some(SHARD_MAX as u64));
        assert_eq!(shards.get(2, &(SHARD_MAX as u64)), None);
    }
}
