//! Answers that are not there to be compared, and what comes of that.

use super::{Comparison, LogFilter, Verdict, in_words};
use crate::bench::compare::Differences;

/// Why there is nothing to be compared, in words.
#[derive(Clone, Debug)]
pub(super) enum Lacking {
    /// The service gave an answer that is none, or lacks what the other has: that is a difference.
    Differs(String),
    /// The service gave no answer.
    Unserved(String),
    /// The other gave none, or there is nothing that both could be asked for.
    Other(String),
}

impl Lacking {
    /// A failure of the service.
    pub(super) fn unserved(why: &str) -> Self {
        Self::Unserved(format!("the service: {why}"))
    }
}

impl From<String> for Lacking {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

impl Comparison {
    /// A question of which nothing was compared.
    pub(super) fn lacking(with: &'static str, asked: String, why: Lacking) -> Self {
        let verdict = |why: &String| Verdict::Unanswered(why.clone());
        let (verdict, failed) = match why {
            Lacking::Differs(told) => (Verdict::of(one(told)), None),
            Lacking::Unserved(why) => (verdict(&why), Some(why)),
            Lacking::Other(why) => (verdict(&why), None),
        };
        let found = Self::untimed(with, asked, verdict, 0);
        Self { failed, ..found }
    }

    /// The same of each of some others, where the service cannot be asked at all.
    pub fn unserved(
        others: impl IntoIterator<Item = &'static str>,
        filter: &LogFilter,
        why: &str,
    ) -> impl Iterator<Item = Self> {
        let others = others.into_iter();
        others.map(move |with| Self::lacking(with, in_words(filter), Lacking::unserved(why)))
    }

    /// Takes why it has no times, or no more than there are.
    pub(super) fn ends_with(&mut self, why: Lacking) {
        let untimed = match why {
            Lacking::Differs(told) => {
                self.differs(one(told.clone()));
                told
            }
            Lacking::Unserved(why) => self.failed.insert(why).clone(),
            Lacking::Other(why) => why,
        };
        self.untimed = Some(untimed);
    }

    /// Takes differences that were found after those of its verdict, if that has none.
    pub(super) fn differs(&mut self, found: Differences) {
        if !matches!(self.verdict, Verdict::Differ { .. }) {
            self.verdict = Verdict::of(found);
        }
    }
}

impl Verdict {
    /// Of differences that there are.
    pub(super) fn of(Differences { count, told }: Differences) -> Self {
        Self::Differ { rows: count, told }
    }
}

/// A difference of one row at least.
fn one(told: String) -> Differences {
    Differences {
        count: 1,
        told: vec![told],
    }
}
