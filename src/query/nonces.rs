//! `eth_getTransactionCount` from the store, where that is exact.

use super::{QueryError, Reader};
use crate::codec::keys;
use crate::codec::value::NONCE_UNKNOWN;
use crate::model::Address;
use crate::store::Table;

/// An account's nonce after a block, as far as the store can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonce {
    /// Exactly this.
    Exact(u64),
    /// This, unless something raised it that the store does not have: the genesis allocation, which only a node or
    /// `--genesis` can tell, or, in a store that begins later and has no traces, creations by an account that was delegated before (EIP-7702).
    Likely(u64),
    /// Only the node can tell.
    AskNode,
}

impl Reader {
    /// The nonce of `account` after `block`, which must be indexed.
    pub fn nonce(&self, account: Address, block: u64) -> Result<Nonce, QueryError> {
        let end = self.view.first_transaction(block + 1)?;
        let sent = self.view.last_sent(&account, end)?;
        // Bridges and the chain itself send in the name of accounts, and number that in their own way.
        if sent.is_some_and(|sent| sent.is_made_by_chain) {
            return Ok(Nonce::AskNode);
        }
        let sent = sent.map(|sent| sent.nonce_after);
        let ledger = self.view.ledger_nonce(&account, block)?;
        let traced = self.view.checkpoint().next_traced > block;
        Ok(match (sent, ledger) {
            (_, Some(NONCE_UNKNOWN)) => Nonce::AskNode,
            (Some(sent), None) if self.first_block() > 0 && !traced => Nonce::Likely(sent),
            (Some(sent), None) => Nonce::Exact(sent),
            // Creations by a contract or a delegated account are known from frames only.
            (_, Some(_)) if !traced => Nonce::AskNode,
            (sent, Some(ledger)) => Nonce::Exact(ledger.max(sent.unwrap_or(0))),
            (None, None) if self.first_block() > 0 || !traced || self.was_created(&account, end)? => {
                Nonce::AskNode
            }
            // The genesis allocation's nonces are rows of block 0.
            (None, None) if self.native().allocated => Nonce::Exact(0),
            (None, None) => Nonce::Likely(0),
        })
    }

    /// Whether one of the transactions before `end` created the account. Later ones say nothing: before its
    /// creation a contract's account has nonce 0 (EIP-684).
    fn was_created(&self, account: &Address, end: u64) -> Result<bool, QueryError> {
        let mut scan = self.view.scan_account(Table::Creations, account, end)?;
        Ok(scan.seek(&keys::account_at(account, 0))?.is_some())
    }
}
