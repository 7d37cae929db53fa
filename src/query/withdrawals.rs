//! Withdrawals to an account (EIP-4895), found by the changes of its balance.

use std::time::Instant;

use super::page::ListQuery;
use super::{QueryError, Reader};
use crate::clock;
use crate::codec::keys;
use crate::model::{Address, Withdrawal};
use crate::store::Table;

/// A withdrawal and its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountWithdrawal {
    /// The withdrawal.
    pub withdrawal: Withdrawal,
    /// Block number.
    pub block: u64,
    /// Unix time of the block, seconds.
    pub timestamp: u64,
}

/// A page of withdrawals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WithdrawalPage {
    /// In the order that was asked for.
    pub rows: Vec<AccountWithdrawal>,
    /// How many there are, where the page reaches the end.
    pub total: Option<u64>,
}

impl Reader {
    /// The withdrawals to an account in a range of blocks; the cursor of the query is not looked at. `None` where the
    /// ledger of native balances does not reach, so that nothing tells in which blocks they are. What is skipped is
    /// walked, as far as `deadline` allows.
    ///
    /// # Errors
    ///
    /// [`QueryError::TimedOut`] at the deadline; else when the store fails.
    pub fn account_withdrawals(
        &self,
        account: &Address,
        query: &ListQuery,
        deadline: Instant,
    ) -> Result<Option<WithdrawalPage>, QueryError> {
        if !self.keeps_balances(self.head().number) {
            return Ok(None);
        }
        let mut rows = Vec::new();
        let mut skip = query.skip;
        let first = keys::account_at(account, query.first_block);
        let last = keys::account_at(account, query.last_block);
        let mut end = last.to_vec();
        end.push(0);
        // A withdrawal changes the balance of whom it goes to, but where the block takes as much away again (docs/COMPATIBILITY.md).
        let mut changes = self.view.scan(Table::Balances, first.to_vec(), end)?;
        let mut at = if query.descending {
            changes.seek_back(&last)?
        } else {
            changes.seek(&first)?
        };
        while let Some((key, _)) = at {
            let (_, number) = keys::decode_account_at(key)
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::Balances.name()))?;
            let block = self.block_row(number)?;
            let of_block = block.withdrawals.unwrap_or_default();
            let mut to_account: Vec<Withdrawal> = of_block
                .into_iter()
                .filter(|withdrawal| withdrawal.address == *account)
                .collect();
            if query.descending {
                to_account.reverse();
            }
            for withdrawal in to_account {
                if skip > 0 {
                    skip -= 1;
                } else if rows.len() < query.limit {
                    rows.push(AccountWithdrawal {
                        withdrawal,
                        block: number,
                        timestamp: block.header.timestamp,
                    });
                }
            }
            if rows.len() >= query.limit {
                break;
            }
            if clock::now() > deadline {
                return Err(QueryError::TimedOut);
            }
            at = if query.descending {
                changes.step_back()?
            } else {
                changes.step()?
            };
        }
        // The end was reached, and all that was skipped is there.
        let total = (rows.len() < query.limit).then_some(query.skip - skip + rows.len() as u64);
        Ok(Some(WithdrawalPage { rows, total }))
    }
}
