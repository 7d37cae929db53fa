//! `{"status", "message", "result"}`, in which everything is said.

use serde::Serialize;

use crate::desk::answer::{Answer, Snapshot};
use crate::desk::caching::Reach;
use crate::desk::frames::RowSource;
use crate::desk::lists::{Envelope, Found, ListParams};
use crate::http::{ErrorStatus, HttpError, Response, StatusCode, header, header_number, json_response};

/// What an empty list is called.
pub(super) const NO_TRANSACTIONS: &str = "No transactions found";
/// The same of logs.
pub(super) const NO_RECORDS: &str = "No records found";

/// What is said where there is no such thing, by actions that do not take that for a mistake.
const NO_DATA: &str = "No data found";

/// What is said where a module has no such action.
pub(super) const UNKNOWN_ACTION: &str = "Missing Or invalid Action name";

#[derive(Serialize)]
struct Body<'a, T> {
    status: &'a str,
    message: &'a str,
    result: T,
}

/// A result.
pub(super) fn ok(result: &impl Serialize, reach: Reach) -> Result<Answer, HttpError> {
    let body = Body {
        status: "1",
        message: "OK",
        result,
    };
    Answer::json(&body, reach)
}

/// A result, and who told it.
pub(super) fn sourced(
    result: &impl Serialize,
    source: &'static str,
    reach: Reach,
) -> Result<Answer, HttpError> {
    Ok(ok(result, reach)?.balances_by(source))
}

/// A list without items.
pub(super) fn empty(message: &str) -> Result<Answer, HttpError> {
    let none: [(); 0] = [];
    let body = Body {
        status: "0",
        message,
        result: none,
    };
    Ok(Answer::json(&body, Reach::Head)?.with(|extra| extra.total = Some(0)))
}

/// No result: clients look for these words.
pub(super) fn no_data() -> Result<Answer, HttpError> {
    let body = Body {
        status: "0",
        message: NO_DATA,
        result: None::<()>,
    };
    Answer::json(&body, Reach::Head)
}

/// A page past the end of a list that need not be empty.
fn past_the_end(list: &ListParams, found: Found, message: &str) -> Result<Answer, HttpError> {
    Ok(empty(message)?.with(|extra| *extra = list.extra(found)))
}

/// A list that is known as a whole; an empty one is said to be.
pub(super) fn items<T: Serialize>(items: &[T], reach: Reach) -> Result<Answer, HttpError> {
    if items.is_empty() {
        return empty(NO_TRANSACTIONS);
    }
    Ok(ok(&items, reach)?.with(|extra| extra.total = Some(items.len() as u64)))
}

/// A page of items at hand; one without any is said to be.
pub(super) fn items_of<T: Serialize>(
    list: &ListParams,
    found: Found,
    items: &[T],
) -> Result<Answer, HttpError> {
    if items.is_empty() {
        return past_the_end(list, found, NO_TRANSACTIONS);
    }
    Ok(ok(&items, found.reach)?.with(|extra| *extra = list.extra(found)))
}

/// A page of rows; one without any is said to be, by `none`.
pub(super) fn page(
    snapshot: &Snapshot,
    list: &ListParams,
    found: Found,
    none: &str,
    mut rows: impl RowSource,
) -> Result<Answer, HttpError> {
    if rows.places().count() == 0 {
        return past_the_end(list, found, none);
    }
    let envelope = Envelope(br#"{"status":"1","message":"OK","result":["#.to_vec());
    list.answer(snapshot, envelope, found, rows)
}

/// What a refusal is called by Etherscan.
fn wording(error: &HttpError) -> String {
    match (error.status(), error.text()) {
        (ErrorStatus::TooManyRequests, _) => "Max rate limit reached".to_owned(),
        // Clients look for these as they are.
        (_, text @ "Contract source code not verified") => text.to_owned(),
        (_, text) if text.starts_with("Missing or unsupported chainid") => text.to_owned(),
        (_, "Invalid transaction hash format") => "Error! Invalid transaction hash".to_owned(),
        (_, text) => format!("Error! {text}"),
    }
}

/// A refusal. Its HTTP status is 200 for those that a client hears by the envelope; what the transport refuses
/// (`by_transport`) keeps its own, and so do 429 and 503.
pub(super) fn refusal(error: &HttpError, by_transport: bool) -> Response {
    let body = Body {
        status: "0",
        message: "NOTOK",
        result: wording(error),
    };
    let keeps = by_transport || error.retry_after().is_some();
    let status = if keeps {
        error.status().code()
    } else {
        StatusCode::OK
    };
    // Serializing text into memory has no way to fail; the fallback keeps this total.
    let body = serde_json::to_vec(&body).unwrap_or_else(|_| {
        br#"{"status":"0","message":"NOTOK","result":"Error! Internal server error"}"#.to_vec()
    });
    let mut response = json_response(status, body);
    if let Some(seconds) = error.retry_after() {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, header_number(seconds));
    }
    response
}

/// The same of the proxy module, whose answers are JSON-RPC's.
pub(super) fn proxy_refusal(error: &HttpError) -> Response {
    #[derive(Serialize)]
    struct Refusal<'a> {
        jsonrpc: &'a str,
        id: u8,
        error: Fault<'a>,
    }
    #[derive(Serialize)]
    struct Fault<'a> {
        code: i32,
        message: &'a str,
    }
    let code = match error.status() {
        ErrorStatus::BadRequest if error.text() == UNKNOWN_ACTION => -32601,
        ErrorStatus::BadRequest => -32602,
        ErrorStatus::Internal => -32603,
        ErrorStatus::NotFound => -32601,
        _ => -32000,
    };
    let body = Refusal {
        jsonrpc: "2.0",
        id: 1,
        error: Fault {
            code,
            message: error.text(),
        },
    };
    let body = serde_json::to_vec(&body).unwrap_or_default();
    json_response(StatusCode::OK, body)
}
