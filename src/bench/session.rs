//! A run from the first question to the last, within its time. What was found so far is in the report at any moment, so
//! that a run may be ended anywhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::against::{
    Comparison, NODE, POSTGRES, POSTGRES_FLAT, Patience, Peer, Round, Tally, node, postgres,
};
use super::answer::{self, Way};
use super::figures::duration;
use super::filter::LogFilter;
use super::load::LoadedLogs;
use super::measure::{Answers, Bed, cold, look, warm};
use super::plan::{Kind, Plan, Steps};
use super::question::{LeftOut, Published, Question};
use super::report::{Asked, Note, Report};
use crate::clock;
use crate::node::Node;

/// How long one question may take beyond its turn before it is broken off; comparisons have more.
const OVERTIME: Duration = Duration::from_secs(30);
/// And how many times its share of what is left of the run, where that is no shorter than this.
const TURNS: u32 = 8;
const TURN_MIN: Duration = Duration::from_secs(2);
/// How often a step may take as long as it took to look at the answers first: to warm up, and for the last answer.
const LOOKS_A_STEP: u32 = 2;
/// Answers of another that a comparison waits for at most, beside its turn: one that finds out what to compare, the one
/// compared, the rows before it, those that show how it answers soonest and those timed at least.
const WAITED: u32 = 7;
/// So long before a question is broken off its clients wait no more, and tell what they have: this, or a part of the run's limit where
/// that is less. The plan shares what is left without it.
const TELLING: Duration = Duration::from_millis(500);
const TELLINGS_OF_LIMIT: u32 = 20;

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
    /// What the run has not come to; nothing before it begins.
    pub behind: Behind,
}

/// What a run has not come to, so far.
#[derive(Default)]
pub struct Behind {
    questions: VecDeque<Published>,
    /// Steps that there was no time for.
    steps: Vec<(Kind, u32)>,
}

impl Behind {
    fn add(&mut self, kind: Kind) {
        match self.steps.iter_mut().find(|(missed, _)| *missed == kind) {
            Some((_, steps)) => *steps += 1,
            None => self.steps.push((kind, 1)),
        }
    }

    /// Tells of it, where a run ended for this reason.
    fn tell(&mut self, report: &mut Report, why: &str) {
        let unasked = self.questions.drain(..).map(|published| LeftOut {
            published,
            reason: why.to_owned(),
        });
        report.left_out.extend(unasked);
        let missed = self.steps.drain(..).map(|(kind, steps)| {
            format!(
                "{} {} were left out: there was no time for them beside what comes first (--limit)",
                steps * kind.parts(),
                kind.words()
            )
        });
        report.notes.extend(missed);
    }
}

/// Sees how far a run is.
pub trait Observer: Sync {
    /// The next step of so many begins.
    fn begins(&self, step: &str, done: usize, of: usize);
}

impl Session {
    /// Measurements and comparisons of a question.
    fn steps(&self, question: &Question) -> Steps {
        let cold = self.bed.as_ref().map_or(0, |_| self.ways.len());
        let is_compared = |is_asked: bool| usize::from(is_asked && question.filter.is_some());
        let (node, database) = self.asks();
        Steps::default()
            .with(
                Kind::Warm,
                self.ways.iter().map(|way| self.clients_of(way).len()).sum(),
            )
            .with(Kind::Cold, cold)
            .with(Kind::Node, is_compared(node))
            .with(Kind::Postgres, is_compared(database))
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

    /// Asks all questions; the report has a question as soon as its first answer is there.
    pub async fn run(&mut self, questions: Vec<Question>, report: &mut Report, observer: &dyn Observer) {
        let began = clock::now();
        let deadline = began + self.limit;
        let steps: Steps = questions.iter().map(|question| self.steps(question)).sum();
        let mut course = Course {
            observer,
            of: steps.all(),
            plan: Plan::new(self.seconds, began, self.before(deadline), steps),
            began: None,
        };
        self.behind.questions = questions.iter().map(|question| question.published).collect();
        report.settings.seconds = course.plan.seconds(began).as_secs_f64();
        let all = questions.len();
        let mut of_logs = questions
            .iter()
            .filter(|question| question.filter.is_some())
            .count();
        for (place, question) in questions.into_iter().enumerate() {
            let now = clock::now();
            if now >= deadline {
                report.ended_early.get_or_insert_with(|| {
                    format!(
                        "the time limit was reached: {place} of {all} questions were asked (--limit, --only)"
                    )
                });
                break;
            }
            self.behind.questions.pop_front();
            of_logs -= usize::from(question.filter.is_some());
            let left = u32::try_from(all - place).unwrap_or(u32::MAX);
            let turn = TURN_MIN.max((deadline - now) * TURNS / left);
            let (seconds, steps) = (course.plan.seconds(now), self.steps(&question));
            let own = seconds * steps.all() + OVERTIME + self.waiting(&question);
            report.questions.push(Asked {
                question: question.clone(),
                answers: Answers::default(),
                measurements: Vec::new(),
                is_withheld: false,
                comparisons: Vec::new(),
                notes: Vec::new(),
            });
            let mut turn = Turn {
                course: &mut course,
                steps,
                seconds,
                deadline: (now + own.min(turn)).min(deadline),
            };
            if let Some(asked) = report.questions.last_mut() {
                let question = Arc::new(question);
                let looking = self.look_at(&question, asked, &turn);
                let went = match tokio::time::timeout_at(turn.deadline.into(), looking).await {
                    Ok(true) => {
                        let looked = clock::now() - now;
                        turn.course.plan.looked(looked);
                        // Who is slow once is so in each step.
                        let slow = looked * LOOKS_A_STEP * turn.steps.all();
                        turn.deadline = (turn.deadline + slow).min(deadline);
                        let until = turn.deadline.into();
                        let asking = self.ask(Arc::clone(&question), asked, &report.store, &mut turn);
                        tokio::time::timeout_at(until, asking).await
                    }
                    looked => looked.map(|_| None),
                };
                // Behind the end of the question, which would end the cancelling as well.
                let cut = match went {
                    Ok(cut) => cut,
                    Err(_) => turn.course.began.map(|(kind, ..)| kind),
                };
                if let (Some(kind), Some(filter)) = (cut, &question.filter) {
                    self.break_off(kind, filter, &mut asked.comparisons).await;
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
                    asked.notes.push(Note::Other(told));
                }
            }
            turn.ends();
            self.give_up(report, of_logs, &mut course.plan);
        }
    }

    /// Until when clients wait where they are broken off then.
    fn before(&self, end: Instant) -> Instant {
        let telling = TELLING.min(self.limit / TELLINGS_OF_LIMIT);
        end.checked_sub(telling).unwrap_or(end)
    }

    /// That measurements had less time than was asked for, where they had, and how long they lasted.
    fn pressed(&self, report: &Report) -> Option<String> {
        let (least, most) = report.pressed(self.seconds)?;
        let shown = |seconds: f64| duration(1e3 * seconds);
        let lasted = match (shown(least), shown(most)) {
            (least, most) if least == most => least,
            (least, most) => format!("{least} to {most}"),
        };
        Some(format!(
            "warm measurements that had less than {} lasted {lasted} each: all of them were to fit into {} (--limit)",
            shown(self.seconds.as_secs_f64()),
            shown(self.limit.as_secs_f64())
        ))
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
    fn give_up(&mut self, report: &mut Report, left: usize, plan: &mut Plan) {
        let peers = [
            (
                "the node",
                Kind::Node,
                self.node.as_mut().map(|peer| &mut peer.patience),
            ),
            (
                "PostgreSQL",
                Kind::Postgres,
                self.postgres.as_mut().map(|peer| &mut peer.patience),
            ),
        ];
        for (who, kind, patience) in peers {
            if patience.is_some_and(Patience::ends_question) {
                plan.left_mut().leave_all(kind);
                report.notes.push(format!(
                    "{who} is not asked any more: answers to three questions in a row did not come, or not in time, {left} questions \
                     about logs are left; ask a faster one, or fewer of these questions (--only)"
                ));
            }
        }
    }

    /// Notes what is known in the end only, however the run ended: the block that the service answers from by now, and how
    /// many comparisons came out how.
    pub async fn close(&mut self, report: &mut Report, is_stopped: bool) {
        report.notes.extend(self.pressed(report));
        self.behind.tell(
            report,
            match is_stopped {
                true => "the run was stopped by a signal before",
                false => "the time of the run was over (--limit, --only)",
            },
        );
        report.compared = Tally::of(report.questions.iter().flat_map(|asked| &asked.comparisons));
        if let Some(way) = self.ways.last() {
            let head = answer::head(way, report.store.chain);
            let time = if is_stopped { HEAD_TIME_STOPPED } else { HEAD_TIME };
            report.head_at_end = tokio::time::timeout(time, head).await.ok().flatten();
        }
    }

    /// Asks once; whether there are answers to be timed.
    async fn look_at(&self, question: &Question, asked: &mut Asked, turn: &Turn<'_, '_>) -> bool {
        let Some(first) = self.ways.first() else {
            return false;
        };
        turn.course.shows(question.published.name);
        match look(question, first).await {
            Ok((answers, failed)) => {
                asked.answers = answers;
                asked.notes.extend(failed.map(Note::Other));
            }
            Err(failure) => {
                asked.is_withheld = first.withholds(&failure);
                asked.notes.push(Note::NotAnswered(failure.why));
                return false;
            }
        }
        true
    }

    /// Measures and compares; who was cut short in the last step and is still to be told of.
    async fn ask(
        &mut self,
        question: Arc<Question>,
        asked: &mut Asked,
        facts: &super::statistics::StoreFacts,
        turn: &mut Turn<'_, '_>,
    ) -> Option<Kind> {
        let name = question.published.name;
        let first = self.ways.first()?;
        if let (Some(filter), Some(counted), Some(&rows)) =
            (&question.filter, question.counted, asked.answers.rows.first())
        {
            asked
                .comparisons
                .extend(Comparison::with_store(filter, rows, counted));
        }
        for way in &self.ways {
            for &clients in self.clients_of(way) {
                turn.begins(Kind::Warm, &format!("{name} {}", way.name()));
                let until = self.before(turn.deadline);
                match warm(&question, &asked.answers, way, clients, turn.seconds, until).await {
                    Ok(found) => asked.measured(found),
                    Err(why) => asked.unmeasured(way, false, why),
                }
            }
        }
        if let Some(bed) = &self.bed {
            for way in &self.ways {
                let Some(until) = turn.begins(Kind::Cold, &format!("{name} {} cold", way.name())) else {
                    self.behind.add(Kind::Cold);
                    continue;
                };
                match cold(&question, &asked.answers, way, bed, turn.seconds, until).await {
                    // Making it cold took all the time that there was.
                    Ok(found) if found.runs + found.failures == 0 => self.behind.add(Kind::Cold),
                    Ok(found) => asked.measured(found),
                    Err(why) => asked.unmeasured(way, true, why),
                }
            }
        }
        let (filter, way) = (question.filter.as_ref()?, self.ways.last()?);
        if self.asks() == (false, false) {
            return None;
        }
        let mut service = match way.client().await {
            Ok(client) => client,
            Err(why) => {
                let (node, postgres) = self.asks();
                let others = [(NODE, node), (POSTGRES, postgres), (POSTGRES_FLAT, postgres)];
                let others = others
                    .into_iter()
                    .filter_map(|(with, is_asked)| is_asked.then_some(with));
                let why = why.to_string();
                let found = Comparison::unserved(others, filter, &why);
                asked.comparisons.extend(found);
                return None;
            }
        };
        let mut in_process = match first {
            Way::InProcess(_) => first.client().await.ok(),
            Way::Http(_) => None,
        };
        let mut round = Round {
            service: &mut service,
            in_process: in_process.as_mut(),
            facts,
            is_no_hit: question.is_no_hit,
            seconds: turn.seconds,
            deadline: turn.deadline,
            found: &mut asked.comparisons,
        };
        if let Some(peer) = self.node.as_mut().filter(|peer| peer.is_asked()) {
            match turn.begins(Kind::Node, &format!("{name} against the node")) {
                None => self.behind.add(Kind::Node),
                Some(until) => {
                    round.deadline = until;
                    let ask = async |peer: &mut Peer<_>| node::with_node(peer, filter, &mut round).await;
                    if peer.asked_until(until, ask).await {
                        Comparison::break_off(&[NODE], filter, round.found);
                    }
                }
            }
        }
        if let Some(peer) = self.postgres.as_mut().filter(|peer| peer.is_asked()) {
            match turn.begins(Kind::Postgres, &format!("{name} against PostgreSQL")) {
                None => self.behind.add(Kind::Postgres),
                Some(until) => {
                    round.deadline = until;
                    let ask =
                        async |peer: &mut Peer<_>| postgres::with_postgres(peer, filter, &mut round).await;
                    let is_cut = peer.asked_until(until, ask).await;
                    return is_cut.then_some(Kind::Postgres);
                }
            }
        }
        None
    }

    /// Ends what another is being asked for.
    async fn break_off(&mut self, kind: Kind, filter: &LogFilter, found: &mut Vec<Comparison>) {
        match (kind, &mut self.node, &mut self.postgres) {
            (Kind::Node, Some(peer), _) => {
                peer.patience.is_cut();
                Comparison::break_off(&[NODE], filter, found);
            }
            (Kind::Postgres, _, Some(peer)) => {
                peer.patience.is_cut();
                Comparison::break_off(&[POSTGRES, POSTGRES_FLAT], filter, found);
                peer.who.0.cancel().await;
            }
            _ => {}
        }
    }
}

/// How far the run is.
struct Course<'a> {
    observer: &'a dyn Observer,
    of: u32,
    plan: Plan,
    /// The step that is being taken, since when, and how long its measurement lasts.
    began: Option<(Kind, Instant, Duration)>,
}

impl Course<'_> {
    fn shows(&self, step: &str) {
        let done = self.of.saturating_sub(self.plan.left().all());
        self.observer.begins(step, done as usize, self.of as usize);
    }

    /// Notes what the step took that is being taken.
    fn ends(&mut self) {
        if let Some((kind, since, measured)) = self.began.take() {
            let beside = (clock::now() - since).saturating_sub(measured * kind.parts());
            self.plan.took(kind, beside);
        }
    }
}

/// A question that is being asked.
struct Turn<'c, 'a> {
    course: &'c mut Course<'a>,
    /// Its steps that are left.
    steps: Steps,
    seconds: Duration,
    deadline: Instant,
}

impl Turn<'_, '_> {
    /// Begins a step, and gives its end; `None` where there is no time for it.
    fn begins(&mut self, kind: Kind, step: &str) -> Option<Instant> {
        self.course.ends();
        self.course.shows(step);
        let now = clock::now();
        let room = self.course.plan.room(kind, self.seconds, now);
        self.steps.take(kind);
        self.course.plan.left_mut().take(kind);
        let until = room?;
        self.course.began = Some((kind, now, self.seconds));
        Some(until.min(self.deadline))
    }

    /// Ends the question, whatever of it is left.
    fn ends(&mut self) {
        self.course.ends();
        self.course.plan.left_mut().leave(self.steps);
    }
}
