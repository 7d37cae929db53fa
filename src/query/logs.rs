//! Logs by address, by topics and by both (L1, L2, L3).

use std::ops::Range;
use std::time::Instant;

use super::expression::{Conjunction, Filter, Union};
use super::limit::Limit;
use super::log_page::{Bodies, LogPage};
use super::page::{self, ListQuery, RowCursor, Rows, Selected};
use super::walk::Walker;
use super::{QueryError, Reader, merge, ranks};
use crate::codec::keys::Term;
use crate::model::{Address, B256};
use crate::store::{Direction, PostingCursor, View};

/// How two topics are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Both must match.
    And,
    /// Either must match.
    Or,
}

/// A question for logs.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    /// Emitting contract.
    pub address: Option<Address>,
    /// Other contracts that will do as well.
    pub others: Vec<Address>,
    /// For each topic position the values of which any matches; empty where the topic is not given.
    pub topics: [Vec<B256>; 4],
    /// Operators between two positions that are both given.
    pub operators: Vec<(usize, usize, Operator)>,
    /// First block, inclusive.
    pub first_block: u64,
    /// Last block, inclusive.
    pub last_block: u64,
    /// Newest first.
    pub descending: bool,
    /// Rows to leave out.
    pub skip: u64,
    /// Rows to give at most.
    pub limit: usize,
    /// Resume after this row; `skip` then counts from there.
    pub cursor: Option<RowCursor>,
    /// Give up at this time; only questions that call for several lists look at it.
    pub deadline: Option<Instant>,
}

impl LogQuery {
    /// Asks for this part of the matching logs.
    pub const fn set_part(&mut self, part: &ListQuery) {
        self.first_block = part.first_block;
        self.last_block = part.last_block;
        self.descending = part.descending;
        self.skip = part.skip;
        self.limit = part.limit;
        self.cursor = part.cursor;
    }

    /// Whether one list of places has all that match and nothing else: a contract, a topic, a contract and its
    /// signature, or whatever there is. Expressions over several lists may walk long ones for little.
    #[must_use]
    pub fn is_driven_by_one_list(&self) -> bool {
        let given: Vec<usize> = (0..4)
            .filter(|&place| self.topics.get(place).is_some_and(|values| !values.is_empty()))
            .collect();
        let single = self.topics.iter().all(|values| values.len() <= 1);
        let one = matches!(
            (self.address.is_some(), given.as_slice()),
            (true, [] | [0]) | (false, [] | [_])
        );
        one && single && self.others.is_empty() && self.operators.is_empty()
    }

    /// How many lists its topics call for: one for each value, and again for each combination that names the topic.
    #[must_use]
    pub fn lists(&self) -> usize {
        let values = |position: &usize| self.topics.get(*position).map_or(0, Vec::len);
        clauses(self).iter().flatten().map(values).sum()
    }

    /// Whether every log matches.
    fn is_open(&self) -> bool {
        self.address.is_none() && self.others.is_empty() && self.topics.iter().all(Vec::is_empty)
    }

    /// Which part of the matching logs is asked for.
    pub(super) const fn part(&self) -> ListQuery {
        ListQuery {
            first_block: self.first_block,
            last_block: self.last_block,
            descending: self.descending,
            skip: self.skip,
            limit: self.limit,
            cursor: self.cursor,
        }
    }
}

/// A run of 12 KB is read for a hit where at least one in this many of its logs is a hit; else a unit of 4 KB.
const RUN_SHARE: u128 = 16;

/// Lists that are opened, and moved to find a rank, from one look at the clock to the next, over all parts of a question: of a cold disk each
/// is some reads. Ordinary questions call for fewer.
const LISTS_PER_LOOK: u32 = 256;

impl Reader {
    /// The logs that match, by block and log index; see [`LogQuery`].
    pub fn logs(&self, query: &LogQuery) -> Result<LogPage, QueryError> {
        let view = &*self.view;
        if let Some(cursor) = &query.cursor {
            cursor.check(view, Rows::Logs)?;
        }
        let part = query.part();
        let range = Rows::Logs.range(view, &part)?;
        let mut limit = Limit::new(query.deadline, LISTS_PER_LOOK);
        let (mut emitters, mut only) = (Vec::new(), None);
        for address in query.address.iter().chain(&query.others) {
            limit.spend(1)?;
            if let Some(emitter) = view.emitter(address)?
                && !emitters.contains(&emitter)
            {
                only = emitters.is_empty().then_some((emitter, *address));
                emitters.push(emitter);
            }
        }
        if emitters.is_empty() && (query.address.is_some() || !query.others.is_empty()) {
            return LogPage::none(&self.view);
        }
        let selected = if query.is_open() {
            page::select_all(range, &part)
        } else {
            let mut matches = plan(view, query, &emitters, (part.direction(), None), &mut limit)?;
            match matches.alone() {
                // One list gives the answer, or several that share no log: pages are ranks.
                Some(lists) => ranks::select(lists, range, &part, &mut limit)?,
                None => {
                    let range = part.rest(range);
                    let by_pairs =
                        self.select_by_pairs(query, &emitters, &range, matches.rarest(), &mut limit)?;
                    let page = (query.skip, query.limit);
                    let selected = match by_pairs {
                        Some(selected) => selected,
                        None => self.select_part(&mut matches, query, range, page, &mut limit)?,
                    };
                    // It is of what is left after a cursor.
                    Selected {
                        total: selected.total.filter(|_| query.cursor.is_none()),
                        ..selected
                    }
                }
            }
        };
        let bodies = match only {
            // Every log of the run is a hit.
            Some((emitter, address)) if query.topics.iter().all(Vec::is_empty) => {
                Bodies::ByEmitter(emitter, address)
            }
            Some((emitter, address)) if is_close(view, emitter, &selected.hits)? => {
                Bodies::ByEmitter(emitter, address)
            }
            _ => Bodies::ByBlock,
        };
        LogPage::new(&self.view, selected, bodies)
    }
}

impl Reader {
    /// The logs with these ordinals (places among all logs of the chain), in the order given.
    pub fn logs_at(&self, ordinals: Vec<u64>) -> Result<LogPage, QueryError> {
        let selected = Selected {
            hits: ordinals,
            ..Selected::default()
        };
        LogPage::new(&self.view, selected, Bodies::ByBlock)
    }
}

/// The clauses of a query: positions of which any must match.
pub(super) fn clauses(query: &LogQuery) -> Vec<Vec<usize>> {
    let mut clauses: Vec<Vec<usize>> = Vec::new();
    let mut named = [false; 4];
    for &(a, b, operator) in &query.operators {
        for position in [a, b] {
            if let Some(named) = named.get_mut(position) {
                *named = true;
            }
        }
        match operator {
            Operator::And => clauses.extend([vec![a], vec![b]]),
            Operator::Or => clauses.push(vec![a.min(b), a.max(b)]),
        }
    }
    for (position, values) in query.topics.iter().enumerate() {
        if !values.is_empty() && named.get(position) == Some(&false) {
            clauses.push(vec![position]);
        }
    }
    clauses.sort();
    clauses.dedup();
    // A clause that another one implies (A beside A or B) adds nothing.
    let implied = |clause: &Vec<usize>| {
        clause.len() > 1 && clause.iter().any(|position| clauses.contains(&vec![*position]))
    };
    clauses
        .iter()
        .filter(|clause| !implied(clause))
        .cloned()
        .collect()
}

/// The terms of a clause that occur, each once.
pub(super) fn terms(
    view: &View,
    query: &LogQuery,
    clause: &[usize],
    limit: &mut Limit,
) -> Result<Vec<Term>, QueryError> {
    let mut terms = Vec::new();
    for &position in clause {
        for topic in query.topics.get(position).into_iter().flatten() {
            limit.spend(1)?;
            let term = match position {
                0 => view.signature(topic)?.map(Term::topic0),
                _ => Term::topic(position, topic),
            };
            terms.extend(term.filter(|term| !terms.contains(term)));
        }
    }
    Ok(terms)
}

/// The lists that must agree. Where only what lies before an ordinal is asked for, lists count as long as they are there.
pub(super) fn plan<'v>(
    view: &'v View,
    query: &LogQuery,
    emitters: &[u32],
    (direction, end): (Direction, Option<u64>),
    limit: &mut Limit,
) -> Result<Conjunction<'v>, QueryError> {
    let signatures = query.topics.first().map_or(0, Vec::len);
    // Each pair of an emitter and a signature has a list of its own, which beats two lists that must agree, unless
    // there are so many that opening them costs more.
    let paired = if emitters.len().saturating_mul(signatures) <= PAIRS_MAX {
        emitters
    } else {
        &[]
    };
    let mut unions = Vec::new();
    // The clause of topic 0 alone, which also makes sure of the emitter.
    let mut of_signatures = None;
    for clause in clauses(query) {
        let (mut lists, mut signatures) = (Vec::new(), Vec::new());
        for term in terms(view, query, &clause, limit)? {
            let signature = term.number();
            signatures.extend(signature);
            match signature {
                Some(signature) if !paired.is_empty() => {
                    let both = |&emitter| Term::log_address_topic0(emitter, signature);
                    lists.extend(paired.iter().map(both));
                }
                _ => lists.push(term),
            }
        }
        // A log has one value at a position.
        let union = Union::open(view, lists, direction, limit)?
            .until(end, limit)?
            .disjoint(clause.len() == 1);
        if clause == [0] {
            of_signatures = Some((union, signatures));
        } else {
            unions.push(union);
        }
    }
    let mut filter = Filter::default();
    // Walking a rarer list and looking emitter and signature up by ordinal (an array read each) beats
    // intersecting with their lists.
    let rarest = unions.iter().map(Union::weight).min();
    let emitter_sure = match of_signatures {
        Some((union, mut signatures)) if rarest.is_some_and(|rarest| is_long(union.weight(), rarest)) => {
            signatures.sort_unstable();
            filter.signatures = Some(signatures);
            false
        }
        Some((union, _)) => {
            unions.push(union);
            !paired.is_empty()
        }
        None => false,
    };
    if !emitter_sure && !emitters.is_empty() {
        let lists = emitters.iter().map(|&emitter| Term::log_address(emitter));
        // A log has one emitter.
        let lists = Union::open(view, lists, direction, limit)?
            .until(end, limit)?
            .disjoint(true);
        let rarest = unions.iter().map(Union::weight).min();
        if filter.signatures.is_none() && rarest.is_none_or(|rarest| lists.weight() < rarest) {
            unions.push(lists);
        } else {
            let mut emitters = emitters.to_vec();
            emitters.sort_unstable();
            filter.emitters = Some(emitters);
        }
    }
    Ok(Conjunction::new(view, unions, filter, direction))
}

/// So many lists of pairs of emitter and signature are opened at most.
const PAIRS_MAX: usize = 1024;

/// Whether a list is too long beside the rarest for both to be merged chunk by chunk.
pub(super) const fn is_long(count: u64, rarest: u64) -> bool {
    count / merge::LENGTH_RATIO_MAX > rarest
}

/// Of expressions whose rarest list is shorter than this no walk is kept: it is walked over in some microseconds.
const WALK_MIN: u64 = 4_096;
/// Nor is one over fewer ordinals than this: new blocks add a little again and again, and each time marks are copied.
const WALKED_MIN: u64 = 1 << 14;

impl Reader {
    /// Selects a page of `rows` rows after `skip` others in a range: what is left of the question's after its cursor, or a part of that.
    pub(super) fn select_part(
        &self,
        matches: &mut Conjunction<'_>,
        query: &LogQuery,
        range: Range<u64>,
        (skip, rows): (u64, usize),
        limit: &mut Limit,
    ) -> Result<Selected, QueryError> {
        match matches.alone() {
            Some(lists) => {
                let page = ListQuery {
                    descending: query.descending,
                    skip,
                    limit: rows,
                    ..ListQuery::default()
                };
                ranks::select(lists, range, &page, limit)
            }
            None => select_by_walk(&self.view, matches, query, range, (skip, rows), self.walks_anew),
        }
    }
}

/// Several lists must agree: rows of a range before the page are walked over, as far as no walk before did.
fn select_by_walk(
    view: &View,
    matches: &mut Conjunction<'_>,
    query: &LogQuery,
    range: Range<u64>,
    page: (u64, usize),
    anew: bool,
) -> Result<Selected, QueryError> {
    let name = (matches.rarest() >= WALK_MIN).then(|| name_of(query));
    let known = name.as_deref().filter(|_| !anew);
    let known = known.and_then(|name| view.walked(name));
    let final_end = match view.finalized() {
        Some(last) if name.is_some() => view.first_log(last.saturating_add(1))?,
        _ => 0,
    };
    let direction = query.part().direction();
    let walker = Walker::new(matches.until(query.deadline), direction, page, final_end);
    let (selected, found) = walker.select(&range, &known.unwrap_or_default());
    for walked in found {
        // What ran out of time goes on there, however little it was.
        if let Some(name) = &name
            && (WALKED_MIN <= walked.ordinals() || selected.is_err())
        {
            view.keep_walked(name, walked);
        }
    }
    selected
}

/// What says which expression over the whole chain a query is; equal ones may have several.
fn name_of(query: &LogQuery) -> Vec<u8> {
    let mut name = Vec::with_capacity(160);
    let mut emitters: Vec<&Address> = query.address.iter().chain(&query.others).collect();
    emitters.sort_unstable();
    emitters.dedup();
    // Each list with its length, so that none can be taken for the beginning of the next.
    name.extend_from_slice(&(emitters.len() as u64).to_be_bytes());
    for emitter in emitters {
        name.extend_from_slice(emitter.as_slice());
    }
    for values in &query.topics {
        let mut values: Vec<&B256> = values.iter().collect();
        values.sort_unstable();
        values.dedup();
        name.extend_from_slice(&(values.len() as u64).to_be_bytes());
        for value in values {
            name.extend_from_slice(value.as_slice());
        }
    }
    for clause in clauses(query) {
        name.push(
            clause
                .iter()
                .fold(0, |positions, position| positions | 1 << position),
        );
    }
    name
}

/// Whether the hits of a page lie so close among the logs of their emitter that its runs are the place to read
/// their bodies.
fn is_close(view: &View, emitter: u32, hits: &[u64]) -> Result<bool, QueryError> {
    let (Some(&a), Some(&b)) = (hits.first(), hits.last()) else {
        return Ok(false);
    };
    let list = PostingCursor::open(view, Term::log_address(emitter), Direction::Forward)?;
    let span = u128::from(a.abs_diff(b) + 1);
    // The emitter's logs between the hits, were they spread evenly.
    let between = u128::from(list.count()) * span / u128::from(view.checkpoint().logs.max(1));
    Ok(between <= hits.len() as u128 * RUN_SHARE)
}
