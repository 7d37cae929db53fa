//! Bytes: sortable keys, packed values, chunks. What is written here is the format of the store.
//!
//! This room knows nothing of RocksDB and of queries; it turns values into bytes and back. Every
//! decoder checks lengths and answers [`Corrupt`] instead of panicking. `bincode` stops here.

pub mod amount;
mod beside;
pub mod bytes;
pub mod chunk;
pub mod imported;
pub mod keys;
pub mod log_row;
pub mod observed;
pub mod open_list;
pub mod open_postings;
pub mod posting;
pub mod tokens;
pub mod transaction_row;
pub mod value;

/// Stored bytes that cannot be what we wrote; the text says what was being read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("corrupt {0}")]
pub struct Corrupt(pub &'static str);
