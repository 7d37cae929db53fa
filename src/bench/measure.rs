//! Asking a question again and again, and keeping the time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::answer::{Way, rows};
use super::figures::{Latencies, Percentiles};
use super::question::Question;
use crate::clock;
use crate::http::StatusCode;

/// Answers of one measurement at most: what their times take in memory is bounded too.
const RUNS_MAX: usize = 1_000_000;
/// Answers of a cold measurement, where time allows: at least and at most.
const COLD_RUNS: (usize, usize) = (1, 25);
/// Cold answers that may fail in a row.
const COLD_FAILURES_MAX: u64 = 3;
/// A client gives up after so many failures in a row.
const FAILURES_MAX: u64 = 10;

/// Makes the service cold. Blocks.
pub trait Bed: Send + Sync {
    /// Opens the store anew and drops what the system has cached of its files.
    ///
    /// # Errors
    ///
    /// One sentence.
    fn chill(&self) -> Result<(), String>;
}

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

/// What came of asking.
#[derive(Clone, Debug, Serialize)]
pub struct Measurement {
    /// How.
    #[serde(flatten)]
    pub condition: Condition,
    /// Answers.
    pub runs: u64,
    /// Requests without a 200 or a whole body; their times are not in the percentiles.
    pub failures: u64,
    /// Milliseconds.
    pub milliseconds: Percentiles,
    /// Rows of all clients together.
    pub rows_per_second: f64,
    /// Bytes of bodies, of all clients together.
    pub bytes_per_second: f64,
    /// Bytes that came from the disk for an answer, where the system tells; of cold ones.
    pub disk_bytes_per_answer: Option<u64>,
}

/// What the answer to each target of a question is like.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answers {
    /// Rows by target.
    pub rows: Vec<u64>,
    /// Bytes of all targets.
    pub bytes: u64,
}

/// Asks every target once and counts its rows.
///
/// # Errors
///
/// One sentence where an answer is no 200.
pub async fn look(question: &Question, way: &Way) -> Result<Answers, String> {
    let mut client = way.client().await.map_err(|error| error.to_string())?;
    let mut answers = Answers::default();
    for target in &question.targets {
        let body = client.body(target).await?;
        answers.rows.push(rows(&body)?);
        answers.bytes += body.len() as u64;
    }
    Ok(answers)
}

/// Sums of one client.
#[derive(Default)]
struct Sums {
    latencies: Latencies,
    failures: u64,
    in_a_row: u64,
    rows: u64,
    bytes: u64,
}

impl Sums {
    fn take(&mut self, outcome: Result<(u64, Duration), ()>, rows: u64) {
        match outcome {
            Ok((bytes, took)) => {
                self.latencies.push(took);
                self.in_a_row = 0;
                self.rows += rows;
                self.bytes += bytes;
            }
            Err(()) => {
                self.failures += 1;
                self.in_a_row += 1;
            }
        }
    }

    fn add(&mut self, other: &Self) {
        self.latencies.extend(&other.latencies);
        self.failures += other.failures;
        self.rows += other.rows;
        self.bytes += other.bytes;
    }

    fn measurement(self, condition: Condition, seconds: f64) -> Measurement {
        let per_second = |sum: u64| if seconds > 0.0 { sum as f64 / seconds } else { 0.0 };
        Measurement {
            condition,
            runs: self.latencies.len() as u64,
            failures: self.failures,
            rows_per_second: per_second(self.rows),
            bytes_per_second: per_second(self.bytes),
            milliseconds: self.latencies.percentiles(),
            disk_bytes_per_answer: None,
        }
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
) -> Result<Measurement, String> {
    let rows: Arc<[u64]> = answers.rows.as_slice().into();
    // What the questions before have pushed out of memory comes back in.
    let mut first = way.client().await.map_err(|error| error.to_string())?;
    let until = clock::now() + seconds;
    for target in &question.targets {
        let _ = first.get(target).await;
        if clock::now() > until {
            break;
        }
    }
    let start = Arc::new(Barrier::new(clients + 1));
    let mut tasks = JoinSet::new();
    for number in 0..clients {
        let mut client = way.client().await.map_err(|error| error.to_string())?;
        let (question, rows, start, way) = (
            Arc::clone(question),
            Arc::clone(&rows),
            Arc::clone(&start),
            way.clone(),
        );
        let runs_max = RUNS_MAX / clients;
        tasks.spawn(async move {
            let mut sums = Sums::default();
            start.wait().await;
            let until = clock::now() + seconds;
            // Each begins at a place of its own.
            let first = number * question.targets.len() / clients;
            let targets = question.targets.iter().zip(rows.iter().copied());
            for (target, rows) in targets.cycle().skip(first) {
                let began = clock::now();
                let got = client.get(target).await;
                let took = clock::now() - began;
                let ok = got.as_ref().is_ok_and(|got| got.status == StatusCode::OK);
                let broken = got.is_err();
                let bytes = got.map_or(0, |got| got.bytes);
                sums.take(if ok { Ok((bytes, took)) } else { Err(()) }, rows);
                let enough = sums.latencies.len() >= runs_max || sums.in_a_row >= FAILURES_MAX;
                if clock::now() >= until || enough {
                    break;
                }
                if broken && let Ok(again) = way.client().await {
                    client = again;
                }
            }
            sums
        });
    }
    start.wait().await;
    let began = clock::now();
    let mut all = Sums::default();
    while let Some(sums) = tasks.join_next().await {
        all.add(&sums.map_err(|error| format!("a client died: {error}"))?);
    }
    let condition = Condition {
        way: way.name(),
        cold: false,
        clients,
    };
    Ok(all.measurement(condition, (clock::now() - began).as_secs_f64()))
}

/// Asks one client's questions of a service that is made cold before each: for `seconds`, at least once where
/// `deadline` allows. What making it cold takes is in no figure.
///
/// # Errors
///
/// One sentence where the store cannot be opened anew.
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
    let until = clock::now() + seconds;
    let targets = question.targets.iter().zip(answers.rows.iter().copied());
    for (run, (target, rows)) in targets.cycle().take(COLD_RUNS.1).enumerate() {
        let now = clock::now();
        if now >= deadline || (COLD_RUNS.0 <= run && now >= until) || sums.in_a_row >= COLD_FAILURES_MAX {
            break;
        }
        let mut client = way.client().await.map_err(|error| error.to_string())?;
        let bed = Arc::clone(bed);
        tokio::task::spawn_blocking(move || bed.chill())
            .await
            .map_err(|error| format!("a worker died: {error}"))??;
        let before = disk_bytes();
        let began = clock::now();
        let got = client.get(target).await;
        let took = clock::now() - began;
        spent += took;
        read = (|| Some(read? + disk_bytes()?.saturating_sub(before?)))();
        let got = got.ok().filter(|got| got.status == StatusCode::OK);
        sums.take(got.map(|got| (got.bytes, took)).ok_or(()), rows);
    }
    let condition = Condition {
        way: way.name(),
        cold: true,
        clients: 1,
    };
    let mut measurement = sums.measurement(condition, spent.as_secs_f64());
    let asked = measurement.runs + measurement.failures;
    measurement.disk_bytes_per_answer = read.and_then(|read: u64| read.checked_div(asked));
    Ok(measurement)
}

/// Bytes that this process had the disk read so far; `None` where the system does not tell.
fn disk_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_have_no_part_in_times_and_rates() {
        let mut sums = Sums::default();
        sums.take(Ok((1_000, Duration::from_millis(10))), 7);
        sums.take(Err(()), 7);
        sums.take(Ok((3_000, Duration::from_millis(30))), 7);
        let condition = Condition {
            way: "in process",
            cold: false,
            clients: 1,
        };
        let found = sums.measurement(condition, 2.0);
        assert_eq!((found.runs, found.failures), (2, 1));
        assert_eq!((found.milliseconds.p50, found.milliseconds.max), (10.0, 30.0));
        assert_eq!((found.rows_per_second, found.bytes_per_second), (7.0, 2_000.0));
    }

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
