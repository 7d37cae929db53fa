//! An answer on its way: whether the client takes it, its line in the log and its place in the figures.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Uri};

use crate::clock;

use super::body::{Body, BodyError};
use super::request_id::RequestId;
use super::response::X_REQUEST_ID;
use super::slow::OwnTime;
use super::traffic::{CLIENT_LEFT, Ended, Traffic};
use super::underway::{OperationSlot, Underway};
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
                if self.body.is_end_stream() {
                    self.line.finish();
                }
            }
            Poll::Ready(None) => self.line.finish(),
            Poll::Ready(Some(Err(error))) => self.line.break_off(error),
            Poll::Pending => {}
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
        if self.body.is_end_stream() {
            self.line.finish();
        }
        self.line.end(now);
    }
}

/// Target of the lines of requests in the log.
pub const REQUEST_TARGET: &str = "quarry::http::request";

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There is no answer yet.
    Asked,
    /// It is on its way.
    Answered,
    /// Its body failed.
    Broken,
    /// All of it was handed over.
    Finished,
}

/// The line of a request in the log, as far as it is known. One that is dropped before there is an answer is of a client that left.
pub(super) struct LogLine {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) id: RequestId,
    pub(super) operation: OperationSlot,
    pub(super) underway: Underway,
    pub(super) own: OwnTime,
    began: Instant,
    status: u16,
    bytes: u64,
    stage: Stage,
}

impl LogLine {
    /// That of a request which began then.
    pub(super) fn begin(parts: &Parts, traffic: &Arc<Traffic>, began: Instant) -> Self {
        Self {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            id: RequestId::of(parts.headers.get(X_REQUEST_ID)),
            operation: OperationSlot::default(),
            underway: Underway::uncounted(traffic),
            own: OwnTime::since(began),
            began,
            status: CLIENT_LEFT,
            bytes: 0,
            stage: Stage::Asked,
        }
    }

    /// There is an answer: its end is the end of the line.
    pub(super) fn answer(&mut self, status: StatusCode) {
        self.own.rest();
        self.status = status.as_u16();
        self.stage = Stage::Answered;
    }

    /// All of the body was handed over; of one that failed that is never so.
    fn finish(&mut self) {
        if self.stage == Stage::Answered {
            self.stage = Stage::Finished;
        }
    }

    /// The body failed: the client sees it broken off.
    fn break_off(&mut self, error: &BodyError) {
        self.stage = Stage::Broken;
        let id = self.id.as_str();
        tracing::error!(target: "quarry::http", request_id = id, %error, "body aborted");
    }

    /// Counts the request and writes the line.
    fn end(&self, now: Instant) {
        let (duration, place) = (now - self.began, self.operation.get());
        let (traffic, aborted) = (self.underway.traffic(), self.stage != Stage::Finished);
        traffic.answered(&Ended {
            now,
            place,
            uri: &self.uri,
            status: self.status,
            bytes: self.bytes,
            whole: duration,
            own: self.own.sum(),
            aborted,
        });
        tracing::info!(
            target: REQUEST_TARGET,
            method = self.method.as_str(),
            operation = traffic.name(place),
            path = self.uri.path(),
            status = self.status,
            bytes = self.bytes,
            ms = duration.as_micros() as f64 / 1000.0,
            request_id = self.id.as_str(),
            aborted,
            "request"
        );
    }
}

impl Drop for LogLine {
    fn drop(&mut self) {
        // What has an answer ends with that.
        if self.stage == Stage::Asked {
            self.end(clock::now());
        }
    }
}
