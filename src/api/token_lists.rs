//! T3: holders of a token. T6, T7, T10: tokens and ids of an account. A7, A8: its transfers. The same of ERC-1155.

use crate::desk::answer::Plan;
use crate::desk::bounds::Bounds;
use crate::desk::faults::{INVALID_CONTRACT_ADDRESS, INVALID_OFFSET, TWO_FILTERS, query_failed};
use crate::desk::frames::Known;
use crate::desk::lists::{Envelope, Found};
use crate::desk::rows::TransferRows;
use crate::desk::tokens::{self, find_whole, nft_ids, source};
use crate::http::{HttpError, Params};
use crate::json::{held_id, holder, holding, inventory_item, transfer};
use crate::model::{Address, TokenKind, U256};
use crate::query::{Held, HeldId, Paged as _, Standard};

use super::input::Input;
use super::page::{take_list, take_pages};

/// The pages of holders that may be asked for.
const HOLDER_OFFSETS: [u64; 4] = [10, 15, 30, 45];

fn take_holder_offset(params: &mut Params) -> Result<u64, HttpError> {
    let none_of_them = || HttpError::bad_request(INVALID_OFFSET);
    let Some(text) = params.take_or("offset", none_of_them)? else {
        return Ok(10);
    };
    HOLDER_OFFSETS
        .into_iter()
        .find(|offset| offset.to_string() == text)
        .ok_or_else(none_of_them)
}

/// T3.
pub(super) fn holders(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.require_contract()?;
    let offset = take_holder_offset(&mut input.params)?;
    let list = take_pages(input, Some(offset))?;
    let part = list.take_key_part(&mut input.params)?;
    Ok(Plan::scan(move |snapshot| {
        let token = find_whole(snapshot, &address)?;
        let page = tokens::holders(snapshot, &token, &part)?;
        let envelope = Envelope::new("holders", |object| {
            object.hex("contractAddress", address);
            object.string("chain", snapshot.chain.as_str());
            list.echo(object);
        });
        let found = Found::keyed(Some(page.total), page.next, Some(source(page.by_ledger)));
        // Of none there are no shares.
        let supply = page.supply.unwrap_or_default();
        let write = move |out: &mut Vec<u8>, (address, balance): &(Address, U256)| {
            holder(out, address, balance, &supply);
        };
        let rows = Known::new(page.holders, write);
        list.answer(snapshot, envelope, found, rows)
    }))
}

/// T6.
pub(super) fn erc20_holdings(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    holdings(input, TokenKind::Erc20)
}

/// T7.
pub(super) fn erc721_holdings(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    holdings(input, TokenKind::Erc721)
}

fn holdings(input: &mut Input<'_>, kind: TokenKind) -> Result<Plan, HttpError> {
    let account = input.require_account()?;
    let list = take_pages(input, None)?;
    let part = list.take_key_part(&mut input.params)?;
    Ok(Plan::scan(move |snapshot| {
        let page = tokens::holdings(snapshot, &account, kind, &part)?;
        let envelope = Envelope::new("tokens", |object| {
            object.hex("address", account);
            object.string("chain", snapshot.chain.as_str());
        });
        let write = |out: &mut Vec<u8>, held: &Held| {
            holding(out, &held.token, &held.metadata, &held.balance);
        };
        let rows = Known::new(page.tokens, write);
        list.answer(
            snapshot,
            envelope,
            Found::keyed(page.total, page.next, None),
            rows,
        )
    }))
}

/// Ids of ERC-1155 tokens and how much of each.
pub(super) fn erc1155_holdings(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.require_account()?;
    let token = take_filter(&mut input.params)?;
    let list = take_pages(input, None)?;
    let part = list.take_key_part(&mut input.params)?;
    Ok(Plan::scan(move |snapshot| {
        let page = tokens::multi_holdings(snapshot, &account, token.as_ref(), &part)?;
        let envelope = Envelope::new("tokens", |object| {
            object.hex("address", account);
            object.string("chain", snapshot.chain.as_str());
            list.echo(object);
        });
        let write = |out: &mut Vec<u8>, held: &HeldId| {
            held_id(out, &held.token, &held.metadata, &held.id, &held.balance);
        };
        let rows = Known::new(page.ids, write);
        list.answer(
            snapshot,
            envelope,
            Found::keyed(page.total, page.next, None),
            rows,
        )
    }))
}

/// The token that a list is narrowed to, where there is one: `contractaddress`, or as answers spell it.
fn take_filter(params: &mut Params) -> Result<Option<Address>, HttpError> {
    let as_answered = params.take_address("contractAddress", INVALID_CONTRACT_ADDRESS)?;
    let filter = params.take_address("contractaddress", INVALID_CONTRACT_ADDRESS)?;
    match (filter, as_answered) {
        (Some(_), Some(_)) => Err(HttpError::bad_request(TWO_FILTERS)),
        (filter, as_answered) => Ok(filter.or(as_answered)),
    }
}

/// T10.
pub(super) fn nft_inventory(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let address = input.require_contract()?;
    let list = take_pages(input, None)?;
    let part = list.take_key_part(&mut input.params)?;
    Ok(Plan::scan(move |snapshot| {
        let token = find_whole(snapshot, &address)?;
        let page = nft_ids(snapshot, &token, &account, &part)?;
        let envelope = Envelope::new("tokens", |object| {
            object.hex("address", account);
            object.hex("contractAddress", address);
            object.string("chain", snapshot.chain.as_str());
            list.echo(object);
        });
        let write = move |out: &mut Vec<u8>, id: &U256| inventory_item(out, &address, id);
        let rows = Known::new(page.ids, write);
        list.answer(
            snapshot,
            envelope,
            Found::keyed(Some(page.total), page.next, None),
            rows,
        )
    }))
}

/// A7.
pub(super) fn erc20_transfers(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    transfers(input, Standard::Erc20)
}

/// A8.
pub(super) fn erc721_transfers(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    transfers(input, Standard::Erc721)
}

/// ERC-1155 transfers of an account, each item of a batch by itself.
pub(super) fn erc1155_transfers(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    transfers(input, Standard::Erc1155)
}

fn transfers(input: &mut Input<'_>, standard: Standard) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let token = take_filter(&mut input.params)?;
    let bounds = Bounds::take(&mut input.params, "startblock", "endblock")?;
    let list = take_list(input)?;
    Ok(Plan::scan(move |snapshot| {
        let envelope = Envelope::new("transfers", |object| {
            object.hex("address", account);
            object.string("chain", snapshot.chain.as_str());
            match token {
                Some(token) => object.hex("contractAddress", token),
                None => object.null("contractAddress"),
            }
            list.echo(object);
            list.echo_sort(object);
        });
        let Some(range) = bounds.resolve(snapshot.extent())? else {
            return Ok(list.empty(envelope));
        };
        let page = snapshot
            .reader
            .account_transfers(&account, standard, token.as_ref(), &list.part(Some(range)))
            .map_err(query_failed)?;
        let found = Found::from(page.page());
        let rows = TransferRows::new(&snapshot.reader, page, transfer);
        list.answer(snapshot, envelope, found, rows)
    }))
}
