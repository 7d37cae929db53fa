//! The same logs asked of somebody else: are the answers the same, and how long did both take.

mod cells;
mod lacking;
pub mod node;
mod patience;
pub mod plain;
pub mod postgres;
mod tally;

use std::time::{Duration, Instant};

use serde::Serialize;

use self::lacking::Lacking;
use self::patience::Refusal;
pub use self::patience::{Patience, Peer};
pub use self::tally::Tally;
use super::answer::{Client, Failure, logs, shown as said};
use super::compare::{Differences, Row, differences};
use super::figures::{median, so_many};
use super::filter::LogFilter;
use super::statistics::StoreFacts;
use crate::clock;

/// Turns of each side at least, where the question has the time, and at most; and how long one lasts: an answer at least, and
/// further ones that begin within it. Each side finds the caches of the processor as it left them itself, but for its first answer;
/// a service is not asked in turn with another.
const TURNS_MIN: usize = 3;
const TURNS_MAX: usize = 200;
const TURN: Duration = Duration::from_millis(25);
/// Whom answers are compared with, as reports name them. What the store counts is told where the service gives another count.
pub(super) const STORE: &str = "store";
/// A node.
pub(super) const NODE: &str = "node";
/// An explorer's tables: logs, and what a log does not have by a join.
pub(super) const POSTGRES: &str = "postgres";
/// One table with all columns of an answer.
pub(super) const POSTGRES_FLAT: &str = "postgres-flat";
/// In the order in which they are told.
const OTHERS: [&str; 4] = [STORE, NODE, POSTGRES, POSTGRES_FLAT];

/// A question that both were asked.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `node`, `postgres` or `postgres-flat`; `store` where the service gives other rows than the store counts.
    pub with: &'static str,
    /// What was asked, in words.
    pub asked: String,
    /// What came of it.
    pub verdict: Verdict,
    /// Rows of the service's answer.
    pub rows: u64,
    /// How often each had its turn to be asked for its time.
    pub rounds: u64,
    /// Answers that were timed: of the service over HTTP, of it in process, of the other.
    pub timed: [u64; 3],
    /// The median of the service over HTTP, one client, milliseconds; `None` where it was not timed.
    pub ours_ms: Option<f64>,
    /// The median of the service in process, without a socket; `None` where it runs in another one.
    pub ours_in_process_ms: Option<f64>,
    /// The median of the other.
    pub theirs_ms: Option<f64>,
    /// Theirs by ours over HTTP, of answers that are equal: how many times as long it took.
    pub ratio: Option<f64>,
    /// Theirs by ours in process; `None` of a node, which is asked over HTTP. A database's answer came over its socket.
    pub ratio_in_process: Option<f64>,
    /// Why timing ended before its time, where it did.
    pub untimed: Option<String>,
    /// What the other was not asked for and why, where that is a part of the question.
    pub limited: Option<String>,
    /// What the service failed with, where it gave no answer to be compared or timed.
    pub failed: Option<String>,
}

/// Whether the answers are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every row with every field.
    Equal,
    /// The same of what was compared, which is not all: [`Comparison::limited`] says why.
    Partly,
    /// Both without a row, where the question is one that has rows: nothing was compared.
    Empty,
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
    /// A question that has a verdict and no times yet.
    const fn untimed(with: &'static str, asked: String, verdict: Verdict, rows: u64) -> Self {
        Self {
            with,
            asked,
            verdict,
            rows,
            rounds: 0,
            timed: [0; 3],
            ours_ms: None,
            ours_in_process_ms: None,
            theirs_ms: None,
            ratio: None,
            ratio_in_process: None,
            untimed: None,
            limited: None,
            failed: None,
        }
    }

    /// The rows of a page, where the service gives other than the store counts.
    #[must_use]
    pub fn with_store(filter: &LogFilter, rows: u64, counted: u64) -> Option<Self> {
        let differ = || Verdict::Differ {
            rows: rows.abs_diff(counted),
            told: vec![format!("{rows} rows, the store counts {counted}")],
        };
        (rows != counted).then(|| Self::untimed(STORE, in_words(filter), differ(), rows))
    }

    /// Whether it tells of another count than the store's.
    pub(super) fn is_with_store(&self) -> bool {
        self.with == STORE
    }

    /// Tells of some of the others, who were being asked, that they are asked no longer: who has no verdict yet gave none, and who was being
    /// timed has no more times.
    pub fn break_off(others: &[&'static str], filter: &LogFilter, found: &mut Vec<Self>) {
        let why = || "broken off: its part of the time of the run was over (--limit)".to_owned();
        let lacks_verdict = |with: &&&'static str| !found.iter().any(|comparison| comparison.with == **with);
        let without: Vec<_> = others.iter().filter(lacks_verdict).copied().collect();
        let of_others = |comparison: &&mut Self| others.contains(&comparison.with);
        if let Some(last) = found.iter_mut().rev().find(of_others)
            && last.has_verdict()
            && (without.is_empty() || last.waits_for_times())
        {
            last.untimed.get_or_insert_with(why);
        }
        let unanswered = without
            .into_iter()
            .map(|with| Self::unanswered(with, in_words(filter), why()));
        found.extend(unanswered);
    }

    /// Whether both have answered: who has not is not timed either.
    const fn has_verdict(&self) -> bool {
        !matches!(self.verdict, Verdict::Unanswered(_))
    }

    /// Whether there is neither a time yet nor a reason why not.
    const fn waits_for_times(&self) -> bool {
        self.rounds == 0 && self.untimed.is_none()
    }

    /// A question that was not answered.
    const fn unanswered(with: &'static str, asked: String, why: String) -> Self {
        Self::untimed(with, asked, Verdict::Unanswered(why), 0)
    }

    /// How many answers the medians are of: over HTTP, in process where there are any, of the other; `-` where there are none.
    #[must_use]
    pub fn timed_in_words(&self) -> String {
        match self.timed {
            [0, 0, 0] => "-".to_owned(),
            [ours, 0, theirs] => format!("{ours}/{theirs}"),
            [ours, in_process, theirs] => format!("{ours}/{in_process}/{theirs}"),
        }
    }

    /// Takes the times that there are so far.
    fn times(&mut self, times: &Times) {
        self.rounds = times.turns;
        self.timed = [&times.ours, &times.in_process, &times.theirs].map(|times| times.len() as u64);
        self.ours_ms = median(times.ours.clone());
        self.ours_in_process_ms = median(times.in_process.clone());
        self.theirs_ms = median(times.theirs.clone());
        let is_equal = matches!(self.verdict, Verdict::Equal | Verdict::Partly);
        let theirs = self.theirs_ms.filter(|_| is_equal);
        let by = |ours: Option<f64>| Some(theirs? / ours.filter(|ours| *ours > 0.0)?);
        self.ratio = by(self.ours_ms);
        // What a node takes beside its work is HTTP, too: held against answers without a socket it would look slower than it is.
        self.ratio_in_process = by(self.ours_in_process_ms).filter(|_| self.with != NODE);
    }
}

/// How long each took, milliseconds.
#[derive(Default)]
struct Times {
    turns: u64,
    ours: Vec<f64>,
    in_process: Vec<f64>,
    theirs: Vec<f64>,
}

/// Whom the service is compared with.
trait Other {
    /// Its name in reports.
    fn name(&self) -> &'static str;

    /// The logs of a filter.
    async fn logs(&mut self, filter: &LogFilter) -> Result<Vec<Row>, Refusal>;

    /// Who it is, in words.
    const WHO: &'static str;

    /// What the size of an answer is that is timed, and whose it is held against.
    const SIZE: &'static str;

    /// Finds, before it is timed, the way in which it answers a filter soonest, and holds what comes so against the service's rows.
    async fn settle(&mut self, filter: &LogFilter, ours: &[Row]) -> Result<Settled, Refusal>;

    /// Has the same answered to the last byte, for its time; answers the size of what came.
    async fn answer(&mut self, filter: &LogFilter) -> Result<u64, Refusal>;
}

/// How another is timed.
struct Settled {
    /// In words, where there is a choice.
    way: Option<&'static str>,
    /// The size of its answer, which was compared.
    size: u64,
    /// What differs in what came so.
    found: Differences,
}

/// The service's answer.
struct Ours {
    rows: Vec<Row>,
    /// Bytes of its body.
    bytes: u64,
}

/// The service's part in a comparison, the time for it, and where it goes.
pub struct Round<'a> {
    /// Asks the service, over HTTP.
    pub service: &'a mut Client,
    /// Asks it in process, where that can be done.
    pub in_process: Option<&'a mut Client>,
    /// The store that it answers from.
    pub facts: &'a StoreFacts,
    /// Whether no row is what is expected.
    pub is_no_hit: bool,
    /// For so long both are asked in turn.
    pub seconds: Duration,
    /// And no longer than until then.
    pub deadline: Instant,
    /// Takes the comparison as soon as there is a verdict, which stays whatever comes of the times.
    pub found: &'a mut Vec<Comparison>,
}

impl Round<'_> {
    /// The service's answer.
    async fn ours(&mut self, filter: &LogFilter) -> Result<Ours, Lacking> {
        let body = self.service.body(&filter.target(self.facts.chain)).await;
        let body = body.map_err(|failure| Lacking::unserved(&failure.why))?;
        let rows = logs(&body).map_err(|why| Lacking::Differs(format!("the service's answer: {why}")))?;
        Ok(Ours {
            rows,
            bytes: body.len() as u64,
        })
    }

    /// What is to be said of so many rows with these differences.
    fn verdict(&self, rows: usize, found: Differences) -> Verdict {
        match found {
            Differences { count: 0, .. } if rows == 0 && !self.is_no_hit => Verdict::Empty,
            Differences { count: 0, .. } => Verdict::Equal,
            found => Verdict::of(found),
        }
    }
}

/// Asks both, compares every row, then asks both in turn.
async fn compare<O: Other>(
    other: &mut O,
    patience: &mut Patience,
    filter: &LogFilter,
    round: &mut Round<'_>,
) {
    let both = async {
        let ours = round.ours(filter).await?;
        Ok::<_, Lacking>((ours, patience.wait(other.logs(filter)).await?))
    };
    let (both, mut asked) = (both.await, in_words(filter));
    if filter.page > 1 {
        asked += ", by OFFSET as explorers page";
    }
    match both {
        Ok((ours, theirs)) => {
            let verdict = round.verdict(ours.rows.len(), differences(&ours.rows, &theirs));
            let rows = ours.rows.len() as u64;
            let found = Comparison::untimed(other.name(), asked, verdict, rows);
            round.found.push(found);
            time(other, patience, filter, &ours, round).await;
        }
        Err(why) => round.found.push(Comparison::lacking(other.name(), asked, why)),
    }
}

/// Asks both in turn for their times, which the last comparison takes. Answers that are not as long as those that were compared have none.
async fn time<O: Other>(
    other: &mut O,
    patience: &mut Patience,
    filter: &LogFilter,
    ours: &Ours,
    round: &mut Round<'_>,
) {
    let Round {
        service,
        in_process,
        facts,
        found,
        ..
    } = round;
    let target = filter.target(facts.chain);
    let Some(comparison) = found.last_mut() else {
        return;
    };
    let settled = match patience.wait(other.settle(filter, &ours.rows)).await {
        Ok(settled) => settled,
        Err(why) => {
            comparison.untimed = Some(why);
            return;
        }
    };
    if settled.found.count > 0 {
        comparison.untimed = Some(format!(
            "where it is timed its answer differs in {} from the service's",
            so_many(settled.found.count, "row")
        ));
        comparison.differs(settled.found);
        return;
    }
    let way = settled.way.map(|way| format!("; {way}"));
    comparison.asked.extend(way);
    let until = round.deadline.min(clock::now() + round.seconds);
    let mut times = Times::default();
    for turn in 0..TURNS_MAX {
        let now = clock::now();
        if turn > 0 && (now >= round.deadline || turn >= TURNS_MIN && now >= until) {
            break;
        }
        let ask = async || service.get(&target).await.map_err(unserved);
        let mut asked = ask_for_a_turn(&mut times.ours, "the service", (ours.bytes, BYTES), ask).await;
        if matches!(asked, Err(Untimed::Other(_)))
            && let Err(why) = read(service, &target).await
        {
            asked = Err(Untimed::Ended(Lacking::unserved(&why)));
        }
        if let (Ok(()), Some(in_process)) = (&asked, in_process.as_mut()) {
            let ask = async || in_process.get(&target).await.map_err(unserved);
            let who = "the service in process";
            asked = ask_for_a_turn(&mut times.in_process, who, (ours.bytes, BYTES), ask).await;
        }
        if asked.is_ok() {
            let ended = |why: String| Untimed::Ended(why.into());
            let ask = async || patience.wait(other.answer(filter)).await.map_err(ended);
            asked = ask_for_a_turn(&mut times.theirs, O::WHO, (settled.size, O::SIZE), ask).await;
        }
        match asked {
            Ok(()) => {}
            Err(Untimed::Ended(why)) => {
                comparison.ends_with(why);
                break;
            }
            // Nor are those before it to be trusted.
            Err(Untimed::Other(why)) => {
                comparison.times(&Times::default());
                comparison.untimed = Some(why);
                break;
            }
        }
        times.turns += 1;
        comparison.times(&times);
    }
}

/// Why an answer was not timed.
enum Untimed {
    /// It did not come.
    Ended(Lacking),
    /// It is another one than was compared: in words.
    Other(String),
}

/// The size of an answer that is held against the one that was compared, in bytes.
const BYTES: &str = "bytes, the one that was compared";

fn unserved(failure: Failure) -> Untimed {
    Untimed::Ended(Lacking::unserved(&failure.why))
}

/// Whether the service gives a list of logs, where it gives another answer than was compared.
async fn read(service: &mut Client, target: &str) -> Result<Vec<Row>, String> {
    logs(&service.body(target).await.map_err(|failure| failure.why)?)
}

/// Asks again and again for a turn and notes how long each answer of the size expected took, milliseconds.
async fn ask_for_a_turn(
    times: &mut Vec<f64>,
    who: &str,
    (expected, of): (u64, &'static str),
    mut ask: impl AsyncFnMut() -> Result<u64, Untimed>,
) -> Result<(), Untimed> {
    let turn = clock::now() + TURN;
    loop {
        let began = clock::now();
        let size = ask().await?;
        let now = clock::now();
        if size != expected {
            return Err(Untimed::Other(format!(
                "{who}: an answer that was timed had {size} {of} {expected}"
            )));
        }
        times.push((now - began).as_secs_f64() * 1e3);
        if now >= turn {
            return Ok(());
        }
    }
}

fn blocks((from, to): (u64, u64)) -> String {
    format!("blocks {from} to {to}")
}

fn in_words(filter: &LogFilter) -> String {
    let of = match (filter.from, filter.to) {
        (Some(from), Some(to)) => blocks((from, to)),
        (None, Some(to)) => format!("blocks up to {to}"),
        _ => "all blocks".to_owned(),
    };
    let page = if filter.page == 1 {
        format!("the first {} rows", filter.offset)
    } else {
        format!("page {} of {} rows", filter.page, filter.offset)
    };
    format!("{of}, {page}")
}

#[cfg(test)]
mod tests;
