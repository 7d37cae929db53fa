//! Records about the store itself, and small rows.

use bincode::{Decode, Encode};

use super::super::Corrupt;
use super::{decode, encode};

/// Which chain a store holds; checked at open.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Identity {
    /// Version of the layout.
    pub schema: u32,
    /// Chain id (`eth_chainId`).
    pub chain_id: u64,
    /// Hash of block 0.
    pub genesis_hash: [u8; 32],
    /// The first block that the store holds.
    pub first_block: u64,
}

impl Identity {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        decode(bytes, "identity")
    }
}

/// How far the store is: the last block, and the ordinals that come next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Checkpoint {
    /// Number of the block that comes next.
    pub next_block: u64,
    /// Hash of the last block; zero in an empty store.
    pub hash: [u8; 32],
    /// Transactions stored.
    pub transactions: u64,
    /// Logs stored.
    pub logs: u64,
    /// Frames stored.
    pub frames: u64,
    /// Emitter ids given.
    pub emitters: u32,
    /// Signature ids given.
    pub signatures: u32,
    /// Number of the first block whose frames are not stored; `next_block` when all are.
    pub next_traced: u64,
    /// Token ids given.
    pub tokens: u32,
    /// ERC-1155 transfers stored.
    pub multi_transfers: u64,
}

impl Checkpoint {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        decode(bytes, "checkpoint")
    }
}

/// What of the store is final, and how long the flat files are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Finality {
    /// Number of the first block that is not final.
    pub next_unfinal: u64,
    /// Records in each flat file.
    pub flat_records: Vec<u64>,
}

impl Finality {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        decode(bytes, "finality")
    }
}

/// Stands in the table `nonces` for a nonce that cannot be derived; only the node can tell it.
pub const NONCE_UNKNOWN: u64 = u64::MAX;

/// How a contract came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Creation {
    /// Position of the creating transaction's first frame of it, where it was made by a contract.
    pub frame: Option<u64>,
    /// The contract that made it, where it was not the transaction itself.
    pub factory: Option<[u8; 20]>,
}

impl Creation {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        decode(bytes, "creation")
    }
}

/// What one block overwrote: (table, key, value before; `None` where there was none), in the order of the
/// writes. Applying it backwards unwinds the block.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Undo {
    /// The rows.
    pub rows: Vec<(u8, Vec<u8>, Option<Vec<u8>>)>,
}

impl Undo {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        decode(bytes, "undo record")
    }
}

/// The flat rows of a block that is not final yet: for each array its appended bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Tail {
    /// Bytes by array.
    pub arrays: Vec<Vec<u8>>,
}

impl Tail {
    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        decode(bytes, "tail")
    }
}
