//! The ledger of native balances in a batch: accounts as they are now, read once and written once a commit, however
//! many blocks of the batch touch them; and the sums of the supply.

use alloy_primitives::map::AddressMap;

use super::look_up::{LOOK_UPS, look_up};
use super::render::Rows;
use super::scan::within_prefix;
use super::schema::Table;
use super::{Batch, StoreError, View};
use crate::codec::amount::read_amount;
use crate::codec::value::{AccountRow, FundingRow, NativeState, SupplyRow};
use crate::codec::{Corrupt, keys};
use crate::model::{Address, U256};

/// Accounts that are remembered between batches; beyond this many they are read again.
const REMEMBERED_MAX: usize = 1 << 17;

/// An account as the batch knows it.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// `None` for one that has no row.
    row: Option<AccountRow>,
    changed: bool,
}

/// Accounts that were read or changed, and the last row of the supply.
#[derive(Debug, Default)]
pub(super) struct LedgerRows {
    accounts: AddressMap<Known>,
    /// The accounts that the batch changed, with what the store holds of them.
    changed: Vec<(Address, Option<AccountRow>)>,
    supply: Option<SupplyRow>,
}

/// An account that a batch changes: its row after the batch, and before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChangedAccount {
    address: Address,
    row: AccountRow,
    before: Option<AccountRow>,
}

impl LedgerRows {
    /// At the end of a batch: what it changed. Accounts that it did not change are forgotten when too many are
    /// remembered; the others must be known until the batch is committed.
    pub(super) fn settle(&mut self) -> Vec<ChangedAccount> {
        if self.accounts.len() > REMEMBERED_MAX {
            self.accounts.retain(|_, known| known.changed);
        }
        let changed = self.changed.drain(..).map(|(address, before)| {
            let known = self.accounts.get_mut(&address);
            let row = known.and_then(|known| {
                known.changed = false;
                known.row
            });
            ChangedAccount {
                address,
                row: row.unwrap_or_default(),
                before,
            }
        });
        changed.collect()
    }
}

impl Batch {
    /// Reads the rows of accounts that are not remembered. What follows of them is answered from memory.
    pub fn load_accounts<'a>(
        &mut self,
        accounts: impl IntoIterator<Item = &'a Address>,
    ) -> Result<(), StoreError> {
        let known = &self.dictionary.ledger.accounts;
        let mut missing: Vec<Address> = accounts
            .into_iter()
            .filter(|address| !known.contains_key(*address))
            .copied()
            .collect();
        // In order, RocksDB shares reads of blocks.
        missing.sort_unstable();
        missing.dedup();
        for group in missing.chunks(LOOK_UPS) {
            let found = look_up(&self.store, Table::Accounts, group)?;
            for (address, found) in group.iter().zip(found) {
                let row = found
                    .map(|bytes| AccountRow::decode(&bytes))
                    .transpose()
                    .map_err(StoreError::corrupt(Table::Accounts.name(), address.as_slice()))?;
                let known = Known { row, changed: false };
                self.dictionary.ledger.accounts.insert(*address, known);
            }
        }
        Ok(())
    }

    /// An account after the batch so far, which must have been loaded; `None` where it has no row.
    #[must_use]
    pub fn account(&self, account: &Address) -> Option<AccountRow> {
        self.dictionary
            .ledger
            .accounts
            .get(account)
            .and_then(|known| known.row)
    }

    /// Replaces the row of an account, which must have been loaded.
    pub fn set_account(&mut self, account: &Address, row: AccountRow) {
        let ledger = &mut self.dictionary.ledger;
        let known = ledger.accounts.entry(*account).or_insert(Known {
            row: None,
            changed: false,
        });
        if !known.changed {
            known.changed = true;
            ledger.changed.push((*account, known.row));
            self.bytes += 160;
        }
        known.row = Some(row);
    }

    /// How the ledger stands after the batch so far.
    #[must_use]
    pub const fn native(&self) -> NativeState {
        self.checkpoint.native
    }

    /// Records how the ledger stands.
    pub const fn set_native(&mut self, native: NativeState) {
        self.checkpoint.native = native;
    }

    /// The sums of the supply before a block, which is the next whose frames are stored.
    pub fn supply(&mut self, block: u64) -> Result<SupplyRow, StoreError> {
        if let Some(supply) = self.dictionary.ledger.supply {
            return Ok(supply);
        }
        let supply = match block.checked_sub(1) {
            None => SupplyRow::default(),
            Some(last) => {
                let key = keys::number(last);
                let found = self.stored(Table::Supply, &key)?;
                let row = found.map(|bytes| SupplyRow::decode(&bytes)).transpose();
                row.map_err(StoreError::corrupt(Table::Supply.name(), &key))?
                    .unwrap_or_default()
            }
        };
        self.dictionary.ledger.supply = Some(supply);
        Ok(supply)
    }

    /// Adds the sums of the supply after a block.
    pub fn set_supply(&mut self, block: u64, supply: SupplyRow) -> Result<(), StoreError> {
        self.dictionary.ledger.supply = Some(supply);
        self.row(Table::Supply, &keys::number(block), &supply.encode())
    }

    /// Writes the changed accounts.
    pub(super) fn render_accounts(&mut self, rows: &mut Rows<'_>) -> Result<(), StoreError> {
        let mut accounts = std::mem::take(&mut self.accounts);
        accounts.sort_unstable_by_key(|account| account.address);
        for account in &accounts {
            let before = match rows.undo {
                None => None,
                Some(_) => account.before.map(|before| before.encode()),
            };
            let row = account.row.encode();
            rows.put(
                Table::Accounts,
                account.address.as_slice(),
                &row,
                before.as_deref(),
            )?;
        }
        Ok(())
    }
}

impl View {
    /// What is known of an account now; `None` where it has no row.
    pub fn account(&self, account: &Address) -> Result<Option<AccountRow>, StoreError> {
        self.get(Table::Accounts, account.as_slice())?
            .map(|bytes| AccountRow::decode(&bytes))
            .transpose()
            .map_err(StoreError::corrupt(Table::Accounts.name(), account.as_slice()))
    }

    /// The native balance that the ledger has of an account after a block: of its last change at or before the
    /// block; `None` where there is none.
    pub fn ledger_balance(&self, account: &Address, block: u64) -> Result<Option<U256>, StoreError> {
        let (from, to) = (keys::account_at(account, 0), keys::account_at(account, block));
        self.last_row(Table::Balances, &from, &to, read_amount)
    }

    /// The last row between two keys of one account, token or holder, read by `decode`.
    pub(super) fn last_row<T>(
        &self,
        table: Table,
        from: &[u8],
        to: &[u8],
        decode: impl FnOnce(&[u8]) -> Result<T, Corrupt>,
    ) -> Result<Option<T>, StoreError> {
        let mut end = to.to_vec();
        end.push(0);
        let mut rows = self.iterator(table, within_prefix(from.to_vec(), end))?;
        rows.seek_for_prev(to);
        match rows.item() {
            Some((key, value)) => decode(value)
                .map(Some)
                .map_err(StoreError::corrupt(table.name(), key)),
            None => rows
                .status()
                .map(|()| None)
                .map_err(StoreError::rocks_at(table.name(), to)),
        }
    }

    /// The first inflow of an account, as far as the ledger has it.
    pub fn funding(&self, account: &Address) -> Result<Option<FundingRow>, StoreError> {
        self.get(Table::Funding, account.as_slice())?
            .map(|bytes| FundingRow::decode(&bytes))
            .transpose()
            .map_err(StoreError::corrupt(Table::Funding.name(), account.as_slice()))
    }

    /// The sums of the supply after a block, where the ledger has them.
    pub fn supply(&self, block: u64) -> Result<Option<SupplyRow>, StoreError> {
        let key = keys::number(block);
        self.get(Table::Supply, &key)?
            .map(|bytes| SupplyRow::decode(&bytes))
            .transpose()
            .map_err(StoreError::corrupt(Table::Supply.name(), &key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_a_batch_under_way_are_never_forgotten() {
        let account = |number: usize| Address::left_padding_from(&number.to_be_bytes());
        let row = |balance: u64| AccountRow {
            balance: U256::from(balance),
            ..AccountRow::default()
        };
        let mut rows = LedgerRows::default();
        for number in 0..=REMEMBERED_MAX {
            let known = Known {
                row: None,
                changed: false,
            };
            rows.accounts.insert(account(number), known);
        }
        for number in [3, 5] {
            let known = Known {
                row: Some(row(number as u64)),
                changed: true,
            };
            rows.accounts.insert(account(number), known);
            rows.changed.push((account(number), None));
        }
        let changed: Vec<_> = rows.settle().iter().map(|one| (one.address, one.row)).collect();
        assert_eq!(changed, [(account(3), row(3)), (account(5), row(5))]);
        assert_eq!(rows.accounts.len(), 2, "too many were remembered");
        assert_eq!(
            rows.accounts.get(&account(5)).and_then(|known| known.row),
            Some(row(5))
        );
        assert!(rows.settle().is_empty());
        assert_eq!(rows.accounts.len(), 2, "few are kept");
    }
}
