//! The real program as a process that is killed, and what is left of its store.

use crate::support::fake_node::FakeNode;
use crate::support::pace::at_most;
use crate::support::signal::{Signal, send};
use fastrand::Rng;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) const SERVING_MAX: Duration = Duration::from_secs(3);

/// The slowest start of this run so far, milliseconds.
static SLOWEST: AtomicU64 = AtomicU64::new(0);

/// Notes how long a start took, which must be little.
pub(crate) fn started(took: Duration, about: &dyn std::fmt::Debug) {
    SLOWEST.fetch_max(u64::try_from(took.as_millis()).unwrap(), Ordering::Relaxed);
    assert!(took < at_most(SERVING_MAX), "serving after {took:?}: {about:#?}");
}

/// Says what was done.
pub(crate) fn summary(what: &str, kills: u64) {
    let slowest = SLOWEST.load(Ordering::Relaxed);
    println!("{what}: {kills} kills; slowest start so far {slowest} ms");
}

/// `share` thirtieths of all kills: `QUARRY_KILLS`, 30 in a plain run.
pub(crate) fn kills(share: u64) -> u64 {
    let kills = std::env::var("QUARRY_KILLS").ok();
    let kills = kills.map_or(30, |text| text.parse().expect("QUARRY_KILLS is a number"));
    (kills * share).div_ceil(30)
}

pub(crate) fn command(arguments: &[&str], directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarry"));
    command.args(arguments).arg("--data-dir").arg(directory);
    // So little that a backfill takes many batches and flushes.
    command.args(["--backfill-memory", "4MiB", "--cache-size", "16MiB"]);
    command
}

/// A running `quarry run`.
pub(crate) struct Quarry {
    child: Child,
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Quarry {
    /// Starts and waits until it serves.
    pub(crate) fn start(fake: &FakeNode, directory: &Path) -> Self {
        Self::start_with(fake, directory, &[])
    }

    /// The same with more arguments.
    pub(crate) fn start_with(fake: &FakeNode, directory: &Path, more: &[&str]) -> Self {
        let url = fake.url();
        let began = Instant::now();
        let mut child = command(
            &["run", "--mainnet-rpc", &url, "--listen", "127.0.0.1:0"],
            directory,
        )
        .args(more)
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
        let (sender, serving) = std::sync::mpsc::channel();
        let log = Arc::new(Mutex::new(Vec::new()));
        let (lines, stderr) = (Arc::clone(&log), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("serving address=") {
                    let _ = sender.send(address.trim().to_owned());
                }
                lines.lock().unwrap().push(line);
            }
        });
        let address = serving.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| {
            let _ = child.kill();
            panic!("not serving: {:#?}", log.lock().unwrap())
        });
        let quarry = Self { child, address, log };
        quarry.status().expect("serves");
        started(began.elapsed(), &*quarry.log.lock().unwrap());
        quarry
    }

    /// Asks, and gives the answer from the status code on.
    fn ask(&self, target: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text.strip_prefix("HTTP/1.1 ")?.to_owned())
    }

    /// Status code and the rest.
    pub(crate) fn get(&self, target: &str) -> (u16, String) {
        let answer = self.ask(target).expect("an answer");
        let (code, rest) = answer.split_once(' ').unwrap();
        (code.parse().unwrap(), rest.to_owned())
    }

    /// What `/status` says of the chain.
    pub(crate) fn status(&self) -> Option<Value> {
        let text = self.ask("/status")?;
        let body = text.split_once("\r\n\r\n")?.1;
        let report: Value = serde_json::from_str(body).ok()?;
        Some(report["chains"]["mainnet"].clone())
    }

    pub(crate) fn indexed(&self) -> Option<u64> {
        self.status()?["indexed"].as_u64()
    }

    pub(crate) fn until(&mut self, what: &str, condition: impl Fn(&Value) -> bool) {
        let began = Instant::now();
        while !self.status().is_some_and(|status| condition(&status)) {
            assert!(
                began.elapsed() < Duration::from_secs(90) && self.child.try_wait().unwrap().is_none(),
                "in vain: {what}: {:?} {:#?}",
                self.status(),
                self.log.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// How many lines of the log have this in them.
    pub(crate) fn said(&self, what: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.iter().filter(|line| line.contains(what)).count()
    }

    pub(crate) fn until_synced(&mut self, fake: &FakeNode) {
        let head = fake.head_hash().to_string();
        self.until("the node's head", |status| status["indexedHash"] == head.as_str());
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// Stops the process where it is, every thread of it.
    pub(crate) fn freeze(&self) {
        self.signal(Signal::STOP);
        let began = Instant::now();
        let tasks = format!("/proc/{}/task", self.child.id());
        // The signal is there at once; each thread stops when it next looks.
        while !std::fs::read_dir(&tasks).unwrap().all(|task| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            state.is_none_or(|state| matches!(state, 'T' | 't' | 'Z' | 'X'))
        }) {
            assert!(
                began.elapsed() < Duration::from_secs(10),
                "threads that do not stop"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let log = self.log.lock().unwrap();
        assert!(!log.iter().any(|line| line.contains("panicked")), "{log:#?}");
    }

    /// Asks for the end, which must be clean and quick.
    pub(crate) fn stop(mut self) {
        let began = Instant::now();
        self.signal(Signal::TERM);
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "does not end: {:#?}",
                self.log.lock().unwrap()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(status.success(), "{status}: {:#?}", self.log.lock().unwrap());
        assert!(
            began.elapsed() < at_most(Duration::from_secs(3)),
            "the end took {:?}",
            began.elapsed()
        );
    }
}

impl Drop for Quarry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `quarry inspect --full` says the digest is.
pub(crate) fn inspected(directory: &Path) -> String {
    let output = command(&["inspect", "--full"], directory).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let digest = text.lines().find_map(|line| line.strip_prefix("digest "));
    digest
        .unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
        .trim()
        .to_owned()
}

/// The digest of an undisturbed run over the node's chain as it is now.
pub(crate) fn undisturbed(fake: &FakeNode) -> String {
    let directory = tempfile::tempdir().unwrap();
    let status = command(
        &["sync", "--to", "latest", "--mainnet-rpc", &fake.url()],
        directory.path(),
    )
    .stderr(Stdio::null())
    .stdout(Stdio::null())
    .status()
    .unwrap();
    assert!(status.success(), "{status}");
    inspected(directory.path())
}

pub(crate) fn pause(rng: &mut Rng, milliseconds: std::ops::Range<u64>) {
    std::thread::sleep(Duration::from_millis(rng.u64(milliseconds)));
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}
