//! How long lists are, told by the lists themselves without walking them.

use super::{QueryError, Reader};
use crate::codec::keys::{PostingKind, Term};
use crate::model::{Address, B256};
use crate::store::{Direction, PostingCursor};

/// A list that answers are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Logs of a contract.
    LogsOf(Address),
    /// Logs with a topic at a position, 0 to 3.
    LogsWith(usize, B256),
    /// Transactions of an account.
    Transactions(Address),
    /// Internal transactions of an account (default set).
    Internal(Address),
    /// ERC-20 transfers of an account.
    Erc20(Address),
    /// ERC-721 transfers of an account.
    Erc721(Address),
    /// Blocks that an account sealed.
    Mined(Address),
}

impl Reader {
    /// How many rows a list has over the whole chain; one look-up.
    pub fn count(&self, list: Listed) -> Result<u64, QueryError> {
        let view = &*self.view;
        let account = |kind, address| Some(Term::account(kind, &address));
        let term = match list {
            Listed::LogsOf(address) => view.emitter(&address)?.map(Term::log_address),
            Listed::LogsWith(0, topic) => view.signature(&topic)?.map(Term::topic0),
            Listed::LogsWith(position, topic) => Term::topic(position, &topic),
            Listed::Transactions(address) => account(PostingKind::AccountTransactions, address),
            Listed::Internal(address) => account(PostingKind::AccountInternal, address),
            Listed::Erc20(address) => account(PostingKind::AccountErc20, address),
            Listed::Erc721(address) => account(PostingKind::AccountErc721, address),
            Listed::Mined(address) => account(PostingKind::AccountMined, address),
        };
        let cursor = term.map(|term| PostingCursor::open(view, term, Direction::Forward));
        Ok(cursor.transpose()?.map_or(0, |cursor| cursor.count()))
    }

    /// How many logs, transactions, contracts with logs and distinct topics 0 the store holds.
    #[must_use]
    pub fn contents(&self) -> Contents {
        let checkpoint = self.view.checkpoint();
        Contents {
            logs: checkpoint.logs,
            transactions: checkpoint.transactions,
            emitters: checkpoint.emitters,
            signatures: checkpoint.signatures,
        }
    }

    /// The contract that was the `place`-th to have a log, from 0.
    pub fn emitter_at(&self, place: u32) -> Result<Address, QueryError> {
        Ok(self.view.emitter_address(place)?)
    }

    /// The topic 0 that was the `place`-th to occur, from 0.
    pub fn signature_at(&self, place: u32) -> Result<B256, QueryError> {
        Ok(self.view.signature_topic(place)?)
    }

    /// The contract of the `ordinal`-th log of the chain, from 0, without reading the log.
    pub fn emitter_of_log(&self, ordinal: u64) -> Result<Address, QueryError> {
        Ok(self.view.emitter_address(self.view.log_emitter(ordinal)?)?)
    }

    /// The hash of the `ordinal`-th transaction of the chain, from 0.
    pub fn transaction_hash_at(&self, ordinal: u64) -> Result<B256, QueryError> {
        Ok(self.view.transaction_hash(ordinal)?)
    }

    /// The block of the `ordinal`-th log of the chain, from 0.
    pub fn block_of_log(&self, ordinal: u64) -> Result<u64, QueryError> {
        Ok(self.view.block_of_log(ordinal)?.0)
    }

    /// How many logs lie before a block; of a block beyond the head, all of them.
    pub fn logs_before(&self, block: u64) -> Result<u64, QueryError> {
        Ok(self.view.first_log(block)?)
    }
}

/// What the store holds, in rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Logs.
    pub logs: u64,
    /// Transactions.
    pub transactions: u64,
    /// Contracts that have a log.
    pub emitters: u32,
    /// Distinct topics 0.
    pub signatures: u32,
}
