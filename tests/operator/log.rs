//! `--log` and `--log-format`.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::binary::{Server, command, eventually, import_demo, interrupt, quarry};
use crate::running::next;

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

/// A file that has no room.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// `quarry serve` of the demo's chain, which it imports, with its log in `log`; where it serves, which it tells its supervisor, too.
pub(crate) fn serving(data: &Path, log: impl Into<Stdio>) -> (Child, SocketAddr) {
    let store = data.to_str().unwrap();
    import_demo(store);
    let path = data.join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut serve: Command = command(["serve", "--data-dir", store, "--listen", "127.0.0.1:0"]);
    let child = serve.env("NOTIFY_SOCKET", &path).stderr(log).spawn().unwrap();
    let told = next(&socket);
    let address = told
        .lines()
        .find_map(|line| line.strip_prefix("STATUS=serving on "));
    let address = address.unwrap_or_else(|| panic!("{told}"));
    (child, address.parse().unwrap())
}

#[test]
fn a_log_that_cannot_be_written_is_lost_and_nothing_else() {
    let data = tempfile::tempdir().unwrap();
    let (mut child, address) = serving(data.path(), full());
    for _ in 0..20 {
        let answer = eventually("it answers", Duration::from_secs(30), || {
            let mut stream = TcpStream::connect(address).ok()?;
            let request = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
            stream.write_all(request).ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).ok()?;
            Some(answer)
        });
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer:?}");
    }
    interrupt(&child);
    let status = eventually("it ends", Duration::from_secs(30), || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn nobody_waits_for_who_reads_the_log() {
    const REQUESTS: usize = 3000;
    let data = tempfile::tempdir().unwrap();
    let (mut child, address) = serving(data.path(), Stdio::piped());
    let mut log = child.stderr.take().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // Some 600 KB of lines, where a pipe takes 64.
    let requests = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n".repeat(100);
    let mut taken = [0; 1 << 16];
    for _ in 0..REQUESTS / 100 {
        stream.write_all(requests.as_bytes()).unwrap();
        let mut answers = 0;
        while answers < 100 {
            let length = match stream.read(&mut taken) {
                // Whoever stops the tests for a while interrupts the waiting.
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.unwrap(),
            };
            assert!(length > 0, "it should answer while nobody reads its log");
            answers += taken[..length].iter().filter(|&&byte| byte == b'{').count();
        }
    }
    // Nothing of it is lost, also where the process ends before all is read.
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(500));
    let mut lines = String::new();
    log.read_to_string(&mut lines).unwrap();
    assert_eq!(lines.matches("quarry::http::request").count(), REQUESTS);
    assert!(lines.contains("stopping"), "{lines}");
    let status = eventually("it ends", Duration::from_secs(30), || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn who_reads_no_log_at_all_does_not_keep_the_process() {
    let data = tempfile::tempdir().unwrap();
    // A pipe that is full before.
    let (reader, writer) = std::io::pipe().unwrap();
    let filler = std::thread::spawn({
        let mut writer = writer.try_clone().unwrap();
        move || while writer.write_all(&[b'x'; 4096]).is_ok() {}
    });
    std::thread::sleep(Duration::from_millis(200));
    let (mut child, address) = serving(data.path(), writer);
    drop(TcpStream::connect(address).unwrap());
    interrupt(&child);
    let status = eventually("it ends", Duration::from_secs(30), || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
    drop(reader);
    filler.join().unwrap();
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for told in [["openapi"], ["config"]] {
        let output = command(told).stdout(full()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told:?}: {said}");
        assert!(
            said.contains("cannot write to standard output: No space left on device (os error 28)"),
            "{told:?}: {said}"
        );
    }
}

#[test]
fn what_is_no_url_is_refused_without_its_keys() {
    let data = tempfile::tempdir().unwrap();
    for url in ["alice:s3cret@127.0.0.1:9", "127.0.0.1:9?apikey=s3cret"] {
        let args = [
            "run",
            "--data-dir",
            data.path().to_str().unwrap(),
            "--mainnet-rpc",
            url,
        ];
        let outcome = quarry(args).refused(&["`127.0.0.1:9` is neither a URL", "http://"]);
        assert!(!format!("{outcome:?}").contains("s3cret"), "{outcome:?}");
    }
}
