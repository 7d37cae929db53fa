//! L1, L2, L3: event logs by address, by topics, by both.

use crate::http::HttpError;
use crate::json::{LogWriter, UuidSpace};
use crate::query::{LogPage, LogQuery, Paged, QueryError};

use crate::desk::answer::{Answer, Plan, Snapshot};
use crate::desk::bounds::Bounds;
use crate::desk::frames::{ListFrame, Places, RowSource};
use crate::desk::lists::{Envelope, Found, ListParams};
use crate::desk::logs;

use super::input::Input;
use super::page::take_list;

/// A parsed request; block numbers are resolved against a snapshot.
struct LogsRequest {
    query: LogQuery,
    bounds: Bounds,
    list: ListParams,
}

pub(super) fn get_logs(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let request = LogsRequest::parse(input)?;
    let (quick, short) = (request.query.is_driven_by_one_list(), request.list.is_short());
    let work = move |snapshot: &Snapshot| request.answer(snapshot);
    Ok(if quick {
        Plan::quick_scan(short, work)
    } else {
        Plan::scan(work)
    })
}

impl LogsRequest {
    fn parse(input: &mut Input<'_>) -> Result<Self, HttpError> {
        let params = &mut input.params;
        let query = logs::take_query(params)?;
        let bounds = Bounds::take(params, "fromblock", "toblock")?;
        let list = take_list(input)?;
        Ok(Self { query, bounds, list })
    }

    fn answer(mut self, snapshot: &Snapshot) -> Result<Answer, HttpError> {
        let envelope = Envelope::new("logs", |_| {});
        let Some(range) = self.bounds.resolve(snapshot.extent())? else {
            return Ok(self.list.empty(envelope));
        };
        let reach = self.bounds.reach(range);
        let page = logs::page(snapshot, &mut self.query, &self.list.part(Some(range)))?;
        let found = Found::from(page.page()).within(reach);
        let ids = UuidSpace::new(snapshot.reader.chain_id());
        let rows = LogRows {
            page,
            text: LogWriter::new(ids.clone()),
            ids,
        };
        self.list.answer(snapshot, envelope, found, rows)
    }
}

/// The logs of a page as text.
struct LogRows {
    page: LogPage,
    text: LogWriter,
    ids: UuidSpace,
}

impl RowSource for LogRows {
    const IS_QUICK: bool = true;

    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            text: LogWriter::new(self.ids.clone()),
            ids: self.ids.clone(),
        }
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        let text = &mut self.text;
        let more = self
            .page
            .visit(&mut |log| frame.item(|out| text.entry(out, log)))?;
        self.text.finish(frame.text());
        Ok(more)
    }
}
