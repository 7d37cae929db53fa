//! `--log` and `--log-format`.

use serde_json::Value;

use crate::binary::{Server, import_demo, quarry};

#[test]
fn a_wrong_filter_is_a_sentence() {
    for (filter, why) in [
        ("inf", "`inf` is none of off, error, warn, info, debug, trace"),
        ("quarry=lots", "error parsing level filter"),
        ("info debug", "`info debug` is none of"),
    ] {
        quarry(["config", "--log", filter]).refused(&["log: ", "is not a filter such as `info`", why]);
    }
    // Of a file too.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("quarry.toml");
    std::fs::write(&path, "log = \"loud\"\n").unwrap();
    quarry(["config", "--config", path.to_str().unwrap()]).refused(&["`loud` is none of"]);
    let wrong = quarry(["config", "--log-format", "xml"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.stderr.contains("[possible values: text, json]"),
        "{wrong:?}"
    );
}

#[test]
fn lines_are_objects_where_a_file_asks_for_it_and_the_filter_holds() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let path = data.path().join("quarry.toml");
    std::fs::write(&path, "log_format = \"json\"\nlog = \"info\"\n").unwrap();
    let args = ["serve", "--data-dir", store, "--config", path.to_str().unwrap()];
    let log = logged(&args);
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let request = lines
        .iter()
        .find(|line| line["target"] == "quarry::http::request");
    let request = request.unwrap_or_else(|| panic!("no line of a request: {log}"));
    assert_eq!(request["level"], "INFO");
    assert_eq!(request["fields"]["path"], "/health");
    assert_eq!(request["fields"]["status"], 200);
    assert!(request["timestamp"].as_str().unwrap().ends_with('Z'), "{request}");
    // The path is logged, the query never.
    assert!(!log.contains("secret"), "{log}");

    let silent = args
        .into_iter()
        .chain(["--log", "info,quarry::http::request=off"]);
    let log = logged(&silent.collect::<Vec<_>>());
    assert!(
        log.contains("\"serving\"") && !log.contains("quarry::http::request"),
        "{log}"
    );
}

/// What a server logs of one request, from its start to its end.
fn logged(args: &[&str]) -> String {
    let server = Server::start(args);
    assert_eq!(server.get("/health?key=secret").status, 200);
    server.stop_logged()
}
