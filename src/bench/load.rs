//! The logs and transactions of a store, in order, for whoever loads them elsewhere.

use crate::model::{Address, B256, BlockEntry, LogEntry, Topics, U256};
use crate::query::{QueryError, Reader};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Logs of a batch, and batches that wait.
const BATCH: u64 = 2_000;
const WAITING: usize = 8;

/// A log that borrows nothing.
#[derive(Debug)]
pub struct OwnedLog {
    /// The log without topics and data.
    pub log: LogEntry<'static>,
    /// Its topics.
    pub topics: Topics,
    /// Its data.
    pub data: Vec<u8>,
}

impl OwnedLog {
    fn of(log: &LogEntry<'_>) -> Self {
        Self {
            log: LogEntry {
                topics: &[],
                data: &[],
                ..*log
            },
            // A log of the store has four at most.
            topics: Topics::new(log.topics).unwrap_or_default(),
            data: log.data.to_vec(),
        }
    }
}

/// Which logs were loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadedLogs {
    /// Chain id.
    pub chain_id: u64,
    /// First block.
    pub first_block: u64,
    /// Last block, whole.
    pub last_block: u64,
    /// Its hash.
    pub last_hash: B256,
    /// Logs.
    pub logs: u64,
}

/// What is loaded of a transaction.
#[derive(Debug)]
pub struct Placed {
    /// Transaction hash.
    pub hash: B256,
    /// Its block.
    pub block_number: u64,
    /// Its block's hash.
    pub block_hash: B256,
    /// Its block's time, Unix seconds.
    pub timestamp: u64,
    /// Its place in the block.
    pub index: u32,
    /// Sender.
    pub from: Address,
    /// Recipient; `None` for a creation.
    pub to: Option<Address>,
    /// Value in wei.
    pub value: U256,
}

/// Gives rows of the first blocks of a store, batch by batch, read on a thread that may block.
pub struct Source<T> {
    batches: Receiver<Result<Vec<T>, QueryError>>,
}

/// Which logs of a store are loaded where at most `logs_max` may be: those of whole blocks from the first on. None where the
/// first block with logs has more.
///
/// # Errors
///
/// As the store fails.
pub fn plan(reader: &Reader, logs_max: u64) -> Result<Option<LoadedLogs>, QueryError> {
    let contents = reader.contents();
    let (head, first_block) = (reader.head(), reader.first_block());
    let last_block = if contents.logs <= logs_max {
        head.number
    } else {
        // The block of the first log too many is not whole.
        let beyond = reader.block_of_log(logs_max)?;
        match beyond.checked_sub(1).filter(|&last| last >= first_block) {
            Some(last) => last,
            None => return Ok(None),
        }
    };
    let logs = reader.logs_before(last_block + 1)?;
    if logs == 0 {
        return Ok(None);
    }
    let last_hash = if last_block == head.number {
        head.hash
    } else {
        let block = reader.block(last_block, false)?;
        block.map(|block| block.block.hash).unwrap_or_default()
    };
    Ok(Some(LoadedLogs {
        chain_id: reader.chain_id(),
        first_block,
        last_block,
        last_hash,
        logs,
    }))
}

/// Reads all rows of what was planned and sends them; ends early where nobody listens any more.
type Read<T> = fn(&Reader, LoadedLogs, &Sender<Result<Vec<T>, QueryError>>) -> Result<(), QueryError>;

impl<T: Send + 'static> Source<T> {
    /// Begins to read what was planned: [`logs`] or [`transactions`].
    #[must_use]
    pub fn begin(reader: Reader, plan: LoadedLogs, read: Read<T>) -> Self {
        let (sender, batches) = channel(WAITING);
        tokio::task::spawn_blocking(move || {
            if let Err(error) = read(&reader, plan, &sender) {
                // Nobody listens any more where this fails.
                let _ = sender.blocking_send(Err(error));
            }
        });
        Self { batches }
    }

    /// The next batch; `None` after the last.
    ///
    /// # Errors
    ///
    /// One sentence, as the store fails.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, String> {
        let batch = self.batches.recv().await.transpose();
        batch.map_err(|error| error.to_string())
    }
}

/// The logs of what was planned, in order.
///
/// # Errors
///
/// As the store fails.
pub fn logs(
    reader: &Reader,
    plan: LoadedLogs,
    to: &Sender<Result<Vec<OwnedLog>, QueryError>>,
) -> Result<(), QueryError> {
    let mut first = 0;
    while first < plan.logs {
        let end = plan.logs.min(first + BATCH);
        let mut batch = Vec::with_capacity(BATCH as usize);
        reader.logs_at((first..end).collect())?.visit(&mut |log| {
            batch.push(OwnedLog::of(log));
            true
        })?;
        if to.blocking_send(Ok(batch)).is_err() {
            break;
        }
        first = end;
    }
    Ok(())
}

/// The transactions of the blocks that were planned, in order, a batch a block.
///
/// # Errors
///
/// As the store fails.
pub fn transactions(
    reader: &Reader,
    plan: LoadedLogs,
    to: &Sender<Result<Vec<Placed>, QueryError>>,
) -> Result<(), QueryError> {
    for number in plan.first_block..=plan.last_block {
        let Some(BlockEntry { block, .. }) = reader.block(number, true)? else {
            continue;
        };
        let placed = (0..).zip(&block.transactions).map(|(index, transaction)| Placed {
            hash: transaction.hash,
            block_number: number,
            block_hash: block.hash,
            timestamp: block.header.timestamp,
            index,
            from: transaction.from,
            to: transaction.to,
            value: transaction.value,
        });
        if to.blocking_send(Ok(placed.collect())).is_err() {
            break;
        }
    }
    Ok(())
}
