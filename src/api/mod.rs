//! The dialect of the specification: which operations there are, what they take and what they say.
//!
//! Routing, parameter checks and `docs/API.md` come from one list ([`endpoints`]). A request is parsed
//! whole before anything is looked up, and answered from one snapshot of the store. This room knows no
//! sockets, no byte keys and no JSON-RPC client.

mod accounts;
mod balances;
mod blocks;
mod bodies;
mod contracts;
mod day_values;
mod days;
mod docs_form;
mod docs_page;
mod endpoint;
mod examples;
mod figures;
mod input;
mod list;
mod logs;
mod markdown;
mod openapi;
mod page;
mod prices;
mod proxy;
mod reports;
mod requests;
mod rewards;
mod service;
mod shape;
mod sources;
mod supply;
mod token_info;
mod token_lists;
mod tokens;
mod transactions;
mod web_page;
mod withheld;

pub use crate::desk::{Chains, Settings, Upstream, UpstreamError, UpstreamFuture};
pub use endpoint::{Endpoint, Group, Kind, NodeUse, Parameter, Place};
pub use list::endpoints;
pub use markdown::render_markdown;
pub use openapi::render_openapi;
pub use service::Api;
pub use shape::{Field, Form};
