//! The top call of a trace is its transaction again: who calls whom, with what, and whether it failed.
//!
//! Gas is not compared: clients differ in whether the top call pays the intrinsic gas. Whether it failed is held against
//! the receipt's status from Byzantium on only. Before, no hash covers a status, and a creation that could not pay for its
//! code failed by one client's trace and not by another's (Frontier).

use super::error::VerifyError;
use super::expect;
use crate::model::{Address, Frame, FrameKind, Receipt, Transaction, TransactionTrace};

/// Holds each trace's top call against its transaction and, where receipts have a status, against its receipt.
pub(super) fn check_top_calls(
    transactions: &[Transaction],
    receipts: &[Receipt],
    traces: &[TransactionTrace],
    has_status: bool,
) -> Result<(), VerifyError> {
    let triples = transactions.iter().zip(receipts).zip(traces).enumerate();
    for (transaction, ((tx, receipt), trace)) in triples {
        let top = trace.top();
        let top = top.ok_or(VerifyError::TraceTop { transaction })?;
        check_call(transaction, tx, top)?;
        let status = receipt.status.filter(|_| has_status);
        if let Some(succeeded) = status {
            check_outcome(transaction, succeeded, top)?;
        }
        let expected = match tx.to {
            Some(to) => Some(to),
            None => created(tx, receipt, top, status == Some(true)),
        };
        expect(expected, top.to, |expected, found| VerifyError::TraceRecipient {
            transaction,
            expected,
            found,
        })?;
    }
    Ok(())
}

/// The kind, the caller, the value and the input.
fn check_call(transaction: usize, tx: &Transaction, top: &Frame) -> Result<(), VerifyError> {
    let kind = if tx.to.is_some() {
        FrameKind::Call
    } else {
        FrameKind::Create
    };
    expect(kind, top.kind, |expected, found| VerifyError::TraceKind {
        transaction,
        expected,
        found,
    })?;
    expect(tx.from, top.from, |expected, found| VerifyError::TraceSender {
        transaction,
        expected,
        found,
    })?;
    expect(tx.value, top.value, |expected, found| VerifyError::TraceValue {
        transaction,
        expected,
        found,
    })?;
    if tx.input == top.input {
        Ok(())
    } else {
        Err(VerifyError::TraceInput { transaction })
    }
}

/// Both ways in which a frame says that it failed are what is derived from.
fn check_outcome(transaction: usize, succeeded: bool, top: &Frame) -> Result<(), VerifyError> {
    for failed in [top.error.is_some(), top.reverted] {
        expect(succeeded, !failed, |expected, _| VerifyError::TraceOutcome {
            transaction,
            status: expected,
            error: top.error.clone(),
        })?;
    }
    Ok(())
}

/// The contract that the top call of a creation must name.
fn created(tx: &Transaction, receipt: &Receipt, top: &Frame, succeeded: bool) -> Option<Address> {
    if top.to.is_some() || succeeded {
        let stated = receipt.contract_address.or(top.to);
        return Some(stated.unwrap_or_else(|| tx.from.create(tx.nonce)));
    }
    // A failed creation has no contract in the trace, while its receipt may well name one.
    None
}
