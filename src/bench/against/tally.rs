//! Comparisons counted.

use serde::Serialize;

use super::{Comparison, OTHERS, Verdict};
use crate::bench::figures::{median, or_none, ratio};

/// Comparisons with one other, counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tally {
    /// As in the comparisons.
    pub with: &'static str,
    /// Answers that are equal.
    pub equal: u64,
    /// Answers that are equal as far as they were compared, which is not all of them.
    pub partly: u64,
    /// Answers without a row on both sides, of questions that have rows.
    pub empty: u64,
    /// Answers that differ.
    pub differ: u64,
    /// Questions that one of them did not answer.
    pub unanswered: u64,
    /// The median of the ratios of answers that are equal, all or in part, over HTTP; `None` where there is none.
    pub median_ratio: Option<f64>,
    /// The same in process.
    pub median_ratio_in_process: Option<f64>,
}

impl Tally {
    /// Counts the comparisons with each other that there was.
    #[must_use]
    pub fn of<'a>(all: impl Iterator<Item = &'a Comparison>) -> Vec<Self> {
        let all: Vec<_> = all.collect();
        let with = |name: &'static str| {
            let of: Vec<_> = all.iter().filter(|found| found.with == name).collect();
            let count =
                |is: fn(&Verdict) -> bool| of.iter().filter(|found| is(&found.verdict)).count() as u64;
            (!of.is_empty()).then(|| Self {
                with: name,
                equal: count(|verdict| matches!(verdict, Verdict::Equal)),
                partly: count(|verdict| matches!(verdict, Verdict::Partly)),
                empty: count(|verdict| matches!(verdict, Verdict::Empty)),
                differ: count(|verdict| matches!(verdict, Verdict::Differ { .. })),
                unanswered: count(|verdict| matches!(verdict, Verdict::Unanswered(_))),
                median_ratio: median(of.iter().filter_map(|found| found.ratio).collect()),
                median_ratio_in_process: median(
                    of.iter().filter_map(|found| found.ratio_in_process).collect(),
                ),
            })
        };
        OTHERS.into_iter().filter_map(with).collect()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "against {}: {} answers equal, {} in part, {} empty, {} differ, {} not compared; median ratio {} over HTTP",
            self.with,
            self.equal,
            self.partly,
            self.empty,
            self.differ,
            self.unanswered,
            or_none(self.median_ratio, ratio),
        )?;
        match self.median_ratio_in_process {
            Some(in_process) => write!(f, ", {} in process", ratio(in_process)),
            None => Ok(()),
        }
    }
}
