//! Errors of a node, which are not always written as JSON-RPC has them.

use super::Passed;
use super::secret::Secret;
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
