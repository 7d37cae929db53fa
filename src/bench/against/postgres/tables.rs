//! The tables: made, filled from the store by binary COPY, indexed, analysed.

use std::pin::Pin;
use std::time::Duration;

use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};

use super::super::cells::{int4, number, signed, word};
use super::{CONNECT_TIME, Postgres, PostgresError, within};
use crate::bench::load::{LoadedLogs, OwnedLog, Placed, Source, logs, transactions};
use crate::clock;
use crate::model::{B256, ChainName};
use crate::query::Reader;

/// How long a schema may take to be dropped.
const DROP_TIME: Duration = Duration::from_secs(60);
/// How long a session whose connection died may have the schema yet, and how often it is asked for in that time.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_millis(200);
/// How many seconds others may hold its tables while it is dropped, and while it is looked what is loaded.
const LOCKS_FOR: u64 = 10;

/// What the schema says of itself.
pub(super) const MARK: &str = "made by quarry bench";

/// Indexes of `logs` beside the primary key (block, log index). Those of Blockscout's `logs` in spirit, each ending with the
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
const LAYOUT: i32 = 2;

/// The columns of `logs`. An explorer's table has no place of the transaction and no time; here both queries use one table.
pub(super) const COLUMNS: &str = "block_number, log_index, transaction_index, block_hash, transaction_hash, timestamp, \
                                  address, topic0, topic1, topic2, topic3, data";

/// The columns of `transactions`: the first eight that an explorer's table has.
const TRANSACTION_COLUMNS: &str =
    "hash, block_number, transaction_index, block_hash, timestamp, from_address, to_address, value";

/// Told how many logs are loaded, and what is being done.
type Progress<'a> = &'a (dyn Fn(u64, &str) + Sync);

impl Postgres {
    /// What is loaded already; `None` where nothing is, or not to its end. Others who hold the tables are not waited for long.
    ///
    /// # Errors
    ///
    /// When a statement fails, somebody holds the tables, or the schema is somebody else's.
    pub async fn loaded(&self) -> Result<Option<LoadedLogs>, PostgresError> {
        if !self.is_there().await? {
            return Ok(None);
        }
        // What lacks a table or a column is not all there, whatever it says.
        let sql = format!(
            "SELECT chain_id, first_block, last_block, last_hash, logs FROM {schema}.loaded WHERE layout = $1
             AND NOT EXISTS (SELECT {COLUMNS} FROM {schema}.logs LIMIT 0)
             AND NOT EXISTS (SELECT {TRANSACTION_COLUMNS} FROM {schema}.transactions LIMIT 0)",
            schema = self.schema
        );
        let asking = async {
            match self.database.query_opt(&sql, &[&LAYOUT]).await {
                // The mark is ours, the tables are not there or others: it was not finished.
                Err(error)
                    if matches!(
                        error.code(),
                        Some(&SqlState::UNDEFINED_TABLE | &SqlState::UNDEFINED_COLUMN)
                    ) =>
                {
                    Ok(None)
                }
                answer => answer,
            }
        };
        // They are waited for as long in a short run, whose statements end sooner.
        self.wait_for_locks().await?;
        let row = self.in_time(asking).await?;
        let ending = self.end_statements_after(Some(self.statement_time));
        within(CONNECT_TIME, &self.shown, ending).await?;
        Ok(row.map(|row| LoadedLogs {
            chain_id: number(row.get(0)),
            first_block: number(row.get(1)),
            last_block: number(row.get(2)),
            last_hash: word(row.get(3)),
            logs: number(row.get(4)),
        }))
    }

    /// Makes the schema anew, loads what was planned, makes the indexes, has the tables analysed and asks for a checkpoint; why there was none,
    /// where the server refused it. `progress` is told how many logs are loaded, then what else is being done.
    ///
    /// # Errors
    ///
    /// When a statement fails, the schema is somebody else's, or the store cannot be read.
    pub async fn load(
        &self,
        reader: Reader,
        plan: LoadedLogs,
        progress: Progress<'_>,
    ) -> Result<Option<PostgresError>, PostgresError> {
        let schema = &self.schema;
        self.drop_schema().await?;
        self.end_statements_after(None).await?;
        self.run(&format!(
            "BEGIN; CREATE SCHEMA {schema}; COMMENT ON SCHEMA {schema} IS '{MARK}'; COMMIT;
             CREATE TABLE {schema}.logs (
               block_number bigint NOT NULL, log_index integer NOT NULL, transaction_index integer NOT NULL,
               block_hash bytea NOT NULL, transaction_hash bytea NOT NULL, timestamp bigint NOT NULL,
               address bytea NOT NULL, topic0 bytea, topic1 bytea, topic2 bytea, topic3 bytea, data bytea NOT NULL);
             CREATE TABLE {schema}.transactions (
               hash bytea NOT NULL, block_number bigint NOT NULL, transaction_index integer NOT NULL,
               block_hash bytea NOT NULL, timestamp bigint NOT NULL, from_address bytea NOT NULL, to_address bytea,
               value bytea NOT NULL);
             CREATE TABLE {schema}.loaded (
               layout integer NOT NULL, chain_id bigint NOT NULL, first_block bigint NOT NULL,
               last_block bigint NOT NULL, last_hash bytea NOT NULL, logs bigint NOT NULL);"
        ))
        .await?;
        let logs = Source::begin(reader.clone(), plan, logs);
        self.copy_logs(logs, progress).await?;
        let transactions = Source::begin(reader, plan, transactions);
        self.copy_transactions(transactions, &|done| {
            progress(plan.logs, &format!("loading transactions: {done}"));
        })
        .await?;
        // More than the default, so that indexes are sorted in memory; for this session only.
        self.run("SET maintenance_work_mem = '256MB'").await?;
        progress(plan.logs, "primary keys");
        self.run(&format!(
            "ALTER TABLE {schema}.logs ADD PRIMARY KEY (block_number, log_index);
             ALTER TABLE {schema}.transactions ADD PRIMARY KEY (hash)"
        ))
        .await?;
        for (name, columns) in INDEXES {
            progress(plan.logs, name);
            self.run(&format!("CREATE INDEX logs_{name} ON {schema}.logs ({columns})"))
                .await?;
        }
        progress(plan.logs, "analyze");
        self.run(&format!("VACUUM ANALYZE {schema}.logs")).await?;
        self.run(&format!("VACUUM ANALYZE {schema}.transactions")).await?;
        let sql = format!("INSERT INTO {schema}.loaded VALUES ($1, $2, $3, $4, $5, $6)");
        let values: [&(dyn ToSql + Sync); 6] = [
            &LAYOUT,
            &signed(plan.chain_id),
            &signed(plan.first_block),
            &signed(plan.last_block),
            &plan.last_hash.as_slice(),
            &signed(plan.logs),
        ];
        let inserted = self.database.execute(&sql, &values).await;
        inserted.map_err(|error| self.failed(&error))?;
        progress(plan.logs, "checkpoint");
        // What was loaded is not to be written to disk beside the measurements. Who may not ask for it does without.
        let refused = self.run("CHECKPOINT").await.err();
        self.end_statements_after(Some(self.statement_time)).await?;
        Ok(refused)
    }

    async fn copy_logs(
        &self,
        mut source: Source<OwnedLog>,
        progress: Progress<'_>,
    ) -> Result<(), PostgresError> {
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
        let mut writer = self.copy("logs", COLUMNS, &types).await?;
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
                self.write(&mut writer, &values).await?;
            }
            done += batch.len() as u64;
            progress(done, "loading");
        }
        self.finish(writer).await
    }

    async fn copy_transactions(
        &self,
        mut source: Source<Placed>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), PostgresError> {
        let types = [
            Type::BYTEA,
            Type::INT8,
            Type::INT4,
            Type::BYTEA,
            Type::INT8,
            Type::BYTEA,
            Type::BYTEA,
            Type::BYTEA,
        ];
        let mut writer = self.copy("transactions", TRANSACTION_COLUMNS, &types).await?;
        let mut done = 0u64;
        while let Some(batch) = source.next().await.map_err(PostgresError::Source)? {
            for placed in &batch {
                let values: [&(dyn ToSql + Sync); 8] = [
                    &placed.hash.as_slice(),
                    &signed(placed.block_number),
                    &int4(placed.index),
                    &placed.block_hash.as_slice(),
                    &signed(placed.timestamp),
                    &placed.from.as_slice(),
                    &placed.to.as_ref().map(|to| to.as_slice()),
                    &placed.value.to_be_bytes_trimmed_vec(),
                ];
                self.write(&mut writer, &values).await?;
            }
            done += batch.len() as u64;
            progress(done);
        }
        self.finish(writer).await
    }

    async fn copy(
        &self,
        table: &str,
        columns: &str,
        types: &[Type],
    ) -> Result<Pin<Box<BinaryCopyInWriter>>, PostgresError> {
        let sql = format!(
            "COPY {}.{table} ({columns}) FROM STDIN (FORMAT binary)",
            self.schema
        );
        let sink = self.database.copy_in(&sql).await;
        let sink = sink.map_err(|error| self.failed(&error))?;
        Ok(Box::pin(BinaryCopyInWriter::new(sink, types)))
    }

    async fn write(
        &self,
        writer: &mut Pin<Box<BinaryCopyInWriter>>,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<(), PostgresError> {
        let written = writer.as_mut().write(values).await;
        written.map_err(|error| self.failed(&error))
    }

    async fn finish(&self, mut writer: Pin<Box<BinaryCopyInWriter>>) -> Result<(), PostgresError> {
        let finished = writer.as_mut().finish().await;
        finished.map(drop).map_err(|error| self.failed(&error))
    }

    /// Bytes that the logs with their indexes take, and the transactions with theirs.
    ///
    /// # Errors
    ///
    /// When the statement fails.
    pub async fn bytes(&self) -> Result<(u64, u64), PostgresError> {
        let sql = format!(
            "SELECT pg_total_relation_size('{schema}.logs'), pg_total_relation_size('{schema}.transactions')",
            schema = self.schema
        );
        let row = self.in_time(self.database.query_one(&sql, &[])).await?;
        Ok((number(row.get(0)), number(row.get(1))))
    }

    /// Has the server wait for those who hold a table, and not longer than that; statements that wait for nobody are not ended.
    async fn wait_for_locks(&self) -> Result<(), PostgresError> {
        let sql = format!("SET statement_timeout = 0; SET lock_timeout = '{LOCKS_FOR} s'");
        self.in_time(self.database.batch_execute(&sql)).await
    }

    /// Drops the schema, if it is there and ours; whether it was. Others who read it are not waited for long.
    ///
    /// # Errors
    ///
    /// When a statement fails, somebody holds the tables, or the schema is somebody else's.
    pub async fn drop_schema(&self) -> Result<bool, PostgresError> {
        let dropping = async {
            if !self.is_there().await? {
                return Ok(false);
            }
            self.wait_for_locks().await?;
            self.run(&format!("DROP SCHEMA {} CASCADE", self.schema)).await?;
            self.run("RESET lock_timeout").await?;
            Ok(true)
        };
        within(DROP_TIME, &self.shown, dropping).await
    }

    /// The same over another connection. Where that of the run `died`, its session may have the schema for a moment longer.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect) and [`drop_schema`](Self::drop_schema).
    pub async fn drop_anew(
        url: &str,
        chain: ChainName,
        time: Duration,
        died: bool,
    ) -> Result<bool, PostgresError> {
        let until = clock::now() + ENDED_WITHIN;
        loop {
            match Self::connect(url, chain, time).await {
                Err(PostgresError::Taken(_)) if died && clock::now() < until => {
                    tokio::time::sleep(RETRY).await
                }
                connected => return connected?.drop_schema().await,
            }
        }
    }
}
