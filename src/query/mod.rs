//! STUB of the `query` room, only so that the service compiles on its branch. Replaced at merge.
#![allow(missing_docs, clippy::unused_self)]

use crate::model::{Address, B256, BlockEntry, BlockId, LogEntry, TransactionEntry};

#[derive(Clone)]
pub struct Reader(());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closest {
    Before,
    After,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockTime {
    pub number: u64,
    pub timestamp: u64,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCounts {
    pub transactions: u64,
    pub internal_transactions: Option<u64>,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    Unknown,
    Succeeded,
    Failed,
    NeedsTraces,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonce {
    Exact(u64),
    AskNode,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    And,
    Or,
}
#[derive(Debug)]
pub enum QueryError {
    Store(String),
    CursorOrphaned,
    CursorInvalid,
}
impl std::fmt::Display for QueryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

fn stub<T>() -> Result<T, QueryError> {
    Err(QueryError::Store("stub".to_owned()))
}

impl Reader {
    pub fn head(&self) -> BlockId {
        BlockId::default()
    }
    pub fn first_block(&self) -> u64 {
        0
    }
    pub fn finalized(&self) -> Option<u64> {
        None
    }
    pub fn chain_id(&self) -> u64 {
        1
    }
    pub fn has_traces(&self) -> bool {
        false
    }
    pub fn is_empty(&self) -> bool {
        true
    }
    pub fn block_counts(&self, _: u64) -> Result<Option<BlockCounts>, QueryError> {
        stub()
    }
    pub fn block_by_time(&self, _: u64, _: Closest) -> Result<Option<BlockTime>, QueryError> {
        stub()
    }
    pub fn transaction_status(&self, _: &B256) -> Result<TransactionStatus, QueryError> {
        stub()
    }
    pub fn block(&self, _: u64, _: bool) -> Result<Option<BlockEntry>, QueryError> {
        stub()
    }
    pub fn transaction(&self, _: &B256) -> Result<Option<TransactionEntry>, QueryError> {
        stub()
    }
    pub fn transaction_at(&self, _: u64, _: u64) -> Result<Option<TransactionEntry>, QueryError> {
        stub()
    }
    pub fn receipt(&self, _: &B256) -> Result<Option<TransactionEntry>, QueryError> {
        stub()
    }
    pub fn nonce(&self, _: Address, _: u64) -> Result<Nonce, QueryError> {
        stub()
    }
    pub fn logs(&self, _: &LogQuery) -> Result<LogPage, QueryError> {
        stub()
    }
}

#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub address: Option<Address>,
    pub topics: [Vec<B256>; 4],
    pub operators: Vec<(usize, usize, Operator)>,
    pub first_block: u64,
    pub last_block: u64,
    pub descending: bool,
    pub skip: u64,
    pub limit: usize,
    pub cursor: Option<LogCursor>,
}

pub struct LogPage(());

impl LogPage {
    pub fn total(&self) -> Option<u64> {
        None
    }
    pub fn len(&self) -> usize {
        0
    }
    pub fn is_empty(&self) -> bool {
        true
    }
    pub fn next_cursor(&self) -> Option<LogCursor> {
        None
    }
    pub fn visit(&mut self, _: &mut dyn FnMut(&LogEntry<'_>) -> bool) -> Result<bool, QueryError> {
        stub()
    }
}

#[derive(Clone, Debug)]
pub struct LogCursor(());

impl std::fmt::Display for LogCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("stub")
    }
}
impl std::str::FromStr for LogCursor {
    type Err = QueryError;
    fn from_str(text: &str) -> Result<Self, QueryError> {
        if text == "stub" {
            Ok(Self(()))
        } else {
            Err(QueryError::CursorInvalid)
        }
    }
}
