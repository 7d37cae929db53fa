//! The dialect of the specification: which operations there are, what they take and what they say.
//!
//! Routing, parameter checks and `docs/API.md` come from one list ([`endpoints`]). A request is parsed
//! whole before anything is looked up, and answered from one snapshot of the store. This room knows no
//! sockets, no byte keys and no JSON-RPC client.

mod accounts;
mod amounts;
mod answer;
mod balances;
mod blocks;
mod bodies;
mod bounds;
mod caching;
mod context;
mod contracts;
mod counting;
mod custom_error;
mod day_values;
mod days;
mod docs_page;
mod endpoint;
mod examples;
mod faults;
mod figures;
mod frames;
mod input;
mod list;
mod logs;
mod markdown;
mod openapi;
mod page;
mod prices;
mod proxy;
mod reports;
mod revert;
mod rewards;
mod service;
mod shape;
mod sources;
mod supply;
mod token_info;
mod token_lists;
mod tokens;
mod transactions;
mod withheld;

pub use context::{Chains, Settings, Upstream, UpstreamError, UpstreamFuture};
pub use docs_page::render_docs_page;
pub use endpoint::{Endpoint, Group, Kind, Parameter, Place};
pub use list::endpoints;
pub use markdown::render_markdown;
pub use openapi::render_openapi;
pub use service::Api;
pub use shape::{Field, Form};
