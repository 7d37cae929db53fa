//! Records about the store itself, and small rows.

use bincode::{Decode, Encode};

use super::super::Corrupt;
use super::{decode, encode};
use crate::model::StaticRewards;

/// Which chain a store holds; checked at open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Version of the layout.
    pub schema: u32,
    /// Chain id (`eth_chainId`).
    pub chain_id: u64,
    /// Hash of block 0.
    pub genesis_hash: [u8; 32],
    /// The first block that the store holds.
    pub first_block: u64,
    /// Static rewards by first block and wei, where the operator or a genesis file stated them when the store was
    /// made, or later and in accordance with the blocks that it had; else they follow from the chain's id and genesis hash.
    pub static_rewards: Option<Vec<(u64, u128)>>,
}

/// The same as stored.
#[derive(Encode, Decode)]
struct IdentityRow {
    schema: u32,
    chain_id: u64,
    genesis_hash: [u8; 32],
    first_block: u64,
    rewards: RewardsRow,
}

/// Stated rewards as stored: an option of steps, with eras as a third case. Who knows of no eras does not read that, rather than take
/// them for a step.
#[derive(Encode, Decode)]
enum RewardsRow {
    Unstated,
    Steps(Vec<(u64, u128)>),
    Eras(u64),
}

impl RewardsRow {
    fn of(stated: Option<&Vec<(u64, u128)>>) -> Self {
        let Some(steps) = stated else {
            return Self::Unstated;
        };
        let eras = StaticRewards::of_steps(steps.clone()).era();
        eras.map_or_else(|| Self::Steps(steps.clone()), Self::Eras)
    }

    fn stated(self) -> Option<Vec<(u64, u128)>> {
        match self {
            Self::Unstated => None,
            Self::Steps(steps) => Some(steps),
            Self::Eras(blocks) => Some(StaticRewards::of_eras(blocks).steps().to_vec()),
        }
    }
}

impl Identity {
    /// The static rewards of the chain: those that were stated, else those known of its id and genesis hash.
    #[must_use]
    pub fn rewards(&self) -> StaticRewards {
        match &self.static_rewards {
            Some(steps) => StaticRewards::of_steps(steps.clone()),
            None => StaticRewards::well_known(self.chain_id, self.genesis_hash.into()),
        }
    }

    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(&IdentityRow {
            schema: self.schema,
            chain_id: self.chain_id,
            genesis_hash: self.genesis_hash,
            first_block: self.first_block,
            rewards: RewardsRow::of(self.static_rewards.as_ref()),
        })
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let row: IdentityRow = decode(bytes, "identity")?;
        Ok(Self {
            schema: row.schema,
            chain_id: row.chain_id,
            genesis_hash: row.genesis_hash,
            first_block: row.first_block,
            static_rewards: row.rewards.stated(),
        })
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
    /// The ledger of native balances.
    pub native: NativeState,
    /// Token ids given.
    pub tokens: u32,
    /// ERC-1155 transfers stored.
    pub multi_transfers: u64,
}

/// Blocks that were stored at the word of their node (`--trust-node`): ranges in ascending order, which do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Unverified {
    /// First block of each, and the block after its last.
    pub ranges: Vec<(u64, u64)>,
}

impl Unverified {
    /// After the blocks from `from` on were written anew, up to `end` and at the node's word or verified. What lay above them was taken
    /// off before.
    #[must_use]
    pub fn after(&self, (from, end): (u64, u64), at_its_word: bool) -> Self {
        let below = self.ranges.iter().take_while(|&&(first, _)| first < from);
        let mut ranges: Vec<_> = below.map(|&(first, next)| (first, next.min(from))).collect();
        match ranges.last_mut() {
            _ if !at_its_word || from >= end => {}
            Some((_, next)) if *next == from => *next = end,
            _ => ranges.push((from, end)),
        }
        Self { ranges }
    }

    /// As stored.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        encode(self)
    }

    /// From stored bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Corrupt> {
        let read: Self = decode(bytes, "ranges of blocks")?;
        let mut before = None;
        let in_order = read.ranges.iter().all(|&(first, next)| {
            let after = before.replace(next).is_none_or(|end| end < first);
            after && first < next
        });
        in_order.then_some(read).ok_or(Corrupt("ranges of blocks"))
    }
}

/// How the ledger of native balances stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct NativeState {
    /// Whether the genesis allocation is in it: an account that it does not know then never held anything.
    pub allocated: bool,
    /// Why it is not kept, where it is not.
    pub fault: Option<NativeFault>,
}

/// Where the ledger of native balances ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct NativeFault {
    /// The first block that it could not follow.
    pub block: u64,
    /// Why.
    pub reason: NativeFaultReason,
}

/// Why a ledger of native balances is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum NativeFaultReason {
    /// Nobody says what an account held before the first block.
    Openings,
    /// What was issued less what was burnt is not what the balances gained.
    Supply,
    /// A balance would have gone below zero.
    Negative,
    /// A transaction or fee is not of Ethereum's kinds.
    Foreign,
    /// Who sealed an uncle, or the block, is not known.
    Sealer,
    /// Blocks are sealed by AuRa: a contract pays for them.
    Aura,
}

impl NativeFaultReason {
    /// What is said of it, to go on after "block N: ".
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Openings => "the source does not tell what accounts held before the first block",
            Self::Supply => "what was issued less what was burnt is not what the balances gained",
            Self::Negative => "a balance would go below zero",
            Self::Foreign => "a transaction pays fees by rules that are not Ethereum's",
            Self::Sealer => "who is rewarded for the block or one of its uncles is not known",
            Self::Aura => "the chain is sealed by AuRa, whose rewards a contract pays",
        }
    }
}

impl Checkpoint {
    /// That of a store with no block yet, which begins at `first_block`.
    #[must_use]
    pub fn begun(first_block: u64) -> Self {
        Self {
            next_block: first_block,
            next_traced: first_block,
            ..Self::default()
        }
    }

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
    /// Ordinal of the frame that made it, where a contract did.
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
