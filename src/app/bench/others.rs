//! Whom answers are compared with: reached, checked and loaded before anything is measured.

use std::time::Duration;

use super::terminal::Terminal;
use crate::app::{AppError, verify};
use crate::bench::against::node::lacks_head;
use crate::bench::against::plain::timing;
use crate::bench::against::postgres::{Postgres, PostgresError};
use crate::bench::figures::{duration, or_none};
use crate::bench::load::{self, LoadedLogs};
use crate::bench::statistics::StoreFacts;
use crate::clock;
use crate::model::ChainName;
use crate::node::{Node, NodeConfig};
use crate::query::Reader;
use crate::store::{Store, StoreError};

/// How long a node may take until it is known whether answers can be compared with it; as long as a service and a database.
const REACH_TIME: Duration = Duration::from_secs(10);
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
    let reaching = Box::pin(reach(config, &shown, store, facts));
    tokio::time::timeout(REACH_TIME, reaching)
        .await
        .unwrap_or_else(|_| {
            let seconds = REACH_TIME.as_secs();
            Err(AppError::Usage(format!(
                "the node at {shown}: no answer within {seconds} s"
            )))
        })
}

/// The same, however long it takes.
async fn reach(
    config: NodeConfig,
    shown: &str,
    store: &Store,
    facts: &StoreFacts,
) -> Result<(Option<Node>, String), AppError> {
    let connected = verify::connect(config, store).await;
    let node = connected.map_err(|error| {
        let why = match error {
            AppError::Store(StoreError::OtherChain {
                what, found, wanted, ..
            }) => format!("it is of another chain, with {wanted} where the store has {what} {found}: name a node of that chain"),
            other => other.to_string(),
        };
        AppError::Usage(format!("the node at {shown}: {why}"))
    })?;
    if let Some(why) = lacks_head(&node, facts).await {
        return Ok((None, format!("not compared with the node at {shown}: {why}")));
    }
    let version = match node.client_version().await {
        Ok(version) if !version.is_empty() => format!(" ({version})"),
        _ => String::new(),
    };
    let told = format!(
        "Node at {shown}{version}: eth_getLogs over all blocks in which rows of a page could lie, out of which the page is cut; \
         timed over those that its rows cover, of which both give every row; {}.",
        timing(node.config())
    );
    Ok((Some(node), told))
}

/// How the logs came into a database, in words.
fn how_loaded(seconds: f64, no_checkpoint: Option<&PostgresError>) -> String {
    let loaded = format!("loaded and indexed in {seconds:.1} s");
    match no_checkpoint {
        None => loaded,
        Some(why) => format!(
            "{loaded} without a checkpoint behind it, so that the server may write what was loaded beside the measurements ({why})"
        ),
    }
}

/// What is loaded into a database.
pub(super) struct Loading<'a> {
    pub(super) chain: ChainName,
    pub(super) reader: Reader,
    pub(super) logs_max: u64,
    pub(super) answer_time: Duration,
    pub(super) terminal: &'a Terminal,
}

impl Loading<'_> {
    /// Connects to the database and loads the logs, unless they are there already; and in words what it holds. Whoever waits no longer finds the connection in `database`.
    pub(super) async fn load(
        self,
        url: &str,
        database: &mut Option<Postgres>,
    ) -> Result<(LoadedLogs, String), AppError> {
        let Some(plan) = load::plan(&self.reader, self.logs_max)? else {
            return Err(AppError::Usage(format!(
                "postgres-logs: the first block with logs has more than {} of them: state more",
                self.logs_max
            )));
        };
        self.terminal.prepares("PostgreSQL was reached");
        let postgres = Postgres::connect(url, self.chain, self.answer_time).await?;
        let postgres = &*database.insert(postgres);
        // What it will not tell is told before anything is loaded.
        let settings = postgres.settings().await?;
        let before = postgres.loaded().await?;
        let how = if before == Some(plan) {
            "loaded by an earlier run".to_owned()
        } else {
            if let Some(before) = before {
                tracing::info!(
                    "the schema {} holds {} logs of chain {}, blocks {} to {}, of an earlier run: they are replaced",
                    postgres.schema(),
                    before.logs,
                    before.chain_id,
                    before.first_block,
                    before.last_block
                );
            }
            self.terminal
                .prepares("the logs were loaded into PostgreSQL, which the next run does anew");
            let began = clock::now();
            self.terminal.bar.set_length(plan.logs);
            let no_checkpoint = postgres
                .load(self.reader, plan, &|done, what| {
                    self.terminal.loads(done, plan.logs, what);
                })
                .await?;
            how_loaded((clock::now() - began).as_secs_f64(), no_checkpoint.as_ref())
        };
        let (bytes, transactions) = postgres.bytes().await?;
        let told = format!(
            "PostgreSQL at {} ({}): {} logs of blocks {} to {} in schema {}, {how}, {bytes} bytes with indexes ({} a log), and \
             {transactions} bytes of transactions; rows in the binary protocol, the same JSON written from them by the same writer; \
             warm; a statement that does nothing takes {} there and back, which is in its times as the way over HTTP is in the \
             service's, and in none in process. postgres: the page is cut from the logs and joined with its transactions, as an explorer's tables want it; \
             postgres-flat: one table with all columns of an answer.",
            postgres.shown(),
            settings,
            plan.logs,
            plan.first_block,
            plan.last_block,
            postgres.schema(),
            bytes / plan.logs.max(1),
            or_none(postgres.there_and_back().await.ok(), duration),
        );
        tracing::info!("{told}");
        Ok((plan, told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_that_was_refused_is_told() {
        assert_eq!(how_loaded(1.3, None), "loaded and indexed in 1.3 s");
        let refused = PostgresError::Failed {
            shown: "postgres://127.0.0.1:5432".to_owned(),
            reason: "permission denied".to_owned(),
        };
        let told = how_loaded(3.0, Some(&refused));
        assert!(
            told.starts_with("loaded and indexed in 3.0 s without a checkpoint"),
            "{told}"
        );
        assert!(told.contains("permission denied"), "{told}");
    }
}
