//! Answers, and the headers that every answer has.

use hyper::StatusCode;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, RETRY_AFTER,
};

use super::body::Body;
use super::error::HttpError;

/// An answer before the transport adds its own headers.
pub type Response = hyper::Response<Body>;

/// The methods spoken at a path, as `Allow` states them.
pub(super) const fn methods(is_read: bool, takes_uploads: bool) -> HeaderValue {
    HeaderValue::from_static(match (is_read, takes_uploads) {
        (true, true) => "GET, HEAD, POST, OPTIONS",
        (true, false) => "GET, HEAD, OPTIONS",
        (false, true) => "POST, OPTIONS",
        (false, false) => "OPTIONS",
    })
}
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ANY: HeaderValue = HeaderValue::from_static("*");
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "ETag, Link, Retry-After, X-Balance-Source, X-Finalized-Block-Number, X-Indexed-Block-Hash, \
     X-Indexed-Block-Number, X-Nonce-Source, X-Request-Id, X-Total-Count",
);
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A JSON answer.
#[must_use]
pub fn json_response(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    // Room for all that an answer gets: growing step by step costs more than filling.
    *response.headers_mut() = HeaderMap::with_capacity(12);
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// A decimal number as a header value.
#[must_use]
pub fn header_number(number: u64) -> HeaderValue {
    HeaderValue::from(number)
}

impl From<HttpError> for Response {
    fn from(error: HttpError) -> Self {
        let mut response = json_response(error.status().code(), error.body());
        let headers = response.headers_mut();
        if let Some(seconds) = error.retry_after() {
            headers.insert(RETRY_AFTER, header_number(seconds));
        }
        response
    }
}

/// The answer to OPTIONS, CORS preflight included.
pub(super) fn options_response(methods: HeaderValue) -> Response {
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(ALLOW, methods.clone());
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ANY);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

/// Adds the headers that let pages of other origins read an answer.
pub(super) fn add_cors(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
}
