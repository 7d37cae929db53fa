//! A3: transactions of an account. A4, A5, A6: internal transactions of an account, of blocks, of a transaction.
//! A9: blocks that an account mined.

use std::sync::Arc;

use crate::http::HttpError;
use crate::json::{UuidSpace, internal_transaction, listed_transaction, mined_block};
use crate::model::{Address, B256};
use crate::query::{CallNames, InternalPage, MinedPage, Paged, QueryError, TransactionPage};

use super::answer::{Answer, Plan, Snapshot};
use super::bounds::Bounds;
use super::caching::Reach;
use super::faults::{INVALID_HASH, TRANSACTION_NOT_FOUND, query_failed};
use super::input::Input;
use super::page::{Envelope, Found, Frame, ListParams, Places, RowSource, echoed};

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
            list: ListParams::take(input)?,
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
        let rows = TransactionRows {
            page,
            head: snapshot.reader.head().number,
            names: Arc::new(CallNames::new(&snapshot.reader).map_err(query_failed)?),
        };
        asked.list.answer(snapshot, envelope, found, rows)
    }))
}

/// The transactions of a page as text.
struct TransactionRows {
    page: TransactionPage,
    head: u64,
    /// Shared by all that write parts of the page.
    names: Arc<CallNames>,
}

impl RowSource for TransactionRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            head: self.head,
            names: Arc::clone(&self.names),
        }
    }

    fn write(&mut self, frame: &mut Frame<'_>) -> Result<bool, QueryError> {
        let (head, names) = (self.head, &self.names);
        let mut failed = None;
        let more = self
            .page
            .visit(&mut |transaction| match names.of_call(transaction) {
                Ok(name) => frame.item(|out| listed_transaction(out, transaction, head, &name)),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            })?;
        failed.map_or(Ok(more), Err)
    }
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
    let list = ListParams::take(input)?.whole_by_default();
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
    for name in ["startblock", "endblock"] {
        if !input.params.contains(name) {
            return Err(HttpError::missing(name));
        }
    }
    let bounds = Bounds::take(&mut input.params, "startblock", "endblock")?;
    let all = take_all(input)?;
    let list = ListParams::take(input)?;
    Ok(Plan::scan(move |snapshot| {
        let (first, last) = echoed(bounds, snapshot.reader.head().number);
        let envelope = Envelope::paged(INTERNAL, snapshot.chain, &list, |object| {
            object.integer("startblock", first);
            object.integer("endblock", last);
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
    let rows = InternalRows {
        page,
        ids: UuidSpace::new(snapshot.reader.chain_id()),
        trace_id: String::new(),
    };
    list.answer(snapshot, envelope, found, rows)
}

/// The internal transactions of a page as text.
struct InternalRows {
    page: InternalPage,
    ids: UuidSpace,
    trace_id: String,
}

impl RowSource for InternalRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            ids: self.ids.clone(),
            trace_id: String::new(),
        }
    }

    fn write(&mut self, frame: &mut Frame<'_>) -> Result<bool, QueryError> {
        let (ids, trace_id) = (&self.ids, &mut self.trace_id);
        self.page
            .visit(&mut |internal| frame.item(|out| internal_transaction(out, ids, trace_id, internal)))
    }
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
        asked.list.answer(snapshot, envelope, found, MinedRows { page })
    }))
}

/// The mined blocks of a page as text.
struct MinedRows {
    page: MinedPage,
}

impl RowSource for MinedRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
        }
    }

    fn write(&mut self, frame: &mut Frame<'_>) -> Result<bool, QueryError> {
        self.page
            .visit(&mut |mined| frame.item(|out| mined_block(out, mined)))
    }
}
