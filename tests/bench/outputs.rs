//! Where reports go, and chains that have too little to ask about.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use quarry::store::{OpenOptions, Store};
use serde_json::Value;

use super::binary::{list, quarry};
use super::{SHORT, bench, demo, imported, question, read};

/// A store of the genesis block alone: no transaction, no log.
fn barren(directory: &Path) -> String {
    use std::io::{BufRead, BufReader, Write};
    let file = std::fs::File::open(demo("chain.jsonl.zst")).unwrap();
    let first = BufReader::new(zstd::Decoder::new(file).unwrap()).lines().next();
    let recording = directory.join("genesis.jsonl.zst");
    let file = std::fs::File::create(&recording).unwrap();
    let mut encoder = zstd::Encoder::new(file, 1).unwrap();
    writeln!(encoder, "{}", first.unwrap().unwrap()).unwrap();
    encoder.finish().unwrap();
    let (recording, genesis) = (recording.display().to_string(), demo("genesis.json"));
    let data = directory.join("data").display().to_string();
    let import = [
        "import",
        "chain",
        &recording,
        "--genesis",
        &genesis,
        "--data-dir",
        &data,
    ];
    quarry(import).succeeded();
    data
}

#[test]
fn a_chain_without_logs_is_measured_and_not_compared_with_postgres() {
    let directory = tempfile::tempdir().unwrap();
    let data = barren(directory.path());
    let json = directory.path().join("r.json").display().to_string();
    let mut args = vec!["--data-dir", &data, "--no-cold", "--json", &json];
    // Nobody listens there: nothing is asked of it.
    args.extend(["--against-postgres", "postgres://me@127.0.0.1:1/x"]);
    args.extend(SHORT);
    let outcome = bench(&args).succeeded();
    let told = "nothing was compared: the store has no logs";
    assert!(outcome.stdout.contains(told), "{}", outcome.stdout);
    let report = read(Path::new(&json));
    assert!(!list(&report["questions"]).is_empty());
    // Both reasons are true: there is nothing to pair.
    for name in ["topics-meeting", "topics-apart"] {
        let left_out = list(&report["left_out"])
            .iter()
            .find(|left_out| left_out["name"] == name)
            .unwrap_or_else(|| panic!("{name} is asked: {report}"));
        let reason = left_out["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("there are not enough common topics"),
            "{name}: {reason}"
        );
    }
}

#[test]
fn a_store_that_another_process_writes_is_measured_cold_only_where_that_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let json = directory.path().join("r.json").display().to_string();
    let run = |option: &[&str]| {
        let mut args = vec!["--data-dir", &data, "--only", "address-hot-100", "--json", &json];
        args.extend(option.iter().chain(&SHORT));
        bench(&args).succeeded();
        let report = read(Path::new(&json));
        let measured = list(&question(&report, "address-hot-100")["measurements"]);
        let is_cold = measured.iter().any(|measured| measured["cold"] == true);
        (report["settings"]["cold"].as_str().unwrap().to_owned(), is_cold)
    };
    assert!(run(&[]).1);
    let writer = Store::open(&OpenOptions::new(Path::new(&data).join("mainnet"))).unwrap();
    let (told, is_cold) = run(&[]);
    assert!(
        told.starts_with("not measured: another process writes this store"),
        "{told}"
    );
    assert!(!is_cold);
    assert!(run(&["--cold"]).1);
    drop(writer);
    assert!(run(&[]).1);
    assert_eq!(bench(&["--demo", "--cold", "--no-cold"]).code, Some(2));
}

#[test]
fn files_that_cannot_hold_a_report_are_refused_in_the_beginning() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (one, other) = (at("r"), at("s"));
    bench(&["--demo", "--json", &one, "--html", &one]).refused(&["the same file"]);
    assert!(!Path::new(&one).exists());
    std::os::unix::fs::symlink(&one, &other).unwrap();
    std::fs::write(&one, "before").unwrap();
    bench(&["--demo", "--json", &one, "--html", &other]).refused(&["the same file"]);
    bench(&["--demo", "--html", "-"]).refused(&["html", "`-`"]);
    bench(&["--demo", "--html", "/dev/stdout"]).refused(&["html", "/dev/stdout"]);
    bench(&["--demo", "--json", "/dev/null"]).refused(&["json", "no regular file"]);
    bench(&["--demo", "--json", &at("")]).refused(&["json", "no regular file"]);
    bench(&["--demo", "--list", "--json", &one]).refused(&["list", "json"]);
    bench(&["--demo", "--list", "--html", &one]).refused(&["list", "html"]);
    assert_eq!(std::fs::read_to_string(&one).unwrap(), "before");
}

#[test]
fn figures_go_to_standard_output_alone_where_that_is_asked_for() {
    let mut args = vec![
        "--demo",
        "--no-cold",
        "--only",
        "Address-hot-100,days",
        "--json",
        "-",
    ];
    args.extend(SHORT);
    let outcome = bench(&args).succeeded();
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let names: Vec<_> = list(&report["questions"])
        .iter()
        .map(|asked| &asked["name"])
        .collect();
    assert_eq!(
        names,
        [
            "address-hot-100",
            "daily-transactions",
            "daily-gas-price",
            "daily-block-time"
        ]
    );
    for found in list(&report["questions"][0]["measurements"]) {
        assert!(found["seconds"].as_f64().unwrap() > 0.01, "{found}");
    }
    assert!(outcome.stderr.contains("p50"), "{}", outcome.stderr);
}

#[test]
fn a_run_that_fails_before_it_measures_leaves_no_file_behind() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let (json, html, nowhere) = (at("r.json"), at("r.html"), at("nothing"));
    let args = ["--data-dir", &nowhere, "--json", &json, "--html", &html];
    bench(&args).refused(&["nothing"]);
    assert!(!Path::new(&json).exists() && !Path::new(&html).exists());
    // Nor where the second of them cannot be made.
    let missing = at("missing/r.html");
    bench(&["--demo", "--json", &json, "--html", &missing]).refused(&["missing/r.html"]);
    assert!(!Path::new(&json).exists());
}

#[test]
fn a_file_whose_name_is_no_text_is_written_and_the_command_shown() {
    let directory = tempfile::tempdir().unwrap();
    let html = directory.path().join(OsStr::from_bytes(b"r\xff.html"));
    let mut args = vec!["bench", "--demo", "--no-cold", "--only", "address-hot-100"];
    args.extend(SHORT);
    args.extend(["--json", "-", "--html"]);
    let outcome = quarry(args.into_iter().map(OsStr::new).chain([html.as_os_str()])).succeeded();
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let command = report["command"].as_str().unwrap();
    assert!(command.ends_with("/r\u{fffd}.html"), "{command}");
    let page = std::fs::read_to_string(&html).unwrap();
    assert!(page.contains("<svg") && page.contains("/r\u{fffd}.html"));
}
