//! Asking a question again and again, and keeping the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::answer::{Client, Failure, FailureKind, Way, rows};
use super::figures::Latencies;
use super::measurement::{Condition, Measurement, Unread};
use super::plan::SECONDS_MIN;
use super::question::Question;
use crate::clock;
use crate::machine::disk_bytes;

/// Answers of one measurement at most, of all its clients: what their times take in memory is bounded too.
const RUNS_MAX: usize = 1_000_000;
/// Answers of a cold measurement, where time allows: at least and at most.
const COLD_RUNS: (usize, usize) = (1, 25);
/// Cold answers that may fail in a row.
const COLD_FAILURES_MAX: u64 = 3;
/// A client gives up after so many failures in a row.
const FAILURES_MAX: u64 = 10;

/// Lengths of answers that a client asks for once more, to count their rows.
const LENGTHS_MAX: usize = 1_000;

/// How long a client waits for an answer where the time of the run is over: one that does not come so soon is no failure.
const ANSWER_TIME_MIN: Duration = Duration::from_millis(100);
/// From so long on an answer that did not come counts as a failure, also where the run has no time for more.
const LATE_FROM: Duration = Duration::from_secs(1);
/// Connections that are let go are closed by then.
const CLOSED_WITHIN: Duration = Duration::from_millis(100);

/// Makes the service cold. Blocks.
pub trait Bed: Send + Sync {
    /// Opens the store anew and drops what the system has cached of its files.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn chill(&self) -> Result<(), String>;
}

/// What the answer to each target of a question is like.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answers {
    /// Rows by target.
    pub rows: Vec<u64>,
    /// Bytes of all targets.
    pub bytes: u64,
    /// Bytes by target.
    #[serde(skip)]
    pub lengths: Vec<u64>,
    /// Those that cannot be read.
    #[serde(flatten)]
    pub unread: Unread,
}

/// Asks every target once and counts its rows; and says which were not answered, whose rows count as none.
///
/// # Errors
///
/// What the first came to where none is answered.
pub async fn look(question: &Question, way: &Way) -> Result<(Answers, Option<String>), Failure> {
    let client = way.client().await;
    let mut client = client.map_err(|error| Failure::broken(error.to_string()))?;
    let mut answers = Answers::default();
    let (mut failures, mut first): (_, Option<Failure>) = (0, None);
    for target in &question.targets {
        let body = client.body(target).await;
        let counted = body.and_then(|body| {
            let counted = rows(&body).inspect_err(|why| answers.unread.push(why));
            Ok((counted.map_err(Failure::unread)?, body.len()))
        });
        match counted {
            Ok((rows, bytes)) => {
                answers.rows.push(rows);
                answers.lengths.push(bytes as u64);
                answers.bytes += bytes as u64;
            }
            Err(failure) => {
                answers.rows.push(0);
                answers.lengths.push(0);
                failures += 1;
                first.get_or_insert_with(|| Failure {
                    why: format!("{} ({target})", failure.why),
                    ..failure
                });
                // It may be the connection's fault.
                if let Ok(again) = way.client().await {
                    client = again;
                }
            }
        }
    }
    let asked = question.targets.len();
    match first {
        Some(failure) if failures == asked => Err(failure),
        first => {
            let told = |Failure { why, .. }| {
                format!("{failures} of {asked} paths were not answered, the first with: {why}")
            };
            Ok((answers, first.map(told)))
        }
    }
}

/// Sums of one client.
#[derive(Default)]
struct Sums {
    latencies: Latencies,
    failures: u64,
    unread: Unread,
    first_failure: Option<String>,
    in_a_row: u64,
    stopped: u64,
    /// Whether there were as many answers as a measurement keeps, before the time was over.
    is_full: bool,
    of_other_length: u64,
    uncounted: u64,
    of_other_rows: u64,
    other_rows: Option<(u64, u64)>,
    rows: u64,
    bytes: u64,
    /// When it asked first, and when its last answer was there, or had failed.
    span: Option<(Instant, Instant)>,
}

impl Sums {
    fn answered(&mut self, bytes: u64, took: Duration, rows: u64) {
        self.latencies.push(took);
        self.in_a_row = 0;
        self.rows += rows;
        self.bytes += bytes;
    }

    /// One of another length than the one that was looked at, with its rows where they could be counted.
    fn answered_otherwise(&mut self, bytes: u64, took: Duration, rows: Option<u64>, looked_at: u64) {
        self.of_other_length += 1;
        match rows {
            None => self.uncounted += 1,
            Some(rows) => self.counted(rows, looked_at),
        }
        self.answered(bytes, took, rows.unwrap_or(0));
    }

    /// Holds the rows of an answer against those of the one that was looked at.
    fn counted(&mut self, rows: u64, looked_at: u64) {
        if rows != looked_at {
            self.of_other_rows += 1;
            self.other_rows.get_or_insert((rows, looked_at));
        }
    }

    fn failed(&mut self, why: String) {
        self.failures += 1;
        self.in_a_row += 1;
        self.first_failure.get_or_insert(why);
    }

    /// The same of an answer that cannot be read.
    fn unread(&mut self, why: String) {
        self.unread.push(&why);
        self.failed(why);
    }

    /// Takes a failure.
    fn met(&mut self, failure: Failure) {
        match failure.kind {
            FailureKind::Unread => self.unread(failure.why),
            _ => self.failed(failure.why),
        }
    }

    fn add(&mut self, other: Self) {
        self.latencies.extend(&other.latencies);
        self.failures += other.failures;
        self.unread.add(other.unread);
        self.first_failure = self.first_failure.take().or(other.first_failure);
        self.stopped += other.stopped;
        self.is_full |= other.is_full;
        self.of_other_length += other.of_other_length;
        self.uncounted += other.uncounted;
        self.of_other_rows += other.of_other_rows;
        self.other_rows = self.other_rows.or(other.other_rows);
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.span = match (self.span, other.span) {
            (Some((began, ended)), Some(other)) => Some((began.min(other.0), ended.max(other.1))),
            (one, other) => one.or(other),
        };
    }

    fn measurement(self, condition: Condition, seconds: f64, planned: Duration) -> Measurement {
        let is_timed = seconds > 0.0 && !self.latencies.is_empty();
        let per_second = |sum: u64| is_timed.then(|| sum as f64 / seconds);
        Measurement {
            condition,
            runs: self.latencies.len() as u64,
            failures: self.failures,
            unread: self.unread,
            first_failure: self.first_failure,
            stopped: self.stopped,
            full: self.is_full,
            of_other_length: self.of_other_length,
            uncounted: self.uncounted,
            of_other_rows: self.of_other_rows,
            other_rows: self.other_rows,
            seconds,
            planned_seconds: planned.as_secs_f64(),
            rows_per_second: per_second(self.rows),
            bytes_per_second: per_second(self.bytes),
            milliseconds: (!self.latencies.is_empty()).then(|| self.latencies.percentiles()),
            disk_bytes_per_answer: None,
        }
    }
}

/// Rows of answers of other lengths than were looked at, by target and length: a store that grows gives them.
#[derive(Default)]
struct Others {
    known: BTreeMap<(usize, u64), Result<u64, String>>,
    asked: usize,
}

impl Others {
    /// Rows of an answer of this length, where they are known. One that was not met is asked for once more, in no time that is kept.
    ///
    /// # Errors
    ///
    /// One sentence where those of this length cannot be read.
    async fn rows(
        &mut self,
        client: &mut Client,
        target: &str,
        met: (usize, u64),
        until: Instant,
    ) -> Result<Option<u64>, String> {
        if !self.known.contains_key(&met) && self.asked < LENGTHS_MAX {
            self.asked += 1;
            let mut body = Vec::new();
            if let Ok(bytes) = in_time(client.keep(target, &mut body), until).await {
                self.known.insert((met.0, bytes), rows(&body));
            }
        }
        self.known.get(&met).cloned().transpose()
    }
}

/// Asks with so many clients for `seconds`, after every target was asked once. Clients keep their connections.
///
/// # Errors
///
/// One sentence where the service cannot be reached.
pub async fn warm(
    question: &Arc<Question>,
    answers: &Answers,
    way: &Way,
    clients: usize,
    seconds: Duration,
    deadline: Instant,
) -> Result<Measurement, String> {
    warm_up_to(RUNS_MAX, question, answers, way, clients, (seconds, deadline)).await
}

/// The same until there are so many answers: all clients end then, so that there are never fewer of them than the measurement says.
async fn warm_up_to(
    runs_max: usize,
    question: &Arc<Question>,
    answers: &Answers,
    way: &Way,
    clients: usize,
    (seconds, deadline): (Duration, Instant),
) -> Result<Measurement, String> {
    let expected = answers.rows.iter().copied().zip(answers.lengths.iter().copied());
    let expected: Arc<[(u64, u64)]> = expected.collect();
    // What the questions before have pushed out of memory comes back in.
    let mut first = way.client().await.map_err(|error| error.to_string())?;
    let until = (clock::now() + seconds).min(deadline);
    for target in &question.targets {
        let _ = in_time(first.get(target), deadline).await;
        if clock::now() > until {
            break;
        }
    }
    let start = Arc::new(Barrier::new(clients + 1));
    let mut tasks = JoinSet::new();
    let mut opened = Vec::with_capacity(clients);
    for _ in 0..clients {
        match way.client().await {
            Ok(client) => opened.push(client),
            Err(error) => {
                // They are closed by others, and those that come next may need their room.
                drop(opened);
                tokio::time::sleep(CLOSED_WITHIN).await;
                return Err(error.to_string());
            }
        }
    }
    let runs = Arc::new(AtomicUsize::new(0));
    for (number, mut client) in opened.into_iter().enumerate() {
        let (question, expected, start, runs, way) = (
            Arc::clone(question),
            Arc::clone(&expected),
            Arc::clone(&start),
            Arc::clone(&runs),
            way.clone(),
        );
        tasks.spawn(async move {
            let mut sums = Sums::default();
            start.wait().await;
            let started = clock::now();
            // However late it is, it lasts as long as tells something.
            let until = (started + seconds).min(deadline);
            let until = until.max(started + seconds.min(SECONDS_MIN));
            // Each begins at a place of its own.
            let first = number * question.targets.len() / clients;
            let (mut others, mut ended) = (Others::default(), started);
            let targets = question.targets.iter().zip(expected.iter().copied()).enumerate();
            for (place, (target, (rows, length))) in targets.cycle().skip(first) {
                let began = clock::now();
                let got = in_time(client.get(target), end_of_answer(began, deadline)).await;
                let took = clock::now() - began;
                let (mut is_broken, before) = (false, sums.latencies.len());
                match got {
                    Ok(bytes) if bytes == length || length == 0 => sums.answered(bytes, took, rows),
                    Ok(bytes) => match others.rows(&mut client, target, (place, bytes), until).await {
                        Ok(found) => sums.answered_otherwise(bytes, took, found, rows),
                        Err(why) => sums.unread(why),
                    },
                    Err(_) if is_cut(took, deadline) => break,
                    Err(failure) => {
                        is_broken = failure.kind == FailureKind::Broken;
                        sums.met(failure);
                    }
                }
                let answered = sums.latencies.len() - before;
                let of_all = runs.fetch_add(answered, Ordering::Relaxed) + answered;
                ended = clock::now();
                if ended >= until {
                    break;
                }
                if of_all >= runs_max {
                    sums.is_full = true;
                    break;
                }
                if sums.in_a_row >= FAILURES_MAX {
                    sums.stopped = 1;
                    break;
                }
                if is_broken && let Ok(again) = way.client().await {
                    client = again;
                }
            }
            sums.span = Some((started, ended));
            sums
        });
    }
    start.wait().await;
    let mut all = Sums::default();
    while let Some(sums) = tasks.join_next().await {
        all.add(sums.map_err(|error| format!("a client died: {error}"))?);
    }
    let condition = Condition {
        way: way.name(),
        cold: false,
        clients,
    };
    let span = all.span.map_or(Duration::ZERO, |(began, ended)| ended - began);
    Ok(all.measurement(condition, span.as_secs_f64(), seconds))
}

/// Until when an answer is waited for, if its client waits so long.
fn end_of_answer(began: Instant, deadline: Instant) -> Instant {
    deadline.max(began + ANSWER_TIME_MIN)
}

/// Whether an answer that did not come had no time to.
fn is_cut(took: Duration, deadline: Instant) -> bool {
    clock::now() >= deadline && took < LATE_FROM
}

/// Waits for an answer until then.
async fn in_time(answer: impl Future<Output = Result<u64, Failure>>, until: Instant) -> Result<u64, Failure> {
    let began = clock::now();
    let answered = tokio::time::timeout_at(until.into(), answer).await;
    answered.unwrap_or_else(|_| {
        Err(Failure::broken(format!(
            "no whole answer within {:.1} s",
            (clock::now() - began).as_secs_f64()
        )))
    })
}

/// Asks one client's questions of a service that is made cold before each: for `seconds`, at least once where
/// `deadline` allows. What making it cold takes is in no figure. Rows are those of the answers that were timed: beside a
/// live writer each round may be of another head. A round whose store cannot be opened anew is one that failed.
///
/// # Errors
///
/// One sentence where the service cannot be reached.
pub async fn cold(
    question: &Question,
    answers: &Answers,
    way: &Way,
    bed: &Arc<dyn Bed>,
    seconds: Duration,
    deadline: Instant,
) -> Result<Measurement, String> {
    let mut sums = Sums::default();
    let (mut spent, mut read) = (Duration::ZERO, Some(0));
    let mut body = Vec::new();
    let until = clock::now() + seconds;
    let looked_at = answers.rows.iter().zip(&answers.lengths);
    let targets = question.targets.iter().zip(looked_at);
    for (run, (target, (&looked_at, &length))) in targets.cycle().take(COLD_RUNS.1).enumerate() {
        let now = clock::now();
        if now >= deadline || (COLD_RUNS.0 <= run && now >= until) {
            break;
        }
        if sums.in_a_row >= COLD_FAILURES_MAX {
            sums.stopped = 1;
            break;
        }
        let mut client = way.client().await.map_err(|error| error.to_string())?;
        let bed = Arc::clone(bed);
        let chilled = tokio::task::spawn_blocking(move || bed.chill())
            .await
            .map_err(|error| format!("a worker died: {error}"))?;
        if let Err(why) = chilled {
            sums.failed(format!("the store could not be made cold: {why}"));
            continue;
        }
        let before = disk_bytes();
        let began = clock::now();
        let got = in_time(client.keep(target, &mut body), end_of_answer(began, deadline)).await;
        let took = clock::now() - began;
        if got.is_err() && is_cut(took, deadline) {
            break;
        }
        let from_disk = disk_bytes().zip(before);
        match got.and_then(|bytes| Ok((bytes, rows(&body).map_err(Failure::unread)?))) {
            Ok((bytes, rows)) => {
                // One that was not answered when it was looked at has no rows to be held against.
                if length > 0 {
                    sums.counted(rows, looked_at);
                }
                sums.answered(bytes, took, rows);
                spent += took;
                read = read
                    .zip(from_disk)
                    .map(|(read, (now, before))| read + now.saturating_sub(before));
            }
            Err(failure) => sums.met(failure),
        }
    }
    let condition = Condition {
        way: way.name(),
        cold: true,
        clients: 1,
    };
    let mut measurement = sums.measurement(condition, spent.as_secs_f64(), seconds);
    measurement.disk_bytes_per_answer = read.and_then(|read: u64| read.checked_div(measurement.runs));
    Ok(measurement)
}

#[cfg(test)]
#[path = "measure_tests.rs"]
mod tests;
