//! JSON-RPC in, model out.
//!
//! This room asks an archive node, over HTTP, WebSocket or IPC, or reads a recorded chain, and hands out
//! plain values of the model. It promises that nothing a node sends can make it panic, that every failure
//! has a name, that a request is repeated only when that can help, and that it steps back when the node
//! slows down. It verifies no hash and knows nothing of stores, of queries or of how blocks are derived.
//! The alloy client crates are named here and nowhere else.

pub mod recorded;
pub mod traces;
pub mod wire;
