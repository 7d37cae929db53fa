//! The rules that hold for every request, whatever it asks: limits, methods, CORS, ids, the fence
//! against panics, and the line in the log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};

use crate::clock;

use super::body::Body;
use super::caching::forbid_guessing;
use super::error::{ErrorStatus, HttpError};
use super::handler::{Handled, Handler, Request};
use super::limits::Limits;
use super::outgoing::{LogLine, Outgoing};
use super::request_id::RequestId;
use super::response::{Response, X_REQUEST_ID, add_cors, methods, options_response};
use super::slow::OwnTime;
use super::traffic::{OperationSlot, Traffic, Underway};
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

/// What a request is answered by: one for a process, or for a connection.
pub(super) struct Service<H> {
    pub(super) handler: Arc<H>,
    pub(super) limits: Arc<Limits>,
    pub(super) traffic: Arc<Traffic>,
}

/// The answer to a request, watched on its way.
type Responding = Handled<hyper::Response<Outgoing>>;

/// Answers one request that hyper has parsed; one that its client may not ask now is refused before anything else.
pub(super) fn respond<H: Handler>(
    service: &Arc<Service<H>>,
    vitals: &Arc<Vitals>,
    may_ask: bool,
    request: hyper::Request<Upload>,
) -> Responding {
    let version = request.version();
    let is_multiplexed = version == Version::HTTP_2;
    if is_multiplexed {
        vitals.note_multiplexed();
    }
    let in_flight = InFlight::begin(vitals);
    let (underway, others) = Underway::request(&service.traffic);
    let (parts, upload) = request.into_parts();
    let line = LogLine {
        method: parts.method.clone(),
        uri: parts.uri.clone(),
        id: RequestId::of(parts.headers.get(X_REQUEST_ID)),
        operation: OperationSlot::default(),
        underway,
        began: in_flight.began(),
        own: OwnTime::default(),
        status: StatusCode::OK,
        bytes: 0,
        finished: false,
    };
    let upload_max = service.handler.upload_bytes_max(parts.uri.path());
    let exchange = Exchange {
        service: Arc::clone(service),
        in_flight,
        line,
        version,
        upload_max,
        counted_from: Unsent::counted_from(is_multiplexed),
        is_crowded: others >= service.limits.requests_max,
        may_ask,
    };
    match upload {
        Upload::Coming(upload)
            if may_ask && is_multiplexed && !exchange.is_upload() && !upload.is_end_stream() =>
        {
            Responding::later(async move {
                let mut exchange = exchange;
                drop_upload(upload).await;
                // That time was the client's.
                exchange.line.began = clock::now();
                exchange.go_on(parts, Upload::None).answer().await
            })
        }
        // hyper reads a body to its end, or closes the connection, as soon as that is dropped: not before there is an answer.
        Upload::Coming(upload) if !exchange.is_upload() && !upload.is_end_stream() => {
            Responding::later(async move {
                let vitals = Arc::clone(exchange.in_flight.vitals());
                let answer = exchange.go_on(parts, Upload::None).answer().await;
                if is_multiplexed {
                    drop(upload);
                    return answer;
                }
                let_go(upload, &vitals, answer).await
            })
        }
        upload => exchange.go_on(parts, upload),
    }
}

/// A request until its answer goes out.
struct Exchange<H> {
    service: Arc<Service<H>>,
    in_flight: InFlight,
    line: LogLine,
    version: Version,
    /// The longest body that a POST to this path may have, where POST is spoken.
    upload_max: Option<usize>,
    /// Answers of so many bytes are counted as long as they are not sent.
    counted_from: usize,
    /// As many requests as may be are under way.
    is_crowded: bool,
    may_ask: bool,
}

impl<H: Handler> Exchange<H> {
    fn is_upload(&self) -> bool {
        self.line.method == Method::POST && self.upload_max.is_some()
    }

    fn is_head(&self) -> bool {
        self.line.method == Method::HEAD
    }

    fn refuse(&self, error: HttpError) -> Response {
        self.service.handler.refuse(self.line.uri.path(), error)
    }

    /// What is spoken at the path, as `Allow` states it.
    fn methods(&self) -> HeaderValue {
        let is_read = self.service.handler.is_read(self.line.uri.path());
        methods(is_read, self.upload_max.is_some())
    }

    /// What is answered without asking the handler.
    fn shortcut(&self, parts: &Parts) -> Option<Response> {
        let (limits, traffic) = (&self.service.limits, &self.service.traffic);
        if !self.may_ask {
            traffic.request_limited();
            let error = HttpError::new(ErrorStatus::TooManyRequests, RATE_LIMIT_EXCEEDED);
            Some(self.refuse(error))
        } else if let Err(error) = check_size(parts, limits) {
            Some(self.refuse(error))
        } else if self.is_crowded {
            traffic.request_refused();
            Some(self.refuse(HttpError::unavailable("Too many requests")))
        } else if parts.method == Method::OPTIONS {
            Some(options_response(self.methods()))
        } else if self.is_head() || self.is_upload() || parts.method == Method::GET {
            None
        } else {
            let error = HttpError::new(ErrorStatus::MethodNotAllowed, "Method not allowed");
            Some(self.refuse(error))
        }
    }

    fn go_on(self, parts: Parts, upload: Upload) -> Responding {
        if let Some(response) = self.shortcut(&parts) {
            let (version, vitals) = (self.version, Arc::clone(self.in_flight.vitals()));
            let answer = self.finish(response);
            return match upload {
                Upload::Coming(upload) if version < Version::HTTP_2 && !upload.is_end_stream() => {
                    Responding::later(async move { let_go(upload, &vitals, answer).await })
                }
                _ => Responding::Now(answer),
            };
        }
        let Some(most) = self.upload_max.filter(|_| self.is_upload()) else {
            return self.handle(parts, Bytes::new());
        };
        Responding::later(async move {
            let (limits, traffic) = (&self.service.limits, &self.service.traffic);
            let holding = Holding::new(traffic.unsent(), Some(Arc::clone(self.in_flight.vitals())));
            match read_upload(upload, most, limits, holding, traffic).await {
                Ok(upload) => self.handle(parts, upload).answer().await,
                Err(error) => {
                    self.in_flight.vitals().refuse_upload();
                    let response = self.refuse(error);
                    self.finish(response)
                }
            }
        })
    }

    /// The handler's answer, in time and fenced against panics.
    fn handle(self, parts: Parts, upload: Bytes) -> Responding {
        let request = Request {
            parts,
            upload,
            id: self.line.id.clone(),
            operation: self.line.operation.clone(),
            vitals: Some(Arc::clone(self.in_flight.vitals())),
            trusts_proxy: self.service.limits.trust_proxy,
        };
        // Both the call and the future it gives are fenced.
        match catch_unwind(AssertUnwindSafe(|| self.service.handler.handle(request))) {
            Ok(Handled::Now(response)) => Responding::Now(self.finish(response)),
            Ok(Handled::Later(answer)) => Responding::later(async move {
                let answer = AssertUnwindSafe(answer).catch_unwind();
                let response = match tokio::time::timeout(self.service.limits.answer_timeout, answer).await {
                    Ok(Ok(response)) => response,
                    Ok(Err(_)) => self.panicked(),
                    Err(_) => {
                        let id = self.line.id.as_str();
                        tracing::warn!(target: "quarry::http", request_id = id, "a handler took too long");
                        self.refuse(HttpError::unavailable("The answer took too long"))
                    }
                };
                self.finish(response)
            }),
            Err(_) => {
                let response = self.panicked();
                Responding::Now(self.finish(response))
            }
        }
    }

    fn panicked(&self) -> Response {
        let id = self.line.id.as_str();
        tracing::error!(target: "quarry::http", request_id = id, "a handler panicked");
        self.refuse(HttpError::internal("a handler panicked"))
    }

    /// Adds what every answer has, and watches it from now on.
    fn finish(mut self, mut response: Response) -> hyper::Response<Outgoing> {
        let (traffic, head_only) = (&self.service.traffic, self.is_head());
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            let methods = self.methods();
            response.headers_mut().insert(ALLOW, methods);
        }
        if !head_only
            && let Body::Full(bytes) = response.body()
            && bytes.len() >= self.counted_from
            && let Err(error) = traffic
                .unsent()
                .refuse_made(bytes.len(), self.in_flight.vitals().held())
        {
            traffic.list_refused();
            response = self.refuse(error);
        }
        add_cors(response.headers_mut());
        forbid_guessing(response.headers_mut());
        response.headers_mut().insert(X_REQUEST_ID, self.line.id.header());
        self.line.status = response.status();
        self.line.own.begin(clock::now() - self.line.began);
        if head_only {
            drop_body(&mut response);
        }
        response.map(|mut body| {
            match &mut body {
                Body::Full(bytes) if bytes.len() >= self.counted_from => {
                    self.in_flight.weigh(bytes.len());
                    *bytes = traffic.unsent().hold_body(std::mem::take(bytes));
                }
                Body::Shared(shared) if shared.bytes().len() >= self.counted_from => {
                    body = Body::Full(shared.clone().hand_out(traffic.unsent()));
                }
                Body::Empty | Body::Full(_) | Body::Shared(_) => {}
                Body::Stream(stream) => {
                    stream.set_timeout(self.service.limits.body_timeout);
                    self.in_flight.weigh(stream.weight());
                    if self.version < Version::HTTP_11 {
                        self.in_flight.vitals().end_by_closing();
                    }
                }
            }
            Outgoing {
                body,
                in_flight: self.in_flight,
                line: self.line,
            }
        })
    }
}

/// Shorter uploads are not counted.
const UPLOAD_COUNTED_FROM: usize = 16 << 10;

/// What of an upload is read and thrown away, and for how long.
const UPLOAD_BYTES_MAX: usize = 1 << 20;
const UPLOAD_TIME_MAX: Duration = Duration::from_secs(2);

/// So much of an upload is thrown away before its answer goes out, where it is there, so that the connection can be kept.
const UPLOAD_AT_HAND_MAX: usize = 64 << 10;

/// Reads a body that nobody asked for. HTTP/2 resets a stream whose answer ends before its upload does, and some
/// clients lose the answer over it; HTTP/1 reads on when the answer is out ([`let_go`]).
async fn drop_upload(mut upload: Incoming) {
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

/// Lets go of a body over HTTP/1 that nobody asked for, when its answer is made. Where more of it is to come the connection ends with the
/// answer, and reads on before it is closed: else what comes would reset it, and could take the answer with it.
async fn let_go(
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

fn check_size(parts: &Parts, limits: &Limits) -> Result<(), HttpError> {
    let Parts {
        uri,
        headers,
        version,
        ..
    } = parts;
    // An authority in a request line is a part of its target; with HTTP/2 it is the host, and a header of its own.
    let authority = uri.authority().filter(|_| *version < Version::HTTP_2);
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len())
        + authority.map_or(0, |authority| authority.as_str().len());
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
