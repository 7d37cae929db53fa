//! Sums of answers, and how measurements end.

use std::future::pending;

use super::*;
use crate::bench::set::questions;
use crate::bench::tests::{only, statistics};
use crate::http::{Handled, Handler, Request, StatusCode, json_response};

#[test]
fn failures_have_no_part_in_times_and_rates() {
    let mut sums = Sums::default();
    sums.answered(1_000, Duration::from_millis(10), 7);
    sums.failed("status 503".to_owned());
    sums.failed("status 500".to_owned());
    sums.answered(3_000, Duration::from_millis(30), 7);
    let condition = Condition {
        way: "in process",
        cold: false,
        clients: 1,
    };
    let found = sums.measurement(condition, 2.0, Duration::from_secs(2));
    assert_eq!((found.runs, found.failures), (2, 2));
    let times = found.milliseconds.unwrap();
    assert_eq!((times.p50, times.max), (10.0, 30.0));
    assert_eq!(
        (found.rows_per_second, found.bytes_per_second),
        (Some(7.0), Some(2_000.0))
    );
    let told = found.failed().unwrap();
    assert_eq!(told, "2 of 4 requests failed, the first with: status 503");
}

#[test]
fn where_every_request_failed_there_is_no_figure() {
    let mut one = Sums::default();
    one.failed("status 503".to_owned());
    one.stopped = 1;
    let mut all = Sums::default();
    all.add(one);
    let condition = Condition {
        way: "over HTTP",
        cold: false,
        clients: 4,
    };
    let found = all.measurement(condition, 2.0, Duration::from_secs(2));
    assert_eq!(found.milliseconds, None);
    assert_eq!((found.rows_per_second, found.bytes_per_second), (None, None));
    assert!(found.failed().unwrap().contains("1 of 4 clients stopped"));
}

/// Answers everything with one row, after others had their turn.
struct OneRow;

impl Handler for OneRow {
    fn handle(&self, _: Request) -> Handled {
        Handled::later(async {
            tokio::task::yield_now().await;
            json_response(StatusCode::OK, br#"{"logs":[1]}"#.to_vec())
        })
    }
}

/// Answers everything with one row, but fails slowly where it is asked so often, from 0, and never answers from so many times on.
struct Unsteady {
    asked: AtomicUsize,
    fails: usize,
    hangs: usize,
}

/// How long a failure takes of one that is unsteady: much longer than all of its answers.
const FAILING: Duration = Duration::from_millis(500);

impl Unsteady {
    fn way(fails: usize, hangs: usize) -> Way {
        Way::InProcess(Arc::new(Self {
            asked: AtomicUsize::new(0),
            fails,
            hangs,
        }))
    }
}

impl Handler for Unsteady {
    fn handle(&self, _: Request) -> Handled {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let (is_failing, is_hanging) = (asked == self.fails, asked >= self.hangs);
        Handled::later(async move {
            if is_failing {
                tokio::time::sleep(FAILING).await;
                return json_response(StatusCode::SERVICE_UNAVAILABLE, br#"{"error":"no"}"#.to_vec());
            }
            if is_hanging {
                pending::<()>().await;
            }
            json_response(StatusCode::OK, br#"{"logs":[1]}"#.to_vec())
        })
    }
}

/// A service that is always cold.
struct Cold;

impl Bed for Cold {
    fn chill(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A question of one path, and what its answers are like.
async fn one_path() -> (Arc<Question>, Answers) {
    let question = Arc::new(questions(&statistics(), &only("daily-gas-price")).0.remove(0));
    let way = Way::InProcess(Arc::new(OneRow));
    let (answers, failed) = look(&question, &way).await.unwrap();
    assert_eq!((answers.rows.as_slice(), failed), (&[1][..], None));
    (question, answers)
}

#[tokio::test]
async fn rates_of_cold_answers_are_of_the_time_of_those_alone() {
    let (question, answers) = one_path().await;
    let bed: Arc<dyn Bed> = Arc::new(Cold);
    let (way, minute) = (Unsteady::way(3, usize::MAX), 60 * LATE_FROM);
    let found = cold(&question, &answers, &way, &bed, minute, clock::now() + minute);
    let found = found.await.unwrap();
    assert_eq!((found.runs, found.failures), (COLD_RUNS.1 as u64 - 1, 1));
    assert!(found.seconds < FAILING.as_secs_f64(), "{}", found.seconds);
    let rows = found.rows_per_second.unwrap() * found.seconds;
    assert!((rows - found.runs as f64).abs() < 1e-6, "{rows}");
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_in_no_figure() {
    let (question, answers) = one_path().await;
    // One before it is timed, three that are, and the one that never comes.
    let way = Unsteady::way(usize::MAX, 4);
    let found = warm(
        &question,
        &answers,
        &way,
        1,
        60 * LATE_FROM,
        clock::now() + FAILING,
    );
    let found = found.await.unwrap();
    assert_eq!((found.runs, found.failures), (3, 0));
    assert!(found.seconds < FAILING.as_secs_f64() / 2.0, "{}", found.seconds);
    // What failed was waited for, and clients asked nothing else in that time.
    let way = Unsteady::way(2, 4);
    let found = warm(
        &question,
        &answers,
        &way,
        1,
        60 * LATE_FROM,
        clock::now() + 2 * FAILING,
    );
    let found = found.await.unwrap();
    assert_eq!((found.runs, found.failures), (2, 1));
    let (least, most) = (FAILING.as_secs_f64(), 1.5 * FAILING.as_secs_f64());
    assert!((least..most).contains(&found.seconds), "{}", found.seconds);
}

#[tokio::test]
async fn a_measurement_that_is_full_ends_for_all_its_clients() {
    let (question, answers) = one_path().await;
    let way = Way::InProcess(Arc::new(OneRow));
    let measured = async |runs_max, seconds| {
        let times = (Duration::from_millis(seconds), clock::now() + 60 * LATE_FROM);
        warm_up_to(runs_max, &question, &answers, &way, 4, times)
            .await
            .unwrap()
    };
    let found = measured(100, 60_000).await;
    // Those who were waiting for an answer then had it.
    assert!((100..104).contains(&found.runs), "{}", found.runs);
    assert!(found.full && found.seconds < 30.0, "{}", found.seconds);
    let told = found.ended().unwrap();
    assert!(
        told.contains(" of 60.0 s: a measurement keeps no more than its 10"),
        "{told}"
    );
    let found = measured(usize::MAX, 5).await;
    assert!(found.runs >= 4 && !found.full && found.ended().is_none());
}

#[tokio::test]
async fn a_measurement_that_begins_late_lasts_as_long_as_tells_something() {
    let (question, answers) = one_path().await;
    let way = Way::InProcess(Arc::new(OneRow));
    let now = clock::now();
    let found = warm(&question, &answers, &way, 2, FAILING, now).await.unwrap();
    let least = SECONDS_MIN.as_secs_f64();
    assert!(found.seconds >= least && found.runs > 2, "{found:?}");
    // Where less is asked for it lasts no longer.
    let short = Duration::from_micros(1);
    let found = warm(&question, &answers, &way, 1, short, now).await.unwrap();
    assert_eq!(found.runs, 1);
}

/// Answers with one row, and from so many answers on with something else.
struct Spoiled {
    asked: AtomicUsize,
    after: usize,
    then: &'static str,
}

impl Handler for Spoiled {
    fn handle(&self, _: Request) -> Handled {
        let is_good = self.asked.fetch_add(1, Ordering::Relaxed) < self.after;
        let body = if is_good { r#"{"logs":[1]}"# } else { self.then };
        Handled::later(async move { json_response(StatusCode::OK, body.as_bytes().to_vec()) })
    }
}

#[tokio::test]
async fn answers_that_cannot_be_read_have_failed() {
    let (question, answers) = one_path().await;
    // No object by its ends, whatever its length; and one that is broken within, which is asked for once more.
    for then in [
        "not json at all",
        "twelve bytes",
        r#"{"logs":[1,}"#,
        r#"{"logs":[1,2,}"#,
    ] {
        let spoiled = |after| {
            let asked = AtomicUsize::new(0);
            Way::InProcess(Arc::new(Spoiled { asked, after, then }))
        };
        let minute = 60 * LATE_FROM;
        let is_seen = then.len() != r#"{"logs":[1]}"#.len() || !then.starts_with('{');
        if is_seen {
            // One before it is timed.
            let until = clock::now() + minute;
            let found = warm(&question, &answers, &spoiled(6), 1, minute, until)
                .await
                .unwrap();
            assert_eq!(
                (found.runs, found.failures, found.stopped),
                (5, FAILURES_MAX, 1),
                "{then}"
            );
            assert_eq!((found.unread.unread, found.of_other_length), (FAILURES_MAX, 0));
            let why = found.unread.first.unwrap();
            assert!(why.starts_with("not a JSON object: "), "{why}");
        }
        let bed: Arc<dyn Bed> = Arc::new(Cold);
        let until = clock::now() + minute;
        let found = cold(&question, &answers, &spoiled(2), &bed, minute, until)
            .await
            .unwrap();
        assert_eq!(
            (found.runs, found.unread.unread),
            (2, COLD_FAILURES_MAX),
            "{then}"
        );
        assert!(look(&question, &spoiled(0)).await.is_err());
    }
    let asked = Question {
        targets: vec![question.targets[0].clone(); 3],
        ..Question::clone(&question)
    };
    let spoiled = Spoiled {
        asked: AtomicUsize::new(0),
        after: 1,
        then: "no",
    };
    let (answers, told) = look(&asked, &Way::InProcess(Arc::new(spoiled))).await.unwrap();
    assert_eq!(answers.unread.unread, 2);
    assert!(told.unwrap().starts_with("2 of 3 paths were not answered"));
}
