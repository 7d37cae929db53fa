//! What the contracts of price feeds are: decimals, and the aggregators behind a proxy, which names no events itself.

use std::sync::Arc;
use std::time::Duration;

use super::{Tools, WAIT_MAX};
use crate::model::{Address, FeedFacts};
use crate::node::{NodeError, Told};
use crate::shutdown::Shutdown;

/// A proxy may be given another aggregator any day.
const AGAIN: Duration = Duration::from_secs(3600);

/// Phases of a proxy that are asked for, the last ones. The oldest feeds are at 7.
const PHASES_MAX: u16 = 64;

/// Asks until the end is asked for.
pub(super) async fn run(tools: Arc<Tools>, feeds: Vec<Address>, mut shutdown: Shutdown) {
    if feeds.is_empty() {
        return;
    }
    loop {
        let mut wait = AGAIN;
        for feed in &feeds {
            // An aggregator stays what it is.
            let known = tools.observed.feed(feed);
            if known.is_some_and(|known| known.aggregators.is_empty() && known.decimals.is_some()) {
                continue;
            }
            match shutdown.unless(Box::pin(ask(&tools, *feed))).await {
                None => return,
                Some(Ok(Some(facts))) => tools.observed.put_feed(feed, &facts),
                // No contract there, or none that tells; it may come.
                Some(Ok(None)) => {}
                Some(Err(error)) => {
                    tracing::debug!(?feed, %error, "a price feed is asked again later");
                    wait = WAIT_MAX;
                }
            }
        }
        if shutdown.unless(tokio::time::sleep(wait)).await.is_none() {
            return;
        }
    }
}

/// What a contract tells of itself; `None` for one that tells nothing.
async fn ask(tools: &Tools, feed: Address) -> Result<Option<FeedFacts>, NodeError> {
    let node = &tools.node;
    let mut facts = FeedFacts::default();
    tools.turn().await;
    facts.decimals = tools.counted(node.feed_decimals(feed).await)?.value();
    tools.turn().await;
    let phases = tools.counted(node.feed_phases(feed).await)?.value().unwrap_or(0);
    let first = phases.saturating_sub(PHASES_MAX) + 1;
    for phase in (first..=phases).map(Some).chain([None]) {
        tools.turn().await;
        let told = tools.counted(node.feed_aggregator(feed, phase).await)?;
        if let Told::Value(aggregator) = told
            && !aggregator.is_zero()
            && !facts.aggregators.contains(&aggregator)
        {
            facts.aggregators.push(aggregator);
        }
    }
    Ok((facts != FeedFacts::default()).then_some(facts))
}
