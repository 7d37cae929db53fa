//! The ledger of native balances: every cause of change, one row for each account and block.
//!
//! A block's flows are applied at once and checked against what its header says was issued and burnt. A block that
//! does not add up ends the ledger, which is remembered and never guessed around; who took part is kept all the same.

mod dao;
mod flows;
mod sealer;

use std::sync::Arc;

use alloy_primitives::map::HashMap;
pub(in crate::sync) use flows::Callers;
use flows::{Flow, Flows};
pub use sealer::Sealing;

use crate::codec::amount::put_amount;
use crate::codec::keys;
use crate::codec::value::{
    AccountRow, Funded, FundingKind, FundingRow, NativeFault, NativeFaultReason, SupplyRow,
};
use crate::model::{
    Address, Bundle, Day, Header, Receipt, StaticRewards, TransactionTrace, U256, blob_base_fee,
    uncle_inclusion_reward,
};
use crate::store::{Batch, StoreError, Table};

/// What the ledger of native balances depends on besides the blocks.
#[derive(Clone, Debug, Default)]
pub struct NativeRules {
    /// What the protocol gives for blocks that have difficulty.
    pub static_rewards: StaticRewards,
    /// What accounts hold in block 0, where a genesis file says it.
    pub allocation: Option<Arc<[(Address, U256)]>>,
    /// Who seals blocks that have difficulty.
    pub sealing: Sealing,
    /// The first block of the DAO fork, where the chain took it.
    pub dao_block: Option<u64>,
}

/// The accounts that the ledger meets in a block; without an allocation it must be told what they held before the
/// first block, unless it met them before.
#[must_use]
pub fn touched(bundle: &Bundle, rules: &NativeRules) -> Vec<Address> {
    let Some(traces) = bundle.traces.as_deref() else {
        return Vec::new();
    };
    let flows = Flows::of(bundle, traces, 0, rules);
    let mut accounts: Vec<Address> = flows.accounts.into_keys().collect();
    if rules.dao_block == Some(bundle.block.number()) {
        accounts.extend(dao::drained());
        accounts.push(dao::refund_contract());
    }
    accounts
}

/// What a block gives to accounts and takes from them.
pub(in crate::sync) fn flows_of(
    bundle: &Bundle,
    accounts: impl Iterator<Item = Address>,
    rules: &NativeRules,
) -> Vec<(U256, U256)> {
    let flows = Flows::of(bundle, bundle.traces.as_deref().unwrap_or_default(), 0, rules);
    let moved = accounts.map(|account| {
        let flow = flows.accounts.get(&account).copied().unwrap_or_default();
        (flow.into, flow.out)
    });
    moved.collect()
}

/// A balance before and after a block.
struct Change {
    account: Address,
    flow: Flow,
    /// What the ledger knew of it.
    known: Option<AccountRow>,
    /// What it held before the first block, where it was met now.
    opening: U256,
    after: U256,
}

impl Change {
    const fn before(&self) -> U256 {
        match self.known {
            Some(row) => row.balance,
            None => self.opening,
        }
    }
}

/// Pushes what a block does to balances; its transactions begin at ordinal `first_transaction`.
pub(super) fn derive(
    bundle: &Bundle,
    traces: &[TransactionTrace],
    first_transaction: u64,
    rules: &NativeRules,
    batch: &mut Batch,
) -> Result<(), StoreError> {
    let number = bundle.block.number();
    if number == 0 {
        return allocate(rules, batch);
    }
    let mut flows = Flows::of(bundle, traces, first_transaction, rules);
    let takes_dao = rules.dao_block == Some(number);
    if takes_dao {
        let listed = dao::drained().chain([dao::refund_contract()]);
        listed.for_each(|account| {
            flows.accounts.entry(account).or_default();
        });
    }
    batch.load_accounts(flows.accounts.keys())?;
    let mut native = batch.native();
    if native.fault.is_none() {
        let supply = batch.supply(number)?;
        match apply(bundle, &flows, &supply, rules, batch) {
            Ok((changes, supply)) => return push(&changes, supply, &bundle.block.header, batch),
            Err(reason) => {
                tracing::warn!(
                    block = number,
                    "native balances are not kept from here on: {}",
                    reason.sentence()
                );
                native.fault = Some(NativeFault {
                    block: number,
                    reason,
                });
                batch.set_native(native);
            }
        }
    }
    // Who took part is known whatever they hold.
    let mut new_addresses = 0;
    for (account, flow) in &flows.accounts {
        let row = batch.account(account).unwrap_or_default();
        if flow.participant && row.first_block.is_none() {
            let first_block = Some(number);
            batch.set_account(account, AccountRow { first_block, ..row });
            new_addresses += 1;
        }
    }
    batch.add_new_addresses(Day::of(bundle.block.header.timestamp), new_addresses);
    Ok(())
}

fn put_balance(batch: &mut Batch, account: &Address, block: u64, balance: U256) -> Result<(), StoreError> {
    let mut value = Vec::with_capacity(32);
    put_amount(&mut value, &balance);
    batch.row(Table::Balances, &keys::account_at(account, block), &value)
}

/// Puts the genesis allocation into block 0.
pub(super) fn allocate(rules: &NativeRules, batch: &mut Batch) -> Result<(), StoreError> {
    let mut supply = SupplyRow::default();
    if let Some(allocation) = &rules.allocation {
        let mut native = batch.native();
        native.allocated = true;
        batch.set_native(native);
        batch.load_accounts(allocation.iter().map(|(account, _)| account))?;
        for (account, balance) in allocation.iter().filter(|(_, balance)| !balance.is_zero()) {
            supply.opening = supply.opening.saturating_add(*balance);
            put_balance(batch, account, 0, *balance)?;
            put_genesis_funding(batch, account, *balance)?;
            let row = AccountRow {
                balance: *balance,
                funded: Funded::Here,
                ..AccountRow::default()
            };
            batch.set_account(account, row);
        }
    }
    batch.set_supply(0, supply)
}

fn put_genesis_funding(batch: &mut Batch, account: &Address, value: U256) -> Result<(), StoreError> {
    let funding = FundingRow {
        kind: FundingKind::Genesis,
        block: 0,
        by: None,
        value,
    };
    batch.row(Table::Funding, account.as_slice(), &funding.encode())
}

/// The balances after a block and the sums of the supply, where the block adds up.
fn apply(
    bundle: &Bundle,
    flows: &Flows,
    supply: &SupplyRow,
    rules: &NativeRules,
    batch: &Batch,
) -> Result<(Vec<Change>, SupplyRow), NativeFaultReason> {
    if let Some(fault) = flows.fault {
        return Err(fault);
    }
    let allocated = batch.native().allocated;
    let told: HashMap<Address, U256> = match allocated {
        true => HashMap::default(),
        false => bundle.openings.iter().flatten().copied().collect(),
    };
    let mut changes = Vec::with_capacity(flows.accounts.len());
    let mut supply = *supply;
    for (&account, &flow) in &flows.accounts {
        let known = batch.account(&account);
        let opening = match known {
            Some(_) => U256::ZERO,
            None if allocated => U256::ZERO,
            None => *told.get(&account).ok_or(NativeFaultReason::Openings)?,
        };
        supply.opening = supply.opening.saturating_add(opening);
        changes.push(Change {
            account,
            flow,
            known,
            opening,
            after: U256::ZERO,
        });
    }
    if rules.dao_block == Some(bundle.block.number()) {
        drain(&mut changes);
    }
    for change in &mut changes {
        let most = change.before().checked_add(change.flow.into);
        let after = most.and_then(|most| most.checked_sub(change.flow.out));
        change.after = after.ok_or(NativeFaultReason::Negative)?;
    }
    let issued = issued(bundle, rules);
    let (base_fees, blob_fees) = burnt(bundle);
    // Differences wrap around alike on both sides.
    let gained = changes.iter().fold(U256::ZERO, |sum, change| {
        sum.wrapping_add(change.after).wrapping_sub(change.before())
    });
    let lost = base_fees
        .saturating_add(blob_fees)
        .saturating_add(flows.destroyed);
    if gained != issued.wrapping_sub(lost) {
        return Err(NativeFaultReason::Supply);
    }
    supply.issued = supply.issued.saturating_add(issued);
    supply.base_fees_burnt = supply.base_fees_burnt.saturating_add(base_fees);
    supply.blob_fees_burnt = supply.blob_fees_burnt.saturating_add(blob_fees);
    supply.destroyed = supply.destroyed.saturating_add(flows.destroyed);
    Ok((changes, supply))
}

/// Moves what the accounts of the DAO hold, before the block's own flows.
fn drain(changes: &mut [Change]) {
    let mut moved = U256::ZERO;
    for account in dao::drained() {
        if let Some(change) = changes.iter_mut().find(|change| change.account == account) {
            let balance = change.before();
            change.flow.out = change.flow.out.saturating_add(balance);
            moved = moved.saturating_add(balance);
        }
    }
    let refund = dao::refund_contract();
    if let Some(change) = changes.iter_mut().find(|change| change.account == refund) {
        change.flow.into = change.flow.into.saturating_add(moved);
    }
}

/// What the protocol gives in a block, by its header, uncles and withdrawals.
fn issued(bundle: &Bundle, rules: &NativeRules) -> U256 {
    let block = &bundle.block;
    let number = block.number();
    let reward = rules.static_rewards.of_block(number, block.header.difficulty);
    let uncles = block.uncle_headers.iter().map(|uncle| uncle.number);
    let of_uncles = uncles.map(|uncle| rules.static_rewards.of_uncle(reward, number, uncle));
    let gwei: u128 = block
        .withdrawals
        .iter()
        .flatten()
        .map(|withdrawal| u128::from(withdrawal.amount_gwei))
        .sum();
    let inclusion = uncle_inclusion_reward(reward, block.uncles.len());
    let withdrawn = U256::from(gwei) * U256::from(1_000_000_000_u64);
    of_uncles.fold(reward + inclusion + withdrawn, U256::saturating_add)
}

/// Base and blob fees burnt in a block, by its header. The price of blob gas follows from the header too; a receipt
/// that states it knows of forks that change the rule.
fn burnt(bundle: &Bundle) -> (U256, U256) {
    let header = &bundle.block.header;
    let base = U256::from(header.base_fee_per_gas.unwrap_or(0)) * U256::from(header.gas_used);
    let blobs = match header.blob_gas_used {
        None | Some(0) => U256::ZERO,
        Some(gas) => {
            let stated = |receipt: &Receipt| receipt.blob_gas_price.filter(|_| receipt.kind == 3);
            let price = match bundle.receipts.iter().find_map(stated) {
                Some(price) => U256::from(price),
                None => blob_base_fee(
                    header.excess_blob_gas.unwrap_or(0),
                    header.requests_hash.is_some(),
                ),
            };
            U256::from(gas).saturating_mul(price)
        }
    };
    (base, blobs)
}

/// Pushes the changes of a block that adds up.
fn push(changes: &[Change], supply: SupplyRow, header: &Header, batch: &mut Batch) -> Result<(), StoreError> {
    let (number, first_block) = (header.number, batch.first_block());
    let mut new_addresses = 0;
    for change in changes {
        let Change {
            account,
            flow,
            known,
            opening,
            after,
        } = change;
        let mut row = known.unwrap_or(AccountRow {
            balance: *opening,
            ..AccountRow::default()
        });
        if !opening.is_zero() {
            put_balance(batch, account, first_block.saturating_sub(1), *opening)?;
            if first_block == 0 {
                put_genesis_funding(batch, account, *opening)?;
                row.funded = Funded::Here;
            } else {
                row.funded = Funded::Before;
            }
        }
        if row.balance != *after {
            row.balance = *after;
            put_balance(batch, account, number, *after)?;
        }
        if flow.participant && row.first_block.is_none() {
            row.first_block = Some(number);
            new_addresses += 1;
        }
        if row.funded == Funded::Never
            && let Some(first) = flow.first
        {
            let funding = FundingRow {
                kind: first.kind,
                block: number,
                by: first.by,
                value: first.value,
            };
            batch.row(Table::Funding, account.as_slice(), &funding.encode())?;
            row.funded = Funded::Here;
        }
        if row != known.unwrap_or_default() {
            batch.set_account(account, row);
        }
    }
    batch.add_new_addresses(Day::of(header.timestamp), new_addresses);
    batch.set_supply(number, supply)
}
