//! Blocks, headers, withdrawals, and the bundle of all that one block brings.

use super::{Address, B64, B256, Bloom, Bytes, Receipt, Transaction, TransactionTrace, U256};

/// More blocks than these are never kept unwindable, whatever a source says of finality: a chain that names
/// block 0 as final for ever would else fill memory with undo records.
pub const UNFINAL_BLOCKS_MAX: u64 = 4096;

/// A block header (Yellow Paper section 4.4 with EIP-1559, 4895, 4844, 4788, 7685).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Hash of the parent block.
    pub parent_hash: B256,
    /// `sha3Uncles`: hash of the list of uncle headers.
    pub ommers_hash: B256,
    /// `miner`: the fee recipient.
    pub beneficiary: Address,
    /// State trie root after the block.
    pub state_root: B256,
    /// Transactions trie root.
    pub transactions_root: B256,
    /// Receipts trie root.
    pub receipts_root: B256,
    /// Bloom filter over all logs of the block.
    pub logs_bloom: Bloom,
    /// Proof-of-work difficulty, 0 after the merge.
    pub difficulty: U256,
    /// Block number.
    pub number: u64,
    /// Gas limit.
    pub gas_limit: u64,
    /// Gas used.
    pub gas_used: u64,
    /// Unix time in seconds.
    pub timestamp: u64,
    /// Extra data.
    pub extra_data: Bytes,
    /// `mixHash` (proof of work) or `prevRandao`.
    pub mix_hash: B256,
    /// Proof-of-work nonce.
    pub nonce: B64,
    /// Base fee in wei (EIP-1559).
    pub base_fee_per_gas: Option<u64>,
    /// Withdrawals trie root (EIP-4895).
    pub withdrawals_root: Option<B256>,
    /// Blob gas used (EIP-4844).
    pub blob_gas_used: Option<u64>,
    /// Excess blob gas (EIP-4844).
    pub excess_blob_gas: Option<u64>,
    /// Root of the parent beacon block (EIP-4788).
    pub parent_beacon_block_root: Option<B256>,
    /// Hash of the execution requests (EIP-7685).
    pub requests_hash: Option<B256>,
}

impl Header {
    /// Whether only number and beneficiary are known, as some recordings tell of uncles: no uncle is without
    /// a parent.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.parent_hash.is_zero()
    }
}

/// A validator withdrawal (EIP-4895).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withdrawal {
    /// Global index of the withdrawal.
    pub index: u64,
    /// Index of the validator.
    pub validator_index: u64,
    /// Recipient.
    pub address: Address,
    /// Amount in Gwei.
    pub amount_gwei: u64,
}

/// A block with its transactions (`eth_getBlockByNumber` with full transactions).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Block hash.
    pub hash: B256,
    /// The header.
    pub header: Header,
    /// Size of the RLP-encoded block in bytes, as the node states it.
    pub size: Option<u64>,
    /// Total difficulty, where the node still states it.
    pub total_difficulty: Option<U256>,
    /// Transactions in order.
    pub transactions: Vec<Transaction>,
    /// Hashes of the uncles.
    pub uncles: Vec<B256>,
    /// Headers of the uncles, in the order of `uncles`, where the source has them; else empty.
    pub uncle_headers: Vec<Header>,
    /// Withdrawals; `None` before Shanghai.
    pub withdrawals: Option<Vec<Withdrawal>>,
    /// Header fields that we do not know, as the JSON object the node gave (`{"l1BlockNumber":"0x1"}`).
    pub extra: Option<String>,
}

impl Block {
    /// The block number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.header.number
    }
}

/// All that one block brings: what a source fetches, what is verified, derived and committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// The block with its transactions.
    pub block: Block,
    /// One receipt for each transaction, in order.
    pub receipts: Vec<Receipt>,
    /// One trace for each transaction, in order; `None` when the source has no traces.
    pub traces: Option<Vec<TransactionTrace>>,
    /// What accounts that the block touches held before the first stored block (at block 0 where that is the
    /// first), wei: at least those that no earlier block touched. `None` when the source does not tell.
    pub openings: Option<Vec<(Address, U256)>>,
}

/// An inclusive range of block numbers; never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    first: u64,
    last: u64,
}

impl BlockRange {
    /// The range from `first` to `last`, both included; `None` when it would be empty.
    #[must_use]
    pub const fn new(first: u64, last: u64) -> Option<Self> {
        if first <= last {
            Some(Self { first, last })
        } else {
            None
        }
    }

    /// The first block.
    #[must_use]
    pub const fn first(self) -> u64 {
        self.first
    }

    /// The last block.
    #[must_use]
    pub const fn last(self) -> u64 {
        self.last
    }
}
