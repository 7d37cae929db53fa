//! Pages out of a node's rows, and what a node says in the place of rows.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::json;

use super::{
    LogFilter, Node, OfNode, Other, Page, Patience, Plain, Row, all_of, differences, ends, rows, theirs,
};
use crate::model::{Address, PlacedLog};
use crate::node::NodeConfig;

fn row(block_number: u64) -> Row {
    Row {
        log: PlacedLog {
            block_number,
            ..PlacedLog::default()
        },
        ..Row::default()
    }
}

#[test]
fn a_row_that_the_service_lacks_is_missed_wherever_it_lies() {
    let all: Vec<_> = (1..=20).map(row).collect();
    let lacks = |page: u64, offset: u64, given: &[u64], is_whole| {
        let filter = LogFilter::of(Address::ZERO, offset).page(page);
        // The page before is as it should be.
        let before = all.get(..filter.skip() as usize).and_then(ends);
        let page = Page {
            filter: &filter,
            before: before.map(|(_, last)| last),
            rows: given.iter().copied().map(row).collect(),
        };
        differences(&page.rows, &page.out_of(&all, (1, 20), is_whole)).told
    };
    let nothing: [String; 0] = [];
    let missing = |block: u64| [format!("block {block}, log 0: the service does not have it")];
    assert_eq!(lacks(1, 4, &[1, 2, 3, 4], true), nothing);
    // In its middle, and as what a page that is full begins with.
    assert_eq!(lacks(1, 4, &[1, 3, 4, 5], true), missing(2));
    assert_eq!(lacks(1, 4, &[2, 3, 4, 5], true), missing(1));
    // The last of a page that is not full, of any page.
    let most: Vec<_> = (1..20).collect();
    assert_eq!(lacks(1, 100, &most, true), missing(20));
    assert_eq!(lacks(3, 9, &[19], true), missing(20));
    assert_eq!(lacks(3, 9, &[19, 20], true), nothing);
    assert_eq!(lacks(2, 4, &[5, 6, 7, 8], true), nothing);
    assert_eq!(lacks(2, 4, &[5, 7, 8, 9], true), missing(6));
    // The first of a later page; and another page in its place.
    assert_eq!(lacks(2, 4, &[6, 7, 8, 9], true), missing(5));
    assert_eq!(lacks(3, 4, &[1, 2, 3, 4], true).len(), 4);
    // Rows out of order, and of blocks that were not asked for.
    let told = lacks(1, 4, &[4, 3, 2, 1], true);
    assert!(told.len() == 1 && told[0].contains("out of order"), "{told:?}");
    let page = Page {
        filter: &LogFilter::of(Address::ZERO, 2),
        before: None,
        rows: vec![row(1), row(2)],
    };
    let theirs = [row(1), row(2), row(9)];
    assert_eq!(
        differences(&page.rows, &page.out_of(&theirs, (0, 2), true)).told,
        missing(9)
    );
    // Nothing where there is something, and nothing where there is nothing.
    assert_eq!(lacks(2, 19, &[], true), missing(20));
    assert_eq!(lacks(3, 10, &[], true), nothing);
    // Where only the blocks of its rows were asked for, nothing is said of the others.
    assert_eq!(lacks(1, 100, &[2, 4, 5], false), missing(3));
}

#[test]
fn what_a_log_lacks_or_garbles_is_not_taken_for_equal() {
    let word = format!("0x{}", "11".repeat(32));
    let log = json!({
        "address": format!("0x{}", "22".repeat(20)), "topics": [word], "data": "0x", "blockNumber": "0x1",
        "transactionHash": word, "logIndex": "0x0", "removed": false,
        "blockHash": word, "transactionIndex": "0x2", "blockTimestamp": "0x3",
    });
    let read = |log: &serde_json::Value| rows(&json!([log]).to_string());
    let row = read(&log).unwrap().remove(0);
    assert_eq!((row.transaction_index, row.timestamp), (Some(2), Some(3)));
    let with = |name: &str, value: serde_json::Value| {
        let mut other = log.clone();
        other[name] = value;
        read(&other)
    };
    assert_eq!(with("blockTimestamp", json!(null)).unwrap()[0].timestamp, None);
    for (name, value) in [
        ("blockTimestamp", json!(3)),
        ("blockTimestamp", json!("3")),
        ("transactionIndex", json!("2")),
        ("transactionIndex", json!(null)),
        ("blockHash", json!(null)),
    ] {
        assert!(with(name, value.clone()).is_err(), "{name} {value}");
    }
}

#[test]
fn what_a_node_says_moves_no_terminal() {
    let garbled = || Err("malformed logs: `\u{1b}[2J\u{202e}0x`".to_owned());
    let refusal = all_of(vec![Ok(Vec::new()), garbled()]).map(drop).unwrap_err();
    assert_eq!(refusal.why, "the node: malformed logs: ` [2J0x`");
    assert!(!refusal.is_late && !refusal.is_rest);
}

/// Answers one request after another, with what is said after `HTTP/1.1 ` to the JSON of each.
fn converse(stream: TcpStream, answer: impl Fn(&serde_json::Value) -> String) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut length, mut line) = (0, String::new());
        while stream.read_line(&mut line)? > 2 {
            let header = line.trim().to_ascii_lowercase();
            if let Some(value) = header.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        if length == 0 {
            return Ok(());
        }
        let mut request = vec![0; length];
        stream.read_exact(&mut request)?;
        let request = serde_json::from_slice(&request).unwrap();
        write!(stream.get_mut(), "HTTP/1.1 {}", answer(&request))?;
    }
}

/// A node that answers so.
fn answering(answer: impl Fn(&serde_json::Value) -> String + Copy + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || converse(stream, answer));
        }
    });
    url
}

/// The answer to a request that there are no logs.
fn no_logs(request: &serde_json::Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": request["id"], "result": []}).to_string();
    format!("200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A node at this URL of which nothing is asked twice.
async fn connected(url: String) -> Node {
    let config = NodeConfig {
        attempts_max: 1,
        ..NodeConfig::new(url)
    };
    Node::connect(config).await.unwrap()
}

#[tokio::test]
async fn a_node_that_cannot_be_asked_as_the_service_is_is_not_timed_in_another_way() {
    // The client of the sync has its answers, and there is no other connection.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut node = OfNode {
        node: connected(answering(no_logs)).await,
        plain: Plain::of(&NodeConfig::new(format!("http://{nobody}"))),
    };
    let filter = LogFilter::of(Address::ZERO, 100);
    assert!(node.logs(&filter).await.is_ok_and(|rows| rows.is_empty()));
    let Err(refusal) = node.settle(&filter, &[]).await else {
        panic!("it is timed")
    };
    assert!(
        refusal.is_late && refusal.why.starts_with("the node: cannot connect to 127.0.0.1:"),
        "{}",
        refusal.why
    );
}

#[tokio::test]
async fn what_a_node_answers_while_it_is_timed_is_kept_no_longer_than_the_sync_takes() {
    let url = answering(no_logs);
    let whole = async |response_bytes_max| {
        let config = NodeConfig {
            response_bytes_max,
            ..NodeConfig::new(url.clone())
        };
        Plain::of(&config).unwrap().whole("eth_getLogs", "[]").await
    };
    let body = r#"{"id":1,"jsonrpc":"2.0","result":[]}"#;
    assert!(whole(36).await.is_ok_and(|found| found.len() == body.len()));
    let Err(refusal) = whole(35).await else {
        panic!("all of it is kept")
    };
    assert_eq!(
        refusal.why,
        "the node: eth_getLogs: an answer of 36 bytes, of which 35 are taken"
    );
}

#[tokio::test]
async fn a_node_that_asks_to_be_left_alone_has_refused_and_is_not_waited_for() {
    let rest = "429 Too Many Requests\r\nretry-after: 60\r\ncontent-length: 9\r\n\r\nslow down";
    let url = answering(move |_| rest.to_owned());
    let mut node = OfNode::of(&connected(url).await);
    let mut patience = Patience::new(Duration::from_secs(2));
    let filter = LogFilter::of(Address::ZERO, 100);
    // All blocks, of which some are covered, and those alone; more questions than may be late in a row.
    for (possible, told) in [
        ((0, 9), "rate limited: slow down (for 60 s)"),
        ((0, 9), "left alone"),
        ((3, 4), "left alone"),
        ((0, 9), "left alone"),
    ] {
        let Err(why) = theirs(&mut node, &mut patience, &filter, possible, (3, 4)).await else {
            panic!("it answers")
        };
        assert!(why.contains("rate limited") && why.contains(told), "{why}");
        assert!(!patience.ends_question());
    }
    assert!(!patience.is_over() && patience.spared.is_none());
}
