//! What the transport asks of whoever answers.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use hyper::header::HOST;
use hyper::http::request::Parts;
use hyper::http::uri::Authority;

use super::error::HttpError;
use super::request_id::RequestId;
use super::response::Response;
use super::traffic::Traffic;
use super::underway::OperationSlot;
use super::unsent::{Holding, Unsent};
use super::vitals::Vitals;

/// A request within the transport's limits: GET, HEAD, or POST where the handler takes uploads.
#[derive(Debug)]
pub struct Request {
    pub(super) parts: Parts,
    pub(super) upload: Bytes,
    pub(super) id: RequestId,
    pub(super) operation: OperationSlot,
    pub(super) vitals: Option<Arc<Vitals>>,
    /// Whether what a proxy says of the client's request is so.
    pub(super) trusts_proxy: bool,
}

impl Request {
    /// A request that came by another way than a connection.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        Self {
            id: RequestId::of(parts.headers.get(super::response::X_REQUEST_ID)),
            operation: OperationSlot::default(),
            vitals: None,
            trusts_proxy: false,
            upload: Bytes::new(),
            parts,
        }
    }

    /// The same request with a body.
    #[must_use]
    pub fn with_upload(mut self, upload: Bytes) -> Self {
        self.upload = upload;
        self
    }

    /// The body; empty but for POST.
    #[must_use]
    pub const fn upload(&self) -> &Bytes {
        &self.upload
    }

    /// Whether it is a POST.
    #[must_use]
    pub fn is_post(&self) -> bool {
        self.parts.method == hyper::Method::POST
    }

    /// The path, percent-encoded as it came.
    #[must_use]
    pub fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// The query, percent-encoded as it came; empty when absent.
    #[must_use]
    pub fn query(&self) -> &str {
        self.parts.uri.query().unwrap_or_default()
    }

    /// The headers.
    #[must_use]
    pub const fn headers(&self) -> &hyper::HeaderMap {
        &self.parts.headers
    }

    /// By which scheme and authority the client found the service, without a path: as the request says it, and with a proxy before
    /// the service as that says it (`X-Forwarded-Proto`).
    #[must_use]
    pub fn origin(&self) -> String {
        let Parts { uri, headers, .. } = &self.parts;
        // HTTP/2 has it in place of the header.
        let host = || headers.get(HOST).and_then(|host| host.to_str().ok());
        let authority = uri.authority().map(Authority::as_str).or_else(host);
        let authority = authority.filter(|authority| !authority.is_empty());
        let forwarded = || headers.get_all("x-forwarded-proto").iter().next_back();
        let told = self.trusts_proxy.then(forwarded).flatten();
        let told = told.and_then(|told| told.to_str().ok()?.rsplit(',').next());
        let is_secure = told.is_some_and(|told| told.trim().eq_ignore_ascii_case("https"));
        let scheme = if is_secure { "https" } else { "http" };
        format!("{scheme}://{}", authority.unwrap_or("localhost"))
    }

    /// Whether only the headers of the answer are wanted. The answer is the same; its body is dropped.
    #[must_use]
    pub fn is_head(&self) -> bool {
        self.parts.method == hyper::Method::HEAD
    }

    /// Says which operation this is, by its place in the list that [`Traffic`] was made with.
    pub fn name_operation(&self, place: usize) {
        self.operation.set(place);
    }

    /// The place that was said; `usize::MAX` before.
    #[must_use]
    pub fn operation(&self) -> usize {
        self.operation.get()
    }

    /// Counts what is held for it until that is dropped.
    #[must_use]
    pub fn hold(&self, unsent: &Unsent) -> Holding {
        Holding::new(unsent, self.vitals.clone())
    }

    /// Bytes of answers that its connection has asked for and not taken.
    #[must_use]
    pub fn holds(&self) -> usize {
        self.vitals.as_ref().map_or(0, |vitals| vitals.held())
    }

    /// The request's id.
    #[must_use]
    pub const fn id(&self) -> &RequestId {
        &self.id
    }
}

/// What comes of a request. hyper moves it about until it is sent, so that one at hand is given as it is: the future that would
/// make it is four times as large.
pub enum Handled<T = Response> {
    /// The answer: it was at hand.
    Now(T),
    /// The answer comes.
    Later(Pin<Box<dyn Future<Output = T> + Send>>),
}

impl<T> Handled<T> {
    /// An answer in the making.
    pub fn later(answer: impl Future<Output = T> + Send + 'static) -> Self {
        Self::Later(Box::pin(answer))
    }

    /// The answer, waited for.
    pub async fn answer(self) -> T {
        match self {
            Self::Now(response) => response,
            Self::Later(answer) => answer.await,
        }
    }
}

impl<R: Into<Response>> From<R> for Handled {
    fn from(answer: R) -> Self {
        Self::Now(answer.into())
    }
}

/// Answers requests. Must not block: blocking work goes to a [`super::Pool`].
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. A panic becomes an internal error.
    fn handle(&self, request: Request) -> Handled;

    /// Whether GET and HEAD are spoken at `path`; a handler refuses them itself where not.
    fn is_read(&self, _path: &str) -> bool {
        true
    }

    /// Whether what is read at `path` is at hand, whatever else is under way, and holds nothing: it is answered also while as many
    /// requests are as may be.
    fn is_always_answered(&self, _path: &str) -> bool {
        false
    }

    /// The longest body, bytes, that a POST to `path` may have; `None` where POST is not spoken.
    fn upload_bytes_max(&self, _path: &str) -> Option<usize> {
        None
    }

    /// A refusal at `path` that is said before [`Handler::handle`] is asked, or in its place, in the words of those who
    /// ask there.
    fn refuse(&self, _path: &str, error: HttpError) -> Response {
        error.into()
    }

    /// Where requests are counted; asked for once.
    fn traffic(&self) -> Arc<Traffic> {
        Arc::default()
    }
}
