//! Holders that the chain does not have (any more).
//!
//! What a contract said of a holder is kept by account. Where the only block that named the account was orphaned while nobody looked
//! (between two processes, or farther back than is remembered) no round over the holders of the ledger comes to it again. So whoever begins with a
//! token's round looks first for holders that its ledger never saw ([`crate::query::Reader::ledger_never_saw`]).

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
    fn tokens(&self) -> MutexGuard<'_, HashSet<Address>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All are to be looked through again: blocks were orphaned that nobody knows the accounts of.
    pub(super) fn forget(&self) {
        self.tokens().clear();
    }

    /// One is to be looked through again.
    pub(super) fn forget_one(&self, token: &Address) {
        self.tokens().remove(token);
    }
}

impl Tools {
    /// Takes holders from the lists of a token that is not exact whom no event of the chain ever named.
    pub(super) async fn sweep(self: &Arc<Self>, token: Address) -> Result<(), Failure> {
        // Noted first: where all are forgotten meanwhile, it is done again.
        let is_new = self.swept.tokens().insert(token);
        if !is_new {
            return Ok(());
        }
        let swept = self.leave_out_strangers(token).await;
        if !matches!(swept, Ok(true)) {
            self.swept.forget_one(&token);
        }
        swept.map(drop)
    }

    /// Does it; whether all holders were looked at.
    async fn leave_out_strangers(self: &Arc<Self>, token: Address) -> Result<bool, Failure> {
        let gone = self.read(move |reader, tools| {
            let head = reader.head();
            let Some(ledger) = reader.token(&token)? else {
                return Ok((head, None));
            };
            let mut gone = Vec::new();
            let mut page = tools.observed.holders(&token, 0, STEP);
            while let Some(last) = page.as_ref().and_then(|page| page.last()).copied() {
                let holders = page.into_iter().flatten().map(|(holder, _)| holder);
                gone.extend(reader.ledger_never_saw(&ledger, holders)?);
                page = tools.observed.holders_after(&token, &last, STEP);
            }
            // A page that cannot be read is none.
            Ok((head, page.map(|_| gone)))
        });
        let (head, gone) = gone.await?;
        let Some(gone) = gone else {
            return Ok(false);
        };
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
        Ok(true)
    }
}
