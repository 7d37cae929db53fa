//! Supplies and balances by the ledger alone, and whether it can tell them.
//!
//! No contract of ERC-1155 can be asked for what its ids come to together. What the ledger of one says stands where its events explain
//! it; where the sum of some ids passes what an amount can be, it says of what else there is.

use super::Token;
use crate::codec::amount::read_amount;
use crate::codec::tokens::{self, NEGATIVE, OVERFLOWN, WRAPPED};
use crate::model::{Address, TokenKind, U256};
use crate::query::{QueryError, Reader};
use crate::store::Table;

/// So many changes of a balance are looked through for one that did not fit.
const CHANGES_MAX: usize = 10_000;

impl Token {
    /// Whether the ledger has what it takes: all logs, none of which takes away what none gave, and none of which moves coins: what was
    /// wrapped before the first transfer of units is no number of units.
    const fn is_explained(&self) -> bool {
        !matches!(self.kind(), TokenKind::Erc1155)
            || (self.whole && self.state.flags & (NEGATIVE | WRAPPED) == 0)
    }

    /// Whether sums of the ledger stand at the most there can be, in place of more.
    const fn has_overflown(&self) -> bool {
        matches!(self.kind(), TokenKind::Erc1155) && self.state.flags & OVERFLOWN != 0
    }

    /// The supply by the ledger, now; `None` where it cannot tell.
    #[must_use]
    pub fn supply_told(&self) -> Option<U256> {
        self.supply_of(self.sums())
    }

    fn supply_of(&self, (minted, to_zero): (U256, U256)) -> Option<U256> {
        // What was minted never falls: no withdrawal takes units back.
        let fits = !self.has_overflown() || minted < U256::MAX;
        (self.is_explained() && fits).then(|| self.verdict.zero.supply(minted, to_zero))
    }
}

impl Reader {
    /// The supply of a token after a block, by the ledger (T8); `None` where it cannot tell.
    pub fn supply_told_at(&self, token: &Token, block: u64) -> Result<Option<U256>, QueryError> {
        Ok(token.supply_of(self.token_sums(token, block)?))
    }

    /// What an account holds of a token now, by the ledger (T2); `None` where it cannot tell.
    pub fn balance_told(&self, token: &Token, holder: &Address) -> Result<Option<U256>, QueryError> {
        let tells = self.tells_of(token, holder, u64::MAX)?;
        tells.then(|| self.token_balance(token, holder)).transpose()
    }

    /// What an account held of a token after a block, by the ledger (T9); `None` where it cannot tell.
    pub fn balance_told_at(
        &self,
        token: &Token,
        holder: &Address,
        block: u64,
    ) -> Result<Option<U256>, QueryError> {
        let tells = self.tells_of(token, holder, block)?;
        tells
            .then(|| self.token_balance_at(token, holder, block))
            .transpose()
    }

    /// Whether what a holder had of a token up to a block always fitted.
    fn tells_of(&self, token: &Token, holder: &Address, until: u64) -> Result<bool, QueryError> {
        if !token.is_explained() || !token.has_overflown() {
            return Ok(token.is_explained());
        }
        let start = tokens::balance(token.id, holder, 0);
        let mut end = tokens::balance(token.id, holder, until).to_vec();
        end.push(0);
        let mut changes = self.view.scan(Table::TokenBalances, start.to_vec(), end)?;
        changes.seek(&start)?;
        let mut looked_at = 0;
        while let Some((_, value)) = changes.item()? {
            let after = read_amount(value)
                .map_err(|corrupt| QueryError::Corrupt(corrupt, Table::TokenBalances.name()))?;
            looked_at += 1;
            if after == U256::MAX || looked_at > CHANGES_MAX {
                return Ok(false);
            }
            changes.step()?;
        }
        Ok(true)
    }
}
