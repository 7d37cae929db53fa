//! Requests out of bytes: one or a batch, each with its id as it came.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::fault::Fault;

/// Most requests of a batch.
pub(super) const BATCH_MAX: usize = 1000;

/// A request, or what is wrong with it.
#[derive(Debug)]
pub(super) struct Message {
    /// The id as it came, JSON; `None` for a notification, which is not answered.
    pub(super) id: Option<Box<RawValue>>,
    pub(super) call: Result<Call, Fault>,
}

/// What is asked.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: String,
    pub(super) params: Option<Box<RawValue>>,
}

/// What a body holds.
#[derive(Debug)]
pub(super) enum Body {
    One(Message),
    Batch(Vec<Message>),
}

#[derive(Deserialize)]
struct Shape<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

/// `null` is a value and not the same as nothing.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(value: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(value).map(Some)
}

impl Body {
    /// Reads a body.
    pub(super) fn read(text: &[u8]) -> Result<Self, Fault> {
        let whole: &RawValue = serde_json::from_slice(text).map_err(|_| Fault::parse())?;
        if !whole.get().starts_with('[') {
            return Ok(Self::One(Message::read(whole)));
        }
        let items: Vec<&RawValue> = serde_json::from_str(whole.get()).map_err(|_| Fault::parse())?;
        match items.len() {
            0 => Err(Fault::request("The batch is empty")),
            1..=BATCH_MAX => Ok(Self::Batch(items.into_iter().map(Message::read).collect())),
            _ => Err(Fault::request(format!(
                "A batch may hold at most {BATCH_MAX} requests"
            ))),
        }
    }
}

impl Message {
    fn read(value: &RawValue) -> Self {
        let invalid = |id: Option<&RawValue>, message: &'static str| Self {
            id: Some(id.unwrap_or(RawValue::NULL).to_owned()),
            call: Err(Fault::request(message)),
        };
        if !value.get().starts_with('{') {
            return invalid(None, "A request is an object");
        }
        // It is an object of JSON, so what fails is a key that stands there twice.
        let Ok(shape) = serde_json::from_str::<Shape<'_>>(value.get()) else {
            return invalid(None, "A request has each of jsonrpc, id, method and params once");
        };
        let is_id = |id: &RawValue| {
            let text = id.get();
            text == "null"
                || text.starts_with(|first: char| first == '"' || first == '-' || first.is_ascii_digit())
        };
        if shape.id.is_some_and(|id| !is_id(id)) {
            return invalid(None, "An id is a number, a text or null");
        }
        if shape.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
            return invalid(shape.id, "A request has \"jsonrpc\": \"2.0\"");
        }
        let method = shape
            .method
            .and_then(|method| serde_json::from_str::<String>(method.get()).ok());
        let Some(method) = method else {
            return invalid(shape.id, "A request has a method, a text");
        };
        Self {
            id: shape.id.map(ToOwned::to_owned),
            call: Ok(Call {
                method,
                params: shape.params.map(ToOwned::to_owned),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> (Option<String>, Result<String, i64>) {
        let Ok(Body::One(message)) = Body::read(text.as_bytes()) else {
            panic!("one request was expected: {text}");
        };
        (
            message.id.map(|id| id.get().to_owned()),
            message.call.map(|call| call.method).map_err(|fault| fault.code),
        )
    }

    #[test]
    fn ids_are_kept_as_they_came() {
        for id in [
            "1",
            "-7",
            "1.50",
            "1e3",
            "null",
            "\"a\\u0062 \\\"\"",
            "123456789012345678901234567890",
        ] {
            let text = format!(r#" {{"id": {id}, "method":"m","jsonrpc":"2.0"}} "#);
            assert_eq!(one(&text), (Some(id.to_owned()), Ok("m".to_owned())), "{id}");
        }
        let notification = r#"{"jsonrpc":"2.0","method":"m","params":[1]}"#;
        assert_eq!(one(notification), (None, Ok("m".to_owned())));
    }

    #[test]
    fn what_is_no_request_is_said() {
        let null = Some("null".to_owned());
        for text in [
            "1",
            "\"text\"",
            "null",
            "{}",
            r#"{"jsonrpc":"2.0","method":"m","id":{}}"#,
            r#"{"jsonrpc":"2.0","method":"m","id":[1]}"#,
            r#"{"jsonrpc":"2.0","method":"m","id":true}"#,
            r#"{"jsonrpc":"2.0","method":"m","id":1,"id":2}"#,
            r#"{"jsonrpc":"2.0","method":"m","method":"n","id":1}"#,
            r#"{"jsonrpc":"2.0","method":1}"#,
        ] {
            assert_eq!(one(text), (null.clone(), Err(-32600)), "{text}");
        }
        for text in [
            r#"{"jsonrpc":"1.0","method":"m","id":5}"#,
            r#"{"method":"m","id":5}"#,
            r#"{"jsonrpc":"2.0","id":5}"#,
            r#"{"jsonrpc":"2.0","method":null,"id":5}"#,
        ] {
            assert_eq!(one(text), (Some("5".to_owned()), Err(-32600)), "{text}");
        }
        let code = |text: &[u8]| Body::read(text).map(drop).map_err(|fault| fault.code);
        let nested = "[".repeat(200_000);
        for text in [b"".as_slice(), b"{", b"[1,", b"\xff", b"{} {}", nested.as_bytes()] {
            assert_eq!(code(text), Err(-32700));
        }
        assert_eq!(code(b"[]"), Err(-32600));
        let many = format!("[{}1]", "1,".repeat(BATCH_MAX));
        assert_eq!(code(many.as_bytes()), Err(-32600));
        let closed = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(code(closed.as_bytes()), Ok(()));
    }
}
