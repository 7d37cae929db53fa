//! JSON-RPC in, model out.
//!
//! This room asks an archive node, over HTTP, WebSocket or IPC, or reads a recorded chain, and hands out
//! plain values of the model. It promises that nothing a node sends can make it panic, that every failure
//! has a name, that a request is repeated only when that can help, and that it steps back when the node
//! slows down. It verifies no hash and knows nothing of stores, of queries or of how blocks are derived.
//! The client crates (alloy's and reqwest) are named in `link` and nowhere else.

mod bundle;
mod class;
mod client;
mod climb;
mod config;
mod contract;
mod error;
mod feed;
mod heads;
mod identity;
mod link;
pub mod pace;
mod passing;
mod probe;
mod reader;
mod recent;
pub mod recorded;
mod rest;
mod room;
mod shown;
mod stats;
mod tag;
pub mod traces;
mod tries;
mod uncles;
pub mod wire;
mod words;

pub use bundle::Fetched;
pub use client::Node;
pub use config::NodeConfig;
pub use contract::{CallAt, Described, Told};
pub use error::{ErrorClass, NodeError};
pub use heads::Heads;
pub use link::ResultText;
pub use passing::Passed;
pub use probe::{Capabilities, ReceiptMethod, TraceMethod};
pub use room::Reservation;
pub use stats::NodeStats;
pub use tag::BlockTag;
pub use wire::{BlockId, WireError};
