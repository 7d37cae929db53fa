//! The real binary from outside: commands, servers on port 0, a small HTTP client, and the naive model
//! that answers are compared with. Nothing here uses the library: what it expects is worked out from
//! the node's own JSON.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

#[allow(
    clippy::duplicate_mod,
    reason = "test programs with and without `support` use this file"
)]
#[path = "pace.rs"]
mod pace;
#[allow(
    clippy::duplicate_mod,
    reason = "test programs with and without `support` use this file"
)]
#[path = "signal.rs"]
pub mod signal;
#[allow(
    clippy::duplicate_mod,
    reason = "test programs with and without `support` use this file"
)]
#[path = "skipped.rs"]
pub mod skipped;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// No command and no wait of these tests takes longer, by far.
const PATIENCE: Duration = Duration::from_secs(60);

/// The names in a directory, in order.
pub fn names(directory: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The path of a file of the demo chain.
pub fn demo(file: &str) -> String {
    let demo = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("demo");
    demo.join(file).display().to_string()
}

/// Imports the demo chain into a store in `data`.
#[track_caller]
pub fn import_demo(data: &str) -> Outcome {
    let (chain, genesis) = (demo("chain.jsonl.zst"), demo("genesis.json"));
    quarry([
        "import",
        "chain",
        &chain,
        "--genesis",
        &genesis,
        "--data-dir",
        data,
    ])
    .succeeded()
}

/// The program with a clean environment. `QUARRY_BIN` names another build of it to test.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let program = std::env::var_os("QUARRY_BIN")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_quarry")), Into::into);
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("QUARRY_") {
            command.env_remove(name);
        }
    }
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What a command that ended has left.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The last line of standard error: the sentence of a failure.
    pub fn sentence(&self) -> &str {
        self.stderr.lines().last().unwrap_or_default()
    }

    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }

    /// Insists on exit code 1, or 2 where the options were not understood, and one sentence that says all of `words`.
    #[track_caller]
    pub fn refused(self, words: &[&str]) -> Self {
        assert!(matches!(self.code, Some(1 | 2)), "{self:?}");
        let sentence = self.sentence();
        assert!(sentence.starts_with("quarry: "), "{self:?}");
        for word in words {
            assert!(sentence.contains(word), "`{word}` is not in: {sentence}");
        }
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        self
    }
}

/// Runs a command to its end.
pub fn quarry<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Outcome {
    run(command(args))
}

/// The same, made ready before.
pub fn run(mut command: Command) -> Outcome {
    let mut child = command.spawn().unwrap();
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (stdout, stderr) = (collect(stdout), collect(stderr));
    let code = wait(&mut child).expect("the command should end");
    Outcome {
        code,
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn collect(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = from.read_to_string(&mut text);
        text
    })
}

/// Waits for the end; kills what does not end. The outer `None` is "did not end", the inner one "by a signal".
fn wait(child: &mut Child) -> Option<Option<i32>> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Asks until `ready` gives something, for a bounded time.
#[track_caller]
pub fn eventually<T>(what: &str, patience: Duration, mut ready: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(began.elapsed() < patience, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Where a server serves, by a line of its log in either format.
fn served_at(line: &str) -> Option<String> {
    if let Some((_, address)) = line.split_once("serving address=") {
        return Some(address.trim().to_owned());
    }
    let object: Value = serde_json::from_str(line).ok()?;
    let fields = &object["fields"];
    (fields["message"] == "serving").then(|| fields["address"].as_str().map(str::to_owned))?
}

/// Asks a process to end, as Ctrl-C does.
#[track_caller]
pub fn interrupt(child: &Child) {
    signal::send(child, signal::Signal::INT);
}

/// A running server; ends with its guard.
pub struct Server {
    child: Child,
    pub address: String,
    log: Arc<Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
    connection: RefCell<Option<BufReader<TcpStream>>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("--- log of the server\n{}", self.log());
        }
    }
}

impl Server {
    /// Starts `quarry` with these arguments on a free port and waits until it serves.
    #[track_caller]
    pub fn start<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::try_start(args).unwrap_or_else(|log| panic!("the server should say where it serves:\n{log}"))
    }

    /// The same; its log where it does not come to serve.
    pub fn try_start<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Result<Self, String> {
        Self::of(command(args))
    }

    /// The same of a command that was made by [`command`].
    pub fn of(mut command: Command) -> Result<Self, String> {
        let mut child = command.args(["--listen", "127.0.0.1:0"]).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        drop(collect(child.stdout.take().unwrap()));
        let kept = Arc::clone(&log);
        let (sender, receiver) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let address = served_at(&line);
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line);
                kept.push('\n');
                if let Some(address) = address {
                    let _ = sender.send(address);
                }
            }
        });
        let mut server = Self {
            child,
            address: String::new(),
            log,
            reader: Some(reader),
            connection: RefCell::default(),
        };
        match receiver.recv_timeout(PATIENCE) {
            Ok(address) => server.address = address,
            Err(_) => return Err(server.log()),
        }
        Ok(server)
    }

    /// Resident memory of the process, KiB.
    pub fn resident_kib(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).expect("the process should be alive");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let figure = line.and_then(|line| line.trim().strip_suffix(" kB"));
        figure.and_then(|figure| figure.trim().parse().ok()).unwrap()
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Ends the process by SIGTERM and insists on a clean end within three seconds.
    #[track_caller]
    pub fn stop(self) {
        self.stop_logged();
    }

    /// The same; all that it logged.
    #[track_caller]
    pub fn stop_logged(self) -> String {
        let (code, log) = self.stopped();
        assert_eq!(code, Some(0), "exit code after SIGTERM\n{log}");
        log
    }

    /// Ends the process by SIGTERM: the exit code, which may be any, and all that it logged.
    #[track_caller]
    pub fn stopped(mut self) -> (Option<i32>, String) {
        self.connection.take();
        let began = Instant::now();
        signal::send(&self.child, signal::Signal::TERM);
        let code = wait(&mut self.child).expect("the server should end");
        let took = began.elapsed();
        assert!(
            took < pace::at_most(Duration::from_secs(3)),
            "ended after {took:?}\n{}",
            self.log()
        );
        // All of it is read when the process has gone.
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        assert!(!self.log().contains("panicked"), "{}", self.log());
        (code, self.log())
    }

    /// Ends the process by SIGKILL.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn get(&self, target: &str) -> Reply {
        self.get_with(target, "")
    }

    /// The same with more header lines, each with its end.
    pub fn get_with(&self, target: &str, lines: &str) -> Reply {
        self.request("GET", target, lines)
    }

    /// A request without a body.
    pub fn request(&self, method: &str, target: &str, lines: &str) -> Reply {
        let text = format!("{method} {target} HTTP/1.1\r\nhost: test\r\n{lines}\r\n");
        exchange(&self.address, &self.connection, text.as_bytes())
            .unwrap_or_else(|error| panic!("{method} {target}: {error}\n{}", self.log()))
    }

    /// A POST of JSON.
    pub fn post(&self, target: &str, body: &str) -> Reply {
        let text = format!(
            "POST {target} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        exchange(&self.address, &self.connection, text.as_bytes())
            .unwrap_or_else(|error| panic!("POST {target}: {error}\n{}", self.log()))
    }

    /// The result of a JSON-RPC call, or its error object.
    #[track_caller]
    pub fn rpc(&self, method: &str, params: Value) -> Result<Value, Value> {
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params}).to_string();
        let reply = self.post("/rpc", &body);
        assert_eq!(reply.status, 200, "{body}: {}", reply.text());
        let mut answer = reply.json();
        assert_eq!(
            (&answer["jsonrpc"], &answer["id"]),
            (&json!("2.0"), &json!("a")),
            "{answer}"
        );
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// The value of the first series of `/metrics` whose name begins so, as it is written.
    pub fn gauge(&self, name: &str) -> Option<String> {
        let page = self.get("/metrics").text();
        let line = page.lines().find(|line| line.starts_with(name))?;
        Some(line.rsplit(' ').next()?.to_owned())
    }

    /// The body of a 200.
    #[track_caller]
    pub fn json(&self, target: &str) -> Value {
        let reply = self.get(target);
        assert_eq!(reply.status, 200, "GET {target}: {}", reply.text());
        reply.json()
    }

    /// What the proxy says, out of its envelope.
    #[track_caller]
    pub fn proxy(&self, query: &str) -> Value {
        let mut body = self.json(&format!("/api/proxy?{query}"));
        let result = body["result"].take();
        assert_eq!(
            body,
            json!({"jsonrpc": "2.0", "id": 1, "result": null}),
            "{query}"
        );
        result
    }

    #[track_caller]
    pub fn assert_error(&self, target: &str, status: u16, text: &str) {
        let reply = self.get(target);
        assert_eq!(
            (reply.status, reply.json()),
            (status, json!({"error": text})),
            "GET {target}"
        );
    }
}

/// One request on a connection that is kept; a fresh one when the kept one has gone.
pub fn exchange(
    address: &str,
    kept: &RefCell<Option<BufReader<TcpStream>>>,
    request: &[u8],
) -> std::io::Result<Reply> {
    if let Some(mut connection) = kept.take()
        && connection.get_mut().write_all(request).is_ok()
        && let Ok(reply) = Reply::read(&mut connection)
    {
        *kept.borrow_mut() = Some(connection);
        return Ok(reply);
    }
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let mut connection = BufReader::new(stream);
    connection.get_mut().write_all(request)?;
    let reply = Reply::read(&mut connection)?;
    *kept.borrow_mut() = Some(connection);
    Ok(reply)
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    fn read(from: &mut impl BufRead) -> std::io::Result<Self> {
        let ended = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let mut line = || {
            let mut text = String::new();
            if from.read_line(&mut text)? == 0 {
                return Err(ended());
            }
            Ok(text.trim_end().to_owned())
        };
        let status = line()?
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .ok_or_else(ended)?;
        let mut headers = Vec::new();
        loop {
            let text = line()?;
            let Some((name, value)) = text.split_once(':') else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = Self {
            status,
            headers,
            body: Vec::new(),
        };
        if let Some(length) = reply
            .header("content-length")
            .and_then(|length| length.parse().ok())
        {
            reply.body = vec![0; length];
            from.read_exact(&mut reply.body)?;
        } else if reply.header("transfer-encoding") == Some("chunked") {
            loop {
                let mut size = String::new();
                from.read_line(&mut size)?;
                let size = usize::from_str_radix(size.trim(), 16).map_err(|_| ended())?;
                let begin = reply.body.len();
                reply.body.resize(begin + size + 2, 0);
                from.read_exact(&mut reply.body[begin..])?;
                reply.body.truncate(begin + size);
                if size == 0 {
                    break;
                }
            }
        }
        Ok(reply)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Where the next page is.
    pub fn next(&self) -> Option<String> {
        let link = self.header("link")?;
        Some(link.strip_prefix('<')?.split_once('>')?.0.to_owned())
    }
}

/// A quantity as hex text, or as the number that some recorders write.
#[track_caller]
pub fn number(value: &Value) -> u64 {
    value
        .as_u64()
        .or_else(|| u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok())
        .unwrap_or_else(|| panic!("not a number: {value}"))
}

#[track_caller]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

#[track_caller]
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

/// A log as get-logs must show it.
#[derive(Clone, Debug)]
pub struct LogRow {
    pub block: u64,
    pub address: String,
    pub topics: Vec<String>,
    pub shown: Value,
}

/// A block with its receipts as a node states them; traces as `trace_block` states them.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub block: Value,
    pub receipts: Vec<Value>,
    pub traces: Option<Vec<Value>>,
}

/// A chain as a node tells it, and what must follow from it.
#[derive(Clone, Debug)]
pub struct Model {
    /// As `chain` names it.
    pub name: &'static str,
    pub id: u64,
    pub blocks: Vec<Recorded>,
    pub logs: Vec<LogRow>,
}

impl Model {
    pub fn new(name: &'static str, id: u64, blocks: Vec<Recorded>) -> Self {
        let logs = blocks
            .iter()
            .flat_map(|recorded| log_rows(id, recorded))
            .collect();
        Self {
            name,
            id,
            blocks,
            logs,
        }
    }

    pub fn transactions(&self) -> impl Iterator<Item = (&Recorded, &Value, &Value)> {
        self.blocks.iter().flat_map(|recorded| {
            let pairs = list(&recorded.block["transactions"])
                .iter()
                .zip(&recorded.receipts);
            pairs.map(move |(transaction, receipt)| (recorded, transaction, receipt))
        })
    }

    /// (number, time) of each block, by number.
    pub fn times(&self) -> Vec<(u64, u64)> {
        let time = |recorded: &Recorded| {
            (
                number(&recorded.block["number"]),
                number(&recorded.block["timestamp"]),
            )
        };
        self.blocks.iter().map(time).collect()
    }
}

/// The logs of a block; `logIndex` is counted anew, as the positions in the block.
fn log_rows(chain_id: u64, recorded: &Recorded) -> Vec<LogRow> {
    let block = &recorded.block;
    let space = uuid::Uuid::new_v5(
        &uuid::Uuid::NAMESPACE_URL,
        format!("quarry:chain:{chain_id}").as_bytes(),
    );
    let hash = text(&block["hash"]);
    let logs = recorded.receipts.iter().enumerate().flat_map(|(index, receipt)| {
        list(&receipt["logs"])
            .iter()
            .map(move |log| (index, receipt, log))
    });
    logs.enumerate()
        .map(|(log_index, (index, receipt, log))| {
            let mut name = const_hex::decode(hash).unwrap();
            name.push(b'l');
            name.extend_from_slice(&u32::try_from(log_index).unwrap().to_be_bytes());
            let topics: Vec<String> = list(&log["topics"])
                .iter()
                .map(|topic| text(topic).to_owned())
                .collect();
            LogRow {
                block: number(&block["number"]),
                address: text(&log["address"]).to_owned(),
                shown: json!({
                    "uuid": uuid::Uuid::new_v5(&space, &name).to_string(),
                    "transactionHash": receipt["transactionHash"],
                    "blockNumber": number(&block["number"]).to_string(),
                    "blockHash": hash,
                    "timestamp": number(&block["timestamp"]).to_string(),
                    "contractAddress": log["address"],
                    "data": log["data"],
                    "topics": serde_json::to_string(&topics).unwrap(),
                    "logIndex": log_index,
                    "transactionIndex": index,
                }),
                topics,
            }
        })
        .collect()
}

/// A question to get-logs.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub address: Option<String>,
    pub topics: [Vec<String>; 4],
    /// (left, right, whether `and`).
    pub operators: Vec<(usize, usize, bool)>,
    pub from: Option<u64>,
    pub to: Option<u64>,
    pub descending: bool,
    pub page: Option<usize>,
    pub offset: Option<usize>,
}

impl Filter {
    pub fn target(&self, chain: &str) -> String {
        let mut query = format!("/api/logs/get-logs?chain={chain}");
        let mut add = |name: &str, value: &str| query.push_str(&format!("&{name}={value}"));
        if let Some(address) = &self.address {
            add("address", address);
        }
        for (place, values) in self
            .topics
            .iter()
            .enumerate()
            .filter(|(_, values)| !values.is_empty())
        {
            add(&format!("topic{place}"), &values.join(","));
        }
        for (left, right, and) in &self.operators {
            add(
                &format!("topic{left}_{right}_opr"),
                if *and { "and" } else { "or" },
            );
        }
        let bounds = [("fromblock", self.from), ("toblock", self.to)];
        for (name, value) in bounds {
            if let Some(value) = value {
                add(name, &value.to_string());
            }
        }
        if self.descending {
            add("sort", "desc");
        }
        for (name, value) in [("page", self.page), ("offset", self.offset)] {
            if let Some(value) = value {
                add(name, &value.to_string());
            }
        }
        query
    }

    /// Whether a log is meant: clauses are and-ed, a topic that no operator names is required.
    fn takes(&self, log: &LogRow) -> bool {
        let has = |place: usize| {
            log.topics
                .get(place)
                .is_some_and(|topic| self.topics[place].contains(topic))
        };
        let named = |place: usize| {
            self.operators
                .iter()
                .any(|(left, right, _)| *left == place || *right == place)
        };
        self.address
            .as_ref()
            .is_none_or(|address| *address == log.address)
            && self.from.is_none_or(|from| from <= log.block)
            && self.to.is_none_or(|to| log.block <= to)
            && (0..4).all(|place| self.topics[place].is_empty() || named(place) || has(place))
            && self.operators.iter().all(|(left, right, and)| {
                if *and {
                    has(*left) && has(*right)
                } else {
                    has(*left) || has(*right)
                }
            })
    }

    /// All logs that are meant, in the order asked for.
    pub fn select<'a>(&self, logs: &'a [LogRow]) -> Vec<&'a LogRow> {
        let mut found: Vec<_> = logs.iter().filter(|log| self.takes(log)).collect();
        if self.descending {
            found.reverse();
        }
        found
    }
}

/// Asks and compares with brute force; gives the number of rows found.
#[track_caller]
pub fn check_logs(server: &Server, model: &Model, filter: &Filter) -> usize {
    let target = filter.target(model.name);
    let reply = server.get(&target);
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    let all = filter.select(&model.logs);
    let offset = filter.offset.unwrap_or(10_000);
    let skip = (filter.page.unwrap_or(1) - 1) * offset;
    let expected: Vec<_> = all
        .iter()
        .skip(skip)
        .take(offset)
        .map(|log| log.shown.clone())
        .collect();
    let mut found = reply.json();
    let rows = found["logs"].take();
    assert_eq!(found, json!({"logs": null}), "{target}");
    assert_eq!(list(&rows).len(), expected.len(), "{target}");
    for (row, expected) in list(&rows).iter().zip(&expected) {
        assert_eq!(row, expected, "{target}");
    }
    if let Some(total) = reply.header("x-total-count") {
        assert_eq!(total, all.len().to_string(), "{target}");
    }
    assert_eq!(
        reply.next().is_some(),
        skip + expected.len() < all.len() && !expected.is_empty(),
        "{target}"
    );
    expected.len()
}

/// Walks all pages by their links and compares the whole with brute force.
#[track_caller]
pub fn check_log_links(server: &Server, model: &Model, filter: &Filter) {
    let mut rows = Vec::new();
    let mut target = filter.target(model.name);
    loop {
        let reply = server.get(&target);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        rows.extend_from_slice(list(&reply.json()["logs"]));
        match reply.next() {
            Some(next) => target = next,
            None => break,
        }
    }
    let expected: Vec<_> = filter
        .select(&model.logs)
        .into_iter()
        .map(|log| log.shown.clone())
        .collect();
    assert!(
        rows == expected,
        "{filter:?}: {} rows by links, {} expected",
        rows.len(),
        expected.len()
    );
}

/// A random question about the logs of a chain: topics and address from logs that exist, often the same one.
pub fn random_filter(random: &mut fastrand::Rng, model: &Model) -> Filter {
    let mut filter = Filter::default();
    let base = &model.logs[random.usize(..model.logs.len())];
    while filter.address.is_none() && filter.topics.iter().all(Vec::is_empty) {
        for place in 0..4 {
            if random.u8(..2) == 0 {
                continue;
            }
            for _ in 0..1 + random.usize(..5) / 4 {
                let log = if random.bool() {
                    base
                } else {
                    &model.logs[random.usize(..model.logs.len())]
                };
                // Topics of other places are asked for too: places must not be mixed up.
                let from = if random.u8(..8) == 0 {
                    random.usize(..4)
                } else {
                    place
                };
                if let Some(topic) = log
                    .topics
                    .get(from)
                    .filter(|topic| !filter.topics[place].contains(topic))
                {
                    filter.topics[place].push(topic.clone());
                }
            }
        }
        if random.u8(..3) == 0 {
            filter.address = Some(base.address.clone());
        }
    }
    for (left, right) in [(0, 1), (1, 2), (2, 3), (0, 2), (0, 3), (1, 3)] {
        if !filter.topics[left].is_empty() && !filter.topics[right].is_empty() && random.u8(..3) > 0 {
            filter.operators.push((left, right, random.u8(..3) == 0));
        }
    }
    let times = model.times();
    let (first, last) = (times[0].0, times[times.len() - 1].0);
    if random.u8(..3) == 0 {
        let (a, b) = (random.u64(first..=last), random.u64(first..=last));
        filter.from = random.bool().then_some(a.min(b));
        filter.to = random.bool().then_some(a.max(b));
    }
    filter.descending = random.bool();
    if random.bool() {
        filter.offset = Some(random.usize(1..30));
        filter.page = random.bool().then(|| random.usize(1..4));
    }
    filter
}

/// L1 to L3: each address, each topic at its place, every log, and `expressions` random questions.
#[track_caller]
pub fn check_all_logs(server: &Server, model: &Model, expressions: usize, seed: u64) {
    use std::collections::BTreeSet;
    let addresses: BTreeSet<_> = model.logs.iter().map(|log| log.address.clone()).collect();
    let mut rows = 0;
    for (turn, address) in addresses.into_iter().enumerate() {
        let filter = Filter {
            address: Some(address),
            descending: turn % 2 == 1,
            ..Filter::default()
        };
        rows += check_logs(server, model, &filter);
    }
    assert_eq!(rows, model.logs.len());
    let topics: BTreeSet<_> = model
        .logs
        .iter()
        .flat_map(|log| {
            log.topics
                .iter()
                .enumerate()
                .map(|(place, topic)| (place, topic.clone()))
        })
        .collect();
    for (place, topic) in topics {
        let mut filter = Filter::default();
        filter.topics[place].push(topic);
        assert_ne!(check_logs(server, model, &filter), 0);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    let mut with_rows = 0;
    for turn in 0..expressions {
        let filter = random_filter(&mut random, model);
        with_rows += usize::from(check_logs(server, model, &filter) > 0);
        if turn % 8 == 0 {
            let pages = Filter {
                page: None,
                offset: Some(random.usize(3..40)),
                ..filter
            };
            check_log_links(server, model, &pages);
        }
    }
    // The questions are not all about nothing.
    assert!(
        with_rows * 3 > expressions,
        "{with_rows} of {expressions} expressions found something"
    );
}

/// B2 at each block's time, and a second before and after it.
#[track_caller]
pub fn check_times(server: &Server, model: &Model) {
    let times = model.times();
    let points: std::collections::BTreeSet<u64> = times
        .iter()
        .flat_map(|(_, time)| [time.saturating_sub(1), *time, time + 1])
        .collect();
    for point in points {
        let before = times.iter().rev().find(|(_, time)| *time <= point);
        let after = times.iter().find(|(_, time)| *time >= point);
        for (closest, found) in [("before", before), ("after", after)] {
            let target = format!(
                "/api/block/timestamp/{point}/block-number?chain={}&closest={closest}",
                model.name
            );
            match found {
                None => server.assert_error(&target, 404, "Block not found"),
                Some((number, time)) => {
                    let expected = json!({
                        "timestamp": point.to_string(), "closest": closest, "chain": model.name,
                        "blockNumber": number.to_string(), "blockTimestamp": time.to_string(),
                    });
                    assert_eq!(server.json(&target), expected, "{target}");
                }
            }
        }
    }
}

/// Internal transactions of the default set: value-moving calls, creations and self-destructs below the top call.
pub fn internal_transactions(traces: &[Value]) -> usize {
    let counts = |trace: &&Value| {
        let action = &trace["action"];
        let moves = || {
            text(&action["value"])
                .trim_start_matches("0x")
                .bytes()
                .any(|digit| digit != b'0')
        };
        !list(&trace["traceAddress"]).is_empty()
            && match text(&trace["type"]) {
                "create" | "suicide" => true,
                "call" => text(&action["callType"]) == "call" && moves(),
                _ => false,
            }
    };
    traces.iter().filter(counts).count()
}

/// X1 by the receipt; before Byzantium by the top call's trace.
pub fn status(recorded: &Recorded, receipt: &Value) -> u64 {
    if let Some(status) = receipt.get("status").filter(|status| !status.is_null()) {
        return number(status);
    }
    let top = |trace: &&Value| {
        trace["transactionHash"] == receipt["transactionHash"] && list(&trace["traceAddress"]).is_empty()
    };
    let top = recorded.traces.as_ref().unwrap().iter().find(top).unwrap();
    u64::from(top.get("error").is_none_or(Value::is_null))
}

/// B1 of every block, X1 of every transaction.
#[track_caller]
pub fn check_counts(server: &Server, model: &Model) {
    for recorded in &model.blocks {
        let at = number(&recorded.block["number"]);
        let target = format!("/api/block/{at}/transaction-count?chain={}", model.name);
        match &recorded.traces {
            Some(traces) => assert_eq!(
                server.json(&target),
                json!({
                    "txsCount": list(&recorded.block["transactions"]).len(),
                    "internalTxsCount": internal_transactions(traces),
                }),
                "{target}"
            ),
            None => assert_eq!(server.get(&target).status, 503, "{target}"),
        }
    }
    for (recorded, transaction, receipt) in model.transactions() {
        let hash = text(&transaction["hash"]);
        let target = format!("/api/transaction/{hash}/status?chain={}", model.name);
        let expected = json!({"status": status(recorded, receipt), "hash": hash});
        assert_eq!(server.json(&target), expected, "{target}");
    }
}

/// What of `expected` is not in `found`. Fields that only `found` has are compared by name with `more`.
pub fn differences(path: &str, expected: &Value, found: &Value, more: &[&str], out: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            for (key, value) in expected {
                match found.get(key) {
                    Some(found) => differences(&format!("{path}.{key}"), value, found, more, out),
                    None => out.push(format!("{path}.{key} is absent; expected {value}")),
                }
            }
            let extra = found
                .keys()
                .filter(|key| !expected.contains_key(*key) && !more.contains(&key.as_str()));
            out.extend(extra.map(|key| format!("{path}.{key} is one too many")));
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (place, (expected, found)) in expected.iter().zip(found).enumerate() {
                differences(&format!("{path}[{place}]"), expected, found, more, out);
            }
        }
        _ if expected == found => {}
        _ => out.push(format!("{path}: expected {expected}, found {found}")),
    }
}

#[track_caller]
pub fn assert_like(what: &str, expected: &Value, found: &Value, more: &[&str]) {
    let mut out = Vec::new();
    differences("", expected, found, more, &mut out);
    assert!(out.is_empty(), "{what}: {out:#?}");
}

/// The proxy's answers about every block, transaction and receipt. `more` are fields that the node's
/// recorded answer may lack and ours may have.
#[track_caller]
pub fn check_proxy(server: &Server, model: &Model, more: &[&str]) {
    let chain = model.name;
    for recorded in &model.blocks {
        let block = &recorded.block;
        let tag = format!("0x{:x}", number(&block["number"]));
        let ask = |rest: &str| server.proxy(&format!("chain={chain}&tag={tag}&action={rest}"));
        assert_like(&tag, block, &ask("eth_getBlockByNumber&boolean=true"), more);
        let transactions = list(&block["transactions"]);
        let mut short = block.clone();
        short["transactions"] = transactions
            .iter()
            .map(|transaction| transaction["hash"].clone())
            .collect();
        assert_like(&tag, &short, &ask("eth_getBlockByNumber"), more);
        let count = format!("0x{:x}", transactions.len());
        assert_eq!(ask("eth_getBlockTransactionCountByNumber"), count, "{tag}");
        for (index, transaction) in transactions.iter().enumerate() {
            let found = ask(&format!(
                "eth_getTransactionByBlockNumberAndIndex&index=0x{index:x}"
            ));
            assert_like(&tag, transaction, &found, more);
        }
        let past = ask(&format!(
            "eth_getTransactionByBlockNumberAndIndex&index=0x{:x}",
            transactions.len()
        ));
        assert_eq!(past, Value::Null, "{tag}");
    }
    for (_, transaction, receipt) in model.transactions() {
        let hash = text(&transaction["hash"]);
        let ask = |action: &str| server.proxy(&format!("chain={chain}&txhash={hash}&action={action}"));
        assert_like(hash, transaction, &ask("eth_getTransactionByHash"), more);
        assert_like(hash, receipt, &ask("eth_getTransactionReceipt"), more);
    }
}

/// A row of get-logs in the node's words.
pub fn as_node(row: &Value) -> Value {
    let hex = |value: &Value| {
        let number = value.as_u64().unwrap_or_else(|| text(value).parse().unwrap());
        format!("0x{number:x}")
    };
    json!({
        "address": row["contractAddress"],
        "topics": serde_json::from_str::<Value>(text(&row["topics"])).unwrap(),
        "data": row["data"],
        "blockNumber": hex(&row["blockNumber"]),
        "transactionHash": row["transactionHash"],
        "transactionIndex": hex(&row["transactionIndex"]),
        "blockHash": row["blockHash"],
        "blockTimestamp": hex(&row["timestamp"]),
        "logIndex": hex(&row["logIndex"]),
        "removed": false,
    })
}
