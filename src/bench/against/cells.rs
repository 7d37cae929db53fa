//! A row of the table of logs, and its cells.

use tokio_postgres::Row;

use crate::model::{Address, B256, LogEntry, Topics};

/// The topics of a row.
pub(super) fn topics(row: &Row) -> Topics {
    let mut topics = Topics::default();
    for column in 7..11 {
        if let Some(topic) = row.get::<_, Option<&[u8]>>(column) {
            // There are four columns.
            let _ = topics.push(word(topic));
        }
    }
    topics
}

/// A row with its topics, as the text of an answer is written from.
pub(super) fn entry<'r>(row: &'r Row, topics: &'r [B256]) -> LogEntry<'r> {
    let place = |column| u32::try_from(row.get::<_, i32>(column)).unwrap_or_default();
    LogEntry {
        ordinal: 0,
        block_number: number(row.get(0)),
        log_index: place(1),
        transaction_index: place(2),
        block_hash: word(row.get(3)),
        transaction_hash: word(row.get(4)),
        timestamp: number(row.get(5)),
        address: Address::try_from(row.get::<_, &[u8]>(6)).unwrap_or_default(),
        topics,
        data: row.get(11),
    }
}

/// 32 bytes.
pub(super) fn word(bytes: &[u8]) -> B256 {
    B256::try_from(bytes).unwrap_or_default()
}

/// A `bigint` that is a number of ours.
pub(super) fn number(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// A number of ours as a `bigint`.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number of ours as an `integer`.
pub(super) fn int4(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
