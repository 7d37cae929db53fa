//! T1, T2, T4, T8, T9: supplies, balances and numbers of holders of tokens.

use serde::Serialize;

use crate::http::{ErrorStatus, HttpError, parse_address};
use crate::model::{Address, U256};
use crate::query::Token;

use super::amounts::Unit;
use super::answer::{Plan, Snapshot};
use super::balances::{LEDGER, NODE, sourced};
use super::bounds::take_block;
use super::caching::Reach;
use super::faults::{
    INVALID_ADDRESS, INVALID_CONTRACT_ADDRESS, SUPPLY_FAILED, TOKEN_NOT_FOUND, UPSTREAM_FAILED, query_failed,
};
use super::input::Input;
use super::token_lists;

/// The contract in the path.
fn take_token(input: &Input<'_>) -> Result<Address, HttpError> {
    input.segment(0, parse_address, || {
        HttpError::bad_request(INVALID_CONTRACT_ADDRESS)
    })
}

/// The account in the path.
pub(super) fn take_account(input: &Input<'_>) -> Result<Address, HttpError> {
    input.segment(0, parse_address, || HttpError::bad_request(INVALID_ADDRESS))
}

/// The parameter `contractaddress`.
pub(super) fn require_contract(input: &mut Input<'_>) -> Result<Address, HttpError> {
    let name = "contractaddress";
    input
        .params
        .take_address(name, INVALID_CONTRACT_ADDRESS)?
        .ok_or_else(|| HttpError::missing(name))
}

/// The parameter `address`.
pub(super) fn require_account(input: &mut Input<'_>) -> Result<Address, HttpError> {
    let name = "address";
    input
        .params
        .take_address(name, INVALID_ADDRESS)?
        .ok_or_else(|| HttpError::missing(name))
}

/// The token at an address, or 404 with this text.
pub(super) fn find(snapshot: &Snapshot, address: &Address, text: &'static str) -> Result<Token, HttpError> {
    let found = snapshot.reader.token(address).map_err(query_failed)?;
    found.ok_or_else(|| HttpError::not_found(text))
}

/// Lets the ledger answer for a token that it is right about. Of any other only its contract can tell, by the node.
fn by_ledger(token: &Token, text: &'static str) -> Result<(), HttpError> {
    if token.is_exact() {
        return Ok(());
    }
    Err(HttpError::new(ErrorStatus::BadGateway, text).with_detail(format!(
        "the ledger of token {} is not what its contract says",
        token.address
    )))
}

/// An amount of a token in the unit that was asked for.
fn amount(snapshot: &Snapshot, token: &Token, unit: Unit, amount: U256) -> Result<String, HttpError> {
    let decimals = match unit {
        Unit::Base => None,
        Unit::Coin => {
            let metadata = snapshot.reader.token_metadata(&token.address);
            metadata.map_err(query_failed)?.decimals
        }
    };
    unit.token(amount, decimals)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Supply {
    address: String,
    chain: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u64>,
    total_supply: String,
}

/// T1.
pub(super) fn supply(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = take_token(input)?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::point(move |snapshot| {
        let token = find(snapshot, &address, SUPPLY_FAILED)?;
        by_ledger(&token, SUPPLY_FAILED)?;
        let body = Supply {
            address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            block: None,
            total_supply: amount(snapshot, &token, unit, token.supply())?,
        };
        sourced(&body, LEDGER, Reach::Head)
    }))
}

/// T8.
pub(super) fn supply_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = take_token(input)?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::point(move |snapshot| {
        let block = asked.indexed(snapshot.extent())?;
        let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
        by_ledger(&token, UPSTREAM_FAILED)?;
        let supply = snapshot
            .reader
            .token_supply(&token, block)
            .map_err(query_failed)?;
        let body = Supply {
            address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            block: Some(block),
            total_supply: amount(snapshot, &token, unit, supply)?,
        };
        // The verdict on a token may be another one later, also of a block that is final.
        sourced(&body, LEDGER, Reach::Head)
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

/// T2 where there is an account, else T3.
pub(super) fn balance(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    if !input.params.contains("address") {
        return token_lists::holders(input);
    }
    let account = require_account(input)?;
    let address = require_contract(input)?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::point(move |snapshot| {
        let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
        by_ledger(&token, UPSTREAM_FAILED)?;
        let balance = snapshot
            .reader
            .token_balance(&token, &account)
            .map_err(query_failed)?;
        let body = Balance {
            address: const_hex::encode_prefixed(account),
            contract_address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            block: None,
            balance: amount(snapshot, &token, unit, balance)?,
        };
        sourced(&body, LEDGER, Reach::Head)
    }))
}

/// T9.
pub(super) fn balance_at(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = take_account(input)?;
    let address = require_contract(input)?;
    let asked = take_block(&mut input.params, "block")?;
    let unit = Unit::take(&mut input.params)?;
    Ok(Plan::point(move |snapshot| {
        let block = asked.indexed(snapshot.extent())?;
        let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
        by_ledger(&token, UPSTREAM_FAILED)?;
        let balance = snapshot
            .reader
            .token_balance_at(&token, &account, block)
            .map_err(query_failed)?;
        let body = Balance {
            address: const_hex::encode_prefixed(account),
            contract_address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            block: Some(block),
            balance: amount(snapshot, &token, unit, balance)?,
        };
        sourced(&body, LEDGER, Reach::Head)
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
    let address = require_contract(input)?;
    Ok(Plan::point(move |snapshot| {
        let token = find(snapshot, &address, TOKEN_NOT_FOUND)?;
        let (holder_count, by_ledger) = snapshot.reader.holder_count(&token).map_err(query_failed)?;
        let body = HolderCount {
            contract_address: const_hex::encode_prefixed(address),
            chain: snapshot.chain.as_str(),
            holder_count,
        };
        sourced(&body, source(by_ledger), Reach::Head)
    }))
}

/// The text of `X-Balance-Source`.
pub(super) const fn source(by_ledger: bool) -> &'static str {
    if by_ledger { LEDGER } else { NODE }
}
