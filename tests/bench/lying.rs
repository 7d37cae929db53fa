//! A node that states other logs than it should.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::binary::{list, number, text};
use super::{SHORT, bench, differs, imported, question, read};

/// What a fake node does with the logs that it was asked for.
type Spoil = fn(&mut Vec<Value>);

/// How long a fake node takes for the answer to the so manieth question about logs, from 0.
type Pace = fn(usize) -> Duration;

/// Longer than any test waits.
const NEVER: Duration = Duration::from_secs(3_600);

/// A fake node.
#[derive(Clone)]
struct Fake {
    blocks: Arc<Vec<Value>>,
    spoil: Spoil,
    pace: Pace,
    refuses: Refuses,
    asked: Arc<AtomicUsize>,
}

/// Whether a fake node refuses a filter.
type Refuses = fn(&Value) -> bool;

/// The logs of the demo chain as a node lists them, served to one connection after another.
fn node(spoil: Spoil) -> String {
    serve(spoil, |_| Duration::ZERO, |_| {})
}

/// An honest one that refuses some filters.
fn limited(refuses: Refuses) -> String {
    listen(|_| {}, |_| Duration::ZERO, refuses, |_| {})
}

/// The same at a pace, of a chain that `change` has changed.
fn serve(spoil: Spoil, pace: Pace, change: impl Fn(&mut Vec<Value>)) -> String {
    listen(spoil, pace, |_| false, change)
}

fn listen(spoil: Spoil, pace: Pace, refuses: Refuses, change: impl Fn(&mut Vec<Value>)) -> String {
    let mut blocks: Vec<Value> = {
        let file = std::fs::File::open(super::demo("chain.jsonl.zst")).unwrap();
        let lines = BufReader::new(zstd::Decoder::new(file).unwrap()).lines();
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    };
    change(&mut blocks);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let fake = Fake {
        blocks: Arc::new(blocks),
        spoil,
        pace,
        refuses,
        asked: Arc::default(),
    };
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let fake = fake.clone();
            std::thread::spawn(move || {
                let _ = converse(stream, &fake);
            });
        }
    });
    format!("http://{address}")
}

fn converse(stream: TcpStream, fake: &Fake) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let request: Value = serde_json::from_slice(&body).unwrap();
        let mut answer = json!({"jsonrpc": "2.0", "id": request["id"]});
        if request["method"] == "eth_getLogs" {
            std::thread::sleep((fake.pace)(fake.asked.fetch_add(1, Ordering::Relaxed)));
        }
        let refused = request["method"] == "eth_getLogs" && (fake.refuses)(&request["params"][0]);
        match result(&request, &fake.blocks, fake.spoil) {
            _ if refused => {
                answer["error"] = json!({"code": -32602, "message": "the block range is too wide"});
            }
            Some(result) => answer["result"] = result,
            None => answer["error"] = json!({"code": -32601, "message": "the method does not exist"}),
        }
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        stream.get_mut().write_all(head.as_bytes())?;
        stream.get_mut().write_all(answer.as_bytes())?;
    }
}

fn result(request: &Value, blocks: &[Value], spoil: Spoil) -> Option<Value> {
    let params = &request["params"];
    match text(&request["method"]) {
        "eth_chainId" => {
            let genesis: Value =
                serde_json::from_slice(&std::fs::read(super::demo("genesis.json")).unwrap()).unwrap();
            Some(format!("0x{:x}", number(&genesis["config"]["chainId"])).into())
        }
        "eth_blockNumber" => Some(blocks.last()?["block"]["number"].clone()),
        "eth_getBlockByNumber" => {
            let asked = text(&params[0]);
            let found = blocks
                .iter()
                .find(|block| text(&block["block"]["number"]) == asked);
            Some(found.map_or(Value::Null, |found| found["block"].clone()))
        }
        "eth_getLogs" => {
            let filter = &params[0];
            let (from, to) = (number(&filter["fromBlock"]), number(&filter["toBlock"]));
            let mut logs: Vec<Value> = blocks
                .iter()
                .filter(|block| (from..=to).contains(&number(&block["block"]["number"])))
                .flat_map(|block| {
                    list(&block["receipts"])
                        .iter()
                        .flat_map(|receipt| list(&receipt["logs"]))
                })
                .filter(|log| matches(log, filter))
                .cloned()
                .collect();
            spoil(&mut logs);
            Some(logs.into())
        }
        _ => None,
    }
}

fn matches(log: &Value, filter: &Value) -> bool {
    let same = |one: &Value, other: &Value| text(one).eq_ignore_ascii_case(text(other));
    let address = filter
        .get("address")
        .is_none_or(|address| same(address, &log["address"]));
    let wanted = filter
        .get("topics")
        .map_or(&[] as &[Value], |topics| list(topics));
    let topics = list(&log["topics"]);
    let all = wanted
        .iter()
        .enumerate()
        .all(|(place, topic)| topic.is_null() || topics.get(place).is_some_and(|found| same(found, topic)));
    address && all
}

/// Benches against such a node; the outcome and the report.
fn against(directory: &Path, spoil: Spoil) -> (super::Outcome, Value) {
    with(directory, &node(spoil), &SHORT)
}

/// Benches against the node at a URL.
fn with(directory: &Path, url: &str, more: &[&str]) -> (super::Outcome, Value) {
    let data = imported(directory);
    let json = directory.join("r.json");
    let json_arg = json.display().to_string();
    let mut args = vec![
        "--data-dir",
        &data,
        "--against-node",
        url,
        "--no-cold",
        "--json",
        &json_arg,
    ];
    args.extend(more);
    (bench(&args), read(&json))
}

#[test]
fn an_honest_node_is_equal_in_every_question_about_logs() {
    let directory = tempfile::tempdir().unwrap();
    let (outcome, report) = against(directory.path(), |_| {});
    let outcome = outcome.succeeded();
    assert!(
        outcome.stdout.contains("0 differ, 0 not compared"),
        "{}",
        outcome.stdout
    );
    let mut compared = 0;
    for asked in list(&report["questions"])
        .iter()
        .filter(|asked| asked["group"] == "logs")
    {
        let [comparison] = list(&asked["comparisons"]) else {
            panic!("{asked}")
        };
        assert_eq!(comparison["verdict"], "equal", "{comparison}");
        assert!(comparison["ratio"].as_f64().unwrap() > 0.0);
        compared += number(&comparison["rows"]);
    }
    assert!(compared > 100, "{compared} rows were compared");
}

#[test]
fn every_lie_is_found_and_the_exit_code_says_so() {
    let lies: [(Spoil, &str); 8] = [
        (
            |logs| {
                if let Some(log) = logs.last_mut() {
                    log["data"] = "0x99".into();
                }
            },
            "other data",
        ),
        (
            |logs| {
                logs.pop();
            },
            "only the service has it",
        ),
        (
            |logs| {
                if let Some(mut log) = logs.first().cloned() {
                    log["logIndex"] = "0xffff".into();
                    logs.push(log);
                }
            },
            "the service does not have it",
        ),
        (
            |logs| {
                if let Some(log) = logs.first_mut() {
                    log["transactionHash"] = format!("0x{}", "ab".repeat(32)).into();
                }
            },
            "other transaction hash",
        ),
        (
            |logs| {
                if let Some(log) = logs.first_mut() {
                    log["blockHash"] = format!("0x{}", "ab".repeat(32)).into();
                    log["transactionIndex"] = "0x77".into();
                }
            },
            "other block hash, transaction index",
        ),
        (
            |logs| {
                if let Some(log) = logs.first_mut() {
                    log["blockTimestamp"] = "0x1".into();
                }
            },
            "other timestamp",
        ),
        (|logs| logs.reverse(), "the other's rows are out of order"),
        (
            |logs| {
                if let Some(log) = logs.last().cloned() {
                    logs.push(log);
                }
            },
            "1 times at the service, 2 times there",
        ),
    ];
    for (spoil, told) in lies {
        let directory = tempfile::tempdir().unwrap();
        let (outcome, report) = against(directory.path(), spoil);
        let outcome = differs(outcome);
        assert!(outcome.stdout.contains(told), "{told}: {}", outcome.stdout);
        let comparison = &question(&report, "address-hot")["comparisons"][0];
        assert!(
            comparison["verdict"]["differ"]["rows"].as_u64() > Some(0),
            "{comparison}"
        );
    }
}

#[test]
fn a_verdict_stays_where_only_the_times_are_missing() {
    let directory = tempfile::tempdir().unwrap();
    let lie: Spoil = |logs| {
        logs.pop();
    };
    // The first answer is there at once, what is asked for its time never comes.
    let late: Pace = |asked| if asked == 0 { Duration::ZERO } else { NEVER };
    let more = ["--seconds", "0.02", "--limit", "40", "--only", "address-hot-deep"];
    let (outcome, report) = with(directory.path(), &serve(lie, late, |_| {}), &more);
    let outcome = outcome.refused(&["1 answer differs"]);
    let comparison = &question(&report, "address-hot-deep")["comparisons"][0];
    assert!(
        comparison["verdict"]["differ"]["rows"].as_u64() > Some(0),
        "{comparison}"
    );
    assert_eq!(comparison["rounds"], 0);
    for figure in ["ours_ms", "theirs_ms", "ratio"] {
        assert_eq!(comparison.get(figure), Some(&Value::Null), "{figure}");
    }
    // In the node's own words, not because the turn was over.
    let told = "address-hot-deep: not timed against node: the node: eth_getLogs: no answer within 2000 ms";
    assert!(outcome.stdout.contains(told), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("median ratio -"), "{}", outcome.stdout);
    assert_eq!(report["compared"][0]["median_ratio"], Value::Null);
}

#[test]
fn a_node_that_is_late_for_three_questions_in_a_row_is_not_asked_any_more() {
    let directory = tempfile::tempdir().unwrap();
    let more = ["--seconds", "0.02", "--limit", "40", "--only", "address"];
    let began = Instant::now();
    let url = serve(|_| {}, |_| NEVER, |_| {});
    let (outcome, report) = with(directory.path(), &url, &more);
    let outcome = outcome.succeeded();
    let asked = list(&report["questions"]);
    assert!(asked.len() > 4, "{}", asked.len());
    let compared: Vec<usize> = asked
        .iter()
        .map(|asked| list(&asked["comparisons"]).len())
        .collect();
    assert_eq!(compared.iter().sum::<usize>(), 3, "{compared:?}");
    assert_eq!(compared[..3], [1, 1, 1], "{compared:?}");
    let told = format!(
        "the node is not asked any more: answers to three questions in a row did not come, or not in time, {} questions about logs are left",
        asked.len() - 3
    );
    let told = told.as_str();
    assert_eq!(outcome.stdout.matches(told).count(), 1, "{}", outcome.stdout);
    // The service is measured in every question.
    assert!(asked.iter().all(|asked| !list(&asked["measurements"]).is_empty()));
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
}

#[test]
fn a_slow_node_takes_no_time_that_the_service_is_measured_in() {
    let directory = tempfile::tempdir().unwrap();
    let more = ["--seconds", "0.1", "--limit", "12", "--only", "address"];
    let began = Instant::now();
    let url = serve(|_| {}, |_| Duration::from_millis(900), |_| {});
    let (outcome, report) = with(directory.path(), &url, &more);
    let outcome = outcome.succeeded();
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    let asked = list(&report["questions"]);
    assert!(asked.iter().all(|asked| !list(&asked["measurements"]).is_empty()));
    assert_eq!(report["ended_early"], Value::Null, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("(--limit)"), "{}", outcome.stdout);
    let compared: usize = asked.iter().map(|asked| list(&asked["comparisons"]).len()).sum();
    assert!((1..asked.len()).contains(&compared), "{compared}");
}

#[test]
fn rows_before_and_after_those_of_the_service_are_found() {
    let early: Spoil = |logs| {
        if let Some(mut log) = logs.first().cloned() {
            log["blockNumber"] = "0x0".into();
            logs.insert(0, log);
        }
    };
    let late: Spoil = |logs| {
        if let Some(mut log) = logs.last().cloned() {
            log["blockNumber"] = "0xffffff".into();
            logs.push(log);
        }
    };
    for (spoil, told) in [(early, "block 0, log"), (late, "block 16777215, log")] {
        let directory = tempfile::tempdir().unwrap();
        let mut more = SHORT.to_vec();
        more.extend(["--only", "address-rare"]);
        let (outcome, report) = with(directory.path(), &node(spoil), &more);
        let outcome = differs(outcome);
        let differ = &question(&report, "address-rare")["comparisons"][0]["verdict"]["differ"];
        let first = text(&differ["told"][0]);
        assert!(first.starts_with(told), "{told}: {differ}: {}", outcome.stdout);
        assert!(first.ends_with("the service does not have it"), "{differ}");
    }
}

#[test]
fn a_node_that_refuses_all_blocks_is_asked_for_those_of_the_rows() {
    let directory = tempfile::tempdir().unwrap();
    let mut more = SHORT.to_vec();
    more.extend(["--only", "address-rare"]);
    let url = serve(|_| {}, |_| Duration::ZERO, |_| {});
    let (_, report) = with(directory.path(), &url, &more);
    let comparison = &question(&report, "address-rare")["comparisons"][0];
    let asked = text(&comparison["asked"]).to_owned();
    assert_eq!(comparison["limited"], Value::Null);
    let (whole, timed) = asked.split_once("; timed: ").unwrap();
    let covered = timed.split_once(',').unwrap().0;
    assert!(whole.contains(": blocks 0 to "), "{asked}");

    let directory = tempfile::tempdir().unwrap();
    let url = limited(|filter| number(&filter["fromBlock"]) == 0);
    let (outcome, report) = with(directory.path(), &url, &more);
    let outcome = outcome.succeeded();
    let comparison = &question(&report, "address-rare")["comparisons"][0];
    assert_eq!(comparison["verdict"], "partly", "{comparison}");
    let tally = &report["compared"][0];
    assert_eq!(
        (number(&tally["equal"]), number(&tally["partly"])),
        (0, 1),
        "{tally}"
    );
    assert!(comparison["ratio"].as_f64() > Some(0.0), "{comparison}");
    let told = format!("address-rare: node was compared in part: only {covered} were asked for");
    assert!(outcome.stdout.contains(&told), "{told}: {}", outcome.stdout);
    assert!(outcome.stdout.contains("range is too wide"), "{}", outcome.stdout);
}

#[test]
fn answers_that_are_timed_are_those_that_were_compared() {
    // The first answer is the one that is compared, the second one shows what is timed, the others are timed.
    static SECOND: AtomicUsize = AtomicUsize::new(0);
    static THIRD: AtomicUsize = AtomicUsize::new(0);
    let from_second: Spoil = |logs| {
        if SECOND.fetch_add(1, Ordering::Relaxed) >= 1 {
            logs.clear();
        }
    };
    let from_third: Spoil = |logs| {
        if THIRD.fetch_add(1, Ordering::Relaxed) >= 2 {
            logs.clear();
        }
    };
    for (spoil, is_found, told) in [
        (from_second, true, "where it is timed its answer differs in"),
        (from_third, false, "bytes, the one that was compared"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let mut more = SHORT.to_vec();
        more.extend(["--only", "address-hot-100"]);
        let (outcome, report) = with(directory.path(), &node(spoil), &more);
        let outcome = match is_found {
            true => outcome.refused(&["1 answer differs"]),
            false => outcome.succeeded(),
        };
        let comparison = &question(&report, "address-hot-100")["comparisons"][0];
        assert_eq!(
            comparison["verdict"]["differ"].is_object(),
            is_found,
            "{comparison}"
        );
        assert!(text(&comparison["untimed"]).contains(told), "{comparison}");
        assert_eq!(comparison["ratio"], Value::Null, "{comparison}");
        assert_eq!(comparison["theirs_ms"], Value::Null, "{comparison}");
        assert!(outcome.stdout.contains(told), "{}", outcome.stdout);
    }
}

#[test]
fn a_node_that_is_behind_or_elsewhere_is_told_and_not_compared_with() {
    let behind: fn(&mut Vec<Value>) = |blocks| {
        blocks.pop();
    };
    let elsewhere: fn(&mut Vec<Value>) = |blocks| {
        if let Some(block) = blocks.last_mut() {
            block["block"]["hash"] = format!("0x{}", "ab".repeat(32)).into();
        }
    };
    for (change, told) in [(behind, "it is behind"), (elsewhere, "on another branch")] {
        let directory = tempfile::tempdir().unwrap();
        let url = serve(|_| {}, |_| Duration::ZERO, change);
        let mut more = SHORT.to_vec();
        more.extend(["--only", "address-hot-100"]);
        let (outcome, report) = with(directory.path(), &url, &more);
        let outcome = outcome.succeeded();
        let sentence = "not compared with the node at http://127.0.0.1";
        assert!(outcome.stdout.contains(sentence), "{}", outcome.stdout);
        assert!(outcome.stdout.contains(told), "{told}: {}", outcome.stdout);
        let asked = question(&report, "address-hot-100");
        assert!(list(&asked["comparisons"]).is_empty() && !list(&asked["measurements"]).is_empty());
    }
}

/// The demo's store lies in a directory that nobody chose.
#[test]
fn a_node_of_another_chain_is_told_as_that() {
    let other =
        |blocks: &mut Vec<Value>| blocks[0]["block"]["hash"] = format!("0x{}", "12".repeat(32)).into();
    let node = serve(|_| {}, |_| Duration::ZERO, other);
    let refused = bench(&["--demo", "--only", "logs", "--against-node", &node]);
    let refused = refused.refused(&[&node, "another chain", "0x1212", "name a node of that chain"]);
    assert!(!refused.sentence().contains("--data-dir"), "{refused:?}");
}
