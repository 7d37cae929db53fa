//! Services that answer nothing, or not all.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use quarry::bench::answer::Way;
use serde_json::Value;

use super::binary::{Server, command, demo, eventually, exchange, interrupt, list, number, quarry};
use super::{SHORT, bench, differs, imported, question, read};

/// Something that accepts connections and says nothing; and tells of each.
fn silent() -> (String, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, accepted) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            kept.push(stream);
            let _ = sender.send(());
        }
    });
    (address.to_string(), accepted)
}

#[test]
fn a_service_that_says_nothing_is_not_waited_for_without_end() {
    let began = Instant::now();
    let (service, _accepted) = silent();
    let outcome = bench(&["--demo", "--url", &format!("http://{service}")]);
    outcome.refused(&[&service, "no answer within 10 s"]);
    assert!(began.elapsed() < Duration::from_secs(55), "{:?}", began.elapsed());
}

#[test]
fn a_node_that_says_nothing_is_waited_for_as_long_as_a_service() {
    let (node, _accepted) = silent();
    let outcome = bench(&["--demo", "--against-node", &format!("http://{node}")]);
    let told = format!("the node at http://{node}: no answer within 10 s");
    outcome.refused(&[&told]);
}

#[test]
fn a_signal_ends_what_is_prepared_and_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let json = directory.path().join("r.json");
    let json_arg = json.display().to_string();
    let (service, accepted) = silent();
    let (url, database) = (format!("http://{service}"), format!("postgres://me@{service}/x"));
    for (option, at, told) in [
        ("--url", &url, "while the service was reached"),
        ("--against-node", &url, "while the node was reached"),
        ("--against-postgres", &database, "while PostgreSQL was reached"),
    ] {
        let args = ["bench", "--data-dir", &data, option, at, "--json", &json_arg];
        let mut child = command(args).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        accepted.recv_timeout(Duration::from_secs(50)).unwrap();
        assert!(!json.exists(), "{option}");
        let began = Instant::now();
        interrupt(&child);
        let status = eventually("it ends", Duration::from_secs(20), || child.try_wait().unwrap());
        let mut said = String::new();
        log.read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(1), "{option}: {said}");
        assert!(
            said.contains("stopped before anything was measured"),
            "{option}: {said}"
        );
        assert!(said.contains(told), "{option}: {said}");
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "{option}: {:?}",
            began.elapsed()
        );
        assert!(!json.exists(), "{option}");
    }
}

/// What a service loses of the logs of a page.
pub(super) type Loses = fn(&mut Vec<Value>);

/// What a service makes of a path and query that it is asked for; nothing where it fails.
pub(super) type Turns = fn(String) -> Option<String>;

/// Loses one in the middle.
fn lacks_one(logs: &mut Vec<Value>) {
    if logs.len() > 2 {
        logs.remove(1);
    }
}

/// A service before another one, which loses logs.
pub(super) fn losing(service: &Server, loses: Loses) -> String {
    spoiling(service, loses, Some)
}

/// The same of one that takes some paths for others.
pub(super) fn spoiling(service: &Server, loses: Loses, turns: Turns) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let behind = service.address.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let behind = behind.clone();
            std::thread::spawn(move || {
                let _ = pass_on(stream, &behind, loses, turns);
            });
        }
    });
    format!("http://{address}")
}

fn pass_on(stream: TcpStream, behind: &str, loses: Loses, turns: Turns) -> std::io::Result<()> {
    let (mut stream, kept) = (BufReader::new(stream), RefCell::new(None));
    loop {
        let mut request = String::new();
        if stream.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut line = String::new();
        while stream.read_line(&mut line)? > 2 {
            line.clear();
        }
        let target = request.split(' ').nth(1).unwrap_or_default();
        let Some(target) = turns(target.to_owned()) else {
            let body = r#"{"error":"Data for the requested range is still being indexed"}"#;
            let length = body.len();
            let answer =
                format!("HTTP/1.1 503 Service Unavailable\r\ncontent-length: {length}\r\n\r\n{body}");
            stream.get_mut().write_all(answer.as_bytes())?;
            continue;
        };
        let request = format!("GET {target} HTTP/1.1\r\nhost: {behind}\r\n\r\n");
        let mut answer = exchange(behind, &kept, request.as_bytes())?.json();
        if let Some(logs) = answer.get_mut("logs").and_then(Value::as_array_mut) {
            loses(logs);
        }
        let body = answer.to_string();
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.get_mut().write_all(head.as_bytes())?;
        stream.get_mut().write_all(body.as_bytes())?;
    }
}

pub(super) fn through(directory: &Path, data: &str, url: &str, more: &[&str]) -> (super::Outcome, Value) {
    lasting(directory, data, url, &SHORT, more)
}

/// The same, for as long as is said.
pub(super) fn lasting(
    directory: &Path,
    data: &str,
    url: &str,
    time: &[&str],
    more: &[&str],
) -> (super::Outcome, Value) {
    let json = directory.join("r.json");
    let json_arg = json.display().to_string();
    let mut args = vec!["--data-dir", data, "--url", url, "--json", &json_arg];
    args.extend(time);
    args.extend(more);
    (bench(&args), read(&json))
}

/// The same, of questions whose names contain `only`, and against a node.
fn held_against(directory: &Path, data: &str, url: &str, only: &str, node: &str) -> (super::Outcome, Value) {
    let more = ["--only", only, "--against-node", node, "--clients", "1"];
    through(directory, data, url, &more)
}

#[test]
fn a_service_that_loses_rows_at_either_end_is_found_out() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let node = format!("http://{}/rpc", service.address);
    let loses: [Loses; 3] = [
        |_| {},
        |logs| {
            logs.pop();
        },
        |logs| {
            if !logs.is_empty() {
                logs.remove(0);
            }
        },
    ];
    for (place, loses) in loses.into_iter().enumerate() {
        let url = losing(&service, loses);
        let (outcome, report) = held_against(directory.path(), &data, &url, "address-rare", &node);
        let comparisons = list(&question(&report, "address-rare")["comparisons"]);
        let told: Vec<_> = comparisons
            .iter()
            .map(|found| (found["with"].as_str().unwrap(), found["verdict"].is_object()))
            .collect();
        match place {
            0 => {
                outcome.succeeded();
                assert_eq!(told, [("node", false)], "{comparisons:?}");
            }
            _ => {
                outcome.refused(&["2 answers differ"]);
                assert_eq!(told, [("store", true), ("node", true)], "{comparisons:?}");
                let node = comparisons[1]["verdict"].to_string();
                assert!(node.contains("the service does not have it"), "{node}");
            }
        }
    }
}

/// Of questions about a range of blocks, as are those that are timed, there is no answer.
fn fails_for_ranges(target: String) -> Option<String> {
    Some(target).filter(|target| !target.contains("fromblock="))
}

#[test]
fn a_service_that_gives_other_rows_or_pages_is_found_out_whatever_else_it_does() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let node = format!("http://{}/rpc", service.address);
    let descends: Loses = |logs| logs.reverse();
    let first_page: Turns = |target| {
        let (path, query) = target.split_once('?')?;
        let others: Vec<_> = query
            .split('&')
            .filter(|part| !part.starts_with("page="))
            .collect();
        Some(format!("{path}?{}", others.join("&")))
    };
    for (loses, turns, only, told) in [
        (descends, Some as Turns, "address-hot-100", "out of order"),
        (
            lacks_one,
            fails_for_ranges,
            "address-and-either",
            "the service does not have it",
        ),
        (
            (|_| {}) as Loses,
            first_page,
            "address-hot-deep",
            "only the service has it",
        ),
    ] {
        let url = spoiling(&service, loses, turns);
        let (outcome, report) = held_against(directory.path(), &data, &url, only, &node);
        differs(outcome);
        let comparisons = list(&question(&report, only)["comparisons"]);
        let found = comparisons.iter().find(|found| found["with"] == "node").unwrap();
        assert!(found["verdict"].to_string().contains(told), "{only}: {found}");
    }
}

#[test]
fn a_service_that_fails_or_gives_no_logs_where_it_is_compared_is_no_success() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let node = format!("http://{}/rpc", service.address);
    // As many rows as there are, of which one cannot be read.
    let garbles: Loses = |logs| {
        if let Some(log) = logs.last_mut() {
            log["topics"] = "[".into();
        }
    };
    for (loses, turns, said) in [
        (garbles, Some as Turns, "1 answer differs"),
        ((|_| {}) as Loses, fails_for_ranges, "1 comparison failed"),
    ] {
        let url = spoiling(&service, loses, turns);
        let (outcome, report) = held_against(directory.path(), &data, &url, "address-rare", &node);
        let outcome = outcome.refused(&[said]);
        let comparison = &question(&report, "address-rare")["comparisons"][0];
        assert_eq!(comparison["with"], "node", "{comparison}");
        if turns("?fromblock=".to_owned()).is_some() {
            let told = comparison["verdict"]["differ"]["told"][0].to_string();
            assert!(told.contains("the service's answer: topics: "), "{comparison}");
        } else {
            assert_eq!(comparison["verdict"], "equal", "{comparison}");
            assert_eq!(comparison["failed"], comparison["untimed"], "{comparison}");
            assert!(
                outcome
                    .stdout
                    .contains("not timed against node: the service: status 503"),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn a_difference_stays_where_the_service_hangs_right_after() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let node = format!("http://{}/rpc", service.address);
    // Only what is asked for the times is of a range of blocks.
    let hangs: Turns = |target| {
        if target.contains("fromblock=") {
            std::thread::sleep(Duration::from_secs(100));
        }
        Some(target)
    };
    let url = spoiling(&service, lacks_one, hangs);
    // Over before a client waits no longer for its answer.
    let time = ["--seconds", "0.02", "--limit", "8"];
    let more = [
        "--only",
        "address-rare",
        "--against-node",
        &node,
        "--clients",
        "1",
    ];
    let (outcome, report) = lasting(directory.path(), &data, &url, &time, &more);
    differs(outcome);
    let comparisons = list(&question(&report, "address-rare")["comparisons"]);
    let of_node: Vec<_> = comparisons
        .iter()
        .filter(|found| found["with"] == "node")
        .collect();
    let [found] = of_node.as_slice() else {
        panic!("{comparisons:?}")
    };
    let told = found["verdict"].to_string();
    assert!(told.contains("the service does not have it"), "{found}");
    assert_ne!(found["untimed"], Value::Null, "{found}");
}

#[test]
fn pages_that_all_begin_elsewhere_are_found_out_by_their_place() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let node = format!("http://{}/rpc", service.address);
    // Each page is the one before it, so that they follow each other as they should.
    let late: Turns = |target| {
        let (path, query) = target.split_once('?')?;
        let parts: Vec<_> = query
            .split('&')
            .map(|part| {
                match part
                    .strip_prefix("page=")
                    .and_then(|page| page.parse::<u64>().ok())
                {
                    Some(page) if page > 1 => format!("page={}", page - 1),
                    _ => part.to_owned(),
                }
            })
            .collect();
        Some(format!("{path}?{}", parts.join("&")))
    };
    for (turns, is_elsewhere) in [(Some as Turns, false), (late, true)] {
        let url = spoiling(&service, |_| {}, turns);
        let (outcome, report) = held_against(directory.path(), &data, &url, "deep", &node);
        let mut found = 0;
        for asked in list(&report["questions"]) {
            for comparison in list(&asked["comparisons"]) {
                found += 1;
                let told = comparison["verdict"].to_string();
                assert_eq!(
                    told.contains("the page begins behind"),
                    is_elsewhere,
                    "{comparison}"
                );
                assert_eq!(comparison["limited"], Value::Null, "{comparison}");
            }
        }
        assert!(found > 1, "{report}");
        if is_elsewhere {
            differs(outcome);
        } else {
            outcome.succeeded();
        }
    }
}

#[test]
fn a_service_that_is_fast_with_other_answers_has_no_times() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let node = format!("http://{}/rpc", service.address);
    let soon: Turns = |target| {
        let is_of_range = target.contains("fromblock=");
        let is_timed = is_of_range && ASKED.fetch_add(1, Ordering::Relaxed) > 0;
        Some(if is_timed {
            target.replace("offset=", "page=1000&offset=")
        } else {
            target
        })
    };
    let url = spoiling(&service, |_| {}, soon);
    let (outcome, report) = held_against(directory.path(), &data, &url, "address-rare", &node);
    outcome.succeeded();
    let comparison = &question(&report, "address-rare")["comparisons"][0];
    let untimed = comparison["untimed"].to_string();
    assert!(
        untimed.contains("an answer that was timed had")
            && untimed.contains("bytes, the one that was compared"),
        "{comparison}"
    );
    assert_eq!(comparison["ratio"], Value::Null, "{comparison}");
}

#[test]
fn rows_that_are_lost_later_are_found_out_too() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let later: Loses = |logs| {
        if ASKED.fetch_add(1, Ordering::Relaxed) > 1 {
            logs.pop();
        }
    };
    let url = losing(&service, later);
    // Time for the answers whose rows are counted anew.
    let time = ["--seconds", "0.5"];
    let more = ["--only", "address-rare", "--clients", "1"];
    let (outcome, report) = lasting(directory.path(), &data, &url, &time, &more);
    let outcome = outcome.refused(&["1 answer differs"]);
    let asked = question(&report, "address-rare");
    let comparison = &asked["comparisons"][0];
    assert_eq!(comparison["with"], "store", "{comparison}");
    let measurement = &asked["measurements"][0];
    assert!(number(&measurement["of_other_rows"]) > 0, "{measurement}");
    assert!(
        outcome.stdout.contains("had another number of rows"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_service_of_a_store_that_begins_elsewhere_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let without_first: Turns = |target| Some(target).filter(|target| !target.contains("tag=0x0&"));
    let url = spoiling(&service, |_| {}, without_first);
    let outcome = bench(&["--data-dir", &data, "--url", &url]);
    outcome.refused(&["does not begin with this store's first block 0"]);
}

/// What a service says of what it does not have is known by its words, which are those that it really says.
#[tokio::test]
async fn a_service_that_does_not_have_what_is_asked_for_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data").display().to_string();
    let recording = std::fs::File::open(demo("chain.jsonl.zst")).unwrap();
    let recording = std::io::read_to_string(zstd::Decoder::new(recording).unwrap()).unwrap();
    let later: Vec<&str> = recording.lines().skip(100).collect();
    let part = directory.path().join("part.jsonl");
    std::fs::write(&part, later.join("\n")).unwrap();
    let part = part.to_str().unwrap();
    quarry(["import", "chain", part, "--data-dir", &data]).succeeded();
    let service = Server::start(["serve", "--data-dir", &data]);
    let way = Way::Http(service.address.clone());
    let mut client = way.client().await.unwrap();
    // Before its first block, above its last one, and of a chain that it does not serve.
    for (target, is_withheld) in [
        ("/api/block/5/rewards", true),
        ("/api/block/999999/rewards", false),
        ("/api/block/5/rewards?chain=testnet", false),
    ] {
        let failure = client.body(target).await.unwrap_err();
        assert_eq!(way.withholds(&failure), is_withheld, "{target}: {failure:?}");
    }
}

#[test]
fn a_service_that_limits_its_clients_is_named_as_one() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data, "--rate-limit", "1"]);
    let url = format!("http://{}", service.address);
    let (outcome, report) = through(
        directory.path(),
        &data,
        &url,
        &["--only", "balance", "--clients", "1"],
    );
    // A request a second is answered, what is asked then is not.
    assert!(outcome.stdout.contains("--rate-limit 0"), "{}", outcome.stdout);
    assert!(!list(&report["questions"]).is_empty());
    // What is told of a service is not what this process has.
    assert_eq!(report["settings"]["cache_bytes"], Value::Null);
}
