//! What a run found, whole: what the table, the JSON and the page are made of.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::against::{Comparison, Tally, Verdict};
use super::answer::Way;
use super::figures::{Percentiles, count, differing, duration, or_none, ratio, so_many};
pub use super::machine::Machine;
use super::measure::Answers;
use super::measurement::Measurement;
use super::question::{LeftOut, Question};
use super::statistics::{Head, StoreFacts};
use crate::model::B256;

/// A run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The version of this program.
    pub version: &'static str,
    /// The command as it was given, without what a URL may hide.
    pub command: String,
    /// The number of this form of a report ([`SCHEMA`]).
    pub schema: u32,
    /// When it began: Unix seconds.
    pub began: u64,
    /// How long it took, seconds.
    pub seconds: f64,
    /// Why it ended before its end, where it did.
    pub ended_early: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// The store at the beginning.
    pub store: StoreFacts,
    /// The block that the service answered from at the end, where it told.
    pub head_at_end: Option<Head>,
    /// The parameters of the run.
    pub settings: Settings,
    /// What was asked, in order.
    pub questions: Vec<Asked>,
    /// What was not, and why.
    pub left_out: Vec<LeftOut>,
    /// Whom answers were held against, in words.
    pub others: Vec<String>,
    /// What came of that, counted.
    pub compared: Vec<Tally>,
    /// What is to be told of the whole run.
    pub notes: Vec<String>,
}

/// The form of the JSON: raised where a field goes, is named anew or means something else. Fields may come without that.
pub const SCHEMA: u32 = 2;

/// What is to be told of a question beside its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Why it was not answered.
    NotAnswered(String),
    /// Why a measurement is missing.
    Unmeasured {
        /// The name of the way that was to be measured.
        way: &'static str,
        /// Whether the service was to be made cold.
        cold: bool,
        /// Why.
        why: String,
    },
    /// What else there is to be told.
    Other(String),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnswered(why) => write!(f, "not answered: {why}"),
            Self::Unmeasured {
                way,
                cold: false,
                why,
            } => write!(f, "{way}: {why}"),
            Self::Unmeasured { way, cold: true, why } => write!(f, "{way}, cold: {why}"),
            Self::Other(told) => f.write_str(told),
        }
    }
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The parameters of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Settings {
    /// The seed of the sample that parameters were picked from.
    pub seed: u64,
    /// Seconds of each measurement, as planned in the beginning; each tells how long it lasted.
    pub seconds: f64,
    /// Seconds of the whole run at most.
    pub limit: f64,
    /// Clients at a time.
    pub clients: Vec<usize>,
    /// Cache of the store, for blocks and rows that are kept, bytes; `None` where a service of another process has one of its own.
    pub cache_bytes: Option<u64>,
    /// What warm means here.
    pub warm: String,
    /// What cold means here.
    pub cold: String,
    /// The service that was asked over HTTP.
    pub service: String,
}

/// A question and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Asked {
    /// The question.
    #[serde(flatten)]
    pub question: Question,
    /// Its answers, once each.
    pub answers: Answers,
    /// How long they took.
    pub measurements: Vec<Measurement>,
    /// The service said that it does not have what was asked for.
    #[serde(skip)]
    pub is_withheld: bool,
    /// What others answered.
    pub comparisons: Vec<Comparison>,
    /// Why a measurement is missing.
    pub notes: Vec<Note>,
}

impl Asked {
    /// Takes a measurement. Of a page of logs of which an answer had another number of rows than the store counts, that is a difference.
    pub(super) fn measured(&mut self, found: Measurement) {
        if let (Some(filter), Some(counted), Some((rows, _))) =
            (&self.question.filter, self.question.counted, found.other_rows)
            && !self.comparisons.iter().any(Comparison::is_with_store)
        {
            self.comparisons
                .extend(Comparison::with_store(filter, rows, counted));
        }
        self.measurements.push(found);
    }

    /// Notes that a measurement is missing, and why.
    pub(super) fn unmeasured(&mut self, way: &Way, cold: bool, why: String) {
        let way = way.name();
        self.notes.push(Note::Unmeasured { way, cold, why });
    }
}

impl Report {
    /// How many comparisons found a difference.
    #[must_use]
    pub fn differing(&self) -> u64 {
        let compared = self.questions.iter().flat_map(|asked| &asked.comparisons);
        compared
            .filter(|comparison| matches!(comparison.verdict, Verdict::Differ { .. }))
            .count() as u64
    }

    /// How long those warm measurements lasted, the shortest and the longest, that had less time than this; those aside that ended before
    /// it was over.
    pub(super) fn pressed(&self, asked: Duration) -> Option<(f64, f64)> {
        let measurements = self.questions.iter().flat_map(|asked| &asked.measurements);
        let is_pressed = |found: &&Measurement| {
            let is_whole = found.runs > 0 && !found.full && found.stopped == 0;
            !found.condition.cold && is_whole && found.planned_seconds < asked.as_secs_f64()
        };
        let lasted = measurements.filter(is_pressed).map(|found| found.seconds);
        lasted.fold(None, |span, seconds| match span {
            Some((least, most)) => Some((seconds.min(least), seconds.max(most))),
            None => Some((seconds, seconds)),
        })
    }

    /// Whether there is nothing in it: no answer was timed, and none compared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let is_empty = |asked: &Asked| asked.measurements.is_empty() && asked.comparisons.is_empty();
        self.questions.iter().all(is_empty)
    }

    /// The report as JSON.
    ///
    /// # Errors
    ///
    /// When a figure is none that JSON can write.
    pub fn json(&self) -> Result<String, String> {
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .map_err(|error| format!("cannot write the report: {error}"))
    }

    /// The tables for a terminal.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::new();
        let columns = ["rows", "runs", "p50", "p90", "p99", "max", "rows/s", "bytes/s"];
        let mut lines = vec![
            std::iter::once("question".to_owned())
                .chain(["how".to_owned()])
                .chain(columns.map(str::to_owned))
                .collect::<Vec<_>>(),
        ];
        for asked in &self.questions {
            for (place, measurement) in asked.measurements.iter().enumerate() {
                let name = if place == 0 {
                    asked.question.published.name
                } else {
                    ""
                };
                let times = |of: fn(Percentiles) -> f64| or_none(measurement.milliseconds.map(of), duration);
                let failures = match measurement.failures {
                    0 => String::new(),
                    failures => format!(" ({failures} failed)"),
                };
                lines.push(vec![
                    name.to_owned(),
                    format!("{}{failures}", measurement.condition),
                    asked.answers.shown(),
                    measurement.runs.to_string(),
                    times(|times| times.p50),
                    times(|times| times.p90),
                    times(|times| times.p99),
                    times(|times| times.max),
                    or_none(measurement.rows_per_second, count),
                    or_none(measurement.bytes_per_second, count),
                ]);
            }
        }
        if lines.len() > 1 {
            aligned(&mut out, &lines, &[0, 1]);
        }
        let mut lines = vec![
            [
                "compared",
                "with",
                "rows",
                "answers",
                "over HTTP",
                "in process",
                "other",
                "timed",
                "ratio",
                "in process",
                "asked",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        for asked in &self.questions {
            for comparison in &asked.comparisons {
                lines.push(vec![
                    asked.question.published.name.to_owned(),
                    comparison.with.to_owned(),
                    comparison.rows.to_string(),
                    comparison.verdict.word().to_owned(),
                    or_none(comparison.ours_ms, duration),
                    or_none(comparison.ours_in_process_ms, duration),
                    or_none(comparison.theirs_ms, duration),
                    comparison.timed_in_words(),
                    or_none(comparison.ratio, ratio),
                    or_none(comparison.ratio_in_process, ratio),
                    comparison.asked.clone(),
                ]);
            }
        }
        if lines.len() > 1 {
            out.push('\n');
            aligned(&mut out, &lines, &[0, 1, 3, 10]);
        }
        let (first, last) = self.heads();
        out.push_str(&format!("\nhead: {first} at the beginning, {last} at the end\n"));
        for line in self.remarks() {
            out.push('\n');
            out.push_str(&line);
        }
        out.trim_end().to_owned()
    }

    /// The head at the beginning and at the end, in words.
    #[must_use]
    pub fn heads(&self) -> (String, String) {
        let shown = |number: u64, hash: B256| format!("block {number} {hash}");
        let last = self.head_at_end.map(|head| shown(head.number, head.hash));
        (
            shown(self.store.head, self.store.head_hash),
            last.unwrap_or_else(|| "not told".to_owned()),
        )
    }

    /// That the store did not stay as it was, where it did not.
    fn moved(&self) -> Option<String> {
        let head = self.head_at_end?;
        if (head.number, head.hash) == (self.store.head, self.store.head_hash) {
            return None;
        }
        let how = if head.number > self.store.head {
            "grew"
        } else {
            "came to another head"
        };
        Some(format!(
            "the store {how} while it was measured, from block {} to block {}: logs were asked for up to block {}, other rows may \
             be of any head in between",
            self.store.head, head.number, self.store.head
        ))
    }

    /// That nobody knows whether cold answers were cold, where the system does not count what comes from the disk.
    fn disk_untold(&self) -> Option<String> {
        let measurements = self.questions.iter().flat_map(|asked| &asked.measurements);
        let cold = measurements.filter(|found| found.condition.cold && found.runs > 0);
        let untold = cold.clone().filter(|found| found.disk_bytes_per_answer.is_none());
        let (untold, all) = (untold.count(), cold.count());
        (untold > 0).then(|| {
            format!(
                "the system does not tell what came from the disk for {untold} of {all} cold measurements: whether they were cold is not known"
            )
        })
    }

    /// What else is to be told, a line each: differences, questions that were not answered or not asked.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .moved()
            .into_iter()
            .chain(self.disk_untold())
            .chain(self.notes.iter().cloned())
            .collect();
        for asked in &self.questions {
            let name = asked.question.published.name;
            for found in &asked.measurements {
                let condition = found.condition;
                let told = [found.failed(), found.ended(), found.varied()];
                lines.extend(
                    told.into_iter()
                        .flatten()
                        .map(|told| format!("{name}: {condition}: {told}")),
                );
                if condition.cold && found.runs > 0 && found.disk_bytes_per_answer == Some(0) {
                    lines.push(format!(
                        "{name}: {condition}: 0 bytes came from the disk: it was not cold, a file system or another process has the \
                         files in memory"
                    ));
                }
            }
            for comparison in &asked.comparisons {
                if let Some(why) = &comparison.untimed {
                    lines.push(match comparison.rounds {
                        0 => format!("{name}: not timed against {}: {why}", comparison.with),
                        rounds => format!(
                            "{name}: timed {} against {}, then: {why}",
                            so_many(rounds, "time"),
                            comparison.with
                        ),
                    });
                }
                if let Some(why) = &comparison.limited {
                    lines.push(format!("{name}: {} was compared in part: {why}", comparison.with));
                }
                match &comparison.verdict {
                    Verdict::Equal | Verdict::Partly => {}
                    Verdict::Empty => {
                        lines.push(format!(
                            "{name}: neither the service nor {} has a row of what was asked: nothing was compared",
                            comparison.with
                        ));
                    }
                    Verdict::Differ { rows, told } => {
                        let differing = differing(*rows, "row");
                        lines.push(format!("{name}: {differing} from {}:", comparison.with));
                        lines.extend(told.iter().map(|text| format!("  {text}")));
                    }
                    Verdict::Unanswered(why) => {
                        lines.push(format!("{name}: not compared with {}: {why}", comparison.with));
                    }
                }
            }
            lines.extend(asked.notes.iter().map(|note| format!("{name}: {note}")));
        }
        for alike in self.left_out.chunk_by(|one, next| one.reason == next.reason) {
            let names: Vec<_> = alike.iter().map(|left_out| left_out.published.name).collect();
            let reason = alike.first().map_or("", |left_out| left_out.reason.as_str());
            lines.push(format!("{}: left out: {reason}", names.join(", ")));
        }
        lines.extend(self.ended_early.iter().cloned());
        lines
    }
}

impl Verdict {
    /// The verdict in a word.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Partly => "in part",
            Self::Empty => "empty",
            Self::Differ { .. } => "DIFFER",
            Self::Unanswered(_) => "none",
        }
    }
}

impl Answers {
    /// Rows of an answer; from the fewest to the most where targets have different ones.
    #[must_use]
    pub fn shown(&self) -> String {
        match (self.rows.iter().min(), self.rows.iter().max()) {
            (Some(least), Some(most)) if least == most => least.to_string(),
            (Some(least), Some(most)) => format!("{least}-{most}"),
            _ => "-".to_owned(),
        }
    }
}

/// Columns as wide as their widest cell; those of `texts` are words, the others figures, which stand to the right.
fn aligned(out: &mut String, lines: &[Vec<String>], texts: &[usize]) {
    let columns = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(String::len).max().unwrap_or(0)
        })
        .collect();
    for line in lines {
        let cells = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, &width))| {
                if texts.contains(&column) {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
}
