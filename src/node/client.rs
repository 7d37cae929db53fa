//! Asking a node: one request with its repetitions, and the small questions.

use super::config::NodeConfig;
use super::error::NodeError;
use super::link::{HeadSubscription, Link, Question, ResultText};
use super::pace::{Outcome, Pace, RequestClass, Slot};
use super::recent::Recent;
use super::rest::Rest;
use super::room::{Reservation, Room};
use super::stats::NodeStats;
use super::tag::BlockTag;
use super::tries::{Patience, Tries};
use super::uncles::Uncles;
use super::wire::{self, BlockId};
use crate::clock;
use crate::model::{Address, B256};
use serde_json::value::RawValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// A node, shared by all who ask it; cloning is cheap.
#[derive(Clone)]
pub struct Node {
    inner: Arc<Inner>,
    patience: Patience,
    /// What answers take room from; those of small questions need none.
    reserved: Option<Arc<Reservation>>,
}

struct Inner {
    config: NodeConfig,
    home: Handle,
    link: Link,
    pace: Pace,
    rest: Rest,
    room: Arc<Room>,
    recent: Recent,
    stats: Arc<NodeStats>,
    /// Places for questions of clients.
    passing: Semaphore,
    /// Blocks whose traces were taken although they seem to lack frames.
    gaps: AtomicU64,
    uncles: Uncles,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Node")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
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
        let inner = Arc::new(Inner {
            pace: Pace::new(config.concurrency_max, Arc::clone(&stats)),
            rest: Rest::default(),
            room: Arc::new(Room::new(config.bytes_in_flight_max)),
            recent: Recent::new(),
            config,
            home: Handle::current(),
            link,
            stats,
            passing: Semaphore::new(super::passing::IN_FLIGHT_MAX),
            gaps: AtomicU64::new(0),
            uncles: Uncles::default(),
        });
        Ok(Self {
            inner,
            patience: Patience::Long,
            reserved: None,
        })
    }

    /// The same node for questions that somebody waits for: they are repeated little and fail soon, where the
    /// others are repeated for as long as it may help.
    #[must_use]
    pub fn for_clients(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            patience: Patience::Short,
            reserved: None,
        }
    }

    /// The same node, whose answers take room of a reservation.
    pub(super) fn within(&self, reserved: &Arc<Reservation>) -> Self {
        Self {
            reserved: Some(Arc::clone(reserved)),
            ..self.clone()
        }
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &NodeConfig {
        &self.inner.config
    }

    /// What the node has done for us.
    #[must_use]
    pub fn stats(&self) -> &NodeStats {
        &self.inner.stats
    }

    /// How many requests may be in flight now.
    #[must_use]
    pub fn concurrency(&self) -> u64 {
        self.inner.pace.limit()
    }

    /// Sends any request and gives the JSON text of its result, which may be `null`. `params` is a JSON
    /// array. Repeated as all requests are.
    ///
    /// # Errors
    ///
    /// When `params` is not JSON, or as the node fails.
    pub async fn raw(&self, method: &'static str, params: &str) -> Result<ResultText, NodeError> {
        // It may be a question about logs, whose answer is as long as it is.
        let bytes_max = self.config().response_bytes_max;
        self.call_within(RequestClass::Light, bytes_max, method, params, Repeat::Always)
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

    /// Number, hash and parent of block `number`; `None` when the node does not have it, or tells of another one.
    ///
    /// # Errors
    ///
    /// As the node fails.
    pub async fn block_id(&self, number: u64) -> Result<Option<BlockId>, NodeError> {
        let id = self.block_id_of(&format!("0x{number:x}"), Repeat::Always).await?;
        Ok(id.filter(|id| id.number == number))
    }

    /// The block that `tag` names; `None` when the node knows no such block or tag.
    ///
    /// # Errors
    ///
    /// As the way to the node fails.
    pub async fn tagged(&self, tag: BlockTag) -> Result<Option<BlockId>, NodeError> {
        match self.block_id_of(tag.as_str(), Repeat::UnlessAnswered).await {
            Err(error) if error.is_answer() || error.is_refusal() => Ok(None),
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
        let word = wire::bytes(text.get()).map_err(|error| self.malformed(METHOD, &error))?;
        // Some leave leading zeros out.
        if word.len() > 32 {
            return Err(self.malformed(METHOD, &format!("a word of {} bytes", word.len())));
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
        wire::known_block_id(text.get()).map_err(|error| self.malformed(METHOD, &error))
    }

    pub(super) async fn quantity(&self, method: &'static str, params: &str) -> Result<u64, NodeError> {
        let text = self
            .call(RequestClass::Light, method, params, Repeat::Always)
            .await?;
        wire::quantity(text.get()).map_err(|error| self.malformed(method, &error))
    }

    /// Sends one request, again after failures that can pass, until it is answered or the deadline or
    /// the number of attempts is reached.
    pub(super) async fn call(
        &self,
        class: RequestClass,
        method: &'static str,
        params: &str,
        repeat: Repeat,
    ) -> Result<ResultText, NodeError> {
        let bytes_max = self.config().bytes_max(class);
        self.call_within(class, bytes_max, method, params, repeat).await
    }

    async fn call_within(
        &self,
        class: RequestClass,
        bytes_max: usize,
        method: &'static str,
        params: &str,
        repeat: Repeat,
    ) -> Result<ResultText, NodeError> {
        let params: &RawValue = serde_json::from_str(params).map_err(|error| NodeError::Malformed {
            method,
            reason: format!("parameters: {error}"),
        })?;
        let after = self.config().timeout(class);
        let question = Question {
            method,
            params,
            bytes_max,
            after,
        };
        let mut tries = Tries::default();
        loop {
            // On the heap: a client's request is a large state, and a bundle holds several.
            let error = match Box::pin(self.attempt(class, question, &mut tries)).await {
                Ok(text) => return Ok(text),
                Err(error) => error,
            };
            if let Some(bytes) = without_room(&error, bytes_max)
                && let Some(reserved) = &self.reserved
            {
                tracing::debug!(method, bytes, "an answer is longer than there is room for");
                reserved.wait_for(bytes).await;
                continue;
            }
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
        let Some(wait) = tries.next_wait(self.patience, &self.inner.config, &error) else {
            return Err(error);
        };
        self.inner.stats.retries.fetch_add(1, Ordering::Relaxed);
        let (wait_ms, attempt) = (wait.as_millis(), tries.made());
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
        question: Question<'_>,
        tries: &mut Tries,
    ) -> Result<ResultText, NodeError> {
        let inner = &self.inner;
        let slot = self.admit(class, question.method).await?;
        let whole = question.bytes_max;
        let bytes_max = match &self.reserved {
            Some(reserved) => reserved.bound(whole),
            None => whole,
        };
        inner.stats.requests.fetch_add(1, Ordering::Relaxed);
        let after = match tries.made() {
            0 if !class.is_small() => inner.config.first_timeout(inner.recent.slowest(class)),
            _ => question.after,
        };
        let question = Question {
            after: after.min(inner.config.deadline.saturating_sub(tries.spent())),
            bytes_max,
            ..question
        };
        let started = clock::now();
        let result = inner.link.request(question).await.and_then(|text| {
            // Blocks, receipts and traces are read to their ends; of the others not everybody reads all.
            if class.is_small() {
                text.check(question.method)?;
            }
            Ok(text)
        });
        let took = clock::now() - started;
        tries.spend(took);
        match &result {
            Ok(text) => {
                inner.recent.took(class, took);
                let bytes = text.get().len();
                inner.stats.answered(slot.end(Outcome::Answered, bytes), bytes);
                if class.weighs() {
                    inner.recent.weighed(class, bytes);
                }
            }
            Err(NodeError::Execution { .. }) => inner.stats.answered(slot.end(Outcome::Answered, 0), 0),
            // Neither did the node fail, nor does it say how fast it is.
            Err(error) if without_room(error, whole).is_some() => drop(slot),
            Err(error) => {
                inner.stats.failed(error.class());
                let outcome = if error.is_push_back() {
                    Outcome::PushedBack
                } else {
                    Outcome::Failed
                };
                slot.end(outcome, 0);
                self.obey(error);
            }
        }
        result
    }

    /// Waits for a place in flight; while the node is to be left alone, for that too, or not at all.
    pub(super) async fn admit(
        &self,
        class: RequestClass,
        method: &'static str,
    ) -> Result<Slot<'_>, NodeError> {
        let Inner { pace, rest, .. } = &*self.inner;
        loop {
            match rest.left() {
                None => {}
                Some(left) if self.patience == Patience::Short => {
                    let message = "the node asked to be left alone for a while".to_owned();
                    return Err(NodeError::RateLimited {
                        method,
                        message,
                        retry_after: Some(left),
                    });
                }
                Some(left) => {
                    tokio::time::sleep(left).await;
                    continue;
                }
            }
            let slot = pace.admit(class).await;
            // It may have asked while this one was in line.
            if rest.left().is_none() {
                return Ok(slot);
            }
        }
    }

    /// Leaves the node alone where the error asks for it.
    pub(super) fn obey(&self, error: &NodeError) {
        if let Some(asked) = error.rest_asked()
            && self.inner.rest.begin(asked)
        {
            tracing::info!(%error, seconds = asked.as_secs(), "the node asks to be left alone for a while");
        }
    }

    /// For how long it is left alone yet, where it has asked for that: nothing is asked of it meanwhile.
    #[must_use]
    pub fn resting(&self) -> Option<Duration> {
        self.inner.rest.left()
    }

    pub(super) fn link(&self) -> &Link {
        &self.inner.link
    }

    /// The runtime that it was connected on.
    pub(super) fn home(&self) -> &Handle {
        &self.inner.home
    }

    pub(super) fn passing(&self) -> &Semaphore {
        &self.inner.passing
    }

    pub(super) fn gaps(&self) -> &AtomicU64 {
        &self.inner.gaps
    }

    pub(super) fn uncles(&self) -> &Uncles {
        &self.inner.uncles
    }

    pub(super) fn recent(&self) -> &Recent {
        &self.inner.recent
    }

    /// Counts a failure that was found in an answer.
    pub(super) fn count_failure(&self, error: &NodeError) {
        self.inner.stats.failed(error.class());
    }

    /// Waits until one more bundle fits into the bytes in flight, by the size of recent answers. Room is given in the order
    /// of asking. Longer answers are asked for again when there is room for them, but for those of who came first: who holds
    /// some must let go of it without waiting for anybody who came later.
    pub async fn reserve(&self) -> Arc<Reservation> {
        let room = Arc::clone(&self.inner.room);
        Arc::new(room.reserve(&self.inner.recent).await)
    }

    pub(super) async fn reserve_aside(&self) -> Arc<Reservation> {
        let room = Arc::clone(&self.inner.room);
        Arc::new(room.reserve_aside(&self.inner.recent).await)
    }

    pub(super) fn can_subscribe(&self) -> bool {
        self.inner.link.can_subscribe()
    }

    pub(super) async fn subscribe_heads(&self) -> Result<HeadSubscription, NodeError> {
        let after = self.inner.config.request_timeout;
        match tokio::time::timeout(after, self.inner.link.subscribe_heads()).await {
            Ok(result) => result,
            Err(_) => Err(NodeError::Timeout {
                method: "eth_subscribe",
                after,
            }),
        }
    }
}

/// The bytes of an answer that was not read on for want of room, where any answer may have `bytes_max`.
const fn without_room(error: &NodeError, bytes_max: usize) -> Option<usize> {
    match error {
        NodeError::ResponseTooLarge {
            bytes,
            bytes_max: bound,
            ..
        } if *bound < bytes_max => Some(*bytes),
        _ => None,
    }
}
