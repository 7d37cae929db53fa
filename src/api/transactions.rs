//! X1: whether a transaction succeeded. X2: and why it did not.

use serde::Serialize;

use crate::http::{HttpError, parse_hash};
use crate::query::{CallNames, Execution, TransactionStatus};

use super::answer::{Answer, Plan};
use super::caching::Reach;
use super::faults::{INVALID_HASH, TRANSACTION_NOT_FOUND, needs_traces, query_failed};
use super::input::Input;
use super::revert;

#[derive(Serialize)]
struct Status {
    status: u8,
    hash: String,
}

pub(super) fn status(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let hash = input.segment(0, parse_hash, || HttpError::bad_request(INVALID_HASH))?;
    Ok(Plan::quick(move |snapshot| {
        let outcome = snapshot.reader.transaction_outcome(&hash).map_err(query_failed)?;
        let status = match outcome.status {
            TransactionStatus::Unknown => return Err(HttpError::not_found(TRANSACTION_NOT_FOUND)),
            TransactionStatus::NeedsTraces => return Err(needs_traces()),
            TransactionStatus::Succeeded => 1,
            TransactionStatus::Failed => 0,
        };
        let reach = Reach::of_transaction(outcome.is_final);
        let answer = Status {
            status,
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
        let mut custom = false;
        let (is_error, err_description) = match snapshot.reader.execution(&hash).map_err(query_failed)? {
            Execution::Unknown => return Err(HttpError::not_found(TRANSACTION_NOT_FOUND)),
            Execution::NeedsTraces => return Err(needs_traces()),
            Execution::Succeeded => (0, String::new()),
            Execution::Failed { error, output } => {
                let selector = revert::custom_selector(&output);
                custom = selector.is_some();
                let known = selector
                    .map(|selector| CallNames::new(&snapshot.reader)?.error(&hash, &output, selector));
                let known = known.transpose().map_err(query_failed)?.flatten();
                (1, revert::describe(&error, &output, known.as_ref()))
            }
        };
        let is_final = snapshot
            .reader
            .is_final_transaction(&hash)
            .map_err(query_failed)?;
        let answer = ContractStatus {
            hash: const_hex::encode_prefixed(hash),
            chain: snapshot.chain.as_str(),
            is_error,
            err_description,
        };
        // An ABI that is imported later may name it otherwise.
        Answer::json(&answer, Reach::of_transaction(is_final && !custom))
    }))
}
