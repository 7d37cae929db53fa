//! Whole objects by other names: blocks by hash, the receipts of a block, uncles, frames of a transaction, and a
//! transaction by its sender's nonce.

use std::ops::Range;

use super::internal::TopFrames;
use super::transactions::fill_blob_gas;
use super::{QueryError, Reader};
use crate::codec::keys::{PostingKind, Term};
use crate::codec::value::{CallOf, FrameRow};
use crate::model::{Address, B256, BlockId, Frame, Header, TransactionEntry};
use crate::store::{Direction, PostingCursor, Table, Units};

/// A transaction with its call frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedTransaction {
    /// Hash.
    pub hash: B256,
    /// Its block.
    pub block: BlockId,
    /// Position in the block.
    pub index: u64,
    /// Frames in the order of execution.
    pub frames: Vec<Frame>,
}

/// An uncle that a block names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncle {
    /// Its hash.
    pub hash: B256,
    /// Its header; `None` where the source of the block did not give it whole.
    pub header: Option<Header>,
}

impl Reader {
    /// The number of the indexed block with this hash.
    pub fn block_number(&self, hash: &B256) -> Result<Option<u64>, QueryError> {
        Ok(self.view.block_number(hash)?)
    }

    /// The transactions of an indexed block, all or some by their places, with their receipts; `with_logs` for the
    /// receipts' logs too.
    pub fn block_entries(
        &self,
        number: u64,
        places: Range<u64>,
        with_logs: bool,
    ) -> Result<Vec<TransactionEntry>, QueryError> {
        let facts = self.view.block(number)?;
        let end = self.view.first_transaction(number + 1)?;
        let header = self.block_row(number)?.header;
        let mut receipts = self.receipt_reader();
        let mut units = Units::new(&self.view, Table::Transactions);
        let first = facts.first_transaction.saturating_add(places.start).min(end);
        let last = facts.first_transaction.saturating_add(places.end).min(end);
        let mut entries = Vec::with_capacity(usize::try_from(last.saturating_sub(first)).unwrap_or(0));
        for ordinal in first..last {
            let row = Self::transaction_row(&mut units, ordinal)?.1;
            let mut entry = self.placed(row, ordinal, number, &facts, &header)?;
            if with_logs {
                entry.receipt = receipts.receipt(ordinal, entry.transaction.hash)?.0;
            }
            fill_blob_gas(&mut entry, &header);
            entries.push(entry);
        }
        Ok(entries)
    }

    /// The uncles of an indexed block, in its order.
    pub fn uncles(&self, number: u64) -> Result<Vec<Uncle>, QueryError> {
        let block = self.block_row(number)?;
        let known = block.uncle_headers.len() == block.uncles.len();
        let mut headers = block.uncle_headers.into_iter();
        let uncles = block.uncles.into_iter().map(|hash| Uncle {
            hash,
            header: headers.next().filter(|header| known && !header.is_partial()),
        });
        Ok(uncles.collect())
    }

    /// The place among all transactions of the one with this hash.
    pub fn transaction_ordinal(&self, hash: &B256) -> Result<Option<u64>, QueryError> {
        Ok(self.view.transaction_ordinal(hash)?)
    }

    /// A transaction by its place among all, with its receipt's logs.
    pub fn transaction_by_ordinal(&self, ordinal: u64) -> Result<TransactionEntry, QueryError> {
        self.entry(ordinal, true)
    }

    /// The frames of the transaction at this place among all; [`QueryError::NeedsTraces`] where they are not stored.
    pub fn traced(&self, ordinal: u64) -> Result<TracedTransaction, QueryError> {
        let (number, facts) = self.view.block_of_transaction(ordinal)?;
        if self.view.block_frames(number)?.is_none() {
            return Err(QueryError::NeedsTraces);
        }
        let index = ordinal - facts.first_transaction;
        let mut units = Units::new(&self.view, Table::Frames);
        let mut frames = Vec::new();
        let mut transactions = Units::new(&self.view, Table::Transactions);
        let (_, transaction) = Self::transaction_row(&mut transactions, ordinal)?;
        let call = CallOf::from(&transaction.transaction);
        let first = TopFrames::new(&self.view).first_of(number, index)?;
        for row in first..self.view.first_frame(number + 1)? {
            let row = FrameRow::decode(units.row(row)?.bytes())
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
            if u64::from(row.transaction_index()) != index {
                break;
            }
            frames.push(row.with(&call).into_frame());
        }
        Ok(TracedTransaction {
            hash: self.view.transaction_hash(ordinal)?,
            block: BlockId {
                number,
                hash: facts.hash,
            },
            index,
            frames,
        })
    }

    /// The hash of the transaction that an account sent with this nonce. An account's nonces rise from one of its
    /// transactions to the next.
    pub fn transaction_by_nonce(&self, sender: &Address, nonce: u64) -> Result<Option<B256>, QueryError> {
        let term = Term::account(PostingKind::AccountSent, sender);
        let mut sent = PostingCursor::open(&self.view, term, Direction::Forward)?;
        let mut units = Units::new(&self.view, Table::Transactions);
        let (mut low, mut high) = (0, sent.count());
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(ordinal) = sent.select(middle)? else {
                break;
            };
            let found = Self::transaction_row(&mut units, ordinal)?.1.transaction.nonce;
            match found.cmp(&nonce) {
                std::cmp::Ordering::Equal => return Ok(Some(self.view.transaction_hash(ordinal)?)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }
}
