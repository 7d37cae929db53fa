//! Errors as JSON-RPC states them.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::desk::NodeReply;
use crate::http::{ErrorStatus, HttpError};
use crate::json::object::Object;
use crate::json::writer;

/// The text is no JSON.
const PARSE_ERROR: i64 = -32700;
/// It is JSON and no request.
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL: i64 = -32603;
/// The node failed.
const NODE_FAILED: i64 = -32000;
/// What was named does not exist (EIP-1474).
const NOT_FOUND: i64 = -32001;
/// It exists and is not there yet.
const UNAVAILABLE: i64 = -32002;
/// More than may be.
const LIMIT: i64 = -32005;

/// An error object.
#[derive(Clone, Debug)]
pub(super) struct Fault {
    pub(super) code: i64,
    pub(super) message: Cow<'static, str>,
    data: Option<Box<RawValue>>,
}

impl Fault {
    fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: None,
        }
    }

    pub(super) fn parse() -> Self {
        Self::new(PARSE_ERROR, "The request is not JSON")
    }

    pub(super) fn request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_REQUEST, message)
    }

    pub(super) fn no_method(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(METHOD_NOT_FOUND, message)
    }

    pub(super) fn params(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(INVALID_PARAMS, message)
    }

    /// A parameter that is there and wrong.
    pub(super) fn invalid(name: &str, expected: &str) -> Self {
        Self::params(format!("Invalid parameter {name}: expected {expected}"))
    }

    pub(super) fn missing(name: &str) -> Self {
        Self::params(format!("Missing parameter: {name}"))
    }

    pub(super) fn limit(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(LIMIT, message)
    }

    /// What a refusal in terms of HTTP is here.
    pub(super) fn of(error: &HttpError) -> Self {
        let code = match error.status() {
            ErrorStatus::BadRequest => INVALID_PARAMS,
            ErrorStatus::NotFound => NOT_FOUND,
            ErrorStatus::Unavailable => UNAVAILABLE,
            ErrorStatus::BadGateway | ErrorStatus::GatewayTimeout => NODE_FAILED,
            ErrorStatus::ContentTooLarge | ErrorStatus::TooManyRequests => LIMIT,
            ErrorStatus::Internal => INTERNAL,
            ErrorStatus::MethodNotAllowed
            | ErrorStatus::RequestTimeout
            | ErrorStatus::UriTooLong
            | ErrorStatus::HeadersTooLarge => INVALID_REQUEST,
        };
        Self::new(code, error.text().to_owned())
    }

    /// About how much memory it holds; a node's own may say much.
    pub(super) fn bytes_held(&self) -> usize {
        let data = self.data.as_ref().map_or(0, |data| data.get().len());
        self.message.len() + data
    }

    /// Appends the error object.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::begin(out);
        let code = object.key("code");
        if self.code < 0 {
            code.push(b'-');
        }
        writer::integer(code, self.code.unsigned_abs());
        object.string("message", &self.message);
        if let Some(data) = &self.data {
            object.key("data").extend_from_slice(data.get().as_bytes());
        }
        object.end();
    }
}

/// What a node said, as a result or an error of ours.
pub(super) fn told(reply: NodeReply) -> Result<Box<RawValue>, Fault> {
    match reply {
        NodeReply::Result(text) => Ok(text),
        NodeReply::Error { code, message, data } => Err(Fault {
            code,
            message: message.into(),
            data,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_objects() {
        let text = |fault: &Fault| {
            let mut out = Vec::new();
            fault.write(&mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            text(&Fault::invalid("block", "a tag")),
            r#"{"code":-32602,"message":"Invalid parameter block: expected a tag"}"#
        );
        let reverted = told(NodeReply::Error {
            code: 3,
            message: "execution \"reverted\"".to_owned(),
            data: Some(RawValue::from_string("\"0x08\"".to_owned()).unwrap()),
        });
        assert_eq!(
            text(&reverted.unwrap_err()),
            r#"{"code":3,"message":"execution \"reverted\"","data":"0x08"}"#
        );
        assert_eq!(Fault::of(&HttpError::unavailable("x")).code, UNAVAILABLE);
        let internal = Fault::of(&HttpError::internal("table logs"));
        assert_eq!(
            (internal.code, &*internal.message),
            (INTERNAL, "Internal server error")
        );
    }
}
