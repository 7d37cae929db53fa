//! A node's `eth_getLogs`: a page becomes the range of blocks that its rows cover, of which both give every row.

use super::{Comparison, Other, Round, compare};
use crate::bench::answer::logs;
use crate::bench::filter::LogFilter;
use crate::bench::pick::PAGE;
use crate::model::PlacedLog;
use crate::node::{Node, wire};

const METHOD: &str = "eth_getLogs";

struct OfNode<'a>(&'a Node);

impl Other for OfNode<'_> {
    const NAME: &'static str = "node";

    async fn logs(&mut self, filter: &LogFilter) -> Result<Vec<PlacedLog>, String> {
        let mut all = Vec::new();
        let params = self.params(filter);
        let alternatives = params.len();
        for params in params {
            let text = self.ask(&params).await?;
            all.extend(wire::logs(text.get()).map_err(|error| format!("the node: {error}"))?);
        }
        if alternatives > 1 {
            // A row that both filters find is one row.
            all.sort_by_key(|log| (log.block_number, log.log_index));
            all.dedup();
        }
        Ok(all)
    }

    async fn answer(&mut self, filter: &LogFilter) -> Result<(), String> {
        for params in self.params(filter) {
            self.ask(&params).await?;
        }
        Ok(())
    }
}

impl OfNode<'_> {
    fn params(&self, filter: &LogFilter) -> Vec<String> {
        filter.node_params(filter.from.unwrap_or(0), filter.to.unwrap_or(u64::MAX))
    }

    async fn ask(&self, params: &str) -> Result<Box<serde_json::value::RawValue>, String> {
        let answer = self.0.raw(METHOD, params).await;
        answer.map_err(|error| format!("the node: {error}"))
    }
}

/// Asks the service and the node for the logs of a question, in the blocks of the rows of its page.
pub async fn with_node(node: &Node, filter: &LogFilter, round: &mut Round<'_>) -> Comparison {
    let unanswered = |why| Comparison::unanswered(OfNode::NAME, super::in_words(filter), why);
    let filter = match covered(filter, round).await {
        Ok(filter) => filter,
        Err(why) => return unanswered(why),
    };
    compare(&mut OfNode(node), &filter, round).await
}

/// The filter over the blocks of its page's rows, all of whose rows fit on one page of the service; over the whole chain
/// where there are no rows.
async fn covered(filter: &LogFilter, round: &mut Round<'_>) -> Result<LogFilter, String> {
    let Round { service, facts, .. } = round;
    let failed = |why| format!("the service: {why}");
    let page = |filter: &LogFilter| filter.target(facts.chain);
    let rows = logs(&service.body(&page(filter)).await.map_err(failed)?).map_err(failed)?;
    let of_blocks = |from, to| LogFilter {
        page: 1,
        offset: PAGE,
        ..filter.clone().within(from, to)
    };
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
        return Ok(of_blocks(
            filter.from.unwrap_or(facts.first_block),
            filter.to.unwrap_or(facts.head),
        ));
    };
    let whole = of_blocks(first.block_number, last.block_number);
    let rows = logs(&service.body(&page(&whole)).await.map_err(failed)?).map_err(failed)?;
    // A page that is full may be cut within its last block.
    match rows.last() {
        Some(last) if rows.len() as u64 == PAGE => {
            let before = last.block_number.checked_sub(1);
            let to = before.filter(|&to| first.block_number <= to);
            let to = to.ok_or_else(|| {
                format!(
                    "block {} alone has as many matching logs as a page",
                    last.block_number
                )
            })?;
            Ok(of_blocks(first.block_number, to))
        }
        _ => Ok(whole),
    }
}
