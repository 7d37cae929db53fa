//! The ledger of native balances: history against the present, and the supply identity of every block.

use std::collections::HashMap;

use super::{Audit, Check, Tally};
use crate::codec::amount::read_amount;
use crate::codec::keys;
use crate::codec::value::{AccountRow, SupplyRow};
use crate::model::{Address, U256};
use crate::query::QueryError;
use crate::store::Table;

/// History by account: its last row is the account's balance, and what a block's rows add up to is what the block
/// issued less what it burnt. Without a ledger nothing is looked at.
pub(super) fn run(audit: &Audit<'_>) -> Check {
    let tally = audit.tally(
        "native balances, supply of every block",
        "balances",
        audit.view.checkpoint().transactions * 2,
    );
    let walked = walk(audit, &tally);
    tally.ended(walked)
}

fn walk(audit: &Audit<'_>, tally: &Tally<'_>) -> Result<(), QueryError> {
    let view = &audit.view;
    let head = view.checkpoint().next_traced;
    let first = view.first_block();
    if view.checkpoint().native.fault.is_some() || head <= first {
        return Ok(());
    }
    // What each block added, and what accounts held before the first one; sums wrap.
    let mut gained: HashMap<u64, U256> = HashMap::new();
    let (mut opening, mut held) = (U256::ZERO, U256::ZERO);
    let corrupt = |table: Table| move |corrupt| QueryError::Corrupt(corrupt, table.name());
    let mut accounts = view.scan_all(Table::Accounts)?;
    let mut history = view.scan_all(Table::Balances)?;
    // The account under the scan of histories and its balance so far.
    let mut last: Option<(Address, U256)> = None;
    let mut step = true;
    loop {
        let row = match history.item()? {
            Some((key, value)) => {
                let (account, block) = keys::decode_account_at(key).map_err(corrupt(Table::Balances))?;
                Some((
                    account,
                    block,
                    read_amount(value).map_err(corrupt(Table::Balances))?,
                ))
            }
            None => None,
        };
        let ended = last.filter(|(account, _)| row.is_none_or(|(next, ..)| next != *account));
        if let Some((account, balance)) = ended {
            // Accounts without a history hold nothing; they may stand between those with one.
            while let Some((key, value)) = accounts.item()? {
                let now = AccountRow::decode(value)
                    .map_err(corrupt(Table::Accounts))?
                    .balance;
                if key > account.as_slice() {
                    break;
                }
                let expected = if key == account.as_slice() {
                    balance
                } else {
                    U256::ZERO
                };
                if now != expected {
                    let text = format!(
                        "0x{} holds {now}, its history ends with {expected}",
                        const_hex::encode(key)
                    );
                    tally.wrong(None, text);
                }
                step = key == account.as_slice();
                accounts.step()?;
                if step {
                    break;
                }
            }
            if !step {
                tally.wrong(None, format!("{account} has a history and no row"));
            }
            step = false;
            held = held.wrapping_add(balance);
        }
        let Some((account, block, balance)) = row else {
            break;
        };
        let before = last.filter(|(of, _)| *of == account).map(|(_, balance)| balance);
        if block < first || (block == 0 && before.is_none()) {
            opening = opening.wrapping_add(balance);
        } else {
            let gain = balance.wrapping_sub(before.unwrap_or_default());
            let sum = gained.entry(block).or_default();
            *sum = sum.wrapping_add(gain);
        }
        last = Some((account, balance));
        tally.items(1);
        history.step()?;
    }
    while let Some((key, value)) = accounts.item()? {
        let now = AccountRow::decode(value)
            .map_err(corrupt(Table::Accounts))?
            .balance;
        if !now.is_zero() {
            tally.wrong(
                None,
                format!("0x{} holds {now} and has no history", const_hex::encode(key)),
            );
        }
        accounts.step()?;
    }
    let (mut before, mut sums) = (U256::ZERO, SupplyRow::default());
    for block in first..head {
        let Some(supply) = view.supply(block)? else {
            tally.wrong(Some(block), "its row of the supply is missing");
            continue;
        };
        let lost = supply.base_fees_burnt.wrapping_add(supply.blob_fees_burnt);
        let net = supply.issued.wrapping_sub(lost.wrapping_add(supply.destroyed));
        let (gain, told) = (
            gained.remove(&block).unwrap_or_default(),
            net.wrapping_sub(before),
        );
        if gain != told {
            let text = format!(
                "balances changed by {}, issued less burnt is {}",
                signed(gain),
                signed(told)
            );
            tally.wrong(Some(block), text);
        }
        let parts = |row: &SupplyRow| {
            let burnt = [row.base_fees_burnt, row.blob_fees_burnt, row.destroyed];
            [[row.opening, row.issued].as_slice(), &burnt].concat()
        };
        if parts(&supply)
            .iter()
            .zip(parts(&sums))
            .any(|(now, before)| *now < before)
        {
            tally.wrong(
                Some(block),
                "a sum of its supply is less than that of the block before",
            );
        }
        // The allocation was known from the first block on; openings that a node told come as they are met.
        if view.checkpoint().native.allocated && supply.opening != opening {
            let text = format!(
                "its supply opened with {}, accounts with {opening}",
                supply.opening
            );
            tally.wrong(Some(block), text);
        }
        (before, sums) = (net, supply);
    }
    for block in gained.into_keys() {
        tally.wrong(
            Some(block),
            "balances changed in a block whose frames are not stored",
        );
    }
    let supply = view.supply(head - 1)?.unwrap_or_default();
    if supply.opening != opening || supply.total() != Some(held) {
        let text = format!(
            "accounts hold {held} and opened with {opening}, the supply says {} and {}",
            supply.total().unwrap_or_default(),
            supply.opening
        );
        tally.wrong(Some(head - 1), text);
    }
    Ok(())
}

/// A sum that wrapped is a negative one.
fn signed(sum: U256) -> String {
    if sum.bit(255) {
        format!("-{}", sum.wrapping_neg())
    } else {
        sum.to_string()
    }
}
