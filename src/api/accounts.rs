//! A3: transactions of an account. A4, A5, A6: internal transactions of an account, of blocks, of a transaction.
//! A9: blocks that an account mined.

use crate::desk::answer::{Answer, Plan, Snapshot};
use crate::desk::bounds::Bounds;
use crate::desk::caching::Reach;
use crate::desk::faults::{INVALID_HASH, TRANSACTION_NOT_FOUND, query_failed};
use crate::desk::lists::{Envelope, Found, ListParams};
use crate::desk::rows::{InternalRows, MinedRows, TransactionRows};
use crate::http::{Decimal, HttpError};
use crate::json::{internal_transaction, listed_transaction, mined_block};
use crate::model::{Address, B256};
use crate::query::{InternalPage, Paged as _};

use super::input::Input;
use super::page::take_list;

/// What the lists of an account are asked by.
struct AccountList {
    account: Address,
    bounds: Bounds,
    list: ListParams,
}

impl AccountList {
    fn take(input: &mut Input<'_>) -> Result<Self, HttpError> {
        let account = input.account()?;
        Ok(Self {
            account,
            bounds: Bounds::take(&mut input.params, "startblock", "endblock")?,
            list: take_list(input)?,
        })
    }

    /// The text around the list: `{address, chain, page, offset, sort, <name>: [...]}`.
    fn envelope(&self, snapshot: &Snapshot, name: &str) -> Envelope {
        Envelope::paged(name, snapshot.chain, &self.list, |object| {
            object.hex("address", self.account);
        })
    }
}

pub(super) fn transactions(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let asked = AccountList::take(input)?;
    Ok(Plan::scan(move |snapshot| {
        let envelope = asked.envelope(snapshot, "transactions");
        let Some(range) = asked.bounds.resolve(snapshot.extent())? else {
            return Ok(asked.list.empty(envelope));
        };
        let page = snapshot
            .reader
            .account_transactions(&asked.account, &asked.list.part(Some(range)))
            .map_err(query_failed)?;
        let found = Found::from(page.page());
        let rows = TransactionRows::new(&snapshot.reader, page, listed_transaction).map_err(query_failed)?;
        asked.list.answer(snapshot, envelope, found, rows)
    }))
}

pub(super) fn internal_of_account(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let asked = AccountList::take(input)?;
    let all = take_all(input)?;
    Ok(Plan::scan(move |snapshot| {
        let envelope = asked.envelope(snapshot, INTERNAL);
        let Some(range) = asked.bounds.resolve(snapshot.extent())? else {
            return Ok(asked.list.empty(envelope));
        };
        let page = snapshot
            .reader
            .account_internal(&asked.account, all, &asked.list.part(Some(range)))
            .map_err(query_failed)?;
        let reach = asked.bounds.reach(range);
        answer_internal(snapshot, &asked.list, envelope, page, reach)
    }))
}

/// A6 where there is a hash, else A5.
pub(super) fn internal(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    match input.params.take_hash("hash", INVALID_HASH)? {
        Some(hash) => internal_of_transaction(input, hash),
        None => internal_of_blocks(input),
    }
}

fn internal_of_transaction(input: &mut Input<'_>, hash: B256) -> Result<Plan, HttpError> {
    let all = take_all(input)?;
    // Who asks for a transaction wants all of it; its gas bounds how much that can be.
    let list = take_list(input)?.whole_by_default();
    Ok(Plan::scan(move |snapshot| {
        let page = snapshot
            .reader
            .transaction_internal(&hash, all, &list.part(None))
            .map_err(query_failed)?
            .ok_or_else(|| HttpError::not_found(TRANSACTION_NOT_FOUND))?;
        let envelope = Envelope::new(INTERNAL, |object| {
            object.hex("hash", hash);
            object.string("chain", snapshot.chain.as_str());
        });
        let is_final = snapshot
            .reader
            .is_final_transaction(&hash)
            .map_err(query_failed)?;
        let reach = Reach::of_transaction(is_final);
        answer_internal(snapshot, &list, envelope, page, reach)
    }))
}

fn internal_of_blocks(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    const ENDS: [&str; 2] = ["startblock", "endblock"];
    for name in ENDS {
        if !input.params.contains(name) {
            return Err(HttpError::missing(name));
        }
    }
    // Said again: a number as given, the word as the block it stands for.
    let given = ENDS.map(|name| input.params.decimal(name));
    let bounds = Bounds::take(&mut input.params, "startblock", "endblock")?;
    let all = take_all(input)?;
    let list = take_list(input)?;
    Ok(Plan::scan(move |snapshot| {
        let envelope = Envelope::paged(INTERNAL, snapshot.chain, &list, |object| {
            let latest = Decimal::from(snapshot.reader.head().number);
            for (name, number) in ENDS.iter().zip(&given) {
                let said = number.as_ref().unwrap_or(&latest);
                object.integer_text(name, &said.to_string());
            }
        });
        let Some(range) = bounds.resolve(snapshot.extent())? else {
            return Ok(list.empty(envelope));
        };
        let page = snapshot
            .reader
            .internal(all, &list.part(Some(range)))
            .map_err(query_failed)?;
        answer_internal(snapshot, &list, envelope, page, bounds.reach(range))
    }))
}

/// The name of the lists of internal transactions.
const INTERNAL: &str = "internalTransactions";

/// Whether calls that move nothing are listed too.
fn take_all(input: &mut Input<'_>) -> Result<bool, HttpError> {
    Ok(input.params.take_bool("includeZeroValue")?.unwrap_or(false))
}

fn answer_internal(
    snapshot: &Snapshot,
    list: &ListParams,
    envelope: Envelope,
    page: InternalPage,
    reach: Reach,
) -> Result<Answer, HttpError> {
    let found = Found::from(page.page()).within(reach);
    let rows = InternalRows::new(&snapshot.reader, page, internal_transaction);
    list.answer(snapshot, envelope, found, rows)
}

pub(super) fn mined_blocks(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let asked = AccountList::take(input)?;
    Ok(Plan::scan(move |snapshot| {
        let envelope = asked.envelope(snapshot, "blocks");
        let Some(range) = asked.bounds.resolve(snapshot.extent())? else {
            return Ok(asked.list.empty(envelope));
        };
        let page = snapshot
            .reader
            .account_mined(&asked.account, &asked.list.part(Some(range)))
            .map_err(query_failed)?;
        let found = Found::from(page.page());
        let rows = MinedRows {
            page,
            write: mined_block,
        };
        asked.list.answer(snapshot, envelope, found, rows)
    }))
}
