//! What came of asking a question again and again.

use serde::Serialize;

use super::figures::{Percentiles, duration};

/// How the service was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// `in process` or `over HTTP`.
    pub way: &'static str,
    /// Whether nothing of the store was in memory.
    pub cold: bool,
    /// Clients at a time.
    pub clients: usize,
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let temperature = if self.cold { "cold" } else { "warm" };
        write!(f, "{}, {temperature}", self.way)?;
        if self.clients != 1 {
            write!(f, ", {} clients", self.clients)?;
        }
        Ok(())
    }
}

/// Answers with a 200 that are not the JSON that they must be: the service failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// How many.
    pub unread: u64,
    /// Why the first of them cannot be read.
    #[serde(skip)]
    pub first: Option<String>,
}

impl Unread {
    /// Adds one.
    pub(super) fn push(&mut self, why: &str) {
        self.unread += 1;
        self.first.get_or_insert_with(|| why.to_owned());
    }

    /// Adds all of another.
    pub(super) fn add(&mut self, other: Self) {
        self.unread += other.unread;
        self.first = self.first.take().or(other.first);
    }
}

/// What came of asking.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// How.
    #[serde(flatten)]
    pub condition: Condition,
    /// Answers.
    pub runs: u64,
    /// Requests without a 200 or a whole body that can be read; their times are not in the percentiles.
    pub failures: u64,
    /// Those of them that had a 200.
    #[serde(flatten)]
    pub unread: Unread,
    /// What came of the first request that failed.
    pub first_failure: Option<String>,
    /// Clients that stopped before their time, after too many failures in a row.
    pub stopped: u64,
    /// Whether it ended before its time, with as many answers as a measurement keeps.
    pub full: bool,
    /// Answers that were longer or shorter than the one that was looked at. Of warm ones.
    pub of_other_length: u64,
    /// Those of them whose rows could not be counted, and are in no figure.
    pub uncounted: u64,
    /// Answers that had another number of rows than the one that was looked at, of those whose rows were counted.
    pub of_other_rows: u64,
    /// Rows of the first of these, and of the one that was looked at.
    #[serde(skip)]
    pub other_rows: Option<(u64, u64)>,
    /// Seconds from the first request to the last answer, or the last that failed; of cold ones those of the answers alone.
    pub seconds: f64,
    /// Seconds that were planned.
    #[serde(skip)]
    pub planned_seconds: f64,
    /// Milliseconds; `None` where every request failed, and so are the rates.
    pub milliseconds: Option<Percentiles>,
    /// Rows of all clients together.
    pub rows_per_second: Option<f64>,
    /// Bytes of bodies, of all clients together.
    pub bytes_per_second: Option<f64>,
    /// Bytes that came from the disk for an answer, where the system tells; of cold ones.
    pub disk_bytes_per_answer: Option<u64>,
}

impl Measurement {
    /// What failed, where anything did: how many requests, the first of them, and who stopped for it.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        let first = self.first_failure.as_deref()?;
        let asked = self.runs + self.failures;
        let mut told = format!(
            "{} of {asked} requests failed, the first with: {first}",
            self.failures
        );
        if self.stopped > 0 {
            told += &format!(
                "; {} of {} clients stopped before the time was over, after that many failures in a row",
                self.stopped, self.condition.clients
            );
        }
        Some(told)
    }

    /// What is to be said where it ended before its time.
    #[must_use]
    pub fn ended(&self) -> Option<String> {
        self.full.then(|| {
            format!(
                "it ended after {} of {}: a measurement keeps no more than its {} answers",
                duration(1e3 * self.seconds),
                duration(1e3 * self.planned_seconds),
                self.runs
            )
        })
    }

    /// What is to be said where answers were not of one length.
    #[must_use]
    pub fn varied(&self) -> Option<String> {
        let uncounted = (self.uncounted > 0).then(|| {
            format!(
                "{} of {} answers were longer or shorter than those whose rows were counted: theirs are not counted",
                self.uncounted, self.runs
            )
        });
        let of_other_rows = self.other_rows.map(|(found, looked_at)| {
            format!(
                "{} of {} answers had another number of rows, the first of them {found}, the one that was looked at {looked_at}",
                self.of_other_rows, self.runs
            )
        });
        let told: Vec<_> = of_other_rows.into_iter().chain(uncounted).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_in_words() {
        let mut condition = Condition {
            way: "over HTTP",
            cold: false,
            clients: 4,
        };
        assert_eq!(condition.to_string(), "over HTTP, warm, 4 clients");
        condition.cold = true;
        condition.clients = 1;
        assert_eq!(condition.to_string(), "over HTTP, cold");
    }
}
