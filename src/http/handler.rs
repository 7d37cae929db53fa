//! What the transport asks of whoever answers.

use std::pin::Pin;

use hyper::http::request::Parts;

use super::request_id::RequestId;
use super::response::Response;

/// A GET request (HEAD is shown as GET) within the transport's limits.
#[derive(Debug)]
pub struct Request {
    pub(super) parts: Parts,
    pub(super) id: RequestId,
}

impl Request {
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

    /// The request's id.
    #[must_use]
    pub const fn id(&self) -> &RequestId {
        &self.id
    }
}

/// An answer in the making.
pub type HandlerFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Answers requests. Must not block: blocking work goes to a [`super::Pool`].
pub trait Handler: Send + Sync + 'static {
    /// Answers one request. A panic becomes an internal error.
    fn handle(&self, request: Request) -> HandlerFuture;
}
