//! Finds how many requests in flight a node makes use of, and asks for no more.
//!
//! A node that answers one request at a time answers no faster when thirty wait: they only stand before whatever else it has
//! to do, the import of its next block among it. So the number is chosen by what comes back. It doubles while the rate of
//! answers grows with it. Later it is held against its half and its double from time to time, in windows that
//! take turns so that a stretch of heavier blocks weighs on both, and the smallest that keeps the rate is taken.

/// The first number, before anything is known.
const FIRST: u32 = 4;

/// A doubling pays when the rate grows by this at least.
const PAYS: f64 = 1.15;

/// A half will do when it keeps this much of the rate.
const WILL_DO: f64 = 0.92;

/// Windows of each side in a comparison.
const TURNS: u32 = 4;

/// Windows without a comparison: at first, and when comparisons have changed nothing for long.
const HOLD_MIN: u32 = 8;
const HOLD_MAX: u32 = 128;

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Doubles; the rate at half the number, where that was seen.
    Rise { before: Option<f64> },
    /// Keeps the number for so many windows.
    Hold { left: u32 },
    /// Holds the number against another, by turns.
    Compare(Comparison),
}

#[derive(Clone, Copy, Debug)]
struct Comparison {
    other: u32,
    /// Windows seen of both.
    seen: u32,
    here: f64,
    there: f64,
}

impl Comparison {
    const fn with(other: u32) -> Self {
        Self {
            other,
            seen: 0,
            here: 0.0,
            there: 0.0,
        }
    }
}

/// The search for the number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Climb {
    max: u32,
    chosen: u32,
    phase: Phase,
    hold: u32,
}

impl Climb {
    /// A search between 1 and `max`.
    pub(super) fn new(max: u32) -> Self {
        Self {
            max: max.max(1),
            chosen: FIRST.min(max.max(1)),
            phase: Phase::Rise { before: None },
            hold: HOLD_MIN,
        }
    }

    /// How many requests may be in flight in the window that is running.
    pub(super) const fn limit(&self) -> u32 {
        match self.phase {
            Phase::Compare(comparison) if comparison.seen % 2 == 1 => comparison.other,
            _ => self.chosen,
        }
    }

    const fn double(&self) -> u32 {
        let double = self.chosen.saturating_mul(2);
        if double < self.max { double } else { self.max }
    }

    /// Takes the rate of a window (answers, weighed, a second) in which so many as allowed were in flight throughout.
    pub(super) fn window(&mut self, rate: f64) {
        self.phase = match self.phase {
            Phase::Rise { before } if before.is_some_and(|before| rate < before * PAYS) => {
                self.chosen = (self.chosen / 2).max(1);
                self.compare(self.chosen / 2)
            }
            Phase::Rise { .. } if self.chosen == self.max => Phase::Hold { left: self.hold },
            Phase::Rise { .. } => {
                self.chosen = self.double();
                Phase::Rise { before: Some(rate) }
            }
            Phase::Hold { left: 0 | 1 } => self.compare(self.chosen / 2),
            Phase::Hold { left } => Phase::Hold { left: left - 1 },
            Phase::Compare(mut comparison) => {
                if comparison.seen % 2 == 1 {
                    comparison.there += rate;
                } else {
                    comparison.here += rate;
                }
                comparison.seen += 1;
                if comparison.seen < 2 * TURNS {
                    Phase::Compare(comparison)
                } else {
                    self.decide(comparison)
                }
            }
        };
    }

    /// Begins to compare with another number; where there is none such, keeps what there is.
    fn compare(&mut self, other: u32) -> Phase {
        if other == 0 || other == self.chosen {
            return self.after_refusal(other);
        }
        Phase::Compare(Comparison::with(other))
    }

    fn decide(&mut self, comparison: Comparison) -> Phase {
        let Comparison {
            other, here, there, ..
        } = comparison;
        let fewer = other < self.chosen;
        if there < here * if fewer { WILL_DO } else { PAYS } {
            return self.after_refusal(other);
        }
        self.chosen = other;
        self.hold = HOLD_MIN;
        let next = if fewer { other / 2 } else { self.double() };
        if next == 0 || next == other {
            return Phase::Hold { left: self.hold };
        }
        Phase::Compare(Comparison::with(next))
    }

    /// Fewer would not do: perhaps more would pay. That neither: wait, twice as long as the last time.
    fn after_refusal(&mut self, other: u32) -> Phase {
        let double = self.double();
        if other < self.chosen && double != self.chosen {
            return Phase::Compare(Comparison::with(double));
        }
        let left = self.hold;
        self.hold = (self.hold * 2).min(HOLD_MAX);
        Phase::Hold { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rate of a node with so many cores, so far away, on which an answer takes one unit of a core.
    fn rate(cores: u32, away: f64, in_flight: u32) -> f64 {
        f64::from(cores).min(f64::from(in_flight) / (1.0 + away))
    }

    /// Lives through so many windows with rates that are off by up to a tenth; the numbers that were allowed.
    fn live(climb: &mut Climb, windows: u32, rng: &mut fastrand::Rng, node: impl Fn(u32) -> f64) -> Vec<u32> {
        let mut allowed = Vec::new();
        for _ in 0..windows {
            let limit = climb.limit();
            allowed.push(limit);
            climb.window(node(limit) * (0.95 + 0.1 * rng.f64()));
        }
        allowed
    }

    #[test]
    fn the_number_is_what_the_node_makes_use_of() {
        let mut rng = fastrand::Rng::with_seed(7);
        for (cores, away, most) in [
            (1, 0.1, 2),
            (1, 0.0, 1),
            (4, 0.2, 8),
            (8, 9.0, 64),
            (64, 50.0, 64),
        ] {
            for _ in 0..50 {
                let mut climb = Climb::new(64);
                live(&mut climb, 60, &mut rng, |n| rate(cores, away, n));
                let allowed = live(&mut climb, 400, &mut rng, |n| rate(cores, away, n));
                assert!(allowed.iter().all(|&n| (1..=64).contains(&n)));
                let mean = allowed.iter().sum::<u32>() / 400;
                assert!(mean <= most, "{cores} cores, {away} away: {mean}");
                let got: f64 = allowed.iter().map(|&n| rate(cores, away, n)).sum();
                let best = rate(cores, away, 64) * 400.0;
                assert!(got > best * 0.85, "{cores} cores, {away} away: {got} of {best}");
            }
        }
    }

    #[test]
    fn it_follows_a_node_that_changes() {
        let mut rng = fastrand::Rng::with_seed(8);
        let mut climb = Climb::new(32);
        live(&mut climb, 300, &mut rng, |n| rate(1, 0.0, n));
        assert!(climb.chosen <= 2, "{climb:?}");
        live(&mut climb, 300, &mut rng, |n| rate(16, 0.0, n));
        assert!(climb.chosen >= 8, "{climb:?}");
        live(&mut climb, 300, &mut rng, |n| rate(2, 0.0, n));
        assert!(climb.chosen <= 4, "{climb:?}");
    }

    #[test]
    fn the_bounds_hold() {
        for max in [0, 1, 2, 3, 5, 32] {
            let mut climb = Climb::new(max);
            for step in 0..500 {
                assert!((1..=max.max(1)).contains(&climb.limit()));
                climb.window(f64::from(step * 7919 % 101));
            }
        }
    }
}
