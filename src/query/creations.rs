//! C3: who made a contract, how, and with which code.

use super::internal::TopFrames;
use super::{QueryError, Reader};
use crate::codec::keys::{self, PostingKind, Term};
use crate::codec::log_row::decode_block_row;
use crate::codec::value::{Creation, FrameRow};
use crate::model::{Address, B256, Bytes, FrameKind};
use crate::store::{Direction, PostingCursor, Table, Units};

/// How a contract came to be: its latest creation (C3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractCreation {
    /// The account that sent the creating transaction.
    pub creator: Address,
    /// The contract that made it; `None` where the transaction itself did.
    pub factory: Option<Address>,
    /// Hash of the creating transaction.
    pub transaction_hash: B256,
    /// Its block.
    pub block: u64,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
    /// Init code.
    pub init_code: Bytes,
}

/// What the store knows of a contract's creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    /// This is the latest.
    Known(ContractCreation),
    /// There is none in the store's blocks.
    Unknown,
    /// Frames that are not stored could tell of one.
    NeedsTraces,
}

impl Reader {
    /// Whether the stored blocks hold all that a contract ever did, as far as they can tell: they are the whole chain, or made it first.
    pub(super) fn holds_all_of(&self, contract: &Address) -> Result<bool, QueryError> {
        if self.first_block() == 0 {
            return Ok(true);
        }
        let Some((transaction, creation)) = self.creation(contract, Direction::Forward)? else {
            return Ok(false);
        };
        // An account's nonce never comes again. What a factory made it can make again, once it destroyed itself.
        Ok(creation.factory.is_none() || !self.was_there_before(contract, transaction)?)
    }

    /// Whether the store has something that only a contract's code can have done at an address before a transaction: a log, or its end.
    /// Anybody can call or pay an address at which there is nothing.
    fn was_there_before(&self, contract: &Address, transaction: u64) -> Result<bool, QueryError> {
        let view = &*self.view;
        let (block, facts) = view.block_of_transaction(transaction)?;
        let place = (block, transaction - facts.first_transaction);
        if let Some(emitter) = view.emitter(contract)?
            && let Some(log) =
                PostingCursor::open(view, Term::log_address(emitter), Direction::Forward)?.seek(0)?
        {
            let mut row = Units::new(view, Table::LogsByBlock);
            let mut row = row.row(log)?;
            let of_log = decode_block_row(&mut row.reader)
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::LogsByBlock.name()))?;
            if (row.block, u64::from(of_log.transaction_index)) < place {
                return Ok(true);
            }
        }
        // An end sets the nonce to 0, by a row at its block.
        let mut scan = view.scan_account(Table::Nonces, contract, block)?;
        if scan.seek(&keys::account_at(contract, 0))?.is_some() {
            return Ok(true);
        }
        // Where it is made again in the same block there is one row for both.
        let mut frames = TopFrames::new(view);
        let range = view.first_frame(block)?..frames.first_of(block, place.1)?;
        let term = Term::account(PostingKind::AccountInternal, contract);
        let mut list = PostingCursor::open(view, term, Direction::Forward)?;
        let mut units = Units::new(view, Table::Frames);
        let mut at = list.seek(range.start)?;
        while let Some(frame) = at.filter(|frame| *frame < range.end) {
            let row = FrameRow::decode(units.row(frame)?.bytes())
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
            if let FrameRow::Whole(frame) = row
                && frame.kind == FrameKind::SelfDestruct
                && frame.from == *contract
                && !frame.reverted
            {
                return Ok(true);
            }
            at = list.step()?;
        }
        Ok(false)
    }

    /// The row of the latest creation of a contract, and its transaction's ordinal.
    pub(super) fn latest_creation(&self, contract: &Address) -> Result<Option<(u64, Creation)>, QueryError> {
        self.creation(contract, Direction::Backward)
    }

    /// The same of the first creation from an end of the chain on.
    fn creation(
        &self,
        contract: &Address,
        direction: Direction,
    ) -> Result<Option<(u64, Creation)>, QueryError> {
        let mut scan = self.view.scan_account(Table::Creations, contract, u64::MAX)?;
        let found = match direction {
            Direction::Forward => scan.seek(&keys::account_at(contract, 0))?,
            Direction::Backward => scan.seek_back(&keys::account_at(contract, u64::MAX))?,
        };
        let Some((key, value)) = found else {
            return Ok(None);
        };
        let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::Creations.name());
        let (_, ordinal) = keys::decode_account_at(key).map_err(corrupt)?;
        Ok(Some((ordinal, Creation::decode(value).map_err(corrupt)?)))
    }

    /// The latest creation of a contract.
    pub fn contract_creation(&self, contract: &Address) -> Result<Created, QueryError> {
        let Some((ordinal, creation)) = self.latest_creation(contract)? else {
            return Ok(if self.has_traces() {
                Created::Unknown
            } else {
                Created::NeedsTraces
            });
        };
        // What a factory made it can make again, after a self-destruct; an account's nonce never comes again.
        if creation.factory.is_some() && !self.has_traces() {
            return Ok(Created::NeedsTraces);
        }
        let mut units = Units::new(&self.view, Table::Transactions);
        let (block, row) = Self::transaction_row(&mut units, ordinal)?;
        let init_code = match creation.frame {
            None => row.transaction.input,
            Some(frame) => {
                let mut units = Units::new(&self.view, Table::Frames);
                let frame = FrameRow::decode(units.row(frame)?.bytes())
                    .and_then(FrameRow::nested)
                    .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Frames.name()))?;
                Bytes::copy_from_slice(frame.input)
            }
        };
        Ok(Created::Known(ContractCreation {
            creator: row.transaction.from,
            factory: creation.factory.map(Address::from),
            transaction_hash: self.view.transaction_hash(ordinal)?,
            block,
            timestamp: self.view.block(block)?.timestamp,
            init_code,
        }))
    }
}
