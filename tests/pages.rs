//! `/docs` and `/` in a real browser, where one is installed: every form that is sent as it is filled in is answered
//! with 200, what is wrong is said, and nothing of an answer becomes part of the page.
//!
//! The clicking is done by `tools/see-pages.mjs`; here it is judged. What `/` makes of an answer of `/status` needs no browser
//! (`tools/see-status.mjs`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test that cannot go on says so by ending"
)]

#[path = "support/binary.rs"]
mod binary;

use std::cell::RefCell;
use std::io::Write as _;
use std::process::{Command, Stdio};

use binary::{Server, import_demo, list, text};
use serde_json::{Value, json};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

fn get(server: &Server, target: &str, accept: &str) -> binary::Reply {
    let request = format!("GET {target} HTTP/1.1\r\nhost: test\r\naccept: {accept}\r\n\r\n");
    binary::exchange(&server.address, &RefCell::default(), request.as_bytes()).unwrap()
}

#[test]
fn the_front_door_is_a_page_for_browsers_and_links_for_programs() {
    let server = Server::start(["demo"]);
    for accept in ["*/*", "application/json", "application/json, text/html;q=0.5", ""] {
        let reply = get(&server, "/", accept);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{accept}");
        let ways = reply.json();
        assert_eq!(ways["name"], "quarry");
        for (_, way) in ways
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, _)| *name != "name")
        {
            assert_eq!(server.get(text(way)).status, 200, "{way}");
        }
    }
    for (target, accept) in [("/", BROWSER), ("/docs", "*/*"), ("/docs", BROWSER)] {
        let reply = get(&server, target, accept);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        let policy = reply.header("content-security-policy").unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'sha256-",
            "style-src 'sha256-",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
    // Caches are told that the answer depends on who asks.
    let vary: Vec<String> = get(&server, "/", BROWSER)
        .headers
        .into_iter()
        .filter(|(name, _)| name == "vary")
        .map(|(_, value)| value)
        .collect();
    assert_eq!(vary, ["accept", "accept-encoding"]);
    server.stop();
}

/// What the page of a server shows where `/status` is answered with these reports; `None` without a program to run its script.
fn seen_of(server: &Server, reports: &[Value]) -> Option<Vec<Value>> {
    let page = get(server, "/", BROWSER).text();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/see-status.mjs");
    let mut command = Command::new("node");
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        crate::binary::skipped::skipped("node is not installed");
        return None;
    };
    let asked = json!({"page": page, "reports": reports}).to_string();
    child.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_status_page_tells_how_a_replica_is() {
    let data = tempfile::tempdir().unwrap();
    let data = data.path().to_str().unwrap();
    import_demo(data);
    let replica = Server::start(["serve", "--secondary", "--data-dir", data]);
    let alone = Server::start(["serve", "--data-dir", data]);
    // As both say themselves: nobody ever wrote there, and nobody is followed.
    let real = replica.json("/status");
    let told = |chain: Value, of: Value| {
        let mut report = real.clone();
        let to = &mut report["chains"]["mainnet"];
        for (part, more) in [(chain, false), (of, true)] {
            for (name, value) in part.as_object().unwrap() {
                let to = if more { &mut to["replica"] } else { &mut *to };
                to[name] = value.clone();
            }
        }
        report
    };
    let up = json!({"nodeUp": true, "following": true});
    let down = json!({"nodeUp": false, "following": true});
    let followed = json!({
        "seenSecondsAgo": 0.2, "writerSecondsAgo": 0.4, "writerIndexed": 362, "behind": 1,
    });
    let behind = json!({"nodeUp": true, "following": true, "nodeHead": 1381, "lag": 1020});
    let gone = json!({"writerSecondsAgo": 75.0});
    let reports = [
        real.clone(),
        alone.json("/status"),
        told(up.clone(), followed.clone()),
        told(behind, followed.clone()),
        told(down, followed),
        told(up.clone(), gone),
        told(up, json!({"seenSecondsAgo": 61.5, "writerSecondsAgo": 0.4})),
    ];
    let seen = seen_of(&replica, &reports);
    replica.stop();
    alone.stop();
    let Some(seen) = seen else { return };
    for (found, (pill, kind)) in seen.iter().zip([
        ("no writer", "warn"),
        ("served as stored", "good"),
        ("at the head", "good"),
        ("behind", "warn"),
        ("node down", "bad"),
        ("writer gone", "warn"),
        ("not following", "bad"),
    ]) {
        assert_eq!(
            found["chains"][0]["pill"],
            json!([pill, format!("pill {kind}")]),
            "{found}"
        );
        assert_eq!(found["title"], format!("Quarry: mainnet {pill}"));
        assert_eq!(found["trouble"], "");
        assert!(found["chains"][0]["facts"].get("replica").is_none(), "{found}");
    }
    let fact = |place: usize, name: &str| seen[place]["chains"][0]["facts"][name].clone();
    for (place, name, value) in [
        (0, "Writer", "never heard"),
        (0, "Node's head", "361nobody asks the node"),
        (1, "Node", "nonenothing is synced"),
        (2, "Behind", "0 blocks"),
        (2, "Replica", "seen 0 s agoall that was on the disk then"),
        (2, "Writer", "heard 0 s agohas block 362, 1 block more"),
        (3, "Node's head", "1,381the node answers"),
        (3, "Behind", "1,020 blocks"),
        (4, "Node's head", "361the node does not answer"),
        (5, "Node's head", "361nobody asks the node"),
        (5, "Writer", "heard 1 min 15 s ago"),
        (6, "Replica", "seen 1 min 1 s agonews of the store is not read"),
    ] {
        assert_eq!(fact(place, name), value, "{place} {name}");
    }
    assert_eq!((fact(1, "Replica"), fact(0, "Node")), (Value::Null, Value::Null));
}

/// Operations in the dialects of other services have no place under `/docs`.
#[test]
fn the_status_page_links_what_the_docs_have() {
    let server = Server::start(["demo"]);
    let address = "address=0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
    for target in [
        "/api/stats/total-supply".to_owned(),
        "/api?module=proxy&action=eth_gasPrice".to_owned(),
        format!("/api?module=account&action=balance&{address}"),
        "/nowhere".to_owned(),
    ] {
        server.get(&target);
    }
    server.rpc("eth_chainId", json!([])).unwrap();
    let docs = get(&server, "/docs", BROWSER).text();
    let seen = seen_of(&server, &[server.json("/status")]);
    server.stop();
    let Some(seen) = seen else { return };
    let links = list(&seen[0]["links"]);
    let mut linked = 0;
    for link in links {
        for target in list(&link[1]) {
            let name = text(target).strip_prefix("/docs#").unwrap();
            assert!(docs.contains(&format!(" id=\"{name}\"")), "{link}");
            linked += 1;
        }
    }
    assert!(links.len() > linked && linked > 0, "{links:?}");
}

#[test]
fn the_pages_work_in_a_browser() {
    let Ok(version) = Command::new("node").arg("--version").output() else {
        crate::binary::skipped::skipped("node is not installed");
        return;
    };
    assert!(version.status.success());
    let server = Server::start(["demo"]);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tools/see-pages.mjs");
    let output = Command::new("node")
        .args([script, &format!("http://{}", server.address)])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    if let Some(reason) = found["skipped"].as_str() {
        crate::binary::skipped::skipped(reason);
        return;
    }
    check_operations(&server, &found["docs"]);
    check_refusals(&found["docs"]);
    check_large(&found["docs"]);
    check_finding(&found["docs"]["finding"]);
    check_status(&found["status"]);
    for page in ["docs", "status"] {
        assert_eq!(found[page]["faults"], json!([]), "{page}");
    }
    server.stop();
}

/// Every operation is there, and its form as it is filled in is answered with what the same line of curl is.
fn check_operations(server: &Server, docs: &Value) {
    assert_eq!(text(&docs["chains"]), "mainnet: chain 31337, block 361");
    let listed: usize = server.json("/openapi.json")["paths"]
        .as_object()
        .unwrap()
        .values()
        .map(|path| match path["get"]["parameters"].as_array().unwrap() {
            // One form for each action.
            parameters if parameters.iter().any(|one| one["name"] == "action") => {
                list(&path["get"]["x-operations"]).len()
            }
            _ => 1,
        })
        .sum();
    let operations = list(&docs["operations"]);
    assert_eq!(operations.len(), listed);
    let examples: Value = serde_json::from_str(include_str!("../demo/examples.json")).unwrap();
    let mut compared = 0;
    for operation in operations {
        let id = text(&operation["id"]);
        assert_eq!(text(&operation["status"]), "200 OK", "{operation}");
        assert!(text(&operation["time"]).ends_with(" ms") || text(&operation["time"]).ends_with(" s"));
        assert!(operation["headers"]["content-type"].is_string(), "{operation}");
        let curl = text(&operation["curl"]);
        let target = curl
            .strip_prefix(&format!("curl 'http://{}", server.address))
            .and_then(|rest| rest.strip_suffix('\''))
            .unwrap_or_else(|| panic!("{curl}"));
        assert_eq!(server.get(target).status, 200, "{curl}");
        if target.starts_with("/api/") {
            let indexed = &operation["headers"]["x-indexed-block-number"];
            assert_eq!(indexed, "361", "{id}");
            assert!(operation["headers"]["etag"].is_string(), "{id}");
            // What is shown is what was answered, but for blanks and line ends.
            let without_blanks = |text: &str| text.split_whitespace().collect::<String>();
            let reply = server.get(target);
            let (shown, answered) = (text(&operation["body"]), reply.text());
            let (shown, answered) = (without_blanks(shown), without_blanks(&answered));
            assert!(answered.starts_with(&shown), "{id}:\n{shown}\n{answered}");
            assert!(!shown.is_empty(), "{id}");
            assert!(
                shown.len() == answered.len() || operation["shown"].as_u64() > Some(4000),
                "{id}"
            );
            // The example's parameters, in the order of the form.
            let answer: Value = reply.json();
            let example = examples.as_object().unwrap().values().any(|body| *body == answer);
            compared += usize::from(example);
        }
    }
    assert!(compared >= 50, "{compared} forms hold the example");
}

fn check_refusals(docs: &Value) {
    let refusal = &docs["refusal"];
    assert_eq!(text(&refusal["status"]), "400 Bad Request");
    assert_eq!(
        text(&refusal["body"]),
        "{\n  \"error\": \"Invalid address format\"\n}"
    );
    assert!(
        text(&docs["absent"]).starts_with("address: part of the path"),
        "{docs}"
    );
    // A slash in a value stays in its segment.
    assert_eq!(text(&docs["slash"]["status"]), "400 Bad Request");
    assert!(
        text(&docs["slash"]["curl"]).contains("/api/account/..%2F..%2Fhealth%3Fx%23y/balance"),
        "{}",
        docs["slash"]
    );
    let hostile = &docs["hostile"];
    assert_eq!(hostile["images"], 0, "{hostile}");
    assert_eq!(hostile["headers"]["etag"], "<b>x</b>");
    assert!(
        text(&hostile["body"]).contains("\"<img src=x onerror=alert(1)>\""),
        "{hostile}"
    );
    assert!(
        text(&hostile["body"]).contains("<svg onload=alert(2)>"),
        "{hostile}"
    );
}

/// A list of megabytes is read to its end, shown in part, and never stops the page.
fn check_large(docs: &Value) {
    for (name, unit) in [("large", " kB"), ("huge", " MB")] {
        let large = &docs[name];
        assert_eq!(text(&large["status"]), "200 OK");
        assert!(text(&large["size"]).ends_with(unit), "{}", large["size"]);
        assert!(
            text(&large["note"]).starts_with("Only the beginning is shown"),
            "{large}"
        );
        let shown = large["shown"].as_u64().unwrap();
        assert!((200_000..500_000).contains(&shown), "{shown}");
    }
    // Numbers beyond what JavaScript counts exactly stay as they are.
    assert!(text(&docs["huge"]["body"]).contains("\"n\": 12345678901234567890\n"));
    let blocked = docs["huge"]["blocked"].as_f64().unwrap();
    assert!(blocked < 5000.0, "the page stood still for {blocked} ms");
    let lines = &docs["lines"];
    assert_eq!(lines["headers"]["content-type"], "application/x-ndjson");
    assert_eq!(text(&lines["body"]).trim_end().lines().count(), 3, "{lines}");
    assert!(
        text(&lines["curl"]).starts_with("curl -H 'accept: application/x-ndjson' 'http"),
        "{lines}"
    );
    assert_eq!(lines["next"], true);
    let next = &docs["next"];
    assert_eq!(text(&next["status"]), "200 OK");
    assert!(!text(&next["cursor"]).is_empty(), "{next}");
    assert_ne!(next["body"], lines["body"]);
}

fn check_finding(finding: &Value) {
    assert_eq!(
        finding,
        &json!({
            "linked": "#T2",
            "focus": "search",
            "matches": ["A9"],
            "told": format!("1 of {} operations", finding["all"]),
            "opened": "#A9",
            "all": finding["all"],
            "curl": finding["curl"],
            "keys": "200 OK",
        })
    );
    assert!(finding["all"].as_u64() > Some(50));
    let curl = text(&finding["curl"]);
    assert!(
        curl.contains("/api/account/0x70997970c51812dc3a010c7d01b50e0d17dc79c8/tx-list?")
            && curl.contains("offset=3"),
        "{curl}"
    );
}

fn check_status(status: &Value) {
    assert_eq!(text(&status["title"]), "Quarry: mainnet served as stored");
    for words in ["mainnet", "chain id 31337", "361", "0 to 361", "kept"] {
        assert!(text(&status["chains"]).contains(words), "{words}: {status}");
    }
    for words in ["Requests a second", "Slow requests", "250 ms", "version"] {
        assert!(text(&status["service"]).contains(words), "{words}: {status}");
    }
    let trouble = text(&status["trouble"]);
    assert!(
        trouble.starts_with("The service cannot be reached since"),
        "{trouble}"
    );
    assert!(trouble.contains("What is shown is from"), "{trouble}");
    assert_eq!(text(&status["troubleTitle"]), "Quarry: cannot be reached");
    assert_eq!(status["afterwards"], status["title"]);
}
