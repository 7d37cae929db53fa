//! The same logs asked of somebody else: are the answers the same, and how long did both take.

pub mod node;
pub mod postgres;

use std::time::{Duration, Instant};

use serde::Serialize;

use super::answer::{Client, logs};
use super::compare::{Differences, differences};
use super::figures::median;
use super::filter::LogFilter;
use super::statistics::StoreFacts;
use crate::clock;
use crate::model::PlacedLog;

/// Each side is asked at most so often for its time, in turn.
const ROUNDS_MAX: usize = 200;

/// A question that both were asked.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `node` or `postgres`.
    pub with: &'static str,
    /// What was asked, in words.
    pub asked: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Rows of the service's answer.
    pub rows: u64,
    /// How often each was asked for its time.
    pub rounds: u64,
    /// The median of the service over HTTP, one client, milliseconds.
    pub ours_ms: f64,
    /// The median of the other.
    pub theirs_ms: f64,
    /// Theirs by ours: how many times as long it took; `None` where there is no time of both.
    pub ratio: Option<f64>,
}

/// Whether the answers are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every row with every field.
    Equal,
    /// They differ: how many rows, and the first of them.
    Differ {
        /// Rows.
        rows: u64,
        /// In words.
        told: Vec<String>,
    },
    /// One of them did not answer: why.
    Unanswered(String),
}

impl Comparison {
    /// A question that was not answered.
    fn unanswered(with: &'static str, asked: String, why: String) -> Self {
        Self {
            with,
            asked,
            verdict: Verdict::Unanswered(why),
            rows: 0,
            rounds: 0,
            ours_ms: 0.0,
            theirs_ms: 0.0,
            ratio: None,
        }
    }
}

/// Whom the service is compared with.
trait Other {
    /// Its name in reports.
    const NAME: &'static str;

    /// The logs of a filter.
    async fn logs(&mut self, filter: &LogFilter) -> Result<Vec<PlacedLog>, String>;

    /// Has the same answered to the last byte, for its time.
    async fn answer(&mut self, filter: &LogFilter) -> Result<(), String>;
}

/// The service's part in a comparison, and the time for it.
pub struct Round<'a> {
    /// Asks the service.
    pub service: &'a mut Client,
    /// The store that it answers from.
    pub facts: &'a StoreFacts,
    /// For so long both are asked in turn.
    pub seconds: Duration,
    /// And no longer than until then.
    pub deadline: Instant,
}

/// Asks both, compares every row, then asks both in turn.
async fn compare<O: Other>(other: &mut O, filter: &LogFilter, round: &mut Round<'_>) -> Comparison {
    let Round { service, facts, .. } = round;
    let asked = in_words(filter);
    let target = filter.target(facts.chain);
    let both = async {
        let body = service
            .body(&target)
            .await
            .map_err(|why| format!("the service: {why}"))?;
        let ours = logs(&body).map_err(|why| format!("the service: {why}"))?;
        Ok::<_, String>((ours, other.logs(filter).await?))
    };
    let (ours, theirs) = match both.await {
        Ok(both) => both,
        Err(why) => return Comparison::unanswered(O::NAME, asked, why),
    };
    let verdict = match differences(&ours, &theirs) {
        Differences { count: 0, .. } => Verdict::Equal,
        Differences { count, told } => Verdict::Differ { rows: count, told },
    };
    let until = round.deadline.min(clock::now() + round.seconds);
    let (mut of_us, mut of_them) = (Vec::new(), Vec::new());
    while of_us.len() < ROUNDS_MAX && (of_us.is_empty() || clock::now() < until) {
        let began = clock::now();
        let got = service.get(&target).await;
        let between = clock::now();
        let theirs = other.answer(filter).await;
        let ended = clock::now();
        if got.is_err() || theirs.is_err() {
            break;
        }
        of_us.push((between - began).as_secs_f64() * 1e3);
        of_them.push((ended - between).as_secs_f64() * 1e3);
    }
    let rounds = of_us.len() as u64;
    let (ours_ms, theirs_ms) = (median(of_us), median(of_them));
    Comparison {
        with: O::NAME,
        asked,
        verdict,
        rows: ours.len() as u64,
        rounds,
        ours_ms,
        theirs_ms,
        ratio: (ours_ms > 0.0 && rounds > 0).then(|| theirs_ms / ours_ms),
    }
}

fn in_words(filter: &LogFilter) -> String {
    let blocks = match (filter.from, filter.to) {
        (Some(from), Some(to)) => format!("blocks {from} to {to}"),
        (None, Some(to)) => format!("blocks up to {to}"),
        _ => "all blocks".to_owned(),
    };
    let page = if filter.page == 1 {
        format!("the first {} rows", filter.offset)
    } else {
        format!("page {} of {} rows", filter.page, filter.offset)
    };
    format!("{blocks}, {page}")
}
