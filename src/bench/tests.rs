//! The set and the report over statistics and figures that are made up.

use std::time::Duration;

use super::against::{Comparison, Tally, Verdict};
use super::figures::Latencies;
use super::filter::LogFilter;
use super::measure::{Answers, Condition, Measurement};
use super::pick::as_far;
use super::question::Group;
use super::report::{Asked, Machine, Report, Settings};
use super::set::{published, questions};
use super::statistics::{Counted, Head, Statistics, StoreFacts};
use crate::model::{Address, B256, ChainName, Day};

fn facts() -> StoreFacts {
    StoreFacts {
        chain_id: 1,
        first_block: 100,
        head: 10_099,
        logs: 1_000_000,
        transactions: 400_000,
        traces: true,
        days: Some((Day::from_number(19_000), Day::from_number(19_200))),
        ..StoreFacts::default()
    }
}

fn counted<T>(what: T, count: u64) -> Counted<T> {
    Counted { what, count }
}

fn word(byte: u8) -> B256 {
    Address::repeat_byte(byte).into_word()
}

fn statistics() -> Statistics {
    let account = Address::repeat_byte;
    Statistics {
        store: facts(),
        emitters: vec![
            counted(account(1), 130_000),
            counted(account(2), 11_000),
            counted(account(3), 60),
            counted(account(4), 2),
        ],
        signatures: vec![counted(word(0x51), 500_000), counted(word(0x52), 38_000)],
        middle: None,
        wallets: vec![counted((1, word(0x61)), 90_000), counted((2, word(0x62)), 280)],
        of_hot: vec![
            counted((word(0x51), (1, word(0x63))), 310),
            counted((word(0x51), (2, word(0x63))), 340),
        ],
        meeting: vec![counted((word(0x51), word(0x61)), 90_000)],
        apart: vec![counted((word(0x52), word(0x61)), 38_000)],
        paired: 2,
        silent: vec![counted((account(1), word(0x52)), 38_000)],
        by_transactions: (0..250)
            .map(|place| counted(account(place as u8), 1_000 - 2 * place))
            .collect(),
        by_internal: vec![counted(account(9), 12)],
        by_erc20: vec![counted(account(8), 900)],
        by_mined: vec![counted(account(7), 300)],
        tokens: vec![counted(account(1), 77)],
        transactions: (0..500).map(|place| B256::with_last_byte(place as u8)).collect(),
        blocks: (100..300).collect(),
    }
}

#[test]
fn every_question_of_the_set_is_picked_on_a_chain_that_has_everything() {
    let (asked, left_out) = questions(&statistics(), "");
    assert_eq!(left_out.len(), 0, "{left_out:?}");
    assert_eq!(asked.len(), published().count());
    let named = |name: &str| asked.iter().find(|asked| asked.published.name == name).unwrap();
    let address = |byte: u8| format!("address={:#x}", Address::repeat_byte(byte));
    assert!(named("address-hot").targets[0].contains(&address(1)));
    assert!(named("address-medium").targets[0].contains(&address(2)));
    assert!(named("address-rare").targets[0].contains(&address(3)));
    // Nine tenths of 130,000 are 1,170 pages of 100.
    assert!(named("address-hot-deep").targets[0].ends_with("page=1171&offset=100"));
    assert!(named("topic-hot-page-100").targets[0].ends_with("page=100&offset=5000"));
    let short = LogFilter::of(Address::ZERO, 100);
    assert_eq!(as_far(&short, 130_000), (100, 1171));
    let long = LogFilter {
        offset: 10_000,
        ..short
    };
    assert_eq!(as_far(&long, 2_500_000), (10_000, 100));
    assert_eq!(as_far(&long, 500_000), (5_000, 100));
    assert_eq!(as_far(&long, 70), (1, 70));
    let range = |middle| {
        let statistics = Statistics {
            middle,
            ..statistics()
        };
        questions(&statistics, "topic-range")
            .0
            .remove(0)
            .targets
            .remove(0)
    };
    assert!(range(None).contains("fromblock=4999&toblock=5198"));
    assert!(range(Some(7_000)).contains("fromblock=6900&toblock=7099"));
    assert!(range(Some(3)).contains("fromblock=100&toblock=299"));
    assert!(range(Some(10_090)).contains("fromblock=9900&toblock=10099"));
    // All others end at the head, which may move on while they are asked.
    assert!(named("address-hot").targets[0].contains("&toblock=10099&"));
    let no_hits: Vec<_> = asked
        .iter()
        .filter(|asked| asked.is_no_hit)
        .map(|asked| asked.published.name)
        .collect();
    assert_eq!(no_hits, ["topics-apart", "address-apart"]);
    let silent = &named("address-apart").targets[0];
    assert!(silent.contains(&address(1)) && silent.contains(&format!("topic0={}", word(0x52))));
    assert!(named("wallet-sparse").targets[0].contains(&format!("topic2={}", word(0x62))));
    assert!(named("address-and-either").targets[0].contains("topic1_2_opr=or"));
    assert!(named("topics-apart").targets[0].contains(&format!(
        "topic0={}&topic1={}",
        word(0x52),
        word(0x61)
    )));
    assert_eq!(named("balance").targets.len(), 84);
    assert_eq!(named("balances-20").targets.len(), 5);
    // The first day may be a part of one, the last is not over: 90 days end at day 19,199.
    assert!(named("daily-transactions").targets[0].ends_with("startDate=2022-04-28&endDate=2022-07-26"));
    for asked in &asked {
        assert_eq!(
            asked.filter.is_some(),
            asked.published.group == Group::Logs,
            "{}",
            asked.published.name
        );
        assert!(!asked.targets.is_empty());
    }
}

#[test]
fn the_other_chain_is_named_in_every_path() {
    let mut statistics = statistics();
    statistics.store.chain = ChainName::Testnet;
    let (asked, _) = questions(&statistics, "");
    for target in asked.iter().flat_map(|asked| &asked.targets) {
        assert!(target.contains("chain=testnet"), "{target}");
        assert_eq!(target.matches('?').count(), 1, "{target}");
    }
}

#[test]
fn a_chain_without_anything_leaves_every_question_out_with_a_reason() {
    let (asked, left_out) = questions(&Statistics::default(), "");
    assert_eq!(asked.len(), 0);
    assert_eq!(left_out.len(), published().count());
    assert!(left_out.iter().all(|question| !question.reason.is_empty()));
}

#[test]
fn why_a_pair_is_missing_is_told_as_it_is() {
    let reasons = |statistics: &Statistics| {
        let (_, left_out) = questions(statistics, "topics-");
        let reasons: Vec<_> = left_out.into_iter().map(|left_out| left_out.reason).collect();
        reasons
    };
    let few = reasons(&Statistics::default());
    assert_eq!(few.len(), 2);
    assert!(
        few.iter()
            .all(|reason| reason.starts_with("there are not enough common topics")),
        "{few:?}"
    );
    let all_meet = Statistics {
        apart: Vec::new(),
        ..statistics()
    };
    let [reason] = reasons(&all_meet).try_into().unwrap();
    assert!(
        reason.starts_with("each of the 2 pairs") && reason.contains("shares a log"),
        "{reason}"
    );
    let none_meet = Statistics {
        meeting: Vec::new(),
        ..statistics()
    };
    let [reason] = reasons(&none_meet).try_into().unwrap();
    assert!(reason.starts_with("none of the 2 pairs"), "{reason}");
}

#[test]
fn a_short_list_has_a_far_page_too() {
    let mut statistics = statistics();
    statistics.emitters = vec![counted(Address::repeat_byte(1), 12)];
    let (asked, _) = questions(&statistics, "address-hot-deep");
    // One row a page: the eleventh of twelve.
    assert!(asked[0].targets[0].ends_with("page=11&offset=1"));
}

#[test]
fn only_chooses_by_a_part_of_the_name() {
    let (asked, _) = questions(&statistics(), "medium-100");
    let names: Vec<_> = asked.iter().map(|asked| asked.published.name).collect();
    assert_eq!(names, ["address-medium-1000", "address-medium-100"]);
    let mut all: Vec<_> = published().map(|published| published.name).collect();
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "names are unique");
}

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
        first_failure: None,
        stopped: 0,
        milliseconds: Some(latencies.percentiles()),
        rows_per_second: Some(1_234_567.0),
        bytes_per_second: Some(9e8),
        disk_bytes_per_answer: cold.then_some(4_096),
    }
}

fn report() -> Report {
    let (asked, left_out) = questions(&statistics(), "address-hot");
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
    };
    let questions = asked.into_iter().enumerate().map(|(place, question)| Asked {
        question,
        answers: Answers {
            rows: vec![10, 20],
            bytes: 300,
        },
        measurements: vec![measured(false, &[1, 2, 3]), measured(true, &[40, 50])],
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
    assert!(table.contains("address-hot-100: 1 rows differ from node:\n  block 1, log 0: other data"));
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
