//! Pages by walks, whatever is known of walks before.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;

use super::{Direction, QueryError, Selected, Walk, Walker, Walks};

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

/// Runs out of time at once, and says that it came somewhere else.
struct Astray(u64);

impl Walk for Astray {
    fn walk(
        &mut self,
        _: Range<u64>,
        reached: &mut u64,
        _: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, QueryError> {
        *reached = self.0;
        Err(QueryError::TimedOut)
    }
}

#[test]
fn nothing_is_known_of_what_lies_outside_of_a_walk() {
    for (direction, reached) in [(Direction::Backward, 10), (Direction::Forward, 5_000)] {
        let walker = Walker::new(Astray(reached), direction, (0, 1), u64::MAX);
        let (selected, found) = walker.select(&(100..2_000), &Walks::default());
        assert!(matches!(selected, Err(QueryError::TimedOut)));
        assert_eq!(found.len(), 1);
        assert!(
            found.iter().all(|walked| *walked.range() == (100..2_000)),
            "{direction:?}"
        );
    }
}
