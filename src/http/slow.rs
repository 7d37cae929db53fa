//! Requests that took long: how many there were, the latest and the longest of them.
//!
//! What is kept is bounded in number and in bytes, and says nothing of a client: no address, and no value of a
//! parameter that names who asks.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use hyper::Uri;

use crate::clock;

use super::router::percent_decode;

/// From this long on a request is slow.
pub const SLOW: Duration = Duration::from_millis(250);

/// How many of each kind are kept.
const KEPT: usize = 20;

/// The longest text that is kept of a path and a query, bytes.
const TEXT_MAX: usize = 600;

/// How names of parameters end whose values are secrets, in lower case without dashes and underscores.
const SECRET_ENDS: [&str; 6] = ["jwt", "key", "passwd", "password", "secret", "token"];
/// Names that are theirs, as a whole: others end in a like word.
const SECRETS: [&str; 2] = ["auth", "authorization"];

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowRequest {
    /// The name of its operation.
    pub operation: String,
    /// Path and query as they came, without secrets; a long one is cut off.
    pub target: String,
    /// The status of its answer; 499 where its client left before there was one.
    pub status: u16,
    /// Bytes of its body, as sent.
    pub bytes: u64,
    /// How long it took the service: to begin its answer, and to make each part that was waited for.
    pub own: Duration,
    /// From its head to the last byte of its answer: what the client took to read it included.
    pub whole: Duration,
    /// When it ended.
    pub at: SystemTime,
}

/// The slow requests that are remembered.
#[derive(Debug, Default)]
pub(super) struct SlowRequests(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    latest: VecDeque<SlowRequest>,
    longest: Vec<SlowRequest>,
}

impl SlowRequests {
    /// Remembers a request, if it is among the latest or the longest.
    pub(super) fn remember(&self, request: SlowRequest) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.longest.partition_point(|other| other.own >= request.own);
        if place < KEPT {
            kept.longest.insert(place, request.clone());
            kept.longest.truncate(KEPT);
        }
        kept.latest.push_front(request);
        kept.latest.truncate(KEPT);
    }

    /// The latest, newest first; the longest, longest first.
    pub(super) fn show(&self) -> (Vec<SlowRequest>, Vec<SlowRequest>) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (kept.latest.iter().cloned().collect(), kept.longest.clone())
    }
}

/// How long the service itself took for an answer. What a client takes to read it does not count.
#[derive(Debug, Default)]
pub(super) struct OwnTime {
    sum: Duration,
    /// Since when the client waits for it.
    waiting_since: Option<Instant>,
}

impl OwnTime {
    /// The service is at it since then.
    pub(super) const fn since(began: Instant) -> Self {
        Self {
            sum: Duration::ZERO,
            waiting_since: Some(began),
        }
    }

    /// The service is at it.
    pub(super) fn work(&mut self) {
        self.waiting_since.get_or_insert_with(clock::now);
    }

    /// It is the client's turn: it sends its body, or takes what is there of the answer.
    pub(super) fn rest(&mut self) {
        if let Some(since) = self.waiting_since.take() {
            self.sum += clock::now() - since;
        }
    }

    /// The next part of the body was asked for, and is there or not.
    pub(super) fn polled(&mut self, is_there: bool) {
        if is_there { self.rest() } else { self.work() }
    }

    /// The time so far.
    pub(super) fn sum(&self) -> Duration {
        self.sum
            + self
                .waiting_since
                .map_or(Duration::ZERO, |since| clock::now() - since)
    }
}

/// Path and query without secrets, cut off where they are long.
pub(super) fn shown_target(uri: &Uri) -> String {
    let mut text = uri.path().to_owned();
    for (place, pair) in uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .enumerate()
    {
        text.push(if place == 0 { '?' } else { '&' });
        match pair.split_once('=') {
            Some((name, _)) if is_secret(name) => {
                text.push_str(name);
                text.push_str("=...");
            }
            _ => text.push_str(pair),
        }
        if text.len() > TEXT_MAX {
            break;
        }
    }
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|&end| text.is_char_boundary(end));
        text.truncate(end.unwrap_or_default());
        text.push_str("...");
    }
    text
}

fn is_secret(name: &str) -> bool {
    let name = percent_decode(name).unwrap_or_else(|| name.as_bytes().to_vec());
    let bare: Vec<u8> = name
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    let is_like = SECRET_ENDS.iter().any(|end| bare.ends_with(end.as_bytes()));
    is_like || SECRETS.iter().any(|secret| secret.as_bytes() == bare)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(target: &str) -> String {
        shown_target(&target.parse().unwrap())
    }

    #[test]
    fn secrets_are_left_out_however_they_are_spelt() {
        for (target, expected) in [
            ("/a", "/a"),
            ("/a?", "/a?"),
            ("/a?x=1&y", "/a?x=1&y"),
            ("/a?apikey=S3CRET", "/a?apikey=..."),
            ("/a?x=1&ApiKey=S3CRET&y=2", "/a?x=1&ApiKey=...&y=2"),
            ("/a?api_key=S3CRET&api-key=S3CRET", "/a?api_key=...&api-key=..."),
            ("/a?%61pi%4bey=S3CRET=S3CRET", "/a?%61pi%4bey=..."),
            ("/a?apikey%20=S3CRET", "/a?apikey%20=..."),
            ("/a?key=S3CRET&token=S3CRET", "/a?key=...&token=..."),
            ("/a?auth-token=S3CRET&x-jwt=S3CRET", "/a?auth-token=...&x-jwt=..."),
            ("/a?client_secret=S3CRET", "/a?client_secret=..."),
            (
                "/a?Private%2DKey=S3CRET&userPassword=S3CRET",
                "/a?Private%2DKey=...&userPassword=...",
            ),
            ("/a?auth=S3CRET&oauth=1", "/a?auth=...&oauth=1"),
            // Parameters of ours that sound alike.
            (
                "/a?contractaddress=0x1&tokentype=x",
                "/a?contractaddress=0x1&tokentype=x",
            ),
        ] {
            assert_eq!(shown(target), expected);
        }
    }

    #[test]
    fn long_targets_are_cut_off() {
        let target = format!("/a?topic0={}&apikey=S3CRET", "f".repeat(7000));
        let text = shown(&target);
        assert_eq!(text.len(), TEXT_MAX + 3);
        assert!(text.ends_with("f..."));
        let many = format!("/a?{}apikey=S3CRET", "x=1&".repeat(1000));
        assert!(shown(&many).len() <= TEXT_MAX + 3);
    }

    #[test]
    fn the_latest_and_the_longest_stay() {
        let requests = SlowRequests::default();
        // The longest first, so that they are long gone from the latest.
        for ms in (1..=100).rev() {
            requests.remember(SlowRequest {
                operation: "X".to_owned(),
                target: format!("/{ms}"),
                status: 200,
                bytes: 0,
                own: Duration::from_millis(ms),
                whole: Duration::from_millis(ms),
                at: clock::wall(),
            });
        }
        let (latest, longest) = requests.show();
        let names =
            |kept: &[SlowRequest]| -> Vec<u128> { kept.iter().map(|one| one.own.as_millis()).collect() };
        assert_eq!(names(&latest), (1..=20).collect::<Vec<_>>());
        assert_eq!(names(&longest), (81..=100).rev().collect::<Vec<_>>());
    }

    #[test]
    fn only_waiting_for_us_counts() {
        let ms = Duration::from_millis;
        let mut own = OwnTime::since(clock::now());
        std::thread::sleep(ms(10));
        assert!(own.sum() >= ms(10));
        own.rest();
        let head = own.sum();
        assert!(head >= ms(10));
        own.polled(true);
        std::thread::sleep(ms(20));
        own.polled(true);
        assert_eq!(own.sum(), head);
        own.polled(false);
        std::thread::sleep(ms(20));
        own.polled(false);
        assert!(own.sum() >= head + ms(20));
        own.polled(true);
        let sum = own.sum();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(own.sum(), sum);
    }
}
