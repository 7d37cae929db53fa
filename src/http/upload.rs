//! Bodies of requests: read, or thrown away, and waited for by so many at once.
//!
//! A request whose body does not come holds nobody's place: it takes one among those that are answered when the body is
//! there, and is counted with others that wait until then ([`Awaited`]).

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONNECTION, HeaderValue};

use super::error::{ErrorStatus, HttpError};
use super::limits::Limits;
use super::outgoing::Outgoing;
use super::traffic::Traffic;
use super::unsent::Holding;
use super::vitals::Vitals;

pub(super) const TOO_MANY_REQUESTS: &str = "Too many requests";

/// The body of a request.
pub(super) enum Upload {
    /// None, or none that matters.
    None,
    /// As a whole.
    Held(Bytes),
    /// By a connection.
    Coming(Incoming),
}

/// Shorter uploads are not counted.
const UPLOAD_COUNTED_FROM: usize = 16 << 10;

/// What of an upload is read and thrown away beyond what may be sent, and for how long.
const UPLOAD_BYTES_MAX: usize = 1 << 20;
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(2);

/// So much of an upload is thrown away before its answer goes out, where it is there, so that the connection can be kept.
const UPLOAD_AT_HAND_MAX: usize = 64 << 10;

/// Once half of the places for bodies that are waited for are taken, so many are of one connection at most: no few connections
/// have them all.
const AWAITED_OF_CONNECTION: usize = 8;

/// So often hyper is let come round for a body that has no place to be waited for. It hands over what is there piece by piece.
const ROUNDS: usize = 16;

/// Where bodies are counted that are waited for.
#[derive(Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub(super) traffic: &'a Traffic,
    pub(super) vitals: &'a Vitals,
    /// How many there may be.
    pub(super) most: usize,
}

/// A body that is waited for, counted for all and for its connection until it is dropped.
struct Awaited<'a>(Waiting<'a>);

impl<'a> Awaited<'a> {
    /// `None` where as many are waited for as may be.
    fn begin(waiting: Waiting<'a>) -> Option<Self> {
        let others = waiting.traffic.awaited.fetch_add(1, Ordering::Relaxed);
        let of_connection = waiting.vitals.awaited().fetch_add(1, Ordering::Relaxed);
        let awaited = Self(waiting);
        let has_half = others < waiting.most.div_ceil(2);
        let has_place = has_half || (others < waiting.most && of_connection < AWAITED_OF_CONNECTION);
        has_place.then_some(awaited)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.traffic.awaited.fetch_sub(1, Ordering::Relaxed);
        self.0.vitals.awaited().fetch_sub(1, Ordering::Relaxed);
    }
}

impl Waiting<'_> {
    /// Waits for what is read of a body; `None` where it is not there and there is no place to wait.
    async fn wait<T>(self, reading: impl Future<Output = T>) -> Option<T> {
        let mut reading = pin!(reading);
        if let Some(read) = reading.as_mut().now_or_never() {
            return Some(read);
        }
        if let Some(_awaited) = Awaited::begin(self) {
            return Some(reading.await);
        }
        for _ in 0..ROUNDS {
            tokio::task::yield_now().await;
            if let Some(read) = reading.as_mut().now_or_never() {
                return Some(read);
            }
        }
        None
    }
}

/// Reads a body that nobody asked for, or that is refused, of which `most` bytes may be sent there. HTTP/2 resets a stream whose answer ends
/// before its upload does, and some clients lose the answer over it; HTTP/1 reads on when the answer is out ([`let_go`]).
pub(super) async fn drop_upload(mut upload: Incoming, most: usize, waiting: Waiting<'_>) {
    let read = async {
        let mut bytes = 0;
        while bytes < most + UPLOAD_BYTES_MAX
            && let Some(Ok(frame)) = upload.frame().await
        {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Who is slower than this keeps the rest, and so does one too many.
    let _ = waiting.wait(tokio::time::timeout(UPLOAD_TIME_MAX, read)).await;
}

/// Lets go of a body over HTTP/1 that nobody asked for, when its answer is made. Where more of it is to come the connection ends with the
/// answer, and reads on before it is closed: else what comes would reset it, and could take the answer with it.
pub(super) async fn let_go(
    mut upload: Incoming,
    vitals: &Vitals,
    mut answer: hyper::Response<Outgoing>,
) -> hyper::Response<Outgoing> {
    if !is_at_hand(&mut upload).await {
        vitals.refuse_upload();
        let close = HeaderValue::from_static("close");
        answer.headers_mut().insert(CONNECTION, close);
    }
    answer
}

/// Throws away what is there of a body; whether that was the rest of it.
async fn is_at_hand(upload: &mut Incoming) -> bool {
    let mut bytes = 0;
    while bytes < UPLOAD_AT_HAND_MAX {
        match upload.frame().now_or_never() {
            Some(Some(Ok(frame))) => bytes += frame.data_ref().map_or(0, Bytes::len),
            Some(None) => return true,
            Some(Some(Err(_))) | None => return false,
        }
        if upload.is_end_stream() {
            return true;
        }
        // hyper hands over the next piece when it comes round again.
        tokio::task::yield_now().await;
    }
    false
}

/// Reads a body that is asked for, of at most `most` bytes, in the time that a client has for a request's head.
/// What of it is there counts with answers that are not sent. Of one that is refused the rest is left.
pub(super) async fn read_upload(
    upload: &mut Upload,
    most: usize,
    limits: &Limits,
    mut holding: Holding,
    waiting: Waiting<'_>,
) -> Result<Bytes, HttpError> {
    let traffic = waiting.traffic;
    let too_large = || HttpError::new(ErrorStatus::ContentTooLarge, "Request body too large");
    let upload = match upload {
        Upload::None => return Ok(Bytes::new()),
        Upload::Held(held) if held.len() > most => return Err(too_large()),
        Upload::Held(held) => return Ok(std::mem::take(held)),
        Upload::Coming(upload) => upload,
    };
    if upload.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let read = async {
        let mut read = BytesMut::new();
        while let Some(frame) = upload.frame().await {
            let frame = frame.map_err(|_| HttpError::bad_request("Request body is incomplete"))?;
            if let Some(data) = frame.data_ref() {
                if read.len() + data.len() > most {
                    return Err(too_large());
                }
                read.extend_from_slice(data);
                if read.len() >= UPLOAD_COUNTED_FROM {
                    holding.change(read.capacity());
                    let admitted = traffic.unsent().refuse_when_full(holding.of_connection());
                    admitted.inspect_err(|_| traffic.list_refused())?;
                }
            }
        }
        Ok(traffic.unsent().hold_body(read.freeze()))
    };
    match waiting
        .wait(tokio::time::timeout(limits.header_read_timeout, read))
        .await
    {
        Some(Ok(read)) => read,
        Some(Err(_)) => {
            let text = "Request body took too long";
            Err(HttpError::new(ErrorStatus::RequestTimeout, text))
        }
        None => {
            traffic.request_refused();
            Err(HttpError::unavailable(TOO_MANY_REQUESTS))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_few_connections_have_all_places_for_bodies() {
        let traffic = Traffic::default();
        let all = [(); 4].map(|()| Vitals::new());
        let mut awaited = Vec::new();
        let mut given = [0; 4];
        for (vitals, given) in all.iter().zip(&mut given) {
            let waiting = Waiting {
                traffic: &traffic,
                vitals,
                most: 50,
            };
            for _ in 0..40 {
                let place = Awaited::begin(waiting);
                *given += usize::from(place.is_some());
                awaited.extend(place);
            }
        }
        // Half is for whoever comes first, the rest for many.
        assert_eq!(given, [25, 8, 8, 8]);
        drop(awaited);
        assert_eq!(traffic.awaited.load(Ordering::Relaxed), 0);
        assert!(
            all.iter()
                .all(|vitals| vitals.awaited().load(Ordering::Relaxed) == 0)
        );
    }
}
