//! Rows with their place in the chain, as the read side hands them to whoever writes text.

use super::{Address, B256, Block, Receipt, Topics, Transaction};

/// A block's number and hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockId {
    /// Block number.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
}

/// A log with its place in the chain. Borrows its data from a decoded chunk of the store.
#[derive(Clone, Copy, Debug)]
pub struct LogEntry<'a> {
    /// Place among all logs of the chain (dense, in chain order).
    pub ordinal: u64,
    /// Block number.
    pub block_number: u64,
    /// Block hash.
    pub block_hash: B256,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
    /// Transaction hash.
    pub transaction_hash: B256,
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// Position of the log in the block.
    pub log_index: u32,
    /// Emitting contract.
    pub address: Address,
    /// Topics.
    pub topics: Topics,
    /// Data.
    pub data: &'a [u8],
}

/// A transaction with its receipt and its place in the chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransactionEntry {
    /// The transaction.
    pub transaction: Transaction,
    /// Its receipt; `logs` are filled only where receipts were asked for.
    pub receipt: Receipt,
    /// The block.
    pub block: BlockId,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
    /// Base fee of the block, wei.
    pub base_fee_per_gas: Option<u64>,
    /// Position in the block.
    pub transaction_index: u32,
    /// Position in the block of the receipt's first log.
    pub first_log_index: u32,
}

/// A block as the read side gives it: with full transactions, or with their hashes only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockEntry {
    /// The block; `transactions` is empty where only hashes were asked for.
    pub block: Block,
    /// Hashes of the transactions, in order.
    pub transaction_hashes: Vec<B256>,
}
