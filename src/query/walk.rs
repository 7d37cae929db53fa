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
        self.found.extend(trace.end(reached));
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
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Hits in a set; counts how far it walks, and may end in the middle.
    struct Naive<'a> {
        hits: &'a BTreeSet<u64>,
        direction: Direction,
        walked: &'a Cell<u64>,
        left: &'a Cell<u64>,
    }

    impl Walk for Naive<'_> {
        fn walk(
            &mut self,
            range: Range<u64>,
            reached: &mut u64,
            hit: &mut dyn FnMut(u64) -> bool,
        ) -> Result<bool, QueryError> {
            let mut inside: Vec<u64> = self.hits.range(range.clone()).copied().collect();
            if self.direction == Direction::Backward {
                inside.reverse();
            }
            let mut from = match self.direction {
                Direction::Forward => range.start,
                Direction::Backward => range.end,
            };
            for at in inside {
                self.walked.set(self.walked.get() + at.abs_diff(from));
                from = at;
                if self.left.get() == 0 {
                    *reached = match self.direction {
                        Direction::Forward => at,
                        Direction::Backward => at + 1,
                    };
                    return Err(QueryError::TimedOut);
                }
                self.left.set(self.left.get() - 1);
                if !hit(at) {
                    return Ok(false);
                }
            }
            let end = match self.direction {
                Direction::Forward => range.end,
                Direction::Backward => range.start,
            };
            self.walked.set(self.walked.get() + end.abs_diff(from));
            Ok(true)
        }
    }

    /// What a page has, by looking at all hits.
    fn expected(
        hits: &BTreeSet<u64>,
        range: Range<u64>,
        direction: Direction,
        skip: u64,
        limit: usize,
    ) -> Selected {
        let mut inside: Vec<u64> = hits.range(range).copied().collect();
        if direction == Direction::Backward {
            inside.reverse();
        }
        let total = inside.len();
        let skipped = usize::try_from(skip).unwrap().min(total);
        let page: Vec<u64> = inside[skipped..].iter().take(limit).copied().collect();
        let more = skipped + page.len() < total;
        Selected {
            total: (!more).then_some(total as u64),
            hits: page,
            more,
        }
    }

    #[derive(Debug, Clone)]
    struct Question {
        range: (u64, u64),
        is_descending: bool,
        skip: u64,
        limit: usize,
        final_end: u64,
        hits_until_timeout: u64,
    }

    fn question() -> impl Strategy<Value = Question> {
        let ordinal = || prop_oneof![Just(0u64), 0u64..1_000_000, Just(1_000_000u64)];
        (
            (ordinal(), ordinal()),
            any::<bool>(),
            prop_oneof![Just(0u64), 0u64..40, 0u64..3_000],
            prop_oneof![1usize..5, 1usize..400],
            prop_oneof![Just(1_000_000u64), 0u64..1_000_000],
            prop_oneof![3 => Just(u64::MAX), 1 => 0u64..900],
        )
            .prop_map(
                |(range, is_descending, skip, limit, final_end, hits_until_timeout)| Question {
                    range: (range.0.min(range.1), range.0.max(range.1)),
                    is_descending,
                    skip,
                    limit,
                    final_end,
                    hits_until_timeout,
                },
            )
    }

    proptest! {
        /// Whatever is known, pages are what they would be without.
        #[test]
        fn pages_are_the_same_whatever_was_walked_over_before(
            gaps in proptest::collection::vec((0u32..30, 1u64..30), 0..2_000),
            questions in proptest::collection::vec(question(), 1..12),
        ) {
            let mut at = 100;
            let hits: BTreeSet<u64> = gaps
                .iter()
                .map(|&(far, near)| {
                    at += if far == 0 { near * 4_000 } else { near };
                    at
                })
                .take_while(|&at| at < 1_000_000)
                .collect();
            let mut known = Walks::default();
            for asked in questions {
                let direction = match asked.is_descending {
                    true => Direction::Backward,
                    false => Direction::Forward,
                };
                let range = asked.range.0..asked.range.1;
                let (walked, left) = (Cell::new(0), Cell::new(asked.hits_until_timeout));
                let naive = Naive { hits: &hits, direction, walked: &walked, left: &left };
                let walker = Walker::new(naive, direction, (asked.skip, asked.limit), asked.final_end);
                let (selected, found) = walker.select(&range, &known);
                match selected {
                    Ok(selected) => {
                        let expected = expected(&hits, range, direction, asked.skip, asked.limit);
                        prop_assert_eq!(selected.hits, expected.hits);
                        prop_assert_eq!((selected.total, selected.more), (expected.total, expected.more));
                    }
                    Err(_) => prop_assert!(left.get() == 0),
                }
                for walked in found {
                    prop_assert!(walked.range().end <= asked.final_end);
                    known = known.with(walked);
                }
                for walked in known.parts() {
                    for (place, &(mark, before)) in walked.marks().iter().enumerate() {
                        prop_assert!(hits.contains(&mark));
                        let count = hits.range(walked.range().start..mark).count() as u64;
                        prop_assert_eq!(count, before);
                        prop_assert!(mark < walked.end_of(place));
                    }
                    let all = hits.range(walked.range().clone()).count() as u64;
                    prop_assert_eq!(walked.before(walked.marks().len()), all);
                }
            }
        }
    }

    /// A second look goes from mark to mark: over nothing where there is no hit, and over a stretch at most before a far page.
    #[test]
    fn what_is_known_is_not_walked_over_again() {
        let none = BTreeSet::new();
        let dense: BTreeSet<u64> = (0..200_000).map(|place| place * 50).collect();
        let rare: BTreeSet<u64> = (1..10).map(|place| place * 1_000_000).collect();
        for direction in [Direction::Forward, Direction::Backward] {
            for (hits, skip, limit, most) in [
                (&none, 0, 10, 0),
                (&rare, 0, 20, 9 * 40_000),
                (&rare, 7, 1, 3 * 40_000),
                (&dense, 190_000, 100, 50 * 600),
                (&dense, 199_999, 100, 50 * 600),
                (&dense, 300_000, 100, 0),
            ] {
                let (walked, left) = (Cell::new(0), Cell::new(u64::MAX));
                let naive = || Naive {
                    hits,
                    direction,
                    walked: &walked,
                    left: &left,
                };
                let whole = 0..10_000_000;
                let of = |known: &Walks| {
                    Walker::new(naive(), direction, (skip, limit), u64::MAX).select(&whole, known)
                };
                let (first, found) = of(&Walks::default());
                let known = found
                    .into_iter()
                    .fold(Walks::default(), |known, found| known.with(found));
                let far = walked.replace(0);
                let (second, found) = of(&known);
                let (first, second) = (first.unwrap(), second.unwrap());
                assert_eq!(first.hits, second.hits);
                assert_eq!((first.total, first.more), (second.total, second.more));
                let again = walked.get();
                assert!(
                    again <= most && again <= far,
                    "{skip} {direction:?}: {again} of {far}"
                );
                // What is not new is not walked over.
                assert!(found.is_empty(), "{skip} {direction:?}");
            }
        }
    }
}
