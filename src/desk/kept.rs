//! Short answers that are asked for again and again, kept as they go out.
//!
//! Between two blocks a service is asked the same page by everybody who shows it. An answer is kept when the same question
//! came twice, for as long as nothing that it was made of has changed, and a second at most; what it takes is bounded
//! ([`super::Settings::kept_bytes`]). Its key is all that determines it
//! ([`super::caching::Determinants`]), compared byte by byte. Answers of one or two rows are not kept: they cost little more than
//! to look for them here. Nor are those that go out in several frames.
//!
//! Why so: `docs/decisions/0046-kept-answers.md`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::clock;
use crate::http::header::HeaderMap;
use crate::http::{Body, FRAME_BYTES, Response, SharedBody, StatusCode};
use crate::marks::Marks;
use crate::metrics::Page;

/// So long an answer is given again. Whoever asks a page over and over asks far oftener; whatever an answer may be made of
/// that its key does not hold is stale for no longer.
const KEPT_FOR: Duration = Duration::from_secs(1);

/// The longest body that is kept.
const BODY_BYTES_MAX: usize = FRAME_BYTES;

/// A guess at what headers and the table take for each answer.
const ANSWER_BYTES: u64 = 2048;

/// So many keys that came once are remembered.
const ASKED: usize = 4096;

/// All that determines an answer, as bytes.
pub(crate) type KeptKey = Box<[u8]>;

#[derive(Clone)]
struct Kept {
    headers: HeaderMap,
    body: SharedBody,
    since: Instant,
}

#[derive(Clone)]
struct Weight;

impl Weighter<KeptKey, Kept> for Weight {
    fn weight(&self, key: &KeptKey, kept: &Kept) -> u64 {
        (key.len() + kept.body.bytes().len()) as u64 + ANSWER_BYTES
    }
}

/// See the module.
pub(crate) struct KeptAnswers {
    answers: Cache<KeptKey, Kept, Weight>,
    /// Keys that came once.
    asked: Marks,
    given: AtomicU64,
}

impl KeptAnswers {
    /// Room for so many bytes of answers; `None` for no room at all.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        (bytes > 0).then(|| Self {
            answers: Cache::with_weighter(bytes / BODY_BYTES_MAX + 1, bytes as u64, Weight),
            asked: Marks::new(ASKED),
            given: AtomicU64::new(0),
        })
    }

    /// The answer of this key, if it is kept.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Response> {
        let kept = self.answers.get(key)?;
        if clock::now() - kept.since > KEPT_FOR {
            return None;
        }
        self.given.fetch_add(1, Ordering::Relaxed);
        let mut response = Response::new(Body::Shared(kept.body));
        *response.headers_mut() = kept.headers;
        Some(response)
    }

    /// Keeps an answer that may be asked for again: from the second time on, if it is short.
    pub(crate) fn offer(&self, key: KeptKey, response: &Response) {
        let Body::Full(body) = response.body() else { return };
        if response.status() != StatusCode::OK || body.len() > BODY_BYTES_MAX {
            return;
        }
        if self.asked.came_before(twox_hash::XxHash3_64::oneshot(&key)) {
            let kept = Kept {
                headers: response.headers().clone(),
                // The body's own buffer is used again for other frames, and longer than it.
                body: Bytes::copy_from_slice(body).into(),
                since: clock::now(),
            };
            self.answers.insert(key, kept);
        }
    }

    /// What is kept, on the page of figures.
    pub(crate) fn measure(&self, page: &mut Page) {
        let help = "Answers given again without looking anything up.";
        page.counter(
            "quarry_kept_answers_given",
            help,
            &[],
            self.given.load(Ordering::Relaxed),
        );
        let help = "Answers kept to be given again.";
        page.gauge("quarry_kept_answers", help, &[], self.answers.len() as f64);
        let help = "Memory of the answers kept.";
        page.gauge(
            "quarry_kept_answers_bytes",
            help,
            &[],
            self.answers.weight() as f64,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::json_response;

    fn key(number: usize) -> KeptKey {
        number.to_string().into_bytes().into()
    }

    fn answer(bytes: usize) -> Response {
        json_response(StatusCode::OK, vec![b'x'; bytes])
    }

    fn length(kept: &KeptAnswers, number: usize) -> Option<usize> {
        kept.get(&key(number)).map(|response| match response.body() {
            Body::Shared(body) => body.bytes().len(),
            _ => 0,
        })
    }

    #[test]
    fn an_answer_is_kept_from_the_second_time_on_for_a_while() {
        let kept = KeptAnswers::new(1 << 20).unwrap();
        kept.offer(key(1), &answer(10));
        assert_eq!(length(&kept, 1), None);
        kept.offer(key(1), &answer(10));
        assert_eq!(length(&kept, 1), Some(10));
        assert_eq!(length(&kept, 2), None);
        let until = clock::now() + 2 * KEPT_FOR;
        while length(&kept, 1).is_some() {
            assert!(clock::now() < until, "kept for too long");
            std::thread::sleep(KEPT_FOR / 10);
        }
    }

    #[test]
    fn long_and_failed_answers_are_not_kept_and_room_is_bounded() {
        assert!(KeptAnswers::new(0).is_none());
        let kept = KeptAnswers::new(4 << 20).unwrap();
        for _ in 0..3 {
            kept.offer(key(1), &answer(BODY_BYTES_MAX + 1));
            kept.offer(key(2), &json_response(StatusCode::NOT_FOUND, vec![b'x']));
            kept.offer(key(3), &answer(BODY_BYTES_MAX));
        }
        assert_eq!(
            [1, 2, 3].map(|number| length(&kept, number)),
            [None, None, Some(BODY_BYTES_MAX)]
        );
        for number in 100..400 {
            kept.offer(key(number), &answer(100_000));
            kept.offer(key(number), &answer(100_000));
            assert!(kept.answers.weight() <= 4 << 20);
        }
        assert!(kept.answers.len() > 10);
    }
}
