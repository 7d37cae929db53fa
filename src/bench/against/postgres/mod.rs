//! The same logs in PostgreSQL, with the indexes that explorers keep, asked in SQL.

use std::time::Duration;

use tokio_postgres::config::{Config, Host};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client as Database, NoTls, Row};

use super::cells::{entry, int4, number, signed, topics, word};
use super::{Comparison, Other, Refusal, Round, compare};
use crate::bench::compare::Row as Compared;
use crate::bench::filter::{LogFilter, SqlValue};
use crate::bench::load::{LoadedLogs, OwnedLog, Source};
use crate::bench::pick::deep_page;
use crate::bench::statistics::StoreFacts;
use crate::json::{LogWriter, UuidSpace};
use crate::model::{B256, Bytes, PlacedLog};

/// Indexes beside the primary key (block, log index). Those of Blockscout's `logs` in spirit, each ending with the
/// order of the answers, so that pages need no sorting.
const INDEXES: [(&str, &str); 7] = [
    ("address", "address, block_number, log_index"),
    ("address_topic0", "address, topic0, block_number, log_index"),
    ("topic0", "topic0, block_number, log_index"),
    ("topic1", "topic1, block_number, log_index"),
    ("topic2", "topic2, block_number, log_index"),
    ("topic3", "topic3, block_number, log_index"),
    ("transaction", "transaction_hash"),
];

/// The version of the tables; another one is loaded anew.
const LAYOUT: i32 = 1;

const COLUMNS: &str = "block_number, log_index, transaction_index, block_hash, transaction_hash, timestamp, address, \
                       topic0, topic1, topic2, topic3, data";

/// A database that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// Not reachable, or a statement failed.
    #[error("PostgreSQL at {shown}: {reason}")]
    Failed {
        /// The URL without path, user and query.
        shown: String,
        /// The server's words.
        reason: String,
    },
    /// The URL is none. It is not repeated: it may hold a password.
    #[error("against-postgres: not a URL such as postgres://user@127.0.0.1:5432/database")]
    Url,
    /// The schema is somebody else's.
    #[error("PostgreSQL has a schema `{0}` that quarry did not make: drop or rename it")]
    Foreign(String),
    /// The logs could not be read from the store.
    #[error("cannot read the logs to load: {0}")]
    Source(String),
}

/// A connection, and the schema of one chain.
pub struct Postgres {
    database: Database,
    shown: String,
    schema: String,
    ids: UuidSpace,
    text: Vec<u8>,
}

impl Postgres {
    /// Connects; nothing is made yet.
    ///
    /// # Errors
    ///
    /// When the URL is none or nobody answers.
    pub async fn connect(url: &str, facts: &StoreFacts) -> Result<Self, PostgresError> {
        let (mut config, shown) = (parsed(url)?, shown(url)?);
        let shown = shown.as_str();
        config
            .application_name("quarry bench")
            .connect_timeout(Duration::from_secs(10));
        let (database, connection) = config
            .connect(NoTls)
            .await
            .map_err(|error| failed(shown, &error))?;
        let told = shown.to_owned();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(postgres = told, %error, "connection ended");
            }
        });
        Ok(Self {
            database,
            shown: shown.to_owned(),
            schema: format!("quarry_bench_{}", facts.chain),
            ids: UuidSpace::new(facts.chain_id),
            text: Vec::new(),
        })
    }

    /// Where it is, as it may be shown.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
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
        let row = self.database.query_opt(sql, &[&self.schema]).await;
        let Some(row) = row.map_err(|error| self.failed(&error))? else {
            return Ok(false);
        };
        match row.get::<_, Option<&str>>(0) {
            Some(MARK) => Ok(true),
            _ => Err(PostgresError::Foreign(self.schema.clone())),
        }
    }

    /// What is loaded already; `None` where nothing is, or not to its end.
    ///
    /// # Errors
    ///
    /// When a statement fails or the schema is somebody else's.
    pub async fn loaded(&self) -> Result<Option<LoadedLogs>, PostgresError> {
        if !self.is_there().await? {
            return Ok(None);
        }
        let sql = format!(
            "SELECT chain_id, first_block, last_block, last_hash, logs FROM {}.loaded WHERE layout = $1",
            self.schema
        );
        let row = match self.database.query_opt(&sql, &[&LAYOUT]).await {
            Ok(row) => row,
            // The mark is ours, the tables are not there: it was not finished.
            Err(error) if error.code().is_some() => return Ok(None),
            Err(error) => return Err(self.failed(&error)),
        };
        Ok(row.map(|row| LoadedLogs {
            chain_id: number(row.get(0)),
            first_block: number(row.get(1)),
            last_block: number(row.get(2)),
            last_hash: word(row.get(3)),
            logs: number(row.get(4)),
        }))
    }

    /// Makes the schema anew and loads the logs of `source` by binary COPY, then makes the indexes and has the tables
    /// analysed. `progress` is told how many logs are loaded, then what is made of them.
    ///
    /// # Errors
    ///
    /// When a statement fails, the schema is somebody else's, or the logs cannot be read.
    pub async fn load(
        &self,
        mut source: Source,
        progress: &(dyn Fn(u64, &str) + Sync),
    ) -> Result<LoadedLogs, PostgresError> {
        let schema = &self.schema;
        self.drop_schema().await?;
        self.run(&format!(
            "BEGIN; CREATE SCHEMA {schema}; COMMENT ON SCHEMA {schema} IS '{MARK}'; COMMIT;
             CREATE TABLE {schema}.logs (
               block_number bigint NOT NULL, log_index integer NOT NULL, transaction_index integer NOT NULL,
               block_hash bytea NOT NULL, transaction_hash bytea NOT NULL, timestamp bigint NOT NULL,
               address bytea NOT NULL, topic0 bytea, topic1 bytea, topic2 bytea, topic3 bytea, data bytea NOT NULL);
             CREATE TABLE {schema}.loaded (
               layout integer NOT NULL, chain_id bigint NOT NULL, first_block bigint NOT NULL,
               last_block bigint NOT NULL, last_hash bytea NOT NULL, logs bigint NOT NULL);"
        ))
        .await?;
        let sql = format!("COPY {schema}.logs ({COLUMNS}) FROM STDIN (FORMAT binary)");
        let sink = self
            .database
            .copy_in(&sql)
            .await
            .map_err(|error| self.failed(&error))?;
        let types = [
            Type::INT8,
            Type::INT4,
            Type::INT4,
            Type::BYTEA,
            Type::BYTEA,
            Type::INT8,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
        ];
        let mut writer = Box::pin(tokio_postgres::binary_copy::BinaryCopyInWriter::new(sink, &types));
        let mut done = 0u64;
        while let Some(batch) = source.next().await.map_err(PostgresError::Source)? {
            for OwnedLog { log, topics, data } in &batch {
                let topic = |place: usize| topics.get(place).map(B256::as_slice);
                let values: [&(dyn ToSql + Sync); 12] = [
                    &signed(log.block_number),
                    &int4(log.log_index),
                    &int4(log.transaction_index),
                    &log.block_hash.as_slice(),
                    &log.transaction_hash.as_slice(),
                    &signed(log.timestamp),
                    &log.address.as_slice(),
                    &topic(0),
                    &topic(1),
                    &topic(2),
                    &topic(3),
                    &data.as_slice(),
                ];
                let written = writer.as_mut().write(&values).await;
                written.map_err(|error| self.failed(&error))?;
            }
            done += batch.len() as u64;
            progress(done, "loading");
        }
        writer
            .as_mut()
            .finish()
            .await
            .map_err(|error| self.failed(&error))?;
        // More than the default, so that indexes are sorted in memory; for this session only.
        self.run("SET maintenance_work_mem = '256MB'").await?;
        progress(done, "primary key");
        self.run(&format!(
            "ALTER TABLE {schema}.logs ADD PRIMARY KEY (block_number, log_index)"
        ))
        .await?;
        for (name, columns) in INDEXES {
            progress(done, name);
            self.run(&format!("CREATE INDEX logs_{name} ON {schema}.logs ({columns})"))
                .await?;
        }
        progress(done, "analyze");
        self.run(&format!("VACUUM ANALYZE {schema}.logs")).await?;
        let loaded = source.loaded(done);
        let sql = format!("INSERT INTO {schema}.loaded VALUES ($1, $2, $3, $4, $5, $6)");
        let values: [&(dyn ToSql + Sync); 6] = [
            &LAYOUT,
            &signed(loaded.chain_id),
            &signed(loaded.first_block),
            &signed(loaded.last_block),
            &loaded.last_hash.as_slice(),
            &signed(loaded.logs),
        ];
        let inserted = self.database.execute(&sql, &values).await;
        inserted.map_err(|error| self.failed(&error))?;
        Ok(loaded)
    }

    /// Bytes that the logs and their indexes take.
    ///
    /// # Errors
    ///
    /// When the statement fails.
    pub async fn bytes(&self) -> Result<u64, PostgresError> {
        let sql = format!("SELECT pg_total_relation_size('{}.logs')", self.schema);
        let row = self.database.query_one(&sql, &[]).await;
        Ok(number(row.map_err(|error| self.failed(&error))?.get(0)))
    }

    /// Drops the schema, if it is there and ours.
    ///
    /// # Errors
    ///
    /// When the statement fails or the schema is somebody else's.
    pub async fn drop_schema(&self) -> Result<(), PostgresError> {
        if self.is_there().await? {
            self.run("RESET statement_timeout").await?;
            self.run(&format!("DROP SCHEMA {} CASCADE", self.schema)).await?;
        }
        Ok(())
    }

    /// Has the server end each statement after so long.
    ///
    /// # Errors
    ///
    /// When the statement fails.
    pub async fn end_statements_after(&self, time: Duration) -> Result<(), PostgresError> {
        self.run(&format!("SET statement_timeout = {}", time.as_millis().max(1)))
            .await
    }

    /// How many logs a filter finds on all of its pages.
    async fn count(&self, filter: &LogFilter) -> Result<u64, Refusal> {
        let all = LogFilter {
            page: 1,
            offset: u64::MAX,
            ..filter.clone()
        };
        let of_all = |conditions: &str| {
            format!(
                "SELECT count(*) FROM (SELECT 1 FROM {}.logs {conditions}) AS found",
                self.schema
            )
        };
        let rows = self.query(&all, of_all).await?;
        Ok(rows.first().map_or(0, |row| number(row.get(0))))
    }

    async fn rows(&self, filter: &LogFilter) -> Result<Vec<Row>, Refusal> {
        self.query(filter, |conditions| {
            format!("SELECT {COLUMNS} FROM {}.logs {conditions}", self.schema)
        })
        .await
    }

    async fn query(&self, filter: &LogFilter, sql: impl Fn(&str) -> String) -> Result<Vec<Row>, Refusal> {
        let (conditions, values) = filter.sql();
        let sql = sql(&conditions);
        let values: Vec<Box<dyn ToSql + Sync>> = values
            .into_iter()
            .map(|value| match value {
                SqlValue::Bytes(bytes) => Box::new(bytes) as Box<dyn ToSql + Sync>,
                SqlValue::Number(number) => Box::new(number),
            })
            .collect();
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value).collect();
        let rows = self.database.query(&sql, &values).await;
        rows.map_err(|error| Refusal {
            why: self.failed(&error).to_string(),
            is_late: error.code() == Some(&SqlState::QUERY_CANCELED),
        })
    }
}

fn parsed(url: &str) -> Result<Config, PostgresError> {
    let is_url = url.starts_with("postgres://") || url.starts_with("postgresql://");
    let config = is_url.then(|| url.parse::<Config>().ok()).flatten();
    config.ok_or(PostgresError::Url)
}

/// A database's URL as it may be shown: hosts and ports, without user, password, database and options.
///
/// # Errors
///
/// When it is none.
pub fn shown(url: &str) -> Result<String, PostgresError> {
    let config = parsed(url)?;
    let ports = config.get_ports();
    let hosts = config.get_hosts().iter().enumerate().map(|(place, host)| {
        let host = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        let port = ports.get(place).or(ports.first()).copied().unwrap_or(5432);
        format!("{host}:{port}")
    });
    Ok(format!("postgres://{}", hosts.collect::<Vec<_>>().join(",")))
}

/// What the schema says of itself.
const MARK: &str = "made by quarry bench";

impl Other for Postgres {
    const NAME: &'static str = "postgres";

    async fn logs(&mut self, filter: &LogFilter) -> Result<Vec<Compared>, Refusal> {
        let rows = self.rows(filter).await?;
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

    async fn answer(&mut self, filter: &LogFilter) -> Result<(), Refusal> {
        let rows = self.rows(filter).await?;
        let mut writer = LogWriter::new(self.ids.clone());
        self.text.clear();
        for row in &rows {
            writer.entry(&mut self.text, &entry(row, &topics(row)));
        }
        writer.finish(&mut self.text);
        Ok(())
    }
}

/// Asks the service and the database for a page of the blocks that are loaded.
pub async fn with_postgres(
    postgres: &mut Postgres,
    loaded: &LoadedLogs,
    filter: &LogFilter,
    round: &mut Round<'_>,
) {
    match within_loaded(postgres, loaded, filter, round).await {
        Ok(filter) => compare(postgres, &filter, round).await,
        Err(why) => {
            let asked = super::in_words(filter);
            let unanswered = Comparison::unanswered(Postgres::NAME, asked, why);
            round.found.push(unanswered);
        }
    }
}

/// The filter over the blocks that are loaded; of a far page, where they are not all, the page that lies as far in them.
async fn within_loaded(
    postgres: &Postgres,
    loaded: &LoadedLogs,
    filter: &LogFilter,
    round: &mut Round<'_>,
) -> Result<LogFilter, String> {
    let asked = filter.to.unwrap_or(round.facts.head);
    let to = asked.min(loaded.last_block);
    let filter = LogFilter {
        to: Some(to),
        ..filter.clone()
    };
    if filter.from.is_some_and(|from| from > to) {
        return Err(format!("blocks after {to} are not loaded"));
    }
    if filter.page == 1 || to == asked {
        return Ok(filter);
    }
    let (offset, page) = deep_page(round.patience.wait(postgres.count(&filter)).await?);
    Ok(LogFilter {
        offset,
        page,
        ..filter
    })
}

fn failed(shown: &str, error: &tokio_postgres::Error) -> PostgresError {
    // The error's own text ends where its cause begins.
    let cause = std::error::Error::source(error).map(ToString::to_string);
    PostgresError::Failed {
        shown: shown.to_owned(),
        reason: cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_password_is_shown() {
        for (url, expected) in [
            (
                "postgres://me:se/c?r%40et@db.example:5433/logs?connect_timeout=3",
                "postgres://db.example:5433",
            ),
            (
                "postgresql://db.example/logs?user=me&password=secret",
                "postgres://db.example:5432",
            ),
            ("postgres://me@127.0.0.1:5432", "postgres://127.0.0.1:5432"),
        ] {
            assert_eq!(shown(url).unwrap(), expected);
        }
        let failure = shown("host=db.example password=secret").unwrap_err().to_string();
        assert!(!failure.contains("secret"), "{failure}");
    }
}
