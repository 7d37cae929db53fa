//! S1: how much of the native coin there is.

use super::{Balance, QueryError, Reader};
use crate::model::U256;

/// The supply of the native coin at the indexed head, wei.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoinSupply {
    /// What all accounts together hold: genesis and rewards and withdrawals, less what was burnt or destroyed.
    pub total: U256,
    /// Of that, what the accounts that the operator names do not hold.
    pub circulating: U256,
}

impl Reader {
    /// The supply at the indexed head; `None` where the ledger does not know it: it ended, frames are missing, or the
    /// genesis allocation is not in it, without which what untouched accounts hold is not known.
    pub fn coin_supply(&self) -> Result<Option<CoinSupply>, QueryError> {
        if !self.native().allocated {
            return Ok(None);
        }
        let head = self.head().number;
        let mut held = U256::ZERO;
        for account in self.not_circulating.iter() {
            match self.balance(account, head)? {
                Balance::Exact(balance) => held = held.saturating_add(balance),
                Balance::Untouched(_) | Balance::AskNode => return Ok(None),
            }
        }
        if !self.keeps_balances(head) {
            return Ok(None);
        }
        let total = self.view.supply(head)?.and_then(|supply| supply.total());
        Ok(total.map(|total| CoinSupply {
            total,
            circulating: total.saturating_sub(held),
        }))
    }
}
