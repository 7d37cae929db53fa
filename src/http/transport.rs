//! The rules that hold for every request, whatever it asks: limits, methods, CORS, ids, the fence
//! against panics, and the line in the log.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{ALLOW, CONTENT_LENGTH, HeaderMap};
use hyper::{Method, StatusCode, Uri, Version};

use crate::clock;

use super::body::{Body, BodyError};
use super::caching::forbid_guessing;
use super::error::{ErrorStatus, HttpError};
use super::handler::{Handler, Request};
use super::limits::Limits;
use super::request_id::RequestId;
use super::response::{Response, X_REQUEST_ID, add_cors, options_response};
use super::slow::OwnTime;
use super::traffic::{Ended, OperationSlot, Traffic, Underway};
use super::unsent::{Holding, Unsent};
use super::vitals::{InFlight, Vitals};

pub(super) const URI_TOO_LONG: &str = "URI too long";
const RATE_LIMIT_EXCEEDED: &str = "Rate limit exceeded";
pub(super) const HEADERS_TOO_LARGE: &str = "Request header fields too large";

/// The body of a request.
pub(super) enum Upload {
    /// None, or none that matters.
    None,
    /// As a whole.
    Held(Bytes),
    /// By a connection.
    Coming(Incoming),
}

/// Answers one request that hyper has parsed; one that its client may not ask now is refused before anything else.
pub(super) async fn respond<H: Handler>(
    handler: &H,
    limits: &Limits,
    vitals: &Arc<Vitals>,
    traffic: &Arc<Traffic>,
    may_ask: bool,
    request: hyper::Request<Upload>,
) -> hyper::Response<Outgoing> {
    let is_multiplexed = request.version() == Version::HTTP_2;
    if is_multiplexed {
        vitals.note_multiplexed();
    }
    let counted_from = Unsent::counted_from(is_multiplexed);
    let mut in_flight = InFlight::begin(vitals);
    let (underway, others) = Underway::request(traffic);
    let (parts, upload) = request.into_parts();
    let upload_max = handler.upload_bytes_max(parts.uri.path());
    let is_upload = parts.method == Method::POST && upload_max.is_some();
    let mut upload = Some(upload);
    if may_ask
        && !is_upload
        && is_multiplexed
        && let Some(Upload::Coming(upload)) = upload.take()
    {
        drop_upload(upload).await;
    }
    let id = RequestId::of(parts.headers.get(X_REQUEST_ID));
    let mut line = LogLine {
        method: parts.method.clone(),
        uri: parts.uri.clone(),
        id: id.clone(),
        operation: OperationSlot::default(),
        underway,
        began: clock::now(),
        own: OwnTime::default(),
        status: StatusCode::OK,
        bytes: 0,
        finished: false,
    };
    let head_only = parts.method == Method::HEAD;
    let refuse = |error| handler.refuse(line.uri.path(), error);
    let mut response = if !may_ask {
        traffic.request_limited();
        refuse(HttpError::new(ErrorStatus::TooManyRequests, RATE_LIMIT_EXCEEDED))
    } else if let Err(error) = check_size(&parts.uri, &parts.headers, limits) {
        refuse(error)
    } else if others >= limits.requests_max {
        traffic.request_refused();
        refuse(HttpError::unavailable("Too many requests"))
    } else if parts.method == Method::OPTIONS {
        options_response(upload_max.is_some())
    } else if head_only || is_upload || parts.method == Method::GET {
        let read = match (upload_max, upload) {
            (Some(most), Some(upload)) if is_upload => {
                let holding = Holding::new(traffic.unsent(), Some(Arc::clone(vitals)));
                read_upload(upload, most, limits, holding, traffic).await
            }
            _ => Ok(Bytes::new()),
        };
        match read {
            Ok(upload) => {
                let operation = line.operation.clone();
                let request = Request {
                    parts,
                    upload,
                    id,
                    operation,
                    vitals: Some(Arc::clone(vitals)),
                };
                answer(handler, limits, request, &line).await
            }
            Err(error) => refuse(error),
        }
    } else {
        refuse(HttpError::new(
            ErrorStatus::MethodNotAllowed,
            "Method not allowed",
        ))
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        // A handler that answers fewer methods says which.
        let allowed = response.headers_mut().entry(ALLOW);
        allowed.or_insert(super::response::methods(upload_max.is_some()));
    }
    if !head_only
        && let Body::Full(bytes) = response.body()
        && bytes.len() >= counted_from
        && let Err(error) = traffic.unsent().refuse_made(bytes.len(), vitals.held())
    {
        traffic.list_refused();
        response = refuse(error);
    }
    add_cors(response.headers_mut());
    forbid_guessing(response.headers_mut());
    response
        .headers_mut()
        .insert(X_REQUEST_ID, line.id.header().clone());
    line.status = response.status();
    line.own.begin(clock::now() - line.began);
    if head_only {
        drop_body(&mut response);
    }
    response.map(|mut body| {
        match &mut body {
            Body::Full(bytes) if bytes.len() >= counted_from => {
                in_flight.weigh(bytes.len());
                *bytes = traffic.unsent().hold_body(std::mem::take(bytes));
            }
            Body::Shared(shared) if shared.bytes().len() >= counted_from => {
                body = Body::Full(shared.clone().hand_out(traffic.unsent()));
            }
            Body::Empty | Body::Full(_) | Body::Shared(_) => {}
            Body::Stream(stream) => {
                stream.set_timeout(limits.body_timeout);
                in_flight.weigh(stream.weight());
            }
        }
        Outgoing {
            body,
            in_flight,
            line,
        }
    })
}

/// Shorter uploads are not counted.
const UPLOAD_COUNTED_FROM: usize = 16 << 10;

/// What of an upload is read and thrown away, and for how long.
const UPLOAD_BYTES_MAX: usize = 1 << 20;
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(2);

/// Reads a body that nobody asked for. HTTP/2 resets a stream whose answer ends before its upload does, and some
/// clients lose the answer over it; HTTP/1.1 reads on by itself.
async fn drop_upload(mut upload: Incoming) {
    if upload.is_end_stream() {
        return;
    }
    let read = async {
        let mut bytes = 0;
        while bytes < UPLOAD_BYTES_MAX
            && let Some(Ok(frame)) = upload.frame().await
        {
            bytes += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // Who is slower than this keeps the rest.
    drop(tokio::time::timeout(UPLOAD_TIME_MAX, read).await);
}

/// Reads a body that is asked for, of at most `most` bytes, in the time that a client has for a request's head.
/// What of it is there counts with answers that are not sent.
async fn read_upload(
    upload: Upload,
    most: usize,
    limits: &Limits,
    mut holding: Holding,
    traffic: &Traffic,
) -> Result<Bytes, HttpError> {
    let too_large = || HttpError::new(ErrorStatus::ContentTooLarge, "Request body too large");
    let mut upload = match upload {
        Upload::None => return Ok(Bytes::new()),
        Upload::Held(held) if held.len() > most => return Err(too_large()),
        Upload::Held(held) => return Ok(held),
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
    let in_time = tokio::time::timeout(limits.header_read_timeout, read).await;
    in_time.unwrap_or_else(|_| {
        let text = "Request body took too long";
        Err(HttpError::new(ErrorStatus::RequestTimeout, text))
    })
}

/// The handler's answer, in time and fenced against panics.
async fn answer<H: Handler>(handler: &H, limits: &Limits, request: Request, line: &LogLine) -> Response {
    let refuse = |error| handler.refuse(line.uri.path(), error);
    let id = &line.id;
    // Both the call and the future it gives are fenced.
    let answer = AssertUnwindSafe(async { handler.handle(request).await }).catch_unwind();
    match tokio::time::timeout(limits.answer_timeout, answer).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => {
            tracing::error!(target: "quarry::http", request_id = id.as_str(), "a handler panicked");
            refuse(HttpError::internal("a handler panicked"))
        }
        Err(_) => {
            tracing::warn!(target: "quarry::http", request_id = id.as_str(), "a handler took too long");
            refuse(HttpError::unavailable("The answer took too long"))
        }
    }
}

fn check_size(uri: &Uri, headers: &HeaderMap, limits: &Limits) -> Result<(), HttpError> {
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len())
        + uri.authority().map_or(0, |authority| authority.as_str().len());
    if target > limits.uri_bytes_max {
        return Err(HttpError::new(ErrorStatus::UriTooLong, URI_TOO_LONG));
    }
    // Four bytes a line: the colon, the blank after it, and the line's end.
    let total: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    if total > limits.header_bytes_max {
        return Err(HttpError::new(ErrorStatus::HeadersTooLarge, HEADERS_TOO_LARGE));
    }
    Ok(())
}

/// HEAD: the headers of GET, its length where it is known, and nothing after them.
fn drop_body(response: &mut Response) {
    if let Some(length) = response.body().size_hint().exact()
        && !matches!(
            response.status(),
            StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED
        )
    {
        response
            .headers_mut()
            .insert(CONTENT_LENGTH, super::response::header_number(length));
    }
    *response.body_mut() = Body::Empty;
}

/// The body of an answer on its way, watched: whether the client takes it, and how much, for the log and the figures.
pub struct Outgoing {
    body: Body,
    in_flight: InFlight,
    line: LogLine,
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
        self.line.finished |= self.body.is_end_stream();
        self.line.end();
    }
}

/// Target of the lines of requests in the log.
pub const REQUEST_TARGET: &str = "quarry::http::request";

struct LogLine {
    method: Method,
    uri: Uri,
    id: RequestId,
    operation: OperationSlot,
    underway: Underway,
    began: Instant,
    own: OwnTime,
    status: StatusCode,
    bytes: u64,
    finished: bool,
}

impl LogLine {
    /// Counts the request and writes the line.
    fn end(&self) {
        let (duration, place) = (clock::now() - self.began, self.operation.get());
        let traffic = self.underway.traffic();
        traffic.answered(&Ended {
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
