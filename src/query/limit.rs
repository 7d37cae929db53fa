//! The time that an answer may take.

use std::time::Instant;

use super::QueryError;
use crate::clock;

/// Work in steps up to some time. The clock is read once in so many steps of the whole answer, whatever part of it they are of:
/// reading it takes as long as some of them.
#[derive(Debug)]
pub(super) struct Limit {
    deadline: Option<Instant>,
    /// Steps from one look to the next.
    every: u32,
    /// Steps since the last one.
    steps: u32,
}

impl Limit {
    /// Up to `deadline`, which is looked at once in `every` steps.
    pub(super) const fn new(deadline: Option<Instant>, every: u32) -> Self {
        Self {
            deadline,
            every,
            steps: 0,
        }
    }

    /// As long as it takes: for what is a few steps.
    pub(super) const fn none() -> Self {
        Self::new(None, u32::MAX)
    }

    /// When it is over.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Counts steps; whether a look was due and the time is over.
    #[inline]
    pub(super) fn is_over(&mut self, steps: u32) -> bool {
        self.steps = self.steps.saturating_add(steps);
        self.every <= self.steps && self.look()
    }

    /// How many times so many steps may be taken before the next look is due, once at least. They count as taken: what is not taken of
    /// them brings the next look nearer.
    pub(super) fn paid(&mut self, steps: u32) -> u32 {
        let left = self.every.saturating_sub(self.steps);
        self.steps = self.every;
        left.div_ceil(steps.max(1)).max(1)
    }

    /// Looks at the clock, however few steps there were; whether the time is over.
    #[cold]
    pub(super) fn look(&mut self) -> bool {
        self.steps = 0;
        self.deadline.is_some_and(|deadline| clock::now() >= deadline)
    }

    /// Counts steps; [`QueryError::TimedOut`] where the time is over.
    #[inline]
    pub(super) fn spend(&mut self, steps: u32) -> Result<(), QueryError> {
        match self.is_over(steps) {
            true => Err(QueryError::TimedOut),
            false => Ok(()),
        }
    }

    /// The same, and the clock is looked at whatever was counted: for steps that take long.
    pub(super) fn check(&mut self) -> Result<(), QueryError> {
        match self.look() {
            true => Err(QueryError::TimedOut),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_whatever_part_bring_the_next_look_nearer() {
        let mut limit = Limit::new(Some(clock::now()), 100);
        assert!(!limit.is_over(60));
        assert!(!limit.is_over(39));
        assert!(limit.is_over(1));
        // Counted anew from the look on.
        assert!(!limit.is_over(99));
        assert!(limit.look());
        assert!(limit.spend(99).is_ok());
        assert!(matches!(limit.spend(u32::MAX), Err(QueryError::TimedOut)));
        assert!(matches!(limit.check(), Err(QueryError::TimedOut)));
    }

    #[test]
    fn steps_that_are_paid_at_once_count_as_taken() {
        let mut limit = Limit::new(Some(clock::now()), 100);
        assert!(!limit.is_over(40));
        assert_eq!(limit.paid(7), 9);
        assert!(limit.is_over(1), "and the next one is looked at");
        assert_eq!((limit.paid(100), limit.paid(100)), (1, 1));
        assert!(limit.look());
        assert_eq!(limit.paid(1_000), 1);
    }

    #[test]
    fn without_a_deadline_there_is_time() {
        let mut limit = Limit::new(None, 1);
        assert!(!limit.is_over(u32::MAX) && !limit.look());
        assert!(limit.check().is_ok());
    }
}
