//! T3: holders of a token. T6, T7, T10: tokens and ids of an account. A7, A8: its transfers.

use crate::http::{HttpError, Params};
use crate::json::{UuidSpace, holder, holding, inventory_item, transfer};
use crate::model::{Address, TokenKind, U256};
use crate::query::{Held, Paged as _, QueryError, Standard, TransferPage};

use super::answer::Plan;
use super::bounds::Bounds;
use super::caching::Reach;
use super::faults::{INVALID_CONTRACT_ADDRESS, INVALID_OFFSET, query_failed, still_indexing};
use super::input::Input;
use super::page::{Envelope, Found, Frame, Known, ListParams, Places, RowSource, take_cursor};
use super::tokens::{find_whole, source};

/// The pages of holders that may be asked for.
const HOLDER_OFFSETS: [u64; 4] = [10, 15, 30, 45];

/// What is known of a page of such rows.
fn found(total: Option<u64>, next: Option<impl ToString>, balance_source: Option<&'static str>) -> Found {
    Found {
        total,
        next: next.map(|place| place.to_string()),
        reach: Reach::Head,
        balance_source,
    }
}

fn take_holder_offset(params: &mut Params) -> Result<u64, HttpError> {
    let Some(text) = params.take("offset")? else {
        return Ok(10);
    };
    HOLDER_OFFSETS
        .into_iter()
        .find(|offset| offset.to_string() == text)
        .ok_or_else(|| HttpError::bad_request(INVALID_OFFSET))
}

/// T3.
pub(super) fn holders(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let address = input.require_contract()?;
    let offset = take_holder_offset(&mut input.params)?;
    let list = ListParams::take_pages(input, Some(offset))?;
    let part = list.key_part(take_cursor(&mut input.params)?);
    Ok(Plan::scan(move |snapshot| {
        let token = find_whole(snapshot, &address)?;
        let page = snapshot.reader.holders(&token, &part).map_err(query_failed)?;
        let envelope = Envelope::new("holders", |object| {
            object.hex("contractAddress", address);
            object.string("chain", snapshot.chain.as_str());
            list.echo(object);
        });
        let found = found(Some(page.total), page.next, Some(source(page.by_ledger)));
        let supply = page.supply;
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
    let list = ListParams::take_pages(input, None)?;
    let part = list.key_part(take_cursor(&mut input.params)?);
    Ok(Plan::scan(move |snapshot| {
        // What was held before the first block, and not moved since, no row tells of.
        if snapshot.reader.first_block() != 0 {
            return Err(still_indexing());
        }
        let page = snapshot
            .reader
            .holdings(&account, kind, &part)
            .map_err(query_failed)?;
        let envelope = Envelope::new("tokens", |object| {
            object.hex("address", account);
            object.string("chain", snapshot.chain.as_str());
        });
        let write = |out: &mut Vec<u8>, held: &Held| {
            holding(out, &held.token, &held.metadata, &held.balance);
        };
        let rows = Known::new(page.tokens, write);
        list.answer(snapshot, envelope, found(page.total, page.next, None), rows)
    }))
}

/// T10.
pub(super) fn nft_inventory(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let address = input.require_contract()?;
    let list = ListParams::take_pages(input, None)?;
    let part = list.key_part(take_cursor(&mut input.params)?);
    Ok(Plan::scan(move |snapshot| {
        let token = find_whole(snapshot, &address)?;
        let page = snapshot
            .reader
            .nft_ids(&token, &account, &part)
            .map_err(query_failed)?;
        let envelope = Envelope::new("tokens", |object| {
            object.hex("address", account);
            object.hex("contractAddress", address);
            object.string("chain", snapshot.chain.as_str());
            list.echo(object);
        });
        let write = move |out: &mut Vec<u8>, id: &U256| inventory_item(out, &address, id);
        let rows = Known::new(page.ids, write);
        list.answer(snapshot, envelope, found(Some(page.total), page.next, None), rows)
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

fn transfers(input: &mut Input<'_>, standard: Standard) -> Result<Plan, HttpError> {
    let account = input.account()?;
    let token = input
        .params
        .take_address("contractaddress", INVALID_CONTRACT_ADDRESS)?;
    let bounds = Bounds::take(&mut input.params, "startblock", "endblock")?;
    let list = ListParams::take(input)?;
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
        let rows = TransferRows {
            ids: UuidSpace::new(snapshot.reader.chain_id()),
            head: snapshot.reader.head().number,
            page,
        };
        list.answer(snapshot, envelope, Found::from(rows.page.page()), rows)
    }))
}

/// The transfers of a page as text.
struct TransferRows {
    page: TransferPage,
    ids: UuidSpace,
    head: u64,
}

impl RowSource for TransferRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            ids: self.ids.clone(),
            head: self.head,
        }
    }

    fn write(&mut self, frame: &mut Frame<'_>) -> Result<bool, QueryError> {
        let (ids, head) = (&self.ids, self.head);
        self.page
            .visit(&mut |row| frame.item(|out| transfer(out, ids, row, head)))
    }
}
