//! Tokens that could not be compared.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::model::Address;

/// Tokens that are remembered; others wait until they move, or until they were not compared for long.
const TOKENS_MAX: usize = 1 << 16;

/// Tokens that moved, or that were due, and that the node could not be asked about: they are compared in the next round over all tokens,
/// whatever their verdict says.
#[derive(Debug, Default)]
pub(super) struct LeftOver(Mutex<HashSet<Address>>);

impl LeftOver {
    fn tokens(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, token: Address) {
        let mut tokens = self.tokens();
        if tokens.len() < TOKENS_MAX {
            tokens.insert(token);
        }
    }

    /// Whether a token is one of them; it is none any more.
    pub(super) fn take(&self, token: &Address) -> bool {
        self.tokens().remove(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_comes_back_once() {
        let left = LeftOver::default();
        let token = Address::repeat_byte(1);
        assert!(!left.take(&token));
        left.add(token);
        left.add(token);
        assert!(left.take(&token) && !left.take(&token));
    }
}
