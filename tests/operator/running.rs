//! A service and who watches it: systemd's socket, `quarry health`.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use quarry::store::Heartbeat;

use crate::binary::signal::{Signal, send};
use crate::binary::{Server, command, eventually, import_demo, names, quarry};

/// The next message, within the socket's time-out. Whoever stops the tests for a while interrupts the waiting.
fn try_next(socket: &UnixDatagram) -> std::io::Result<String> {
    let mut message = [0u8; 4096];
    loop {
        match socket.recv(&mut message) {
            Ok(length) => return Ok(String::from_utf8_lossy(&message[..length]).into_owned()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn next(socket: &UnixDatagram) -> String {
    try_next(socket).expect("a message within the time-out")
}

#[test]
fn systemd_is_told_when_it_listens_and_when_it_stops() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let path = data.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut serve = command(["serve", "--data-dir", store]);
    serve.env("NOTIFY_SOCKET", &path);
    let server = Server::of(serve).unwrap();
    let ready = next(&socket);
    assert!(ready.lines().any(|line| line == "READY=1"), "{ready}");
    let status = format!("STATUS=serving on {}", server.address);
    assert!(ready.lines().any(|line| line == status), "{ready}");
    // It listens by then.
    assert_eq!(server.get("/health").status, 200);
    server.stop();
    let stopping = next(&socket);
    assert!(stopping.lines().any(|line| line == "STOPPING=1"), "{stopping}");
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert!(try_next(&socket).is_err(), "nothing else is said");
}

#[cfg(target_os = "linux")]
#[test]
fn a_supervisor_that_watches_hears_that_the_process_is_alive() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::SocketAddr;

    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    // Without a name in the file system.
    let name = format!("quarry-test-{}", std::process::id());
    let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut serve = command(["serve", "--data-dir", store]);
    serve.env("NOTIFY_SOCKET", format!("@{name}"));
    serve.env("WATCHDOG_USEC", "200000");
    let server = Server::of(serve).unwrap();
    let ready = next(&socket);
    assert!(ready.lines().any(|line| line == "READY=1"), "{ready}");
    for _ in 0..5 {
        assert_eq!(next(&socket).trim_end(), "WATCHDOG=1");
    }
    server.stop();
    let stopping = std::iter::repeat_with(|| next(&socket)).find(|said| said.trim_end() != "WATCHDOG=1");
    assert!(stopping.unwrap().lines().any(|line| line == "STOPPING=1"));
}

#[test]
fn a_supervisor_that_has_gone_is_no_reason_to_fail() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let mut serve = command(["serve", "--data-dir", store]);
    serve.env("NOTIFY_SOCKET", data.path().join("nobody"));
    let server = Server::of(serve).unwrap();
    assert_eq!(server.get("/health").status, 200);
    eventually("the log says it", Duration::from_secs(10), || {
        let said = server
            .log()
            .contains("the supervisor at NOTIFY_SOCKET cannot be told");
        said.then_some(())
    });
    server.stop();
}

#[test]
fn health_asks_a_running_service() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let server = Server::start(["serve", "--data-dir", store]);
    let port = server.address.rsplit_once(':').unwrap().1.to_owned();
    for address in [server.address.clone(), format!("0.0.0.0:{port}")] {
        let well = quarry(["health", "--listen", &address]).succeeded();
        assert_eq!(well.stdout.trim(), server.get("/health").text().trim());
        assert!(well.stderr.is_empty(), "{well:?}");
    }
    let ready = quarry(["health", "--ready", "--listen", &server.address]);
    let expected = server.get("/ready");
    assert_eq!(ready.code == Some(0), expected.status == 200, "{ready:?}");
    // As the service itself learns it, by a file.
    let path = data.path().join("quarry.toml");
    std::fs::write(&path, format!("listen = \"{}\"\n", server.address)).unwrap();
    quarry(["health", "--config", path.to_str().unwrap()]).succeeded();
    let address = server.address.clone();
    server.stop();
    quarry(["health", "--listen", &address]).refused(&["cannot connect to ", &address]);
}

#[test]
fn a_store_that_is_only_served_knows_how_far_its_node_was() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    let ask = |blocks: &[u64]| -> (u64, Vec<u16>) {
        let server = Server::start(["serve", "--data-dir", store]);
        let head = server.get("/api/stats/total-supply");
        let head: u64 = head.header("x-indexed-block-number").unwrap().parse().unwrap();
        let next = |beyond: &u64| format!("/api/block/{}/transaction-count", head + beyond);
        let told = blocks.iter().map(|beyond| server.get(&next(beyond)).status);
        let told = told.collect();
        server.stop();
        (head, told)
    };
    // Of a recording there is nothing else.
    let (head, told) = ask(&[0, 1, 100, 101]);
    assert_eq!(told, [200, 404, 404, 404]);
    // A process that followed a node ended before it had all of it.
    let beat = Heartbeat {
        time: 1.0,
        indexed: Some(head),
        node_head: Some(head + 100),
        node_heard: Some(1),
        node_up: Some(true),
        ..Heartbeat::default()
    };
    assert!(beat.write(&data.path().join("mainnet")));
    assert_eq!(ask(&[0, 1, 100, 101]).1, [200, 503, 503, 404]);
}

#[test]
fn a_chain_whose_node_was_not_met_may_have_any_id() {
    let data = tempfile::tempdir().unwrap();
    let server = beside(data.path(), "http://127.0.0.1:9");
    for query in [
        "chainid=1&module=proxy&action=eth_blockNumber",
        "chainid=1&module=account&action=balance&address=0x0000000000000000000000000000000000000001",
    ] {
        let reply = server.get(&format!("/v2/api?{query}"));
        assert_eq!(reply.status, 503, "{}", reply.text());
        assert!(reply.header("retry-after").is_some());
    }
    // What is no id at all is said so.
    let reply = server.get("/v2/api?chainid=one&module=block&action=getblockreward&blockno=1");
    assert_eq!(reply.status, 200);
    assert!(reply.text().contains("chainid"), "{}", reply.text());
    server.stop();
}

/// The program beside a node.
fn beside(data: &Path, url: &str) -> Server {
    Server::start(["run", "--data-dir", data.to_str().unwrap(), "--mainnet-rpc", url])
}

#[test]
fn health_says_what_is_wrong() {
    // A node that nobody is at: the service is well, and it is not ready.
    let data = tempfile::tempdir().unwrap();
    let dead = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{dead}");
    let server = beside(data.path(), &url);
    quarry(["health", "--listen", &server.address]).succeeded();
    quarry(["health", "--ready", "--listen", &server.address]).refused(&["says 503 to /ready"]);
    server.stop();
    // One that accepts and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    quarry(["health", "--timeout", "1", "--listen", &address])
        .refused(&["does not answer /health within 1 s"]);
}

/// Whoever misspells a path is told at once, and not by a service that stands still.
#[test]
fn a_genesis_file_that_is_none_is_refused_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let no_json = data.path().join("genesis.json");
    std::fs::write(&no_json, "{\"config\": ").unwrap();
    let absent = data.path().join("absent.json");
    for (path, said) in [
        (&absent, "absent.json"),
        (&no_json, "genesis.json: the genesis file is malformed"),
    ] {
        for way in [&["run", "--listen", "127.0.0.1:0"][..], &["sync", "--to", "1"]] {
            let store = data.path().join("store");
            let given = [
                "--data-dir",
                store.to_str().unwrap(),
                "--mainnet-rpc",
                "http://127.0.0.1:9",
                "--genesis",
                path.to_str().unwrap(),
            ];
            quarry(way.iter().copied().chain(given)).refused(&["genesis file", said]);
        }
    }
}

/// A URL that cannot lead anywhere is told of at once, and not by a service that waits for a node.
#[test]
fn a_url_that_leads_nowhere_is_refused_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    for url in [
        "http://",
        "http://127.0.0.1:99999",
        "http://[::1/secret",
        "ws://:1",
    ] {
        let outcome = quarry([
            "run",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            store,
            "--mainnet-rpc",
            url,
        ]);
        assert!(!outcome.stderr.contains("secret"), "{outcome:?}");
        outcome.refused(&["node url"]);
    }
}

/// So is a directory that nothing can be put into, also while the node is down.
#[test]
fn a_data_directory_that_is_none_is_refused_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    let file = data.path().join("file");
    std::fs::write(&file, "not a directory").unwrap();
    for path in [file.clone(), file.join("below")] {
        let path = path.to_str().unwrap();
        let node = ["--mainnet-rpc", "http://127.0.0.1:9"];
        for way in [&["run", "--listen", "127.0.0.1:0"][..], &["sync", "--to", "1"]] {
            let given = way.iter().copied().chain(node).chain(["--data-dir", path]);
            quarry(given).refused(&["is a file, not the directory of a store", file.to_str().unwrap()]);
        }
        for way in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["inspect"],
            &["verify"],
        ] {
            let given = way.iter().copied().chain(["--data-dir", path]);
            quarry(given).refused(&["is a file, not the directory of a store", file.to_str().unwrap()]);
        }
    }
}

/// A store that cannot be opened is trouble of its chain alone.
#[test]
fn a_damaged_store_leaves_the_other_chain_served() {
    let data = tempfile::tempdir().unwrap();
    let path = data.path().to_str().unwrap();
    import_demo(path);
    let damage = |chain: &str| {
        let store = data.path().join(chain).join("rocksdb");
        std::fs::create_dir_all(&store).unwrap();
        std::fs::write(store.join("CURRENT"), "nonsense").unwrap();
    };
    damage("testnet");
    let node = "http://127.0.0.1:9";
    let both = [
        "run",
        "--data-dir",
        path,
        "--mainnet-rpc",
        node,
        "--testnet-rpc",
        node,
    ];
    let server = Server::start(both);
    server.json("/api/block/1/transaction-count");
    let log = server.stop_logged();
    assert!(log.contains("the store cannot be opened"), "{log}");
    assert!(log.contains("testnet"), "{log}");
    // With nothing to serve there is no service.
    damage("mainnet");
    let listening = both.into_iter().chain(["--listen", "127.0.0.1:0"]);
    assert_eq!(quarry(listening).code, Some(1));
}

/// Where too few files may be open a store would fail in the middle of a write.
#[test]
fn a_store_is_not_written_with_a_handful_of_files() {
    let data = tempfile::tempdir().unwrap();
    let few = |limit: &str, arguments: &str| {
        let program = env!("CARGO_BIN_EXE_quarry");
        let store = data.path().display();
        let line = format!("ulimit -n {limit} && exec {program} {arguments} --data-dir {store}");
        std::process::Command::new("sh")
            .args(["-c", &line])
            .output()
            .unwrap()
    };
    let run = "run --listen 127.0.0.1:0 --mainnet-rpc http://127.0.0.1:9";
    for writing in [
        run,
        "sync --to 1 --mainnet-rpc http://127.0.0.1:9",
        "demo --listen 127.0.0.1:0",
        "migrate",
        "checkpoint restore nothing",
    ] {
        let outcome = few("80", writing);
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert_eq!(outcome.status.code(), Some(1), "{said}");
        assert!(said.contains("only 80 files may be open at once"), "{said}");
    }
    import_demo(data.path().to_str().unwrap());
    let outcome = few("24", "serve --listen 127.0.0.1:0");
    let said = String::from_utf8_lossy(&outcome.stderr);
    assert_eq!(outcome.status.code(), Some(1), "{said}");
    assert!(said.contains("ulimit -n"), "{said}");
}

/// Where stores of other chains lie, as in the image, the demo's has no place.
#[test]
fn a_demo_leaves_the_stores_of_other_commands_alone() {
    let directory = tempfile::tempdir().unwrap();
    let mut demo = command(["demo"]);
    demo.env("QUARRY_DATA_DIR", directory.path());
    let server = Server::of(demo).unwrap();
    assert_eq!(server.get("/health").status, 200);
    let log = server.stop_logged();
    assert!(!log.contains("names no option"), "{log}");
    assert_eq!(names(directory.path()), [""; 0]);
}

/// Help and the version are answers, too.
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    for asked in ["--help", "--version"] {
        let status = command([asked])
            .stdout(full.try_clone().unwrap())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(1), "{asked}");
        assert_eq!(quarry([asked]).code, Some(0), "{asked}");
    }
}

/// `quarry serve` with SIGHUP as `way` of `env` sets it, whatever whoever runs the tests has done with it; where it serves, and its
/// log.
fn served_with_hang_up(way: &str, data: &str) -> (Child, String, JoinHandle<String>) {
    let quarry = command(["serve", "--data-dir", data, "--listen", "127.0.0.1:0"]);
    let mut child = std::process::Command::new("env");
    child.arg(way).arg(quarry.get_program()).args(quarry.get_args());
    for (name, value) in quarry.get_envs() {
        match value {
            Some(value) => child.env(name, value),
            None => child.env_remove(name),
        };
    }
    child
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let (sender, serving) = std::sync::mpsc::channel();
    let log = std::thread::spawn(move || {
        let mut log = String::new();
        for line in lines.map_while(Result::ok) {
            if let Some((_, address)) = line.split_once("serving address=") {
                let _ = sender.send(address.trim().to_owned());
            }
            log += &format!("{line}\n");
        }
        log
    });
    let address = serving.recv_timeout(Duration::from_secs(60));
    (child, address.expect("it should serve"), log)
}

/// What it says to `/health` on a connection of its own.
fn health(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// A terminal that is closed ends the service as a signal to end does, and leaves it alone under `nohup`.
#[test]
fn a_closed_terminal_ends_the_service_politely() {
    let data = tempfile::tempdir().unwrap();
    let store = data.path().to_str().unwrap();
    import_demo(store);
    for (way, signals) in [
        ("--default-signal=HUP", &[Signal::HUP][..]),
        ("--ignore-signal=HUP", &[Signal::HUP, Signal::TERM]),
    ] {
        let (mut child, address, log) = served_with_hang_up(way, store);
        for signal in signals {
            assert!(
                health(&address).starts_with("HTTP/1.1 200"),
                "{way} before {signal:?}"
            );
            assert!(
                child.try_wait().unwrap().is_none(),
                "{way} ended before {signal:?}"
            );
            send(&child, *signal);
        }
        let ended = eventually("it ends", Duration::from_secs(10), || child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0), "{way}");
        let log = log.join().unwrap();
        let (before, _) = log.split_once("stopping; ").expect(&log);
        // It was not about to end when it answered.
        let asked = before.matches("quarry::http::request").count();
        assert_eq!(asked, signals.len(), "{way}: {log}");
    }
}

/// A WebSocket that is opened and never spoken on is found out after a minute only.
#[test]
fn a_node_that_says_nothing_is_told_of_from_the_start() {
    let data = tempfile::tempdir().unwrap();
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ws://{}", mute.local_addr().unwrap());
    let server = beside(data.path(), &url);
    eventually("the status says it", Duration::from_secs(30), || {
        let status = String::from_utf8_lossy(&server.get("/status").body).into_owned();
        let said = status.contains(r#""message":"asking the node for its chain""#);
        said.then_some(())
    });
    eventually("the log says it", Duration::from_secs(30), || {
        let said = server.log().contains("asking the node for its chain");
        said.then_some(())
    });
    server.stop();
}

/// What a proxy of the environment would get is the node's URL with its key.
#[test]
fn a_node_is_asked_without_a_proxy_of_the_environment() {
    let data = tempfile::tempdir().unwrap();
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let (node, proxy) = (listen(), listen());
    let url = format!("http://{}/key", node.local_addr().unwrap());
    let mut run = command([
        "run",
        "--data-dir",
        data.path().to_str().unwrap(),
        "--mainnet-rpc",
        &url,
    ]);
    let proxied = format!("http://{}", proxy.local_addr().unwrap());
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        run.env(name, &proxied);
    }
    run.env_remove("NO_PROXY").env_remove("no_proxy");
    let server = Server::of(run).unwrap();
    node.set_nonblocking(true).unwrap();
    eventually("the node is asked", Duration::from_secs(30), || {
        node.accept().ok()
    });
    proxy.set_nonblocking(true).unwrap();
    assert!(proxy.accept().is_err(), "the proxy is asked");
    server.stop();
}

/// The process goes on with the files that it has open, and all that it writes ends with it.
#[test]
fn a_store_that_is_taken_away_is_told_of() {
    let data = tempfile::tempdir().unwrap();
    import_demo(data.path().to_str().unwrap());
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let server = beside(data.path(), &url);
    let beat = data.path().join("mainnet").join("writer.beat");
    eventually("the store is watched", Duration::from_secs(30), || {
        beat.exists().then_some(())
    });
    std::fs::rename(data.path().join("mainnet"), data.path().join("moved")).unwrap();
    eventually("the log says it", Duration::from_secs(30), || {
        let said = server.log().contains("the store's directory is gone");
        said.then_some(())
    });
    assert_eq!(server.get("/health").status, 200);
}
