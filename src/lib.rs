//! Quarry: a read-only explorer API for EVM chains, served from RocksDB beside an archive node.
//!
//! It is a binary first. To carry it inside another process, begin at [`service`]: stores in a directory, blocks from that
//! process, answers over HTTP, as a handler, or in typed form. `docs/EMBEDDING.md` says how, and which parts are public:
//! [`service`], [`query`], [`model`], what [`http`] and [`api`] have for mounting it, and recordings
//! ([`node::recorded`], [`sync::genesis`]). The rest may change with any version.
//!
//! The rooms of the house, from the street down; imports go down only, and `tests/tidy.rs`
//! enforces it:
//!
//! ```text
//!  main . cli . config . app          parse, merge, open, wire, run, stop
//!  api                                the endpoint list and the dialect of the specification
//!  rpc                                the dialect of JSON-RPC clients
//!  desk                               what dialects share: snapshots, plans, pages, questions to the node
//!  compat                             the dialect of Etherscan's clients
//!  bench                              measures the service, and holds it against a node and a database
//!  http                               transport only: sockets, routing, parameters, errors, bodies
//!  audit                              the store against itself and against the node
//!  enquiry                            asks the node what blocks do not tell
//!  query      sync      import        read side | write side | what the operator supplies
//!  node                               JSON-RPC in, model out; alloy-provider stops here
//!  store                              RocksDB: tables, batches, snapshots, scans, postings, undo
//!  codec                              bytes: sortable keys, versioned values; bincode stops here
//!  json                               text: a JSON writer, and the JSON-RPC objects
//!  model                              plain values
//!  clock . machine . shutdown . status . metrics . tasks   leaves
//! ```

pub mod api;
pub mod app;
pub mod audit;
pub mod bench;
pub mod checkpoint;
pub mod cli;
pub mod clock;
pub mod codec;
pub mod compat;
pub mod config;
pub mod desk;
pub mod enquiry;
pub mod http;
pub mod import;
pub mod json;
pub mod machine;
pub mod marks;
pub mod metrics;
pub mod model;
pub mod node;
pub mod query;
pub mod rpc;
pub mod shutdown;
pub mod status;
pub mod store;
pub mod sync;
pub mod tasks;

pub use app::service;
