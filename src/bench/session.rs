//! A run from the first question to the last, within its time. What was found so far is in the report at any moment, so
//! that a run may be ended anywhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::against::{Comparison, Patience, Peer, Round, Tally, node, postgres};
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
/// How often a step may take as long as it took to look at the answers first: to warm up, and for the last answer.
const LOOKS_A_STEP: u32 = 2;
/// Answers of another that a comparison waits for at most, beside its turn: one that finds out what to compare, the one
/// compared, the rows before it, those that show how it answers soonest and those timed at least.
const WAITED: u32 = 7;
/// So long before a question is broken off its clients wait no more, and tell what they have.
const TELLING: Duration = Duration::from_millis(500);

/// How long the service may take to tell its head in the end; and where somebody waits for the end.
const HEAD_TIME: Duration = Duration::from_secs(5);
const HEAD_TIME_STOPPED: Duration = Duration::from_millis(500);

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
    pub node: Option<Peer<Node>>,
    /// The database to compare with, and what it holds.
    pub postgres: Option<Peer<(postgres::Postgres, LoadedLogs)>>,
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
        let (node, database) = self.asks();
        let others = usize::from(node) + usize::from(database) * postgres::COMPARISONS as usize;
        warm + cold + question.filter.as_ref().map_or(0, |_| others)
    }

    /// Whether the node and whether the database is still asked.
    fn asks(&self) -> (bool, bool) {
        (
            self.node.as_ref().is_some_and(Peer::is_asked),
            self.postgres.as_ref().is_some_and(Peer::is_asked),
        )
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
        let all = questions.len();
        let mut of_logs = questions
            .iter()
            .filter(|question| question.filter.is_some())
            .count();
        for (place, question) in questions.into_iter().enumerate() {
            if clock::now() >= deadline {
                report.ended_early = Some(format!(
                    "the time limit was reached: {place} of {all} questions were asked (--limit, --only)"
                ));
                break;
            }
            of_logs -= usize::from(question.filter.is_some());
            let steps = self.steps(&question);
            let turn = seconds * u32::try_from(steps).unwrap_or(1) + OVERTIME + self.waiting(&question);
            report.questions.push(Asked {
                question: question.clone(),
                answers: Answers::default(),
                measurements: Vec::new(),
                is_withheld: false,
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
                let question = Arc::new(question);
                let began = clock::now();
                let looking = self.look_at(&question, asked, &turn);
                let mut went = tokio::time::timeout_at(turn.deadline.into(), looking).await;
                if let Ok(true) = went {
                    // Who is slow once is so in each step.
                    let slow = (clock::now() - began) * LOOKS_A_STEP * u32::try_from(steps).unwrap_or(1);
                    turn.deadline = (turn.deadline + slow).min(deadline);
                    let until = turn.deadline.into();
                    let asking = self.ask(question, asked, &report.store, &mut turn);
                    went = tokio::time::timeout_at(until, asking).await.map(|()| true);
                }
                if went.is_err() {
                    let why = if turn.deadline >= deadline {
                        report.ended_early = Some(format!(
                            "the time limit was reached: {} of {all} questions were asked, the last one not to its end (--limit, \
                             --only)",
                            place + 1
                        ));
                        "the time of the run"
                    } else {
                        "its time"
                    };
                    let told = format!("broken off: {why} was over, what was found until then stays");
                    asked.notes.push(told);
                }
            }
            self.give_up(report, of_logs);
            done += steps;
        }
    }

    /// How long others may take to answer a question, at most.
    fn waiting(&self, question: &Question) -> Duration {
        let node = self.node.as_ref().map(|peer| peer.patience.answer());
        let database = self.postgres.as_ref().map(|peer| peer.patience.answer());
        let asked = [node, database.map(|answer| answer * postgres::COMPARISONS)];
        let waiting = asked.into_iter().flatten().map(|answer| answer * WAITED).sum();
        question.filter.as_ref().map_or(Duration::ZERO, |_| waiting)
    }

    /// Tells of another that is not asked any more, also for the questions about logs that are left.
    fn give_up(&mut self, report: &mut Report, left: usize) {
        let peers = [
            ("the node", self.node.as_mut().map(|peer| &mut peer.patience)),
            (
                "PostgreSQL",
                self.postgres.as_mut().map(|peer| &mut peer.patience),
            ),
        ];
        for (who, patience) in peers {
            if patience.is_some_and(Patience::ends_question) {
                report.notes.push(format!(
                    "{who} is not asked any more: answers to three questions in a row did not come in time, {left} questions about \
                     logs are left; ask a faster one, or fewer of these questions (--only)"
                ));
            }
        }
    }

    /// Notes what is known in the end only, however the run ended: the block that the service answers from by now, and how
    /// many comparisons came out how.
    pub async fn close(&self, report: &mut Report, is_stopped: bool) {
        report.compared = Tally::of(report.questions.iter().flat_map(|asked| &asked.comparisons));
        if let Some(way) = self.ways.last() {
            let head = answer::head(way, report.store.chain);
            let time = if is_stopped { HEAD_TIME_STOPPED } else { HEAD_TIME };
            report.head_at_end = tokio::time::timeout(time, head).await.ok().flatten();
        }
    }

    /// Asks once; whether there are answers to be timed.
    async fn look_at(&self, question: &Question, asked: &mut Asked, turn: &Turn<'_>) -> bool {
        let Some(first) = self.ways.first() else {
            return false;
        };
        turn.observer.begins(question.published.name, turn.done, turn.of);
        match look(question, first).await {
            Ok((answers, failed)) => {
                asked.answers = answers;
                asked.notes.extend(failed);
            }
            Err(why) => {
                asked.is_withheld = first.withholds(&why);
                asked.notes.push(format!("not answered: {why}"));
                return false;
            }
        }
        true
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
        if let (Some(filter), Some(counted), Some(&rows)) =
            (&question.filter, question.counted, asked.answers.rows.first())
        {
            asked
                .comparisons
                .extend(Comparison::with_store(filter, rows, counted));
        }
        for way in &self.ways {
            for &clients in self.clients_of(way) {
                turn.begins(&format!("{name} {}", way.name()));
                let until = turn.deadline.checked_sub(TELLING).unwrap_or(turn.deadline);
                match warm(&question, &asked.answers, way, clients, turn.seconds, until).await {
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
        if self.asks() == (false, false) {
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
        let (seconds, deadline) = (turn.seconds, turn.deadline);
        let mut round = Round {
            service: &mut service,
            in_process: in_process.as_mut(),
            facts,
            is_no_hit: question.is_no_hit,
            seconds,
            deadline,
            found: &mut asked.comparisons,
        };
        if let Some(peer) = self.node.as_mut().filter(|peer| peer.is_asked()) {
            turn.begins(&format!("{name} against the node"));
            node::with_node(peer, filter, &mut round).await;
        }
        if let Some(peer) = self.postgres.as_mut().filter(|peer| peer.is_asked()) {
            turn.begins(&format!("{name} against PostgreSQL"));
            postgres::with_postgres(peer, filter, &mut round).await;
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
