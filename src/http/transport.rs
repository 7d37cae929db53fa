//! The rules that hold for every request, whatever it asks: limits, methods, CORS, ids, the fence
//! against panics, and the line in the log.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, CONTENT_LENGTH, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Version};

use super::body::Body;
use super::caching::forbid_guessing;
use super::error::{ErrorStatus, HttpError};
use super::handler::{Handled, Handler, Request};
use super::limits::Limits;
use super::outgoing::{LogLine, Outgoing};
use super::response::{Response, X_REQUEST_ID, add_cors, methods, options_response};
use super::traffic::Traffic;
use super::unsent::{Holding, Unsent};
use super::upload::{TOO_MANY_REQUESTS, Upload, Waiting, drop_upload, let_go, read_upload};
use super::vitals::{InFlight, Vitals};

pub(super) const URI_TOO_LONG: &str = "URI too long";
const RATE_LIMIT_EXCEEDED: &str = "Rate limit exceeded";
pub(super) const HEADERS_TOO_LARGE: &str = "Request header fields too large";

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
    let (parts, upload) = request.into_parts();
    let line = LogLine::begin(&parts, &service.traffic, in_flight.began());
    let upload_max = service.handler.upload_bytes_max(parts.uri.path());
    let exchange = Exchange {
        service: Arc::clone(service),
        in_flight,
        line,
        version,
        upload_max,
        counted_from: Unsent::counted_from(is_multiplexed),
        may_ask,
    };
    match upload {
        Upload::Coming(upload) if !exchange.is_upload() && !upload.is_end_stream() => {
            Responding::later(async move {
                let mut exchange = exchange;
                if is_multiplexed {
                    exchange.throw_away(upload).await;
                    return exchange.go_on(parts, Upload::None).answer().await;
                }
                // hyper reads a body to its end, or closes the connection, as soon as that is dropped: not before there is an answer.
                let vitals = Arc::clone(exchange.in_flight.vitals());
                let answer = exchange.go_on(parts, Upload::None).answer().await;
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

    /// Where bodies are counted that are waited for: as many may be as requests are answered at once.
    fn waiting(&self) -> Waiting<'_> {
        Waiting {
            traffic: &self.service.traffic,
            vitals: self.in_flight.vitals(),
            most: self.service.limits.requests_max,
        }
    }

    /// Throws a body over HTTP/2 away, before its answer goes out.
    async fn throw_away(&mut self, upload: Incoming) {
        // That time is the client's.
        self.line.own.rest();
        drop_upload(upload, self.upload_max.unwrap_or(0), self.waiting()).await;
        self.line.own.work();
    }

    /// The refusal of a request whose body is still to come.
    async fn turn_away(mut self, upload: Incoming, refusal: Response) -> hyper::Response<Outgoing> {
        if self.version == Version::HTTP_2 {
            self.throw_away(upload).await;
            return self.finish(refusal);
        }
        let vitals = Arc::clone(self.in_flight.vitals());
        let_go(upload, &vitals, self.finish(refusal)).await
    }

    /// Takes a place among the requests that are answered at once, where it needs one.
    fn take_place(&mut self) -> Result<(), HttpError> {
        let Service {
            handler,
            limits,
            traffic,
        } = &*self.service;
        if self.line.underway.take_place(limits.requests_max)
            || handler.is_always_answered(self.line.uri.path())
        {
            return Ok(());
        }
        traffic.request_refused();
        Err(HttpError::unavailable(TOO_MANY_REQUESTS))
    }

    /// What is answered without asking the handler: a refusal, or what costs no more than one. Others have their place afterwards, but
    /// for those whose body is to be read before.
    fn shortcut(&mut self, parts: &Parts) -> Option<Response> {
        let (limits, traffic) = (&self.service.limits, &self.service.traffic);
        let refused = if !self.may_ask {
            traffic.request_limited();
            HttpError::new(ErrorStatus::TooManyRequests, RATE_LIMIT_EXCEEDED)
        } else if let Err(error) = check_size(parts, limits) {
            error
        } else if parts.method == Method::OPTIONS {
            return Some(options_response(self.methods()));
        } else if self.is_upload() {
            if !traffic.is_crowded(limits.requests_max) {
                return None;
            }
            traffic.request_refused();
            HttpError::unavailable(TOO_MANY_REQUESTS)
        } else if self.is_head() || parts.method == Method::GET {
            self.take_place().err()?
        } else {
            HttpError::new(ErrorStatus::MethodNotAllowed, "Method not allowed")
        };
        Some(self.refuse(refused))
    }

    fn go_on(mut self, parts: Parts, upload: Upload) -> Responding {
        if let Some(response) = self.shortcut(&parts) {
            return match upload {
                Upload::Coming(upload) if !upload.is_end_stream() => {
                    Responding::later(self.turn_away(upload, response))
                }
                _ => Responding::Now(self.finish(response)),
            };
        }
        let Some(most) = self.upload_max.filter(|_| self.is_upload()) else {
            return self.handle(parts, Bytes::new());
        };
        Responding::later(async move {
            let mut upload = upload;
            // What a client takes to send its body is no time of ours.
            self.line.own.rest();
            let vitals = Arc::clone(self.in_flight.vitals());
            let holding = Holding::new(self.service.traffic.unsent(), Some(vitals));
            let read = read_upload(&mut upload, most, &self.service.limits, holding, self.waiting()).await;
            self.line.own.work();
            if read.is_err() {
                self.in_flight.vitals().refuse_upload();
                if let Upload::Coming(upload) = upload
                    && self.version == Version::HTTP_2
                {
                    self.throw_away(upload).await;
                }
            }
            match read.and_then(|upload| self.take_place().map(|()| upload)) {
                Ok(upload) => self.handle(parts, upload).answer().await,
                Err(error) => {
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
        self.line.answer(response.status());
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
