//! The module `logs`.

use crate::desk::answer::Plan;
use crate::desk::bounds::Bounds;
use crate::desk::frames::{ListFrame, Places, RowSource};
use crate::desk::lists::Found;
use crate::desk::logs::{self, OPERATORS, TOPICS};
use crate::http::{HttpError, Params};
use crate::query::{GasTeller, LogPage, Paged as _, QueryError};

use super::ask::Ask;
use super::envelope::{NO_RECORDS, empty, page};
use super::items;

/// `getLogs`.
pub(super) fn get_logs(ask: &mut Ask<'_>) -> Result<Plan, HttpError> {
    drop_loose_operators(&mut ask.params)?;
    let mut query = logs::take_query(&mut ask.params)?;
    let bounds = Bounds::take(&mut ask.params, "fromblock", "toblock")?;
    let list = ask.list(false)?;
    Ok(Plan::scan(move |snapshot| {
        let Some(range) = bounds.resolve(snapshot.extent())? else {
            return empty(NO_RECORDS);
        };
        let rows = LogRows {
            page: logs::page(snapshot, &mut query, &list.part(Some(range)))?,
            gas: GasTeller::new(&snapshot.reader),
        };
        let found = Found::from(rows.page.page()).within(bounds.reach(range));
        page(snapshot, &list, found, NO_RECORDS, rows)
    }))
}

/// Drops the operators that name a topic that is not given: clients send one for any two topics, and Etherscan passes over those.
fn drop_loose_operators(params: &mut Params) -> Result<(), HttpError> {
    for (name, left, right) in OPERATORS {
        let is_given = |place: usize| TOPICS.get(place).is_some_and(|topic| params.contains(topic));
        if !(is_given(left) && is_given(right)) {
            params.take(name)?;
        }
    }
    Ok(())
}

/// The logs of a page, with what their transactions paid.
struct LogRows {
    page: LogPage,
    gas: GasTeller,
}

impl RowSource for LogRows {
    fn places(&mut self) -> &mut dyn Places {
        self.page.page_mut()
    }

    fn again(&self) -> Self {
        Self {
            page: self.page.again(),
            gas: self.gas.again(),
        }
    }

    fn write(&mut self, frame: &mut ListFrame<'_>) -> Result<bool, QueryError> {
        let Self { page, gas } = self;
        let mut failed = None;
        let more = page.visit(&mut |log| match gas.of(log.block_number, log.transaction_index) {
            Ok(paid) => frame.item(|out| items::log(out, log, paid)),
            Err(error) => {
                failed = Some(error);
                false
            }
        })?;
        failed.map_or(Ok(more), Err)
    }
}
