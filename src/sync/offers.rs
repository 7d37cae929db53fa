//! What the node offers, as the sync knows it: what it lacked may come, and what it had may go.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::error::SyncError;
use crate::clock;
use crate::node::{Capabilities, Node, NodeError};
use crate::store::Store;

/// After so many refusals in a row of what the node offered it is asked again what it offers.
const REFUSALS: u32 = 2;

/// So many before it counts as one that traces nothing any more: blocks without traces cost much that is answered by them.
const REFUSALS_OF_ALL: u32 = 6;

/// What is known of it, and the look under way.
#[derive(Debug)]
pub(super) struct Offers {
    known: Arc<Capabilities>,
    /// What the node lacked is looked for again from this time on.
    look_after: Instant,
    /// At most one. A node that is silent to it must not keep the tip waiting.
    looks: JoinSet<Result<Capabilities, NodeError>>,
    /// What was refused last, and how often since blocks came.
    refused: Option<(&'static str, u32)>,
}

impl Offers {
    /// What a first look has found.
    pub(super) fn new(node: &Node, known: Capabilities) -> Self {
        Self {
            known: Arc::new(known),
            look_after: clock::now() + node.config().probe_pause,
            looks: JoinSet::new(),
            refused: None,
        }
    }

    /// What it offers.
    pub(super) const fn known(&self) -> &Arc<Capabilities> {
        &self.known
    }

    /// Hears why a round failed.
    pub(super) fn hear(&mut self, error: &SyncError) {
        let SyncError::Node { source, .. } = error else {
            return;
        };
        if let Some(method) = source.refused().filter(|method| self.known.asks(method)) {
            let before = self.refused.map_or(0, |(_, times)| times);
            self.refused = Some((method, before + 1));
        }
    }

    /// Hears that blocks came.
    pub(super) const fn went_on(&mut self) {
        self.refused = None;
    }

    /// Asks a node that lacked something whether it has it now: one that was just starting may have. So is one that
    /// refuses again and again what it offered. What it says counts from the first round after it was said.
    pub(super) fn look(&mut self, node: &Node, store: &Store) -> Result<(), SyncError> {
        if let Some(looked) = self.looks.try_join_next() {
            match looked? {
                Ok(found) => {
                    store.check_chain(found.chain_id, found.genesis_hash)?;
                    self.learn(found);
                }
                // What was known of it is still true.
                Err(error) => tracing::debug!(%error, "the node does not say what it offers"),
            }
        }
        let lacks = self.known.lacks() && self.look_after <= clock::now();
        if (lacks || self.refusals() >= REFUSALS) && self.looks.is_empty() {
            self.look_after = clock::now() + node.config().probe_pause;
            let node = node.clone();
            self.looks.spawn(async move { node.probe().await });
        }
        Ok(())
    }

    fn refusals(&self) -> u32 {
        self.refused.map_or(0, |(_, times)| times)
    }

    fn learn(&mut self, found: Capabilities) {
        let mut known = self.known.joined(found.clone());
        if let Some((method, times)) = self.refused.filter(|&(_, times)| times >= REFUSALS)
            && let Some(instead) = known.replace(method, &found, times >= REFUSALS_OF_ALL)
        {
            tracing::warn!("the node refuses {method}, which it offered: {instead} from now on");
            self.refused = None;
        }
        self.known = Arc::new(known);
    }
}
