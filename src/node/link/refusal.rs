//! Errors of a node, which are not always written as JSON-RPC has them.

use super::Passed;
use super::secret::Secret;
use crate::node::error::NodeError;
use alloy_json_rpc::ErrorPayload;
use serde::Deserialize;
use serde_json::value::RawValue;

/// JSON-RPC's code of an internal error.
const INTERNAL_ERROR: i64 = -32603;

/// What a node says of a failure.
pub(super) struct ErrorObject {
    pub(super) code: i64,
    pub(super) message: String,
    data: Option<Box<RawValue>>,
}

/// An error object as it stands.
#[derive(Deserialize)]
struct StatedError<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    data: Option<Box<RawValue>>,
}

impl ErrorObject {
    /// Takes an error for one whatever its shape: the words alone, a code in quotation marks or that is a word, a message that
    /// is none. Without a code it has that of an internal error.
    pub(super) fn of(raw: &str) -> Self {
        let Ok(stated) = serde_json::from_str::<StatedError<'_>>(raw) else {
            return Self {
                code: INTERNAL_ERROR,
                message: words(raw),
                data: None,
            };
        };
        let told = |field: Option<&RawValue>| field.map_or_else(String::new, |field| words(field.get()));
        let (code, mut message) = (told(stated.code), told(stated.message));
        let number = code.trim().parse().ok();
        if number.is_none() && !code.is_empty() {
            message = match message.is_empty() {
                true => code,
                false => format!("{code}: {message}"),
            };
        }
        Self {
            code: number.unwrap_or(INTERNAL_ERROR),
            message,
            data: stated.data,
        }
    }

    /// Whether it tells what a contract does, which must be of the call that was asked. Other errors may come without an id: a
    /// server that has not read the request, or does not know its method, need not know whose it is.
    pub(super) fn speaks_of_a_call(&self, method: &'static str) -> bool {
        matches!(self.named(method), NodeError::Execution { .. })
    }

    /// Whether it asks for fewer requests, which is of all that are in flight.
    pub(super) fn asks_for_fewer(&self) -> bool {
        matches!(self.named(""), NodeError::RateLimited { .. })
    }

    fn named(&self, method: &'static str) -> NodeError {
        NodeError::of_rpc(method, self.code, &self.message)
    }

    /// The same in the words of alloy.
    pub(super) fn payload(&self) -> ErrorPayload {
        ErrorPayload {
            code: self.code,
            message: self.message.clone().into(),
            data: self.data.clone(),
        }
    }

    /// The same without what no text may show.
    pub(super) fn passed<T>(self, secret: &Secret) -> Passed<T> {
        Passed::Error {
            code: self.code,
            message: secret.hide(&self.message),
            data: self.data.map(|data| secret.hide_in(data)),
        }
    }
}

/// What a string says; the text of what is none.
fn words(raw: &str) -> String {
    match raw {
        "null" => String::new(),
        raw => serde_json::from_str(raw).unwrap_or_else(|_| raw.to_owned()),
    }
}
