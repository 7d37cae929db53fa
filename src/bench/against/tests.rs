//! Verdicts, times and what was broken off, of comparisons that are made up.

use super::*;

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
