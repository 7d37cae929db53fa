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
//!  main . app . config . cli          parse, merge, open, wire, run, stop
//!  bench                              measures the service, and holds it against a node and a database
//!  api . compat . rpc                 dialects: of the specification, of Etherscan's clients, of JSON-RPC clients
//!  desk                               what dialects share: snapshots, plans, pages, questions to the node
//!  http                               transport only: sockets, routing, parameters, errors, bodies
//!  checkpoint                         copies of a store: made, verified and restored
//!  enquiry                            asks the node what blocks do not tell
//!  audit                              the store against itself and against the node
//!  import     query     sync          what the operator supplies | read side | write side
//!  node                               JSON-RPC in, model out; alloy-provider stops here
//!  store                              RocksDB: tables, batches, snapshots, scans, postings, undo
//!  codec                              bytes: sortable keys, versioned values; bincode stops here
//!  json                               text: a JSON writer, and the JSON-RPC objects
//!  model                              plain values
//!  status                             what a chain's sync is doing, between writer and reporter
//!  clock . machine . marks . metrics . shutdown . tasks   leaves
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
