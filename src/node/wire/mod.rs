//! The node's JSON, turned into `model` values.
//!
//! Text comes in, values or a [`WireError`] go out; nothing a node writes makes it panic. The structs
//! behind it read from the response text itself (`reader`), never through `serde_json::Value`. This part knows
//! nothing of requests, sockets or retries, and it verifies no hash: it only insists that receipts and
//! traces speak of the block they are read with, one for each transaction.

pub mod abi;
mod block;
mod logs;
mod object;
mod receipt;
mod scalar;
mod trace;
mod transaction;
mod untold;

pub use block::{BlockId, block, block_hash, block_id, known_block_id, uncle_header};
pub use logs::logs;
pub use receipt::{receipt_texts, receipts};
pub use trace::{ToldTraces, call_traces, parity_traces, told_calls, told_traces};
pub use untold::{Untold, settle};

use super::reader::{self, FromJson};
use crate::model::{B256, Bytes, U256};
use scalar::{Scalar, Wire};

/// Why a node's JSON is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not JSON, not of the right shape, or a value out of its range; `reason` names field and place.
    #[error("malformed {what}: {reason}")]
    Malformed {
        /// `block`, `receipts`, `traces`, ...
        what: &'static str,
        /// What is wrong and where.
        reason: String,
    },
    /// A required field is absent or `null`.
    #[error("malformed {what}: field `{field}` is missing{}", place(*.index))]
    MissingField {
        /// `block`, `transaction`, `receipt`, ...
        what: &'static str,
        /// The JSON name of the field.
        field: &'static str,
        /// Place in the list, where there is one.
        index: Option<usize>,
    },
    /// Receipts or traces of another block than the one asked for: the chain moved between two requests.
    #[error("{what} of another block: expected {expected}, found {found}")]
    OtherBlock {
        /// `receipts` or `traces`.
        what: &'static str,
        /// Hash of the block they are read with.
        expected: B256,
        /// Hash that they state.
        found: B256,
    },
    /// A receipt or trace states another transaction than the one at its place.
    #[error("{what} {index} is of another transaction: expected {expected}, found {found}")]
    OtherTransaction {
        /// `receipt` or `trace`.
        what: &'static str,
        /// Place in the block.
        index: usize,
        /// Hash of the transaction at that place.
        expected: B256,
        /// Hash that the item states.
        found: B256,
    },
    /// A transaction has no receipt or no trace.
    #[error("{what} of transaction {index} is missing")]
    MissingItem {
        /// `receipt` or `trace`.
        what: &'static str,
        /// Place in the block.
        index: usize,
    },
    /// A transaction has two, or there are more of them than transactions.
    #[error("{what} {index} is duplicate or beyond the block's transactions")]
    SurplusItem {
        /// `receipt` or `trace`.
        what: &'static str,
        /// Place that it states.
        index: u64,
    },
}

fn place(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!(" (item {index})"))
}

/// Longest reason, in bytes.
const REASON_MAX: usize = 4_096;

impl WireError {
    pub(super) fn malformed(what: &'static str, reason: impl std::fmt::Display) -> Self {
        let mut reason = reason.to_string();
        // It may repeat what the answer says, at any length.
        reason.truncate(reason.floor_char_boundary(REASON_MAX));
        Self::Malformed { what, reason }
    }
}

/// Reads a quantity (`"0x1"`), as `eth_chainId` and `eth_blockNumber` answer.
///
/// # Errors
///
/// When the text is not a quantity of at most 64 bits.
pub fn quantity(json: &str) -> Result<u64, WireError> {
    parse::<Wire<u64>>("quantity", json).map(|wire| wire.0)
}

/// Reads a quantity of up to 256 bits, as `eth_getBalance` answers.
///
/// # Errors
///
/// When the text is not such a quantity.
pub fn amount(json: &str) -> Result<U256, WireError> {
    parse::<Wire<U256>>("quantity", json).map(|wire| wire.0)
}

/// Reads bytes in hex, as `eth_call` answers.
///
/// # Errors
///
/// When the JSON is not such a text.
pub fn bytes(json: &str) -> Result<Vec<u8>, WireError> {
    parse::<Wire<Bytes>>("bytes", json).map(|wire| wire.0.into())
}

/// Reads a text, as `web3_clientVersion` answers.
///
/// # Errors
///
/// When the JSON is not a text.
pub fn text(json: &str) -> Result<String, WireError> {
    parse::<Wire<String>>("text", json).map(|wire| wire.0)
}

fn parse<'a, T: FromJson<'a>>(what: &'static str, json: &'a str) -> Result<T, WireError> {
    reader::read(json).map_err(|fault| WireError::malformed(what, fault))
}

/// Takes a required value out of its place.
fn need<T: Scalar>(
    value: Option<Wire<T>>,
    what: &'static str,
    field: &'static str,
    index: Option<usize>,
) -> Result<T, WireError> {
    value
        .map(|wire| wire.0)
        .ok_or(WireError::MissingField { what, field, index })
}

/// Takes an optional value out of its place.
fn may<T>(value: Option<Wire<T>>) -> Option<T> {
    value.map(|wire| wire.0)
}
