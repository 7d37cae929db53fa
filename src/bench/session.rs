//! A run from the first question to the last, within its time. What was found so far is in the report at any moment, so
//! that a run may be ended anywhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::against::{Comparison, Round, Verdict, node, postgres};
use super::answer::Way;
use super::load::LoadedLogs;
use super::measure::{Answers, Bed, cold, look, warm};
use super::question::Question;
use super::report::{Asked, Report};
use crate::clock;
use crate::node::Node;

/// A measurement that is shorter than this tells nothing; the limit does not press it further.
const SECONDS_MIN: Duration = Duration::from_millis(5);
/// The part of the limit that measurements may plan with; the rest is for looking, warming up and making cold.
const PLANNED: f64 = 0.7;
/// How long one question may take beyond its turn before it is broken off.
const OVERTIME: Duration = Duration::from_secs(30);

/// What is measured and compared.
pub struct Session {
    /// The ways to the service, each with warm measurements; the last one is used for comparisons.
    pub ways: Vec<Way>,
    /// Clients at a time; in process there is always one.
    pub clients: Vec<usize>,
    /// Makes the service cold; `None` where it cannot be made so.
    pub bed: Option<Arc<dyn Bed>>,
    /// Time of one measurement.
    pub seconds: Duration,
    /// Time of all.
    pub limit: Duration,
    /// The node to compare with.
    pub node: Option<Node>,
    /// The database to compare with, and what it holds.
    pub postgres: Option<(postgres::Postgres, LoadedLogs)>,
}

/// Sees how far a run is.
pub trait Observer: Sync {
    /// The next step of so many begins.
    fn begins(&self, step: &str, done: usize, of: usize);
}

impl Session {
    /// Measurements and comparisons of a question.
    fn steps(&self, question: &Question) -> usize {
        let warm: usize = self.ways.iter().map(|way| self.clients_of(way).len()).sum();
        let cold = self.bed.as_ref().map_or(0, |_| self.ways.len());
        let others = usize::from(self.node.is_some()) + usize::from(self.postgres.is_some());
        warm + cold + question.filter.as_ref().map_or(0, |_| others)
    }

    /// One client where there is no socket to wait for: more of them measure the pool of threads, which HTTP shows too.
    fn clients_of(&self, way: &Way) -> &[usize] {
        match way {
            Way::InProcess(_) => &[1],
            Way::Http(_) => &self.clients,
        }
    }

    /// The time of one measurement, so that all fit into the limit.
    #[must_use]
    pub fn seconds_each(&self, questions: &[Question]) -> Duration {
        let steps: usize = questions.iter().map(|question| self.steps(question)).sum();
        let share = self.limit.mul_f64(PLANNED) / u32::try_from(steps.max(1)).unwrap_or(u32::MAX);
        self.seconds.min(share).max(SECONDS_MIN)
    }

    /// Asks all questions; the report has a question as soon as its first answer is there.
    pub async fn run(&mut self, questions: Vec<Question>, report: &mut Report, observer: &dyn Observer) {
        let deadline = clock::now() + self.limit;
        let seconds = self.seconds_each(&questions);
        report.settings.seconds = seconds.as_secs_f64();
        let of = questions.iter().map(|question| self.steps(question)).sum();
        let mut done = 0;
        let left = questions.len();
        for (place, question) in questions.into_iter().enumerate() {
            if clock::now() >= deadline {
                report.ended_early = Some(format!(
                    "the time limit was reached: {} of {left} questions were asked (--limit, --only)",
                    place
                ));
                break;
            }
            let steps = self.steps(&question);
            let turn = (clock::now() + seconds * u32::try_from(steps).unwrap_or(1) + OVERTIME).min(deadline);
            report.questions.push(Asked {
                question: question.clone(),
                answers: Answers::default(),
                measurements: Vec::new(),
                comparisons: Vec::new(),
                notes: Vec::new(),
            });
            let mut turn = Turn {
                observer,
                seconds,
                deadline: turn,
                done,
                of,
            };
            if let Some(asked) = report.questions.last_mut() {
                let until = tokio::time::Instant::from_std(turn.deadline);
                let work = self.ask(Arc::new(question), asked, &report.store, &mut turn);
                if tokio::time::timeout_at(until, work).await.is_err() {
                    asked.notes.push("broken off: its time was over".to_owned());
                }
            }
            done += steps;
        }
    }

    async fn ask(
        &mut self,
        question: Arc<Question>,
        asked: &mut Asked,
        facts: &super::statistics::StoreFacts,
        turn: &mut Turn<'_>,
    ) {
        let name = question.published.name;
        let Some(first) = self.ways.first() else { return };
        turn.observer.begins(name, turn.done, turn.of);
        match look(&question, first).await {
            Ok(answers) => asked.answers = answers,
            Err(why) => {
                asked.notes.push(format!("not answered: {why}"));
                return;
            }
        }
        for way in &self.ways {
            for &clients in self.clients_of(way) {
                turn.begins(&format!("{name} {}", way.name()));
                match warm(&question, &asked.answers, way, clients, turn.seconds).await {
                    Ok(found) => asked.measurements.push(found),
                    Err(why) => asked.notes.push(format!("{}: {why}", way.name())),
                }
            }
        }
        if let Some(bed) = &self.bed {
            for way in &self.ways {
                turn.begins(&format!("{name} {} cold", way.name()));
                match cold(&question, &asked.answers, way, bed, turn.seconds, turn.deadline).await {
                    Ok(found) => asked.measurements.push(found),
                    Err(why) => asked.notes.push(format!("{}, cold: {why}", way.name())),
                }
            }
        }
        let (Some(filter), Some(way)) = (&question.filter, self.ways.last()) else {
            return;
        };
        if self.node.is_none() && self.postgres.is_none() {
            return;
        }
        let mut service = match way.client().await {
            Ok(service) => service,
            Err(why) => {
                asked.notes.push(format!("not compared: {why}"));
                return;
            }
        };
        let mut round = Round {
            service: &mut service,
            facts,
            seconds: turn.seconds,
            deadline: turn.deadline,
        };
        if let Some(other) = &self.node {
            turn.begins(&format!("{name} against the node"));
            let found = node::with_node(other, filter, &mut round).await;
            asked.comparisons.push(found);
        }
        if let Some((other, loaded)) = &mut self.postgres {
            turn.begins(&format!("{name} against PostgreSQL"));
            let found = postgres::with_postgres(other, loaded, filter, &mut round).await;
            asked.comparisons.push(found);
        }
    }
}

/// How far the run is within a question.
struct Turn<'a> {
    observer: &'a dyn Observer,
    seconds: Duration,
    deadline: Instant,
    done: usize,
    of: usize,
}

impl Turn<'_> {
    fn begins(&mut self, step: &str) {
        self.observer.begins(step, self.done, self.of);
        self.done += 1;
    }
}

/// How many comparisons with whom came out how: a line for each, with the median of the ratios.
#[must_use]
pub fn summary(report: &Report) -> Vec<String> {
    let all: Vec<&Comparison> = report
        .questions
        .iter()
        .flat_map(|asked| &asked.comparisons)
        .collect();
    let with = |name: &str| {
        let of: Vec<_> = all.iter().filter(|found| found.with == name).collect();
        let count = |word: &str| of.iter().filter(|found| found.verdict.word() == word).count();
        let equal: Vec<f64> = of
            .iter()
            .filter(|found| found.verdict == Verdict::Equal)
            .filter_map(|found| found.ratio)
            .collect();
        (!of.is_empty()).then(|| {
            format!(
                "against {name}: {} answers equal, {} differ, {} not compared; median ratio {:.2}",
                count("equal"),
                count("DIFFER"),
                count("none"),
                super::figures::median(equal)
            )
        })
    };
    ["node", "postgres"].into_iter().filter_map(with).collect()
}
