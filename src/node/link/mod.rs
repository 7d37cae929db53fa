//! The connection to a node: the one place that names the alloy client and reqwest.
//!
//! It asks one question and gives the raw text of the result, or a named error. It repeats nothing that was
//! answered, and takes no answer that is longer than the question allows.

mod http;
mod ipc;
mod socket;

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

    /// Asks once; the node's error is an error of ours by name.
    pub(super) async fn request(&self, question: Question<'_>) -> Result<Box<RawValue>, NodeError> {
        match self.pass_on(question).await? {
            Passed::Result(text) => Ok(text),
            Passed::Error { code, message, .. } => Err(NodeError::of_rpc(question.method, code, &message)),
        }
    }

    /// Asks once and keeps the node's error object as it is.
    pub(super) async fn pass_on(&self, question: Question<'_>) -> Result<Passed, NodeError> {
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
