//! The module `account`.

use std::time::Instant;

use serde::Serialize;

use crate::desk::answer::Plan;
use crate::desk::balances::{self, age_text};
use crate::desk::bounds::{AskedBlock, Bound, Bounds};
use crate::desk::caching::Reach;
use crate::desk::faults::{INVALID_ADDRESS, TOOK_TOO_LONG, in_time, query_failed};
use crate::desk::frames::RowSource;
use crate::desk::lists::{Found, ListParams};
use crate::desk::logs::WALK_TIME_MAX;
use crate::desk::proxy::Tag;
use crate::desk::rows::{InternalRows, MinedRows, TransactionRows, TransferRows, WriteTransfer};
use crate::http::{HttpError, parse_u64};
use crate::model::{Address, B256};
use crate::query::{ListQuery, Paged as _, QueryError, Reader, Standard};

use super::ask::Ask;
use super::envelope::{NO_TRANSACTIONS, empty, items_of, page, sourced};
use super::items;

/// `tag` as JSON-RPC spells it, or decimal; `pending` is what is indexed.
fn take_tag(ask: &mut Ask<'_>) -> Result<Tag, HttpError> {
    let Some(text) = ask.params.take("tag")? else {
        return Ok(Tag::Latest);
    };
    if text == "pending" {
        return Ok(Tag::Latest);
    }
    match parse_u64(&text) {
        Some(number) => Ok(Tag::Number(number)),
        None => Tag::parse(&text),
    }
}

/// `balance`: of an account that nobody knows it is 0.
pub(super) fn balance(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let tag = take_tag(ask)?;
    Ok(Plan::quick(move |snapshot| {
        if tag == Tag::Latest {
            return balances::of_account(snapshot, account, |balance, _, source| {
                sourced(&balance.to_string(), source, Reach::Head)
            });
        }
        let number = tag.number(snapshot).ok_or_else(|| HttpError::invalid("tag"))?;
        let asked = AskedBlock::new("tag", Bound::Number(number));
        // A word means another block as time goes by. By a number what is no answer for good stays that.
        let by_word = tag.reach(number) == Reach::Head;
        balances::of_account_at(snapshot, account, asked, move |_, balance, source, reach| {
            let reach = if by_word { Reach::Head } else { reach };
            sourced(&balance.to_string(), source, reach)
        })
    }))
}

#[derive(Serialize)]
struct AccountBalance {
    account: String,
    balance: String,
}

/// `balancemulti`: in the order of the request, one given twice once.
pub(super) fn balances_of(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let accounts = balances::several(ask.params.take_addresses("address", INVALID_ADDRESS)?)?;
    Ok(Plan::point(move |snapshot| {
        balances::of_accounts(snapshot, accounts, |found, source| {
            let found = found.iter();
            let result: Vec<_> = found
                .map(|(account, balance)| AccountBalance {
                    account: const_hex::encode_prefixed(account),
                    balance: balance.to_string(),
                })
                .collect();
            sourced(&result, source, Reach::Head)
        })
    }))
}

/// `balancehistory`.
pub(super) fn balance_at(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let asked = AskedBlock::new("blockno", Bound::Number(ask.block_number()?));
    Ok(Plan::quick(move |snapshot| {
        balances::of_account_at(snapshot, account, asked, |_, balance, source, reach| {
            sourced(&balance.to_string(), source, reach)
        })
    }))
}

/// The page of a list over the blocks that are asked for: what `find`, which is told until when, knows of it, and its rows.
fn paged<R: RowSource>(
    bounds: Bounds,
    list: ListParams,
    find: impl FnOnce(&Reader, &ListQuery, Instant) -> Result<(Found, R), QueryError> + Send + 'static,
) -> Plan {
    Plan::scan(move |snapshot| {
        let Some(range) = bounds.resolve(snapshot.extent())? else {
            return empty(NO_TRANSACTIONS);
        };
        let part = list.part(Some(range));
        let (found, rows) = in_time(WALK_TIME_MAX, TOOK_TOO_LONG, |deadline| {
            find(&snapshot.reader, &part, deadline)
        })?;
        page(snapshot, &list, found, NO_TRANSACTIONS, rows)
    })
}

/// `txlist`.
pub(super) fn transactions(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let bounds = ask.bounds()?;
    let list = ask.list(false)?;
    Ok(paged(bounds, list, move |reader, part, _| {
        let page = reader.account_transactions(&account, part)?;
        let found = Found::from(page.page());
        Ok((found, TransactionRows::new(reader, page, items::transaction)?))
    }))
}

/// `txlistinternal`: by transaction, by account or by blocks.
pub(super) fn internal(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    if let Some(hash) = ask.maybe_hash()? {
        // A hash wins: account and range are not looked at.
        return internal_of_transaction(hash, ask.list(false)?.whole_by_default());
    }
    let account = ask.maybe_address()?;
    let ranged = ["startblock", "endblock"].map(|name| ask.params.contains(name));
    let bounds = ask.bounds()?;
    let list = ask.list(false)?;
    if account.is_none() && ranged != [true, true] {
        return Err(HttpError::missing("txhash, address, or startblock and endblock"));
    }
    Ok(Plan::scan(move |snapshot| {
        let reader = &snapshot.reader;
        let Some(range) = bounds.resolve(snapshot.extent())? else {
            return empty(NO_TRANSACTIONS);
        };
        let part = list.part(Some(range));
        let rows = match &account {
            Some(account) => reader.account_internal(account, false, &part),
            None => reader.internal(false, &part),
        };
        let rows = rows.map_err(query_failed)?;
        let found = Found::from(rows.page()).within(bounds.reach(range));
        let rows = InternalRows::new(reader, rows, items::internal);
        page(snapshot, &list, found, NO_TRANSACTIONS, rows)
    }))
}

/// The same of one transaction.
fn internal_of_transaction(hash: B256, list: ListParams) -> Result<Plan, HttpError> {
    Ok(Plan::scan(move |snapshot| {
        let reader = &snapshot.reader;
        let rows = reader.transaction_internal(&hash, false, &list.part(None));
        let Some(rows) = rows.map_err(query_failed)? else {
            return empty(NO_TRANSACTIONS);
        };
        let is_final = reader.is_final_transaction(&hash).map_err(query_failed)?;
        let found = Found::from(rows.page()).within(Reach::of_transaction(is_final));
        let rows = InternalRows::new(reader, rows, items::internal);
        page(snapshot, &list, found, NO_TRANSACTIONS, rows)
    }))
}

/// `tokentx`.
pub(super) fn erc20_transfers(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    transfers(ask, Standard::Erc20, items::erc20)
}

/// `tokennfttx`.
pub(super) fn erc721_transfers(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    transfers(ask, Standard::Erc721, items::erc721)
}

/// `token1155tx`.
pub(super) fn erc1155_transfers(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    transfers(ask, Standard::Erc1155, items::erc1155)
}

/// Whose transfers are asked for.
enum Whose {
    /// An account's, in one token or in any.
    Account(Address, Option<Address>),
    Token(Address),
}

/// Transfers of an account, of a token, or of an account in a token.
fn transfers(ask: &mut Ask<'_>, standard: Standard, write: WriteTransfer) -> Result<Plan, HttpError> {
    let (account, token) = (ask.maybe_address()?, ask.maybe_contract()?);
    let bounds = ask.bounds()?;
    let list = ask.list(false)?;
    let whose = match (account, token) {
        (Some(account), token) => Whose::Account(account, token),
        (None, Some(token)) => Whose::Token(token),
        (None, None) => return Err(HttpError::missing("address or contractaddress")),
    };
    Ok(paged(bounds, list, move |reader, part, deadline| {
        let page = match whose {
            Whose::Account(account, token) => {
                reader.account_transfers(&account, standard, token.as_ref(), part)?
            }
            Whose::Token(token) => reader.token_transfers(&token, standard, part, Some(deadline))?,
        };
        let found = Found::from(page.page());
        Ok((found, TransferRows::new(reader, page, write)))
    }))
}

/// `getminedblocks`: newest first.
pub(super) fn mined_blocks(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    match ask.params.take("blocktype")?.as_deref() {
        None | Some("blocks") => {}
        // An empty list would say that there are none.
        Some("uncles") => return Err(HttpError::bad_request("blocktype uncles is not supported")),
        Some(_) => return Err(HttpError::invalid("blocktype")),
    }
    let bounds = ask.bounds()?;
    let list = ask.list(true)?;
    Ok(paged(bounds, list, move |reader, part, _| {
        let page = reader.account_mined(&account, part)?;
        let found = Found::from(page.page());
        let write = items::mined;
        Ok((found, MinedRows { page, write }))
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Withdrawal {
    withdrawal_index: String,
    validator_index: String,
    address: String,
    /// Gwei.
    amount: String,
    block_number: String,
    timestamp: String,
}

/// `txsBeaconWithdrawal`.
pub(super) fn withdrawals(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account = ask.address()?;
    let bounds = ask.bounds()?;
    let list = ask.list(false)?;
    Ok(Plan::scan(move |snapshot| {
        let Some(range) = bounds.resolve(snapshot.extent())? else {
            return empty(NO_TRANSACTIONS);
        };
        let page = in_time(WALK_TIME_MAX, TOOK_TOO_LONG, |deadline| {
            let part = list.part(Some(range));
            snapshot.reader.account_withdrawals(&account, &part, deadline)
        })?;
        let page = page.ok_or_else(|| balances::untold_by_ledger(snapshot))?;
        let rows: Vec<_> = page
            .rows
            .iter()
            .map(|row| Withdrawal {
                withdrawal_index: row.withdrawal.index.to_string(),
                validator_index: row.withdrawal.validator_index.to_string(),
                address: const_hex::encode_prefixed(row.withdrawal.address),
                amount: row.withdrawal.amount_gwei.to_string(),
                block_number: row.block.to_string(),
                timestamp: row.timestamp.to_string(),
            })
            .collect();
        // Withdrawals are found by the changes of the balance.
        let reach = balances::reach_of_ledger(snapshot, bounds.reach(range));
        items_of(&list, Found::last(page.total, reach), &rows)
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FundedBy {
    block: u64,
    time_stamp: String,
    funding_address: String,
    funding_txn: String,
    value: String,
    age: String,
}

/// `fundedby`.
pub(super) fn funded_by(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    let account: Address = ask.address()?;
    Ok(Plan::point(move |snapshot| {
        balances::first_funding(snapshot, account, |funding, seconds| {
            let by = funding.by;
            let result = FundedBy {
                block: funding.block,
                time_stamp: funding.timestamp.to_string(),
                funding_address: by
                    .map(|(_, funder)| const_hex::encode_prefixed(funder))
                    .unwrap_or_default(),
                funding_txn: by
                    .map(|(hash, _)| const_hex::encode_prefixed(hash))
                    .unwrap_or_default(),
                value: funding.value.to_string(),
                age: age_text(seconds),
            };
            super::envelope::ok(&result, Reach::Head)
        })
    }))
}
