//! The same logs in PostgreSQL, with the indexes that explorers keep, asked in SQL.

mod address;
mod error;
mod planning;
mod tables;

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client as Database, NoTls, Row, Statement};

use self::address::parsed;
pub use self::address::shown;
pub use self::error::PostgresError;
use self::error::{failed, within};
use self::tables::{COLUMNS, MARK};
use super::cells::{entry, number, topics};
use super::{Comparison, Lacking, Other, Peer, Refusal, Round, Settled, compare};
use crate::bench::compare::{Differences, Row as Compared};
use crate::bench::figures::median;
use crate::bench::filter::{LogFilter, SqlValue};

use crate::bench::load::LoadedLogs;
use crate::bench::pick::{around, as_far};
use crate::clock;
use crate::json::{LogWriter, UuidSpace};
use crate::model::{Bytes, ChainName, PlacedLog};

/// How long a server may take until it can be asked, and beyond the time that it has itself for a statement.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// A connection on which nothing comes is looked after so often.
const KEPT_ALIVE: Duration = Duration::from_secs(30);
/// How long one that does not take what is sent is waited for.
const TAKEN_WITHIN: Duration = Duration::from_secs(60);
/// How long a cancelling may take.
const CANCEL_TIME: Duration = Duration::from_secs(3);

/// How often a statement is asked that does nothing.
const NOTHINGS: usize = 101;

/// Settings that are reported.
const SETTINGS: [&str; 7] = [
    "shared_buffers",
    "effective_cache_size",
    "work_mem",
    "random_page_cost",
    "jit",
    "fsync",
    "max_parallel_workers_per_gather",
];

/// Asks for the version and the settings; one that a server does not know is left out.
fn settings_sql() -> String {
    let names = SETTINGS.map(|name| format!("'{name} ' || current_setting('{name}', true)"));
    format!(
        "SELECT current_setting('server_version'), concat_ws(', ', {})",
        names.join(", ")
    )
}

/// How the rows of a page are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// As an explorer's tables want it: the page is cut from `logs`, and what a log does not have (the transaction's place
    /// in its block, and the time) comes from `transactions` by its hash. Blockscout's query with the page cut before the join.
    Explorer,
    /// From a table of logs that has all columns of an answer; no explorer keeps one.
    Flat,
}

impl Shape {
    const ALL: [Self; 2] = [Self::Explorer, Self::Flat];

    /// Its name in reports.
    const fn name(self) -> &'static str {
        match self {
            Self::Explorer => super::POSTGRES,
            Self::Flat => super::POSTGRES_FLAT,
        }
    }

    /// The statement for the rows that `conditions` leave, in their order; the columns are [`COLUMNS`].
    fn sql(self, schema: &str, conditions: &str) -> String {
        match self {
            Self::Flat => format!("SELECT {COLUMNS} FROM {schema}.logs {conditions}"),
            Self::Explorer => format!(
                "SELECT l.block_number, l.log_index, t.transaction_index, l.block_hash, l.transaction_hash, t.timestamp, \
                 l.address, l.topic0, l.topic1, l.topic2, l.topic3, l.data \
                 FROM (SELECT block_number, log_index, block_hash, transaction_hash, address, topic0, topic1, topic2, topic3, \
                 data FROM {schema}.logs {conditions}) AS l \
                 JOIN {schema}.transactions AS t ON t.hash = l.transaction_hash \
                 ORDER BY l.block_number, l.log_index"
            ),
        }
    }
}

/// A connection, and the schema of one chain.
pub struct Postgres {
    database: Database,
    shown: String,
    schema: String,
    text: Vec<u8>,
    /// The statement that was asked last, parsed once, as drivers keep them.
    prepared: Option<(String, Statement)>,
    /// When statements end that do not load.
    statement_time: Duration,
}

impl Postgres {
    /// Connects, and keeps other runs from the chain's schema as long as the connection lasts; nothing is made yet.
    /// Statements end after `time` from here on, but those that load.
    ///
    /// # Errors
    ///
    /// When the URL is none, nobody answers in time, or another run has the schema.
    pub async fn connect(url: &str, chain: ChainName, time: Duration) -> Result<Self, PostgresError> {
        let (mut config, shown) = (parsed(url)?, shown(url)?);
        config
            .application_name("quarry bench")
            .connect_timeout(CONNECT_TIME)
            .keepalives_idle(KEPT_ALIVE)
            .tcp_user_timeout(TAKEN_WITHIN);
        let connecting = async {
            let connected = config.connect(NoTls).await;
            let (database, connection) = connected.map_err(|error| failed(&shown, &error))?;
            let told = shown.clone();
            tokio::spawn(async move {
                if let Err(error) = connection.await {
                    tracing::debug!(postgres = told, %error, "connection ended");
                }
            });
            let postgres = Self {
                database,
                shown: shown.clone(),
                schema: Self::schema_of(chain),
                text: Vec::new(),
                prepared: None,
                statement_time: time,
            };
            postgres.end_statements_after(Some(time)).await?;
            postgres.reserve().await?;
            Ok(postgres)
        };
        within(CONNECT_TIME, &shown, connecting).await
    }

    /// Keeps other runs from the schema.
    async fn reserve(&self) -> Result<(), PostgresError> {
        let sql = "SELECT pg_try_advisory_lock(hashtext($1))";
        let row = self.database.query_one(sql, &[&self.schema]).await;
        match row.map_err(|error| self.failed(&error))?.get(0) {
            true => Ok(()),
            false => Err(PostgresError::Taken(self.schema.clone())),
        }
    }

    /// What the server is and how it is set, as far as its times hang on it.
    ///
    /// # Errors
    ///
    /// When the statement fails.
    pub async fn settings(&self) -> Result<String, PostgresError> {
        let sql = settings_sql();
        let row = self.in_time(self.database.query_one(&sql, &[])).await?;
        Ok(format!(
            "version {}, {}",
            row.get::<_, &str>(0),
            row.get::<_, &str>(1)
        ))
    }

    /// How long a statement that does nothing takes there and back, milliseconds: a median.
    ///
    /// # Errors
    ///
    /// When the statement fails.
    pub async fn there_and_back(&self) -> Result<f64, PostgresError> {
        let statement = self.in_time(self.database.prepare("SELECT 1")).await?;
        let mut times = Vec::with_capacity(NOTHINGS);
        for _ in 0..NOTHINGS {
            let began = clock::now();
            self.in_time(self.database.query(&statement, &[])).await?;
            times.push((clock::now() - began).as_secs_f64() * 1e3);
        }
        Ok(median(times).unwrap_or_default())
    }

    /// Waits for a statement a moment longer than the server has for it.
    async fn in_time<T>(
        &self,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, PostgresError> {
        let statement = async { statement.await.map_err(|error| self.failed(&error)) };
        within(self.statement_time + CONNECT_TIME, &self.shown, statement).await
    }

    /// Whether the connection is of use yet: a server says that it ends one before that is closed.
    pub async fn answers(&self) -> bool {
        let asking = self.database.simple_query("SELECT 1");
        matches!(tokio::time::timeout(CANCEL_TIME, asking).await, Ok(Ok(_)))
    }

    /// Ends what the server is doing for this connection.
    pub async fn cancel(&self) {
        let cancelling = async {
            self.database.cancel_token().cancel_query(NoTls).await?;
            // It may come late, and is not to end what is asked next.
            self.database.simple_query("SELECT 1").await
        };
        if !matches!(tokio::time::timeout(CANCEL_TIME, cancelling).await, Ok(Ok(_))) {
            tracing::debug!(postgres = self.shown, "a statement could not be cancelled");
        }
    }

    /// Where it is, as it may be shown.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The name of a chain's schema.
    #[must_use]
    pub fn schema_of(chain: ChainName) -> String {
        format!("quarry_bench_{chain}")
    }

    /// The schema's name.
    #[must_use]
    pub fn schema(&self) -> &str {
        &self.schema
    }

    fn failed(&self, error: &tokio_postgres::Error) -> PostgresError {
        failed(&self.shown, error)
    }

    async fn run(&self, sql: &str) -> Result<(), PostgresError> {
        let ran = self.database.batch_execute(sql).await;
        ran.map_err(|error| self.failed(&error))
    }

    /// Whether the schema is there; refuses one that is not ours.
    async fn is_there(&self) -> Result<bool, PostgresError> {
        let sql = "SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace WHERE nspname = $1";
        let row = self
            .in_time(self.database.query_opt(sql, &[&self.schema]))
            .await?;
        let Some(row) = row else {
            return Ok(false);
        };
        match row.get::<_, Option<&str>>(0) {
            Some(MARK) => Ok(true),
            _ => Err(PostgresError::Foreign(self.schema.clone())),
        }
    }

    /// Has the server end each statement after so long; never where no time is given.
    async fn end_statements_after(&self, time: Option<Duration>) -> Result<(), PostgresError> {
        let time = time.map_or(0, |time| time.as_millis().max(2));
        // Who holds a table is told apart from a statement that takes long.
        self.run(&format!(
            "SET statement_timeout = {time}; SET lock_timeout = {}",
            time / 2
        ))
        .await
    }

    /// How many logs a filter finds on all of its pages.
    async fn count(&mut self, filter: &LogFilter) -> Result<u64, Refusal> {
        let all = LogFilter {
            page: 1,
            offset: u64::MAX,
            ..filter.clone()
        };
        let of_all = |schema: &str, conditions: &str| {
            format!("SELECT count(*) FROM (SELECT 1 FROM {schema}.logs {conditions}) AS found")
        };
        let rows = self.query(&all, of_all).await?;
        Ok(rows.first().map_or(0, |row| number(row.get(0))))
    }

    async fn rows(&mut self, shape: Shape, filter: &LogFilter) -> Result<Vec<Row>, Refusal> {
        self.query(filter, |schema, conditions| shape.sql(schema, conditions))
            .await
    }

    async fn query(
        &mut self,
        filter: &LogFilter,
        sql: impl Fn(&str, &str) -> String,
    ) -> Result<Vec<Row>, Refusal> {
        let (conditions, values) = filter.sql();
        let sql = sql(&self.schema, &conditions);
        let values: Vec<Box<dyn ToSql + Sync>> = values
            .into_iter()
            .map(|value| match value {
                SqlValue::Bytes(bytes) => Box::new(bytes) as Box<dyn ToSql + Sync>,
                SqlValue::Number(number) => Box::new(number),
            })
            .collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value).collect();
        let statement = match self.prepared.take() {
            Some((of, statement)) if of == sql => statement,
            _ => self
                .database
                .prepare(&sql)
                .await
                .map_err(|error| self.refused(&error))?,
        };
        let rows = self.database.query(&statement, &values).await;
        self.prepared = Some((sql, statement));
        rows.map_err(|error| self.refused(&error))
    }

    fn refused(&self, error: &tokio_postgres::Error) -> Refusal {
        let is_late = error.is_closed()
            || matches!(
                error.code(),
                Some(&(SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE))
            );
        Refusal {
            is_late,
            ..Refusal::of(self.failed(error).to_string())
        }
    }
}

/// The database, asked in one way.
struct Asked<'a> {
    postgres: &'a mut Postgres,
    shape: Shape,
    ids: &'a UuidSpace,
}

impl Other for Asked<'_> {
    fn name(&self) -> &'static str {
        self.shape.name()
    }

    async fn logs(&mut self, filter: &LogFilter) -> Result<Vec<Compared>, Refusal> {
        // In whichever way the one before was timed.
        self.postgres.plan_by_values().await?;
        let rows = self.postgres.rows(self.shape, filter).await?;
        let compared = rows.iter().map(|row| {
            let topics = topics(row);
            let log = entry(row, &topics);
            Compared {
                log: PlacedLog {
                    block_number: log.block_number,
                    log_index: u64::from(log.log_index),
                    transaction_hash: log.transaction_hash,
                    address: log.address,
                    topics,
                    data: Bytes::copy_from_slice(log.data),
                },
                block_hash: Some(log.block_hash),
                transaction_index: Some(u64::from(log.transaction_index)),
                timestamp: Some(log.timestamp),
            }
        });
        Ok(compared.collect())
    }

    const WHO: &'static str = "PostgreSQL";

    const SIZE: &'static str = "rows, the service's";

    async fn settle(&mut self, filter: &LogFilter, ours: &[Compared]) -> Result<Settled, Refusal> {
        Ok(Settled {
            way: self.plan_fastest(filter).await?,
            size: ours.len() as u64,
            // It was asked in the same way when it was compared.
            found: Differences::default(),
        })
    }

    /// Rows.
    async fn answer(&mut self, filter: &LogFilter) -> Result<u64, Refusal> {
        let Self { postgres, shape, ids } = self;
        let rows = postgres.rows(*shape, filter).await?;
        let mut writer = LogWriter::new(ids.clone());
        postgres.text.clear();
        for row in &rows {
            writer.entry(&mut postgres.text, &entry(row, &topics(row)));
        }
        writer.finish(&mut postgres.text);
        Ok(rows.len() as u64)
    }
}

/// How many comparisons [`with_postgres`] makes of a question.
pub const COMPARISONS: u32 = Shape::ALL.len() as u32;

/// Asks the service and the database for a page of the blocks that are loaded: as an explorer would ask, then without a join.
pub async fn with_postgres(
    peer: &mut Peer<(Postgres, LoadedLogs)>,
    filter: &LogFilter,
    round: &mut Round<'_>,
) {
    match within_loaded(peer, filter, round).await {
        Ok(filter) => {
            let Peer {
                who: (postgres, loaded),
                patience,
            } = peer;
            let ids = &UuidSpace::new(loaded.chain_id);
            for shape in Shape::ALL {
                let mut asked = Asked { postgres, shape, ids };
                compare(&mut asked, patience, &filter, round).await;
            }
        }
        Err(why) => {
            let asked = super::in_words(filter);
            let found = Shape::ALL.map(|shape| Comparison::lacking(shape.name(), asked.clone(), why.clone()));
            round.found.extend(found);
        }
    }
}

/// The filter over the blocks that are loaded; of a far page, where they are not all, the page that lies as far in them, and
/// of a range as many blocks around the middle one of the logs in them. Else what is to be said without asking for it.
async fn within_loaded(
    peer: &mut Peer<(Postgres, LoadedLogs)>,
    filter: &LogFilter,
    round: &mut Round<'_>,
) -> Result<LogFilter, Lacking> {
    let Peer {
        who: (postgres, loaded),
        patience,
    } = peer;
    let asked = filter.to.unwrap_or(round.facts.head);
    let to = asked.min(loaded.last_block);
    let within = LogFilter {
        to: Some(to),
        ..filter.clone()
    };
    if to == asked || (filter.from.is_none() && filter.page == 1) {
        return Ok(within);
    }
    let all = LogFilter {
        from: None,
        ..within.clone()
    };
    let counting = async {
        patience.wait(postgres.plan_by_values()).await?;
        patience.wait(postgres.count(&all)).await
    };
    let count = counting.await?;
    if filter.from.is_none() && count > 0 {
        let (offset, page) = as_far(&within, count);
        return Ok(LogFilter {
            offset,
            page,
            ..within
        });
    }
    let one = LogFilter {
        page: count / 2 + 1,
        offset: 1,
        ..all.clone()
    };
    let middle = round.ours(&one).await?.rows.pop();
    match (middle, filter.from) {
        (Some(middle), Some(from)) => {
            let loaded = (loaded.first_block, to);
            let (from, to) = around(middle.log.block_number, (asked + 1).saturating_sub(from), loaded);
            Ok(all.within(from, to))
        }
        // There is none in the database, which shows where both are asked for it.
        (Some(_), None) => Ok(one),
        (None, _) if count == 0 => Err(Lacking::Other(format!(
            "no such log lies in the blocks up to {to} that are loaded"
        ))),
        (None, _) => Err(Lacking::Differs(format!(
            "the service does not have row {} of the {count} that PostgreSQL has in blocks up to {to}",
            one.page
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_a_server_does_not_know_are_no_failure() {
        let sql = settings_sql();
        for name in SETTINGS {
            assert!(sql.contains(&format!("current_setting('{name}', true)")), "{sql}");
        }
    }
}
