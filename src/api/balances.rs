//! A1, A2, A11: native balances. A10: how an account was funded first.

use serde::Serialize;

use crate::desk::amounts::Unit;
use crate::desk::answer::{Answer, Extra, Plan, X_BALANCE_SOURCE};
use crate::desk::balances::{self, age_text, sourced};
use crate::desk::bounds::take_block;
use crate::desk::caching::Reach;
use crate::desk::faults::{INVALID_ADDRESS, needs_traces};
use crate::desk::lists::{Shape, whole_list};
use crate::http::HttpError;
use crate::model::{Address, U256};

use super::input::Input;

#[derive(Serialize)]
struct AccountBalance {
    account: String,
    balance: String,
}

impl AccountBalance {
    fn new(account: &Address, balance: U256, unit: Unit) -> Self {
        Self {
            account: const_hex::encode_prefixed(account),
            balance: unit.native(balance),
        }
    }
}

/// A1.
pub(super) fn of_account(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let has_traces = snapshot.reader.has_traces();
        balances::of_account(snapshot, account, move |balance, known, source| {
            // An address that holds something is somebody, whoever says it. Of one that holds nothing call frames may tell.
            if !known && balance.is_zero() {
                return Err(if has_traces {
                    balances::not_found()
                } else {
                    needs_traces()
                });
            }
            sourced(&AccountBalance::new(&account, balance, unit), source, Reach::Head)
        })
    }))
}

#[derive(Serialize)]
struct Balances {
    chain: &'static str,
    balances: Vec<AccountBalance>,
}

/// A2.
pub(super) fn of_accounts(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let given = input.params.take_addresses("address", INVALID_ADDRESS)?;
    let unit = Unit::take(&mut input.params)?;
    let accounts = balances::several(given)?;
    let shape = Shape::wanted(input.request);
    Ok(Plan::point(move |snapshot| {
        let chain = snapshot.chain.as_str();
        balances::of_accounts(snapshot, accounts, move |found, source| {
            let found = found.iter();
            let body = Balances {
                chain,
                balances: found
                    .map(|(account, balance)| AccountBalance::new(account, *balance, unit))
                    .collect(),
            };
            let extra = Extra {
                source: Some((X_BALANCE_SOURCE, source)),
                ..Extra::default()
            };
            whole_list(shape, &body, &body.balances, extra)
        })
    }))
}

#[derive(Serialize)]
struct PastBalance {
    account: String,
    chain: &'static str,
    block: u64,
    balance: String,
}

/// A11.
pub(super) fn of_account_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let chain = snapshot.chain.as_str();
        balances::of_account_at(snapshot, account, asked, move |block, balance, source, reach| {
            let body = PastBalance {
                account: const_hex::encode_prefixed(account),
                chain,
                block,
                balance: unit.native(balance),
            };
            sourced(&body, source, reach)
        })
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FundedBy {
    address: String,
    chain: &'static str,
    funding_address: Option<String>,
    funding_txn: Option<String>,
    kind: &'static str,
    value: String,
    block: u64,
    timestamp: String,
    age_seconds: u64,
    age: String,
}

/// A10.
pub(super) fn funded_by(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    Ok(Plan::point(move |snapshot| {
        let chain = snapshot.chain.as_str();
        balances::first_funding(snapshot, account, move |funding, seconds| {
            let body = FundedBy {
                address: const_hex::encode_prefixed(account),
                chain,
                funding_address: funding.by.map(|(_, funder)| const_hex::encode_prefixed(funder)),
                funding_txn: funding.by.map(|(hash, _)| const_hex::encode_prefixed(hash)),
                kind: funding.kind.as_str(),
                value: funding.value.to_string(),
                block: funding.block,
                timestamp: funding.timestamp.to_string(),
                age_seconds: seconds,
                age: age_text(seconds),
            };
            // It counts from the head.
            Answer::json(&body, Reach::Head)
        })
    }))
}
