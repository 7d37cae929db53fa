//! What the dialects share, whatever their clients call things: chains and snapshots, plans and their answers, pages and
//! frames, what caches may do, questions to the node.
//!
//! A dialect reads a request into a [`answer::Plan`] and writes what was found; [`Desk`] does what lies between.
//! Each operation is found here or in `query` once, and written by each dialect in its own way.

use std::collections::BTreeSet;

use crate::http::HttpError;
use crate::model::Address;

pub(crate) mod amounts;
pub(crate) mod answer;
pub(crate) mod asking;
mod at_hand;
pub(crate) mod balances;
pub(crate) mod batch;
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

/// The addresses of a parameter in order, each once: at least one, at most `most`.
fn distinct(
    mut given: Vec<Address>,
    name: &str,
    most: usize,
    too_many: &'static str,
) -> Result<Vec<Address>, HttpError> {
    if given.is_empty() {
        return Err(HttpError::missing(name));
    }
    if given.len() > most {
        return Err(HttpError::bad_request(too_many));
    }
    let mut seen = BTreeSet::new();
    given.retain(|address| seen.insert(*address));
    Ok(given)
}
