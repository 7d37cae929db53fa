//! Verdicts, times and what was broken off, of comparisons that are made up.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::http::{Handled, Handler, Request, StatusCode, json_response};
use crate::model::Address;

/// Answers so often that there are no logs, and then in another way.
struct Service {
    left: AtomicUsize,
    then: (StatusCode, &'static str),
}

impl Handler for Service {
    fn handle(&self, _: Request) -> Handled {
        let left = self.left.fetch_sub(1, Ordering::Relaxed);
        let (status, body) = match left {
            0 => {
                self.left.store(0, Ordering::Relaxed);
                self.then
            }
            _ => (StatusCode::OK, r#"{"logs":[]}"#),
        };
        Handled::later(async move { json_response(status, body.as_bytes().to_vec()) })
    }
}

/// Has no logs either, or refuses to tell.
struct Nobody {
    refuses: bool,
}

impl Other for Nobody {
    const WHO: &'static str = "the node";
    const SIZE: &'static str = BYTES;

    fn name(&self) -> &'static str {
        NODE
    }

    async fn logs(&mut self, _: &LogFilter) -> Result<Vec<Row>, Refusal> {
        match self.refuses {
            true => Err(Refusal::of("too many results".to_owned())),
            false => Ok(Vec::new()),
        }
    }

    async fn settle(&mut self, _: &LogFilter, _: &[Row]) -> Result<Settled, Refusal> {
        Ok(Settled {
            way: None,
            size: 0,
            found: Differences::default(),
        })
    }

    async fn answer(&mut self, _: &LogFilter) -> Result<u64, Refusal> {
        Ok(0)
    }
}

/// A comparison with a service that answers so often, and then otherwise.
async fn compared(left: usize, then: (StatusCode, &'static str), refuses: bool) -> Comparison {
    let left = AtomicUsize::new(left);
    let mut found = Vec::new();
    let mut round = Round {
        service: &mut Client::InProcess(Arc::new(Service { left, then })),
        in_process: None,
        facts: &StoreFacts::default(),
        is_no_hit: true,
        seconds: Duration::ZERO,
        deadline: clock::now() + Duration::from_secs(60),
        found: &mut found,
    };
    let filter = LogFilter::of(Address::ZERO, 100);
    let mut patience = Patience::new(Duration::from_secs(1));
    compare(&mut Nobody { refuses }, &mut patience, &filter, &mut round).await;
    found.remove(0)
}

#[tokio::test]
async fn an_answer_of_the_service_that_is_none_differs_and_its_failure_is_its_own() {
    let fails = (StatusCode::INTERNAL_SERVER_ERROR, r#"{"error":"no"}"#);
    let garbled = (StatusCode::OK, r#"{"logs":[{}]}"#);
    let found = compared(usize::MAX, fails, false).await;
    assert_eq!((found.verdict, found.failed), (Verdict::Equal, None));
    let found = compared(0, garbled, false).await;
    let Verdict::Differ { rows: 1, told } = &found.verdict else {
        panic!("{found:?}")
    };
    assert!(
        told[0].starts_with("the service's answer: not a list of logs"),
        "{told:?}"
    );
    // Before anything was compared, and while it is timed.
    let found = compared(0, fails, false).await;
    let why = found.failed.unwrap();
    assert!(why.starts_with("the service: status 500"), "{why}");
    assert_eq!(found.verdict, Verdict::Unanswered(why));
    let found = compared(1, fails, false).await;
    assert_eq!(found.verdict, Verdict::Equal);
    assert!(
        found.failed.is_some() && found.failed == found.untimed,
        "{:?}",
        found.untimed
    );
    // One that cannot be read is one as well, by its ends or by its length.
    for unread in ["not json at all", r#"{"logs":[{}]}"#] {
        let found = compared(1, (StatusCode::OK, unread), false).await;
        assert_eq!(found.verdict, Verdict::Equal);
        let why = found.failed.unwrap();
        assert!(why.starts_with("the service: not a "), "{why}");
    }
    let other = (StatusCode::OK, r#"{"logs":[], "more":1}"#);
    let found = compared(1, other, false).await;
    assert_eq!(
        (found.untimed.as_deref(), found.failed),
        (
            Some("the service: an answer that was timed had 21 bytes, the one that was compared 11"),
            None
        )
    );
    // What the other refuses is no failure of the service.
    let found = compared(usize::MAX, fails, true).await;
    assert_eq!(found.verdict, Verdict::Unanswered("too many results".to_owned()));
    assert_eq!(found.failed, None);
}

fn found(verdict: Verdict) -> Comparison {
    let mut found = Comparison::untimed(POSTGRES, String::new(), verdict, 1);
    found.times(&Times {
        turns: 2,
        ours: vec![2.0, 4.0],
        in_process: vec![1.0, 2.0],
        theirs: vec![30.0, 30.0],
    });
    found
}

#[test]
fn who_is_broken_off_is_told_and_nobody_else() {
    let filter = LogFilter::of(crate::model::Address::ZERO, 100);
    let of = |with| Comparison::untimed(with, String::new(), Verdict::Equal, 1);
    let mut found = vec![of(NODE), of(POSTGRES)];
    Comparison::break_off(&[NODE], &filter, &mut found);
    assert!(
        found.len() == 2 && found[0].untimed.is_some() && found[1].untimed.is_none(),
        "{found:?}"
    );
    Comparison::break_off(&[POSTGRES, POSTGRES_FLAT], &filter, &mut found);
    assert_eq!((found.len(), found[2].with), (3, POSTGRES_FLAT));
    assert!(matches!(found[2].verdict, Verdict::Unanswered(_)), "{found:?}");
    // The first of the two was being timed then.
    let told = found[1].untimed.as_deref().unwrap();
    assert!(told.starts_with("broken off"), "{told}");
}

#[test]
fn who_has_times_or_a_reason_is_not_broken_off_for_another() {
    let filter = LogFilter::of(crate::model::Address::ZERO, 100);
    let break_off = |first: Comparison| {
        let mut found = vec![first];
        Comparison::break_off(&[POSTGRES, POSTGRES_FLAT], &filter, &mut found);
        assert_eq!((found.len(), found[1].with), (2, POSTGRES_FLAT));
        assert!(matches!(found[1].verdict, Verdict::Unanswered(_)), "{found:?}");
        found.swap_remove(0)
    };
    assert_eq!(break_off(found(Verdict::Equal)).untimed, None);
    let mut differs = Comparison::untimed(POSTGRES, String::new(), Verdict::Equal, 1);
    differs.untimed = Some("where it is timed its answer differs".to_owned());
    assert!(
        break_off(differs)
            .untimed
            .is_some_and(|told| told.starts_with("where"))
    );
    let unanswered = Comparison::unanswered(POSTGRES, String::new(), "no answer".to_owned());
    assert_eq!(break_off(unanswered).untimed, None);
}

#[test]
fn who_was_broken_off_without_an_answer_is_told_of_once() {
    let filter = LogFilter::of(crate::model::Address::ZERO, 100);
    for others in [&[NODE] as &[_], &[POSTGRES, POSTGRES_FLAT]] {
        let mut found = Vec::new();
        for _ in 0..2 {
            Comparison::break_off(others, &filter, &mut found);
            let told: Vec<_> = found.iter().map(|found| found.with).collect();
            assert_eq!(told, others);
            assert!(
                found.iter().all(|found| found.untimed.is_none()),
                "not timed and not compared: {found:?}"
            );
        }
    }
}

#[test]
fn only_equal_answers_have_a_ratio() {
    let differ = Verdict::Differ {
        rows: 1,
        told: Vec::new(),
    };
    let equal = found(Verdict::Equal);
    assert_eq!((equal.ratio, equal.ratio_in_process), (Some(10.0), Some(20.0)));
    let mut of_node = Comparison::untimed(NODE, String::new(), Verdict::Equal, 1);
    of_node.times(&Times {
        turns: 1,
        ours: vec![2.0],
        in_process: vec![1.0],
        theirs: vec![30.0],
    });
    assert_eq!((of_node.ratio, of_node.ratio_in_process), (Some(15.0), None));
    assert_eq!(found(Verdict::Empty).ratio, None);
    assert_eq!(found(differ.clone()).ratio, None);
    let all = [found(differ), found(Verdict::Empty)];
    let tallies = Tally::of(all.iter());
    let [tally] = tallies.as_slice() else {
        panic!("{tallies:?}")
    };
    assert_eq!(
        tally.to_string(),
        "against postgres: 0 answers equal, 0 in part, 1 empty, 1 differ, 0 not compared; median ratio - over HTTP"
    );
    let json = serde_json::to_value(tally).unwrap();
    assert_eq!(json["median_ratio"], serde_json::Value::Null);
    assert_eq!(json["median_ratio_in_process"], serde_json::Value::Null);
}
