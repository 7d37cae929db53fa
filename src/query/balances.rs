//! Native balances (A1, A2, A11) and first inflows (A10), as far as the ledger keeps them.

use super::{NativeDiffers, QueryError, Reader};
use crate::codec::keys;
use crate::codec::value::{Funded, FundingRow, NativeState};
pub use crate::codec::value::{FundingKind, NativeFault};
use crate::model::{Address, B256, U256};
use crate::store::Table;

/// Wei in the unit of withdrawals.
const GWEI: u64 = 1_000_000_000;

/// A native balance, as far as the store can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// Exactly this, wei.
    Exact(U256),
    /// The chain from its first block on never touched the account: what the genesis allocation gave it, which is not in
    /// the ledger. Only the node can tell.
    Unmet,
    /// Only the node can tell.
    AskNode,
}

/// An account now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// What it holds.
    pub balance: Balance,
    /// Whether it took part in anything, or holds or held something.
    pub known: bool,
}

/// How an account was funded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Funding {
    /// How.
    pub kind: FundingKind,
    /// Hash of the transaction and who sent, where there is one.
    pub by: Option<(B256, Address)>,
    /// Wei.
    pub value: U256,
    /// Block number.
    pub block: u64,
    /// The block's time, Unix seconds.
    pub timestamp: u64,
}

/// What the store knows of an account's first inflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstFunding {
    /// This.
    Known(Funding),
    /// There was none.
    Never,
    /// The chain never touched the account: only the genesis allocation can have funded it.
    Unmet,
    /// The first inflow since the first stored block, of an account that held nothing then. It may have been funded and emptied before, which
    /// leaves a nonce or code: where it had neither, this is the answer.
    Since(Funding),
    /// There was none since then. It may have been funded before, which leaves a balance, a nonce or code.
    NotSince,
    /// It lies before the first stored block.
    Before,
    /// It may lie where the ledger is not kept, or not yet.
    Untold,
}

impl Reader {
    /// Why native balances are asked of the node from some block on, where they are.
    #[must_use]
    pub fn native_fault(&self) -> Option<NativeFault> {
        self.native().fault
    }

    /// What a node showed to be wrong with the ledger, if anything: then it is asked for all balances.
    #[must_use]
    pub fn native_differs(&self) -> Option<NativeDiffers> {
        self.token_facts.native_differs()
    }

    /// Whether a node has been asked for balances of the ledger's, where there is one.
    #[must_use]
    pub fn native_is_judged(&self) -> bool {
        self.token_facts.native_is_judged()
    }

    /// An account of the ledger and what it held after a block: the next one from `near` on, or the first of all; `None`
    /// where the ledger has none or does not tell.
    pub fn some_native_balance(
        &self,
        near: &Address,
        block: u64,
    ) -> Result<Option<(Address, U256)>, QueryError> {
        let mut scan = self.view.scan_all(Table::Balances)?;
        let found = match scan.seek(&keys::account_at(near, 0))? {
            Some((key, _)) => Some(key.to_vec()),
            None => self
                .view
                .scan_all(Table::Balances)?
                .item()?
                .map(|(key, _)| key.to_vec()),
        };
        let Some(key) = found else { return Ok(None) };
        let corrupt = |corrupt| QueryError::Corrupt(corrupt, Table::Balances.name());
        let (account, _) = keys::decode_account_at(&key).map_err(corrupt)?;
        Ok(match self.balance(&account, block)? {
            Balance::Exact(balance) => Some((account, balance)),
            Balance::Unmet | Balance::AskNode => None,
        })
    }

    pub(super) fn native(&self) -> NativeState {
        self.view.checkpoint().native
    }

    /// Whether the ledger of native balances speaks of blocks up to this one.
    #[must_use]
    pub fn keeps_balances(&self, block: u64) -> bool {
        self.native().fault.is_none()
            && block < self.view.checkpoint().next_traced
            && self.native_differs().is_none()
    }

    /// What is said of an account that the ledger never met.
    fn unmet(&self) -> Balance {
        match (self.native().allocated, self.first_block()) {
            (true, _) => Balance::Exact(U256::ZERO),
            (false, 0) => Balance::Unmet,
            (false, _) => Balance::AskNode,
        }
    }

    /// An account at the indexed head.
    pub fn account(&self, account: &Address) -> Result<Account, QueryError> {
        let row = self.view.account(account)?;
        let balance = match row {
            _ if !self.keeps_balances(self.head().number) => Balance::AskNode,
            Some(row) => Balance::Exact(row.balance),
            None => self.unmet(),
        };
        // Whom only token transfers name is somebody, too.
        let known = row.is_some() || self.took_part_in_transfers(account)?;
        Ok(Account { balance, known })
    }

    /// The native balance of an account after a block, which must be indexed.
    pub fn balance(&self, account: &Address, block: u64) -> Result<Balance, QueryError> {
        if !self.keeps_balances(block) {
            return Ok(Balance::AskNode);
        }
        if let Some(balance) = self.view.ledger_balance(account, block)? {
            return Ok(Balance::Exact(balance));
        }
        // Without a change until then, an account that was met opened with nothing.
        let met = self.native().allocated || self.view.account(account)?.is_some();
        Ok(if met {
            Balance::Exact(U256::ZERO)
        } else {
            self.unmet()
        })
    }

    /// All that the block gave of this kind: the row holds the first of several things, as of two withdrawals.
    fn whole_funding(&self, account: &Address, row: &FundingRow) -> Result<U256, QueryError> {
        let add = |sum: U256, value: U256| sum.saturating_add(value);
        Ok(match row.kind {
            FundingKind::Genesis | FundingKind::Transaction | FundingKind::Internal => row.value,
            FundingKind::Withdrawal => {
                let withdrawals = self.block_row(row.block)?.withdrawals.unwrap_or_default();
                let own = withdrawals
                    .iter()
                    .filter(|withdrawal| withdrawal.address == *account);
                own.map(|withdrawal| U256::from(withdrawal.amount_gwei) * U256::from(GWEI))
                    .fold(U256::ZERO, add)
                    .max(row.value)
            }
            FundingKind::Reward => {
                let block = self.block_row(row.block)?;
                let each = self.static_rewards.of_block(row.block, block.header.difficulty);
                let own = block.uncle_headers.iter();
                let uncles = own
                    .filter(|uncle| uncle.beneficiary == *account)
                    .map(|uncle| self.static_rewards.of_uncle(each, row.block, uncle.number))
                    .fold(U256::ZERO, add);
                // What the block itself brought comes first, and is never nothing where uncles bring something.
                match block.header.beneficiary == *account {
                    true => add(row.value, uncles),
                    false => uncles.max(row.value),
                }
            }
        })
    }

    /// The first inflow that the store has, if any, of an account that held nothing before.
    fn since_first_block(
        &self,
        account: &Address,
        funding: Option<Funding>,
    ) -> Result<FirstFunding, QueryError> {
        // Who sends the transaction with nonce 0 has spent nothing before it, and is no contract (EIP-3607). Another nonce tells nothing: a
        // delegation (EIP-7702) takes one, too.
        let is_new = self.first_block() == 0 || self.view.first_nonce(account)? == Some(0);
        Ok(match (is_new, funding) {
            (true, Some(funding)) => FirstFunding::Known(funding),
            (true, None) => FirstFunding::Never,
            (false, Some(funding)) => FirstFunding::Since(funding),
            (false, None) => FirstFunding::NotSince,
        })
    }

    /// The first positive native inflow of an account.
    pub fn funding(&self, account: &Address) -> Result<FirstFunding, QueryError> {
        if let Some(row) = self.view.funding(account)? {
            let by = row.by.map(|(transaction, funder)| {
                let hash = self.view.transaction_hash(transaction)?;
                Ok::<_, QueryError>((hash, funder))
            });
            let funding = Funding {
                kind: row.kind,
                by: by.transpose()?,
                value: self.whole_funding(account, &row)?,
                block: row.block,
                timestamp: self.view.block(row.block)?.timestamp,
            };
            return self.since_first_block(account, Some(funding));
        }
        if !self.keeps_balances(self.head().number) {
            return Ok(FirstFunding::Untold);
        }
        Ok(match self.view.account(account)? {
            Some(row) if row.funded == Funded::Before => FirstFunding::Before,
            Some(_) => self.since_first_block(account, None)?,
            None => match self.unmet() {
                Balance::Exact(_) => FirstFunding::Never,
                Balance::Unmet => FirstFunding::Unmet,
                Balance::AskNode => FirstFunding::NotSince,
            },
        })
    }
}
