//! L1, L2, L3: event logs by address, by topics, by both.

use std::time::Duration;

use crate::clock;
use crate::http::HttpError;
use crate::json::{LogWriter, UuidSpace};
use crate::query::{LogPage, LogQuery, Operator, Paged, QueryError};

use super::answer::{Answer, Plan, Snapshot};
use super::bounds::Bounds;
use super::faults::{INVALID_ADDRESS, INVALID_TOPIC, TOPIC_REQUIRED, query_failed};
use super::input::Input;
use super::page::{Envelope, Found, Frame, ListParams, Places, RowSource};

/// The pair operators and the topics they combine, in the specification's order.
pub(super) const OPERATORS: [(&str, usize, usize); 6] = [
    ("topic0_1_opr", 0, 1),
    ("topic1_2_opr", 1, 2),
    ("topic2_3_opr", 2, 3),
    ("topic0_2_opr", 0, 2),
    ("topic0_3_opr", 0, 3),
    ("topic1_3_opr", 1, 3),
];
const TOPICS: [&str; 4] = ["topic0", "topic1", "topic2", "topic3"];

/// How long an expression over several lists may be walked before the client is asked to narrow it.
const WALK_TIME_MAX: Duration = Duration::from_secs(20);

/// A parsed request; block numbers are resolved against a snapshot.
struct LogsRequest {
    query: LogQuery,
    bounds: Bounds,
    list: ListParams,
}

pub(super) fn get_logs(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let request = LogsRequest::parse(input)?;
    Ok(Plan::scan(move |snapshot| request.answer(snapshot)))
}

impl LogsRequest {
    fn parse(input: &mut Input<'_>) -> Result<Self, HttpError> {
        let params = &mut input.params;
        let address = params.take_address("address", INVALID_ADDRESS)?;
        let mut topics: [Vec<_>; 4] = Default::default();
        for (name, values) in TOPICS.into_iter().zip(&mut topics) {
            *values = params.take_hashes(name, INVALID_TOPIC)?;
        }
        let given = topics.each_ref().map(|values| !values.is_empty());
        if address.is_none() && !given.contains(&true) {
            return Err(HttpError::bad_request(TOPIC_REQUIRED));
        }
        let mut operators = Vec::new();
        for (name, left, right) in OPERATORS {
            let choices = [("and", Operator::And), ("or", Operator::Or)];
            if let Some(operator) = params.take_choice(name, &choices)? {
                if !(given.get(left) == Some(&true) && given.get(right) == Some(&true)) {
                    let text = format!("Operator {name} names a topic that is not given");
                    return Err(HttpError::bad_request(text));
                }
                operators.push((left, right, operator));
            }
        }
        let bounds = Bounds::take(params, "fromblock", "toblock")?;
        let list = ListParams::take(input)?;
        Ok(Self {
            query: LogQuery {
                address,
                topics,
                operators,
                ..LogQuery::default()
            },
            bounds,
            list,
        })
    }

    fn answer(mut self, snapshot: &Snapshot) -> Result<Answer, HttpError> {
        let envelope = Envelope::new("logs", |_| {});
        let Some(range) = self.bounds.resolve(snapshot.extent())? else {
            return Ok(self.list.empty(envelope));
        };
        let reach = self.bounds.reach(range);
        self.query.set_part(&self.list.part(Some(range)));
        self.query.deadline = Some(clock::now() + WALK_TIME_MAX);
        let page = snapshot.reader.logs(&self.query).map_err(query_failed)?;
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

    fn write(&mut self, frame: &mut Frame<'_>) -> Result<bool, QueryError> {
        let text = &mut self.text;
        let more = self
            .page
            .visit(&mut |log| frame.item(|out| text.entry(out, log)))?;
        self.text.finish(frame.text());
        Ok(more)
    }
}
