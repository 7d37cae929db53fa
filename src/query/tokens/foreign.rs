//! Transfers that a contract emitted by another standard than its own: no list has them, its logs do.

use std::ops::Range;
use std::time::Instant;

use super::Standard;
use crate::codec::keys::Term;
use crate::model::token::{TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE};
use crate::model::{Address, B256, TokenEvent, TokenKind};
use crate::query::QueryError;
use crate::query::expression::{Conjunction, Filter, Union};
use crate::query::limit::Limit;
use crate::query::page::{ListQuery, Rows, Selected};
use crate::store::{Direction, Table, Units, View};

/// Selects a page of them by a walk over the logs that may be such transfers.
pub(super) fn select(
    view: &View,
    token: &Address,
    standard: Standard,
    query: &ListQuery,
    deadline: Option<Instant>,
) -> Result<Selected, QueryError> {
    let rows = standard.rows();
    let range = rows.range(view, query)?;
    if let Some(cursor) = &query.cursor {
        cursor.check(view, rows)?;
    }
    let range = query.rest(range);
    let (mut skipped, mut more, mut hits) = (0, false, Vec::new());
    let mut take = |ordinal: u64| {
        if skipped < query.skip {
            skipped += 1;
        } else if hits.len() < query.limit {
            hits.push(ordinal);
        } else {
            more = true;
        }
        !more
    };
    let signatures: &[B256] = match standard {
        Standard::Erc20 | Standard::Erc721 => &SINGLE,
        Standard::Erc1155 => &MULTI,
    };
    let (logs, direction) = (logs_of(view, standard, &range)?, query.direction());
    let mut events = Events::new(view, token);
    let ended = events.walk(signatures, logs, direction, deadline, |event, log| {
        if event.kind() != standard.kind() {
            return Ok(true);
        }
        let mut found = ordinals(view, &event, log)?.filter(|row| range.contains(row));
        Ok(match direction {
            Direction::Forward => found.all(&mut take),
            Direction::Backward => found.rev().all(&mut take),
        })
    })?;
    let total = (ended && query.cursor.is_none()).then(|| skipped + hits.len() as u64);
    Ok(Selected { hits, total, more })
}

/// The transfers of a contract that follows several standards are read to be counted where so few logs may be some: each takes a few
/// microseconds. How many there are decides and no clock, so that every service says the same.
const READ_MAX: u64 = 10_000;
/// Logs that are read from one look at the clock to the next.
const READ_PER_LOOK: u32 = 16;

/// How many transfers a contract emitted by other standards than its own, by which it emitted `owned` ones. Of a contract with
/// many logs those with the signature of a transfer: some of them may be none, and a batch counts once.
pub(super) fn count(view: &View, token: &Address, own: TokenKind, owned: u64) -> Result<u64, QueryError> {
    let logs_of = |signatures: &[B256]| -> Result<u64, QueryError> {
        Ok(lists(view, token, signatures, Direction::Forward)?.weight())
    };
    let (single, multi) = (logs_of(&SINGLE)?, logs_of(&MULTI)?);
    let (signatures, logs, about): (&[B256], u64, u64) = match own {
        // What begins as one of its own standard is of no other one.
        TokenKind::Erc1155 => (&SINGLE, single, single),
        _ => (&ALL, single + multi, single.saturating_sub(owned) + multi),
    };
    if READ_MAX < logs {
        return Ok(about);
    }
    let end = view.checkpoint().logs;
    let (mut reader, mut count) = (Events::new(view, token), 0);
    reader.walk(signatures, 0..end, Direction::Forward, None, |event, _| {
        count += match event {
            TokenEvent::Multi { items, .. } if event.kind() != own => items.len() as u64,
            _ => u64::from(event.kind() != own),
        };
        Ok(true)
    })?;
    Ok(count)
}

/// What logs of transfers begin with: of ERC-20 and ERC-721, of ERC-1155, and of all.
const SINGLE: [B256; 1] = [TRANSFER];
const MULTI: [B256; 2] = [TRANSFER_SINGLE, TRANSFER_BATCH];
const ALL: [B256; 3] = [TRANSFER, TRANSFER_SINGLE, TRANSFER_BATCH];

/// The lists of the contract's logs that begin so.
fn lists<'v>(
    view: &'v View,
    token: &Address,
    signatures: &[B256],
    direction: Direction,
) -> Result<Union<'v>, QueryError> {
    let emitter = view.emitter(token)?;
    let mut terms = Vec::new();
    for topic in signatures {
        if let (Some(emitter), Some(signature)) = (emitter, view.signature(topic)?) {
            terms.push(Term::log_address_topic0(emitter, signature));
        }
    }
    Union::open(view, terms, direction, &mut Limit::none())
}

/// Reads the contract's logs as events of a token.
struct Events<'v> {
    view: &'v View,
    token: &'v Address,
    logs: Units<'v>,
    data: Vec<u8>,
}

impl<'v> Events<'v> {
    fn new(view: &'v View, token: &'v Address) -> Self {
        Self {
            view,
            token,
            logs: Units::new(view, Table::LogsByBlock),
            data: Vec::new(),
        }
    }

    /// Hands the event of each log that begins so on, with the log's ordinal, until `take` has enough. Whether it came to the end of the logs.
    fn walk(
        &mut self,
        signatures: &[B256],
        logs: Range<u64>,
        direction: Direction,
        deadline: Option<Instant>,
        mut take: impl FnMut(TokenEvent<'_>, u64) -> Result<bool, QueryError>,
    ) -> Result<bool, QueryError> {
        let lists = lists(self.view, self.token, signatures, direction)?;
        let mut candidates = Conjunction::new(self.view, vec![lists], Filter::default(), direction);
        let mut limit = Limit::new(deadline, READ_PER_LOOK);
        let mut failed = None;
        let ended = candidates.walk(logs, None, |log| {
            let taken = limit.spend(1).and_then(|()| {
                let whole = self.logs.log(self.view, log, &mut self.data)?;
                match TokenEvent::of(self.token, &whole.topics, &self.data) {
                    Some(event) => take(event, log),
                    None => Ok(true),
                }
            });
            taken.unwrap_or_else(|error| {
                failed = Some(error);
                false
            })
        })?;
        failed.map_or(Ok(ended), Err)
    }
}

/// The logs that the transfers of a range of ordinals lie in.
fn logs_of(view: &View, standard: Standard, range: &Range<u64>) -> Result<Range<u64>, QueryError> {
    Ok(match standard.rows() {
        Rows::MultiTransfers if range.is_empty() => 0..0,
        Rows::MultiTransfers => {
            view.multi_transfer(range.start)?.0..view.multi_transfer(range.end - 1)?.0 + 1
        }
        _ => range.clone(),
    })
}

/// The ordinals of the transfers of a log.
fn ordinals(view: &View, event: &TokenEvent<'_>, log: u64) -> Result<Range<u64>, QueryError> {
    let TokenEvent::Multi { items, .. } = event else {
        return Ok(log..log + 1);
    };
    let first = view.first_multi_transfer(log)?;
    Ok(first..first + items.len() as u64)
}
