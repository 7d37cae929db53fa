//! And/or expressions over terms: which lists must agree, and the walk that finds where they do.
//!
//! Each operator given is a clause, clauses are and-ed, a topic that no operator names is required
//! (answers.md section 5). A clause becomes a union of cursors; the walk leapfrogs from the rarest.

use std::ops::Range;
use std::time::Instant;

use super::limit::Limit;
use super::walk::{Walk, reached_before};
use super::{QueryError, merge};
use crate::codec::keys::Term;
use crate::store::{Direction, PostingCursor, StoreError, View};

/// Postings in any of several lists, without repetition.
pub(super) struct Union<'v> {
    cursors: Vec<PostingCursor<'v>>,
    direction: Direction,
    /// No posting is in two of the lists.
    is_disjoint: bool,
    /// Postings of theirs that are looked at, at most.
    weight: u64,
}

impl<'v> Union<'v> {
    /// The lists of terms, as far as they are not empty; each is a step of the time.
    pub(super) fn open(
        view: &'v View,
        terms: impl IntoIterator<Item = Term>,
        direction: Direction,
        limit: &mut Limit,
    ) -> Result<Self, QueryError> {
        let mut cursors = Vec::new();
        for term in terms {
            limit.spend(1)?;
            let cursor = PostingCursor::open(view, term, direction)?;
            if cursor.count() > 0 {
                cursors.push(cursor);
            }
        }
        Ok(Self {
            is_disjoint: cursors.len() <= 1,
            weight: cursors.iter().map(PostingCursor::count).sum(),
            cursors,
            direction,
        })
    }

    /// The same, of which only what lies before `end` is looked at, if that is given.
    pub(super) fn until(mut self, end: Option<u64>, limit: &mut Limit) -> Result<Self, QueryError> {
        if let Some(end) = end {
            self.weight = 0;
            for cursor in &mut self.cursors {
                limit.spend(1)?;
                self.weight += cursor.rank_of(end)?;
                // A walk goes on from where a cursor stands.
                cursor.leave();
            }
        }
        Ok(self)
    }

    /// The same, where no posting is in two of the lists if `is_disjoint`: those of several values of one topic.
    pub(super) const fn disjoint(mut self, is_disjoint: bool) -> Self {
        self.is_disjoint |= is_disjoint;
        self
    }

    /// At most this many postings are looked at.
    pub(super) const fn weight(&self) -> u64 {
        self.weight
    }

    /// How many cursors a seek moves, at most.
    const fn width(&self) -> u32 {
        self.cursors.len() as u32
    }

    /// The only list, where there is one.
    pub(super) fn single(&mut self) -> Option<&mut PostingCursor<'v>> {
        match self.cursors.as_mut_slice() {
            [single] => Some(single),
            _ => None,
        }
    }

    #[inline]
    fn nearest(direction: Direction, a: Option<u64>, b: Option<u64>) -> Option<u64> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if direction == Direction::Forward {
                a.min(b)
            } else {
                a.max(b)
            }),
            (a, b) => a.or(b),
        }
    }

    /// Whether a cursor that stands on `at` must move to reach `target`.
    #[inline]
    fn behind(direction: Direction, at: u64, target: u64) -> bool {
        match direction {
            Direction::Forward => at < target,
            Direction::Backward => at > target,
        }
    }

    /// Moves to the nearest posting at or beyond `target` in the direction; targets only advance.
    #[inline]
    fn seek(&mut self, target: u64) -> Result<Option<u64>, StoreError> {
        let direction = self.direction;
        let mut nearest = None;
        for cursor in &mut self.cursors {
            let at = match cursor.current() {
                Some(at) if !Self::behind(direction, at, target) => Some(at),
                _ => cursor.seek(target)?,
            };
            nearest = Self::nearest(direction, nearest, at);
        }
        Ok(nearest)
    }
}

/// What every hit must have beside its place in the lists, looked up by ordinal: an array read each.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// Of which emitters one is wanted, ascending; any will do where this is absent.
    pub(super) emitters: Option<Vec<u32>>,
    /// Of which signatures one is wanted, ascending; any will do where this is absent.
    pub(super) signatures: Option<Vec<u32>>,
}

impl Filter {
    const fn is_open(&self) -> bool {
        self.emitters.is_none() && self.signatures.is_none()
    }

    /// Where the ids of a clause are put, of emitters where there is no clause; `None` of a clause that no array tells of.
    pub(super) const fn of(&mut self, clause: Option<&[usize]>) -> Option<&mut Option<Vec<u32>>> {
        match clause {
            None => Some(&mut self.emitters),
            Some([0]) => Some(&mut self.signatures),
            Some(_) => None,
        }
    }

    fn passes(&self, view: &View, at: u64) -> Result<bool, StoreError> {
        if let Some(emitters) = &self.emitters
            && emitters.binary_search(&view.log_emitter(at)?).is_err()
        {
            return Ok(false);
        }
        match &self.signatures {
            None => Ok(true),
            Some(wanted) => Ok(view
                .log_signature(at)?
                .is_some_and(|found| wanted.binary_search(&found).is_ok())),
        }
    }
}

/// Lists that must all agree, and what every hit must have beside.
pub(super) struct Conjunction<'v> {
    view: &'v View,
    /// From the rarest to the most frequent.
    clauses: Vec<Union<'v>>,
    filter: Filter,
    direction: Direction,
}

/// How often the walk looks at the clock: once for so many cursors that were moved. Each takes tens of nanoseconds, or tens of microseconds where it
/// comes to another chunk.
const STEPS_PER_LOOK: u32 = 4096;

impl<'v> Conjunction<'v> {
    pub(super) fn new(
        view: &'v View,
        mut clauses: Vec<Union<'v>>,
        filter: Filter,
        direction: Direction,
    ) -> Self {
        clauses.sort_by_key(Union::weight);
        Self {
            view,
            clauses,
            filter,
            direction,
        }
    }

    /// The lists that give the answer by themselves, as if they were one, where that is so: then ranks are pages.
    pub(super) fn alone(&mut self) -> Option<&mut [PostingCursor<'v>]> {
        match self.clauses.as_mut_slice() {
            [only] if self.filter.is_open() && only.is_disjoint => Some(&mut only.cursors),
            _ => None,
        }
    }

    /// The number of postings that a walk over the whole chain looks at, at least.
    pub(super) fn rarest(&self) -> u64 {
        self.clauses.first().map_or(0, Union::weight)
    }

    /// The walk, which is given up at `deadline`; calls go on where the one before ended, in the direction.
    pub(super) const fn until(&mut self, deadline: Option<Instant>) -> Until<'_, 'v> {
        Until {
            matches: self,
            limit: Limit::new(deadline, STEPS_PER_LOOK),
        }
    }

    /// Walks over a range.
    pub(super) fn walk(
        &mut self,
        range: Range<u64>,
        deadline: Option<Instant>,
        mut hit: impl FnMut(u64) -> bool,
    ) -> Result<bool, QueryError> {
        self.until(deadline).walk(range, &mut 0, &mut hit)
    }
}

/// Lists that are walked over until some time.
pub(super) struct Until<'a, 'v> {
    matches: &'a mut Conjunction<'v>,
    /// Cursors moved by all of its walks.
    limit: Limit,
}

impl Walk for Until<'_, '_> {
    fn walk(
        &mut self,
        range: Range<u64>,
        reached: &mut u64,
        hit: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, QueryError> {
        let limit = &mut self.limit;
        let Conjunction {
            view,
            clauses,
            filter,
            direction,
        } = &mut *self.matches;
        let (view, filter, direction) = (*view, &*filter, *direction);
        let Range { start: first, end } = range;
        let Some(last) = end.checked_sub(1).filter(|&last| last >= first) else {
            return Ok(true);
        };
        let Some((driver, others)) = clauses.split_first_mut() else {
            return Ok(true);
        };
        let start = if direction == Direction::Forward {
            first
        } else {
            last
        };
        if limit.is_over(driver.width()) {
            *reached = reached_before(start, direction);
            return Err(QueryError::TimedOut);
        }
        let wanted = |at: u64| filter.passes(view, at);
        if let Some((second, others)) = others.split_first_mut()
            && second.weight() / merge::LENGTH_RATIO_MAX <= driver.weight()
            && let (Some(a), Some(b)) = (driver.single(), second.single())
        {
            return merge::meet(a, b, (first, last), (limit.deadline(), reached), |at| {
                for other in others.iter_mut() {
                    limit.spend(other.width())?;
                    if other.seek(at)? != Some(at) {
                        return Ok(true);
                    }
                }
                Ok(!wanted(at)? || hit(at))
            });
        }
        let outside = |at: u64| match direction {
            Direction::Forward => at > last,
            Direction::Backward => at < first,
        };
        let beyond = |at: u64| match direction {
            Direction::Forward => at.checked_add(1),
            Direction::Backward => at.checked_sub(1),
        };
        let mut candidate = driver.seek(start)?;
        // Cursors that one place moves, at most.
        let width = others
            .iter()
            .fold(driver.width(), |sum, other| sum + other.width());
        let mut places = limit.paid(width);
        'candidates: while let Some(at) = candidate.filter(|&at| !outside(at)) {
            if places == 0 {
                if limit.look() {
                    *reached = reached_before(at, direction);
                    return Err(QueryError::TimedOut);
                }
                places = limit.paid(width);
            }
            places -= 1;
            for other in others.iter_mut() {
                match other.seek(at)? {
                    None => return Ok(true),
                    Some(met) if met != at => {
                        candidate = driver.seek(met)?;
                        continue 'candidates;
                    }
                    Some(_) => {}
                }
            }
            if wanted(at)? && !hit(at) {
                return Ok(false);
            }
            candidate = match beyond(at) {
                Some(target) => driver.seek(target)?,
                None => None,
            };
        }
        Ok(true)
    }
}
