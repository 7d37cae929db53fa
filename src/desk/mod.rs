//! What the dialects share, whatever their clients call things: chains and snapshots, plans and their answers, pages and
//! frames, what caches may do, questions to the node.
//!
//! A dialect reads a request into a [`answer::Plan`] and writes what was found; [`Desk`] does what lies between.
//! Each operation is found here or in `query` once, and written by each dialect in its own way.

use std::collections::BTreeSet;

use crate::model::Address;

pub(crate) mod amounts;
pub(crate) mod answer;
pub(crate) mod balances;
pub(crate) mod blocks;
pub(crate) mod bounds;
pub(crate) mod caching;
pub(crate) mod context;
pub(crate) mod contracts;
mod counting;
mod custom_error;
pub(crate) mod day_values;
pub(crate) mod days;
pub(crate) mod faults;
pub(crate) mod frames;
mod kept;
pub(crate) mod lists;
pub(crate) mod logs;
pub(crate) mod office;
pub(crate) mod prices;
pub(crate) mod proxy;
mod revert;
pub(crate) mod rows;
pub(crate) mod tokens;
pub(crate) mod transactions;

pub use context::{Chains, NodeReply, Settings, Upstream, UpstreamError, UpstreamFuture};
pub use office::Desk;

/// The addresses in order, each once.
fn distinct(mut given: Vec<Address>) -> Vec<Address> {
    let mut seen = BTreeSet::new();
    given.retain(|address| seen.insert(*address));
    given
}
