//! What walks over an expression of several lists found, kept by expression.
//!
//! A page out of one list is found by ranks. Where several lists must agree, what comes before a page has to be walked over: all of two
//! long lists for what they have in common, and again for the page that comes next. But of final blocks all that never changes. So a walk leaves
//! marks: ordinals of hits with the count of those before. The next one begins at a mark, and goes from mark to mark where nothing lies between.
//!
//! Why so: `docs/decisions/0063-marks-of-walks.md`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use alloy_primitives::map::DefaultHashBuilder;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use super::cursor::Direction;

/// Marks of an expression at most, 16 bytes each; from there on about every other one goes.
const MARKS_MAX: usize = 2_048;
/// A hit that lies so many ordinals from the last mark is one, to begin with.
const SPACING: u64 = 1 << 14;
/// So is one that is so many hits from it.
const HITS: u64 = 256;
/// What an expression takes beside its marks and its name.
const ENTRY_BYTES: usize = 144;
/// And each of its parts.
const PART_BYTES: usize = 96;
/// What one takes, to begin with.
const EXPECTED_BYTES: usize = 16 << 10;

/// What is known of a range of ordinals that was walked over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    range: Range<u64>,
    hits: u64,
    /// Ordinals of hits, ascending, each with the number of hits of the range before it. The first hit is a mark.
    marks: Vec<(u64, u64)>,
    /// All hits between a mark and the next one lie closer than twice this behind it.
    spacing: u64,
    spacing_hits: u64,
}

impl Walked {
    const fn empty() -> Self {
        Self {
            range: 0..0,
            hits: 0,
            marks: Vec::new(),
            spacing: SPACING,
            spacing_hits: HITS,
        }
    }

    /// The ordinals that were walked over.
    #[must_use]
    pub const fn range(&self) -> &Range<u64> {
        &self.range
    }

    /// The ordinals of the marks, each a hit, ascending, with how many hits come before it.
    #[must_use]
    pub fn marks(&self) -> &[(u64, u64)] {
        &self.marks
    }

    /// The number of hits before the mark at `place`; of all where there is no such mark.
    #[must_use]
    pub fn before(&self, place: usize) -> u64 {
        self.marks.get(place).map_or(self.hits, |mark| mark.1)
    }

    /// All hits from the mark at `place` on and before the next one lie before this ordinal.
    #[must_use]
    pub fn end_of(&self, place: usize) -> u64 {
        let next = self.marks.get(place + 1).map_or(self.range.end, |next| next.0);
        let mark = self.marks.get(place).map_or(self.range.start, |mark| mark.0);
        mark.saturating_add(self.spacing.saturating_mul(2)).min(next)
    }

    /// How many ordinals it tells of.
    #[must_use]
    pub const fn ordinals(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }

    /// This and what lies right behind or before it; `None` for what does not touch it.
    #[must_use]
    pub fn joined(&self, other: &Self) -> Option<Self> {
        let (low, high) = match self.range.start <= other.range.start {
            true => (self, other),
            false => (other, self),
        };
        if low.range.end != high.range.start {
            return None;
        }
        let mut marks = Vec::with_capacity(low.marks.len() + high.marks.len());
        marks.extend_from_slice(&low.marks);
        marks.extend(high.marks.iter().map(|&(at, before)| (at, before + low.hits)));
        let mut both = Self {
            range: low.range.start..high.range.end,
            hits: low.hits + high.hits,
            marks,
            spacing: low.spacing.max(high.spacing),
            spacing_hits: low.spacing_hits.max(high.spacing_hits),
        };
        both.thin();
        Some(both)
    }

    /// Leaves out marks where there are too many.
    fn thin(&mut self) {
        while MARKS_MAX < self.marks.len() {
            self.spacing = self.spacing.saturating_mul(2);
            self.spacing_hits = self.spacing_hits.saturating_mul(2);
            let (spacing, hits) = (self.spacing, self.spacing_hits);
            let mut last: Option<(u64, u64)> = None;
            self.marks.retain(|&mark| {
                let is_far = |last: (u64, u64)| spacing <= mark.0 - last.0 || hits <= mark.1 - last.1;
                let is_kept = last.is_none_or(is_far);
                if is_kept {
                    last = Some(mark);
                }
                is_kept
            });
        }
    }

    fn bytes(&self) -> usize {
        self.marks.len() * size_of::<(u64, u64)>()
    }
}

/// What a walk under way found.
#[derive(Debug)]
pub struct Trace {
    direction: Direction,
    /// Where it began: the first ordinal, or descending the one behind the last.
    start: u64,
    /// Hits from here on do not count.
    end: u64,
    /// The stretches that are over: the lowest hit of each and how many it has, in the order of the walk.
    over: Vec<(u64, u64)>,
    /// The one that is not: its first hit, its lowest one, and how many.
    open: Option<(u64, u64, u64)>,
    last: Option<u64>,
    spacing: u64,
    spacing_hits: u64,
}

impl Trace {
    /// Of a walk from `start` on, or descending from the ordinal before it; what lies at `end` or beyond does not count.
    #[must_use]
    pub const fn new(direction: Direction, start: u64, end: u64) -> Self {
        Self {
            direction,
            start,
            end,
            over: Vec::new(),
            open: None,
            last: None,
            spacing: SPACING,
            spacing_hits: HITS,
        }
    }

    /// Adds the hit that comes next.
    #[inline]
    pub fn hit(&mut self, at: u64) {
        if self.end <= at {
            return;
        }
        self.last = Some(at);
        match &mut self.open {
            Some((first, lowest, count))
                if at.abs_diff(*first) < self.spacing && *count < self.spacing_hits =>
            {
                *lowest = at.min(*lowest);
                *count += 1;
            }
            open => {
                let over = open.replace((at, at, 1));
                self.over.extend(over.map(|(_, lowest, count)| (lowest, count)));
                if MARKS_MAX < self.over.len() {
                    self.thin();
                }
            }
        }
    }

    /// What is known once it came to `reached`: all before it was walked over, or descending all from it on.
    #[must_use]
    pub fn end(mut self, reached: u64) -> Option<Walked> {
        let range = match self.direction {
            Direction::Forward => self.start..reached.min(self.end),
            Direction::Backward => reached..self.start.min(self.end),
        };
        let last = self.open.take();
        self.over.extend(last.map(|(_, lowest, count)| (lowest, count)));
        // Whoever hands over what lies beyond where it says that it came is not believed.
        let is_inside = self.last.is_none_or(|last| range.contains(&last));
        (is_inside && range.start < range.end).then(|| Walked {
            range,
            ..self.so_far()
        })
    }

    fn so_far(&mut self) -> Walked {
        if self.direction == Direction::Backward {
            self.over.reverse();
        }
        let mut walked = Walked {
            spacing: self.spacing,
            spacing_hits: self.spacing_hits,
            ..Walked::empty()
        };
        for (lowest, count) in self.over.drain(..) {
            walked.marks.push((lowest, walked.hits));
            walked.hits += count;
        }
        walked.thin();
        walked
    }

    fn thin(&mut self) {
        let walked = self.so_far();
        (self.spacing, self.spacing_hits) = (walked.spacing, walked.spacing_hits);
        for (place, &(lowest, before)) in walked.marks.iter().enumerate() {
            self.over.push((lowest, walked.before(place + 1) - before));
        }
        if self.direction == Direction::Backward {
            self.over.reverse();
        }
    }
}

/// What is known of an expression: parts of the chain, ascending, of which none touches another one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walks(Vec<Arc<Walked>>);

/// Parts of an expression at most: of its beginning, of its end, and of ranges that were asked about. The shortest goes.
const PARTS_MAX: usize = 4;

impl Walks {
    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[Arc<Walked>] {
        &self.0
    }

    /// The same with one more, joined to those that it touches. Of two that overlap the longer one stays.
    #[must_use]
    pub fn with(&self, mut part: Walked) -> Self {
        let mut parts = Vec::with_capacity(self.0.len() + 1);
        for known in &self.0 {
            let (a, b) = (known.range(), part.range());
            if let Some(both) = known.joined(&part) {
                part = both;
            } else if b.end < a.start || a.end < b.start {
                parts.push(Arc::clone(known));
            } else if part.ordinals() <= known.ordinals() {
                return self.clone();
            }
        }
        let place = parts.partition_point(|known: &Arc<Walked>| known.range().start < part.range().start);
        parts.insert(place, Arc::new(part));
        if PARTS_MAX < parts.len() {
            // Not the newest, which may be one that grows.
            let others = (0..parts.len()).filter(|&other| other != place);
            let shortest = others.min_by_key(|&other| parts.get(other).map(|part| part.ordinals()));
            parts.remove(shortest.unwrap_or(0));
        }
        Self(parts)
    }

    fn ordinals(&self) -> u64 {
        self.0.iter().map(|part| part.ordinals()).sum()
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<Box<[u8]>, Arc<Walks>> for Weight {
    fn weight(&self, name: &Box<[u8]>, walks: &Arc<Walks>) -> u64 {
        let parts = walks
            .0
            .iter()
            .map(|part| part.bytes() + PART_BYTES)
            .sum::<usize>();
        (name.len() + parts + ENTRY_BYTES) as u64
    }
}

/// Walks over the expressions of one store, for all of its views. Each tells of final blocks alone; who uses one makes sure that they
/// are final in its own view.
pub(super) struct KeptWalks(Cache<Box<[u8]>, Arc<Walks>, Weight, DefaultHashBuilder>);

impl fmt::Debug for KeptWalks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeptWalks").field(&self.0.len()).finish()
    }
}

impl KeptWalks {
    /// Room for so many bytes.
    pub(super) fn new(bytes: usize) -> Self {
        let hasher = DefaultHashBuilder::default();
        let lifecycle = DefaultLifecycle::default();
        // In one piece: an expression may take as much as a small one has in all.
        let options = OptionsBuilder::new()
            .shards(1)
            .estimated_items_capacity((bytes / EXPECTED_BYTES).max(1))
            .weight_capacity(bytes as u64)
            .build();
        Self(match options {
            Ok(options) => Cache::with_options(options, Weight, hasher, lifecycle),
            // It says what every one of them has.
            Err(_) => Cache::with(1, bytes as u64, Weight, hasher, lifecycle),
        })
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<Arc<Walks>> {
        self.0.get(name)
    }

    /// Keeps what was walked over. Where two do so at once one of them may be lost.
    pub(super) fn keep(&self, name: &[u8], walked: Walked) {
        let known = self.0.peek(name).unwrap_or_default();
        let walks = known.with(walked);
        if known.ordinals() < walks.ordinals() {
            self.0.insert(name.into(), Arc::new(walks));
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.0.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn traced(direction: Direction, range: Range<u64>, end: u64, hits: &[u64]) -> Option<Walked> {
        let (start, reached) = match direction {
            Direction::Forward => (range.start, range.end),
            Direction::Backward => (range.end, range.start),
        };
        let mut trace = Trace::new(direction, start, end);
        match direction {
            Direction::Forward => hits.iter().for_each(|&hit| trace.hit(hit)),
            Direction::Backward => hits.iter().rev().for_each(|&hit| trace.hit(hit)),
        }
        trace.end(reached)
    }

    /// What the marks say is so of the hits.
    fn check(walked: &Walked, hits: &[u64]) {
        let range = walked.range();
        let inside: Vec<u64> = hits.iter().copied().filter(|hit| range.contains(hit)).collect();
        assert_eq!(walked.before(walked.marks().len()), inside.len() as u64);
        assert!(walked.marks().len() <= MARKS_MAX);
        assert_eq!(walked.marks().first().map(|mark| mark.0), inside.first().copied());
        for (place, &(at, before)) in walked.marks().iter().enumerate() {
            assert_eq!(inside.get(before as usize), Some(&at));
            let next = walked.before(place + 1) as usize;
            let end = walked.end_of(place);
            assert!(
                inside[before as usize..next]
                    .iter()
                    .all(|&hit| at <= hit && hit < end)
            );
            assert!(inside.get(next).is_none_or(|&hit| end <= hit));
        }
    }

    proptest! {
        #[test]
        fn marks_tell_where_hits_are(
            gaps in proptest::collection::vec((0u32..20, 1u64..40), 0..400),
            cut in 0usize..400,
            end in 0usize..500,
        ) {
            let mut at = 5;
            let hits: Vec<u64> = gaps
                .iter()
                .map(|&(far, near)| {
                    at += if far == 0 { near * 3_000 } else { near };
                    at
                })
                .collect();
            let whole = 3..at + 9;
            let end = hits.get(end).map_or(u64::MAX, |hit| hit + 1);
            let cut = hits.get(cut).map_or(whole.end, |hit| hit + 1);
            for direction in [Direction::Forward, Direction::Backward] {
                let walked = traced(direction, whole.clone(), end, &hits).unwrap();
                prop_assert_eq!(walked.range(), &(3..whole.end.min(end)));
                check(&walked, &hits);
                // In two parts, each walked in either direction.
                let split = hits.partition_point(|&hit| hit < cut);
                for other in [Direction::Forward, Direction::Backward] {
                    let low = traced(direction, whole.start..cut, u64::MAX, &hits[..split]).unwrap();
                    match traced(other, cut..whole.end, u64::MAX, &hits[split..]) {
                        Some(high) => {
                            let both = low.joined(&high).unwrap();
                            prop_assert_eq!(&both, &high.joined(&low).unwrap());
                            prop_assert_eq!(both.range(), &whole);
                            check(&both, &hits);
                        }
                        None => prop_assert_eq!(cut, whole.end),
                    }
                }
            }
        }
    }

    #[test]
    fn marks_become_fewer_as_they_become_many() {
        // Dense, and each by itself.
        let dense: Vec<u64> = (0..4_000_000).map(|place| place * 3).collect();
        let rare: Vec<u64> = (0..100_000).map(|place| place * 70_000).collect();
        for hits in [&dense, &rare] {
            let whole = 0..hits.last().unwrap() + 1;
            for direction in [Direction::Forward, Direction::Backward] {
                let walked = traced(direction, whole.clone(), u64::MAX, hits).unwrap();
                check(&walked, hits);
                assert!(walked.marks().len() >= MARKS_MAX / 4, "{}", walked.marks().len());
            }
            let (low, high) = (whole.start..whole.end / 2, whole.end / 2..whole.end);
            let split = hits.partition_point(|&hit| hit < low.end);
            let low = traced(Direction::Forward, low, u64::MAX, &hits[..split]).unwrap();
            let high = traced(Direction::Backward, high, u64::MAX, &hits[split..]).unwrap();
            check(&low.joined(&high).unwrap(), hits);
        }
    }

    fn over(range: Range<u64>) -> Walked {
        traced(Direction::Forward, range, u64::MAX, &[]).unwrap()
    }

    fn ranges(walks: &Walks) -> Vec<(u64, u64)> {
        let range = |part: &Arc<Walked>| (part.range().start, part.range().end);
        walks.parts().iter().map(range).collect()
    }

    #[test]
    fn parts_that_touch_are_joined_and_never_overlap() {
        assert_eq!(over(0..5).joined(&over(6..9)), None);
        assert_eq!(over(0..5).joined(&over(4..9)), None);
        assert_eq!(over(5..9).joined(&over(0..5)), Some(over(0..9)));
        assert_eq!(traced(Direction::Forward, 5..5, 9, &[]), None);
        assert_eq!(traced(Direction::Backward, 5..9, 5, &[]), None);
        let walks = Walks::default()
            .with(over(0..50))
            .with(over(70..90))
            .with(over(60..65));
        assert_eq!(ranges(&walks), [(0, 50), (60, 65), (70, 90)]);
        // Between two of them; over one; over a part of one.
        assert_eq!(ranges(&walks.with(over(65..70))), [(0, 50), (60, 90)]);
        assert_eq!(ranges(&walks.with(over(50..60))), [(0, 65), (70, 90)]);
        assert_eq!(ranges(&walks.with(over(64..69))), [(0, 50), (60, 65), (70, 90)]);
        assert_eq!(ranges(&walks.with(over(58..68))), [(0, 50), (58, 68), (70, 90)]);
        assert_eq!(ranges(&walks.with(over(40..140))), [(40, 140)]);
        assert_eq!(ranges(&walks.with(over(0..50))), ranges(&walks));
        // Too many.
        let many = walks.with(over(100..110)).with(over(200..207));
        assert_eq!(ranges(&many), [(0, 50), (70, 90), (100, 110), (200, 207)]);
    }

    #[test]
    fn what_is_known_grows() {
        let kept = KeptWalks::new(1 << 20);
        kept.keep(b"a", over(0..5));
        kept.keep(b"a", over(7..9));
        assert_eq!(ranges(&kept.get(b"a").unwrap()), [(0, 5), (7, 9)]);
        kept.keep(b"a", over(5..7));
        kept.keep(b"a", over(3..4));
        assert_eq!(ranges(&kept.get(b"a").unwrap()), [(0, 9)]);
        assert_eq!(kept.get(b"b"), None);
        assert!(kept.bytes() > 0);
    }
}
