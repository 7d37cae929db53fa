//! Hashes of the transactions of a page.

use std::sync::Arc;

use super::QueryError;
use super::page::Page;
use crate::model::B256;
use crate::store::{StoreError, View};

/// Hashes that are read at once. Each waits for memory by itself, and for no other of them.
const HASHES_AHEAD: usize = 16;

/// Hashes of transactions in the order of a page.
pub(super) struct Hashes {
    hits: Arc<Vec<u64>>,
    next: usize,
    /// Those that come next, the last one first.
    found: Vec<B256>,
}

impl Hashes {
    /// Those of the rows of `page`, which are transactions, that were not visited yet.
    pub(super) fn of(page: &Page) -> Self {
        let (hits, next) = page.rest();
        Self {
            hits,
            next,
            found: Vec::with_capacity(HASHES_AHEAD),
        }
    }

    /// The hash of the transaction that comes next.
    pub(super) fn next(&mut self, view: &View) -> Result<B256, QueryError> {
        if self.found.is_empty() {
            let end = self.hits.len().min(self.next + HASHES_AHEAD);
            for &ordinal in self.hits.get(self.next..end).unwrap_or(&[]).iter().rev() {
                self.found.push(view.transaction_hash(ordinal)?);
            }
            self.next = end;
        }
        let missing = StoreError::Missing {
            table: "transaction_hashes",
            what: "row of a page",
            number: self.next as u64,
        };
        Ok(self.found.pop().ok_or(missing)?)
    }
}
