//! Asking a node: one request with its repetitions, and the small questions.

use super::config::NodeConfig;
use super::error::NodeError;
use super::link::{HeadSubscription, Link};
use super::pace::{Outcome, Pace, RequestClass};
use super::stats::NodeStats;
use super::wire::{self, BlockId};
use crate::clock;
use crate::model::{Address, B256, U256};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes in flight are counted in units of this size.
const BYTES_UNIT: u64 = 1024;

/// What an answer about a block is taken to weigh before there has been any.
const SIZE_ASSUMED: u64 = 1 << 20;

/// A node, shared by all who ask it; cloning is cheap.
#[derive(Clone)]
pub struct Node(Arc<Inner>);

struct Inner {
    config: NodeConfig,
    link: Link,
    pace: Pace,
    bytes: Arc<Semaphore>,
    /// Recent sizes of answers by class, in bytes: the largest, slowly forgotten.
    sizes: [AtomicU64; RequestClass::COUNT],
    /// How long recent answers took by class, in microseconds: the slowest, slowly forgotten; 0 before the first.
    slowest: [AtomicU64; RequestClass::COUNT],
    stats: Arc<NodeStats>,
    /// Places for questions of clients.
    passing: Semaphore,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("config", &self.0.config)
            .finish_non_exhaustive()
    }
}

/// Room for one bundle among the bytes in flight; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    _permit: Option<OwnedSemaphorePermit>,
}

/// A block that is not named by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockTag {
    /// The newest block.
    Latest,
    /// The newest block that is unlikely to be reorganised.
    Safe,
    /// The newest block that cannot be reorganised.
    Finalized,
}

impl BlockTag {
    /// The text of the tag.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Latest => "latest",
            Self::Safe => "safe",
            Self::Finalized => "finalized",
        }
    }
}

/// Which failures a request is repeated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// All that can pass.
    Always,
    /// Only those of the way to the node: an error in the node's own words is the answer.
    UnlessAnswered,
    /// The same, and silence is an answer too: another question may be the better one.
    UnlessAnsweredOrLate,
}

impl Node {
    /// Connects to the node of `config`. Over HTTP nothing is sent yet.
    ///
    /// # Errors
    ///
    /// When the URL is none, or when a WebSocket or IPC connection cannot be made.
    pub async fn connect(config: NodeConfig) -> Result<Self, NodeError> {
        let stats = Arc::new(NodeStats::default());
        let link = Link::connect(&config, Arc::clone(&stats)).await?;
        let units = (config.bytes_in_flight_max as u64 / BYTES_UNIT).clamp(1, u64::from(u32::MAX));
        Ok(Self(Arc::new(Inner {
            pace: Pace::new(config.concurrency_max, Arc::clone(&stats)),
            bytes: Arc::new(Semaphore::new(
                usize::try_from(units).unwrap_or(1).min(Semaphore::MAX_PERMITS),
            )),
            sizes: [0, SIZE_ASSUMED, SIZE_ASSUMED, SIZE_ASSUMED, 0].map(AtomicU64::new),
            slowest: Default::default(),
            config,
            link,
            stats,
            passing: Semaphore::new(super::passing::IN_FLIGHT_MAX),
        })))
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &NodeConfig {
        &self.0.config
    }

    /// What the node has done for us.
    #[must_use]
    pub fn stats(&self) -> &NodeStats {
        &self.0.stats
    }

    /// How many requests may be in flight now.
    #[must_use]
    pub fn concurrency(&self) -> u64 {
        self.0.pace.limit()
    }

    /// Sends any request and gives the JSON text of its result, which may be `null`. `params` is a JSON
    /// array. Repeated as all requests are.
    ///
    /// # Errors
    ///
    /// When `params` is not JSON, or as the node fails.
    pub async fn raw(&self, method: &'static str, params: &str) -> Result<Box<RawValue>, NodeError> {
        self.call(RequestClass::Light, method, params, Repeat::Always)
            .await
    }

    /// The number of the newest block.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn head(&self) -> Result<u64, NodeError> {
        self.quantity("eth_blockNumber", "[]").await
    }

    /// Number, hash and parent of block `number`; `None` when the node does not have it.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn block_id(&self, number: u64) -> Result<Option<BlockId>, NodeError> {
        self.block_id_of(&format!("0x{number:x}"), Repeat::Always).await
    }

    /// The block that `tag` names; `None` when the node knows no such block or tag.
    ///
    /// # Errors
    ///
    /// As the way to the node fails.
    pub async fn tagged(&self, tag: BlockTag) -> Result<Option<BlockId>, NodeError> {
        match self.block_id_of(tag.as_str(), Repeat::UnlessAnswered).await {
            Err(error) if error.is_answer() => Ok(None),
            result => result,
        }
    }

    /// The newest finalized block; `None` when the node names none.
    ///
    /// # Errors
    ///
    /// As the way to the node fails.
    pub async fn finalized(&self) -> Result<Option<BlockId>, NodeError> {
        self.tagged(BlockTag::Finalized).await
    }

    /// The newest safe block; `None` when the node names none.
    ///
    /// # Errors
    ///
    /// As the way to the node fails.
    pub async fn safe(&self) -> Result<Option<BlockId>, NodeError> {
        self.tagged(BlockTag::Safe).await
    }

    /// How many transactions `address` has sent up to and including block `number`.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn transaction_count(&self, address: Address, number: u64) -> Result<u64, NodeError> {
        self.quantity(
            "eth_getTransactionCount",
            &format!("[\"{address:?}\",\"0x{number:x}\"]"),
        )
        .await
    }

    /// The native balance of `address` after block `number`.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn balance(&self, address: Address, number: u64) -> Result<U256, NodeError> {
        const METHOD: &str = "eth_getBalance";
        let params = format!("[\"{address:?}\",\"0x{number:x}\"]");
        let text = self
            .call(RequestClass::Light, METHOD, &params, Repeat::Always)
            .await?;
        wire::amount(text.get()).map_err(|error| NodeError::Malformed {
            method: METHOD,
            reason: error.to_string(),
        })
    }

    /// The word at `slot` of a contract's storage after block `number`.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn storage(&self, contract: Address, slot: B256, number: u64) -> Result<B256, NodeError> {
        const METHOD: &str = "eth_getStorageAt";
        let params = format!("[\"{contract:?}\",\"{slot:?}\",\"0x{number:x}\"]");
        let text = self
            .call(RequestClass::Light, METHOD, &params, Repeat::Always)
            .await?;
        let malformed = |reason: String| NodeError::Malformed {
            method: METHOD,
            reason,
        };
        let word = wire::bytes(text.get()).map_err(|error| malformed(error.to_string()))?;
        // Some leave leading zeros out.
        if word.len() > 32 {
            return Err(malformed(format!("a word of {} bytes", word.len())));
        }
        Ok(B256::left_padding_from(&word))
    }

    pub(super) async fn block_id_of(
        &self,
        block: &str,
        repeat: Repeat,
    ) -> Result<Option<BlockId>, NodeError> {
        const METHOD: &str = "eth_getBlockByNumber";
        let params = format!("[\"{block}\",false]");
        let text = self.call(RequestClass::Light, METHOD, &params, repeat).await?;
        if text.get() == "null" {
            return Ok(None);
        }
        wire::block_id(text.get())
            .map(Some)
            .map_err(|error| NodeError::Malformed {
                method: METHOD,
                reason: error.to_string(),
            })
    }

    pub(super) async fn quantity(&self, method: &'static str, params: &str) -> Result<u64, NodeError> {
        let text = self
            .call(RequestClass::Light, method, params, Repeat::Always)
            .await?;
        wire::quantity(text.get()).map_err(|error| NodeError::Malformed {
            method,
            reason: error.to_string(),
        })
    }

    /// Sends one request, again after failures that can pass, until it is answered or the deadline or
    /// the number of attempts is reached.
    pub(super) async fn call(
        &self,
        class: RequestClass,
        method: &'static str,
        params: &str,
        repeat: Repeat,
    ) -> Result<Box<RawValue>, NodeError> {
        let params: &RawValue = serde_json::from_str(params).map_err(|error| NodeError::Malformed {
            method,
            reason: format!("parameters: {error}"),
        })?;
        let mut tries = Tries::default();
        loop {
            // On the heap: a client's request is a large state, and a bundle holds several.
            let error = match Box::pin(self.attempt(class, method, params, &mut tries)).await {
                Ok(text) => return Ok(text),
                Err(error) => error,
            };
            let late = matches!(error, NodeError::Timeout { .. }) && repeat == Repeat::UnlessAnsweredOrLate;
            if late || (repeat != Repeat::Always && error.is_answer()) {
                return Err(error);
            }
            self.before_repetition(&mut tries, error).await?;
        }
    }

    /// Counts the failure, then waits before the next attempt or gives the error back as the last word.
    pub(super) async fn before_repetition(
        &self,
        tries: &mut Tries,
        error: NodeError,
    ) -> Result<(), NodeError> {
        let Some(wait) = tries.next_wait(&self.0.config, &error) else {
            return Err(error);
        };
        self.0.stats.retries.fetch_add(1, Ordering::Relaxed);
        let (wait_ms, attempt) = (wait.as_millis(), tries.made);
        // One that is waited for in vain may be all that the tip stands for.
        if matches!(error, NodeError::Timeout { .. }) {
            tracing::info!(%error, wait_ms, attempt, "node request repeated");
        } else {
            tracing::debug!(%error, wait_ms, attempt, "node request repeated");
        }
        tokio::time::sleep(wait).await;
        Ok(())
    }

    async fn attempt(
        &self,
        class: RequestClass,
        method: &'static str,
        params: &RawValue,
        tries: &mut Tries,
    ) -> Result<Box<RawValue>, NodeError> {
        let inner = &self.0;
        let slot = inner.pace.admit(class).await;
        inner.stats.requests.fetch_add(1, Ordering::Relaxed);
        let one = match class {
            RequestClass::Light | RequestClass::Call => {
                inner.config.light_timeout.min(inner.config.request_timeout)
            }
            _ if tries.made == 0 => inner.config.first_timeout(inner.slowest(class)),
            _ => inner.config.request_timeout,
        };
        let after = one.min(inner.config.deadline.saturating_sub(tries.spent));
        let started = clock::now();
        let result = match tokio::time::timeout(after, inner.link.request(method, params)).await {
            Ok(result) => result,
            Err(_) => Err(NodeError::Timeout { method, after }),
        };
        let took = clock::now() - started;
        tries.spent += took;
        match &result {
            Ok(text) => {
                inner.remember_time(class, took);
                let bytes = text.get().len();
                inner.stats.answered(slot.end(Outcome::Answered, bytes), bytes);
                // Calls are no part of a bundle, and what they weigh is a contract's choice.
                if class != RequestClass::Call {
                    inner.remember_size(class, bytes);
                }
            }
            Err(NodeError::Execution { .. }) => inner.stats.answered(slot.end(Outcome::Answered, 0), 0),
            Err(error) => {
                inner.stats.failed(error.class());
                let outcome = if error.is_push_back() {
                    Outcome::PushedBack
                } else {
                    Outcome::Failed
                };
                slot.end(outcome, 0);
            }
        }
        result
    }

    pub(super) fn link(&self) -> &Link {
        &self.0.link
    }

    pub(super) fn pace(&self) -> &Pace {
        &self.0.pace
    }

    pub(super) fn passing(&self) -> &Semaphore {
        &self.0.passing
    }

    /// Counts a failure that was found in an answer.
    pub(super) fn count_failure(&self, error: &NodeError) {
        self.0.stats.failed(error.class());
    }

    /// Waits until one more bundle fits into the bytes in flight, by the size of recent answers. Room is
    /// given in the order of asking; who holds some must not wait for more.
    pub async fn reserve(&self) -> Reservation {
        let inner = &self.0;
        let bytes: u64 = inner.sizes.iter().map(|size| size.load(Ordering::Relaxed)).sum();
        let all = inner.config.bytes_in_flight_max as u64 / BYTES_UNIT;
        let units = (bytes / BYTES_UNIT).clamp(1, all.clamp(1, u64::from(u32::MAX)));
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Reservation {
            _permit: Arc::clone(&inner.bytes).acquire_many_owned(units).await.ok(),
        }
    }

    pub(super) fn can_subscribe(&self) -> bool {
        self.0.link.can_subscribe()
    }

    pub(super) async fn subscribe_heads(&self) -> Result<HeadSubscription, NodeError> {
        let after = self.0.config.request_timeout;
        match tokio::time::timeout(after, self.0.link.subscribe_heads()).await {
            Ok(result) => result,
            Err(_) => Err(NodeError::Timeout {
                method: "eth_subscribe",
                after,
            }),
        }
    }
}

impl Inner {
    /// The slowest recent answer of a class.
    fn slowest(&self, class: RequestClass) -> Option<Duration> {
        let micros = self.slowest.get(class as usize)?.load(Ordering::Relaxed);
        (micros > 0).then(|| Duration::from_micros(micros))
    }

    fn remember_time(&self, class: RequestClass, took: Duration) {
        if let Some(slowest) = self.slowest.get(class as usize) {
            let faded = slowest.load(Ordering::Relaxed) / 32 * 31;
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            slowest.store(faded.max(micros).max(1), Ordering::Relaxed);
        }
    }

    fn remember_size(&self, class: RequestClass, bytes: usize) {
        if let Some(size) = self.sizes.get(class as usize) {
            let faded = size.load(Ordering::Relaxed) / 32 * 31;
            size.store(faded.max(bytes as u64), Ordering::Relaxed);
        }
    }
}

/// The attempts of one request.
#[derive(Debug, Default)]
pub(super) struct Tries {
    made: u32,
    /// Time spent on requests and on waiting to repeat them. Time spent in line for a place in flight is
    /// not in it: a long line says nothing about the request.
    spent: Duration,
}

impl Tries {
    /// How long to wait before the next attempt; `None` when there is to be none.
    fn next_wait(&mut self, config: &NodeConfig, error: &NodeError) -> Option<Duration> {
        self.made += 1;
        // A small question that was not answered in time is asked once more; then the caller should know.
        let stalled = matches!(error, NodeError::Timeout { after, .. } if *after == config.light_timeout);
        if stalled && self.made > 1 {
            return None;
        }
        if !error.is_retryable() || config.attempts_max <= self.made {
            return None;
        }
        let mut wait = config.backoff(self.made);
        if let NodeError::RateLimited {
            retry_after: Some(asked),
            ..
        } = error
        {
            wait = wait.max(*asked);
        }
        self.spent += wait;
        (self.spent < config.deadline).then_some(wait)
    }
}
