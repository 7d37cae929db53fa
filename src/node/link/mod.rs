//! The connection to a node: the one place that names the alloy client, reqwest and tungstenite.
//!
//! It asks one question and gives the raw text of the result, or a named error. It repeats nothing that was
//! answered, and takes no answer that is longer than the question allows.

mod front;
mod http;
mod ipc;
mod life;
mod refusal;
mod reply;
mod result;
mod secret;
mod socket;
mod ws;

pub use result::ResultText;
pub(super) use socket::HeadSubscription;

use super::config::{Endpoint, NodeConfig};
use super::error::NodeError;
use super::passing::Passed;
use super::stats::NodeStats;
use http::Http;
use serde_json::value::RawValue;
use socket::Socket;
use std::sync::Arc;
use std::time::Duration;

/// One request.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) method: &'static str,
    /// A JSON array.
    pub(super) params: &'a RawValue,
    /// Longest answer taken.
    pub(super) bytes_max: usize,
    /// How long it may take.
    pub(super) after: Duration,
}

/// The way to a node.
pub(super) enum Link {
    Http(Http),
    Socket(Box<Socket>),
}

impl Link {
    pub(super) async fn connect(config: &NodeConfig, stats: Arc<NodeStats>) -> Result<Self, NodeError> {
        match config.endpoint()? {
            Endpoint::Http(url) => Http::new(&url).map(Self::Http),
            endpoint => Socket::connect(config, endpoint, stats)
                .await
                .map(|socket| Self::Socket(Box::new(socket))),
        }
    }

    /// Whether the node can announce new heads over this connection.
    pub(super) const fn can_subscribe(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// A text without what is secret of the way to the node.
    pub(super) fn hide(&self, text: &str) -> String {
        match self {
            Self::Http(http) => http.secret().hide(text),
            Self::Socket(socket) => socket.secret().hide(text),
        }
    }

    /// Asks once; the node's error is an error of ours by name.
    pub(super) async fn request(&self, question: Question<'_>) -> Result<ResultText, NodeError> {
        match self.pass_on(question).await? {
            Passed::Result(text) => Ok(text),
            Passed::Error { code, message, .. } => Err(NodeError::of_rpc(question.method, code, &message)),
        }
    }

    /// Asks once and keeps the node's error object as it is.
    pub(super) async fn pass_on(&self, question: Question<'_>) -> Result<Passed<ResultText>, NodeError> {
        let Question {
            method,
            after,
            bytes_max,
            ..
        } = question;
        let passed = match self {
            Self::Http(http) => tokio::time::timeout(after, http.ask(question))
                .await
                .unwrap_or(Err(NodeError::Timeout { method, after }))?,
            Self::Socket(socket) => socket.ask(question).await?,
        };
        match &passed {
            Passed::Result(text) if bytes_max < text.get().len() => Err(NodeError::ResponseTooLarge {
                method,
                bytes: text.get().len(),
                bytes_max,
            }),
            _ => Ok(passed),
        }
    }

    /// Subscribes to new heads.
    pub(super) async fn subscribe_heads(&self) -> Result<HeadSubscription, NodeError> {
        match self {
            Self::Http(_) => Err(NodeError::MethodNotFound {
                method: "eth_subscribe",
                message: "the connection carries no subscriptions".to_owned(),
            }),
            Self::Socket(socket) => socket.subscribe_heads().await,
        }
    }
}

/// Whether an endpoint's URL can lead anywhere from this system; nothing is sent.
pub(super) fn check(endpoint: &Endpoint) -> Result<(), NodeError> {
    match endpoint {
        Endpoint::Http(url) => http::client(&parsed(url)?).map(drop),
        Endpoint::Ws(url) => parsed(url).map(drop),
        Endpoint::Ipc(_) => Ok(()),
    }
}

fn parsed(url: &str) -> Result<reqwest::Url, NodeError> {
    url.parse().map_err(|error| NodeError::Url(format!("{error}")))
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
