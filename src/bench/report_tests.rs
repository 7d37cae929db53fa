//! The report over statistics and figures that are made up.

use std::time::Duration;

use super::against::{Comparison, Tally, Verdict};
use super::figures::Latencies;
use super::filter::LogFilter;
use super::measure::Answers;
use super::measurement::{Condition, Measurement, Unread};
use super::report::{Asked, Machine, Note, Report, Settings};
use super::set::questions;
use super::statistics::Head;
use super::tests::{facts, only, statistics};
use crate::model::{Address, B256};

fn measured(cold: bool, milliseconds: &[u64]) -> Measurement {
    let mut latencies = Latencies::default();
    for &ms in milliseconds {
        latencies.push(Duration::from_millis(ms));
    }
    Measurement {
        condition: Condition {
            way: "over HTTP",
            cold,
            clients: 1,
        },
        runs: milliseconds.len() as u64,
        failures: 0,
        unread: Unread::default(),
        first_failure: None,
        stopped: 0,
        full: false,
        of_other_length: 0,
        uncounted: 0,
        of_other_rows: 0,
        other_rows: None,
        seconds: 0.25,
        planned_seconds: 0.25,
        milliseconds: Some(latencies.percentiles()),
        rows_per_second: Some(1_234_567.0),
        bytes_per_second: Some(9e8),
        disk_bytes_per_answer: cold.then_some(4_096),
    }
}

fn report() -> Report {
    let (asked, left_out) = questions(&statistics(), &only("address-hot"));
    let comparison = |verdict| Comparison {
        with: "node",
        asked: "blocks 1 to 2, the first 10000 rows".to_owned(),
        verdict,
        rows: 7,
        rounds: 3,
        ours_ms: Some(2.0),
        ours_in_process_ms: Some(1.0),
        theirs_ms: Some(50.0),
        ratio: Some(25.0),
        ratio_in_process: Some(50.0),
        untimed: None,
        limited: None,
        failed: None,
        timed: [6, 5, 4],
    };
    let questions = asked.into_iter().enumerate().map(|(place, question)| Asked {
        question,
        answers: Answers {
            rows: vec![10, 20],
            bytes: 300,
            lengths: vec![100, 200],
            unread: Unread::default(),
        },
        measurements: vec![measured(false, &[1, 2, 3]), measured(true, &[40, 50])],
        is_withheld: false,
        comparisons: vec![comparison(match place {
            0 => Verdict::Equal,
            1 => Verdict::Differ {
                rows: 1,
                told: vec!["block 1, log 0: other data".to_owned()],
            },
            _ => Verdict::Unanswered("the node: <too wide> & more".to_owned()),
        })],
        notes: Vec::new(),
    });
    Report {
        version: "0",
        command: "quarry bench --only \"<b>\"".to_owned(),
        schema: crate::bench::report::SCHEMA,
        began: 1_700_000_000,
        seconds: 12.0,
        ended_early: Some("stopped by a signal".to_owned()),
        machine: Machine::default(),
        store: facts(),
        head_at_end: None,
        settings: Settings::default(),
        questions: questions.collect(),
        left_out,
        others: vec!["a node".to_owned()],
        compared: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn the_page_stands_alone() {
    let page = report().html();
    for foreign in [
        "http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link", "<img",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("prefers-color-scheme: dark"));
    assert_eq!(
        page.matches("<svg").count(),
        2,
        "a plot of latencies and one of ratios"
    );
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
    // A bar for each measurement with a tail, and one for each ratio.
    assert_eq!(page.matches("class=\"tail\"").count(), 6);
    assert_eq!(page.matches("class=\"half\"").count(), 6 + 3);
    assert!(page.contains("&lt;too wide&gt; &amp; more") && !page.contains("<too wide>"));
    assert!(page.contains("--only &quot;&lt;b&gt;&quot;"));
}

#[test]
fn a_report_of_nothing_is_a_page_too() {
    let report = Report {
        questions: Vec::new(),
        ended_early: None,
        ..report()
    };
    let page = report.html();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
    assert_eq!(page.matches("<svg").count(), 0);
}

#[test]
fn json_has_every_figure() {
    let text = report().json().unwrap();
    let found: serde_json::Value = serde_json::from_str(&text).unwrap();
    let first = &found["questions"][0];
    assert_eq!(first["name"], "address-hot");
    assert_eq!(first["group"], "logs");
    assert_eq!(first["answers"]["rows"], serde_json::json!([10, 20]));
    let cold = &first["measurements"][1];
    assert_eq!(cold["cold"], true);
    assert_eq!(cold["milliseconds"]["p50"], 40.0);
    assert_eq!(cold["disk_bytes_per_answer"], 4_096);
    assert_eq!(first["comparisons"][0]["verdict"], "equal");
    assert_eq!(
        found["questions"][1]["comparisons"][0]["verdict"]["differ"]["rows"],
        1
    );
    assert_eq!(found["store"]["chain"], "mainnet");
    assert_eq!(found["store"]["logs"], 1_000_000);
}

#[test]
fn the_table_tells_what_differs() {
    let report = report();
    assert_eq!(report.differing(), 1);
    let table = report.table();
    let lines: Vec<_> = table.lines().collect();
    assert!(lines[0].starts_with("question"));
    assert!(
        lines
            .iter()
            .any(|line| line.contains("address-hot-100") && line.contains("DIFFER"))
    );
    assert!(table.contains("address-hot-100: 1 row differs from node:\n  block 1, log 0: other data"));
    assert!(table.contains("address-hot-deep: not compared with node: the node: <too wide> & more"));
    assert!(table.ends_with("stopped by a signal"));
    // Figures stand below each other.
    let column = lines[0].find("p50").unwrap() + 3;
    let ends_there = |line: &&&str| line.as_bytes().get(column).is_none_or(|&byte| byte == b' ');
    assert_eq!(lines[..7].iter().filter(ends_there).count(), 7);
}

#[test]
fn what_failed_is_shown_as_failed() {
    let mut report = report();
    let failed = Measurement {
        runs: 0,
        failures: 20,
        first_failure: Some("status 503".to_owned()),
        stopped: 1,
        milliseconds: None,
        rows_per_second: None,
        bytes_per_second: None,
        ..measured(false, &[])
    };
    report.questions[0].measurements = vec![failed];
    let table = report.table();
    let row = table
        .lines()
        .find(|line| line.contains("(20 failed)"))
        .unwrap_or_else(|| panic!("{table}"));
    assert!(row.ends_with("-") && !row.contains("us"), "{row}");
    assert!(table.contains("20 of 20 requests failed, the first with: status 503; 1 of 1 clients stopped"));
    assert!(report.html().contains("status 503"));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let found = &json["questions"][0]["measurements"][0];
    for figure in ["milliseconds", "rows_per_second", "bytes_per_second"] {
        assert_eq!(found.get(figure), Some(&serde_json::Value::Null), "{figure}");
    }
}

#[test]
fn a_store_that_grew_and_an_answer_that_was_not_cold_are_told() {
    let mut report = report();
    let is_told = |report: &Report, what: &str| report.remarks().iter().any(|line| line.contains(what));
    report.head_at_end = Some(Head {
        number: report.store.head,
        hash: report.store.head_hash,
    });
    assert!(!is_told(&report, "while it was measured") && !is_told(&report, "0 bytes came from the disk"));
    report.head_at_end = Some(Head {
        number: report.store.head + 3,
        hash: B256::repeat_byte(9),
    });
    report.questions[0].measurements[1].disk_bytes_per_answer = Some(0);
    assert!(is_told(
        &report,
        "the store grew while it was measured, from block 10099 to block 10102"
    ));
    assert!(is_told(
        &report,
        "address-hot: over HTTP, cold: 0 bytes came from the disk"
    ));
    assert!(report.table().contains("head: block 10099 "));
    assert!(report.html().contains("block 10102 "));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["head_at_end"]["number"], 10_102);
}

#[test]
fn a_system_that_does_not_count_what_comes_from_the_disk_is_told_once() {
    let mut report = report();
    let told = |report: &Report| {
        let mut remarks = report.remarks();
        remarks.retain(|line| line.contains("from the disk"));
        remarks
    };
    assert!(told(&report).is_empty());
    for asked in &mut report.questions[..2] {
        asked.measurements[1].disk_bytes_per_answer = None;
    }
    let expected = "the system does not tell what came from the disk for 2 of 3 cold measurements: whether they were cold is not known";
    assert_eq!(told(&report), [expected]);
    // Where nothing was answered nothing is said to be cold.
    for asked in &mut report.questions[..2] {
        asked.measurements[1].runs = 0;
    }
    assert!(told(&report).is_empty());
}

#[test]
fn a_measurement_that_was_full_before_its_time_is_not_said_to_have_lasted_as_planned() {
    let mut report = report();
    assert!(!report.html().contains("as many answers as one keeps"));
    let found = &mut report.questions[0].measurements[0];
    (found.full, found.runs, found.planned_seconds) = (true, 1_000_000, 60.0);
    let told = "address-hot: over HTTP, warm: it ended after 250 ms of 60.0 s: a measurement keeps no more than its 1000000 answers";
    assert!(
        report.remarks().iter().any(|line| line == told),
        "{:?}",
        report.remarks()
    );
    let page = report.html();
    assert!(page.contains("as planned in the beginning, but for 1 that ended"));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let found = &json["questions"][0]["measurements"];
    assert_eq!(
        (&found[0]["full"], &found[1]["full"]),
        (&true.into(), &false.into())
    );
}

#[test]
fn what_a_machine_does_not_tell_leaves_no_gap() {
    let mut machine = Machine {
        cores: 4,
        processor: "Some Processor".to_owned(),
        memory_bytes: 8 << 30,
        system: "linux 6.1".to_owned(),
        ..Machine::default()
    };
    let told = |machine: &Machine| {
        let machine = machine.clone();
        Report { machine, ..report() }.html()
    };
    let whole = "4 cores, Some Processor, 8.59 GB of memory, linux 6.1<";
    assert!(told(&machine).contains(whole), "{}", machine.in_words());
    machine.processor.clear();
    assert!(told(&machine).contains("4 cores, 8.59 GB of memory, linux 6.1<"));
    (machine.memory_bytes, machine.system) = (0, "linux ".to_owned());
    assert!(told(&machine).contains("<td class=\"word\">4 cores, linux<"));
}

#[test]
fn a_comparison_that_was_not_timed_is_told_with_its_question() {
    let mut report = report();
    let found = &mut report.questions[0].comparisons[0];
    (found.rounds, found.ours_ms, found.theirs_ms, found.ratio) = (0, None, None, None);
    found.untimed = Some("the service: status 503".to_owned());
    assert!(
        report
            .remarks()
            .contains(&"address-hot: not timed against node: the service: status 503".to_owned())
    );
    let tallies = Tally::of(report.questions.iter().flat_map(|asked| &asked.comparisons));
    assert_eq!((tallies[0].equal, tallies[0].differ), (1, 1));
}

#[test]
fn what_the_service_gives_more_or_less_than_the_store_counts_differs() {
    let mut report = report();
    let filter = LogFilter::of(Address::ZERO, 100);
    assert!(Comparison::with_store(&filter, 50, 50).is_none());
    let found = Comparison::with_store(&filter, 49, 50);
    report.questions[2].comparisons.extend(found);
    assert_eq!(report.differing(), 2);
    let told = "1 row differs from store:\n  49 rows, the store counts 50";
    assert!(report.table().contains(told), "{}", report.table());
}

#[test]
fn answers_that_cannot_be_read_are_a_failure_of_the_service() {
    let mut report = report();
    report.questions[1].answers.unread.push("not a JSON object");
    report.questions[2].measurements[0].unread.push("no list");
    let told = report.unanswered().unwrap();
    let name = report.questions[1].question.published.name;
    assert_eq!(
        told,
        format!("2 answers of the service cannot be read, the first of them to `{name}`: not a JSON object")
    );
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["questions"][1]["answers"]["unread"], 1);
    assert_eq!(json["questions"][2]["measurements"][0]["unread"], 1);
}

#[test]
fn times_that_were_pressed_are_those_that_measurements_lasted() {
    let mut report = report();
    let pressed = |report: &Report| report.pressed(Duration::from_secs(1));
    assert_eq!(report.pressed(Duration::from_millis(250)), None);
    for asked in &mut report.questions {
        asked.measurements[0].seconds = 0.03;
    }
    report.questions[0].measurements[0].seconds = 0.02;
    // One that was full ended before its time; cold ones are of their answers alone.
    let last = &mut report.questions[2].measurements[0];
    (last.full, last.seconds) = (true, 0.001);
    assert_eq!(pressed(&report), Some((0.02, 0.03)));
}

#[test]
fn a_run_in_which_every_question_failed_has_measured_nothing() {
    let mut report = report();
    assert_eq!(report.unanswered(), None);
    for asked in &mut report.questions {
        asked.measurements.clear();
        asked.notes = vec![Note::NotAnswered("status 429".to_owned())];
    }
    let told = report.unanswered().unwrap();
    assert_eq!(told, "no question was answered: status 429");
    report.questions.clear();
    assert_eq!(report.unanswered(), report.ended_early);
    report.ended_early = None;
    assert_eq!(report.unanswered(), None);
}

#[test]
fn a_service_that_failed_where_it_was_compared_is_no_success() {
    let mut report = report();
    assert_eq!(report.unanswered(), None);
    report.questions[1].comparisons[0].failed = Some("the service: status 500".to_owned());
    let told = "1 comparison failed, the first of them `address-hot-100` with node: the service: status 500";
    assert_eq!(report.unanswered().as_deref(), Some(told));
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let failed = |place: usize| &json["questions"][place]["comparisons"][0]["failed"];
    assert_eq!(
        (failed(0), failed(1)),
        (&serde_json::Value::Null, &"the service: status 500".into())
    );
}

#[test]
fn every_condition_has_a_colour_of_its_own() {
    let mut report = report();
    let page = |report: &Report| report.html();
    assert!(!page(&report).contains(".c7 {"));
    let more = (2..10).map(|clients| Measurement {
        condition: Condition {
            way: "over HTTP",
            cold: false,
            clients,
        },
        ..measured(false, &[1])
    });
    report.questions[0].measurements.extend(more);
    let page = page(&report);
    // Ten conditions.
    for place in 1..=10 {
        assert!(page.contains(&format!("<g class=\"c{place}\">")), "{place}");
        assert!(page.contains(&format!(".c{place} {{ --bar: ")), "{place}");
    }
    assert!(!page.contains("class=\"c11\""));
}
