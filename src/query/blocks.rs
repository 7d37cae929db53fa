//! Questions about blocks: B1, B2, `eth_getBlockByNumber`, and whole bundles for export.

use super::{QueryError, Reader};
use crate::codec::keys;
use crate::codec::value::{CallOf, FrameRow, decode_block};
use crate::model::{Block, BlockEntry, Bundle, Transaction, TransactionTrace};
use crate::store::{StoreError, Table, Units, View};

/// Transactions of a block (B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCounts {
    /// Normal transactions.
    pub transactions: u64,
    /// Internal transactions of the default set; `None` where the store has no frames of the block.
    pub internal_transactions: Option<u64>,
}

/// A block's number and time (B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTime {
    /// Block number.
    pub number: u64,
    /// Unix time, seconds.
    pub timestamp: u64,
}

/// Which side of a time is asked for (B2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closest {
    /// The greatest block with a time at or before it.
    Before,
    /// The least block with a time at or after it.
    After,
}

/// A block's row, without its transactions.
pub(super) fn block_row(view: &View, number: u64) -> Result<Block, QueryError> {
    let name = Table::Blocks.name();
    let missing = StoreError::Missing {
        table: name,
        what: "block",
        number,
    };
    let row = view.get(Table::Blocks, &keys::number(number))?.ok_or(missing)?;
    decode_block(&row).map_err(|corrupt| QueryError::Corrupt(corrupt, name))
}

impl Reader {
    /// How many transactions a block has; `None` for a block that is not indexed.
    pub fn block_counts(&self, number: u64) -> Result<Option<BlockCounts>, QueryError> {
        if !self.holds(number) {
            return Ok(None);
        }
        let transactions = self.view.first_transaction(number + 1)? - self.view.first_transaction(number)?;
        let frames = self.view.block_frames(number)?;
        let internal_transactions = frames.map(|frames| u64::from(frames.internal_transactions));
        Ok(Some(BlockCounts {
            transactions,
            internal_transactions,
        }))
    }

    /// When a stored block was made, Unix seconds.
    pub fn block_time(&self, number: u64) -> Result<u64, QueryError> {
        Ok(self.view.block(number)?.timestamp)
    }

    /// The block closest to a time on one side.
    pub fn block_by_time(&self, unix: u64, closest: Closest) -> Result<Option<BlockTime>, QueryError> {
        let time = |number: u64| -> Result<Option<BlockTime>, QueryError> {
            let timestamp = self.view.block(number)?.timestamp;
            Ok(Some(BlockTime { number, timestamp }))
        };
        match closest {
            Closest::Before => match self.view.block_at_or_before(unix)? {
                Some((number, _)) => time(number),
                None => Ok(None),
            },
            Closest::After => {
                let before = match unix.checked_sub(1) {
                    Some(unix) => self.view.block_at_or_before(unix)?,
                    None => None,
                };
                let number = before.map_or(self.first_block(), |(number, _)| number + 1);
                if self.holds(number) {
                    time(number)
                } else {
                    Ok(None)
                }
            }
        }
    }

    pub(super) fn block_row(&self, number: u64) -> Result<Block, QueryError> {
        block_row(&self.view, number)
    }

    /// A block with its transactions (`full`) or with their hashes only; `None` when it is not indexed.
    pub fn block(&self, number: u64, full: bool) -> Result<Option<BlockEntry>, QueryError> {
        if !self.holds(number) {
            return Ok(None);
        }
        let mut block = self.block_row(number)?;
        let ordinals = self.view.first_transaction(number)?..self.view.first_transaction(number + 1)?;
        let transaction_hashes = ordinals
            .clone()
            .map(|ordinal| self.view.transaction_hash(ordinal))
            .collect::<Result<Vec<_>, _>>()?;
        if full {
            let mut units = Units::new(&self.view, Table::Transactions);
            for ordinal in ordinals {
                let mut transaction = Self::transaction_row(&mut units, ordinal)?.1.transaction;
                self.view.complete(&mut transaction, ordinal)?;
                block.transactions.push(transaction);
            }
        }
        Ok(Some(BlockEntry {
            block,
            transaction_hashes,
        }))
    }

    /// Everything that was stored of a block, as it was when it was verified.
    pub fn bundle(&self, number: u64) -> Result<Option<Bundle>, QueryError> {
        let Some(BlockEntry { block, .. }) = self.block(number, true)? else {
            return Ok(None);
        };
        let first = self.view.first_transaction(number)?;
        let mut receipts = Vec::with_capacity(block.transactions.len());
        let mut reader = self.receipt_reader();
        for (ordinal, transaction) in (first..).zip(&block.transactions) {
            receipts.push(reader.receipt(ordinal, transaction.hash)?.0);
        }
        let traces = self.traces(number, &block.transactions)?;
        Ok(Some(Bundle {
            block,
            receipts,
            traces,
            openings: None,
        }))
    }

    /// The frames of a block, by its transactions; `None` where they are not stored.
    fn traces(
        &self,
        number: u64,
        transactions: &[Transaction],
    ) -> Result<Option<Vec<TransactionTrace>>, QueryError> {
        let Some(frames) = self.view.block_frames(number)? else {
            return Ok(None);
        };
        let end = self.view.first_frame(number + 1)?;
        let mut traces = vec![TransactionTrace::default(); transactions.len()];
        let mut units = Units::new(&self.view, Table::Frames);
        for ordinal in frames.first_frame..end {
            let row = units.row(ordinal)?;
            let row = FrameRow::decode(row.bytes())
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
            let index = row.transaction_index() as usize;
            if let Some((trace, transaction)) = traces.get_mut(index).zip(transactions.get(index)) {
                trace
                    .frames
                    .push(row.with(&CallOf::from(transaction)).into_frame());
            }
        }
        Ok(Some(traces))
    }
}
