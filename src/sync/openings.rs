//! What accounts held before the first stored block, asked of the node when a block first touches them.
//!
//! A store with a genesis allocation needs none of it. Blocks in flight are looked at before the ones in front of them
//! are stored, so an account may be asked for in vain; the ledger takes what it needs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, TryStreamExt};

use super::derive::native::{NativeRules, touched};
use super::error::SyncError;
use super::held::{IN_FLIGHT_MAX, is_same, same_branch, their_hash};
use crate::model::{Address, B256, Bundle, U256};
use crate::node::Node;
use crate::store::Store;
use crate::tasks;

/// Answers that are kept for the blocks that follow.
const KEPT_MAX: usize = 1 << 18;

/// Tells bundles their openings.
#[derive(Debug)]
pub(super) struct Openings {
    node: Node,
    store: Arc<Store>,
    rules: NativeRules,
    /// The first block; balances are asked for as they were before it.
    first: u64,
    /// Its hash, once known: what is told must be of its branch.
    branch: Mutex<Option<B256>>,
    told: Mutex<HashMap<Address, U256>>,
}

impl Openings {
    /// `None` where the ledger needs no openings: it has the allocation, or will have, or is not kept.
    pub(super) fn wanted(node: &Node, store: &Arc<Store>, rules: &NativeRules) -> Option<Arc<Self>> {
        let view = store.view();
        let first = view.first_block();
        let native = view.checkpoint().native;
        let empty = view.checkpoint().next_traced == first;
        let allocated = native.allocated || (empty && first == 0 && rules.allocation.is_some());
        if allocated || native.fault.is_some() {
            return None;
        }
        Some(Arc::new(Self {
            node: node.clone(),
            store: Arc::clone(store),
            rules: rules.clone(),
            first,
            branch: Mutex::new(view.block(first).ok().map(|first| first.hash)),
            told: Mutex::default(),
        }))
    }

    /// Adds what the accounts that the bundle touches, and the store does not know, held before the first block.
    pub(super) async fn tell(self: Arc<Self>, bundle: Bundle) -> Result<Bundle, SyncError> {
        let own = Arc::clone(&self);
        let looked = tasks::blocking(move || {
            let unknown = own.unknown(&bundle)?;
            Ok::<_, SyncError>((bundle, unknown))
        });
        let (mut bundle, unknown) = looked.await??;
        let block = bundle.block.number();
        if block == self.first {
            self.is_of(bundle.block.hash)?;
        }
        let branch = if unknown.is_empty() {
            None
        } else {
            self.branch().await?
        };
        let asked = futures_util::stream::iter(unknown).map(|account| {
            let own = &self;
            async move { Ok::<_, SyncError>((account, own.balance(account, block).await?)) }
        });
        bundle.openings = Some(asked.buffer_unordered(IN_FLIGHT_MAX).try_collect().await?);
        if let Some(hash) = branch {
            same_branch(&self.node, self.first, hash).await?;
        }
        Ok(bundle)
    }

    /// The hash of the first block, by which the branch is known that balances are told of; `None` where there are no
    /// branches.
    async fn branch(&self) -> Result<Option<B256>, SyncError> {
        if self.first == 0 {
            return Ok(None);
        }
        let known = *self.known_branch();
        if known.is_some() {
            return Ok(known);
        }
        let found = their_hash(&self.node, self.first).await?;
        self.is_of(found)?;
        Ok(Some(found))
    }

    /// Takes the hash of the first block; fails where it was another one before.
    fn is_of(&self, hash: B256) -> Result<(), SyncError> {
        let expected = *self.known_branch().get_or_insert(hash);
        is_same(self.first, expected, hash)
    }

    fn known_branch(&self) -> std::sync::MutexGuard<'_, Option<B256>> {
        self.branch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks.
    fn unknown(&self, bundle: &Bundle) -> Result<Vec<Address>, SyncError> {
        let view = self.store.view();
        let mut unknown = Vec::new();
        for account in touched(bundle, &self.rules) {
            if view.account(&account)?.is_none() {
                unknown.push(account);
            }
        }
        Ok(unknown)
    }

    async fn balance(&self, account: Address, block: u64) -> Result<U256, SyncError> {
        if let Some(&told) = self.told().get(&account) {
            return Ok(told);
        }
        let balance = self.node.balance(account, self.first.saturating_sub(1)).await;
        let balance = balance.map_err(|source| SyncError::Node { block, source })?;
        let mut told = self.told();
        if told.len() >= KEPT_MAX {
            told.clear();
        }
        told.insert(account, balance);
        Ok(balance)
    }

    fn told(&self) -> std::sync::MutexGuard<'_, HashMap<Address, U256>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
