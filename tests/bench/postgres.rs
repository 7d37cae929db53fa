//! Against a real PostgreSQL, where one is installed: started for the test on a port of its own, in a directory of its
//! own, as a user without privileges.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::binary::signal::{Signal, send};
use super::binary::{Server, command, eventually, interrupt, list, number, text};
use super::service::{Turns, lasting, spoiling, through};
use super::{SHORT, bench, differs, imported, measuring, question, read};

/// How many schemas of a run there are.
const THERE: &str = "SELECT count(*) FROM pg_namespace WHERE nspname = 'quarry_bench_mainnet'";

/// The directory of the server's programs: `QUARRY_POSTGRES`, else where Debian installs the newest.
fn programs() -> Option<PathBuf> {
    let named = std::env::var_os("QUARRY_POSTGRES").map(PathBuf::from);
    let mut installed: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").is_file() && bin.join("postgres").is_file())
        .collect();
    installed.sort();
    let found = named.or_else(|| installed.pop());
    if found.is_none() {
        crate::binary::skipped::skipped(
            "no PostgreSQL server (apt-get install postgresql, or set QUARRY_POSTGRES to its bin directory)",
        );
    }
    found
}

/// A program run as `nobody` where we are root, whom the server refuses.
fn unprivileged(program: &Path) -> Command {
    let is_root = Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|id| id.stdout == b"0\n");
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(program);
    command
}

/// A server; ends with its guard.
struct Postgres {
    child: Child,
    url: String,
    _directory: tempfile::TempDir,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT to the postmaster ends its children too.
        send(&self.child, Signal::QUIT);
        let _ = self.child.wait();
    }
}

impl Postgres {
    fn start() -> Option<Self> {
        let programs = programs()?;
        let directory = tempfile::tempdir().unwrap();
        // Whoever runs it must reach it and own what lies below.
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let data = directory.path().join("data");
        let made = unprivileged(&programs.join("initdb"))
            .args([
                "--auth=trust",
                "--username=quarry",
                "--no-sync",
                "--encoding=UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = unprivileged(&programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-k", ""])
            .args(["-c", "fsync=off"])
            .current_dir(directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Self {
            child,
            url: format!("postgres://quarry@127.0.0.1:{port}/postgres"),
            _directory: directory,
        };
        let mut lines = BufReader::new(server.child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let ready = lines.any(|line| line.contains("ready to accept connections"));
        std::thread::spawn(move || lines.for_each(drop));
        assert!(ready, "the server should start");
        eventually("the port opens", Duration::from_secs(10), || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(server)
    }

    fn sql(&self, sql: &str) -> String {
        let output = Command::new("psql")
            .args([&self.url, "-At", "-c", sql])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

#[test]
fn the_same_logs_in_postgres_give_the_same_answers() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let json = directory.path().join("r.json");
    let json_arg = json.display().to_string();
    let mut args = vec![
        "--data-dir",
        &data,
        "--against-postgres",
        &server.url,
        "--no-cold",
        "--json",
        &json_arg,
    ];
    args.extend(SHORT);
    server.sql("CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 1 AS one");
    let outcome = bench(&args).succeeded();
    assert!(
        outcome.stdout.contains("0 differ, 0 not compared"),
        "{}",
        outcome.stdout
    );
    let report = read(&json);
    let mut rows = 0;
    for asked in list(&report["questions"])
        .iter()
        .filter(|asked| asked["group"] == "logs")
    {
        // With a join as an explorer asks, and without.
        let comparisons = list(&asked["comparisons"]);
        let names: Vec<_> = comparisons.iter().map(|found| text(&found["with"])).collect();
        assert_eq!(names, ["postgres", "postgres-flat"]);
        for comparison in comparisons {
            assert_eq!(comparison["verdict"], "equal", "{comparison}");
            for figure in [
                "ours_ms",
                "ours_in_process_ms",
                "theirs_ms",
                "ratio",
                "ratio_in_process",
            ] {
                assert!(
                    comparison[figure].as_f64().is_some_and(|it| it > 0.0),
                    "{comparison}"
                );
            }
        }
        rows += number(&comparisons[0]["rows"]);
    }
    assert!(rows > 100, "{rows} rows were compared");
    let logs = number(&report["store"]["logs"]);
    assert_eq!(
        server.sql("SELECT count(*) FROM quarry_bench_mainnet.logs"),
        logs.to_string()
    );
    let transactions = number(&report["store"]["transactions"]);
    assert_eq!(
        server.sql("SELECT count(*) FROM quarry_bench_mainnet.transactions"),
        transactions.to_string()
    );
    // An answer without the join would not notice this.
    server.sql("UPDATE quarry_bench_mainnet.transactions SET timestamp = timestamp + 1");
    let outcome = differs(bench(&args));
    assert!(outcome.stdout.contains("timestamp"), "{}", outcome.stdout);
    let report = read(&json);
    let asked = question(&report, "address-hot");
    assert_eq!(asked["comparisons"][1]["verdict"], "equal", "{asked}");
    server.sql("UPDATE quarry_bench_mainnet.transactions SET timestamp = timestamp - 1");

    // The second run finds them there, and finds what somebody changed.
    server.sql("UPDATE quarry_bench_mainnet.logs SET data = '\\x99'");
    let outcome = differs(bench(&args));
    assert!(outcome.stdout.contains("other data"), "{}", outcome.stdout);
    let told = read(&json)["others"][0].as_str().unwrap().to_owned();
    assert!(told.contains("loaded by an earlier run"), "{told}");

    // What lacks a table was not loaded to its end, whatever it says of itself.
    server.sql("DROP TABLE quarry_bench_mainnet.transactions");
    bench(&args).succeeded();
    let told = read(&json)["others"][0].as_str().unwrap().to_owned();
    assert!(told.contains("loaded and indexed in"), "{told}");

    // Fewer logs are another load, of whole blocks; the schema goes in the end and nothing else does.
    args.extend(["--postgres-logs", "100", "--postgres-drop", "--only", "address"]);
    bench(&args).succeeded();
    let report = read(&json);
    let told = report["others"][0].as_str().unwrap().to_owned();
    assert!(told.contains("loaded and indexed in"), "{told}");
    // A far page of these has rows, though that of the chain would lie beyond them.
    let deep = question(&report, "address-hot-deep");
    let comparison = &deep["comparisons"][0];
    assert_eq!(comparison["verdict"], "equal", "{comparison}");
    assert!(number(&comparison["rows"]) > 0, "{comparison}");
    // The blocks of a range lie where such logs are, of those that are loaded.
    let mut ranges = args.clone();
    let only = ranges.len() - 1;
    ranges[only] = "topic-range";
    bench(&ranges).succeeded();
    for asked in list(&read(&json)["questions"]) {
        let comparison = &asked["comparisons"][0];
        assert_eq!(comparison["verdict"], "equal", "{comparison}");
        assert!(number(&comparison["rows"]) > 0, "{comparison}");
    }
    // Nothing was compared where neither side has a row; only what is there to find nothing is equal then.
    for asked in list(&report["questions"]) {
        let comparison = &asked["comparisons"][0];
        if comparison["rows"] == 0 && asked["name"] != "address-apart" {
            assert_eq!(comparison["verdict"], "empty", "{comparison}");
            assert_eq!(comparison["ratio"], serde_json::Value::Null);
        }
    }
    let schemas = "SELECT count(*) FROM pg_namespace WHERE nspname IN ('quarry_bench_mainnet', 'other')";
    assert_eq!(server.sql(schemas), "1");
    assert_eq!(server.sql("SELECT one FROM other.t"), "1");

    // Where nothing is compared, nothing is loaded; what is there goes all the same.
    server.sql("CREATE SCHEMA quarry_bench_mainnet; COMMENT ON SCHEMA quarry_bench_mainnet IS 'made by quarry bench'");
    args[only] = "transaction-status";
    let outcome = bench(&args).succeeded();
    assert!(
        outcome.stdout.contains("nothing was compared"),
        "{}",
        outcome.stdout
    );
    assert_eq!(server.sql(schemas), "1");
    args[only] = "address-hot-100";

    // A schema of that name that is somebody else's stays as it is.
    server.sql("CREATE SCHEMA quarry_bench_mainnet");
    bench(&args).refused(&["quarry_bench_mainnet", "did not make"]);
    assert_eq!(server.sql(schemas), "2");
}

/// Short questions whose names contain `only`, compared with a database.
fn against<'a>(data: &'a str, url: &'a str, only: &'a str, limit: &'a str) -> Vec<&'a str> {
    let mut args = vec!["--data-dir", data, "--against-postgres", url, "--no-cold"];
    args.extend(["--only", only, "--seconds", "0.02", "--limit", limit]);
    args
}

/// How many runs wait for tables that somebody holds.
const WAITS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'quarry bench' AND wait_event_type = 'Lock'";

/// A session of `psql` that runs statements and stays; ends with its guard.
struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Postgres {
    /// Runs statements in a session that is left open after them.
    fn keep(&self, sql: &str) -> Session {
        let mut child = Command::new("psql")
            .args([&self.url, "-Atq"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        writeln!(stdin, "{sql};\nSELECT 'ready';").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok);
        assert!(lines.any(|line| line == "ready"));
        Session(child)
    }
}

/// Runs it while somebody holds the tables from the first question on, to its end or until it asks no more.
fn held_up(server: &Postgres, args: &[&str], to_its_end: bool) -> Option<i32> {
    let (mut child, mut lines) = measuring(command(["bench"].iter().chain(args)));
    let held = server.keep("BEGIN; LOCK TABLE quarry_bench_mainnet.logs");
    let is_over = |line: String| line.contains("PostgreSQL is not asked any more");
    assert!(lines.any(is_over), "PostgreSQL is given up");
    let held = Some(held).filter(|_| to_its_end);
    let left: Vec<_> = lines.collect();
    let status = child.wait().unwrap();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    let stays = "the schema quarry_bench_mainnet stays";
    assert_eq!(log.contains(stays), held.is_some(), "{left:?}: {log}");
    assert_eq!(log.contains("lock timeout"), held.is_some(), "{log}");
    status.code()
}

#[test]
fn the_schema_goes_however_the_run_ends_and_says_so_where_it_stays() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let mut args = against(&data, &server.url, "address", "20");
    bench(&args).succeeded();
    assert_eq!(server.sql(THERE), "1");

    // Somebody who holds the tables holds up each question, until PostgreSQL is asked no more; and keeps the schema.
    args.push("--postgres-drop");
    assert_eq!(held_up(&server, &args, true), Some(1));
    assert_eq!(server.sql(THERE), "1");
    // Where he is gone in the end, the schema goes though PostgreSQL was given up.
    assert_eq!(held_up(&server, &args, false), Some(0));
    assert_eq!(server.sql(THERE), "0");

    // Another run has the schema.
    let reserved = server.keep("SELECT pg_advisory_lock(hashtext('quarry_bench_mainnet'))");
    bench(&args).refused(&["another run of quarry bench uses the schema"]);
    drop(reserved);

    // A signal while it is loaded.
    server.sql(
        "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); END $$; \
         CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION slow()",
    );
    let mut child = command(["bench"].iter().chain(&args)).spawn().unwrap();
    eventually("indexes are made", Duration::from_secs(60), || {
        (server.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1")
            .then_some(())
    });
    interrupt(&child);
    let status = eventually("it ends", Duration::from_secs(30), || child.try_wait().unwrap());
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(
        log.contains("while the logs were loaded into PostgreSQL"),
        "{log}"
    );
    assert_eq!(server.sql(THERE), "0", "{log}");
}

#[test]
fn the_schema_goes_where_only_the_connection_to_it_died() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let mut args = against(&data, &server.url, "address", "60");
    args.push("--postgres-drop");
    let (child, lines) = measuring(command(["bench"].iter().chain(&args)));
    assert_eq!(server.sql(THERE), "1");
    server.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quarry bench'",
    );
    let told: Vec<_> = lines.collect();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{told:?} {output:?}");
    assert_eq!(server.sql(THERE), "0", "{told:?}");
}

#[test]
fn the_schema_goes_where_the_session_ends_within_a_statement() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let mut args = against(&data, &server.url, "address-hot-100", "20");
    args.push("--postgres-drop");
    server.sql(
        "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(600); END $$; \
         CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION slow()",
    );
    let ends = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    // Whether the connection is closed by then is a matter of chance.
    for _ in 0..3 {
        let child = command(["bench"].iter().chain(&args)).spawn().unwrap();
        eventually("indexes are made", Duration::from_secs(60), || {
            (server.sql(ends) == "1").then_some(())
        });
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{log}");
        assert!(log.contains("terminating connection"), "{log}");
        assert_eq!(server.sql(THERE), "0", "{log}");
    }
}

#[test]
fn who_holds_the_tables_in_the_beginning_is_waited_for_in_a_short_run_too() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let args = against(&data, &server.url, "address-hot-100", "20");
    bench(&args).succeeded();
    let held = server.keep("BEGIN; LOCK TABLE quarry_bench_mainnet.logs");
    let child = command(["bench"].iter().chain(&args)).spawn().unwrap();
    eventually("it waits", Duration::from_secs(60), || {
        (server.sql(WAITS) == "1").then_some(())
    });
    // Statements that are compared have a second in such a run, half of it for locks.
    std::thread::sleep(Duration::from_secs(2));
    drop(held);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn a_checkpoint_that_may_not_be_asked_for_is_told() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let json = directory.path().join("r.json");
    server.sql("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain");
    let told = |url: &str| {
        let mut args = against(&data, url, "address-hot-100", "60");
        args.extend(["--postgres-drop", "--json", json.to_str().unwrap()]);
        bench(&args).succeeded();
        text(&read(&json)["others"][0]).to_owned()
    };
    let without = "without a checkpoint";
    let of_plain = told(&server.url.replace("quarry@", "plain@"));
    assert!(of_plain.contains(without), "{of_plain}");
    assert!(!told(&server.url).contains(without));
}

/// Something before a server that swallows what that says once it has said so many times that it is ready (`ReadyForQuery`).
fn falling_silent(server: &Postgres, after: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (behind, _) = server.url["postgres://quarry@".len()..].split_once('/').unwrap();
    let behind = behind.to_owned();
    let url = server.url.replace(&behind, &format!("127.0.0.1:{port}"));
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&behind).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                to.shutdown(Shutdown::Both)
            });
            std::thread::spawn(move || pass_on(server, client, after));
        }
    });
    url
}

/// Passes on messages of a server: a byte that tells which, a length that counts itself, and the rest.
fn pass_on(mut server: TcpStream, mut client: TcpStream, after: usize) -> std::io::Result<()> {
    let (mut head, mut ready) = ([0; 5], 0);
    loop {
        server.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let mut rest = vec![0; length - 4];
        server.read_exact(&mut rest)?;
        if ready < after {
            client.write_all(&head)?;
            client.write_all(&rest)?;
        }
        ready += usize::from(head[0] == b'Z');
    }
}

#[test]
fn a_database_that_falls_silent_is_not_waited_for_without_end() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let run = |url: &str| {
        let args = against(&data, url, "address-hot", "10");
        let began = Instant::now();
        (bench(&args), began.elapsed())
    };
    run(&server.url).0.succeeded();
    // After the handshake, while it is prepared, and while it is compared, which the rest of the run goes on without.
    for (after, code) in [(1, 1), (3, 1), (130, 0)] {
        let (outcome, took) = run(&falling_silent(&server, after));
        assert_eq!(outcome.code, Some(code), "{after}: {outcome:?}");
        assert!(took < Duration::from_secs(50), "{after}: {took:?}");
        let told = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(told.contains("no answer within"), "{after}: {outcome:?}");
    }
}

#[test]
fn a_signal_while_postgres_is_asked_ends_its_statement() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let mut args = against(&data, &server.url, "address-hot", "300");
    bench(&args).succeeded();
    // Else it might be through with its question before somebody holds the tables.
    let seconds = args.iter().position(|arg| *arg == "--seconds").unwrap() + 1;
    args[seconds] = "3";
    let (mut child, lines) = measuring(command(["bench"].iter().chain(&args)));
    let held = server.keep("BEGIN; LOCK TABLE quarry_bench_mainnet.logs");
    eventually("it asks", Duration::from_secs(60), || {
        (server.sql(WAITS) == "1").then_some(())
    });
    interrupt(&child);
    let status = eventually("it ends", Duration::from_secs(20), || child.try_wait().unwrap());
    let told: Vec<_> = lines.collect();
    assert_eq!(status.code(), Some(0), "{told:?}");
    assert!(
        told.iter().any(|line| line.contains("stopped by a signal")),
        "{told:?}"
    );
    // Somebody still holds the tables, and nobody waits for them.
    let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'quarry bench'";
    eventually("its session is gone", Duration::from_secs(10), || {
        (server.sql(left) == "0").then_some(())
    });
    drop(held);
}

/// What the first question of a report was compared with, and what came of it.
#[track_caller]
fn verdicts<'a>(report: &'a Value, name: &str) -> Vec<(&'a str, &'a Value)> {
    list(&question(report, name)["comparisons"])
        .iter()
        .map(|found| (text(&found["with"]), &found["verdict"]))
        .collect()
}

#[test]
fn rows_of_a_part_of_the_chain_that_one_of_both_lacks_are_a_difference() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    // Rows are asked for one by one where the middle one is looked for of the logs that are loaded, and nowhere else.
    let lacks_the_middle: Turns = |target| {
        Some(match target.ends_with("&offset=1") {
            true => format!("{}&page=9999&offset=1", without_page(&target)),
            false => target,
        })
    };
    let (honest, lacking) = (
        spoiling(&service, |_| {}, Some),
        spoiling(&service, |_| {}, lacks_the_middle),
    );
    let run = |url: &str, only: &str| {
        let mut more = vec!["--clients", "1", "--only", only];
        more.extend(["--against-postgres", &server.url, "--postgres-logs", "100"]);
        through(directory.path(), &data, url, &more)
    };
    let names = ["postgres", "postgres-flat"];
    let (outcome, report) = run(&honest, "topic-range-hot");
    outcome.succeeded();
    let equal = Value::from("equal");
    assert_eq!(
        verdicts(&report, "topic-range-hot"),
        names.map(|name| (name, &equal))
    );

    let (outcome, report) = run(&lacking, "topic-range-hot");
    let outcome = outcome.refused(&["2 answers differ"]);
    assert!(!outcome.stdout.contains("no such log"), "{}", outcome.stdout);
    let found = verdicts(&report, "topic-range-hot");
    assert_eq!([found[0].0, found[1].0], names);
    for (_, verdict) in found {
        let told = text(&verdict["differ"]["told"][0]);
        assert!(told.starts_with("the service does not have row "), "{verdict}");
        assert!(
            told.contains(" that PostgreSQL has in blocks up to "),
            "{verdict}"
        );
        assert_eq!(verdict["differ"]["rows"], 1, "{verdict}");
    }

    // None in the database: the service's are too many, of a range and of a far page.
    server.sql("DELETE FROM quarry_bench_mainnet.logs");
    for only in ["topic-range-hot", "address-hot-deep"] {
        let (outcome, report) = run(&honest, only);
        let outcome = outcome.refused(&["2 answers differ"]);
        assert!(
            outcome.stdout.contains("only the service has it"),
            "{}",
            outcome.stdout
        );
        assert!(
            verdicts(&report, only)
                .iter()
                .all(|(_, found)| found["differ"].is_object())
        );
    }
    // None in either: nothing is compared.
    for only in ["topic-range-hot", "address-hot-deep"] {
        let (outcome, report) = run(&lacking, only);
        outcome.succeeded();
        for (_, verdict) in verdicts(&report, only) {
            let told = text(&verdict["unanswered"]);
            assert!(
                told.starts_with("no such log lies in the blocks up to "),
                "{verdict}"
            );
        }
    }
}

/// The path and query of a page without the page.
fn without_page(target: &str) -> String {
    let parts = target.split('&');
    let kept: Vec<_> = parts
        .filter(|part| !part.starts_with("page=") && !part.starts_with("offset="))
        .collect();
    kept.join("&")
}

#[test]
fn a_comparison_that_ends_with_the_time_of_its_question_is_told_of_once() {
    let Some(server) = Postgres::start() else { return };
    let directory = tempfile::tempdir().unwrap();
    let data = imported(directory.path());
    let service = Server::start(["serve", "--data-dir", &data]);
    let hangs: Turns = |target| {
        if target.ends_with("&offset=1") {
            std::thread::sleep(Duration::from_secs(100));
        }
        Some(target)
    };
    let url = spoiling(&service, |_| {}, hangs);
    // One comparison, which has the time of its question, for other questions are left that are not compared.
    let more = [
        "--clients",
        "1",
        "--only",
        "topic-range-hot,lists,days",
        "--against-postgres",
        &server.url,
        "--postgres-logs",
        "100",
    ];
    let time = ["--seconds", "0.02", "--limit", "10"];
    let (outcome, report) = lasting(directory.path(), &data, &url, &time, &more);
    let outcome = outcome.succeeded();
    let asked = question(&report, "topic-range-hot");
    let comparisons = list(&asked["comparisons"]);
    assert_eq!(comparisons.len(), 2, "{asked}");
    for found in comparisons {
        let told = text(&found["verdict"]["unanswered"]);
        assert!(told.starts_with("broken off: "), "{found}");
        assert_eq!(found["untimed"], Value::Null, "{found}");
    }
    let told = outcome.stdout.matches("topic-range-hot: not ").count();
    assert_eq!(told, 2, "{}", outcome.stdout);
    // Others had their turn behind it.
    assert!(list(&report["questions"]).len() > 1, "{}", outcome.stdout);
}
