//! Pages of expressions over several lists, whose rows before the page have no ranks: they are walked over, once.
//!
//! What a walk over final blocks found is kept ([`crate::store::Walked`]), also where it came to the page, or to the end of its time. The next one
//! goes over that part from mark to mark: it passes what it leaves out by counts, and stretches without a hit unseen.

use std::ops::Range;

use super::QueryError;
use super::page::Selected;
use crate::store::{Direction, Trace, Walked, Walks};

/// Hands every hit of a range of ordinals over in a direction, until it is told to stop; answers whether it came to the end. Where it runs out of
/// time, `reached` says how far it came: all before it were handed over, or descending all from it on.
pub(super) trait Walk {
    fn walk(
        &mut self,
        range: Range<u64>,
        reached: &mut u64,
        hit: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, QueryError>;
}

/// How far a walk came that is to go on with this one.
pub(super) const fn reached_before(at: u64, direction: Direction) -> u64 {
    match direction {
        Direction::Forward => at,
        Direction::Backward => at.saturating_add(1),
    }
}

/// The rows of a page being taken.
struct Taken {
    /// Rows still to be left out, and those that were.
    skip: u64,
    skipped: u64,
    limit: usize,
    selected: Selected,
}

impl Taken {
    /// Takes a hit; whether more are wanted.
    fn take(&mut self, at: u64) -> bool {
        if self.skip > 0 {
            self.pass(1);
        } else if self.selected.hits.len() == self.limit {
            self.selected.more = true;
            return false;
        } else {
            self.selected.hits.push(at);
        }
        true
    }

    /// Leaves so many rows out.
    const fn pass(&mut self, count: u64) {
        self.skip -= count;
        self.skipped += count;
    }
}

/// A page being selected.
pub(super) struct Walker<W> {
    walk: W,
    direction: Direction,
    taken: Taken,
    /// What lies here or beyond is not to be kept.
    final_end: u64,
    /// What it walked over of which nothing was known.
    found: Vec<Walked>,
}

impl<W: Walk> Walker<W> {
    /// Of the page of `limit` rows after `skip` others. What lies at `final_end` or beyond is not to be kept.
    pub(super) fn new(walk: W, direction: Direction, (skip, limit): (u64, usize), final_end: u64) -> Self {
        Self {
            walk,
            direction,
            taken: Taken {
                skip,
                skipped: 0,
                limit,
                selected: Selected::default(),
            },
            final_end,
            found: Vec::new(),
        }
    }

    /// Selects the page out of a range, of which parts may be known. The second is what it walked over of the others, also where it
    /// failed in the end.
    pub(super) fn select(
        mut self,
        range: &Range<u64>,
        known: &Walks,
    ) -> (Result<Selected, QueryError>, Vec<Walked>) {
        let ended = self.parts(range, known);
        let Taken {
            skipped, selected, ..
        } = self.taken;
        let total = skipped + selected.hits.len() as u64;
        let selected = ended.map(|ended| Selected {
            total: ended.then_some(total),
            ..selected
        });
        (selected, self.found)
    }

    /// Walks over known parts and what lies between them; whether it came to the end.
    fn parts(&mut self, range: &Range<u64>, known: &Walks) -> Result<bool, QueryError> {
        // A cursor may lie outside of the blocks that are asked for.
        if range.is_empty() {
            return Ok(true);
        }
        let mut rest = range.clone();
        let told = |walked: &Walked, rest: &Range<u64>| {
            let start = walked.range().start.clamp(rest.start, rest.end);
            let end = walked.range().end.min(self.final_end).clamp(start, rest.end);
            start..end
        };
        let parts: Vec<_> = known
            .parts()
            .iter()
            .map(|walked| (walked, told(walked, range)))
            .filter(|(_, part)| !part.is_empty())
            .collect();
        match self.direction {
            Direction::Forward => {
                for (walked, part) in parts {
                    if !(self.unknown(rest.start..part.start)? && self.ascend(walked, part.clone())?) {
                        return Ok(false);
                    }
                    rest.start = part.end;
                }
            }
            Direction::Backward => {
                for (walked, part) in parts.into_iter().rev() {
                    if !(self.unknown(part.end..rest.end)? && self.descend(walked, part.clone())?) {
                        return Ok(false);
                    }
                    rest.end = part.start;
                }
            }
        }
        self.unknown(rest)
    }

    /// Walks over a range of which nothing is known, and leaves marks.
    fn unknown(&mut self, range: Range<u64>) -> Result<bool, QueryError> {
        if range.is_empty() {
            return Ok(true);
        }
        let is_ascending = self.direction == Direction::Forward;
        let (start, end) = match is_ascending {
            true => (range.start, range.end),
            false => (range.end, range.start),
        };
        let mut trace = Trace::new(self.direction, start, self.final_end);
        let mut reached = start;
        let mut stopped_at = None;
        let taken = &mut self.taken;
        let (low, high) = (range.start, range.end);
        let ended = self.walk.walk(range, &mut reached, &mut |at| {
            let goes_on = taken.take(at);
            match goes_on {
                true => trace.hit(at),
                false => stopped_at = Some(at),
            }
            goes_on
        });
        match (&ended, stopped_at) {
            (Ok(true), _) => reached = end,
            // The hit that is too many comes next.
            (Ok(false), Some(at)) => reached = if is_ascending { at } else { at.saturating_add(1) },
            _ => {}
        }
        // The lists may tell of what lies outside, or may not: nothing is known of that.
        self.found.extend(trace.end(reached.clamp(low, high)));
        ended
    }

    /// Walks over a range of which something is known.
    fn plain(&mut self, range: Range<u64>) -> Result<bool, QueryError> {
        let taken = &mut self.taken;
        self.walk.walk(range, &mut 0, &mut |at| taken.take(at))
    }

    /// Goes over a known range, ascending.
    fn ascend(&mut self, walked: &Walked, range: Range<u64>) -> Result<bool, QueryError> {
        let marks = walked.marks();
        let inside = marks.partition_point(|mark| mark.0 < range.end);
        let mut at = range.start;
        while at < range.end {
            let next = marks.partition_point(|mark| mark.0 < at);
            let begun = next.checked_sub(1).filter(|&place| at < walked.end_of(place));
            let mut last = match begun {
                Some(place) => place,
                None if inside <= next => return Ok(true),
                None => {
                    let rank = walked.before(next);
                    let wanted = rank.saturating_add(self.taken.skip);
                    let all = walked.before(marks.len());
                    if range.end == walked.range().end && all <= wanted {
                        self.taken.pass(all - rank);
                        return Ok(true);
                    }
                    let place = marks
                        .get(..inside)
                        .map_or(0, |marks| marks.partition_point(|mark| mark.1 <= wanted));
                    let place = place.saturating_sub(1).max(next);
                    self.taken.pass(walked.before(place) - rank);
                    at = marks.get(place).map_or(range.end, |mark| mark.0);
                    place
                }
            };
            // What follows without a gap is walked over in one go, where no mark helps to leave rows out.
            while (begun.is_none() || self.taken.skip == 0)
                && let Some(mark) = marks.get(last + 1)
                && mark.0 == walked.end_of(last)
            {
                last += 1;
            }
            let end = walked.end_of(last).min(range.end);
            if !self.plain(at..end)? {
                return Ok(false);
            }
            at = end;
        }
        Ok(true)
    }

    /// Goes over a known range, descending.
    fn descend(&mut self, walked: &Walked, range: Range<u64>) -> Result<bool, QueryError> {
        let marks = walked.marks();
        let outside = marks.partition_point(|mark| mark.0 < range.start);
        let mut end = range.end;
        while range.start < end {
            let below = marks.partition_point(|mark| mark.0 < end);
            let Some(place) = below.checked_sub(1) else {
                return Ok(true);
            };
            let end_of_stretch = walked.end_of(place);
            if end_of_stretch <= range.start {
                return Ok(true);
            }
            let is_whole = end_of_stretch <= end;
            if is_whole {
                end = end_of_stretch;
                let rank = walked.before(place + 1);
                if range.start == walked.range().start && rank <= self.taken.skip {
                    self.taken.pass(rank);
                    return Ok(true);
                }
                let wanted = rank.saturating_sub(self.taken.skip);
                let to = marks.partition_point(|mark| mark.1 < wanted).max(outside);
                if to <= place
                    && let Some(&(mark, before)) = marks.get(to)
                {
                    self.taken.pass(rank - before);
                    end = mark;
                    continue;
                }
            }
            let mut first = place;
            while (is_whole || self.taken.skip == 0)
                && let Some(lower) = first.checked_sub(1)
                && let Some(mark) = marks.get(first)
                && range.start < mark.0
                && walked.end_of(lower) == mark.0
            {
                first = lower;
            }
            let start = marks
                .get(first)
                .map_or(range.start, |mark| mark.0)
                .max(range.start);
            if !self.plain(start..end)? {
                return Ok(false);
            }
            end = start;
        }
        Ok(true)
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
