//! A node's `eth_getLogs`: a page becomes the range of blocks that its rows cover, of which both give every row.

use serde::Deserialize;

use super::{Comparison, Other, Refusal, Round, compare};
use crate::bench::answer::logs;
use crate::bench::compare::{Row, united};
use crate::bench::filter::LogFilter;
use crate::bench::pick::PAGE;
use crate::bench::statistics::StoreFacts;
use crate::http::parse_quantity;
use crate::model::B256;
use crate::node::{Node, NodeError, ResultText, wire};

const METHOD: &str = "eth_getLogs";

struct OfNode<'a>(&'a Node);

impl Other for OfNode<'_> {
    fn name(&self) -> &'static str {
        super::NODE
    }

    async fn logs(&mut self, filter: &LogFilter) -> Result<Vec<Row>, Refusal> {
        let mut all: Option<Vec<Row>> = None;
        for params in self.params(filter) {
            let text = self.ask(&params).await?;
            let found = rows(text.get()).map_err(|why| Refusal::of(format!("the node: {why}")))?;
            all = Some(match all {
                Some(before) => united(before, found),
                None => found,
            });
        }
        Ok(all.unwrap_or_default())
    }

    async fn answer(&mut self, filter: &LogFilter) -> Result<(), Refusal> {
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

    async fn ask(&self, params: &str) -> Result<ResultText, Refusal> {
        let answer = self.0.raw(METHOD, params).await;
        answer.map_err(|error| Refusal {
            why: format!("the node: {error}"),
            is_late: matches!(error, NodeError::Timeout { .. }),
        })
    }
}

/// The logs of an answer, with what a node gives beside them.
fn rows(text: &str) -> Result<Vec<Row>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Beside {
        block_hash: B256,
        transaction_index: String,
        // Not every node gives it.
        block_timestamp: Option<String>,
    }
    let logs = wire::logs(text).map_err(|error| error.to_string())?;
    let beside: Vec<Beside> =
        serde_json::from_str(text).map_err(|error| format!("malformed logs: {error}"))?;
    let quantity =
        |text: &str| parse_quantity(text).ok_or_else(|| format!("malformed logs: `{text}` is no quantity"));
    let rows = logs.into_iter().zip(beside).map(|(log, beside)| {
        Ok(Row {
            log,
            block_hash: Some(beside.block_hash),
            transaction_index: Some(quantity(&beside.transaction_index)?),
            timestamp: beside.block_timestamp.as_deref().map(quantity).transpose()?,
        })
    });
    rows.collect()
}

/// Why logs are not compared with a node: it does not have the block that is the head here.
pub async fn lacks_head(node: &Node, facts: &StoreFacts) -> Option<String> {
    match node.block_id(facts.head).await {
        Err(error) => Some(format!(
            "it was asked for block {} and failed: {error}",
            facts.head
        )),
        Ok(Some(block)) if block.hash == facts.head_hash => None,
        Ok(Some(block)) => Some(format!(
            "its block {} is {}, that of the store is {}: one of them is on another branch, try again when both agree",
            facts.head, block.hash, facts.head_hash
        )),
        Ok(None) => Some(format!(
            "it does not have block {}, the head of the store: it is behind, try again when it has caught up",
            facts.head
        )),
    }
}

/// Asks the service and the node for the logs of a question, in the blocks of the rows of its page.
pub async fn with_node(node: &Node, filter: &LogFilter, round: &mut Round<'_>) {
    match covered(filter, round).await {
        Ok(filter) => compare(&mut OfNode(node), &filter, round).await,
        Err(why) => {
            let asked = super::in_words(filter);
            round.found.push(Comparison::unanswered(super::NODE, asked, why));
        }
    }
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
    let (first, last) = (first.log.block_number, last.log.block_number);
    let whole = of_blocks(first, last);
    let rows = logs(&service.body(&page(&whole)).await.map_err(failed)?).map_err(failed)?;
    // A page that is full may be cut within its last block.
    match rows.last() {
        Some(last) if rows.len() as u64 == PAGE => {
            let last = last.log.block_number;
            let before = last.checked_sub(1);
            let to = before.filter(|&to| first <= to);
            let to = to.ok_or_else(|| format!("block {last} alone has as many matching logs as a page"))?;
            Ok(of_blocks(first, to))
        }
        _ => Ok(whole),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::rows;

    #[test]
    fn what_a_log_lacks_or_garbles_is_not_taken_for_equal() {
        let word = format!("0x{}", "11".repeat(32));
        let log = json!({
            "address": format!("0x{}", "22".repeat(20)), "topics": [word], "data": "0x", "blockNumber": "0x1",
            "transactionHash": word, "logIndex": "0x0", "removed": false,
            "blockHash": word, "transactionIndex": "0x2", "blockTimestamp": "0x3",
        });
        let read = |log: &serde_json::Value| rows(&json!([log]).to_string());
        let row = read(&log).unwrap().remove(0);
        assert_eq!((row.transaction_index, row.timestamp), (Some(2), Some(3)));
        let with = |name: &str, value: serde_json::Value| {
            let mut other = log.clone();
            other[name] = value;
            read(&other)
        };
        assert_eq!(with("blockTimestamp", json!(null)).unwrap()[0].timestamp, None);
        for (name, value) in [
            ("blockTimestamp", json!(3)),
            ("blockTimestamp", json!("3")),
            ("transactionIndex", json!("2")),
            ("transactionIndex", json!(null)),
            ("blockHash", json!(null)),
        ] {
            assert!(with(name, value.clone()).is_err(), "{name} {value}");
        }
    }
}
