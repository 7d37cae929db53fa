//! The module `proxy`: JSON-RPC's methods by parameters of their own. What the store answers is asked of it, the rest
//! of the node.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::desk::answer::{Answer, Extra, Plan, Question};
use crate::desk::context::NodeReply;
use crate::desk::faults::{INVALID_ADDRESS, no_node};
use crate::desk::proxy::{self, Tag};
use crate::http::{HttpError, parse_address, parse_quantity};

use crate::model::U256;

use super::ask::Ask;

fn tag_of(text: &str) -> Result<Tag, HttpError> {
    // What is pending is not indexed.
    Tag::parse(if text == "pending" { "latest" } else { text })
}

fn require_tag(ask: &mut Ask<'_>) -> Result<Tag, HttpError> {
    tag_of(&ask.params.require("tag")?)
}

fn tag_or_latest(ask: &mut Ask<'_>) -> Result<Tag, HttpError> {
    let tag = ask.params.take("tag")?;
    tag.map_or(Ok(Tag::Latest), |tag| tag_of(&tag))
}

fn require_index(ask: &mut Ask<'_>) -> Result<u64, HttpError> {
    let index = ask.params.require("index")?;
    parse_quantity(&index).ok_or_else(|| HttpError::invalid("index"))
}

pub(super) fn block_number(_: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::block_number())
}

pub(super) fn block_by_number(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let tag = require_tag(ask)?;
    let full = ask.params.take_bool("boolean")?.unwrap_or(false);
    Ok(proxy::block_by_number(tag, full))
}

pub(super) fn block_transaction_count(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::block_transaction_count(require_tag(ask)?))
}

pub(super) fn transaction_by_hash(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::transaction_by_hash(ask.hash()?))
}

pub(super) fn transaction_by_position(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let tag = require_tag(ask)?;
    Ok(proxy::transaction_by_position(tag, require_index(ask)?))
}

/// `eth_getUncleByBlockNumberAndIndex`.
pub(super) fn uncle(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let tag = tag_or_latest(ask)?;
    Ok(proxy::uncle(tag, require_index(ask)?))
}

pub(super) fn transaction_receipt(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    Ok(proxy::transaction_receipt(ask.hash()?))
}

pub(super) fn transaction_count(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let address = ask.address()?;
    Ok(proxy::transaction_count(address, tag_or_latest(ask)?))
}

/// `eth_call`.
pub(super) fn call(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let call = take_call(ask)?;
    let tag = node_tag(ask)?;
    pass_on("eth_call", &json!([call, tag]))
}

/// `eth_estimateGas`.
pub(super) fn estimate_gas(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let call = take_call(ask)?;
    pass_on("eth_estimateGas", &json!([call]))
}

/// `eth_getCode`.
pub(super) fn code(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let address = ask.address()?;
    let tag = node_tag(ask)?;
    pass_on("eth_getCode", &json!([const_hex::encode_prefixed(address), tag]))
}

/// `eth_getStorageAt`.
pub(super) fn storage(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let address = ask.address()?;
    let position = require_position(ask)?;
    let tag = node_tag(ask)?;
    let params = json!([const_hex::encode_prefixed(address), position, tag]);
    pass_on("eth_getStorageAt", &params)
}

/// `eth_gasPrice`.
pub(super) fn gas_price(_: &mut Ask<'_>) -> Result<Plan, HttpError> {
    pass_on("eth_gasPrice", &json!([]))
}

/// A tag as nodes take it: a number without leading zeros, in lower case.
fn node_tag(ask: &mut Ask<'_>) -> Result<String, HttpError> {
    let Some(text) = ask.params.take("tag")? else {
        return Ok("latest".to_owned());
    };
    match text.as_str() {
        "pending" => Ok(text),
        tag => match Tag::parse(tag)? {
            Tag::Number(number) => Ok(format!("{number:#x}")),
            _ => Ok(text),
        },
    }
}

fn is_hex(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    digits.is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// A number of digits and nothing else, of at most 256 bits.
fn decimal(text: &str) -> Option<U256> {
    let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    digits.then(|| U256::from_str_radix(text, 10).ok()).flatten()
}

/// A slot; clients that know it as a number send it in decimal.
fn require_position(ask: &mut Ask<'_>) -> Result<String, HttpError> {
    let text = ask.params.require("position")?;
    if is_hex(&text) && (3..=66).contains(&text.len()) {
        Ok(text.to_ascii_lowercase())
    } else if let Some(number) = decimal(&text) {
        Ok(format!("{number:#x}"))
    } else {
        Err(HttpError::invalid("position"))
    }
}

/// The object of a call.
fn take_call(ask: &mut Ask<'_>) -> Result<Value, HttpError> {
    let mut call = serde_json::Map::new();
    for name in ["from", "to"] {
        if let Some(text) = ask.params.take(name)? {
            let address = parse_address(&text).ok_or_else(|| HttpError::bad_request(INVALID_ADDRESS))?;
            call.insert(name.to_owned(), json!(const_hex::encode_prefixed(address)));
        }
    }
    if let Some(data) = ask.params.take("data")? {
        if !is_hex(&data) || data.len() % 2 != 0 {
            return Err(HttpError::invalid("data"));
        }
        // Some nodes know no other case of the prefix.
        call.insert("data".to_owned(), json!(data.to_ascii_lowercase()));
    }
    for (name, as_node_says) in [
        ("value", "value"),
        ("gas", "gas"),
        ("gaslimit", "gas"),
        ("gasprice", "gasPrice"),
    ] {
        if let Some(text) = ask.params.take(name)? {
            let quantity = match decimal(&text) {
                Some(decimal) => format!("{decimal:#x}"),
                None if is_hex(&text) && text.len() > 2 => {
                    let text = text.to_ascii_lowercase();
                    let digits = text.get(2..).unwrap_or_default().trim_start_matches('0');
                    format!("0x{}", if digits.is_empty() { "0" } else { digits })
                }
                None => return Err(HttpError::invalid(name)),
            };
            call.insert(as_node_says.to_owned(), json!(quantity));
        }
    }
    Ok(Value::Object(call))
}

/// A plan that asks the node, and gives its result or its error.
fn pass_on(method: &'static str, params: &Value) -> Result<Plan, HttpError> {
    let params = RawValue::from_string(params.to_string())
        .map_err(|error| HttpError::internal(format!("parameters are no JSON: {error}")))?;
    Ok(Plan::point(move |_| {
        let question = Question::new(Err(no_node()), move |node| {
            Box::pin(async move { Ok(render(node.call(method, params).await?)) })
        });
        Ok(Answer::AskNode(question))
    }))
}

fn render(reply: NodeReply) -> Result<Answer, HttpError> {
    let mut body = br#"{"jsonrpc":"2.0","id":1,"#.to_vec();
    match reply {
        NodeReply::Result(result) => {
            body.extend_from_slice(b"\"result\":");
            body.extend_from_slice(result.get().as_bytes());
        }
        NodeReply::Error { code, message, data } => {
            let mut error = json!({ "code": code, "message": message });
            if let (Some(data), Some(error)) = (data, error.as_object_mut()) {
                let data = serde_json::from_str(data.get()).unwrap_or(Value::Null);
                error.insert("data".to_owned(), data);
            }
            body.extend_from_slice(b"\"error\":");
            body.extend_from_slice(error.to_string().as_bytes());
        }
    }
    body.push(b'}');
    Ok(Answer::Whole(body.into(), Extra::default()))
}
