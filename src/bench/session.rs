//! A run from the first question to the last, within its time. What was found so far is in the report at any moment, so
//! that a run may be ended anywhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::against::{Patience, Round, Tally, node, postgres};
use super::answer::{self, Way};
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
/// How long one question may take beyond its turn before it is broken off; comparisons have more.
const OVERTIME: Duration = Duration::from_secs(30);
/// Answers of another that a comparison waits for at most, beside its turn: the one compared and the last one timed.
const WAITED: u32 = 2;

/// How long the service may take to tell its head in the end.
const HEAD_TIME: Duration = Duration::from_secs(5);

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
    /// How long both are waited for: the node, the database.
    pub patience: [Patience; 2],
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
        let databases = self
            .postgres
            .as_ref()
            .map_or(0, |_| postgres::COMPARISONS as usize);
        let others = usize::from(self.node.is_some()) + databases;
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
            let turn = seconds * u32::try_from(steps).unwrap_or(1) + OVERTIME + self.waiting(&question);
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
                deadline: (clock::now() + turn).min(deadline),
                done,
                of,
            };
            if let Some(asked) = report.questions.last_mut() {
                let until = tokio::time::Instant::from_std(turn.deadline);
                let work = self.ask(Arc::new(question), asked, &report.store, &mut turn);
                if tokio::time::timeout_at(until, work).await.is_err() {
                    asked
                        .notes
                        .push("broken off: its time was over, what was found until then stays".to_owned());
                }
            }
            self.give_up(report);
            done += steps;
        }
    }

    /// How long others may take to answer a question, at most.
    fn waiting(&self, question: &Question) -> Duration {
        let [node, database] = &self.patience;
        let asked = [
            self.node.as_ref().map(|_| node.answer()),
            self.postgres
                .as_ref()
                .map(|_| database.answer() * postgres::COMPARISONS),
        ];
        let waiting = asked.into_iter().flatten().map(|answer| answer * WAITED).sum();
        question.filter.as_ref().map_or(Duration::ZERO, |_| waiting)
    }

    /// Asks an other no more that has not answered in time twice in a row.
    fn give_up(&mut self, report: &mut Report) {
        let [node, postgres] = &self.patience;
        let mut tell = |who: &str| {
            report.notes.push(format!(
                "{who} is not asked any more: two answers in a row did not come in time; ask a faster one, or fewer of these \
                 questions (--only)"
            ));
        };
        if node.is_over() && self.node.take().is_some() {
            tell("the node");
        }
        if postgres.is_over() && self.postgres.take().is_some() {
            tell("PostgreSQL");
        }
    }

    /// Notes what is known in the end only, however the run ended: the block that the service answers from by now, and how
    /// many comparisons came out how.
    pub async fn close(&self, report: &mut Report) {
        report.compared = Tally::of(report.questions.iter().flat_map(|asked| &asked.comparisons));
        if let Some(way) = self.ways.last() {
            let head = answer::head(way, report.store.chain);
            report.head_at_end = tokio::time::timeout(HEAD_TIME, head).await.ok().flatten();
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
                match cold(&question, way, bed, turn.seconds, turn.deadline).await {
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
            Ok(client) => client,
            Err(why) => {
                asked.notes.push(format!("not compared: {why}"));
                return;
            }
        };
        let mut in_process = match first {
            Way::InProcess(_) => first.client().await.ok(),
            Way::Http(_) => None,
        };
        let [node_patience, postgres_patience] = &mut self.patience;
        let mut round = Round {
            service: &mut service,
            in_process: in_process.as_mut(),
            facts,
            is_no_hit: question.is_no_hit,
            seconds: turn.seconds,
            deadline: turn.deadline,
            patience: node_patience,
            found: &mut asked.comparisons,
        };
        if let Some(other) = &self.node {
            turn.begins(&format!("{name} against the node"));
            node::with_node(other, filter, &mut round).await;
        }
        round.patience = postgres_patience;
        if let Some((other, loaded)) = &mut self.postgres {
            turn.begins(&format!("{name} against PostgreSQL"));
            postgres::with_postgres(other, loaded, filter, &mut round).await;
            // One of its comparisons was counted when it began.
            turn.done += postgres::COMPARISONS as usize - 1;
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
