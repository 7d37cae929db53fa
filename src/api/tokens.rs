//! T1, T2, T4, T8, T9: supplies, balances and numbers of holders of tokens.

use serde::Serialize;

use crate::desk::amounts::Unit;
use crate::desk::answer::{Answer, Plan};
use crate::desk::balances::sourced;
use crate::desk::bounds::take_block;
use crate::desk::caching::Reach;
use crate::desk::faults::query_failed;
use crate::desk::tokens::{self, find_whole, source};
use crate::http::HttpError;
use crate::model::Address;

use super::input::Input;
use super::token_lists;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Supply {
    address: String,
    chain: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    total_supply: String,
}

/// What makes the answer of T1 and T8.
fn supply_body(
    address: Address,
    chain: &'static str,
) -> impl Fn(Option<u64>, String, &'static str) -> Result<Answer, HttpError> + Send + 'static {
    move |block, total_supply, source| {
        let body = Supply {
            address: const_hex::encode_prefixed(address),
            chain,
            block,
            total_supply,
        };
        // The verdict on a token may be another one later, also of a block that is final.
        sourced(&body, source, Reach::Head)
    }
}

/// T1.
pub(super) fn supply(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.contract()?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let body = supply_body(address, snapshot.chain.as_str());
        tokens::supply(snapshot, address, unit, move |text, source| {
            body(None, text, source)
        })
    }))
}

/// T8.
pub(super) fn supply_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.contract()?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let body = supply_body(address, snapshot.chain.as_str());
        tokens::supply_at(snapshot, address, asked, unit, move |block, text, source| {
            body(Some(block), text, source)
        })
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Balance {
    address: String,
    contract_address: String,
    chain: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    balance: String,
}

/// What makes the answer of T2 and T9.
fn balance_body(
    account: Address,
    token: Address,
    chain: &'static str,
) -> impl Fn(Option<u64>, String, &'static str) -> Result<Answer, HttpError> + Send + 'static {
    move |block, balance, source| {
        let body = Balance {
            address: const_hex::encode_prefixed(account),
            contract_address: const_hex::encode_prefixed(token),
            chain,
            block,
            balance,
        };
        sourced(&body, source, Reach::Head)
    }
}

/// T2 where there is an account, else T3.
pub(super) fn balance(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    if !input.params.contains("address") {
        // The path takes it.
        Unit::take(&mut input.params)?;
        return token_lists::holders(input);
    }
    let account = input.require_account()?;
    let address = input.require_contract()?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let body = balance_body(account, address, snapshot.chain.as_str());
        tokens::balance(snapshot, account, address, unit, move |text, source| {
            body(None, text, source)
        })
    }))
}

/// T9.
pub(super) fn balance_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let address = input.require_contract()?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::quick(move |snapshot| {
        let body = balance_body(account, address, snapshot.chain.as_str());
        tokens::balance_at(
            snapshot,
            account,
            address,
            asked,
            unit,
            move |block, text, source| body(Some(block), text, source),
        )
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HolderCount {
    contract_address: String,
    chain: &'static str,
    holder_count: u64,
}

/// T4.
pub(super) fn holder_count(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.require_contract()?;
    Ok(Plan::point(move |snapshot| {
        let token = find_whole(snapshot, &address)?;
        let (holder_count, by_ledger) = snapshot.reader.holder_count(&token).map_err(query_failed)?;
        let body = HolderCount {
            contract_address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            holder_count,
        };
        sourced(&body, source(by_ledger), Reach::Head)
    }))
}
