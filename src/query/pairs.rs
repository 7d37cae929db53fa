//! Expressions over dense lists: by the lists of their pairs, where there are some.
//!
//! Two dense terms have a list of the logs that both have since both are dense ([`crate::store::DENSE`]), which stands for two of what a log must have. So the
//! chain is taken in parts, between which terms become dense: in each a term is dense from its beginning on, or has few postings before its end. Where nothing
//! else is asked for ranks of a list of pairs are pages; a term that is not dense is in the way of that, and of nothing else: its own list is walked over
//! beside the lists of pairs of the others.

use std::ops::Range;

use super::expression::{Conjunction, Filter, Union};
use super::limit::Limit;
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
/// Parts of the chain that are looked at by lists of pairs, at most: the last ones.
const PARTS_MAX: usize = 8;

/// What a log must have: one of these values.
struct Requirement {
    values: Vec<Value>,
    /// No log has two of them.
    is_disjoint: bool,
    /// The clause; `None` of emitters.
    clause: Option<Vec<usize>>,
}

/// A term, and since when it is dense if it is.
#[derive(Clone, Copy)]
struct Value {
    term: Term,
    since: Option<u64>,
}

impl Requirement {
    /// Of those terms that occur; as if none were dense where they are too many for lists of pairs.
    fn new(
        view: &View,
        terms: Vec<Term>,
        clause: Option<Vec<usize>>,
        limit: &mut Limit,
    ) -> Result<Self, QueryError> {
        let few = terms.len() <= LISTS_MAX;
        let mut values = Vec::with_capacity(terms.len());
        for term in terms {
            limit.spend(1)?;
            let since = match few.then(|| PostingCursor::open(view, term, Direction::Forward)) {
                Some(list) => match list?.count() {
                    0 => continue,
                    DENSE.. => view.dense_since(term)?,
                    _ => None,
                },
                None => None,
            };
            values.push(Value { term, since });
        }
        Ok(Self {
            values,
            is_disjoint: clause.as_ref().is_none_or(|clause| clause.len() == 1),
            clause,
        })
    }

    /// Where its values become dense.
    fn sinces(&self) -> impl Iterator<Item = u64> {
        self.values.iter().filter_map(|value| value.since)
    }

    /// What can be answered by lists of pairs from an ordinal on, as terms and since when they are dense.
    fn dense(&self, from: u64) -> impl Iterator<Item = (Term, u64)> {
        let dense = self
            .values
            .iter()
            .filter_map(|value| Some((value.term, value.since?)));
        dense.filter(move |&(_, since)| since <= from)
    }

    /// What cannot.
    fn others(&self, from: u64) -> impl Iterator<Item = Term> {
        let is_other = move |value: &&Value| value.since.is_none_or(|since| from < since);
        self.values.iter().filter(is_other).map(|value| value.term)
    }

    fn terms(&self) -> impl Iterator<Item = Term> {
        self.values.iter().map(|value| value.term)
    }

    /// The ids of contracts or signatures, ascending.
    fn ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.terms().filter_map(|term| term.number()).collect();
        ids.sort_unstable();
        ids
    }
}

/// All that a log must have.
fn requirements(
    view: &View,
    query: &LogQuery,
    emitters: &[u32],
    limit: &mut Limit,
) -> Result<Vec<Requirement>, QueryError> {
    let mut all = Vec::new();
    for clause in logs::clauses(query) {
        let terms = logs::terms(view, query, &clause, limit)?;
        all.push(Requirement::new(view, terms, Some(clause), limit)?);
    }
    if !emitters.is_empty() {
        let contracts = emitters.iter().map(|&emitter| Term::log_address(emitter));
        all.push(Requirement::new(view, contracts.collect(), None, limit)?);
    }
    Ok(all)
}

/// Where terms become dense, ascending, from where two requirements have a dense one on.
fn boundaries(requirements: &[Requirement]) -> Vec<u64> {
    let mut first: Vec<u64> = requirements.iter().filter_map(|one| one.sinces().min()).collect();
    first.sort_unstable();
    let Some(&second) = first.get(1) else {
        return Vec::new();
    };
    let all = requirements.iter().flat_map(Requirement::sinces);
    let mut boundaries: Vec<u64> = all.filter(|&since| second <= since).collect();
    boundaries.sort_unstable();
    boundaries.dedup();
    boundaries.split_off(boundaries.len().saturating_sub(PARTS_MAX))
}

/// The parts of the chain between such places, with what of each lies in a range.
fn parts(boundaries: &[u64], range: &Range<u64>) -> Vec<(Part, Range<u64>)> {
    let ends = boundaries.iter().copied().map(Some).chain([None]);
    let starts = [0].into_iter().chain(boundaries.iter().copied());
    let parts = starts.zip(ends).map(|(from, end)| {
        let last = end.map_or(range.end, |end| end.min(range.end));
        (Part { from, end }, range.start.max(from)..last)
    });
    parts.filter(|(_, range)| !range.is_empty()).collect()
}

/// The list of two terms that are both dense, each with since when; `None` where there is none for such terms.
fn list_of(a: (Term, u64), b: (Term, u64)) -> Option<Term> {
    let topic = |(term, since): (Term, u64)| {
        let position = term.topic_position().filter(|&position| position > 0)?;
        Some((position, since))
    };
    match (topic(a), topic(b)) {
        (Some(a), Some(b)) => Term::dense_topics(a.min(b), a.max(b)),
        (Some(topic), None) => with_id(topic, b.0),
        (None, Some(topic)) => with_id(topic, a.0),
        (None, None) => match (a.0.topic_position(), b.0.topic_position()) {
            (None, Some(_)) => Some(Term::log_address_topic0(a.0.number()?, b.0.number()?)),
            (Some(_), None) => Some(Term::log_address_topic0(b.0.number()?, a.0.number()?)),
            _ => None,
        },
    }
}

fn with_id(topic: (usize, u64), other: Term) -> Option<Term> {
    let id = other.number()?;
    match other.topic_position() {
        None => Term::dense_topic_with_emitter(topic, id),
        Some(_) => Term::dense_topic_with_signature(topic, id),
    }
}

/// Two requirements met by lists of pairs, and by the lists of what is not dense.
struct Pair<'v> {
    /// Places of those requirements that everything in the lists meets.
    told: Vec<usize>,
    met: Union<'v>,
}

/// A part of the chain: where it begins, and where it ends if that is not the end of the chain.
#[derive(Clone, Copy)]
struct Part {
    from: u64,
    end: Option<u64>,
}

/// An expression in a part of the chain.
struct InPart<'v, 'q> {
    view: &'v View,
    query: &'q LogQuery,
    emitters: &'q [u32],
    requirements: &'q [Requirement],
    part: Part,
}

impl<'v> InPart<'v, '_> {
    const fn direction(&self) -> Direction {
        self.query.part().direction()
    }

    fn union(
        &self,
        terms: impl IntoIterator<Item = Term>,
        limit: &mut Limit,
    ) -> Result<Union<'v>, QueryError> {
        Union::open(self.view, terms, self.direction(), limit)?.until(self.part.end, limit)
    }

    /// The lists of two requirements, by their places; `None` where there are none for such terms, or too many.
    fn pair(&self, places: [usize; 2], limit: &mut Limit) -> Result<Option<Pair<'v>>, QueryError> {
        let [Some(a), Some(b)] = places.map(|place| self.requirements.get(place)) else {
            return Ok(None);
        };
        let from = self.part.from;
        let mut lists = Vec::new();
        for one in a.dense(from) {
            for other in b.dense(from) {
                let Some(term) = list_of(one, other) else {
                    return Ok(None);
                };
                lists.push(term);
            }
        }
        if lists.is_empty() {
            return Ok(None);
        }
        let others = [a, b].map(|one| one.others(from).collect::<Vec<_>>());
        let [has_a, has_b] = others.each_ref().map(|others| !others.is_empty());
        lists.extend(others.into_iter().flatten());
        if LISTS_MAX < lists.len() {
            return Ok(None);
        }
        // Whatever has a value of one of them that is not dense need not have any of the other.
        let [place_a, place_b] = places;
        let told = [(place_a, !has_b), (place_b, !has_a)];
        let told = told
            .into_iter()
            .filter_map(|(place, is_told)| is_told.then_some(place));
        Ok(Some(Pair {
            told: told.collect(),
            met: self
                .union(lists, limit)?
                .disjoint(a.is_disjoint && b.is_disjoint && !(has_a && has_b)),
        }))
    }

    /// All pairs of requirements that have lists, as far as those are not too many.
    fn pairs(&self, limit: &mut Limit) -> Result<Vec<Pair<'v>>, QueryError> {
        let (mut pairs, mut opened) = (Vec::new(), 0);
        for (low, a) in self.requirements.iter().enumerate() {
            for (high, b) in self.requirements.iter().enumerate().skip(low + 1) {
                opened += a.values.len().saturating_mul(b.values.len());
                if ALL_LISTS_MAX < opened {
                    return Ok(pairs);
                }
                pairs.extend(self.pair([low, high], limit)?);
            }
        }
        Ok(pairs)
    }

    /// The lists that must agree in so many ordinals of the part: of pairs, where those help.
    fn plan(&self, ordinals: u64, limit: &mut Limit) -> Result<Conjunction<'v>, QueryError> {
        let plan = logs::plan(
            self.view,
            self.query,
            self.emitters,
            (self.direction(), self.part.end),
            limit,
        )?;
        if ordinals < ORDINALS_MIN || plan.rarest() < RAREST_MIN {
            return Ok(plan);
        }
        Ok(self.by_pairs(plan.rarest(), limit)?.unwrap_or(plan))
    }

    /// The lists that must agree, of which at least one is of pairs; `None` where none has fewer postings than `rarest`.
    fn by_pairs(&self, rarest: u64, limit: &mut Limit) -> Result<Option<Conjunction<'v>>, QueryError> {
        let mut pairs = self.pairs(limit)?;
        let Some(shortest) = take_shortest(&mut pairs, |pair| pair.met.weight() <= rarest) else {
            return Ok(None);
        };
        // What is left is met by a list of its own with whatever else must hold; where that is far longer hits are looked up by ordinal.
        let (fewest, mut told) = (shortest.met.weight(), shortest.told);
        let (mut unions, mut filter) = (vec![shortest.met], Filter::default());
        for (place, left) in self.requirements.iter().enumerate() {
            if told.contains(&place) {
                continue;
            }
            let pair = take_shortest(&mut pairs, |pair| pair.told.contains(&place));
            match (pair, filter.of(left.clause.as_deref())) {
                (Some(pair), array) if array.is_none() || !logs::is_long(pair.met.weight(), fewest) => {
                    told.extend(pair.told);
                    unions.push(pair.met);
                }
                (_, Some(array)) => *array = Some(left.ids()),
                (_, None) => unions.push(self.union(left.terms(), limit)?),
            }
        }
        Ok(Some(Conjunction::new(
            self.view,
            unions,
            filter,
            self.direction(),
        )))
    }
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
        limit: &mut Limit,
    ) -> Result<Option<Selected>, QueryError> {
        if rarest < RAREST_MIN || range.end.saturating_sub(range.start) < ORDINALS_MIN {
            return Ok(None);
        }
        let view = &*self.view;
        let requirements = requirements(view, query, emitters, limit)?;
        let in_part = |part| InPart {
            view,
            query,
            emitters,
            requirements: &requirements,
            part,
        };
        let mut parts = parts(&boundaries(&requirements), range);
        // In the last part most are dense. If lists of pairs do not help there they do not help.
        let Some((part, last)) = parts.pop() else {
            return Ok(None);
        };
        let Some(plan) = in_part(part).by_pairs(rarest, limit)? else {
            return Ok(None);
        };
        // The others are planned when the page comes to them.
        let mut parts: Vec<_> = parts
            .into_iter()
            .map(|(part, range)| (part, range, None))
            .collect();
        parts.push((part, last, Some(plan)));
        if query.descending {
            parts.reverse();
        }
        let mut selected = Selected {
            total: Some(0),
            ..Selected::default()
        };
        let mut skip = query.skip;
        for (part, range, planned) in parts {
            // Of what follows the page only that there is some is wanted.
            if selected.more {
                selected.total = None;
                break;
            }
            let mut plan = match planned {
                Some(plan) => plan,
                None => in_part(part).plan(range.end - range.start, limit)?,
            };
            let page = (skip, query.limit.saturating_sub(selected.hits.len()));
            let one = self.select_part(&mut plan, query, range, page, limit)?;
            skip = skip.saturating_sub(one.total.unwrap_or(skip));
            selected.hits.extend(one.hits);
            selected.more = one.more;
            selected.total = selected.total.zip(one.total).map(|(all, one)| all + one);
        }
        Ok(Some(selected))
    }
}
