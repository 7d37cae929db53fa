//! Blocks of a node in chain order, several in flight: fetched, verified, and with what only the node can add.

use std::sync::Arc;

use futures_util::StreamExt;
use tokio::runtime::Handle;

use super::derive::native::NativeRules;
use super::error::SyncError;
use super::openings::Openings;
use super::pipeline::{Source, verified};
use super::self_destructs;
use super::verify::Rules;
use crate::model::Bundle;
use crate::node::{Capabilities, Node, NodeError, Reservation};
use crate::status::ChainStatus;
use crate::tasks;

/// How blocks are fetched.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) node: Node,
    /// By which methods.
    pub(super) ways: Arc<Capabilities>,
    pub(super) rules: Rules,
    pub(super) native: NativeRules,
    /// Where the ledger of native balances must be told what accounts held.
    pub(super) openings: Option<Arc<Openings>>,
    pub(super) status: Arc<ChainStatus>,
}

impl Fetch {
    /// The bundles of these blocks, at most `window` in flight. One that waits for an earlier one still counts among the
    /// bytes in flight.
    pub(super) fn bundles(self, first: u64, last: u64, window: usize) -> impl Source + use<> {
        let in_order = Arc::clone(&self.status);
        let own = Arc::new(self);
        let runtime = Handle::current();
        Box::pin(
            futures_util::stream::iter(first..=last)
                .map(move |number| {
                    let (own, runtime) = (Arc::clone(&own), runtime.clone());
                    async move {
                        // In order, and one for both looks: a second one could wait for bundles that wait for this.
                        let reserved = own.node.reserve().await;
                        // Requests that nobody gets on with would keep their places in flight from who asks beside them.
                        let fetched = tasks::on(&runtime, own.bundle(number, Arc::clone(&reserved)));
                        let died = || SyncError::Worker(format!("block {number} was not fetched to its end"));
                        Ok((fetched.await.ok_or_else(died)??, reserved))
                    }
                })
                .buffered(window)
                // In order: a block beyond one that cannot be had is no progress.
                .map(move |fetched: Result<_, SyncError>| {
                    let (bundle, _reserved) = fetched?;
                    in_order.went_on();
                    Ok(bundle)
                }),
        )
    }

    async fn bundle(self: Arc<Self>, number: u64, reserved: Arc<Reservation>) -> Result<Bundle, SyncError> {
        let bundle = match self.look(number, &reserved).await {
            // A second look first: nodes behind a balancer contradict each other for a moment.
            Err(SyncError::Verify { block, source }) => {
                self.status.count_verification_failure();
                tracing::warn!(block, reason = %source, "block does not verify, fetching it again");
                self.look(number, &reserved).await
            }
            other => other,
        }?;
        let bundle = self_destructs::settle(&self.node, bundle, &self.native).await?;
        match &self.openings {
            Some(openings) => Arc::clone(openings).tell(bundle).await,
            None => Ok(bundle),
        }
    }

    /// The block as the node tells of it, verified off the async threads.
    async fn look(&self, number: u64, reserved: &Arc<Reservation>) -> Result<Bundle, SyncError> {
        let failed = |source| SyncError::Node {
            block: number,
            source,
        };
        let fetched = self.node.bundle_within(reserved, number, &self.ways).await;
        let bundle = fetched.map_err(failed)?.bundle;
        if bundle.block.number() != number {
            let reason = format!("asked for block {number}, got block {}", bundle.block.number());
            return Err(failed(NodeError::Transport {
                method: "eth_getBlockByNumber",
                reason,
            }));
        }
        verified(number, bundle, self.rules).await
    }
}
