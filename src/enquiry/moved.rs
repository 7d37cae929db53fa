//! What is to be done about tokens that moved.

use crate::model::Address;

/// Accounts of a moved token that are compared.
const ACCOUNTS_MAX: usize = 4;

/// What is to be done about a token that moved.
#[derive(Debug)]
pub(super) enum Moved {
    /// Compare these accounts.
    Compare(Vec<Address>),
    /// It is not exact: see whether it changed in silence.
    Sample,
}

impl Moved {
    /// Compares accounts besides those that are to be compared already: the newest ones, for those that were touched in the last block are the
    /// likeliest to be asked for.
    pub(super) fn compare(before: Option<Self>, accounts: impl IntoIterator<Item = Address>) -> Self {
        let mut all = match before {
            Some(Self::Compare(before)) => before,
            Some(Self::Sample) | None => Vec::new(),
        };
        all.extend(accounts);
        all.drain(..all.len().saturating_sub(ACCOUNTS_MAX));
        Self::Compare(all)
    }
}
