//! B1: how many transactions a block has. B2: which block a time falls on.

use serde::Serialize;

use crate::desk::answer::{Answer, Plan};
use crate::desk::blocks;
use crate::desk::caching::Reach;
use crate::desk::faults::needs_traces;
use crate::http::{Decimal, HttpError, parse_u64};
use crate::query::Closest;

use super::input::Input;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TransactionCount {
    txs_count: u64,
    internal_txs_count: u64,
}

pub(super) fn transaction_count(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let number = input.segment(0, parse_u64, || HttpError::invalid("blockNumber"))?;
    Ok(Plan::point(move |snapshot| {
        let counts = blocks::counts(snapshot, number)?;
        let counts = TransactionCount {
            txs_count: counts.transactions,
            internal_txs_count: counts.internal_transactions.ok_or_else(needs_traces)?,
        };
        Answer::json(&counts, Reach::UpTo(number))
    }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockNumber {
    timestamp: String,
    closest: &'static str,
    chain: &'static str,
    block_number: String,
    block_timestamp: String,
}

pub(super) fn number_by_time(input: &mut Input<'_>) -> Result<Plan, HttpError> {
    let time = input.segment(0, Decimal::parse, || HttpError::invalid("unixTimestamp"))?;
    let choices = [("before", Closest::Before), ("after", Closest::After)];
    let closest = input
        .params
        .take_choice("closest", &choices)?
        .unwrap_or(Closest::Before);
    Ok(Plan::point(move |snapshot| {
        let found = blocks::by_time(snapshot, time.number(), closest)?;
        let reach = blocks::reach_of(closest, found.number);
        let answer = BlockNumber {
            timestamp: time.to_string(),
            closest: match closest {
                Closest::Before => "before",
                Closest::After => "after",
            },
            chain: snapshot.chain.as_str(),
            block_number: found.number.to_string(),
            block_timestamp: found.timestamp.to_string(),
        };
        Answer::json(&answer, reach)
    }))
}
