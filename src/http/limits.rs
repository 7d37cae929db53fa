//! The bounds the transport keeps.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::machine;

/// Bounds on connections and requests. Each has a default that suits a public service.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections served at once. Over it a connection is accepted, told 503 and closed: a client
    /// (or a balancer) that hears "not now" can go elsewhere, one that hangs in the backlog cannot.
    pub connections_max: usize,
    /// Refusals being spoken at once; over it a connection is closed without a word.
    pub refusals_max: usize,
    /// Length of the request target, bytes.
    pub uri_bytes_max: usize,
    /// Sum of header names and values, with four bytes of punctuation a line, bytes.
    pub header_bytes_max: usize,
    /// From the start of waiting for a request head to its last byte; also the idle time of a
    /// connection kept alive.
    pub header_read_timeout: Duration,
    /// Requests being answered at once, over all connections; one more is told 503. Those whose body is waited for are not among
    /// them, and may be as many again.
    pub requests_max: usize,
    /// From a request's head to the head of its answer; then the client is told 503.
    pub answer_timeout: Duration,
    /// How long a client may take to take 64 KiB of an answer that is ready for it.
    pub write_timeout: Duration,
    /// How long a body may take in all; a pinned snapshot must end some time. A connection with a request older than this
    /// and `answer_timeout` together is cut off.
    pub body_timeout: Duration,
    /// After the shutdown signal: how long open requests may take to finish.
    pub drain_timeout: Duration,
    /// Streams of one HTTP/2 connection at once.
    pub streams_max: u32,
    /// Requests a second of one client (an IPv4 address, an IPv6 /64), with a burst of two seconds' worth; one more
    /// is told 429 before anything is done for it. `None`: no limit.
    pub rate: Option<NonZeroU32>,
    /// Threads that own sockets; with none, connections stay on the runtime that serves.
    pub socket_threads: usize,
    /// Whether a proxy stands before the service, whose last word in `X-Forwarded-For` is the client's address.
    pub trust_proxy: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            refusals_max: 64,
            uri_bytes_max: 8 * 1024,
            header_bytes_max: 16 * 1024,
            header_read_timeout: Duration::from_secs(30),
            requests_max: 8192,
            answer_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            body_timeout: Duration::from_secs(600),
            drain_timeout: Duration::from_secs(10),
            streams_max: 128,
            rate: None,
            socket_threads: machine::cores(),
            trust_proxy: false,
        }
    }
}
