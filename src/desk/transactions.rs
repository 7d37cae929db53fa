//! Whether a transaction succeeded (X1), and why it did not (X2).

use crate::http::HttpError;
use crate::model::B256;
use crate::query::{CallNames, Execution, TransactionStatus};

use super::answer::Snapshot;
use super::caching::Reach;
use super::faults::{TRANSACTION_NOT_FOUND, needs_traces, query_failed};
use super::revert;

/// Whether a transaction succeeded, and what that speaks of.
pub(crate) fn succeeded(snapshot: &Snapshot, hash: &B256) -> Result<(bool, Reach), HttpError> {
    let outcome = snapshot.reader.transaction_outcome(hash).map_err(query_failed)?;
    let succeeded = match outcome.status {
        TransactionStatus::Unknown => return Err(HttpError::not_found(TRANSACTION_NOT_FOUND)),
        TransactionStatus::NeedsTraces => return Err(needs_traces()),
        TransactionStatus::Succeeded => true,
        TransactionStatus::Failed => false,
    };
    Ok((succeeded, Reach::of_transaction(outcome.is_final)))
}

/// Why a transaction failed, `None` where it did not; and what that speaks of.
pub(crate) fn failure(snapshot: &Snapshot, hash: &B256) -> Result<(Option<String>, Reach), HttpError> {
    let mut custom = false;
    let failure = match snapshot.reader.execution(hash).map_err(query_failed)? {
        Execution::Unknown => return Err(HttpError::not_found(TRANSACTION_NOT_FOUND)),
        Execution::NeedsTraces => return Err(needs_traces()),
        Execution::Succeeded => None,
        Execution::Failed { error, output } => {
            let selector = revert::custom_selector(&output);
            custom = selector.is_some();
            let known =
                selector.map(|selector| CallNames::new(&snapshot.reader)?.error(hash, &output, selector));
            let known = known.transpose().map_err(query_failed)?.flatten();
            Some(revert::describe(&error, &output, known.as_ref()))
        }
    };
    let is_final = snapshot.reader.is_final_transaction(hash).map_err(query_failed)?;
    // An ABI that is imported later may name it otherwise.
    Ok((failure, Reach::of_transaction(is_final && !custom)))
}
