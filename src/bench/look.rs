//! Looking things up in a store within a time: what there is no time for is left out, whatever it is.

use std::time::{Duration, Instant};

use super::statistics::{Counted, longest_first};
use crate::clock;
use crate::query::{Listed, QueryError, Reader};

/// Parts of the work, each of which may take its share of the time that is left.
const PARTS: u32 = 20;

/// Things of each part that are looked up however long that takes.
pub(super) const ALWAYS: usize = 25;

/// How long may be looked, and whether it is to end at once.
pub struct Budget<'a> {
    until: Instant,
    parts: u32,
    is_stopped: &'a dyn Fn() -> bool,
    pub(super) is_cut: bool,
}

impl<'a> Budget<'a> {
    /// So long from now on, or until it is stopped.
    #[must_use]
    pub fn new(time: Duration, is_stopped: &'a dyn Fn() -> bool) -> Self {
        Self {
            until: clock::now() + time,
            parts: PARTS,
            is_stopped,
            is_cut: false,
        }
    }

    /// When the next part ends: after its share of what is left.
    pub(super) fn part(&mut self) -> Instant {
        let now = clock::now();
        let share = self.until.saturating_duration_since(now) / self.parts.max(1);
        self.parts = self.parts.saturating_sub(1);
        now + share
    }

    /// Visits things in disorder, so that those that there is no time for are of all of them; so many are visited always,
    /// unless it is stopped.
    fn each<T>(
        &mut self,
        random: &mut fastrand::Rng,
        mut things: Vec<T>,
        always: usize,
        visit: impl FnMut(T) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let until = self.part();
        random.shuffle(&mut things);
        self.visit(until, things, always, visit)
    }

    /// Visits things in their order until then.
    fn visit<T>(
        &mut self,
        until: Instant,
        things: Vec<T>,
        always: usize,
        mut visit: impl FnMut(T) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        for (visited, thing) in things.into_iter().enumerate() {
            let has_enough = visited >= always || self.is_stopped();
            if has_enough && self.is_over(until) {
                break;
            }
            visit(thing)?;
        }
        Ok(())
    }

    /// Whether a part has to end, which was given less than its share: nothing is cut by that.
    pub(super) fn ends(&self, until: Instant) -> bool {
        self.is_stopped() || clock::now() > until
    }

    /// Whether it was stopped.
    fn is_stopped(&self) -> bool {
        (self.is_stopped)()
    }

    /// Whether a part that ends then is over, before its end.
    pub(super) fn is_over(&mut self, until: Instant) -> bool {
        let is_over = self.ends(until);
        self.is_cut |= is_over;
        is_over
    }
}

/// Looks things up in a store, as long as there is time.
pub(super) struct Look<'a> {
    pub(super) reader: &'a Reader,
    pub(super) random: fastrand::Rng,
    pub(super) budget: Budget<'a>,
}

impl Look<'_> {
    /// Visits things within the time of a part; see [`Budget::each`].
    pub(super) fn each<T>(
        &mut self,
        things: Vec<T>,
        always: usize,
        visit: impl FnMut(T) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        self.budget.each(&mut self.random, things, always, visit)
    }

    /// Visits places drawn from a range.
    pub(super) fn drawn(
        &mut self,
        end: u64,
        count: u64,
        visit: impl FnMut(u64) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let places = spread(&mut self.random, end, count);
        self.each(places, ALWAYS, visit)
    }

    /// How long the lists of things are: those that have rows, longest first.
    pub(super) fn count<T: Copy>(
        &mut self,
        things: impl IntoIterator<Item = T>,
        list: impl Fn(T) -> Listed,
    ) -> Result<Vec<Counted<T>>, QueryError> {
        self.count_met(things.into_iter().map(|what| (what, 0)), list)
    }

    /// The same of things that were met so often: those that were met most are looked up first.
    pub(super) fn count_met<T: Copy>(
        &mut self,
        things: impl IntoIterator<Item = (T, u32)>,
        list: impl Fn(T) -> Listed,
    ) -> Result<Vec<Counted<T>>, QueryError> {
        let (reader, mut counted) = (self.reader, Vec::new());
        let mut things: Vec<_> = things.into_iter().enumerate().collect();
        let until = self.budget.part();
        self.random.shuffle(&mut things);
        things.sort_by_key(|&(_, (_, met))| std::cmp::Reverse(met));
        self.budget.visit(until, things, ALWAYS, |(place, (what, _))| {
            let count = reader.count(list(what))?;
            if count > 0 {
                counted.push((place, Counted { what, count }));
            }
            Ok(())
        })?;
        counted.sort_unstable_by_key(|&(place, _)| place);
        let mut counted: Vec<_> = counted.into_iter().map(|(_, one)| one).collect();
        longest_first(&mut counted);
        Ok(counted)
    }
}

/// Draws from a range in equal strides, a place at random within each: sorted, and every place of a short range.
pub(super) fn spread(random: &mut fastrand::Rng, end: u64, count: u64) -> Vec<u64> {
    if end <= count {
        return (0..end).collect();
    }
    let stride = |place: u64| u64::try_from(u128::from(place) * u128::from(end) / u128::from(count));
    let places = (0..count).filter_map(|place| {
        let (from, to) = (stride(place).ok()?, stride(place + 1).ok()?);
        (from < to).then(|| random.u64(from..to))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_time_some_things_are_looked_up_and_where_it_is_stopped_none() {
        let visited = |time: Duration, is_stopped: bool| {
            let is_stopped = || is_stopped;
            let (mut budget, mut seen) = (Budget::new(time, &is_stopped), Vec::new());
            let mut random = fastrand::Rng::with_seed(1);
            let things: Vec<usize> = (0..1_000).collect();
            let visit = |thing| {
                seen.push(thing);
                Ok(())
            };
            budget.each(&mut random, things, ALWAYS, visit).unwrap();
            (seen, budget.is_cut)
        };
        let (seen, is_cut) = visited(Duration::ZERO, false);
        assert!(seen.len() == ALWAYS && is_cut, "{}", seen.len());
        // They are of all of them.
        assert!(seen.iter().any(|&thing| thing > 900) && seen.iter().any(|&thing| thing < 100));
        let (seen, is_cut) = visited(Duration::from_secs(3_600), true);
        assert!(seen.is_empty() && is_cut);
        let (mut seen, is_cut) = visited(Duration::from_secs(3_600), false);
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..1_000) && !is_cut);
    }

    #[test]
    fn samples_are_spread_and_repeatable() {
        let draw = |seed| spread(&mut fastrand::Rng::with_seed(seed), 1_000_000, 100);
        let drawn = draw(1);
        assert_eq!((drawn.len(), draw(1)), (100, drawn.clone()));
        assert_ne!(draw(2), drawn);
        // One of each hundredth, in order.
        for (place, ordinal) in drawn.into_iter().enumerate() {
            assert_eq!(ordinal / 10_000, place as u64);
        }
        assert_eq!(spread(&mut fastrand::Rng::with_seed(1), 3, 100), [0, 1, 2]);
        assert_eq!(
            spread(&mut fastrand::Rng::with_seed(1), 0, 100),
            Vec::<u64>::new()
        );
    }
}
