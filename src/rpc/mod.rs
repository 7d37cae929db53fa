//! The dialect of JSON-RPC clients: `POST /rpc`.
//!
//! Methods that speak of blocks, transactions, logs, traces and balances are answered from the store, by the same questions
//! as those of the other dialects; methods of state go to the chain's node where the operator lets them
//! (`--rpc-passthrough`). What there is: [`METHODS`]; how each differs from a node: `docs/COMPATIBILITY.md`. A batch is
//! answered from one snapshot.

mod answer;
mod args;
mod blocks;
mod calls;
mod fault;
mod handler;
mod lists;
mod logs;
mod message;
mod methods;
mod otterscan;
mod state;
mod traces;
mod transactions;

pub use handler::Rpc;
pub use methods::{METHODS, Method, PASSED_ON};
