//! A node that states other logs than it should.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use serde_json::{Value, json};

use super::binary::{list, number, text};
use super::{SHORT, bench, imported, question, read};

/// What a fake node does with the logs that it was asked for.
type Spoil = fn(&mut Vec<Value>);

/// The logs of the demo chain as a node lists them, served to one connection after another.
fn node(spoil: Spoil) -> String {
    let blocks: Vec<Value> = {
        let file = std::fs::File::open(super::demo("chain.jsonl.zst")).unwrap();
        let lines = BufReader::new(zstd::Decoder::new(file).unwrap()).lines();
        lines
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect()
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let blocks = std::sync::Arc::new(blocks);
        for stream in listener.incoming().map_while(Result::ok) {
            let blocks = std::sync::Arc::clone(&blocks);
            std::thread::spawn(move || {
                let _ = converse(stream, &blocks, spoil);
            });
        }
    });
    format!("http://{address}")
}

fn converse(stream: TcpStream, blocks: &[Value], spoil: Spoil) -> std::io::Result<()> {
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
        match result(&request, blocks, spoil) {
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
    let (data, url) = (imported(directory), node(spoil));
    let json = directory.join("r.json");
    let json_arg = json.display().to_string();
    let mut args = vec![
        "--data-dir",
        &data,
        "--against-node",
        &url,
        "--no-cold",
        "--json",
        &json_arg,
    ];
    args.extend(SHORT);
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
    let lies: [(Spoil, &str); 4] = [
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
    ];
    for (spoil, told) in lies {
        let directory = tempfile::tempdir().unwrap();
        let (outcome, report) = against(directory.path(), spoil);
        let outcome = outcome.refused(&["answers differ"]);
        assert!(outcome.stdout.contains(told), "{told}: {}", outcome.stdout);
        let comparison = &question(&report, "address-hot")["comparisons"][0];
        assert!(
            comparison["verdict"]["differ"]["rows"].as_u64() > Some(0),
            "{comparison}"
        );
    }
}
