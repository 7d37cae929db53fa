//! Expressions over dense lists: by the lists of their pairs, where there are some.
//!
//! Two dense terms have a list of the logs that both have since both are dense ([`crate::store::DENSE`]). It stands for two of what a log must have; the
//! chain is taken in two parts, the one before that, where one of the two terms has few postings, and the one since, where pages are ranks if nothing
//! else is asked for.

use std::ops::Range;

use super::expression::{Conjunction, Filter, Union};
use super::logs::{self, LogQuery};
use super::page::Selected;
use super::{QueryError, Reader};
use crate::codec::keys::Term;
use crate::store::{DENSE, Direction, PostingCursor, View};

/// Shorter lists are walked over as soon as others are opened.
const RAREST_MIN: u64 = 1_024;
/// So are these many ordinals.
const ORDINALS_MIN: u64 = 1 << 15;
/// So many lists of two requirements are opened at most, and so many of all.
const LISTS_MAX: usize = 64;
const ALL_LISTS_MAX: usize = 256;

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
    places: [usize; 2],
    /// All terms are dense from here on.
    since: u64,
    met: Union<'v>,
}

/// The terms of a requirement that occur, if all of those are dense and few.
fn dense(view: &View, terms: impl IntoIterator<Item = Term>) -> Result<Option<Vec<Term>>, QueryError> {
    let mut all = Vec::new();
    for term in terms {
        match PostingCursor::open(view, term, Direction::Forward)?.count() {
            0 => {}
            DENSE.. if all.len() < LISTS_MAX => all.push(term),
            _ => return Ok(None),
        }
    }
    Ok(Some(all))
}

/// The same with since when they are.
fn with_since(view: &View, terms: Vec<Term>) -> Result<Vec<Dense>, QueryError> {
    let mut all = Vec::with_capacity(terms.len());
    for term in terms {
        let since = view.dense_since(term)?;
        all.extend(since.map(|since| Dense { term, since }));
    }
    Ok(all)
}

/// The ids of contracts or signatures, ascending.
fn sorted(terms: &[Term]) -> Vec<u32> {
    let mut ids: Vec<u32> = terms.iter().filter_map(Term::number).collect();
    ids.sort_unstable();
    ids
}

/// The lists of two requirements, by their places; `None` where there are none for such terms, or too many.
fn pair<'v>(
    view: &'v View,
    requirements: &[Requirement],
    places: [usize; 2],
    direction: Direction,
) -> Result<Option<Pair<'v>>, QueryError> {
    let [Some(a), Some(b)] = places.map(|place| requirements.get(place)) else {
        return Ok(None);
    };
    if a.terms.len().saturating_mul(b.terms.len()) > LISTS_MAX {
        return Ok(None);
    }
    let (mut since, mut lists) = (0, Vec::new());
    for &one in &a.terms {
        for &other in &b.terms {
            let Some(term) = one.with(other) else {
                return Ok(None);
            };
            since = since.max(one.since).max(other.since);
            lists.push(term);
        }
    }
    let met = Union::open(view, lists, direction)?.disjoint(a.is_disjoint && b.is_disjoint);
    Ok(Some(Pair { places, since, met }))
}

/// All pairs of requirements that have lists, as far as those are not too many.
fn pairs<'v>(
    view: &'v View,
    requirements: &[Requirement],
    direction: Direction,
) -> Result<Vec<Pair<'v>>, QueryError> {
    let (mut pairs, mut opened) = (Vec::new(), 0);
    for (low, a) in requirements.iter().enumerate() {
        for (high, b) in requirements.iter().enumerate().skip(low + 1) {
            opened += a.terms.len().saturating_mul(b.terms.len());
            if ALL_LISTS_MAX < opened {
                return Ok(pairs);
            }
            pairs.extend(pair(view, requirements, [low, high], direction)?);
        }
    }
    Ok(pairs)
}

/// Takes the pair with the fewest postings out of those that are wanted.
fn take_shortest<'v>(pairs: &mut Vec<Pair<'v>>, is_wanted: impl Fn(&Pair<'v>) -> bool) -> Option<Pair<'v>> {
    let wanted = pairs.iter().enumerate().filter(|(_, pair)| is_wanted(pair));
    let shortest = wanted.min_by_key(|(_, pair)| pair.met.weight());
    let place = shortest.map(|(place, _)| place)?;
    Some(pairs.swap_remove(place))
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
        let mut wanted = Vec::new();
        // What must hold beside, of which not all values are dense.
        let mut others = Vec::new();
        for clause in logs::clauses(query) {
            let terms = logs::terms(view, query, &clause)?;
            match dense(view, terms.iter().copied())? {
                Some(terms) => wanted.push((terms, Some(clause))),
                None => others.push((terms, clause)),
            }
        }
        let contracts: Vec<Term> = emitters
            .iter()
            .map(|&emitter| Term::log_address(emitter))
            .collect();
        let mut has_emitter = emitters.is_empty();
        if !has_emitter && let Some(terms) = dense(view, contracts.iter().copied())? {
            has_emitter = true;
            wanted.push((terms, None));
        }
        if wanted.len() < 2 {
            return Ok(None);
        }
        let mut requirements = Vec::with_capacity(wanted.len());
        for (terms, clause) in wanted {
            requirements.push(Requirement {
                terms: with_since(view, terms)?,
                is_disjoint: clause.as_ref().is_none_or(|clause| clause.len() == 1),
                clause,
            });
        }
        let mut pairs = pairs(view, &requirements, direction)?;
        let Some(shortest) = take_shortest(&mut pairs, |pair| pair.met.weight() <= rarest) else {
            return Ok(None);
        };
        // The others are met by a list of theirs with whatever else must hold; where that is far longer hits are looked up by ordinal.
        let (fewest, met) = (shortest.met.weight(), shortest.places);
        let mut since = shortest.since;
        let (mut unions, mut filter) = (vec![shortest.met], Filter::default());
        for (place, left) in requirements.iter().enumerate() {
            if met.contains(&place) {
                continue;
            }
            let terms: Vec<Term> = left.terms.iter().map(|dense| dense.term).collect();
            let pair = take_shortest(&mut pairs, |pair| pair.places.contains(&place));
            match (pair, filter.of(left.clause.as_deref())) {
                (Some(pair), array) if array.is_none() || !logs::is_long(pair.met.weight(), fewest) => {
                    since = since.max(pair.since);
                    unions.push(pair.met);
                }
                (_, Some(array)) => *array = Some(sorted(&terms)),
                (_, None) => unions.push(Union::open(view, terms, direction)?),
            }
        }
        if !has_emitter {
            filter.emitters = Some(sorted(&contracts));
        }
        for (terms, clause) in others {
            match filter.of(Some(&clause)) {
                Some(signatures) => *signatures = Some(sorted(&terms)),
                None => unions.push(Union::open(view, terms, direction)?),
            }
        }
        let since_then = Conjunction::new(view, unions, filter, direction);
        let before = || logs::plan(view, query, emitters, direction, Some(since));
        self.select_in_parts(query, range, since, before, since_then)
            .map(Some)
    }

    /// Selects a page out of the part before `boundary` and the part from there on, one after the other.
    fn select_in_parts<'v>(
        &'v self,
        query: &LogQuery,
        range: &Range<u64>,
        boundary: u64,
        before: impl Fn() -> Result<Conjunction<'v>, QueryError>,
        mut since: Conjunction<'v>,
    ) -> Result<Selected, QueryError> {
        let mut parts = [
            (range.start..range.end.min(boundary), true),
            (range.start.max(boundary)..range.end, false),
        ];
        if query.descending {
            parts.reverse();
        }
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
            let page = (skip, query.limit.saturating_sub(selected.hits.len()));
            let one = match is_before {
                true => self.select_part(&mut before()?, query, part, page)?,
                false => self.select_part(&mut since, query, part, page)?,
            };
            skip = skip.saturating_sub(one.total.unwrap_or(skip));
            selected.hits.extend(one.hits);
            selected.more = one.more;
            selected.total = selected.total.zip(one.total).map(|(all, one)| all + one);
        }
        Ok(selected)
    }
}
