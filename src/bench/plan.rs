//! How the time of a run is shared among what is left of it: anew before each question, by what the steps before have taken.
//!
//! Warm measurements come first: half of the run is theirs whatever else is asked for. Then comparisons, then what is measured cold, which a
//! question goes without where the questions behind it would go without their warm ones.

use std::iter::Sum;
use std::time::{Duration, Instant};

use super::against::postgres;

/// The part of the time that is planned with; the rest is for what takes longer than it did before.
const PLANNED: f64 = 0.85;
/// The part of what is planned with in the beginning that is for warm measurements.
const WARM: f64 = 0.5;
/// A measurement that is shorter than this tells nothing; the limit does not press it further.
pub(super) const SECONDS_MIN: Duration = Duration::from_millis(5);
/// So many steps of a kind tell what one takes; what fewer took is spread over as many, for one of them may have been slow by chance.
const TELLING: u32 = 12;
/// A step that may be broken off has so many times its share of the time that there is for steps of its kind.
const SHARES: f64 = 4.0;

/// A kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A measurement of a service that has answered before.
    Warm,
    /// A comparison with the node.
    Node,
    /// Comparisons with the database.
    Postgres,
    /// A measurement of a service that is made cold.
    Cold,
}

impl Kind {
    /// The more important first: a step has to leave the time for all that are so.
    pub(super) const ALL: [Self; 4] = [Self::Warm, Self::Node, Self::Postgres, Self::Cold];

    /// Measurements or comparisons of a step.
    pub(super) const fn parts(self) -> u32 {
        match self {
            Self::Postgres => postgres::COMPARISONS,
            Self::Warm | Self::Node | Self::Cold => 1,
        }
    }

    /// What questions went without, in words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Warm => "warm measurements",
            Self::Node => "comparisons with the node",
            Self::Postgres => "comparisons with PostgreSQL",
            Self::Cold => "cold measurements",
        }
    }
}

/// How many steps of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Steps([u32; Kind::ALL.len()]);

impl Steps {
    pub(super) fn with(mut self, kind: Kind, steps: usize) -> Self {
        *self.of_mut(kind) += u32::try_from(steps).unwrap_or(u32::MAX);
        self
    }

    const fn of(&self, kind: Kind) -> u32 {
        self.0[kind as usize]
    }

    const fn of_mut(&mut self, kind: Kind) -> &mut u32 {
        &mut self.0[kind as usize]
    }

    /// Takes one away, where there is one.
    pub(super) fn take(&mut self, kind: Kind) {
        let left = self.of_mut(kind);
        *left = left.saturating_sub(1);
    }

    /// Takes all of another away.
    pub(super) fn leave(&mut self, others: Self) {
        for (left, gone) in self.0.iter_mut().zip(others.0) {
            *left = left.saturating_sub(gone);
        }
    }

    /// Takes all of a kind away.
    pub(super) const fn leave_all(&mut self, kind: Kind) {
        *self.of_mut(kind) = 0;
    }

    /// All of them.
    pub(super) fn all(&self) -> u32 {
        self.0.iter().sum()
    }
}

impl Sum for Steps {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        let mut sums = Self::default();
        for one in all {
            for (sum, steps) in sums.0.iter_mut().zip(one.0) {
                *sum += steps;
            }
        }
        sums
    }
}

/// What steps of a kind took beside their measurements.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    steps: u32,
    beside: Duration,
}

/// The plan of a run.
#[derive(Debug)]
pub(super) struct Plan {
    /// Seconds of a measurement that were asked for.
    asked: Duration,
    ends: Instant,
    left: Steps,
    spent: [Spent; Kind::ALL.len()],
    /// Seconds of each warm measurement that nothing else takes.
    warm: f64,
}

fn share(seconds: f64, steps: u32) -> f64 {
    seconds / f64::from(steps.max(1))
}

impl Plan {
    /// A run of these steps that begins.
    pub(super) fn new(asked: Duration, now: Instant, ends: Instant, left: Steps) -> Self {
        let mut plan = Self {
            asked,
            ends,
            left,
            spent: Default::default(),
            warm: 0.0,
        };
        plan.warm = share(WARM * plan.planned(now), left.of(Kind::Warm));
        plan
    }

    pub(super) const fn left(&self) -> &Steps {
        &self.left
    }

    pub(super) const fn left_mut(&mut self) -> &mut Steps {
        &mut self.left
    }

    /// Notes what a step took beside its measurement.
    pub(super) fn took(&mut self, kind: Kind, beside: Duration) {
        let spent = &mut self.spent[kind as usize];
        spent.steps += 1;
        spent.beside += beside;
    }

    /// Notes what a question took beside its steps that was answered: its warm ones would not have been without.
    pub(super) fn looked(&mut self, beside: Duration) {
        self.spent[Kind::Warm as usize].beside += beside;
    }

    /// Seconds that a step of a kind takes beside its measurement, as far as is known.
    fn beside(&self, kind: Kind) -> f64 {
        let spent = self.spent[kind as usize];
        share(spent.beside.as_secs_f64(), spent.steps.max(TELLING))
    }

    /// Seconds to plan with.
    fn planned(&self, now: Instant) -> f64 {
        PLANNED * self.ends.saturating_duration_since(now).as_secs_f64()
    }

    /// Seconds of all steps of a kind that are left, with measurements of this long.
    fn needed(&self, kind: Kind, measured: f64) -> f64 {
        f64::from(self.left.of(kind)) * self.of_step(kind, measured)
    }

    /// Seconds of a step.
    fn of_step(&self, kind: Kind, measured: f64) -> f64 {
        self.beside(kind) + f64::from(kind.parts()) * measured
    }

    /// The time of one measurement from now on.
    pub(super) fn seconds(&self, now: Instant) -> Duration {
        let planned = self.planned(now);
        let beside: f64 = Kind::ALL.iter().map(|&kind| self.needed(kind, 0.0)).sum();
        let parts = Kind::ALL
            .iter()
            .map(|&kind| kind.parts() * self.left.of(kind))
            .sum();
        let of_all = share(planned - beside, parts);
        let of_warm = share(planned, self.left.of(Kind::Warm)) - self.beside(Kind::Warm);
        let seconds = of_all.max(self.warm.min(of_warm));
        let seconds = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        seconds.clamp(SECONDS_MIN.min(self.asked), self.asked)
    }

    /// Until when a step may go on that is taken now, with a measurement of this long; `None` where there is no time for it. Warm ones are
    /// always taken.
    pub(super) fn room(&self, kind: Kind, measured: Duration, now: Instant) -> Option<Instant> {
        if kind == Kind::Warm {
            return Some(self.ends);
        }
        let seconds = measured.as_secs_f64();
        let before = Kind::ALL.iter().take_while(|&&other| other != kind);
        let kept: f64 = before.map(|&other| self.needed(other, seconds)).sum();
        let room = self.planned(now) - kept;
        let needed = self.of_step(kind, seconds);
        if room < needed {
            return None;
        }
        let shares = SHARES * share(room, self.left.of(kind));
        let until = Duration::try_from_secs_f64(room.min(shares.max(needed))).unwrap_or_default();
        Some(now + until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    const SECOND: Duration = Duration::from_secs(1);

    fn plan(limit: u64, steps: Steps) -> (Plan, Instant) {
        let now = clock::now();
        (
            Plan::new(SECOND, now, now + Duration::from_secs(limit), steps),
            now,
        )
    }

    fn steps(warm: usize, node: usize, cold: usize) -> Steps {
        Steps::default()
            .with(Kind::Warm, warm)
            .with(Kind::Node, node)
            .with(Kind::Cold, cold)
    }

    #[test]
    fn where_there_is_time_each_measurement_has_what_was_asked_for() {
        let (plan, now) = plan(600, steps(100, 20, 70));
        assert_eq!(plan.seconds(now), SECOND);
        for kind in Kind::ALL {
            assert!(plan.room(kind, SECOND, now).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn a_short_limit_presses_all_alike_until_they_cost_more_than_they_last() {
        let (mut plan, now) = plan(20, steps(100, 20, 50));
        let seconds = plan.seconds(now);
        // 17 seconds for 170 steps.
        assert!(seconds.abs_diff(Duration::from_millis(100)) < Duration::from_millis(1));
        assert!(plan.room(Kind::Cold, seconds, now).is_some());
        // Opening the store anew takes a second: 50 of those do not fit. Half of the time is for the warm ones.
        for _ in 0..TELLING {
            plan.took(Kind::Cold, SECOND);
        }
        let seconds = plan.seconds(now);
        assert!(seconds.abs_diff(Duration::from_millis(85)) < Duration::from_millis(1));
        // 8.5 seconds are not for warm ones, 1.7 of them for comparisons.
        assert!(plan.room(Kind::Cold, seconds, now).is_some());
        let later = now + 7 * SECOND;
        assert_eq!(plan.seconds(later), seconds);
        assert_eq!(plan.room(Kind::Cold, plan.seconds(later), later), None);
        assert!(plan.room(Kind::Node, plan.seconds(later), later).is_some());
    }

    #[test]
    fn a_slow_node_leaves_the_time_for_warm_measurements() {
        let (mut plan, now) = plan(60, steps(30, 10, 0));
        let until = plan.room(Kind::Node, SECOND, now).unwrap();
        // 51 seconds, of which 30 are for warm ones: four tenths of the others.
        assert!((until - now).abs_diff(Duration::from_millis(8_400)) < Duration::from_millis(1));
        plan.took(Kind::Node, Duration::from_secs(30));
        plan.left_mut().take(Kind::Node);
        let later = now + Duration::from_secs(31);
        assert_eq!(plan.room(Kind::Node, plan.seconds(later), later), None);
        assert!(plan.seconds(later) > Duration::from_millis(400));
        // Of others that are left all is told.
        plan.left_mut().leave_all(Kind::Node);
        assert_eq!(*plan.left(), steps(30, 0, 0));
    }

    #[test]
    fn one_that_was_slow_by_chance_presses_nobody() {
        let (mut plan, now) = plan(600, steps(117, 13, 78));
        plan.looked(Duration::from_secs(10));
        plan.took(Kind::Cold, Duration::from_secs(10));
        plan.took(Kind::Node, Duration::from_secs(61));
        let later = now + Duration::from_secs(81);
        assert!(plan.seconds(later) > Duration::from_millis(900));
        for kind in Kind::ALL {
            assert!(plan.room(kind, plan.seconds(later), later).is_some(), "{kind:?}");
        }
    }

    #[test]
    fn what_is_past_its_end_has_the_least() {
        let (plan, now) = plan(1, steps(10, 1, 1));
        let late = now + 2 * SECOND;
        assert_eq!(plan.seconds(late), SECONDS_MIN);
        assert_eq!(plan.room(Kind::Cold, SECONDS_MIN, late), None);
        let short = Plan::new(Duration::from_millis(1), now, now + SECOND, steps(1, 0, 0));
        assert_eq!(short.seconds(late), Duration::from_millis(1));
    }
}
