//! Rows with their place in the chain, as the read side hands them to whoever writes text.

use super::{
    Address, B256, Block, Bytes, FrameKind, Receipt, TokenKind, TokenMetadata, Topics, Transaction, U256,
};

/// A block's number and hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockId {
    /// Block number.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
}

/// A log with its place in the chain. Borrows what was decoded of it.
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
    /// Topics, 0 to 4.
    pub topics: &'a [B256],
    /// Data.
    pub data: &'a [u8],
}

/// A log as anybody states it who has the chain: what two of them can be compared by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlacedLog {
    /// Block number.
    pub block_number: u64,
    /// Position of the log in the block.
    pub log_index: u64,
    /// Transaction hash.
    pub transaction_hash: B256,
    /// Emitting contract.
    pub address: Address,
    /// Topics.
    pub topics: Topics,
    /// Data.
    pub data: Bytes,
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

/// A transaction as lists of accounts show it, with what became of it. Borrows its input from a decoded unit.
#[derive(Clone, Copy, Debug)]
pub struct ListedTransaction<'a> {
    /// Transaction hash.
    pub hash: B256,
    /// The block.
    pub block: BlockId,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
    /// Position in the block.
    pub transaction_index: u32,
    /// Sender.
    pub from: Address,
    /// Recipient; `None` for a creation.
    pub to: Option<Address>,
    /// The contract that it created; `None` where it created none, a failed creation included.
    pub contract_address: Option<Address>,
    /// Value in wei.
    pub value: U256,
    /// Sender's nonce.
    pub nonce: u64,
    /// EIP-2718 type.
    pub kind: u8,
    /// Gas limit.
    pub gas: u64,
    /// Gas used.
    pub gas_used: u64,
    /// Gas used by the block up to and with this transaction.
    pub cumulative_gas_used: u64,
    /// The price paid per gas, wei.
    pub gas_price: u128,
    /// `maxFeePerGas`, wei.
    pub max_fee_per_gas: Option<u128>,
    /// `maxPriorityFeePerGas`, wei.
    pub max_priority_fee_per_gas: Option<u128>,
    /// What the sender paid in wei: for gas, for blobs, and to the layer below.
    pub fee: U256,
    /// Whether it succeeded.
    pub success: bool,
    /// Call data or init code.
    pub input: &'a [u8],
}

/// A nested call frame with its place in the chain. Borrows what is long from a decoded unit.
#[derive(Clone, Copy, Debug)]
pub struct InternalTransaction<'a> {
    /// Transaction hash.
    pub transaction_hash: B256,
    /// The block.
    pub block: BlockId,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// What it does.
    pub kind: FrameKind,
    /// Place in the call tree; never empty.
    pub path: &'a [u32],
    /// Caller; for a self-destruct the contract that ends.
    pub from: Address,
    /// Callee, created contract or beneficiary.
    pub to: Option<Address>,
    /// Value in wei.
    pub value: U256,
    /// Gas given.
    pub gas: u64,
    /// Gas used.
    pub gas_used: u64,
    /// Call data, or init code.
    pub input: &'a [u8],
    /// Return data, or code.
    pub output: &'a [u8],
    /// Error text.
    pub error: Option<&'a str>,
    /// Whether it or any ancestor failed.
    pub reverted: bool,
}

/// A block as the list of its fee recipient shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinedBlock {
    /// The block.
    pub block: BlockId,
    /// Unix time, seconds.
    pub timestamp: u64,
    /// What its fee recipient got, wei.
    pub reward: U256,
    /// Number of its transactions.
    pub transactions: u64,
}

/// A token transfer as lists show it, with the transaction around it.
#[derive(Clone, Copy, Debug)]
pub struct ListedTransfer<'a> {
    /// Transaction hash.
    pub transaction_hash: B256,
    /// Position of the log in the block.
    pub log_index: u32,
    /// Position in the log, of an ERC-1155 transfer; else 0.
    pub position: u32,
    /// The block.
    pub block: BlockId,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
    /// Position of the transaction in the block.
    pub transaction_index: u32,
    /// From whom; the zero address for a mint.
    pub from: Address,
    /// To whom; the zero address for a burn.
    pub to: Address,
    /// The token.
    pub token: Address,
    /// The standard of the transfer.
    pub kind: TokenKind,
    /// What its contract says of itself.
    pub metadata: &'a TokenMetadata,
    /// The id; `None` of ERC-20.
    pub id: Option<U256>,
    /// Smallest units; 1 of ERC-721.
    pub value: U256,
    /// Nonce of the transaction's sender.
    pub nonce: u64,
    /// Gas limit of the transaction.
    pub gas: u64,
    /// The price that it paid per gas, wei.
    pub gas_price: u128,
    /// Gas that it used.
    pub gas_used: u64,
    /// Gas used by the block up to and with it.
    pub cumulative_gas_used: u64,
}
