//! What the contracts of price feeds are: decimals, and the aggregators behind a proxy, which names no events itself. Each aggregator has decimals
//! of its own; a proxy tells those of the present one.

use std::sync::Arc;
use std::time::Duration;

use super::{Tools, WAIT_MAX};
use crate::model::{Address, FeedFacts};
use crate::node::{NodeError, Told};
use crate::shutdown::Shutdown;

/// A proxy may be given another aggregator any day.
const AGAIN: Duration = Duration::from_secs(3600);

/// Rounds after which a contract that names no aggregators is taken for one. Behind a balancer a node that lags has no code there yet,
/// and tells as little.
const SURE_AFTER: u32 = 10;

/// Phases of a proxy that are asked for, the last ones. The oldest feeds are at 7.
const PHASES_MAX: u16 = 64;

/// Asks until the end is asked for: every hour, and at first every half minute for as long as a feed names no aggregators.
pub(super) async fn run(tools: Arc<Tools>, feeds: Vec<Address>, mut shutdown: Shutdown) {
    if feeds.is_empty() {
        return;
    }
    for round in 1_u32.. {
        let mut wait = AGAIN;
        for feed in &feeds {
            match shutdown.unless(Box::pin(learn(&tools, *feed))).await {
                None => return,
                Some(Ok(facts)) => {
                    if facts.aggregators.is_empty() && round < SURE_AFTER {
                        wait = WAIT_MAX;
                    }
                }
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

/// Asks a feed, and the aggregators that it names or named; what is known of it then.
async fn learn(tools: &Tools, feed: Address) -> Result<FeedFacts, NodeError> {
    let facts = known_with(tools, feed, ask(tools, feed).await?);
    let mut failure = None;
    // First, or their answers would be read by the proxy's decimals meanwhile. One that fails keeps no other from being known.
    for &aggregator in &facts.aggregators {
        match decimals(tools, aggregator).await {
            Ok(decimals) => {
                let told = FeedFacts {
                    decimals,
                    aggregators: Vec::new(),
                };
                keep(tools, aggregator, &known_with(tools, aggregator, told));
            }
            Err(error) => failure = Some(error),
        }
    }
    keep(tools, feed, &facts);
    failure.map_or(Ok(facts), Err)
}

/// Keeps what is known of a contract; of one that tells nothing nothing is: there is none, or none yet.
fn keep(tools: &Tools, contract: Address, facts: &FeedFacts) {
    if *facts != FeedFacts::default() {
        tools.observed.put_feed(&contract, facts);
    }
}

fn known_with(tools: &Tools, contract: Address, told: FeedFacts) -> FeedFacts {
    joined(tools.observed.feed(&contract).unwrap_or_default(), told)
}

async fn decimals(tools: &Tools, contract: Address) -> Result<Option<u8>, NodeError> {
    tools.turn().await;
    Ok(tools.counted(tools.node.feed_decimals(contract).await)?.value())
}

/// What is known of a feed once it was asked again. Aggregators of the past stay: a node that lags, or that has no code there, names none
/// or only the older ones.
fn joined(known: FeedFacts, told: FeedFacts) -> FeedFacts {
    let mut aggregators = known.aggregators;
    aggregators.retain(|one| !told.aggregators.contains(one));
    aggregators.extend(told.aggregators);
    FeedFacts {
        decimals: told.decimals.or(known.decimals),
        aggregators,
    }
}

/// What a contract tells of itself.
async fn ask(tools: &Tools, feed: Address) -> Result<FeedFacts, NodeError> {
    let node = &tools.node;
    let mut facts = FeedFacts {
        decimals: decimals(tools, feed).await?,
        aggregators: Vec::new(),
    };
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
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(decimals: Option<u8>, aggregators: &[u8]) -> FeedFacts {
        FeedFacts {
            decimals,
            aggregators: aggregators
                .iter()
                .map(|&byte| Address::repeat_byte(byte))
                .collect(),
        }
    }

    #[test]
    fn a_node_that_lags_takes_no_aggregators_away() {
        let known = || facts(Some(8), &[1, 2]);
        assert_eq!(joined(FeedFacts::default(), known()), known());
        assert_eq!(joined(known(), FeedFacts::default()), known(), "no code there");
        assert_eq!(
            joined(known(), facts(Some(8), &[1])),
            facts(Some(8), &[2, 1]),
            "before the last phase"
        );
        assert_eq!(
            joined(known(), facts(Some(8), &[1, 2, 3])),
            facts(Some(8), &[1, 2, 3])
        );
        let taken = facts(Some(8), &[]);
        assert_eq!(
            joined(taken, known()),
            known(),
            "a proxy that was taken for an aggregator"
        );
    }
}
