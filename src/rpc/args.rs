//! Parameters: taken one after the other, each under the name by which messages speak of it.

use serde_json::Value;
use serde_json::value::RawValue;

use super::fault::Fault;
use crate::desk::answer::Snapshot;
use crate::desk::faults::{BLOCK_NOT_FOUND, query_failed};
use crate::desk::proxy::Tag;
use crate::http::{HttpError, parse_address, parse_hash, parse_quantity};
use crate::model::{Address, B256};

/// What a block is named by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockRef {
    Tag(Tag),
    Hash(B256),
}

const BLOCK: &str = "a hex number, latest, earliest, safe, finalized, pending, or a block hash";

impl BlockRef {
    /// Reads a tag, a number, a hash, or an object of EIP-1898.
    pub(super) fn read(name: &str, value: &Value) -> Result<Self, Fault> {
        let invalid = || Fault::invalid(name, BLOCK);
        match value {
            // What is not in a block yet is not served: the newest one stands for it.
            Value::String(text) if text == "pending" => Ok(Self::Tag(Tag::Latest)),
            Value::String(text) if text.len() == 66 => parse_hash(text).map(Self::Hash).ok_or_else(invalid),
            Value::String(text) => Tag::parse(text).map(Self::Tag).map_err(|_| invalid()),
            Value::Number(number) => number
                .as_u64()
                .map(|number| Self::Tag(Tag::Number(number)))
                .ok_or_else(invalid),
            Value::Object(object) => match (object.get("blockNumber"), object.get("blockHash")) {
                (Some(number @ (Value::String(_) | Value::Number(_))), None) => Self::read(name, number),
                (None, Some(Value::String(hash))) => parse_hash(hash).map(Self::Hash).ok_or_else(invalid),
                _ => Err(Fault::invalid(name, "either blockNumber or blockHash")),
            },
            _ => Err(invalid()),
        }
    }

    /// The indexed block meant; `None` is the `null` of JSON-RPC.
    pub(super) fn indexed(self, snapshot: &Snapshot) -> Result<Option<u64>, HttpError> {
        match self {
            Self::Tag(tag) => tag.indexed(snapshot),
            Self::Hash(hash) => snapshot.reader.block_number(&hash).map_err(query_failed),
        }
    }

    /// The same as a tag with its number, for questions of state, where a block that does not exist is an error, and one that is not
    /// indexed yet another.
    pub(super) fn tag(self, snapshot: &Snapshot) -> Result<(Tag, u64), HttpError> {
        let found = match self {
            Self::Tag(tag) => tag.number(snapshot).map(|number| (tag, number)),
            Self::Hash(_) => {
                let number = self.indexed(snapshot)?;
                number.map(|number| (Tag::Number(number), number))
            }
        };
        // Nothing may be final yet, or safe.
        let (tag, number) = found.ok_or_else(|| HttpError::not_found(BLOCK_NOT_FOUND))?;
        let extent = snapshot.extent();
        if number > extent.head {
            extent.check_block(number)?;
        }
        Ok((tag, number))
    }
}

/// The parameters of a call.
#[derive(Debug)]
pub(super) struct Args {
    id: Box<RawValue>,
    values: std::vec::IntoIter<Value>,
}

impl Args {
    /// Reads `params`, an array or nothing, of the call with this id.
    pub(super) fn read(id: &RawValue, params: Option<&RawValue>) -> Result<Self, Fault> {
        let text = params.map_or("null", RawValue::get);
        let values: Option<Vec<Value>> = serde_json::from_str(text)
            .map_err(|_| Fault::params("Invalid params: expected an array, nested less than 128 deep"))?;
        Ok(Self {
            id: id.to_owned(),
            values: values.unwrap_or_default().into_iter(),
        })
    }

    /// The call's id, as it came.
    pub(super) fn id(&self) -> &RawValue {
        &self.id
    }

    /// Nothing may be left.
    pub(super) fn end(mut self, method: &str) -> Result<(), Fault> {
        match self.values.find(|value| !value.is_null()) {
            Some(_) => Err(Fault::params(format!("Too many parameters for {method}"))),
            None => Ok(()),
        }
    }

    /// The next one; `None` where it is absent or null.
    pub(super) fn take(&mut self) -> Option<Value> {
        self.values.next().filter(|value| !value.is_null())
    }

    fn require(&mut self, name: &str) -> Result<Value, Fault> {
        self.take().ok_or_else(|| Fault::missing(name))
    }

    pub(super) fn address(&mut self, name: &str) -> Result<Address, Fault> {
        read_address(name, &self.require(name)?)
    }

    pub(super) fn hash(&mut self, name: &str) -> Result<B256, Fault> {
        read_hash(name, &self.require(name)?)
    }

    pub(super) fn number(&mut self, name: &str) -> Result<u64, Fault> {
        read_number(name, &self.require(name)?)
    }

    pub(super) fn block(&mut self, name: &str) -> Result<BlockRef, Fault> {
        BlockRef::read(name, &self.require(name)?)
    }

    pub(super) fn block_or_latest(&mut self, name: &str) -> Result<BlockRef, Fault> {
        let given = self.take();
        given.map_or(Ok(BlockRef::Tag(Tag::Latest)), |value| {
            BlockRef::read(name, &value)
        })
    }

    /// `false` where it is absent.
    pub(super) fn boolean(&mut self, name: &str) -> Result<bool, Fault> {
        match self.take() {
            None => Ok(false),
            Some(Value::Bool(value)) => Ok(value),
            Some(_) => Err(Fault::invalid(name, "true or false")),
        }
    }
}

pub(super) fn read_address(name: &str, value: &Value) -> Result<Address, Fault> {
    let address = value.as_str().and_then(parse_address);
    address.ok_or_else(|| Fault::invalid(name, "an address, 0x and 40 hex digits"))
}

pub(super) fn read_hash(name: &str, value: &Value) -> Result<B256, Fault> {
    let hash = value.as_str().and_then(parse_hash);
    hash.ok_or_else(|| Fault::invalid(name, "0x and 64 hex digits"))
}

/// A hex quantity or a JSON integer.
pub(super) fn read_number(name: &str, value: &Value) -> Result<u64, Fault> {
    let number = value.as_u64().or_else(|| value.as_str().and_then(parse_quantity));
    number.ok_or_else(|| Fault::invalid(name, "a number, as 0x1"))
}

/// One value or an array of them, at most so many.
pub(super) fn read_some<T>(
    name: &str,
    value: &Value,
    most: usize,
    read: impl Fn(&str, &Value) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(values) if values.len() > most => {
            Err(Fault::invalid(name, &format!("at most {most} values")))
        }
        Value::Array(values) => values.iter().map(|value| read(name, value)).collect(),
        value => Ok(vec![read(name, value)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn blocks_are_named_in_many_ways() {
        let read = |value: Value| BlockRef::read("block", &value).map_err(|fault| fault.code);
        let hash = B256::repeat_byte(7);
        for (value, expected) in [
            (json!("latest"), BlockRef::Tag(Tag::Latest)),
            (json!("pending"), BlockRef::Tag(Tag::Latest)),
            (json!("0x10"), BlockRef::Tag(Tag::Number(16))),
            (json!(16), BlockRef::Tag(Tag::Number(16))),
            (json!({"blockNumber": "0x10"}), BlockRef::Tag(Tag::Number(16))),
            (json!(hash.to_string()), BlockRef::Hash(hash)),
            (
                json!({"blockHash": hash.to_string(), "requireCanonical": true}),
                BlockRef::Hash(hash),
            ),
        ] {
            assert_eq!(read(value.clone()), Ok(expected), "{value}");
        }
        for value in [
            json!("16"),
            json!(-1),
            json!(1.5),
            json!(true),
            json!([]),
            json!({}),
            json!({"blockNumber": {"blockNumber": "0x1"}}),
            json!({"blockNumber": "0x1", "blockHash": hash.to_string()}),
            json!(format!("0x{}", "g".repeat(64))),
        ] {
            assert_eq!(read(value.clone()), Err(-32602), "{value}");
        }
    }

    #[test]
    fn parameters_are_an_array() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let code = |text: &str| {
            Args::read(RawValue::NULL, Some(&raw(text)))
                .map(drop)
                .map_err(|fault| fault.code)
        };
        assert_eq!(code("[1, null]"), Ok(()));
        assert_eq!(code("null"), Ok(()));
        assert_eq!(code("{\"a\": 1}"), Err(-32602));
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(code(&deep), Err(-32602));
        let mut args = Args::read(RawValue::NULL, Some(&raw("[null, 5]"))).unwrap();
        assert!(!args.boolean("full").unwrap());
        let fault = args.end("eth_method").unwrap_err();
        assert_eq!(fault.message, "Too many parameters for eth_method");
        let fault = Args::read(RawValue::NULL, None)
            .unwrap()
            .address("address")
            .unwrap_err();
        assert_eq!(
            (fault.code, &*fault.message),
            (-32602, "Missing parameter: address")
        );
    }
}
