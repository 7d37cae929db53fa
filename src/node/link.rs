//! The connection to a node: the one file that names the alloy client.
//!
//! It sends one request and gives the raw text of the result, or a named error. It repeats nothing:
//! alloy's own retry layer, which resends with a fixed wait, is not used. A WebSocket or IPC connection
//! that is lost for good is made anew by the next request.

use super::config::{Endpoint, NodeConfig};
use super::error::{NodeError, head};
use super::passing::Passed;
use super::stats::NodeStats;
use alloy_provider::transport::{HttpError, RpcError, TransportError, TransportErrorKind};
use alloy_provider::{IpcConnect, WebSocketConfig, WsConnect};
use alloy_rpc_client::{ClientBuilder, RpcClient};
use serde_json::value::RawValue;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Heads that may wait for a slow reader of a subscription; more are skipped.
const SUBSCRIPTION_BUFFER: usize = 64;

pub(super) struct Link {
    endpoint: Endpoint,
    response_bytes_max: usize,
    client: RwLock<RpcClient>,
    /// Raised by each new connection, so that one loss is answered by one connection.
    generation: AtomicU64,
    connecting: tokio::sync::Mutex<()>,
    stats: Arc<NodeStats>,
}

/// A running subscription to new heads.
pub(super) struct HeadSubscription {
    inner: tokio::sync::broadcast::Receiver<Box<RawValue>>,
}

impl HeadSubscription {
    /// The JSON of the next header; `None` when the subscription has ended.
    pub(super) async fn next(&mut self) -> Option<Box<RawValue>> {
        loop {
            match self.inner.recv().await {
                Ok(header) => return Some(header),
                Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {}
                Err(tokio::sync::broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl Link {
    pub(super) async fn connect(config: &NodeConfig, stats: Arc<NodeStats>) -> Result<Self, NodeError> {
        let endpoint = config.endpoint()?;
        let client = tokio::time::timeout(config.request_timeout, open(&endpoint, config.response_bytes_max))
            .await
            .map_err(|_| NodeError::Timeout {
                method: "connect",
                after: config.request_timeout,
            })??;
        Ok(Self {
            endpoint,
            response_bytes_max: config.response_bytes_max,
            client: RwLock::new(client),
            generation: AtomicU64::new(0),
            connecting: tokio::sync::Mutex::new(()),
            stats,
        })
    }

    fn client(&self) -> RpcClient {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the node can announce new heads over this connection.
    pub(super) fn can_subscribe(&self) -> bool {
        !matches!(self.endpoint, Endpoint::Http(_))
    }

    /// Sends one request.
    pub(super) async fn request(
        &self,
        method: &'static str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, NodeError> {
        let text = match self.send(method, params).await? {
            Ok(text) => text,
            Err(error) => return Err(self.named(method, error)),
        };
        let bytes = text.get().len();
        if self.response_bytes_max < bytes {
            return Err(NodeError::ResponseTooLarge {
                method,
                bytes,
                bytes_max: self.response_bytes_max,
            });
        }
        Ok(text)
    }

    /// Sends one request and keeps the node's error object as it is.
    pub(super) async fn pass_on(&self, method: &'static str, params: &RawValue) -> Result<Passed, NodeError> {
        match self.send(method, params).await? {
            Ok(text) => Ok(Passed::Result(text)),
            Err(RpcError::ErrorResp(payload)) => Ok(Passed::Error {
                code: payload.code,
                message: payload.message.into_owned(),
                data: payload.data,
            }),
            Err(error) => Err(self.named(method, error)),
        }
    }

    /// Sends one request; a connection that was lost is made anew for the next one.
    async fn send(
        &self,
        method: &'static str,
        params: &RawValue,
    ) -> Result<Result<Box<RawValue>, TransportError>, NodeError> {
        let generation = self.generation.load(Ordering::Acquire);
        let result = self.client().request(method, params.to_owned()).await;
        if let Err(RpcError::Transport(TransportErrorKind::BackendGone)) = result {
            self.reconnect(generation).await?;
        }
        Ok(result)
    }

    /// Makes a new connection unless another request has done so since `generation`.
    async fn reconnect(&self, generation: u64) -> Result<(), NodeError> {
        let _turn = self.connecting.lock().await;
        if self.generation.load(Ordering::Acquire) != generation {
            return Ok(());
        }
        let client = open(&self.endpoint, self.response_bytes_max).await?;
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = client;
        self.generation.fetch_add(1, Ordering::Release);
        self.stats.reconnects.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Subscribes to new heads; alloy renews the subscription when it reconnects.
    pub(super) async fn subscribe_heads(&self) -> Result<HeadSubscription, NodeError> {
        const METHOD: &str = "eth_subscribe";
        let generation = self.generation.load(Ordering::Acquire);
        let client = self.client();
        let unavailable = || NodeError::MethodNotFound {
            method: METHOD,
            message: "the connection carries no subscriptions".to_owned(),
        };
        client
            .pubsub_frontend()
            .ok_or_else(unavailable)?
            .set_channel_size(SUBSCRIPTION_BUFFER);
        let mut call = client.request::<_, crate::model::B256>(METHOD, ["newHeads"]);
        call.set_is_subscription();
        let id = match call.await {
            Ok(id) => id,
            Err(error) => {
                if matches!(error, RpcError::Transport(TransportErrorKind::BackendGone)) {
                    self.reconnect(generation).await?;
                }
                return Err(self.named(METHOD, error));
            }
        };
        let frontend = client.pubsub_frontend().ok_or_else(unavailable)?;
        let subscription = frontend
            .get_subscription(id)
            .await
            .map_err(|error| self.named(METHOD, error))?;
        Ok(HeadSubscription {
            inner: subscription.rx,
        })
    }

    fn named(&self, method: &'static str, error: TransportError) -> NodeError {
        let secret = match &self.endpoint {
            Endpoint::Http(url) | Endpoint::Ws(url) => url.as_str(),
            Endpoint::Ipc(_) => "",
        };
        named(method, error, secret)
    }
}

async fn open(endpoint: &Endpoint, response_bytes_max: usize) -> Result<RpcClient, NodeError> {
    match endpoint {
        Endpoint::Http(url) => {
            let url = url.parse().map_err(|error| NodeError::Url(format!("{error}")))?;
            Ok(ClientBuilder::default().http(url))
        }
        Endpoint::Ws(url) => {
            let limits = WebSocketConfig::default()
                .max_message_size(Some(response_bytes_max))
                .max_frame_size(Some(response_bytes_max));
            let connect = WsConnect::new(url)
                .with_config(limits)
                .with_max_retries(5)
                .with_retry_interval(Duration::from_secs(1));
            let opened = ClientBuilder::default().ws(connect).await;
            opened.map_err(|error| named("connect", error, url))
        }
        Endpoint::Ipc(path) => {
            let opened = ClientBuilder::default().ipc(IpcConnect::new(path.clone())).await;
            opened.map_err(|error| named("connect", error, ""))
        }
    }
}

/// Gives an error of alloy its name here; `secret` is a text that must not be shown.
fn named(method: &'static str, error: TransportError, secret: &str) -> NodeError {
    match error {
        RpcError::ErrorResp(payload) => NodeError::of_rpc(method, payload.code, &payload.message),
        RpcError::NullResp => NodeError::NullResult {
            method,
            what: "the request".to_owned(),
        },
        RpcError::DeserError { err, text } => NodeError::Malformed {
            method,
            reason: format!("{err} in {} bytes: {}", text.len(), head(&text)),
        },
        RpcError::Transport(TransportErrorKind::HttpError(HttpError { status, body })) => {
            NodeError::of_status(method, status, &body, None)
        }
        RpcError::Transport(TransportErrorKind::HttpErrorWithRetryAfter { error, retry_after }) => {
            NodeError::of_status(method, error.status, &error.body, Some(retry_after))
        }
        other => NodeError::Transport {
            method,
            reason: without(&chain(&other), secret),
        },
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

/// `text` without the URL `secret`, however the client printed it: whole, without its last slash, or
/// without the user in it; its path and query, where keys are, in no case.
fn without(text: &str, secret: &str) -> String {
    if secret.is_empty() {
        return text.to_owned();
    }
    let mut text = text
        .replace(secret, "the node")
        .replace(secret.trim_end_matches('/'), "the node");
    let rest = secret.split_once("://").map_or(secret, |(_, rest)| rest);
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if let Some((user, _)) = authority.rsplit_once('@') {
        text = text.replace(user, "...");
    }
    if 1 < path.len() {
        text = text.replace(path, "/...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn no_part_of_a_url_that_may_be_a_key_is_shown() {
        let url = "https://me:pass@node.example/v3/key?token=t";
        for printed in [
            url,
            "https://node.example/v3/key?token=t",
            "me:pass",
            "/v3/key?token=t",
        ] {
            let shown = without(
                &format!("error sending request for url ({printed}): refused"),
                url,
            );
            assert!(
                !shown.contains("key") && !shown.contains("pass") && !shown.contains("=t"),
                "{shown}"
            );
            assert!(shown.contains("refused"), "{shown}");
        }
        assert_eq!(
            without("http://127.0.0.1:1/ x", "http://127.0.0.1:1"),
            "the node/ x"
        );
    }
}
