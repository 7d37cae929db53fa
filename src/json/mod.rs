//! Text: a JSON writer by hand, and the objects that several operations share.
//!
//! The room promises well-formed JSON appended to a `Vec<u8>`; nothing here fails, and nothing here
//! allocates beyond the output. It knows plain values (`model`) only: not where rows come from, not which
//! operation asked, not how the bytes travel.
//!
//! * [`writer`]: strings, hex, quantities, decimal text.
//! * [`object`]: commas and keys.
//! * [`LogWriter`] and [`UuidSpace`]: the specification's log entry and the ids of list items.
//! * [`listed_transaction`], [`internal_transaction`], [`mined_block`]: items of the lists of accounts.
//! * [`holder`], [`holding`], [`inventory_item`], [`transfer`]: items of the lists of tokens.
//! * [`rpc`]: blocks, transactions, receipts and traces as an execution node states them.

#[cfg(target_arch = "x86_64")]
mod id_lanes;
mod ids;
mod list;
mod log;
pub mod object;
pub mod rpc;
mod tail;
#[cfg(target_arch = "x86_64")]
mod words;
pub mod writer;

pub use ids::UuidSpace;
pub use list::{
    held_id, holder, holding, internal_transaction, inventory_item, listed_transaction, mined_block,
    trace_id, transfer,
};
pub use log::LogWriter;
