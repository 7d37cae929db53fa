//! Whom answers are compared with: reached, checked and loaded before anything is measured.

use std::time::Duration;

use super::Terminal;
use crate::app::{AppError, verify};
use crate::bench::against::node::lacks_head;
use crate::bench::against::postgres::Postgres;
use crate::bench::load::{self, LoadedLogs};
use crate::bench::statistics::StoreFacts;
use crate::clock;
use crate::node::{Node, NodeConfig};
use crate::query::Reader;
use crate::store::Store;

/// How long another may take for a request: this, or a part of the run's limit where that is less.
const ANSWER_TIME: Duration = Duration::from_secs(30);
const ANSWER_TIME_MIN: Duration = Duration::from_secs(1);
const ANSWERS_OF_LIMIT: u32 = 20;

/// How long another may take for a request in a run of so long.
pub(super) fn answer_time(limit: Duration) -> Duration {
    (limit / ANSWERS_OF_LIMIT).clamp(ANSWER_TIME_MIN, ANSWER_TIME)
}

/// The node, where answers can be compared with it; and in words what it is, or why not.
pub(super) async fn node(
    url: &str,
    store: &Store,
    facts: &StoreFacts,
    answer_time: Duration,
) -> Result<(Option<Node>, String), AppError> {
    let config = NodeConfig {
        // Each answer is one answer, also where it is a refusal.
        attempts_max: 1,
        light_timeout: answer_time,
        request_timeout: answer_time,
        ..NodeConfig::new(url)
    };
    let shown = config.shown_url();
    let connected = verify::connect(config, store).await;
    let node = connected.map_err(|error| AppError::Usage(format!("the node at {shown}: {error}")))?;
    if let Some(why) = lacks_head(&node, facts).await {
        return Ok((None, format!("not compared with the node at {shown}: {why}")));
    }
    let told = format!(
        "Node at {shown}: eth_getLogs over the blocks that the rows of a page cover, of which both give every row."
    );
    Ok((Some(node), told))
}

/// Connects to the database and loads the logs, unless they are there already; and in words what it holds, or why nothing
/// can be compared with it.
pub(super) async fn postgres(
    url: &str,
    facts: &StoreFacts,
    reader: Reader,
    logs_max: u64,
    answer_time: Duration,
    terminal: &Terminal,
) -> Result<(Option<(Postgres, LoadedLogs)>, String), AppError> {
    if facts.logs == 0 {
        let why = "not compared with PostgreSQL: the store has no logs that could be loaded";
        return Ok((None, why.to_owned()));
    }
    let plan = load::plan(&reader, logs_max)?;
    if plan.logs == 0 {
        return Err(AppError::Usage(format!(
            "postgres-logs: the first block with logs has more than {logs_max} of them: state more"
        )));
    }
    let postgres = Postgres::connect(url, facts).await?;
    let how = if postgres.loaded().await? == Some(plan) {
        "loaded by an earlier run".to_owned()
    } else {
        let began = clock::now();
        terminal.bar.set_length(plan.logs);
        postgres
            .load(reader, plan, &|done, what| {
                terminal.loads(done, plan.logs, what);
            })
            .await?;
        let seconds = (clock::now() - began).as_secs_f64();
        format!("loaded and indexed in {seconds:.1} s")
    };
    let (bytes, transactions) = postgres.bytes().await?;
    postgres.end_statements_after(answer_time).await?;
    let told = format!(
        "PostgreSQL at {}: {} logs of blocks {} to {} in schema {}, {how}, {bytes} bytes with indexes ({} a log), and {transactions} \
         bytes of transactions; rows in the binary protocol, the same JSON written from them by the same writer; warm. \
         postgres: the page is cut from the logs and joined with its transactions, as an explorer's tables want it; postgres-flat: \
         one table with all columns of an answer.",
        postgres.shown(),
        plan.logs,
        plan.first_block,
        plan.last_block,
        postgres.schema(),
        bytes / plan.logs.max(1),
    );
    tracing::info!("{told}");
    Ok((Some((postgres, plan)), told))
}
