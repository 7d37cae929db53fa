//! Holders that the chain does not have (any more).
//!
//! What a contract said of a holder is kept by account. Where the only block that named the account was orphaned while nobody looked
//! (between two processes, or farther back than is remembered) no round over the holders of the ledger comes to it again. So whoever begins with a
//! token's round looks first for holders that its ledger never saw.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::Tools;
use super::perform::Failure;
use crate::model::{Address, U256};
use crate::store::ToldBalance;

/// Holders looked at at a time.
const STEP: usize = 1024;
/// Rows written at a time.
const WRITTEN: usize = 256;

/// Tokens whose holders were looked through by this process.
#[derive(Debug, Default)]
pub(super) struct Swept(Mutex<HashSet<Address>>);

impl Swept {
    /// All are to be looked through again: blocks were orphaned that nobody knows the accounts of.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn is_swept(&self, token: &Address) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(token)
    }

    fn note(&self, token: Address) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(token);
    }
}

impl Tools {
    /// Takes holders from the lists of a token that is not exact whom no event of the chain ever named.
    pub(super) async fn sweep(self: &Arc<Self>, token: Address) -> Result<(), Failure> {
        if self.swept.is_swept(&token) {
            return Ok(());
        }
        // Noted first: where more is forgotten meanwhile, it is done again.
        self.swept.note(token);
        let gone = self.read(move |reader, tools| {
            let mut gone = Vec::new();
            let Some(ledger) = reader.token(&token)? else {
                return Ok((reader.head(), gone));
            };
            let mut page = tools.observed.holders(&token, 0, STEP);
            while let Some(last) = page.as_ref().and_then(|page| page.last()).copied() {
                let holders = page.into_iter().flatten().map(|(holder, _)| holder);
                gone.extend(reader.ledger_never_saw(&ledger, holders)?);
                page = tools.observed.holders_after(&token, &last, STEP);
            }
            Ok((reader.head(), gone))
        });
        let (head, gone) = gone.await?;
        if !gone.is_empty() {
            tracing::info!(token = ?token, holders = gone.len(), "holders that no block names any more are left out");
        }
        for holders in gone.chunks(WRITTEN) {
            let told = holders.iter().map(|&holder| ToldBalance {
                holder,
                balance: U256::ZERO,
                block: head.number,
            });
            self.observed
                .put_balances(&token, &told.collect::<Vec<_>>(), None);
        }
        Ok(())
    }
}
