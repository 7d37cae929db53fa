//! Event logs: the expression that is asked for (L1, L2, L3).

use std::time::Duration;

use crate::http::{HttpError, Params};
use crate::query::{ListQuery, LogPage, LogQuery, Operator, Reader};

use super::answer::Snapshot;
use super::faults::{INVALID_ADDRESS, INVALID_TOPIC, TOOK_TOO_LONG, TOPIC_REQUIRED, in_time};

/// The pair operators and the topics they combine, in the specification's order.
pub(crate) const OPERATORS: [(&str, usize, usize); 6] = [
    ("topic0_1_opr", 0, 1),
    ("topic1_2_opr", 1, 2),
    ("topic2_3_opr", 2, 3),
    ("topic0_2_opr", 0, 2),
    ("topic0_3_opr", 0, 3),
    ("topic1_3_opr", 1, 3),
];
/// The topics by position.
pub(crate) const TOPICS: [&str; 4] = ["topic0", "topic1", "topic2", "topic3"];

/// Most values of a topic, as `eth_getLogs` has it.
const VALUES_MAX: usize = 1000;

/// Most lists that an expression may call for: without operators there are never so many. Each that is walked over holds up to 8 KB.
const LISTS_MAX: usize = 4096;

/// How long an expression over several lists may be walked before the client is asked to narrow it.
pub(crate) const WALK_TIME_MAX: Duration = Duration::from_secs(20);

/// Takes address, topics and operators; 400 where they call for too much.
pub(crate) fn take_query(params: &mut Params) -> Result<LogQuery, HttpError> {
    let address = params.take_address("address", INVALID_ADDRESS)?;
    let mut topics: [Vec<_>; 4] = Default::default();
    for (name, values) in TOPICS.into_iter().zip(&mut topics) {
        *values = params.take_hashes(name, INVALID_TOPIC)?;
        if values.len() > VALUES_MAX {
            let text = format!("At most {VALUES_MAX} values of {name} are allowed");
            return Err(HttpError::bad_request(text));
        }
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
    let query = LogQuery {
        address,
        topics,
        operators,
        ..LogQuery::default()
    };
    if query.lists() > LISTS_MAX {
        return Err(HttpError::bad_request(format!(
            "At most {LISTS_MAX} topic values are allowed, those of a topic once for each of its operators"
        )));
    }
    Ok(query)
}

/// A page of what is asked for, by [`look_up`].
pub(crate) fn page(
    snapshot: &Snapshot,
    query: &mut LogQuery,
    part: &ListQuery,
) -> Result<LogPage, HttpError> {
    query.set_part(part);
    look_up(&snapshot.reader, query)
}

/// What is asked for, within the time that a walk over several lists may take.
pub(crate) fn look_up(reader: &Reader, query: &mut LogQuery) -> Result<LogPage, HttpError> {
    in_time(WALK_TIME_MAX, TOOK_TOO_LONG, |deadline| {
        query.deadline = Some(deadline);
        reader.logs(query)
    })
}
