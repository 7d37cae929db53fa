//! X1: whether a transaction succeeded. X2: and why it did not.

use serde::Serialize;

use crate::desk::answer::{Answer, Plan};
use crate::desk::faults::INVALID_HASH;
use crate::desk::transactions::{failure, succeeded};
use crate::http::{HttpError, parse_hash};

use super::input::Input;

#[derive(Serialize)]
struct Status {
    status: u8,
    hash: String,
}

pub(super) fn status(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let hash = input.segment(0, parse_hash, || HttpError::bad_request(INVALID_HASH))?;
    Ok(Plan::quick(move |snapshot| {
        let (succeeded, reach) = succeeded(snapshot, &hash)?;
        let answer = Status {
            status: u8::from(succeeded),
            hash: const_hex::encode_prefixed(hash),
        };
        Answer::json(&answer, reach)
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContractStatus {
    hash: String,
    chain: &'static str,
    is_error: u8,
    err_description: String,
}

pub(super) fn contract_status(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let hash = input.segment(0, parse_hash, || HttpError::bad_request(INVALID_HASH))?;
    Ok(Plan::point(move |snapshot| {
        let (failure, reach) = failure(snapshot, &hash)?;
        let answer = ContractStatus {
            hash: const_hex::encode_prefixed(hash),
            chain: snapshot.chain.as_str(),
            is_error: u8::from(failure.is_some()),
            err_description: failure.unwrap_or_default(),
        };
        Answer::json(&answer, reach)
    }))
}
