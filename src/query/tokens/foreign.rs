//! Transfers that a contract emitted by another standard than its own: no list has them, its logs do.

use std::ops::Range;
use std::time::Instant;

use super::Standard;
use crate::codec::keys::Term;
use crate::model::token::{TRANSFER, TRANSFER_BATCH, TRANSFER_SINGLE};
use crate::model::{Address, B256, TokenEvent, TokenKind};
use crate::query::QueryError;
use crate::query::expression::{Conjunction, Filter, Union};
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
    let mut walk = Walk::new(view, token, standard);
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
    let logs = walk.logs_of(&range)?;
    let ended = walk.each(logs, query.direction(), deadline, |found| {
        found.into_iter().filter(|row| range.contains(row)).all(&mut take)
    })?;
    let total = (ended && query.cursor.is_none()).then(|| skipped + hits.len() as u64);
    Ok(Selected { hits, total, more })
}

/// The transfers of a contract that follows several standards are read to be counted where so few logs may be some.
const READ_MAX: u64 = 100_000;

/// How many transfers a contract emitted by other standards than its own, by which it emitted `owned` ones. Of a contract with
/// very many logs, those with the signature of a transfer: some of them may be none, and a batch counts once.
pub(super) fn count(view: &View, token: &Address, own: TokenKind, owned: u64) -> Result<u64, QueryError> {
    let logs_of = |standard: Standard| -> Result<u64, QueryError> {
        Ok(lists(view, token, standard, Direction::Forward)?.weight())
    };
    let (single, multi) = (logs_of(Standard::Erc20)?, logs_of(Standard::Erc1155)?);
    if READ_MAX < single + multi {
        return Ok(match own {
            TokenKind::Erc1155 => single,
            _ => single.saturating_sub(owned) + multi,
        });
    }
    let end = view.checkpoint().logs;
    let mut count = 0;
    for standard in [Standard::Erc20, Standard::Erc721, Standard::Erc1155] {
        if standard.kind() == own {
            continue;
        }
        Walk::new(view, token, standard).each(0..end, Direction::Forward, None, |found| {
            count += found.len() as u64;
            true
        })?;
    }
    Ok(count)
}

/// The logs of the contract that begin as such transfers do.
fn candidates<'v>(
    view: &'v View,
    token: &Address,
    standard: Standard,
    direction: Direction,
) -> Result<Conjunction<'v>, QueryError> {
    let lists = lists(view, token, standard, direction)?;
    Ok(Conjunction::new(view, vec![lists], Filter::default(), direction))
}

/// The lists of those logs.
fn lists<'v>(
    view: &'v View,
    token: &Address,
    standard: Standard,
    direction: Direction,
) -> Result<Union<'v>, QueryError> {
    let signatures: &[B256] = match standard {
        Standard::Erc20 | Standard::Erc721 => &[TRANSFER],
        Standard::Erc1155 => &[TRANSFER_SINGLE, TRANSFER_BATCH],
    };
    let emitter = view.emitter(token)?;
    let mut terms = Vec::new();
    for topic in signatures {
        if let (Some(emitter), Some(signature)) = (emitter, view.signature(topic)?) {
            terms.push(Term::log_address_topic0(emitter, signature));
        }
    }
    Ok(Union::open(view, terms, direction)?)
}

/// Reads the logs on the way.
struct Walk<'v> {
    view: &'v View,
    token: &'v Address,
    standard: Standard,
    logs: Units<'v>,
    data: Vec<u8>,
}

impl<'v> Walk<'v> {
    fn new(view: &'v View, token: &'v Address, standard: Standard) -> Self {
        Self {
            view,
            token,
            standard,
            logs: Units::new(view, Table::LogsByBlock),
            data: Vec::new(),
        }
    }

    /// Hands the transfers of each log on, until `take` has enough. Whether it came to the end of the logs.
    fn each(
        &mut self,
        logs: Range<u64>,
        direction: Direction,
        deadline: Option<Instant>,
        mut take: impl FnMut(Vec<u64>) -> bool,
    ) -> Result<bool, QueryError> {
        let mut candidates = candidates(self.view, self.token, self.standard, direction)?;
        let mut failed = None;
        let ended = candidates.walk(logs, deadline, |log| {
            match self.transfers(log, direction == Direction::Backward) {
                Ok(found) => take(found),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        })?;
        failed.map_or(Ok(ended), Err)
    }

    /// The logs that the transfers of a range of ordinals lie in.
    fn logs_of(&self, range: &Range<u64>) -> Result<Range<u64>, QueryError> {
        Ok(match self.standard.rows() {
            Rows::MultiTransfers if range.is_empty() => 0..0,
            Rows::MultiTransfers => {
                self.view.multi_transfer(range.start)?.0..self.view.multi_transfer(range.end - 1)?.0 + 1
            }
            _ => range.clone(),
        })
    }

    /// The ordinals of the transfers of a log, in the order of the page; none where it is no such transfer.
    fn transfers(&mut self, log: u64, descending: bool) -> Result<Vec<u64>, QueryError> {
        let whole = self.logs.log(self.view, log, &mut self.data)?;
        let event = TokenEvent::of(self.token, &whole.topics, &self.data);
        let Some(event) = event.filter(|event| event.kind() == self.standard.kind()) else {
            return Ok(Vec::new());
        };
        let TokenEvent::Multi { items, .. } = event else {
            return Ok(vec![log]);
        };
        let first = self.view.first_multi_transfer(log)?;
        let ordinals = first..first + items.len() as u64;
        Ok(if descending {
            ordinals.rev().collect()
        } else {
            ordinals.collect()
        })
    }
}
