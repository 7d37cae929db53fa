//! The `node` room against real chain data, a fake node, and a real development node where there is one.

mod support;

#[path = "node/client.rs"]
mod client;
#[path = "node/data.rs"]
mod data;
