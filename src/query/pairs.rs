//! Expressions over dense lists: by the lists of their pairs, where there are some.
//!
//! Two dense terms have a list of the logs that both have since both are dense ([`crate::store::DENSE`]). It stands for two of what a log must have; the
//! chain is taken in two parts, the one before that, where one of the two terms has few postings, and the one since, where pages are ranks if nothing
//! else is asked for.

use std::ops::Range;

use super::expression::{Conjunction, Filter, Union};
use super::logs::{self, LogQuery};
use super::page::{self, ListQuery, Selected};
use super::{QueryError, Reader};
use crate::codec::keys::Term;
use crate::store::{Direction, PostingCursor, View};

/// Shorter lists are walked over as soon as others are opened.
const RAREST_MIN: u64 = 1_024;
/// So are these many ordinals.
const ORDINALS_MIN: u64 = 1 << 15;
/// So many lists of pairs are opened at most.
const LISTS_MAX: usize = 64;

/// What a log must have: one of these terms.
struct Requirement {
    terms: Vec<Dense>,
    /// No log has two of them.
    is_disjoint: bool,
    /// The clause; `None` of emitters.
    clause: Option<Vec<usize>>,
}

/// A dense term and since when it is.
#[derive(Clone, Copy)]
struct Dense {
    term: Term,
    since: u64,
}

impl Dense {
    /// The list of a pair of terms; `None` where there is none for such terms.
    fn with(self, other: Self) -> Option<Term> {
        let topic = |dense: Self| {
            let position = dense.term.topic_position().filter(|&position| position > 0)?;
            Some((position, dense.since))
        };
        match (topic(self), topic(other)) {
            (Some(a), Some(b)) => Term::dense_topics(a.min(b), a.max(b)),
            (Some(topic), None) => Self::with_id(topic, other),
            (None, Some(topic)) => Self::with_id(topic, self),
            (None, None) => None,
        }
    }

    fn with_id(topic: (usize, u64), other: Self) -> Option<Term> {
        let id = other.term.number()?;
        match other.term.topic_position() {
            None => Term::dense_topic_with_emitter(topic, id),
            Some(_) => Term::dense_topic_with_signature(topic, id),
        }
    }
}

/// Two requirements met by lists of pairs.
struct Pair<'v> {
    /// Places of the requirements.
    places: (usize, usize),
    /// All terms are dense from here on.
    since: u64,
    met: Union<'v>,
}

/// The terms of a requirement, if all that occur are dense.
fn dense(view: &View, terms: Vec<Term>) -> Result<Option<Vec<Dense>>, QueryError> {
    let mut all = Vec::with_capacity(terms.len());
    for term in terms {
        let count = PostingCursor::open(view, term, Direction::Forward)?.count();
        if count == 0 {
            continue;
        }
        match view.dense_since(term)?.filter(|_| all.len() < LISTS_MAX) {
            Some(since) => all.push(Dense { term, since }),
            None => return Ok(None),
        }
    }
    Ok(Some(all))
}

fn pair<'v>(
    view: &'v View,
    (a, b): (&Requirement, &Requirement),
    direction: Direction,
) -> Result<Option<(u64, Union<'v>)>, QueryError> {
    if a.terms.len().saturating_mul(b.terms.len()) > LISTS_MAX {
        return Ok(None);
    }
    let mut since = 0;
    let mut lists = Vec::with_capacity(a.terms.len() * b.terms.len());
    for &one in &a.terms {
        for &other in &b.terms {
            let Some(term) = one.with(other) else {
                return Ok(None);
            };
            since = since.max(one.since).max(other.since);
            let list = PostingCursor::open(view, term, direction)?;
            if list.count() > 0 {
                lists.push(list);
            }
        }
    }
    let union = Union::new(lists, direction);
    let is_disjoint = a.is_disjoint && b.is_disjoint;
    Ok(Some((since, if is_disjoint { union.disjoint() } else { union })))
}

/// The two requirements that lists of pairs meet with the fewest postings; `None` where all such lists together are longer than `most`.
fn best<'v>(
    view: &'v View,
    requirements: &[Requirement],
    most: u64,
    direction: Direction,
) -> Result<Option<Pair<'v>>, QueryError> {
    let mut best: Option<Pair<'v>> = None;
    for (low, a) in requirements.iter().enumerate() {
        for (high, b) in requirements.iter().enumerate().skip(low + 1) {
            let Some((since, met)) = pair(view, (a, b), direction)? else {
                continue;
            };
            let fewest = best.as_ref().map_or(most, |best| best.met.weight());
            if best.is_none() && met.weight() <= fewest || met.weight() < fewest {
                best = Some(Pair {
                    places: (low, high),
                    since,
                    met,
                });
            }
        }
    }
    Ok(best)
}

impl Reader {
    /// Selects a page of an expression over several lists by lists of pairs; `None` where there are none that help. `rarest` is what a walk over the lists
    /// themselves looks at.
    pub(super) fn select_by_pairs(
        &self,
        query: &LogQuery,
        emitters: &[u32],
        range: &Range<u64>,
        rarest: u64,
    ) -> Result<Option<Selected>, QueryError> {
        if rarest < RAREST_MIN || range.end.saturating_sub(range.start) < ORDINALS_MIN {
            return Ok(None);
        }
        let (view, direction) = (&*self.view, query.part().direction());
        let mut requirements = Vec::new();
        // Of the others the lists themselves are met.
        let mut others = Vec::new();
        for clause in logs::clauses(query) {
            let terms = logs::terms(view, query, &clause)?;
            match dense(view, terms)? {
                Some(terms) => requirements.push(Requirement {
                    terms,
                    is_disjoint: clause.len() == 1,
                    clause: Some(clause),
                }),
                None => others.push(clause),
            }
        }
        if !emitters.is_empty() && emitters.len() <= LISTS_MAX {
            let terms = emitters.iter().map(|&emitter| Term::log_address(emitter));
            if let Some(terms) = dense(view, terms.collect())? {
                requirements.push(Requirement {
                    terms,
                    is_disjoint: true,
                    clause: None,
                });
            }
        }
        let Some(pair) = best(view, &requirements, rarest, direction)? else {
            return Ok(None);
        };
        let is_met = |place: usize| place == pair.places.0 || place == pair.places.1;
        let left = requirements
            .iter()
            .enumerate()
            .filter(|(place, _)| !is_met(*place));
        let met = requirements
            .iter()
            .enumerate()
            .filter(|(place, _)| is_met(*place));
        let has_emitter = met.into_iter().any(|(_, met)| met.clause.is_none());
        others.extend(left.filter_map(|(_, left)| left.clause.clone()));
        let since = self.since_pairs(query, emitters, (pair.met, has_emitter), &others)?;
        let before = || logs::plan(view, query, emitters, direction, Some(pair.since));
        self.select_in_parts(query, range, pair.since, before, since)
            .map(Some)
    }

    /// The part of the chain in which a pair stands for two of what a log must have.
    fn since_pairs<'v>(
        &'v self,
        query: &LogQuery,
        emitters: &[u32],
        (pair, has_emitter): (Union<'v>, bool),
        others: &[Vec<usize>],
    ) -> Result<Conjunction<'v>, QueryError> {
        let (view, direction) = (&*self.view, query.part().direction());
        let mut filter = Filter::default();
        if !has_emitter && !emitters.is_empty() {
            let mut emitters = emitters.to_vec();
            emitters.sort_unstable();
            filter.emitters = Some(emitters);
        }
        let mut unions = vec![pair];
        for clause in others {
            let terms = logs::terms(view, query, clause)?;
            if clause[..] == [0] {
                filter.signatures = Some(terms.iter().filter_map(Term::number).collect());
                continue;
            }
            let lists = terms
                .into_iter()
                .map(|term| PostingCursor::open(view, term, direction));
            unions.push(Union::new(lists.collect::<Result<_, _>>()?, direction));
        }
        Ok(Conjunction::new(view, unions, filter, direction))
    }

    /// Selects a page out of the part before `boundary` and the part from there on, one after the other.
    fn select_in_parts<'v>(
        &'v self,
        query: &LogQuery,
        range: &Range<u64>,
        boundary: u64,
        before: impl FnOnce() -> Result<Conjunction<'v>, QueryError>,
        mut since: Conjunction<'v>,
    ) -> Result<Selected, QueryError> {
        let mut parts = [
            (range.start..range.end.min(boundary), true),
            (range.start.max(boundary)..range.end, false),
        ];
        if query.descending {
            parts.reverse();
        }
        let mut before = Some(before);
        let mut selected = Selected {
            total: Some(0),
            ..Selected::default()
        };
        let mut skip = query.skip;
        for (part, is_before) in parts {
            if part.is_empty() {
                continue;
            }
            // Of what follows the page only that there is some is wanted.
            if selected.more {
                selected.total = None;
                break;
            }
            let limit = query.limit.saturating_sub(selected.hits.len());
            let one = match (is_before, before.take()) {
                (true, Some(plan)) => self.select_of(&mut plan()?, query, part, (skip, limit))?,
                (_, plan) => {
                    before = plan;
                    self.select_of(&mut since, query, part, (skip, limit))?
                }
            };
            skip = skip.saturating_sub(one.total.unwrap_or(skip));
            selected.hits.extend(one.hits);
            selected.more = one.more;
            selected.total = selected.total.zip(one.total).map(|(all, one)| all + one);
        }
        if query.cursor.is_some() {
            selected.total = None;
        }
        Ok(selected)
    }

    /// Selects rows of one part. The total is of what is left after a cursor.
    fn select_of(
        &self,
        matches: &mut Conjunction<'_>,
        query: &LogQuery,
        part: Range<u64>,
        (skip, limit): (u64, usize),
    ) -> Result<Selected, QueryError> {
        let rest = match &query.cursor {
            Some(cursor) => cursor.rest(part, query.descending),
            None => part,
        };
        if rest.is_empty() {
            return Ok(Selected {
                total: Some(0),
                ..Selected::default()
            });
        }
        match matches.alone() {
            Some(lists) => {
                let rows = ListQuery {
                    descending: query.descending,
                    skip,
                    limit,
                    ..ListQuery::default()
                };
                page::select(lists, rest, &rows)
            }
            None => logs::select_by_walk(&self.view, matches, query, rest, (skip, limit), self.walks_anew),
        }
    }
}
