//! Questions about one transaction: X1, X2, `eth_getTransactionByHash`, `eth_getTransactionReceipt`.

use super::internal::{TopCall, TopFrames, TopOutcome};
use super::{QueryError, Reader};
use crate::codec::transaction_row::{TransactionRow, decode_transaction};
use crate::codec::value::{blob_gas_used, blob_price};
use crate::model::{Address, B256, BlockId, Bloom, Bytes, FrameKind, Header, Log, Receipt, TransactionEntry};
use crate::store::{BlockFacts, Table, Units, View, give_up, is_from_memory};

/// So many frames of a transaction are looked through for whose code ran.
const FRAMES_MAX: u64 = 4096;

/// So many contracts are taken that ran for one.
const RAN_MAX: usize = 8;

/// What became of a transaction (X1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// No such transaction is indexed.
    Unknown,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It lies before Byzantium and the store has no frames, which alone tell.
    NeedsTraces,
}

/// What became of a transaction, and why (X2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Execution {
    /// No such transaction is indexed.
    Unknown,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed {
        /// The top call's error, as traces word it; empty where they tell of none.
        error: String,
        /// What the top call handed back: the revert data.
        output: Bytes,
    },
    /// It failed or may have failed, and the store lacks the frames that tell.
    NeedsTraces,
}

/// What became of a transaction, and for how long that is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionOutcome {
    /// What became of it.
    pub status: TransactionStatus,
    /// Whether its block is final; false of an unknown transaction.
    pub is_final: bool,
}

impl From<bool> for TransactionStatus {
    fn from(success: bool) -> Self {
        if success { Self::Succeeded } else { Self::Failed }
    }
}

/// A receipt of more logs is not made out of memory alone, as what is quick is.
const LOGS_AT_HAND: usize = 64;

/// Reads receipts with their logs; neighbours share reads.
pub(super) struct ReceiptReader<'v> {
    view: &'v View,
    transactions: Units<'v>,
    logs: Units<'v>,
}

impl ReceiptReader<'_> {
    /// The receipt of a transaction, and the place in the block of its first log.
    pub(super) fn receipt(&mut self, ordinal: u64, hash: B256) -> Result<(Receipt, u32), QueryError> {
        let (block, row) = Reader::transaction_row(&mut self.transactions, ordinal)?;
        if row.logs.len() > LOGS_AT_HAND && is_from_memory() {
            // Of so many rows a thread that owns sockets would make others wait.
            give_up();
            return Ok((row.receipt, 0));
        }
        let first_of_block = self.view.block(block)?.first_log;
        let mut receipt = row.receipt;
        receipt.transaction_hash = hash;
        let mut bloom = Bloom::ZERO;
        let mut data = Vec::new();
        for ordinal in row.logs.clone().map(|place| first_of_block + u64::from(place)) {
            let whole = self.logs.log(self.view, ordinal, &mut data)?;
            let log = Log {
                address: self.view.emitter_address(whole.emitter)?,
                topics: whole.topics,
                data: data.clone().into(),
            };
            bloom.accrue_raw_log(log.address, &log.topics);
            receipt.logs.push(log);
        }
        receipt.logs_bloom = bloom;
        Ok((receipt, row.logs.start))
    }
}

/// Fills in what the receipt of a blob transaction says of blobs, where a recording left it out: it follows from
/// the transaction and the header (EIP-4844).
pub(super) fn fill_blob_gas(entry: &mut TransactionEntry, header: &Header) {
    if let Some(blobs) = &entry.transaction.blob_versioned_hashes {
        let used = blob_gas_used(entry.receipt.blob_gas_used, blobs.len());
        entry.receipt.blob_gas_used = Some(used);
        if entry.receipt.blob_gas_price.is_none() {
            entry.receipt.blob_gas_price = blob_price(header).and_then(|price| u128::try_from(price).ok());
        }
    }
}

impl Reader {
    pub(super) fn receipt_reader(&self) -> ReceiptReader<'_> {
        ReceiptReader {
            view: &self.view,
            transactions: Units::new(&self.view, Table::Transactions),
            logs: Units::new(&self.view, Table::LogsByBlock),
        }
    }

    /// A transaction's row, without its hash and signature, and its block's number.
    pub(super) fn transaction_row(
        units: &mut Units<'_>,
        ordinal: u64,
    ) -> Result<(u64, TransactionRow), QueryError> {
        let row = units.row(ordinal)?;
        let decoded = decode_transaction(row.bytes())
            .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Transactions.name()))?;
        Ok((row.block, decoded))
    }

    /// What became of a transaction: its receipt's word, before Byzantium the top frame's.
    pub fn transaction_outcome(&self, hash: &B256) -> Result<TransactionOutcome, QueryError> {
        let Some(ordinal) = self.view.transaction_ordinal(hash)? else {
            return Ok(TransactionOutcome {
                status: TransactionStatus::Unknown,
                is_final: false,
            });
        };
        Ok(TransactionOutcome {
            status: self.status_of(ordinal)?,
            is_final: self.view.is_final_transaction(ordinal),
        })
    }

    /// Whether a transaction is indexed and its block final.
    pub fn is_final_transaction(&self, hash: &B256) -> Result<bool, QueryError> {
        let ordinal = self.view.transaction_ordinal(hash)?;
        Ok(ordinal.is_some_and(|ordinal| self.view.is_final_transaction(ordinal)))
    }

    /// What became of a transaction, without finality.
    pub fn transaction_status(&self, hash: &B256) -> Result<TransactionStatus, QueryError> {
        self.transaction_outcome(hash).map(|outcome| outcome.status)
    }

    fn status_of(&self, ordinal: u64) -> Result<TransactionStatus, QueryError> {
        if let Some(success) = self.view.transaction_status(ordinal)? {
            return Ok(success.into());
        }
        let success = self.top_call(ordinal)?.success();
        Ok(success.map_or(TransactionStatus::NeedsTraces, Into::into))
    }

    /// What became of a transaction, and of a failed one why.
    pub fn execution(&self, hash: &B256) -> Result<Execution, QueryError> {
        let Some(ordinal) = self.view.transaction_ordinal(hash)? else {
            return Ok(Execution::Unknown);
        };
        let stated = self.view.transaction_status(ordinal)?;
        if stated == Some(true) {
            return Ok(Execution::Succeeded);
        }
        let top = match self.top_call(ordinal)? {
            TopCall::Untold => return Ok(Execution::NeedsTraces),
            TopCall::Absent => TopOutcome::default(),
            TopCall::Ended(top) => top,
        };
        Ok(match top.error {
            None if stated.is_none() => Execution::Succeeded,
            error => Execution::Failed {
                error: error.unwrap_or_default(),
                output: top.output,
            },
        })
    }

    /// The contracts of a transaction's failed calls that handed back `output`, the innermost first: what a proxy or a
    /// router hands on is what the contract behind it said. Where traces leave nested output out it is the top
    /// call's contract, and whose code that ran.
    pub(super) fn reverters(&self, hash: &B256, output: &[u8]) -> Result<Vec<Address>, QueryError> {
        let Some(ordinal) = self.view.transaction_ordinal(hash)? else {
            return Ok(Vec::new());
        };
        let (block, facts) = self.view.block_of_transaction(ordinal)?;
        let place = (block, ordinal - facts.first_transaction);
        let (mut said, mut top) = (Vec::new(), None);
        TopFrames::new(&self.view).visit(place, FRAMES_MAX, &mut |frame| {
            if frame.path.is_empty() {
                top = frame.to;
            }
            let runs_for_top = frame.kind == FrameKind::DelegateCall && Some(frame.from) == top;
            let handed_on = frame.output == output || (frame.output.is_empty() && runs_for_top);
            if frame.error.is_some() && handed_on && !frame.kind.is_creation() {
                said.extend(frame.to);
            }
            true
        })?;
        said.reverse();
        Ok(said)
    }

    /// The contracts whose code ran in the name of `contract` for calls with this selector, in the order of execution;
    /// `None` where the frames of the block are not stored.
    pub(super) fn ran_for(
        &self,
        place: (u64, u64),
        contract: &Address,
        selector: [u8; 4],
    ) -> Result<Option<Vec<Address>>, QueryError> {
        let mut ran = Vec::new();
        let stored = TopFrames::new(&self.view).visit(place, FRAMES_MAX, &mut |frame| {
            let delegated = matches!(frame.kind, FrameKind::DelegateCall | FrameKind::CallCode);
            if delegated && frame.from == *contract && frame.input.starts_with(&selector) {
                ran.extend(frame.to);
            }
            ran.len() < RAN_MAX
        })?;
        Ok(stored.then_some(ran))
    }

    /// What is known of the top call of a transaction.
    pub(super) fn top_call(&self, ordinal: u64) -> Result<TopCall, QueryError> {
        let (block, facts) = self.view.block_of_transaction(ordinal)?;
        let index = ordinal - facts.first_transaction;
        TopFrames::new(&self.view).top_call(block, index)
    }

    /// A transaction's row in its place, without its logs.
    pub(super) fn placed(
        &self,
        row: TransactionRow,
        ordinal: u64,
        number: u64,
        facts: &BlockFacts,
        header: &Header,
    ) -> Result<TransactionEntry, QueryError> {
        let mut entry = TransactionEntry {
            transaction: row.transaction,
            receipt: row.receipt,
            block: BlockId {
                number,
                hash: facts.hash,
            },
            timestamp: facts.timestamp,
            base_fee_per_gas: header.base_fee_per_gas,
            transaction_index: u32::try_from(ordinal - facts.first_transaction).unwrap_or(u32::MAX),
            first_log_index: row.logs.start,
        };
        self.view.complete(&mut entry.transaction, ordinal)?;
        entry.receipt.transaction_hash = entry.transaction.hash;
        Ok(entry)
    }

    /// The transaction at this place among all, with the logs of its receipt or without.
    pub(super) fn entry(&self, ordinal: u64, with_logs: bool) -> Result<TransactionEntry, QueryError> {
        let mut units = Units::new(&self.view, Table::Transactions);
        let (number, row) = Self::transaction_row(&mut units, ordinal)?;
        let facts = self.view.block(number)?;
        let header = self.block_row(number)?.header;
        let mut entry = self.placed(row, ordinal, number, &facts, &header)?;
        if with_logs {
            entry.receipt = self.receipt_reader().receipt(ordinal, entry.transaction.hash)?.0;
        }
        fill_blob_gas(&mut entry, &header);
        Ok(entry)
    }

    /// A transaction by hash; `None` when it is not indexed.
    pub fn transaction(&self, hash: &B256) -> Result<Option<TransactionEntry>, QueryError> {
        let ordinal = self.view.transaction_ordinal(hash)?;
        ordinal.map(|ordinal| self.entry(ordinal, false)).transpose()
    }

    /// A transaction by its place; `None` when there is none.
    pub fn transaction_at(&self, number: u64, index: u64) -> Result<Option<TransactionEntry>, QueryError> {
        if !self.holds(number) {
            return Ok(None);
        }
        let first = self.view.first_transaction(number)?;
        let end = self.view.first_transaction(number + 1)?;
        match first.checked_add(index).filter(|&ordinal| ordinal < end) {
            Some(ordinal) => self.entry(ordinal, false).map(Some),
            None => Ok(None),
        }
    }

    /// A transaction with its receipt's logs; `None` when it is not indexed.
    pub fn receipt(&self, hash: &B256) -> Result<Option<TransactionEntry>, QueryError> {
        let ordinal = self.view.transaction_ordinal(hash)?;
        ordinal.map(|ordinal| self.entry(ordinal, true)).transpose()
    }
}
