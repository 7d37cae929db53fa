//! Requests and subscriptions over a connection that stays: WebSocket or IPC.
//!
//! alloy's client makes a lost connection anew at once and sends again what was in flight, for as long as the
//! node closes it at each request: more than a thousand times in a second. So its own making anew is refused
//! here. A connection that was lost is made anew by the next request, and after a wait that grows where the
//! last one ended without having said anything.

use super::ipc::Ipc;
use super::life::Life;
use super::secret::Secret;
use super::ws::Ws;
use super::{Endpoint, NodeConfig, Passed, Question, ResultText, chain};
use crate::clock;
use crate::node::error::{NodeError, head};
use crate::node::stats::NodeStats;
use alloy_provider::transport::{RpcError, TransportError, TransportErrorKind, TransportResult};
use alloy_pubsub::{ConnectionHandle, PubSubConnect};
use alloy_rpc_client::{ClientBuilder, RpcClient};
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Heads that may wait for a slow reader of a subscription; more are skipped.
const SUBSCRIPTION_BUFFER: usize = 64;

/// A node behind a WebSocket or a Unix socket.
pub(in crate::node) struct Socket {
    config: NodeConfig,
    endpoint: Endpoint,
    /// What no text may show of where it leads.
    secret: Secret,
    state: Mutex<State>,
    connecting: tokio::sync::Mutex<()>,
    stats: Arc<NodeStats>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Connections made.
    made: u64,
    /// Of those, how many were lost.
    lost: u64,
    /// Connections in a row that could not be made, or ended without having said anything.
    failures: u32,
    /// Why the last of those came to nothing, where that is known.
    why: Option<String>,
    /// Before this no other is made.
    not_before: Option<Instant>,
}

/// Why a connection came to nothing, where nobody says.
const UNTOLD: &str = "the connection ended without an answer";

impl State {
    fn why(&self) -> &str {
        self.why.as_deref().unwrap_or(UNTOLD)
    }
}

/// One connection; what is said over it is counted.
#[derive(Clone)]
struct Connection {
    client: RpcClient,
    number: u64,
    heard: Arc<AtomicU64>,
    life: Arc<Life>,
}

impl Connection {
    fn heard(&self) -> u64 {
        self.heard.load(Ordering::Relaxed)
    }
}

/// A running subscription to new heads.
pub(in crate::node) struct HeadSubscription {
    inner: tokio::sync::broadcast::Receiver<Box<RawValue>>,
    heard: Arc<AtomicU64>,
}

impl HeadSubscription {
    /// The JSON of the next header; `None` when the subscription has ended.
    pub(in crate::node) async fn next(&mut self) -> Option<Box<RawValue>> {
        loop {
            match self.inner.recv().await {
                Ok(header) => {
                    self.heard.fetch_add(1, Ordering::Relaxed);
                    return Some(header);
                }
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// A way to connect that is gone once.
struct Once<T>(T);

impl<T: PubSubConnect> PubSubConnect for Once<T> {
    fn is_local(&self) -> bool {
        self.0.is_local()
    }

    async fn connect(&self) -> TransportResult<ConnectionHandle> {
        self.0.connect().await
    }

    async fn try_reconnect(&self) -> TransportResult<ConnectionHandle> {
        Err(TransportErrorKind::non_retryable_str("lost"))
    }
}

/// A connection being made; one that is given up counts as one that failed.
struct Attempt<'a>(Option<&'a Socket>);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(socket) = self.0 {
            socket.failed(&mut socket.state());
        }
    }
}

impl Socket {
    /// What no text may show.
    pub(super) const fn secret(&self) -> &Secret {
        &self.secret
    }

    pub(super) async fn connect(
        config: &NodeConfig,
        endpoint: Endpoint,
        stats: Arc<NodeStats>,
    ) -> Result<Self, NodeError> {
        let socket = Self {
            secret: Secret::of(match &endpoint {
                Endpoint::Http(url) | Endpoint::Ws(url) => url,
                Endpoint::Ipc(_) => "",
            }),
            config: config.clone(),
            endpoint,
            state: Mutex::default(),
            connecting: tokio::sync::Mutex::new(()),
            stats,
        };
        let after = config.request_timeout;
        match tokio::time::timeout(after, socket.connection("connect")).await {
            Ok(made) => made.map(|_| socket),
            Err(_) => Err(NodeError::Timeout {
                method: "connect",
                after,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks once, in no more than the question's time. A connection that says nothing for so long is given up:
    /// one whose node broke off in the middle of an answer never finds the beginning of the next. Behind an answer that is
    /// still coming others wait, as long as that one may take.
    pub(super) async fn ask(&self, question: Question<'_>) -> Result<Passed<ResultText>, NodeError> {
        let mut over = None;
        let asked = tokio::time::timeout(question.after, self.exchange(question, &mut over)).await;
        asked.unwrap_or_else(|_| {
            if let Some((connection, taken)) = over
                && connection.life.taken() == taken
                && !connection
                    .life
                    .is_receiving(question.after, self.config.request_timeout)
            {
                self.lose(&connection);
            }
            Err(NodeError::Timeout {
                method: question.method,
                after: question.after,
            })
        })
    }

    async fn exchange(
        &self,
        question: Question<'_>,
        over: &mut Option<(Connection, u64)>,
    ) -> Result<Passed<ResultText>, NodeError> {
        let method = question.method;
        let mut is_first = true;
        loop {
            let connection = self.connection(method).await?;
            *over = Some((connection.clone(), connection.life.taken()));
            let answer: Result<Box<RawValue>, _> = connection
                .client
                .request(method, question.params.to_owned())
                .await;
            let passed = match answer {
                Ok(text) => Passed::Result(ResultText::from(text)),
                Err(RpcError::ErrorResp(payload)) => Passed::Error {
                    code: payload.code,
                    message: self.secret.hide(&payload.message),
                    data: payload.data.map(|data| self.secret.hide_in(data)),
                },
                // One that was answered before may have been lost long ago, which nobody noticed until now.
                Err(error) if is_gone(&error) && self.lose(&connection) && is_first => {
                    is_first = false;
                    continue;
                }
                Err(error) => {
                    return Err(match connection.life.end() {
                        Some(why) if is_gone(&error) => NodeError::Transport {
                            method,
                            reason: self.secret.hide(&why),
                        },
                        _ => self.named(method, error),
                    });
                }
            };
            self.hear(&connection);
            return Ok(passed);
        }
    }

    /// The connection, made anew where it was lost and the time has come.
    async fn connection(&self, method: &'static str) -> Result<Connection, NodeError> {
        let present = || self.state().connection.clone();
        if let Some(connection) = present() {
            return Ok(connection);
        }
        let _turn = self.connecting.lock().await;
        if let Some(connection) = present() {
            return Ok(connection);
        }
        self.may_connect(method)?;
        let mut attempt = Attempt(Some(self));
        let life = Arc::new(Life::new());
        self.state().why = None;
        let client = self.open(&life).await.inspect_err(|error| {
            self.state().why = Some(match error {
                NodeError::Transport { reason, .. } => reason.clone(),
                other => other.to_string(),
            });
        })?;
        attempt.0 = None;
        let mut state = self.state();
        state.made += 1;
        if 1 < state.made {
            self.stats.reconnects.fetch_add(1, Ordering::Relaxed);
        }
        let connection = Connection {
            client,
            number: state.made,
            heard: Arc::default(),
            life,
        };
        state.connection = Some(connection.clone());
        Ok(connection)
    }

    /// Whether another connection may be made yet.
    fn may_connect(&self, method: &'static str) -> Result<(), NodeError> {
        let state = self.state();
        let left = state
            .not_before
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(clock::now()));
        if left.is_zero() {
            return Ok(());
        }
        Err(NodeError::Transport {
            method,
            reason: format!(
                "no connection: {} in a row came to nothing, and the next is made after a wait; {}",
                state.failures,
                state.why()
            ),
        })
    }

    /// Notes that something came over `connection`.
    fn hear(&self, connection: &Connection) {
        if connection.heard.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut state = self.state();
            if 1 < state.failures {
                tracing::info!(node = self.config.shown_url(), "the node answers again");
            }
            (state.failures, state.not_before) = (0, None);
        }
    }

    /// Gives `connection` up; whether another one may be made at once.
    fn lose(&self, connection: &Connection) -> bool {
        let mut state = self.state();
        if state
            .connection
            .take_if(|present| present.number == connection.number)
            .is_some()
        {
            state.lost += 1;
            if connection.heard() == 0 {
                state.why = connection.life.end().map(|why| self.secret.hide(&why));
                self.failed(&mut state);
            } else if state.lost.is_power_of_two() {
                let node = self.config.shown_url();
                tracing::info!(
                    node,
                    lost = state.lost,
                    "the connection to the node was lost; it is made anew"
                );
            }
        }
        state.failures == 0
    }

    /// Counts a connection that came to nothing. Each second one as many as before is worth a line.
    fn failed(&self, state: &mut State) {
        state.failures = state.failures.saturating_add(1);
        let wait = self.config.backoff(state.failures);
        state.not_before = Some(clock::now() + wait);
        if 1 < state.failures && state.failures.is_power_of_two() {
            tracing::warn!(
                node = self.config.shown_url(),
                in_a_row = state.failures,
                wait_ms = wait.as_millis(),
                why = state.why(),
                "connections to the node end without an answer; the next is made after a wait"
            );
        }
    }

    async fn open(&self, life: &Arc<Life>) -> Result<RpcClient, NodeError> {
        let bytes_max = self.config.response_bytes_max;
        let life = Arc::clone(life);
        let opened = match &self.endpoint {
            Endpoint::Http(url) | Endpoint::Ws(url) => {
                let connect = Once(Ws {
                    url: url.clone(),
                    bytes_max,
                    silence_max: self.config.request_timeout,
                    life,
                });
                ClientBuilder::default().pubsub(connect).await
            }
            Endpoint::Ipc(path) => {
                let connect = Once(Ipc {
                    path: path.clone(),
                    bytes_max,
                    life,
                });
                ClientBuilder::default().pubsub(connect).await
            }
        };
        opened.map_err(|error| self.named("connect", error))
    }

    /// Subscribes to new heads; the subscription ends with the connection.
    pub(super) async fn subscribe_heads(&self) -> Result<HeadSubscription, NodeError> {
        const METHOD: &str = "eth_subscribe";
        let connection = self.connection(METHOD).await?;
        let client = &connection.client;
        let failed = |error| {
            if is_gone(&error) {
                self.lose(&connection);
            }
            self.named(METHOD, error)
        };
        let frontend = client
            .pubsub_frontend()
            .ok_or_else(|| NodeError::MethodNotFound {
                method: METHOD,
                message: "the connection carries no subscriptions".to_owned(),
            })?;
        frontend.set_channel_size(SUBSCRIPTION_BUFFER);
        let mut call = client.request::<_, crate::model::B256>(METHOD, ["newHeads"]);
        call.set_is_subscription();
        let id = call.await.map_err(failed)?;
        self.hear(&connection);
        let subscription = frontend.get_subscription(id).await.map_err(failed)?;
        Ok(HeadSubscription {
            inner: subscription.rx,
            heard: Arc::clone(&connection.heard),
        })
    }

    /// Gives an error of alloy its name here.
    fn named(&self, method: &'static str, error: TransportError) -> NodeError {
        match error {
            RpcError::ErrorResp(payload) => {
                NodeError::of_rpc(method, payload.code, &self.secret.hide(&payload.message))
            }
            RpcError::NullResp => NodeError::NullResult {
                method,
                what: "the request".to_owned(),
            },
            RpcError::DeserError { err, text } => NodeError::Malformed {
                method,
                reason: format!(
                    "{err} in {} bytes: {}",
                    text.len(),
                    head(&self.secret.hide(&text))
                ),
            },
            error if is_gone(&error) => NodeError::Transport {
                method,
                reason: UNTOLD.to_owned(),
            },
            other => NodeError::Transport {
                method,
                reason: self.secret.hide(&chain(&other)),
            },
        }
    }
}

/// Whether the connection ended before there was an answer.
fn is_gone(error: &TransportError) -> bool {
    matches!(error, RpcError::Transport(TransportErrorKind::BackendGone))
}
