//! An answer on its way: whether the client takes it, its line in the log and its place in the figures.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use hyper::{Method, StatusCode, Uri};

use crate::clock;

use super::body::{Body, BodyError};
use super::request_id::RequestId;
use super::slow::OwnTime;
use super::traffic::{Ended, OperationSlot, Underway};
use super::vitals::InFlight;

/// The body of an answer on its way, watched: whether the client takes it, and how much, for the log and the figures.
pub struct Outgoing {
    pub(super) body: Body,
    pub(super) in_flight: InFlight,
    pub(super) line: LogLine,
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let me = &mut *self;
        let body = Pin::new(&mut me.body);
        let next = if matches!(*body, Body::Stream(_)) {
            let next = me.in_flight.poll(cx, |cx| body.poll_frame(cx));
            me.line.own.polled(next.is_ready());
            next
        } else {
            me.in_flight.answered();
            body.poll_frame(cx)
        };
        match &next {
            Poll::Ready(Some(Ok(frame))) => {
                self.line.bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
                self.line.finished = self.body.is_end_stream();
            }
            Poll::Ready(None) => self.line.finished = true,
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        let hand_over = |frame: Frame<Bytes>| {
            frame.map_data(|bytes| {
                let is_counted = self.body.counts(bytes.len());
                let unsent = self.line.underway.traffic().unsent();
                self.in_flight.hand_over(bytes, (!is_counted).then_some(unsent))
            })
        };
        next.map_ok(hand_over)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        let now = clock::now();
        self.in_flight.end(now);
        self.line.finished |= self.body.is_end_stream();
        self.line.end(now);
    }
}

/// Target of the lines of requests in the log.
pub const REQUEST_TARGET: &str = "quarry::http::request";

/// The line of a request in the log, as far as it is known.
pub(super) struct LogLine {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) id: RequestId,
    pub(super) operation: OperationSlot,
    pub(super) underway: Underway,
    pub(super) began: Instant,
    pub(super) own: OwnTime,
    pub(super) status: StatusCode,
    pub(super) bytes: u64,
    pub(super) finished: bool,
}

impl LogLine {
    /// Counts the request and writes the line.
    fn end(&self, now: Instant) {
        let (duration, place) = (now - self.began, self.operation.get());
        let traffic = self.underway.traffic();
        traffic.answered(&Ended {
            now,
            place,
            uri: &self.uri,
            status: self.status,
            bytes: self.bytes,
            whole: duration,
            own: self.own.sum(),
            aborted: !self.finished,
        });
        tracing::info!(
            target: REQUEST_TARGET,
            method = self.method.as_str(),
            operation = traffic.name(place),
            path = self.uri.path(),
            status = self.status.as_u16(),
            bytes = self.bytes,
            ms = duration.as_micros() as f64 / 1000.0,
            request_id = self.id.as_str(),
            aborted = !self.finished,
            "request"
        );
    }
}
