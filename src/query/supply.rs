//! S1: how much of the native coin there is.

use super::{Balance, QueryError, Reader};
use crate::model::{Address, U256, genesis_allocation};

/// The supply of the native coin at the indexed head, wei.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoinSupply {
    /// What all accounts together hold: genesis and rewards and withdrawals, less what was burnt or destroyed.
    pub total: U256,
    /// Base and blob fees burnt so far.
    pub burnt: U256,
    /// What the accounts hold, by the ledger, that the operator names as not circulating.
    pub apart: U256,
    /// Those of them that no block touched: they have what block 0 gave them, which the ledger does not know.
    pub untouched: Vec<Address>,
}

impl CoinSupply {
    /// What circulates, where the untouched accounts have so much together.
    #[must_use]
    pub const fn circulating(&self, untouched: U256) -> U256 {
        self.total.saturating_sub(self.apart).saturating_sub(untouched)
    }
}

/// Why the supply will not be told of this store, however far it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupplyGap {
    /// The ledger of native balances ended.
    LedgerEnded,
    /// A node showed that the ledger of native balances is wrong.
    LedgerDiffers,
    /// The store begins after block 0.
    BeginsLater,
    /// What the genesis block allocated is not known.
    NoAllocation,
}

impl Reader {
    /// Why the supply cannot be told of this store; `None` where it can, or waits for frames only.
    #[must_use]
    pub fn supply_gap(&self) -> Option<SupplyGap> {
        if self.first_block() > 0 {
            Some(SupplyGap::BeginsLater)
        } else if self.native().fault.is_some() {
            Some(SupplyGap::LedgerEnded)
        } else if self.native_differs().is_some() {
            Some(SupplyGap::LedgerDiffers)
        } else if self.next_traced() > 0 && !self.native().allocated && self.known_allocation().is_none() {
            Some(SupplyGap::NoAllocation)
        } else {
            None
        }
    }

    fn known_allocation(&self) -> Option<U256> {
        genesis_allocation(self.view.identity().genesis_hash.into())
    }

    /// The supply at the indexed head; `None` where the ledger does not know it: it ended or is wrong, frames are missing, or the
    /// genesis allocation is neither in it nor known of the chain, without which what untouched accounts hold together is
    /// not known.
    pub fn coin_supply(&self) -> Result<Option<CoinSupply>, QueryError> {
        let head = self.head().number;
        if self.supply_gap().is_some() || !self.keeps_balances(head) {
            return Ok(None);
        }
        let (mut apart, mut untouched) = (U256::ZERO, Vec::new());
        for account in self.not_circulating.iter() {
            match self.balance(account, head)? {
                Balance::Exact(balance) => apart = apart.saturating_add(balance),
                Balance::Unmet => untouched.push(*account),
                Balance::AskNode => return Ok(None),
            }
        }
        let Some(sums) = self.view.supply(head)? else {
            return Ok(None);
        };
        let total = match self.native().allocated {
            true => sums.total(),
            false => self
                .known_allocation()
                .and_then(|opening| sums.total_from(opening)),
        };
        Ok(total.map(|total| CoinSupply {
            total,
            burnt: sums.base_fees_burnt.saturating_add(sums.blob_fees_burnt),
            apart,
            untouched,
        }))
    }
}
