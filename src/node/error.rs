//! Every way in which asking a node fails, by name.

use super::wire::WireError;
use super::words::{failed_execution, says_missing};
use crate::model::{B256, U256, shown_text};
use std::time::Duration;

/// A node is left alone for no longer than this, whatever it asks for.
const REST_MAX: Duration = Duration::from_secs(300);

/// The classes of [`NodeError`], for statistics; the position is the index in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// [`NodeError::Url`].
    Url,
    /// [`NodeError::Transport`].
    Transport,
    /// [`NodeError::Timeout`].
    Timeout,
    /// [`NodeError::RateLimited`].
    RateLimited,
    /// [`NodeError::HttpStatus`].
    HttpStatus,
    /// [`NodeError::Rpc`].
    Rpc,
    /// [`NodeError::MethodNotFound`].
    MethodNotFound,
    /// [`NodeError::NullResult`].
    NullResult,
    /// [`NodeError::Malformed`].
    Malformed,
    /// [`NodeError::ResponseTooLarge`].
    ResponseTooLarge,
    /// [`NodeError::Reorged`].
    Reorged,
    /// [`NodeError::Incomplete`].
    Incomplete,
    /// [`NodeError::Execution`].
    Execution,
}

impl ErrorClass {
    /// All classes.
    pub const ALL: [Self; 13] = [
        Self::Url,
        Self::Transport,
        Self::Timeout,
        Self::RateLimited,
        Self::HttpStatus,
        Self::Rpc,
        Self::MethodNotFound,
        Self::NullResult,
        Self::Malformed,
        Self::ResponseTooLarge,
        Self::Reorged,
        Self::Incomplete,
        Self::Execution,
    ];

    /// The name in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Transport => "transport",
            Self::Timeout => "timeout",
            Self::RateLimited => "rate_limited",
            Self::HttpStatus => "http_status",
            Self::Rpc => "rpc",
            Self::MethodNotFound => "method_not_found",
            Self::NullResult => "null_result",
            Self::Malformed => "malformed",
            Self::ResponseTooLarge => "response_too_large",
            Self::Reorged => "reorged",
            Self::Incomplete => "incomplete",
            Self::Execution => "execution",
        }
    }
}

/// Why a node gave no usable answer. No text of it holds the node's URL, which may hold a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeError {
    /// The URL is not one of http(s), ws(s) or the path of an IPC socket, or leads nowhere from this system.
    #[error("node url: {0}")]
    Url(String),
    /// The connection failed.
    #[error("{method}: transport: {reason}")]
    Transport {
        /// Method asked.
        method: &'static str,
        /// What the transport said.
        reason: String,
    },
    /// No answer in time.
    #[error("{method}: no answer within {} ms", .after.as_millis())]
    Timeout {
        /// Method asked.
        method: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The node asks for fewer requests: HTTP 429, 503 that says for how long, or their JSON-RPC kin.
    #[error("{method}: rate limited: {message}")]
    RateLimited {
        /// Method asked.
        method: &'static str,
        /// What the node said.
        message: String,
        /// How long the node asks to wait.
        retry_after: Option<Duration>,
    },
    /// An HTTP status that is neither success nor 429.
    #[error("{method}: http status {status}: {body}")]
    HttpStatus {
        /// Method asked.
        method: &'static str,
        /// HTTP status.
        status: u16,
        /// Head of the body.
        body: String,
    },
    /// A JSON-RPC error.
    #[error("{method}: rpc error {code}: {message}")]
    Rpc {
        /// Method asked.
        method: &'static str,
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The node does not offer the method.
    #[error("{method}: not offered by the node: {message}")]
    MethodNotFound {
        /// Method asked.
        method: &'static str,
        /// What the node said.
        message: String,
    },
    /// `null` where a value was expected: the node does not know the block (yet, or any more).
    #[error("{method}: null result for {what}")]
    NullResult {
        /// Method asked.
        method: &'static str,
        /// What was asked for.
        what: String,
    },
    /// Not JSON, or not of the right shape.
    #[error("{method}: malformed response: {reason}")]
    Malformed {
        /// Method asked.
        method: &'static str,
        /// What is wrong and where.
        reason: String,
    },
    /// The answer is longer than allowed.
    #[error("{method}: response of {bytes} bytes or more exceeds {bytes_max}")]
    ResponseTooLarge {
        /// Method asked.
        method: &'static str,
        /// Its length, or as much of it as was read.
        bytes: usize,
        /// Longest answer allowed.
        bytes_max: usize,
    },
    /// The chain moved between the requests of one bundle: its parts are of two blocks.
    #[error("{method}: block {number} changed between requests: expected {expected}, found {found}")]
    Reorged {
        /// Method whose answer does not fit.
        method: &'static str,
        /// Block number.
        number: u64,
        /// Block or transaction hash that the block states.
        expected: B256,
        /// What the other answer states.
        found: B256,
    },
    /// A receipt or a trace is missing or surplus.
    #[error("{method}: block {number}: {reason}")]
    Incomplete {
        /// Method whose answer lacks something.
        method: &'static str,
        /// Block number.
        number: u64,
        /// What is missing.
        reason: WireError,
    },
    /// The chain id has more than 64 bits, which no block and no transaction of a chain that is kept here can state.
    #[error(
        "eth_chainId: the chain id {told} has more than 64 bits: chains with such an id are not supported"
    )]
    ChainId {
        /// What the node said.
        told: U256,
    },
    /// A contract that was called failed: it reverted, ran out of gas, or its code is none.
    #[error("{method}: execution failed: {message}")]
    Execution {
        /// Method asked.
        method: &'static str,
        /// What the node said.
        message: String,
    },
}

impl NodeError {
    /// The class of the error.
    #[must_use]
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Url(_) => ErrorClass::Url,
            Self::Transport { .. } => ErrorClass::Transport,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::RateLimited { .. } => ErrorClass::RateLimited,
            Self::HttpStatus { .. } => ErrorClass::HttpStatus,
            Self::Rpc { .. } => ErrorClass::Rpc,
            Self::MethodNotFound { .. } => ErrorClass::MethodNotFound,
            Self::NullResult { .. } => ErrorClass::NullResult,
            Self::Malformed { .. } | Self::ChainId { .. } => ErrorClass::Malformed,
            Self::ResponseTooLarge { .. } => ErrorClass::ResponseTooLarge,
            Self::Reorged { .. } => ErrorClass::Reorged,
            Self::Incomplete { .. } => ErrorClass::Incomplete,
            Self::Execution { .. } => ErrorClass::Execution,
        }
    }

    /// Whether asking again can help.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Url(_)
            | Self::ChainId { .. }
            | Self::MethodNotFound { .. }
            | Self::ResponseTooLarge { .. }
            | Self::Execution { .. } => false,
            Self::HttpStatus { status, .. } => matches!(status, 408 | 425 | 500..=599),
            // Server errors and "resource unavailable" pass; wrong requests and parameters stay wrong.
            Self::Rpc { code, .. } => matches!(code, -32603 | -32099..=-32000),
            Self::Transport { .. }
            | Self::Timeout { .. }
            | Self::RateLimited { .. }
            | Self::NullResult { .. }
            | Self::Malformed { .. }
            | Self::Reorged { .. }
            | Self::Incomplete { .. } => true,
        }
    }

    /// Whether the node says by it that it is too busy.
    pub(super) const fn is_push_back(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. }
                | Self::Timeout { .. }
                | Self::HttpStatus {
                    status: 502..=504,
                    ..
                }
        )
    }

    /// `method` answered `null` about block `number`.
    pub(crate) fn null_block(method: &'static str, number: u64) -> Self {
        Self::NullResult {
            method,
            what: format!("block {number}"),
        }
    }

    /// `method` answered another block than the one that was asked for. Some chains begin with block 1, and their nodes answer it, or the
    /// newest, where block 0 is asked for.
    pub(crate) fn other_block(method: &'static str, asked: u64, told: u64) -> Self {
        let why = match asked {
            0 => "; a chain without a block 0 cannot be indexed",
            _ => "",
        };
        let reason = format!("asked for block {asked}, got block {told}{why}");
        Self::Malformed { method, reason }
    }

    /// Fails unless the node's block `number`, which `method` was asked about, is the one that was `expected`.
    pub(crate) fn unless_same_block(
        method: &'static str,
        number: u64,
        expected: B256,
        found: B256,
    ) -> Result<(), Self> {
        if found == expected {
            return Ok(());
        }
        Err(Self::Reorged {
            method,
            number,
            expected,
            found,
        })
    }

    /// Whether the node says by it, in JSON-RPC or in the body of an HTTP error, that it does not offer the method.
    /// No other failure shows that: a node may lag, be busy or have forgotten a state.
    pub(super) fn is_missing_method(&self) -> bool {
        match self {
            Self::MethodNotFound { .. } => true,
            Self::HttpStatus {
                method,
                status: 400..=499,
                body,
            } => {
                let lower = body.to_lowercase();
                // The body is a JSON-RPC answer, as a rule.
                let coded = lower.replace(' ', "").contains("\"code\":-32601");
                coded || says_missing(method, &lower)
            }
            _ => false,
        }
    }

    /// Whether the method is refused by it: in words, or by the status of a gateway alone. Where other methods were answered,
    /// it is this one that may not be asked.
    pub(super) fn is_refusal(&self) -> bool {
        let by_status = matches!(
            self,
            Self::HttpStatus {
                status: 400..=407,
                ..
            }
        );
        by_status || self.is_missing_method()
    }

    /// The method that was asked; `None` where none was.
    #[must_use]
    pub const fn method(&self) -> Option<&'static str> {
        match self {
            Self::Url(_) => None,
            Self::ChainId { .. } => Some("eth_chainId"),
            Self::Transport { method, .. }
            | Self::Timeout { method, .. }
            | Self::RateLimited { method, .. }
            | Self::HttpStatus { method, .. }
            | Self::Rpc { method, .. }
            | Self::MethodNotFound { method, .. }
            | Self::NullResult { method, .. }
            | Self::Malformed { method, .. }
            | Self::ResponseTooLarge { method, .. }
            | Self::Reorged { method, .. }
            | Self::Incomplete { method, .. }
            | Self::Execution { method, .. } => Some(method),
        }
    }

    /// The method that the node, or a gateway before it, refuses by this to answer at all.
    #[must_use]
    pub fn refused(&self) -> Option<&'static str> {
        if self.is_refusal() { self.method() } else { None }
    }

    /// Whether the node answered in its own words, so that the request, not the way to the node, failed.
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(
            self,
            Self::Rpc { .. } | Self::MethodNotFound { .. } | Self::NullResult { .. } | Self::Execution { .. }
        )
    }

    /// For how long the node asks to be left alone, within reason: a mistyped header must not end a sync.
    #[must_use]
    pub fn rest_asked(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } => retry_after.map(|asked| asked.min(REST_MAX)),
            _ => None,
        }
    }

    /// Whether it was the node that spoke, whatever it said: the way to it is open.
    #[must_use]
    pub const fn is_said(&self) -> bool {
        !matches!(
            self,
            Self::Url(_)
                | Self::Transport { .. }
                | Self::Timeout { .. }
                | Self::RateLimited { .. }
                | Self::HttpStatus { .. }
        )
    }

    /// Names what is wrong with the answer of `method` about block `number`.
    pub(super) fn of_wire(method: &'static str, number: u64, error: WireError) -> Self {
        match error {
            WireError::OtherBlock { expected, found, .. }
            | WireError::OtherTransaction { expected, found, .. } => Self::Reorged {
                method,
                number,
                expected,
                found,
            },
            reason @ (WireError::MissingItem { .. } | WireError::SurplusItem { .. }) => Self::Incomplete {
                method,
                number,
                reason,
            },
            error @ (WireError::Malformed { .. } | WireError::MissingField { .. }) => Self::Malformed {
                method,
                reason: format!("block {number}: {error}"),
            },
        }
    }

    /// Names a JSON-RPC error.
    pub(super) fn of_rpc(method: &'static str, code: i64, message: &str) -> Self {
        let message = head(message);
        let lower = message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let is_held_back = code == 429 || (code == -32005 && !says(&["more than", "query returned"]));
        // Before other words: a contract chooses those of its revert.
        if !is_held_back && method == "eth_call" && failed_execution(code, &lower) {
            return Self::Execution { method, message };
        }
        if is_held_back
            || says(&[
                "rate limit",
                "too many requests",
                "compute units per second",
                "request limit",
            ])
        {
            return Self::RateLimited {
                method,
                message,
                retry_after: None,
            };
        }
        // The second is Besu's, for methods that exist and are not enabled.
        if matches!(code, -32601 | -32604) || says_missing(method, &lower) {
            return Self::MethodNotFound { method, message };
        }
        Self::Rpc {
            method,
            code,
            message,
        }
    }
}

/// The first 200 characters, on one line.
pub(super) fn head(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    // What is left of it may still clear a terminal, or turn its text round.
    let line = shown_text(line.as_bytes(), usize::MAX);
    match line.char_indices().nth(200) {
        None => line,
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_node_says_does_not_steer_a_terminal() {
        let said = "one\r\n\x1b[31mtwo\x1b]0;title\x07 \u{9b}2J\u{202e}three\x08";
        assert_eq!(head(said), "one [31mtwo]0;title 2Jthree");
        assert_eq!(head(&"\u{1b}x".repeat(300)), format!("{}...", "x".repeat(200)));
    }
}
