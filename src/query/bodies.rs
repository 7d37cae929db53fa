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

/// Whose transactions are searched for a nonce.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Senders {
    /// What accounts signed.
    Themselves,
    /// What a bridge or the chain sent in their name, too.
    All,
}

/// So many transactions of an account are read at most in a search for a nonce: an account in whose name the chain sends may have millions.
const NONCE_LOOKS_MAX: u32 = 500;

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
    /// transactions to the next. What bridges or the chain sent in its name has numbers of another order: that is passed over, and
    /// counts where the account sent nothing with this nonce itself, or so many of those lie in between that nobody looks further.
    pub fn transaction_by_nonce(&self, sender: &Address, nonce: u64) -> Result<Option<B256>, QueryError> {
        let mut search = NonceSearch::new(self, sender, nonce)?;
        let among_all = search.run(Senders::All)?;
        let found = match among_all {
            // All that was met on the way is the account's own, and in order.
            _ if !search.met_of_chain => among_all,
            _ => search.run(Senders::Themselves)?.or(among_all),
        };
        Ok(found
            .map(|ordinal| self.view.transaction_hash(ordinal))
            .transpose()?)
    }
}

/// The search for a nonce among what was sent in an account's name.
struct NonceSearch<'v> {
    sent: PostingCursor<'v>,
    units: Units<'v>,
    nonce: u64,
    met_of_chain: bool,
}

impl<'v> NonceSearch<'v> {
    fn new(reader: &'v Reader, sender: &Address, nonce: u64) -> Result<Self, QueryError> {
        let term = Term::account(PostingKind::AccountSent, sender);
        Ok(Self {
            sent: PostingCursor::open(&reader.view, term, Direction::Forward)?,
            units: Units::new(&reader.view, Table::Transactions),
            nonce,
            met_of_chain: false,
        })
    }

    /// The place of the transaction among those.
    fn run(&mut self, senders: Senders) -> Result<Option<u64>, QueryError> {
        let mut looks = NONCE_LOOKS_MAX;
        let (mut low, mut high) = (0, self.sent.count());
        while low < high {
            let middle = low + (high - low) / 2;
            // The first one from the middle on that counts.
            let (mut place, mut met) = (middle, None);
            while place < high && met.is_none() {
                let Some(ordinal) = self.sent.select(place)?.filter(|_| looks > 0) else {
                    return Ok(None);
                };
                looks -= 1;
                let row = Reader::transaction_row(&mut self.units, ordinal)?.1.transaction;
                self.met_of_chain |= row.is_made_by_chain();
                if senders == Senders::All || !row.is_made_by_chain() {
                    met = Some((ordinal, row.nonce));
                }
                place += 1;
            }
            match met {
                Some((ordinal, found)) if found == self.nonce => return Ok(Some(ordinal)),
                Some((_, found)) if found < self.nonce => low = place,
                _ => high = middle,
            }
        }
        Ok(None)
    }
}
