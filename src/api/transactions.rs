//! X1: whether a transaction succeeded.

use serde::Serialize;

use crate::http::{HttpError, parse_hash};
use crate::query::TransactionStatus;

use super::answer::{Answer, Plan};
use super::faults::{INVALID_HASH, TRANSACTION_NOT_FOUND, needs_traces, query_failed};
use super::input::Input;

#[derive(Serialize)]
struct Status {
    status: u8,
    hash: String,
}

pub(super) fn status(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let hash = input.segment(0, parse_hash, || HttpError::bad_request(INVALID_HASH))?;
    Ok(Plan::point(move |snapshot| {
        let status = match snapshot.reader.transaction_status(&hash).map_err(query_failed)? {
            TransactionStatus::Unknown => return Err(HttpError::not_found(TRANSACTION_NOT_FOUND)),
            TransactionStatus::NeedsTraces => return Err(needs_traces()),
            TransactionStatus::Succeeded => 1,
            TransactionStatus::Failed => 0,
        };
        Answer::json(&Status {
            status,
            hash: const_hex::encode_prefixed(hash),
        })
    }))
}
