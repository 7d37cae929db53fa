//! Flat arrays: fixed-size records by dense number, in files mapped into memory.
//!
//! A file holds only records of final blocks and only ever grows, so that a reader's map never changes
//! under it. Records of blocks that are not final are the *tail*: kept in memory, and in the table `tail`
//! for the next start. The logical array is file and tail together; readers cannot tell the difference.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use super::memory;
use super::sums::{self, Compared};
use super::tail::TailPages;
use crate::codec::transaction_row::SIGNATURE_BYTES;
use crate::model::{Address, B256};

/// The arrays of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FlatArray {
    /// By block number less the first: hash 32, timestamp u64, first transaction u64, first log u64.
    Blocks = 0,
    /// By block number less the first: first frame u64, internal transactions u32.
    BlockFrames = 1,
    /// By transaction ordinal: hash 32.
    TransactionHashes = 2,
    /// By log ordinal: emitter u32.
    LogEmitters = 3,
    /// By emitter id: address 20.
    Emitters = 4,
    /// By signature id: topic 32.
    Signatures = 5,
    /// By transaction ordinal: what its receipt says became of it, u8: 0 failed, 1 succeeded, 2 not said.
    TransactionStatuses = 6,
    /// By block number less the first: fees above the base fee u128, uncles u16, whether it has difficulty u8.
    BlockEarnings = 7,
    /// By token id: address 20.
    Tokens = 8,
    /// By ordinal of ERC-1155 transfers: log ordinal u64, position in its batch u32.
    MultiTransfers = 9,
    /// By log ordinal: signature u32, all ones where the log has no topic.
    LogSignatures = 10,
    /// By transaction ordinal: r 32, s 32.
    TransactionSignatures = 11,
}

/// Number of arrays.
pub(super) const ARRAYS: usize = 12;

impl FlatArray {
    /// All arrays; the position is the stored code.
    pub const ALL: [Self; ARRAYS] = [
        Self::Blocks,
        Self::BlockFrames,
        Self::TransactionHashes,
        Self::LogEmitters,
        Self::Emitters,
        Self::Signatures,
        Self::TransactionStatuses,
        Self::BlockEarnings,
        Self::Tokens,
        Self::MultiTransfers,
        Self::LogSignatures,
        Self::TransactionSignatures,
    ];

    /// Bytes of a record.
    #[must_use]
    pub const fn width(self) -> usize {
        match self {
            Self::Blocks => 56,
            Self::BlockFrames | Self::MultiTransfers => 12,
            Self::TransactionHashes | Self::Signatures => 32,
            Self::LogEmitters | Self::LogSignatures => 4,
            Self::Emitters | Self::Tokens => 20,
            Self::TransactionStatuses => 1,
            Self::BlockEarnings => 19,
            Self::TransactionSignatures => SIGNATURE_BYTES,
        }
    }

    /// The name of the file, and of the array in messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::BlockFrames => "block_frames",
            Self::TransactionHashes => "transaction_hashes",
            Self::LogEmitters => "log_emitters",
            Self::Emitters => "emitters",
            Self::Signatures => "signatures",
            Self::TransactionStatuses => "transaction_statuses",
            Self::BlockEarnings => "block_earnings",
            Self::Tokens => "tokens",
            Self::MultiTransfers => "multi_transfers",
            Self::LogSignatures => "log_signatures",
            Self::TransactionSignatures => "transaction_signatures",
        }
    }

    /// Its file, where the arrays of a store are.
    pub(super) fn path(self, directory: &Path) -> PathBuf {
        directory.join(format!("{}.flat", self.name()))
    }

    /// The drawing of a record for docs/SCHEMA.md.
    #[must_use]
    pub const fn drawing(self) -> &'static str {
        match self {
            Self::Blocks => {
                "| hash 32 bytes | timestamp u64 | ordinal of its first transaction u64 | ordinal of its first log u64 |"
            }
            Self::BlockFrames => {
                "| ordinal of its first frame u64 | internal transactions (default set) u32 |"
            }
            Self::TransactionHashes => "| hash 32 bytes |",
            Self::LogEmitters => "| emitter u32 |",
            Self::Emitters | Self::Tokens => "| address 20 bytes |",
            Self::Signatures => "| topic 32 bytes |",
            Self::TransactionStatuses => "| 0 failed, 1 succeeded, 2 not said u8 |",
            Self::BlockEarnings => {
                "| fees above the base fee in wei u128 | uncles u16 | 1 where it has difficulty u8 |"
            }
            Self::MultiTransfers => "| ordinal of its log u64 | position in its batch u32 |",
            Self::LogSignatures => "| signature u32, all ones without topics |",
            Self::TransactionSignatures => "| r 32 bytes | s 32 bytes |",
        }
    }
}

/// What the array of blocks says of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFacts {
    /// Block hash.
    pub hash: B256,
    /// Unix time, seconds.
    pub timestamp: u64,
    /// Ordinal of the first transaction at or after the block's start.
    pub first_transaction: u64,
    /// Ordinal of the first log at or after the block's start.
    pub first_log: u64,
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..)
        .and_then(|rest| rest.first_chunk::<8>())
        .map_or(0, |chunk| u64::from_be_bytes(*chunk))
}

impl BlockFacts {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.hash.as_slice());
        for number in [self.timestamp, self.first_transaction, self.first_log] {
            out.extend_from_slice(&number.to_be_bytes());
        }
    }

    #[inline]
    pub(super) fn decode(bytes: &[u8]) -> Self {
        Self {
            hash: hash(bytes),
            timestamp: u64_at(bytes, 32),
            first_transaction: u64_at(bytes, 40),
            first_log: u64_at(bytes, 48),
        }
    }
}

/// What the array of frames says of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockFrames {
    /// Ordinal of the first frame at or after the block's start.
    pub first_frame: u64,
    /// Internal transactions of the block (default set).
    pub internal_transactions: u32,
}

impl BlockFrames {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.first_frame.to_be_bytes());
        out.extend_from_slice(&self.internal_transactions.to_be_bytes());
    }

    pub(super) fn decode(bytes: &[u8]) -> Self {
        let count = bytes.get(8..).and_then(|rest| rest.first_chunk::<4>());
        Self {
            first_frame: u64_at(bytes, 0),
            internal_transactions: count.map_or(0, |chunk| u32::from_be_bytes(*chunk)),
        }
    }
}

/// What the fee recipient's part of a block follows from, given the chain's static rewards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockEarnings {
    /// What the transactions paid above the base fee, wei.
    pub tips: u128,
    /// Uncles that the block names.
    pub uncles: u16,
    /// Whether the block has difficulty: one without it has no static reward.
    pub has_difficulty: bool,
}

impl BlockEarnings {
    /// As the array has it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tips.to_be_bytes());
        out.extend_from_slice(&self.uncles.to_be_bytes());
        out.push(u8::from(self.has_difficulty));
    }

    pub(super) fn decode(bytes: &[u8]) -> Self {
        let (tips, rest) = bytes.split_first_chunk::<16>().unwrap_or((&[0; 16], &[]));
        let (uncles, rest) = rest.split_first_chunk::<2>().unwrap_or((&[0; 2], &[]));
        Self {
            tips: u128::from_be_bytes(*tips),
            uncles: u16::from_be_bytes(*uncles),
            has_difficulty: rest == [1],
        }
    }
}

#[inline]
pub(super) fn hash(bytes: &[u8]) -> B256 {
    bytes
        .first_chunk::<32>()
        .map_or(B256::ZERO, |chunk| B256::from(*chunk))
}

#[inline]
pub(super) fn address(bytes: &[u8]) -> Address {
    bytes
        .first_chunk::<20>()
        .map_or(Address::ZERO, |chunk| Address::from(*chunk))
}

/// What a view of an array has compared, and how many of its pages were whole.
#[derive(Clone, Debug)]
pub(super) struct Former {
    pub(super) compared: Arc<Compared>,
    pub(super) whole_pages: u64,
}

/// One array as a reader sees it.
#[derive(Clone, Debug)]
pub(super) struct FlatView {
    pub(super) array: FlatArray,
    pub(super) file: Arc<File>,
    pub(super) map: Arc<Mmap>,
    pub(super) file_bytes: usize,
    pub(super) tail: TailPages,
    pub(super) width: usize,
    pub(super) compared: Arc<Compared>,
}

impl FlatView {
    /// Records in the array.
    pub(super) fn len(&self) -> u64 {
        ((self.file_bytes + self.tail.len()) / self.width) as u64
    }

    /// Records of final blocks.
    pub(super) fn file_len(&self) -> u64 {
        (self.file_bytes / self.width) as u64
    }

    /// The record with a number.
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&[u8]> {
        let start = usize::try_from(number).ok()?.checked_mul(self.width)?;
        match start.checked_sub(self.file_bytes) {
            None => self.map.get(start..start + self.width),
            Some(start) => self.tail.get(start, self.width),
        }
    }

    /// Whether the record with a number may be read: its page was compared with its sum, or it is not in the file yet.
    #[inline]
    pub(super) fn is_compared(&self, number: u64) -> bool {
        self.compared.has(number >> self.array.page_shift()) || number >= self.file_len()
    }

    /// What of it was compared.
    pub(super) fn compared(&self) -> Former {
        Former {
            compared: Arc::clone(&self.compared),
            whole_pages: self.file_len() >> self.array.page_shift(),
        }
    }

    /// The sum of a page up to a record; `None` where the file is not so long.
    pub(super) fn sum(&self, page: u64, end: u64) -> Option<u64> {
        sums::of_map(self.array, &self.map, page, end)
    }

    /// Whether the record with a number can be read without waiting for the disk: it is not in the file yet, or its page
    /// is in the system's cache.
    pub(super) fn is_in_memory(&self, number: u64) -> bool {
        let start = number.saturating_mul(self.width as u64);
        start >= self.file_bytes as u64 || memory::is_cached(&self.file, start, self.width)
    }

    /// All bytes in order: what is in the file, and what is not yet.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let file = self.map.get(..self.file_bytes).unwrap_or(&[]);
        std::iter::once(file).chain(self.tail.parts())
    }
}
