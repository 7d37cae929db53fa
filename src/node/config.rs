//! How to reach a node and how hard to lean on it.

use super::error::NodeError;
use super::pace::RequestClass;
use std::path::Path;
use std::time::Duration;

/// The longest answer taken to a small question, a client's too: many times what any of them weighs.
pub(super) const SMALL_BYTES_MAX: usize = 16 << 20;

/// Settings of one node; `NodeConfig::new(url)` has sensible ones.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeConfig {
    /// `http(s)://`, `ws(s)://`, or the path of an IPC socket.
    pub url: String,
    /// Most requests in flight.
    pub concurrency_max: usize,
    /// Most bytes of bundles in flight, by the size of recent answers.
    pub bytes_in_flight_max: usize,
    /// Longest answer taken.
    pub response_bytes_max: usize,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// The same for small questions (the head, a block's hash): soon enough to notice a stalled node.
    pub light_timeout: Duration,
    /// How long a request may take together with its repetitions and the waits between them.
    pub deadline: Duration,
    /// How often a request is sent at most.
    pub attempts_max: u32,
    /// Wait before the first repetition; it doubles each time.
    pub backoff_first: Duration,
    /// Longest wait between repetitions.
    pub backoff_max: Duration,
    /// How often the head is asked for where nothing announces it.
    pub poll_interval: Duration,
    /// How long a node that lacks something is left alone before it is probed again.
    pub probe_pause: Duration,
}

/// A request that takes so many times as long as the slowest of its kind is taken for lost.
const LOST_AFTER: u32 = 8;

impl NodeConfig {
    /// Settings for a node on the same machine or network.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            concurrency_max: 32,
            bytes_in_flight_max: 256 << 20,
            response_bytes_max: 512 << 20,
            request_timeout: Duration::from_secs(60),
            light_timeout: Duration::from_secs(8),
            deadline: Duration::from_secs(180),
            attempts_max: 6,
            backoff_first: Duration::from_millis(200),
            backoff_max: Duration::from_secs(10),
            poll_interval: Duration::from_secs(2),
            probe_pause: Duration::from_secs(300),
        }
    }

    /// The URL as it may be shown: scheme and host, without path, user and query, which may hold a key.
    #[must_use]
    pub fn shown_url(&self) -> String {
        crate::model::shown_url(&self.url)
    }

    /// Whether the URL leads somewhere at all, and what the system must have for it is there; nothing is sent.
    ///
    /// # Errors
    ///
    /// [`NodeError::Url`] with what is wrong.
    pub fn check(&self) -> Result<(), NodeError> {
        super::link::check(&self.endpoint()?)
    }

    pub(super) fn endpoint(&self) -> Result<Endpoint, NodeError> {
        let url = self.url.trim();
        let scheme = url
            .split_once("://")
            .map(|(scheme, _)| scheme.to_ascii_lowercase());
        match scheme.as_deref() {
            Some("http" | "https") => Ok(Endpoint::Http(url.to_owned())),
            Some("ws" | "wss") => Ok(Endpoint::Ws(url.to_owned())),
            Some("file" | "ipc") => socket(url.split_once("://").map_or(url, |(_, path)| path)),
            Some(other) => Err(NodeError::Url(format!(
                "unknown scheme `{other}`: expected http, https, ws, wss or a path"
            ))),
            None if url.is_empty() => Err(NodeError::Url("empty".to_owned())),
            None if crate::model::is_path(url) || Path::new(url).exists() => socket(url),
            // A host without its scheme, whatever follows it.
            None => Err(NodeError::Url(format!(
                "`{}` is neither a URL nor the path of a socket: it lacks http:// or https://, or / or ./ where it begins",
                self.shown_url()
            ))),
        }
    }

    /// The longest answer taken to a request of `class`.
    pub(super) fn bytes_max(&self, class: RequestClass) -> usize {
        match class.is_small() {
            true => SMALL_BYTES_MAX.min(self.response_bytes_max),
            false => self.response_bytes_max,
        }
    }

    /// How long one request of `class` may take.
    pub(super) fn timeout(&self, class: RequestClass) -> Duration {
        match class.is_small() {
            true => self.light_timeout.min(self.request_timeout),
            false => self.request_timeout,
        }
    }

    /// How long the first attempt of a request about a block may take when the slowest of recent answers of its kind
    /// took so long. An answer that is lost on the way should not cost the tip a whole `request_timeout`; attempts
    /// after the first have that, and so has the first while nothing is known.
    pub(super) fn first_timeout(&self, slowest: Option<Duration>) -> Duration {
        let Some(slowest) = slowest else {
            return self.request_timeout;
        };
        let lost = slowest.saturating_mul(LOST_AFTER);
        lost.max(self.light_timeout).min(self.request_timeout)
    }

    /// The wait before repetition number `repetition` (from 1): doubling, with jitter of one half.
    pub(super) fn backoff(&self, repetition: u32) -> Duration {
        self.backoff_from(self.backoff_first, repetition)
    }

    /// The same, from another first wait.
    pub(super) fn backoff_from(&self, first: Duration, repetition: u32) -> Duration {
        let doubled = first.saturating_mul(1_u32 << repetition.saturating_sub(1).min(16));
        doubled.min(self.backoff_max).mul_f64(0.5 + 0.5 * fastrand::f64())
    }
}

impl std::fmt::Debug for NodeConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeConfig")
            .field("url", &self.shown_url())
            .field("concurrency_max", &self.concurrency_max)
            .finish_non_exhaustive()
    }
}

/// The socket with a path. A shell has replaced `~` where it does so; files of variables and what stands behind `=` have none.
fn socket(path: &str) -> Result<Endpoint, NodeError> {
    if path.starts_with('~') {
        return Err(NodeError::Url(format!(
            "`{path}` begins with ~, which only a shell replaces: write the home directory out, or ./ before a name that begins so"
        )));
    }
    Ok(Endpoint::Ipc(path.to_owned()))
}

/// Where a URL leads.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    Http(String),
    Ws(String),
    Ipc(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_lead_nowhere_are_found_out_before_anything_is_sent() {
        for url in [
            "",
            "http://",
            "http://127.0.0.1:99999",
            "http://[::1/x",
            "ws://:8546",
            "htpp://127.0.0.1",
            "127.0.0.1:8545",
            "127.0.0.1:8545/key",
            "https//node.example/key",
            "node.example/v3/key",
            "~/geth.ipc",
            "~alice/geth.ipc",
            "ipc://~/geth.ipc",
        ] {
            assert!(
                matches!(NodeConfig::new(url).check(), Err(NodeError::Url(_))),
                "{url}"
            );
        }
        for url in [
            "http://127.0.0.1:8545",
            " wss://node.example/key ",
            "/run/geth.ipc",
            "geth.ipc",
            "./node/socket",
            "./~/socket",
            "../socket",
            // A socket that is there.
            "src/lib.rs",
            "https://[::1]:1/",
        ] {
            assert!(NodeConfig::new(url).check().is_ok(), "{url}");
        }
    }

    #[test]
    fn keys_in_urls_are_not_shown() {
        for (url, shown) in [
            (
                "https://me:secret@node.example:8545/v3/key?x=1",
                "https://node.example:8545",
            ),
            ("ws://127.0.0.1:8546", "ws://127.0.0.1:8546"),
            ("/run/geth.ipc", "/run/geth.ipc"),
            ("geth.ipc", "geth.ipc"),
            ("ipc:///run/a@b/geth.ipc", "ipc:///run/a@b/geth.ipc"),
            ("https://[::1]:8545/key", "https://[::1]:8545"),
            ("https://[::1]", "https://[::1]"),
            ("https://node.example?key=x", "https://node.example"),
            ("https://node:sec/ret@node.example", "https://..."),
            ("node.example/v3/key", "node.example"),
            ("me:secret@node.example:8545", "node.example:8545"),
        ] {
            assert_eq!(NodeConfig::new(url).shown_url(), shown);
        }
    }

    #[test]
    fn a_first_attempt_has_the_time_that_recent_answers_took() {
        let config = NodeConfig::new("http://127.0.0.1:1");
        let seconds = Duration::from_secs;
        assert_eq!(config.first_timeout(None), config.request_timeout);
        assert_eq!(
            config.first_timeout(Some(Duration::from_millis(3))),
            config.light_timeout
        );
        assert_eq!(config.first_timeout(Some(seconds(2))), seconds(16));
        assert_eq!(config.first_timeout(Some(seconds(20))), config.request_timeout);
    }

    #[test]
    fn backoff_doubles_up_to_its_bound() {
        let config = NodeConfig::new("http://127.0.0.1:1");
        assert!(config.backoff(1) <= config.backoff_first);
        assert!(config.backoff(4) > config.backoff_first * 3);
        assert!(config.backoff(40) <= config.backoff_max);
    }
}
