//! `quarry bench` through the real binary: over the demo chain, beside a service, and what it refuses.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;
#[path = "bench/lying.rs"]
mod lying;
#[path = "bench/outputs.rs"]
mod outputs;
#[path = "bench/postgres.rs"]
mod postgres;
#[path = "bench/service.rs"]
mod service;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use binary::{Outcome, Server, command, demo, import_demo, interrupt, list, number, quarry, text};
use serde_json::Value;

/// Short enough for a test; every figure is measured nevertheless.
const SHORT: [&str; 4] = ["--seconds", "0.02", "--limit", "60"];

/// Imports the demo's recording; gives the data directory.
fn imported(directory: &Path) -> String {
    let data = directory.join("data").display().to_string();
    import_demo(&data);
    data
}

fn bench(args: &[&str]) -> Outcome {
    quarry(["bench"].iter().chain(args))
}

/// Insists on one sentence that says how many answers differ.
#[track_caller]
fn differs(outcome: Outcome) -> Outcome {
    let outcome = outcome.refused(&[]);
    let said = outcome.sentence().trim_start_matches("quarry: ");
    let is_said = match said.split_once(' ') {
        Some(("1", rest)) => rest == "answer differs",
        Some((count, rest)) => count.parse::<u64>().is_ok_and(|count| count > 1) && rest == "answers differ",
        None => false,
    };
    assert!(is_said, "{said}");
    outcome
}

/// Starts it and waits until it begins to measure; gives the lines that it prints from then on.
fn measuring(mut command: Command) -> (Child, impl Iterator<Item = String>) {
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(
        lines.any(|line| line.starts_with("cold:")),
        "it begins to measure"
    );
    (child, lines)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[track_caller]
fn question<'a>(report: &'a Value, name: &str) -> &'a Value {
    list(&report["questions"])
        .iter()
        .find(|asked| asked["name"] == name)
        .unwrap_or_else(|| panic!("no question {name}"))
}

#[test]
fn one_command_measures_the_demo_chain() {
    let directory = tempfile::tempdir().unwrap();
    let (json, html) = (directory.path().join("r.json"), directory.path().join("r.html"));
    let (json_arg, html_arg) = (json.display().to_string(), html.display().to_string());
    let mut args = vec![
        "--demo",
        "--no-cold",
        "--clients",
        "1,2",
        "--json",
        &json_arg,
        "--html",
        &html_arg,
    ];
    args.extend(SHORT);
    let outcome = bench(&args).succeeded();
    assert!(outcome.stdout.contains("p50"), "{}", outcome.stdout);

    let report = read(&json);
    let asked = list(&report["questions"]);
    assert!(
        asked.len() + list(&report["left_out"]).len() > 30,
        "the whole set"
    );
    assert!(
        asked.len() > 25,
        "the demo has nearly everything: {}",
        report["left_out"]
    );
    let head = &report["store"];
    assert_eq!(head["head"], report["head_at_end"]["number"]);
    assert_eq!(head["head_hash"], report["head_at_end"]["hash"]);
    let service = Server::start(["demo"]);
    for asked in asked {
        let name = asked["name"].as_str().unwrap();
        assert_eq!(list(&asked["notes"]), &[] as &[Value], "{name}");
        // In process, HTTP with one and two clients.
        let measurements = list(&asked["measurements"]);
        assert_eq!(measurements.len(), 3, "{name}");
        for found in measurements {
            assert!(number(&found["runs"]) > 0, "{name}: {found}");
            assert_eq!(found["failures"], 0, "{name}: {found}");
            let times = &found["milliseconds"];
            let [p50, p99, max] = ["p50", "p99", "max"].map(|name| times[name].as_f64().unwrap());
            assert!(0.0 < p50 && p50 <= p99 && p99 <= max, "{name}: {times}");
        }
        // Rows are those that the service answers.
        for (target, rows) in list(&asked["targets"])
            .iter()
            .zip(list(&asked["answers"]["rows"]))
            .take(3)
        {
            let answer = service.json(target.as_str().unwrap());
            let first_list = answer
                .as_object()
                .unwrap()
                .values()
                .find(|value| value.is_array());
            let expected = first_list.map_or(1, |items| list(items).len() as u64);
            if asked["group"] == "logs" {
                let logs = list(&answer["logs"]).len() as u64;
                assert_eq!(number(rows), logs, "{target}");
                // Those that are about nothing, and what may lack in the blocks of another topic.
                let may_lack = ["topic-range-medium", "topics-apart", "address-apart"].contains(&name);
                assert!(logs > 0 || may_lack, "{name}: nothing is asked for");
            } else {
                assert_eq!(number(rows), expected, "{target}");
            }
        }
    }
    assert_eq!(number(&question(&report, "address-hot")["answers"]["rows"][0]), {
        let target = question(&report, "address-hot")["targets"][0]
            .as_str()
            .unwrap()
            .to_owned();
        let reply = service.get(&target);
        reply.header("x-total-count").unwrap().parse::<u64>().unwrap()
    });
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("<svg") && !page.contains("http://") && !page.contains("https://"));
}

#[test]
fn cold_answers_are_those_of_a_store_opened_anew() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("r.json");
    let json_arg = json.display().to_string();
    let mut args = vec![
        "--demo",
        "--only",
        "address-hot-100",
        "--clients",
        "1",
        "--json",
        &json_arg,
    ];
    // Long enough for the median to be of many runs: beside other tests one may wait for a core as long as a short measurement takes.
    args.extend(["--seconds", "0.5", "--limit", "60"]);
    bench(&args).succeeded();
    let report = read(&json);
    let measurements = list(&question(&report, "address-hot-100")["measurements"]);
    let ways: Vec<_> = measurements
        .iter()
        .map(|found| (found["way"].as_str().unwrap(), found["cold"].as_bool().unwrap()))
        .collect();
    assert_eq!(
        ways,
        [
            ("in process", false),
            ("over HTTP", false),
            ("in process", true),
            ("over HTTP", true)
        ]
    );
    let p50 = |place: usize| measurements[place]["milliseconds"]["p50"].as_f64().unwrap();
    // Its blocks are read and decompressed again: several times as long on any machine.
    assert!(p50(0) < p50(2), "{} warm, {} cold", p50(0), p50(2));
    assert!(
        measurements
            .iter()
            .all(|found| found["failures"] == 0 && number(&found["runs"]) > 0)
    );
}

#[test]
fn the_same_seed_picks_the_same_questions() {
    let list = |seed| bench(&["--demo", "--list", "--seed", seed]).succeeded().stdout;
    let (first, again) = (list("7"), list("7"));
    assert_eq!(first, again);
    assert!(first.contains("address-hot") && first.contains("/api/logs/get-logs?address=0x"));
}

#[test]
fn the_demo_is_measured_where_the_environment_names_a_directory_of_stores() {
    let directory = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        let mut command = command(["bench", "--demo", "--list"].iter().chain(more));
        command.env("QUARRY_DATA_DIR", directory.path().join("data"));
        command.output().unwrap()
    };
    let output = run(&[]);
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("address-hot"));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let output = run(&["--data-dir", "data"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("'--demo' cannot be used with '--data-dir <DIR>'"),
        "{said}"
    );
}

#[test]
fn a_store_that_a_service_holds_is_measured_beside_it_and_through_it() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let json = directory.path().join("r.json");
    let json_arg = json.display().to_string();
    let mut args = vec![
        "--data-dir",
        &data,
        "--only",
        "address-hot-100",
        "--json",
        &json_arg,
    ];
    args.extend(SHORT);
    bench(&args).succeeded();
    assert_eq!(list(&read(&json)["questions"]).len(), 1);

    let url = format!("http://{}", service.address);
    args.extend(["--url", &url, "--clients", "1"]);
    bench(&args).succeeded();
    let report = read(&json);
    let measurements = list(&question(&report, "address-hot-100")["measurements"]).to_vec();
    let [only] = measurements.as_slice() else {
        panic!("{measurements:?}")
    };
    assert_eq!(
        (&only["way"], &only["cold"]),
        (&"over HTTP".into(), &false.into())
    );
    assert!(
        report["settings"]["cold"]
            .as_str()
            .unwrap()
            .contains("not measured")
    );
    // It served these requests.
    assert!(
        service
            .get("/metrics")
            .text()
            .contains("quarry_http_requests_total")
    );
}

#[test]
fn what_cannot_be_measured_is_one_sentence() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = directory.path().join("nothing").display().to_string();
    bench(&["--data-dir", &nowhere]).refused(&["nothing"]);
    for [option, value] in [["--seconds", "0"], ["--limit", "1e9"], ["--clients", "0"]] {
        let outcome = bench(&["--demo", option, value]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        let told = format!("invalid value '{value}' for '{option} ");
        assert!(outcome.stderr.contains(&told), "{}", outcome.stderr);
    }
    bench(&["--demo", "--only", "logs,no-such-question"]).refused(&["`no-such-question`"]);
    bench(&["--demo", "--only", ""]).refused(&["only: names nothing"]);
    bench(&["--demo", "--url", "https://localhost"]).refused(&["url", "plain http"]);
    bench(&["--demo", "--url", "http://127.0.0.1:1"]).refused(&["127.0.0.1:1"]);
    bench(&["--demo", "--against-node", "http://127.0.0.1:1"]).refused(&["the node at http://127.0.0.1:1"]);
    bench(&["--demo", "--against-postgres", "host=x password=secret"]).refused(&["postgres://"]);
    let refused = bench(&[
        "--demo",
        "--against-postgres",
        "postgres://me:secret@127.0.0.1:1/x",
    ])
    .refused(&["PostgreSQL at postgres://127.0.0.1:1"]);
    assert!(!refused.stderr.contains("secret"));
    let missing = directory.path().join("missing/r.json").display().to_string();
    bench(&["--demo", "--json", &missing]).refused(&["missing/r.json"]);
    // The demo is mainnet's; another service has another head.
    let data = imported(directory.path());
    bench(&["--data-dir", &data, "--chain", "testnet"]).refused(&["testnet"]);
}

#[test]
fn options_that_are_not_understood_are_told_from_failures() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("r").display().to_string();
    for options in [
        &["--against-node", "nonsense"][..],
        &["--against-node", "ftp://x"],
        &["--against-postgres", "nonsense"],
        &["--url", "nonsense"],
        &["--url", "https://localhost"],
        &["--only", "no-such-question"],
        &["--only", ""],
        &["--json", "-", "--html", "-"],
        &["--json", &file, "--html", &file],
        &["--list", "--json", &file],
    ] {
        let outcome = bench(&[&["--demo"], options].concat()).refused(&[]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
    }
    assert!(!Path::new(&file).exists());
    let outcome = bench(&["--demo", "--url", "http://127.0.0.1:1"]).refused(&[]);
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
}

#[test]
fn a_store_of_another_chain_is_not_blamed_on_a_node() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().display().to_string();
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/chain-v10.jsonl.zst");
    quarry(["import", "chain", other, "--data-dir", &data]).succeeded();
    let refused = quarry(["demo", "--listen", "127.0.0.1:0", "--data-dir", &data]);
    let refused = refused.refused(&[&data, "the recording has", "another --data-dir"]);
    assert!(!refused.sentence().contains("node"), "{refused:?}");
}

#[test]
fn a_run_ends_within_its_limit_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("r.json");
    let json_arg = json.display().to_string();
    bench(&[
        "--demo",
        "--seconds",
        "5",
        "--limit",
        "2",
        "--no-cold",
        "--json",
        &json_arg,
    ])
    .succeeded();
    let report = read(&json);
    // The time of each was cut so that all fit.
    assert!(report["settings"]["seconds"].as_f64().unwrap() < 0.05);
    let lasted = list(&report["questions"]).iter();
    let lasted = lasted.flat_map(|asked| list(&asked["measurements"]));
    let lasted: Vec<_> = lasted.map(|found| found["seconds"].as_f64().unwrap()).collect();
    assert!(lasted.iter().all(|&seconds| seconds >= 0.005), "{lasted:?}");
    let notes = list(&report["notes"]).iter();
    let told: Vec<_> = notes.filter(|note| text(note).contains(" lasted ")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    let asked = list(&report["questions"]).len();
    // On a machine that is busy with other things it may not come to all of them, and says so.
    match report["ended_early"].as_str() {
        Some(why) => assert!(
            why.contains(&format!("the time limit was reached: {asked} of ")),
            "{why}"
        ),
        None => assert!(asked > 25, "{asked}"),
    }
}

/// What is left of a run of the demo with such measurements that a signal ends after a while.
struct Interrupted {
    code: Option<i32>,
    took: Duration,
    printed: Vec<String>,
    said: String,
    json: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

fn interrupted(seconds: &str, after: Duration) -> Interrupted {
    let directory = tempfile::tempdir().unwrap();
    let (json, log) = (directory.path().join("r.json"), directory.path().join("log"));
    let path = json.to_str().unwrap();
    let args = [
        "bench",
        "--demo",
        "--seconds",
        seconds,
        "--limit",
        "36000",
        "--json",
        path,
    ];
    let mut command = command(args);
    command.stderr(std::fs::File::create(&log).unwrap());
    let (mut child, lines) = measuring(command);
    let drained = std::thread::spawn(move || lines.collect::<Vec<_>>());
    std::thread::sleep(after);
    let began = Instant::now();
    interrupt(&child);
    let code = child.wait().unwrap().code();
    Interrupted {
        code,
        took: began.elapsed(),
        printed: drained.join().unwrap(),
        said: std::fs::read_to_string(&log).unwrap_or_default(),
        json,
        _directory: directory,
    }
}

#[test]
fn a_signal_before_anything_was_measured_leaves_nothing() {
    // Far longer than the test waits.
    let run = interrupted("60", Duration::ZERO);
    let said = run.said;
    assert_eq!(run.code, Some(1), "{said}");
    assert!(said.contains("stopped before anything was measured"), "{said}");
    assert!(!run.json.exists());
}

#[test]
fn a_signal_ends_it_with_what_was_measured() {
    // Some measurements end in it, or one on a machine that has other things to do.
    let run = interrupted("0.3", Duration::from_secs(2));
    assert_eq!(run.code, Some(0), "{}", run.said);
    assert!(run.took < Duration::from_secs(10), "{:?}", run.took);
    let report = read(&run.json);
    assert!(report["ended_early"].as_str().unwrap().contains("signal"));
    assert!(!list(&list(&report["questions"])[0]["measurements"]).is_empty());
    assert!(list(&report["questions"]).len() < 36);
    assert!(
        run.printed
            .iter()
            .any(|line| line.contains("stopped by a signal"))
    );
}
