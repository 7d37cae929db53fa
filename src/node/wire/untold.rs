//! Transactions whose own call a node does not tell: it is the transaction's, and whether it failed its receipt tells.
//!
//! No hash covers what lies below a transaction's own call, so that a call made up for it must not hide frames that a faulty node lost. It is
//! taken where there are none, and where the node says that nothing ran of what failed; else the trace is refused and asked for again. That
//! `trace_block` has no frame of a transaction that failed is no such word: a node that lost them looks the same, and why it failed and what it
//! called would be lost for good.

use super::WireError;
use super::trace::odd;
use crate::model::{Bundle, Frame, FrameKind, Receipt, Transaction, TransactionTrace};

/// Gas of a transaction that has no data, creates nothing and calls no code.
const GAS_OF_A_TRANSFER: u64 = 21_000;

/// The error of a call that failed by its receipt, where nobody says why.
const FAILED: &str = "failed";

/// A transaction whose own call a node did not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untold {
    /// Its place in the block.
    pub(super) index: usize,
    /// What was told of it.
    pub(super) told: Told,
}

/// What a node told in place of a transaction's own call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing, of a transaction without gas.
    Nothing,
    /// A result of `null`, and no error.
    Null,
    /// A frame of this type, which is none, between other accounts: the machine was never entered (`STOP`).
    Frame(String),
}

impl Untold {
    /// Whether the transaction alone tells enough.
    pub(super) fn is_gasless(&self) -> bool {
        self.told == Told::Nothing
    }

    /// Why it is refused.
    pub(super) fn refusal(&self) -> WireError {
        let index = self.index;
        match &self.told {
            Told::Nothing => WireError::MissingItem { what: "trace", index },
            Told::Null => odd(index, "not traced: field `result` is missing"),
            Told::Frame(word) => odd(index, format_args!("unknown type `{word}`")),
        }
    }

    /// Whether there is nothing that the node could have lost, or nothing that counted.
    fn is_believed(&self, transaction: &Transaction, receipt: &Receipt, frames: &[Frame]) -> bool {
        match self.told {
            Told::Nothing => true,
            // Not of what failed either: why it did, and what it called, would be lost.
            Told::Null => runs_no_code(transaction, receipt),
            // Nothing that ran in a failed transaction has moved anything. Where there is no gas, one frame tells no less than none.
            Told::Frame(_) => {
                receipt.status == Some(false)
                    || runs_no_code(transaction, receipt)
                    || (is_gasless(transaction) && frames.len() < 2)
            }
        }
    }

    /// Gives the call, which is the transaction's so far, what the receipt tells.
    fn fill(&self, transaction: &Transaction, receipt: &Receipt, frames: &mut [Frame]) {
        let has_failed = receipt.status == Some(false);
        for frame in frames.iter_mut() {
            frame.reverted |= has_failed;
        }
        let Some(top) = frames.first_mut() else { return };
        if !self.is_gasless() {
            // As the call tracer states them.
            (top.gas, top.gas_used) = (transaction.gas, receipt.gas_used);
        }
        if has_failed {
            top.error.get_or_insert_with(|| FAILED.to_owned());
        } else if top.kind.is_creation() {
            top.to = receipt.contract_address;
        }
    }
}

/// Whether the transaction had no gas for any code by its receipt. A refund may hide what code took, but not to the last unit unless it was
/// written to.
fn runs_no_code(transaction: &Transaction, receipt: &Receipt) -> bool {
    transaction.to.is_some() && transaction.input.is_empty() && receipt.gas_used == GAS_OF_A_TRANSFER
}

/// Whether the transaction has no gas, as only a chain's own has. Some nodes have no trace of such.
pub(super) const fn is_gasless(transaction: &Transaction) -> bool {
    transaction.gas == 0
}

/// The trace of a transaction of which nothing is known but itself.
pub(super) fn top_alone(transaction: &Transaction) -> TransactionTrace {
    let top = Frame {
        kind: match transaction.to {
            Some(_) => FrameKind::Call,
            None => FrameKind::Create,
        },
        from: transaction.from,
        to: transaction.to,
        value: transaction.value,
        input: transaction.input.clone(),
        ..Frame::default()
    };
    TransactionTrace { frames: vec![top] }
}

/// Ends the traces of a bundle whose receipts are there by what they tell of transactions whose own call the node did not tell.
///
/// # Errors
///
/// When the node may have lost frames of one.
pub fn settle(bundle: &mut Bundle, untold: &[Untold]) -> Result<(), WireError> {
    for of in untold {
        let transaction = bundle.block.transactions.get(of.index);
        let (Some(transaction), Some(receipt)) = (transaction, bundle.receipts.get(of.index)) else {
            return Err(of.refusal());
        };
        let trace = bundle.traces.as_mut().and_then(|all| all.get_mut(of.index));
        let frames: &mut [Frame] = trace.map_or(&mut [], |trace| &mut trace.frames);
        if !of.is_believed(transaction, receipt, frames) {
            return Err(of.refusal());
        }
        of.fill(transaction, receipt, frames);
    }
    Ok(())
}
