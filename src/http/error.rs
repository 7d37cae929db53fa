//! What is said when a request cannot be answered: one face for the client, one for the log.

use std::borrow::Cow;

use hyper::StatusCode;

/// The statuses an error may have. There is no success among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorStatus {
    /// 400: the request is malformed.
    BadRequest,
    /// 404: what was asked for does not exist.
    NotFound,
    /// 405: another method is spoken here; the transport adds which.
    MethodNotAllowed,
    /// 408: the client took too long to send its body.
    RequestTimeout,
    /// 413: the body is over the limit.
    ContentTooLarge,
    /// 414: the URI is over the limit.
    UriTooLong,
    /// 429: the client asked too often.
    TooManyRequests,
    /// 431: the headers are over the limit.
    HeadersTooLarge,
    /// 500: a bug or a broken store.
    Internal,
    /// 502: the node failed.
    BadGateway,
    /// 503: not now; comes with `Retry-After`.
    Unavailable,
    /// 504: the node did not answer in time.
    GatewayTimeout,
}

impl ErrorStatus {
    /// The HTTP status code.
    #[must_use]
    pub const fn code(self) -> StatusCode {
        match self {
            Self::BadRequest => StatusCode::BAD_REQUEST,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::ContentTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UriTooLong => StatusCode::URI_TOO_LONG,
            Self::TooManyRequests => StatusCode::TOO_MANY_REQUESTS,
            Self::HeadersTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::BadGateway => StatusCode::BAD_GATEWAY,
            Self::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::GatewayTimeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }
}

/// A refusal: status and text for the client, detail for the log only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpError {
    status: ErrorStatus,
    text: Cow<'static, str>,
    detail: Option<String>,
    is_fault: bool,
    retry_after: u64,
}

impl HttpError {
    /// Seconds in `Retry-After` where an error carries one and does not say another number.
    pub const RETRY_AFTER_SECONDS: u64 = 1;

    /// A refusal with this status and client text.
    pub fn new(status: ErrorStatus, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            text: text.into(),
            detail: None,
            is_fault: true,
            retry_after: Self::RETRY_AFTER_SECONDS,
        }
    }

    /// 400 with this text.
    pub fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorStatus::BadRequest, text)
    }

    /// 400 `Missing required parameter: <name>`.
    #[must_use]
    pub fn missing(name: &str) -> Self {
        Self::bad_request(format!("Missing required parameter: {name}"))
    }

    /// 400 `Invalid <name> parameter`.
    #[must_use]
    pub fn invalid(name: &str) -> Self {
        Self::bad_request(format!("Invalid {name} parameter"))
    }

    /// 404 with this text.
    pub fn not_found(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorStatus::NotFound, text)
    }

    /// 503 with this text and `Retry-After`.
    pub fn unavailable(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorStatus::Unavailable, text)
    }

    /// 500: the client reads a fixed sentence, the log keeps `detail`.
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(ErrorStatus::Internal, "Internal server error").with_detail(detail)
    }

    /// The same refusal with a detail for the log.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// The same refusal with a detail that only who looks for it wants to read: nobody failed.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.is_fault = false;
        self.with_detail(reason)
    }

    /// The same refusal where asking again makes sense in so many seconds.
    #[must_use]
    pub const fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = seconds;
        self
    }

    /// The status.
    #[must_use]
    pub const fn status(&self) -> ErrorStatus {
        self.status
    }

    /// What the client reads.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the log keeps.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Whether what the log keeps is somebody's fault: ours or the node's.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        self.is_fault
    }

    /// The seconds of `Retry-After`, where the answer carries it.
    #[must_use]
    pub const fn retry_after(&self) -> Option<u64> {
        match self.status {
            ErrorStatus::Unavailable | ErrorStatus::TooManyRequests => Some(self.retry_after),
            _ => None,
        }
    }

    /// The body: `{"error": "<text>"}`.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        #[derive(serde::Serialize)]
        struct Shown<'a> {
            error: &'a str,
        }
        // Serializing one string into memory has no way to fail; the fallback keeps this total.
        serde_json::to_vec(&Shown { error: &self.text })
            .unwrap_or_else(|_| br#"{"error":"Internal server error"}"#.to_vec())
    }
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status.code().as_u16(), self.text)?;
        match &self.detail {
            Some(detail) => write!(f, ": {detail}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for HttpError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_stays_out_of_the_body() {
        let error = HttpError::internal("table logs, key 0x01");
        assert_eq!(error.body(), br#"{"error":"Internal server error"}"#);
        assert!(error.to_string().contains("table logs"));
    }

    #[test]
    fn texts_are_escaped() {
        let error = HttpError::bad_request("a \"quoted\" one");
        assert_eq!(error.body(), br#"{"error":"a \"quoted\" one"}"#);
    }
}
